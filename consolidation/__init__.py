"""The nightly job: what has faded is forgotten, what keeps recurring becomes a fact."""

from consolidation.job import Report, consolidate, last_run
from consolidation.plan import Plan, Policy

__all__ = ["Plan", "Policy", "Report", "consolidate", "last_run"]
