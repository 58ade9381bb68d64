"""A language model for tests that lists facts, and a process that dies while it reads."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from consolidation.reading import Night, Reader, Reading
from memory.errors import LLMError, LLMUnavailable
from memory.journal import Event, Journal, NewEvent
from memory.journal.database import Result, Work
from memory.llm import Answered, Spend, Usage
from memory.models import Message, Role, Scope
from memory.semantic.predicates import Registry
from memory.tokens import TokenCounter
from memory.unread import Unread

PATIENCE = timedelta(seconds=30)
NIGHT = datetime.fromisoformat("2026-03-02T03:00:00+00:00")
_COUNT = TokenCounter().count
_LINE = re.compile(r"^\[(\d+)\] \S+ \S+ user: (.*)$", re.MULTILINE)

Script = Callable[[str], "list[dict[str, Any]] | LLMError"]


class ListingLLM:
    """Lists what a script says about the messages of a request, and keeps what it was asked."""

    identity = "listing:1"

    def __init__(self, script: Script, *, window: int = 16_000) -> None:
        self.script = script
        self.window = window
        self.asked: list[str] = []
        self.is_gone = False

    @property
    def usage(self) -> Usage:
        return Usage(calls=len(self.asked))

    def count(self, text: str) -> int:
        return _COUNT(text)

    async def text(self, *_: Any, **__: Any) -> str:
        if self.is_gone:
            raise LLMUnavailable("gone")
        return "Yes."

    async def listed(
        self,
        instructions: str,
        data: str,
        shape: Any,
        *,
        limit: int,
        spend: Spend | None = None,
    ) -> Answered[Any]:
        if spend is not None:
            spend.take(_COUNT(data))
        self.asked.append(data)
        if self.is_gone:
            raise LLMUnavailable("gone")
        said = self.script(data)
        if isinstance(said, LLMError):
            raise said
        return Answered([shape.model_validate(each) for each in said])

    async def close(self) -> None:
        pass


def boxes(data: str) -> list[dict[str, Any]]:
    """One fact of every message that says "Box N holds THING"."""
    return [
        {
            "message": int(number),
            "quote": text,
            "subject": text.partition(" holds ")[0],
            "predicate": "holds",
            "object": text.partition(" holds ")[2],
        }
        for number, text in _LINE.findall(data)
        if " holds " in text
    ]


class Killed(BaseException):
    """The process ends here."""


class MortalJournal(Journal):
    """Ends the process before its `at`-th write from now on; what was written stays."""

    def __init__(self, journal: Journal, at: int) -> None:
        super().__init__(journal._open_database())
        self._left = at

    async def write(
        self, work: Work[Result], *, alone: str | None = None, durable: bool = True
    ) -> Result:
        self._step()
        return await super().write(work, alone=alone, durable=durable)

    async def append(self, scope: Scope, new: Sequence[NewEvent], *, now: datetime) -> list[Event]:
        self._step()
        return await super().append(scope, new, now=now)

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed


@asynccontextmanager
async def journal_at(url: str) -> AsyncIterator[Journal]:
    async with Journal.open(url, timeout=PATIENCE) as journal:
        yield journal


async def record(journal: Journal, scope: Scope, session: str, *texts: str) -> list[str]:
    """The texts as messages of the user; their ids."""
    new = [(text, Message(role=Role.USER, content=text)) for text in texts]
    stored = await journal.append_messages(scope, session, new, agent=None, now=NIGHT)
    return [message.id for message in stored]


async def read(
    journal: Journal,
    llm: ListingLLM,
    *scopes: Scope,
    now: datetime = NIGHT,
    calls: int = 1_000,
    tokens: int = 1_000_000,
) -> Reading:
    """A night's reading for these users."""
    unread = Unread(journal, lambda: now, lambda: None)
    spend = Spend(calls=calls, tokens=tokens)
    night = Night(Reader(llm, Registry.default(), unread, spend), now)
    for scope in scopes:
        await night.read(scope)
    return night.reading(sum([await unread.waiting(scope) for scope in scopes]))


def read_and_die(url: str, scope: dict[str, Any], asked: Path) -> None:
    """Read, and be gone where a message says so, with the answer on its way."""

    def script(data: str) -> list[dict[str, Any]]:
        with asked.open("a", encoding="utf-8") as file:
            file.write(f"{data}\n=====\n")
        if "POISON" in data:
            os._exit(1)
        return boxes(data)

    async def run() -> None:
        async with journal_at(url) as journal:
            await read(journal, ListingLLM(script), Scope(**scope))

    asyncio.run(run())
