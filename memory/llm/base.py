"""What is asked of a language model, whoever makes it: a text, or values of a shape.

Everything that can go wrong is an `LLMError`, whose message never holds what was asked or answered.
Only background work and nightly jobs ask; `record` and `build_context` never do.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

from pydantic import Field

from memory.errors import LLMSpent
from memory.models import Value

V = TypeVar("V", bound=Value)


class Usage(Value):
    """What has been used so far. `failures` counts by kind of `LLMError`."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failures: dict[str, int] = Field(default_factory=dict)


class Spend:
    """What one job may still use. Shared by all calls of that job."""

    def __init__(self, *, calls: int, tokens: int) -> None:
        self.calls = calls
        self.tokens = tokens

    def take(self, tokens: int) -> None:
        """One call, expected to use so many tokens. Raises LLMSpent when it is not allowed."""
        if self.calls < 1 or self.tokens < tokens:
            raise LLMSpent(f"{self.calls} calls and {self.tokens} tokens are left of the budget")
        self.calls -= 1
        self.tokens -= tokens

    def settle(self, expected: int, used: int) -> None:
        """The call that was expected to use `expected` tokens has used `used`."""
        self.tokens += expected - used


class Answered(NamedTuple, Generic[V]):
    """What could be read of an answer that is a list: its whole items, and how many were not.

    `truncated` says that the answer was cut off at its limit, so that there may have been more.
    """

    items: list[V]
    unread: int = 0
    truncated: bool = False


class LanguageModel(Protocol):
    """One model behind one endpoint.

    `identity` is vendor and model, "openai:gpt-4o-mini"; `window` the tokens of one request,
    question and answer together, counted by `count`. Both verbs raise LLMUnavailable, LLMRefused,
    LLMMalformed, LLMTruncated, LLMTooLong and LLMSpent.
    """

    identity: str
    window: int

    @property
    def usage(self) -> Usage: ...

    def count(self, text: str) -> int:
        """Tokens of a text, as near as can be told."""
        ...

    async def text(
        self, instructions: str, data: str, *, limit: int, spend: Spend | None = None
    ) -> str:
        """Prose about `data`, of at most `limit` tokens, stripped and never blank.

        An answer that is longer is LLMTooLong; a refusal or a question back is LLMRefused.
        """
        ...

    async def listed(
        self,
        instructions: str,
        data: str,
        shape: type[V],
        *,
        limit: int,
        spend: Spend | None = None,
    ) -> Answered[V]:
        """Values of `shape` that the model read out of `data`; an empty list is an answer too.

        Common wrappings (fences, prose around it, trailing commas, a bare list, several objects)
        are seen through; an answer cut off at `limit` gives its whole items only, and is
        LLMTruncated when there is none. What the items look like need not be in `instructions`:
        the names, kinds and descriptions of the fields of `shape` are told to the model.
        """
        ...

    async def close(self) -> None: ...
