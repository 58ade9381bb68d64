"""Large files: killed in the middle and run again, with real processes."""

from __future__ import annotations

import asyncio
import json
import signal
from multiprocessing import get_context
from pathlib import Path

from memory.importers.importing import import_file
from memory.models import Scope
from tests.behaviour.conftest import Open
from tests.behaviour.importing_process import import_and_die
from tests.stub_embedder import StubEmbedder

MESSAGES, SESSIONS = 2_000, 25


async def test_a_large_import_that_was_killed_goes_on_where_it_was_and_doubles_nothing(
    open_memory: Open, urls: dict[str, str], scope: Scope, tmp_path: Path
) -> None:
    path = tmp_path / "large.jsonl"
    texts = [f"message {n} of {MESSAGES}" for n in range(MESSAGES)]
    with path.open("w", encoding="utf-8") as file:
        for n, text in enumerate(texts):
            line = {"session": f"s{n * SESSIONS // MESSAGES}", "role": "user", "content": text}
            file.write(json.dumps(line) + "\n")
    killed = get_context("spawn").Process(
        target=import_and_die, args=({**urls, "tenant": scope.tenant}, path)
    )
    killed.start()
    await asyncio.to_thread(killed.join)
    assert killed.exitcode == -signal.SIGKILL
    async with open_memory(embedder=StubEmbedder()) as memory:
        ada = memory.user("ada")
        there = sum(info.messages for info in await ada.sessions())
        assert 0 < there < MESSAGES
        moved: list[float] = []
        report = await import_file(memory, path, "ada", progress=lambda done, _: moved.append(done))
        assert (report.messages, report.added, report.problems) == (MESSAGES, MESSAGES - there, ())
        assert round(moved[-1]) == MESSAGES
        assert await memory.settled()
        assert sorted(one.text for one in await ada.episodes()) == sorted(texts)
        assert sum(info.messages for info in await ada.sessions()) == MESSAGES
        vectors = await ada.vectors(await ada.episodes())
        assert vectors.any(axis=1).all()
        head = await memory._parts.journal.head()
        assert (await import_file(memory, path, "ada")).added == 0
        assert await memory._parts.journal.head() == head
