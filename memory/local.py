"""The local stack of sidecars. (Being written: only its value is here yet.)"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from memory.models import Health, Value


class LocalStack(Value):
    folder: Path
    journal_url: str
    redis_url: str
    chroma_url: str


@asynccontextmanager
async def local_stack(
    folder: Path,
    *,
    idle: timedelta,
    timeout: timedelta,  # noqa: ASYNC109
    parts: frozenset[str] = frozenset({"redis", "chroma"}),
) -> AsyncIterator[LocalStack]:
    raise NotImplementedError
    yield


async def stop_stack(folder: Path) -> list[Health]:
    return []
