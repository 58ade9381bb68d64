"""What an importer gives: conversations, problems by place, and the report of a whole import."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from memory.models import Message, Value

KeyedMessage = tuple[str, Message]
"""A key that follows from the content, and the message. The same file gives the same keys."""


class Conversation(Value):
    """Messages of one session in the order in which they were said.

    A long session may come as several of these, one after the other. `left_out` has a reason for
    everything that is not speech and was not kept (hidden instructions, thinking, tool traffic of
    an export, empty messages). `undated` counts messages for which the file has no time at all.
    `entries` is its share of `Source.entries`.
    """

    session: str
    format: str
    title: str = ""
    messages: tuple[KeyedMessage, ...] = ()
    left_out: tuple[str, ...] = ()
    undated: int = 0
    entries: int = 1


class Problem(Value):
    """Something in the file that could not be read, and where: 'line 7', 'conversation 3'."""

    where: str
    reason: str


class ImportReport(Value):
    """What an import did.

    `messages` were read, of which `added` are new and the rest was there already. `left_out`
    counts by reason what was not kept on purpose; `problems` are what could not be read.
    """

    file: str
    format: str
    conversations: int = 0
    messages: int = 0
    added: int = 0
    undated: int = 0
    left_out: Mapping[str, int] = Field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Everything in the file could be read."""
        return not self.problems
