"""An open memory, on the local stack and on servers, with a clock that tests set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memory import Memory
from memory.embedding import Embedder, open_embedder
from memory.local import LocalStack
from memory.models import Scope
from memory.settings import Settings

STORES = ["local", "servers"]

Open = Callable[..., AbstractAsyncContextManager[Memory]]


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def embedder() -> AsyncIterator[Embedder]:
    """The default embedder, loaded once."""
    opened = await open_embedder(Settings())
    yield opened
    await opened.close()


@pytest.fixture(params=STORES)
def urls(request: pytest.FixtureRequest) -> dict[str, str]:
    """Where the stores of this test are: a journal of its own, the other stores shared."""
    return urls_of(request, request.param)


def urls_of(request: pytest.FixtureRequest, stores: str) -> dict[str, str]:
    if stores == "servers":
        return {
            "journal_url": request.getfixturevalue("postgres_url"),
            "redis_url": request.getfixturevalue("redis_url"),
            "chroma_url": request.getfixturevalue("chroma_url"),
            "neo4j_url": request.getfixturevalue("neo4j_url"),
        }
    local: LocalStack = request.getfixturevalue("local")
    folder: Path = request.getfixturevalue("tmp_path")
    return {
        "journal_url": f"sqlite:///{folder / 'journal.db'}",
        "redis_url": local.redis_url,
        "chroma_url": local.chroma_url,
    }


@pytest.fixture
def open_memory(urls: dict[str, str], embedder: Embedder, clock: Clock, scope: Scope) -> Open:
    """Opens the test's memory, as often as a test likes; keywords override settings."""

    def open_it(**changes: Any) -> AbstractAsyncContextManager[Memory]:
        chosen = changes.pop("embedder", embedder)
        settings = Settings.model_validate({**urls, "tenant": scope.tenant, **changes})
        return Memory.open(settings=settings, embedder=chosen, clock=clock)

    return open_it


@pytest.fixture
async def memory(open_memory: Open) -> AsyncIterator[Memory]:
    async with open_memory() as opened:
        yield opened
