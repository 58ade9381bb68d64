"""A framework's items inside messages, word for word, and never the same text twice. Pure.

A message stands for one or more items of a framework, in order. Where it does not say by itself
what they were, its metadata has them:

    {"framework": {"of": "openai_agents", "items": [item, …]}}

A long text of an item that the message has as well is not written again: {"$said": n} stands for
the n-th text of the message (its content's and its calls', keys in order of their names). An object
of an item that looks like such a reference is {"$kept": object}.

Some items say nothing that memory could read: reasoning, a provider's own tools. They travel with
the next message of their batch, else with the one before; where a batch has no other, and for an
item with an identity of its own, a message stands in that names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.codec import decode, encode
from memory.errors import Corrupt
from memory.fence import strip_all
from memory.models import FRAMEWORK, JsonObject, Message, Role

_LONG = 32
"""Characters of a text from which on referring to it is shorter than repeating it."""

Derive = Callable[[Message], list[JsonObject]]
"""The items that a message stands for when nothing else is known of them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One item, and the message that it makes: None when there is nothing in it to remember.

    `key` is what makes it the same item, which is added once; None: it is new each time. `kind`
    names it for people. `joins` says of calls that they go on what the assistant just said.
    """

    item: JsonObject
    message: Message | None
    key: str | None = None
    kind: str = "item"
    joins: bool = False


@dataclass(slots=True)
class Told:
    """A message to record, and the items that it stands for."""

    message: Message
    items: list[JsonObject] = field(default_factory=list)
    key: str | None = None


def without_fences(item: JsonObject) -> JsonObject:
    """The item without what a context lent it, and as JSON has it. Raises InvalidInput for what
    JSON cannot hold."""
    clean: JsonObject = strip_all(decode(encode(item)))
    return clean


def gathered(pieces: Sequence[Piece]) -> list[Told]:
    """The messages of one batch, each with its items.

    Calls that join what the assistant said before are one message with it, as providers have it.
    """
    told: list[Told] = []
    silent: list[JsonObject] = []
    for piece in pieces:
        if piece.message is None and piece.key is None:
            silent.append(piece.item)
            continue
        message = piece.message or _stand_in([piece])
        if piece.joins and told and told[-1].message.role is Role.ASSISTANT:
            told[-1].message = _together(told[-1].message, message)
            told[-1].items += [*silent, piece.item]
        else:
            told.append(Told(message, [*silent, piece.item], piece.key))
        silent = []
    if silent and told:
        told[-1].items += silent
    elif silent:
        told.append(Told(_stand_in(pieces), silent))
    return told


def _stand_in(pieces: Sequence[Piece]) -> Message:
    kinds = ", ".join(dict.fromkeys(piece.kind for piece in pieces))
    return Message(role=Role.ASSISTANT, content=f"[{kinds}]")


def _together(before: Message, calls: Message) -> Message:
    return before.model_copy(update={"tool_calls": (*before.tool_calls, *calls.tool_calls)})


# --- into metadata and out of it ---------------------------------------------------------------


def packed(told: Told, *, of: str, derive: Derive) -> Message:
    """The message, with what is needed to give its items back."""
    if derive(told.message) == told.items:
        return told.message
    places = {text: n for n, text in reversed(list(enumerate(_texts(told.message))))}
    held: JsonObject = {"of": of, "items": [_referring(item, places) for item in told.items]}
    metadata = {**told.message.metadata, FRAMEWORK: held}
    return told.message.model_copy(update={"metadata": metadata})


def unpacked(message: Message, *, of: str, derive: Derive) -> list[JsonObject]:
    """The items of the message: as they were, or as `derive` has them when another recorded it."""
    held = message.metadata.get(FRAMEWORK)
    if not isinstance(held, dict) or held.get("of") != of:
        return derive(message)
    texts = list(_texts(message))
    items = held.get("items")
    try:
        return [_resolved(item, texts) for item in items]  # type: ignore[union-attr]
    except (TypeError, LookupError) as error:
        raise Corrupt(f"the items of {of} in a message cannot be read: {error}") from error


def _texts(message: Message) -> Iterator[str]:
    yield from _strings(message.content)
    for call in message.tool_calls:
        yield call.arguments


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from _strings(value[name])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)


def _referring(value: Any, places: dict[str, int]) -> Any:
    if isinstance(value, str) and len(value) >= _LONG and value in places:
        return {"$said": places[value]}
    if isinstance(value, dict):
        inner = {name: _referring(each, places) for name, each in value.items()}
        return {"$kept": inner} if set(value) in ({"$said"}, {"$kept"}) else inner
    if isinstance(value, list):
        return [_referring(each, places) for each in value]
    return value


def _resolved(value: Any, texts: Sequence[str]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$said"}:
            return texts[value["$said"]]
        if set(value) == {"$kept"}:
            return {name: _resolved(each, texts) for name, each in value["$kept"].items()}
        return {name: _resolved(each, texts) for name, each in value.items()}
    if isinstance(value, list):
        return [_resolved(each, texts) for each in value]
    return value
