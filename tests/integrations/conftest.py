"""The fixtures of tests/cases: the local stack, with a journal of its own for every test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from memory.embedding import Embedder
from tests.cases.conftest import clock, memory, open_memory, urls
from tests.stub_embedder import StubEmbedder

__all__ = ["clock", "embedder", "memory", "open_memory", "urls"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def embedder() -> AsyncIterator[Embedder]:
    """Quick, and texts that share words are near."""
    yield StubEmbedder()
