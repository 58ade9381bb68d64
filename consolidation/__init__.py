"""The nightly job: what has faded is forgotten, what keeps recurring becomes a fact, and what was
said is read by a language model, where there is one."""

from consolidation.job import Report, consolidate, last_run
from consolidation.plan import Plan, Policy
from consolidation.reading import Reading

__all__ = ["Plan", "Policy", "Reading", "Report", "consolidate", "last_run"]
