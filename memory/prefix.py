"""How much of a context a provider's prompt cache knows from the one before it. Pure.

Providers reuse the longest beginning that is the same to the byte: the tools' schema, then the
messages. In a conversation that goes on, that beginning ends in the normal case where the memory
block stood: it is made for one message, so the next context has the recorded turn in its place.
What comes before it should stay: this says how much did, and what was first to differ.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from pydantic import JsonValue

from memory.models import Context, Item, JsonObject, Prefix, Scope, TokenCount

Kind = Literal["system", "pinned", "summary", "turns", "memory", "message"]
"""What a message of a context is."""

SUMMARY_ID: Final = "summary:"
"""How the id of a summary's item begins."""
SUMMARY_HEAD: Final = "Summary of earlier "
PINNED_HEAD: Final = "Always known "
MEMORY_HEAD: Final = "From memory, "
"""How what stands in a fence begins."""


@dataclass(frozen=True, slots=True)
class Previous:
    """What the next context needs to know of the one before it in its session."""

    snapshot_id: str
    tools: tuple[JsonObject, ...]
    messages: tuple[JsonObject, ...]
    tokens: TokenCount
    first_turn: str | None
    """The id of the oldest message of the window that was shown."""
    summary: Item | None
    in_order: bool = True
    """Whether the fields of the tools stand in the order in which they were sent."""

    @classmethod
    def of(cls, context: Context, *, in_order: bool = True) -> Self:
        """Of a context that was kept: it has a snapshot_id. One that was read from the store has
        its fields in another order than the one that was sent."""
        working = [item for item in context.items if item.tier == "working"]
        summary = next((item for item in working if item.id.startswith(SUMMARY_ID)), None)
        first = next((item.id for item in working if item is not summary), None)
        return cls(
            snapshot_id=context.snapshot_id or "",
            tools=context.tools,
            messages=context.messages,
            tokens=context.tokens,
            first_turn=first,
            summary=summary,
            in_order=in_order,
        )


class Recent:
    """The newest context of each of the sessions that were asked for last, at most `limit`."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[Scope, str], Previous] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, scope: Scope, session: str) -> Previous | None:
        return self._kept.get((scope, session))

    def put(self, scope: Scope, session: str, previous: Previous) -> None:
        self._kept[scope, session] = previous
        self._kept.move_to_end((scope, session))
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)


def prefix(
    previous: Previous,
    tools: Sequence[JsonObject],
    messages: Sequence[JsonObject],
    kinds: Sequence[Kind],
    cost: Callable[[int], int],
    tool_tokens: int,
) -> Prefix:
    """What of these messages is the beginning of `previous`, and what broke it.

    `kinds` says what each message is, and `cost` how many tokens the one at a place has.
    """
    broken = ""
    if list(previous.tools) != list(tools):
        broken = "the tools' schema changed"
    elif previous.in_order and not _in_one_order(list(previous.tools), list(tools)):
        broken = "the fields of the tools' schema stand in another order"
    if broken:
        return Prefix(previous=previous.snapshot_id, messages=0, tokens=0, broken_by=broken)
    old = previous.messages
    same = 0
    while same < min(len(old), len(messages)) and old[same] == messages[same]:
        same += 1
    return Prefix(
        previous=previous.snapshot_id,
        messages=same,
        tokens=tool_tokens + sum(map(cost, range(same))),
        broken_by=_broken_by(old, messages, kinds, same),
    )


def _in_one_order(one: JsonValue, other: JsonValue) -> bool:
    """Whether equal values have their fields in the same order: they reach a provider so."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(_in_one_order, one.values(), other.values()))
    if isinstance(one, list) and isinstance(other, list):
        return all(map(_in_one_order, one, other))
    return True


def _broken_by(
    old: Sequence[JsonObject], new: Sequence[JsonObject], kinds: Sequence[Kind], at: int
) -> str:
    """What differs first, for people; '' when all of the old is the beginning of the new."""
    if at == len(old):
        return ""
    was = _kind(old, at)
    became = kinds[at] if at < len(new) else None
    if "system" in (was, became):
        return "the system text changed"
    if "pinned" in (was, became):
        return "a pinned fact changed"
    if was == became == "summary" and _head(old[at]) == _head(new[at]):
        return "the summary of the same messages has another text"
    if "summary" in (was, became):
        return _SUMMARY[(was == "summary", became == "summary")]
    if was == "memory" or became == "memory":
        return "what is recalled for the message: it stands before it and is new at every turn"
    if was == became == "message":
        return "the new message is another one"
    return _in_the_turns(old, new, kinds, at)


_SUMMARY: Final = {
    (True, True): "the summary was extended",
    (False, True): "a summary took the place of older turns",
    (True, False): "the summary is not there any more",
}


def _in_the_turns(
    old: Sequence[JsonObject], new: Sequence[JsonObject], kinds: Sequence[Kind], at: int
) -> str:
    started = at == 0 or kinds[at - 1] not in ("turns", "message")
    if not started or at >= len(new):
        return "a recent turn changed"
    if new[at] in old[at + 1 :]:
        return "older turns were cut"
    if old[at] in new[at + 1 :]:
        return "older turns are shown again"
    return "other turns are shown"


_FENCED: Final = re.compile(r"<memory-[0-9a-f]{8}>\n(.*)")


def _head(message: JsonObject) -> str:
    """The first line of what stands in a fence; '' where the message is none of the user's."""
    content = message.get("content")
    is_text = message.get("role") == "user" and isinstance(content, str)
    fenced = _FENCED.match(str(content)) if is_text else None
    return fenced[1] if fenced else ""


def _kind(messages: Sequence[JsonObject], at: int) -> Kind:
    """What a message of a stored context is, by how it begins: good enough to name it."""
    message = messages[at]
    if message.get("role") in ("system", "developer"):
        return "system"
    heads: dict[str, Kind] = {
        SUMMARY_HEAD: "summary",
        PINNED_HEAD: "pinned",
        MEMORY_HEAD: "memory",
    }
    for head, kind in heads.items():
        if _head(message).startswith(head):
            return kind
    return "message" if at == len(messages) - 1 else "turns"
