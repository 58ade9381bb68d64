"""A process that imports a file, and is killed in the middle of it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from memory import Memory
from memory.importers.importing import import_file
from memory.settings import Settings
from tests.stub_embedder import StubEmbedder


def import_and_die(settings: dict[str, Any], path: Path) -> None:
    """Import the file for ada, and be gone when two fifths are recorded."""
    asyncio.run(_import(Settings.model_validate(settings), path))


async def _import(settings: Settings, path: Path) -> None:
    async with Memory.open(settings=settings, embedder=StubEmbedder()) as memory:
        await import_file(memory, path, "ada", progress=_die)


def _die(done: float, total: int) -> None:
    if 5 * done >= 2 * total:
        os.kill(os.getpid(), signal.SIGKILL)
