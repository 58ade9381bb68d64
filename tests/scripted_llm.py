"""A language model for tests that lives in this process: it answers what a script says, and keeps
what it was asked. It keeps the promises of `LanguageModel`, as one behind an endpoint does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from memory.errors import LLMError, LLMMalformed, LLMRefused, LLMTooLong, LLMUnavailable
from memory.llm import Answered, Spend, Usage
from memory.llm.refusals import asks_back, declines
from memory.tokens import TokenCounter

_COUNT = TokenCounter().count


class Asked(NamedTuple):
    """One request. `number` counts from 1."""

    number: int
    instructions: str
    data: str
    limit: int

    @property
    def tokens(self) -> int:
        """Of the question and the room for its answer."""
        return _COUNT(self.instructions) + _COUNT(self.data) + self.limit


Script = Callable[[Asked], "str | LLMError"]

TIMEOUT = LLMUnavailable("sk-secret-of-the-provider: timed out after 60 s")
"""An error whose text must be found nowhere."""


class ScriptedLLM:
    """Answers by `script`; `open` is cleared to keep it from answering for a while."""

    identity = "scripted:1"

    def __init__(self, script: Script, *, window: int = 16_000) -> None:
        self.script = script
        self.window = window
        self.asked: list[Asked] = []
        self.open = asyncio.Event()
        self.open.set()

    @property
    def usage(self) -> Usage:
        return Usage(calls=len(self.asked))

    def count(self, text: str) -> int:
        return _COUNT(text)

    async def text(
        self, instructions: str, data: str, *, limit: int, spend: Spend | None = None
    ) -> str:
        asked = Asked(len(self.asked) + 1, instructions, data, limit)
        self.asked.append(asked)
        await self.open.wait()
        said = self.script(asked)
        if isinstance(said, LLMError):
            raise said
        if not said.strip():
            raise LLMMalformed("the answer is empty")
        if declines(said) or asks_back(said):
            raise LLMRefused("it declined")
        if self.count(said) > limit:
            raise LLMTooLong("the answer is too long")
        return said.strip()

    async def listed(self, *_: Any, **__: Any) -> Answered[Any]:
        return Answered([])

    async def close(self) -> None:
        pass


def says(text: str) -> Script:
    return lambda _: text


def fails(error: LLMError = TIMEOUT) -> Script:
    return lambda _: error
