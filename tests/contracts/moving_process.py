"""A process that moves vectors, and is killed in the middle of it."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta

from memory.chroma import open_chroma
from memory.episodic import EpisodicMemory
from memory.journal import Journal
from tests.stub_embedder import StubEmbedder

TIMEOUT = timedelta(seconds=60)


def share_out_and_die(urls: tuple[str, str], shards: int) -> None:
    """Begin to share users out among so many shards, and be gone when a third is done."""
    asyncio.run(_run(urls, StubEmbedder(), shards))


def prepare_and_die(urls: tuple[str, str], name: str, dims: int) -> None:
    """Begin to fill another embedder's space, and be gone when a third is done."""
    asyncio.run(_run(urls, StubEmbedder(name, dims), None))


async def _run(urls: tuple[str, str], embedder: StubEmbedder, shards: int | None) -> None:
    async with (
        Journal.open(urls[0], timeout=TIMEOUT) as journal,
        open_chroma(urls[1], timeout=TIMEOUT) as chroma,
    ):
        episodic = EpisodicMemory(journal, chroma, embedder)
        if shards is None:
            await episodic.prepare(_die)
        else:
            await episodic.relayout(shards, _die)


def _die(done: int, total: int) -> None:
    if 3 * done >= total:
        os.kill(os.getpid(), signal.SIGKILL)
