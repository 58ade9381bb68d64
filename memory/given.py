"""What a caller gave, as values: messages, counts, tools, filters, facts. Pure.

Whatever cannot be accepted is refused by name, before anything is read or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from memory.errors import InvalidFilter, InvalidInput
from memory.fence import strip_all, strip_fences
from memory.models import JsonObject, Message, Role, ToolCall
from memory.redact import Redactor, only_masks
from memory.times import as_utc

Given = str | Message | Mapping[str, Any]
"""A message as a caller may give it: text, a Message, or an OpenAI-style mapping."""


def turn_of(
    user: str | None, assistant: str | None, messages: Sequence[Given] | None
) -> list[Message]:
    turn = [
        Message.parse({"role": role, "content": text})
        for role, text in ((Role.USER, user), (Role.ASSISTANT, assistant))
        if text is not None
    ]
    if messages is not None and not isinstance(messages, Iterable):
        raise InvalidInput(f"messages must be a list of messages, not {type(messages).__name__}")
    return [*turn, *(as_message(message, None) for message in messages or ())]


def as_message(given: Given, role: Role | None) -> Message:
    """A Message of what a caller gave. Text alone needs a role."""
    if isinstance(given, Message):
        return given
    if isinstance(given, str):
        if role is None:
            raise InvalidInput("a message needs a role: give a mapping or a Message")
        return Message(role=role, content=given)
    return Message.parse(given)


def definitions_of(tools: Sequence[Mapping[str, Any]]) -> tuple[JsonObject, ...]:
    if isinstance(tools, Mapping | str) or not isinstance(tools, Iterable):
        raise InvalidInput(f"tools must be a list of definitions, not {type(tools).__name__}")
    definitions = tuple(tools)
    for tool in definitions:
        if not isinstance(tool, Mapping):
            raise InvalidInput(f"the definition of a tool is a mapping, not {type(tool).__name__}")
    return tuple(dict(tool) for tool in definitions)


def at_least_one(k: int) -> int:
    if whole("k", k) < 1:
        raise InvalidInput(f"k must be at least 1, not {k}")
    return k


def whole(name: str, number: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidInput(f"{name} must be a whole number, not {number!r}")
    return number


def as_recorded(message: Message, event_time: datetime | None, redact: Redactor) -> Message | None:
    """The message without the memory blocks that a context put into it and without secrets, and
    with its time; None where it was nothing but such blocks."""
    own = _without_lent(message)
    if own is not message and own.is_empty:
        return None
    stripped = redact.message(own).require_content()
    if stripped.event_time is None and event_time is not None:
        return stripped.model_copy(update={"event_time": as_utc(event_time)})
    return stripped


def _without_lent(message: Message) -> Message:
    """Itself, when no context lent it anything; else without that, and without what is then an
    empty part."""
    lent: dict[str, object] = {
        "content": message.content,
        "tool_calls": message.tool_calls,
        "metadata": message.metadata,
    }
    try:
        own: dict[str, object] = {
            "content": _own_content(message.content),
            "tool_calls": tuple(map(_own_call, message.tool_calls)),
            "metadata": strip_all(message.metadata),
        }
    except RecursionError as error:
        raise InvalidInput("nested too deep to be stored as JSON") from error
    changed = {name: value for name, value in own.items() if value != lent[name]}
    return message.model_copy(update=changed) if changed else message


def _own_content(
    content: str | tuple[JsonObject, ...] | None,
) -> str | tuple[JsonObject, ...] | None:
    if not isinstance(content, tuple):
        return content if content is None else strip_fences(content)
    stripped = ((part, strip_all(part)) for part in content)
    return tuple(own for part, own in stripped if own == part or own.get("text") != "")


def _own_call(call: ToolCall) -> ToolCall:
    arguments = strip_fences(call.arguments)
    if arguments == call.arguments:
        return call
    return call.model_copy(update={"arguments": arguments})


def narrowed(
    where: Mapping[str, JsonValue] | None, session: str | None, agent: str | None
) -> Mapping[str, JsonValue] | None:
    if where is not None and not isinstance(where, Mapping):
        raise InvalidFilter(f"a filter is a mapping, not {type(where).__name__}")
    conditions: list[JsonValue] = [dict(where)] if where else []
    conditions += [
        {name: value} for name, value in (("session", session), ("agent", agent)) if value
    ]
    return {"$and": conditions} if conditions else None


def without_secrets(subject: str, predicate: str, object: str, redact: Redactor) -> tuple[str, str]:
    """Subject and object with their secrets masked; InvalidInput where one was nothing else."""
    if not (isinstance(subject, str) and isinstance(predicate, str) and isinstance(object, str)):
        return subject, object  # to be refused by name
    masked = redact(subject), redact.field(predicate, object)
    for name, text in zip(("subject", "object"), masked, strict=True):
        if only_masks(text):
            raise InvalidInput(f"the {name} is a secret, and no fact: {text}")
    return masked
