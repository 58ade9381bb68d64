"""Opening a store of facts: which one, a URL decides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

from memory.journal import Journal
from memory.semantic.base import SemanticMemory
from memory.semantic.sql import open_sql


def open_semantic(
    url: str | None, journal: Journal, *, timeout: timedelta
) -> AbstractAsyncContextManager[SemanticMemory]:
    """The store that the URL names (bolt://, neo4j://, +s, +ssc), or the journal's own tables.

    `timeout` is the longest that one operation waits. Raises ConfigurationError for another URL.
    """
    if url is None:
        return _in_journal(journal)
    from memory.semantic.neo4j import open_neo4j  # the driver takes 0.3 s to import

    return open_neo4j(url, timeout=timeout)


@asynccontextmanager
async def _in_journal(journal: Journal) -> AsyncIterator[SemanticMemory]:
    yield open_sql(journal)
