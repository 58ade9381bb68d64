"""What one of several processes does in the tests of compaction."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from memory import Memory
from memory.journal import Journal
from memory.models import Message, RecordedMessage, Role, Scope, Summary, Window
from memory.projections import Windows
from memory.retelling import Retelling
from memory.settings import Settings
from memory.tokens import TokenCounter
from memory.working import WorkingMemory, open_redis
from tests.behaviour.conftest import Clock
from tests.scripted_llm import Asked, ScriptedLLM
from tests.stub_embedder import StubEmbedder

SESSION = "s"
LIMIT, SUMMARY_LIMIT = 400, 100
PATIENCE = timedelta(seconds=30)


class Unasked:
    """Nobody summarises in the background: the test does it itself."""

    def request(self, scope: Scope, session: str) -> None:
        pass

    async def problem(self, scope: Scope, session: str) -> str:
        return ""


class DiesAtFold(WorkingMemory):
    """Kills its process before or after a fold."""

    point = ""

    async def fold(self, scope: Scope, session: str, *, read: Window, summary: Summary) -> bool:
        if self.point == "written":
            os.kill(os.getpid(), signal.SIGKILL)
        done = await super().fold(scope, session, read=read, summary=summary)
        os.kill(os.getpid(), signal.SIGKILL)
        return done


class Measured(WorkingMemory):
    """Keeps how many messages each read gave."""

    gave: ClassVar[list[int]] = []

    async def read(self, *given: Any, **more: Any) -> Window | None:
        window = await super().read(*given, **more)
        self.gave.append(len(window.messages) if window else 0)
        return window


@asynccontextmanager
async def windows_at(
    urls: dict[str, str], working_memory: type[WorkingMemory] = WorkingMemory
) -> AsyncIterator[tuple[Journal, WorkingMemory, Windows]]:
    """The windows over stores of their own, as a process of its own has them."""
    async with (
        Journal.open(urls["journal_url"], timeout=PATIENCE) as journal,
        open_redis(urls["redis_url"], timeout=PATIENCE) as client,
    ):
        working = working_memory(client, ttl=None)
        windows = Windows(
            journal,
            working,
            TokenCounter(),
            limit=LIMIT,
            summary_limit=SUMMARY_LIMIT,
            ttl=None,
            clock=Clock(),
            later=Unasked(),
        )
        yield journal, working, windows


def retelling(llm: ScriptedLLM) -> Retelling:
    return Retelling(llm, TokenCounter().count, limit=SUMMARY_LIMIT)


def compact_and_die(urls: dict[str, str], scope: dict[str, Any], asked: Path, point: str) -> None:
    """Compact the session, and be killed on the way: when the model has `answered`, when the
    summary is `written` to the journal, or when the window is `folded`."""

    def script(request: Asked) -> str:
        asked.write_text(request.data)
        if point == "answered":
            os.kill(os.getpid(), signal.SIGKILL)
        return "They spoke of the ferry, and the process died."

    async def run() -> None:
        async with windows_at(urls, DiesAtFold) as (_, working, windows):
            assert isinstance(working, DiesAtFold)
            working.point = point
            await windows.compact(Scope(**scope), SESSION, retelling(ScriptedLLM(script)))

    asyncio.run(run())


def record_lines(settings: dict[str, Any], user: str, size: int, found: Path) -> None:
    """Record so many lines of one time through a memory of this process, and write down what its
    window then has: the summary's range, and each message's id."""

    async def run() -> None:
        chosen = Settings.model_validate(settings)
        async with Memory.open(settings=chosen, embedder=StubEmbedder(), clock=Clock()) as memory:
            session = memory.user(user).session(SESSION)
            for number in range(size):
                await session.record(user=f"Line {number}: the ferry leaves at nine, I was told.")
            assert await memory.settled(PATIENCE)
            found.write_text(told(await session.window()))

    asyncio.run(run())


def told(window: Window) -> str:
    summary = window.summary
    covered = f"{summary.covers_from}-{summary.covers_to} {summary.text!r}" if summary else ""
    return "\n".join([covered, str(window.tokens), *(m.id for m in window.messages)])


async def journalled(
    journal: Journal, scope: Scope, *, first: int, size: int
) -> list[RecordedMessage]:
    """So many more messages in the journal alone."""
    new = [
        (f"k{n}", Message(role=Role.USER, content=f"Line {n}: the ferry leaves at nine."))
        for n in range(first, first + size)
    ]
    return await journal.append_messages(scope, SESSION, new, agent=None, now=Clock().now)


async def filled(
    journal: Journal, windows: Windows, scope: Scope, *, first: int, size: int
) -> list[RecordedMessage]:
    """So many more messages in the journal and in the window, whatever the limit."""
    stored = await journalled(journal, scope, first=first, size=size)
    await windows.append(scope, SESSION, stored)
    return stored
