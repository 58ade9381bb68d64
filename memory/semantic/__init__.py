"""Semantic memory: what is known, as facts in two times.

`SemanticMemory` is what a store promises; `sql` keeps facts in the journal's database, `neo4j` in
a graph. `timeline` decides what an assertion changes, `extract` reads assertions out of messages.
"""

from memory.semantic.base import SemanticMemory
from memory.semantic.names import SELF
from memory.semantic.open import open_semantic
from memory.semantic.predicates import Predicate, Registry, render

__all__ = ["SELF", "Predicate", "Registry", "SemanticMemory", "open_semantic", "render"]
