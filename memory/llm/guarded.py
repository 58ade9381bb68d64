"""A language model of a caller's own, held to the promises of `LanguageModel`.

It may never answer, answer something of another shape, or raise what its drivers raise; then a
background step would stand still for ever, and a night end in the middle. So it is waited for no
longer than one behind an endpoint is, and what it raises becomes ours by its kind alone: its text
may hold what was asked, or a key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from memory.errors import LLMError, LLMMalformed, LLMUnavailable
from memory.llm.base import Answered, LanguageModel, Spend, Usage
from memory.models import Value

V = TypeVar("V", bound=Value)
T = TypeVar("T")

_log = logging.getLogger(__name__)


class Guarded:
    """The model, waited for no longer than `timeout` and raising nothing but LLMError."""

    def __init__(self, model: LanguageModel, timeout: timedelta) -> None:
        self.identity = model.identity
        self.window = model.window
        self._model = model
        self._seconds = timeout.total_seconds()

    @property
    def usage(self) -> Usage:
        return self._model.usage

    def count(self, text: str) -> int:
        return self._model.count(text)

    async def text(
        self, instructions: str, data: str, *, limit: int, spend: Spend | None = None
    ) -> str:
        said = await self._in_time(self._model.text(instructions, data, limit=limit, spend=spend))
        if not isinstance(said, str):
            raise LLMMalformed("the answer is no text")
        return said

    async def listed(
        self,
        instructions: str,
        data: str,
        shape: type[V],
        *,
        limit: int,
        spend: Spend | None = None,
    ) -> Answered[V]:
        asked = self._model.listed(instructions, data, shape, limit=limit, spend=spend)
        answer = await self._in_time(asked)
        if not isinstance(answer, Answered) or not all(isinstance(v, shape) for v in answer.items):
            raise LLMMalformed("the answer is no list of what was asked for")
        return answer

    async def close(self) -> None:
        await self._model.close()

    async def _in_time(self, answer: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._seconds):
                return await answer
        except LLMError:
            raise
        except Exception as error:
            kind = type(error).__name__
        _log.warning("%s could not be asked: %s", self.identity, kind)
        raise LLMUnavailable(f"the language model could not be asked ({kind})")
