"""Messages of OpenAI's chat shape as turns: who speaks, what is said, each call with its result.

Calls and results that stand among the parts of content, as Anthropic writes them, are read too. A
result belongs to the newest message of the assistant before it; one that finds no call waiting
there is told as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from memory.errors import InvalidInput
from memory.providers.parts import Part, Refusal, Text, part_of
from memory.providers.wire import RAW_ARGUMENTS, JsonObject, fields, listed, string, written

INSTRUCTIONS: Final = ("system", "developer")
_ROLES: Final = (*INSTRUCTIONS, "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call. `place` is the number of the message that says it."""

    call: str
    parts: tuple[Part, ...]
    place: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call, and its result as soon as that is found. `arguments` is JSON text as it was given."""

    id: str
    name: str
    arguments: str
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. `place` is its number among those given; `plain`: its content was a text."""

    role: str
    place: int
    parts: tuple[Part, ...]
    name: str = ""
    plain: bool = True
    calls: tuple[Call, ...] = ()


def read(messages: Iterable[Mapping[str, JsonValue]]) -> list[Turn]:
    """The messages as turns, each call with its result. Messages of the tool are no turns."""
    turns: list[Turn] = []
    caller = -1
    for place, message in enumerate(messages):
        turn, results = _turn(message, place)
        unmatched: list[Part] = []
        for result in results:
            if (found := _answered(turns[caller], result) if caller >= 0 else None) is not None:
                turns[caller] = found
            else:
                unmatched += _told(result)
        if unmatched:
            turn = replace(turn, parts=(*unmatched, *turn.parts))
        if turn.role != "tool":
            turns.append(turn)
        elif unmatched:
            turns.append(replace(turn, role="user"))
        if turn.role == "assistant":
            caller = len(turns) - 1
    return turns


def _turn(message: Mapping[str, JsonValue], place: int) -> tuple[Turn, list[Result]]:
    """A message without the results in it, and those."""
    role = message.get("role")
    if role not in _ROLES:
        raise InvalidInput(f"message {place} has the role {role!r}")
    content = message.get("content")
    content_parts = [_content_part(part, place) for part in listed(content)]
    parts = [part for part in content_parts if not isinstance(part, Call | Result)]
    results = [part for part in content_parts if isinstance(part, Result)]
    if role == "tool":
        results = [Result(string(message.get("tool_call_id")), tuple(parts), place)]
        parts = []
    calls = [_function_call(fields(call)) for call in listed(message.get("tool_calls"))]
    known = {call.id for call in calls}
    calls += [part for part in content_parts if isinstance(part, Call) and part.id not in known]
    if refusal := string(message.get("refusal")):
        parts.append(Refusal(refusal))
    turn = Turn(
        role=str(role),
        place=place,
        parts=tuple(parts),
        name="" if role == "tool" else string(message.get("name")),
        plain=isinstance(content, str),
        calls=tuple(calls) if role == "assistant" else (),
    )
    return turn, results


def _answered(turn: Turn, result: Result) -> Turn | None:
    """The turn with this result in the first call that waits for it; None when none does."""
    calls = list(turn.calls)
    for number, call in enumerate(calls):
        if call.id == result.call and call.result is None:
            calls[number] = replace(call, result=result)
            return replace(turn, calls=tuple(calls))
    return None


def _told(result: Result) -> list[Part]:
    return [Text("[The result of a call that is not shown:]"), *result.parts]


def _function_call(call: JsonObject) -> Call:
    """Of OpenAI's nested shape, or flat."""
    function = fields(call.get("function")) or call
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else written(arguments or {})
    return Call(string(call.get("id")), string(function.get("name")), text)


def _content_part(part: JsonValue, place: int) -> Part | Call | Result:
    given = fields(part)
    kind = given.get("type")
    if kind == "tool_use":
        return _tool_use(given)
    if kind == "tool_result":
        inner = tuple(part_of(each) for each in listed(given.get("content")))
        call = string(given.get("tool_use_id"))
        return Result(call, inner, place, failed=given.get("is_error") is True)
    return part_of(part)


def _tool_use(block: JsonObject) -> Call:
    given = block.get("input")
    raw = given.get(RAW_ARGUMENTS) if isinstance(given, dict) and len(given) == 1 else None
    arguments = raw if isinstance(raw, str) else written(given or {})
    return Call(string(block.get("id")), string(block.get("name")), arguments)


def no_result(call: Call) -> str:
    return f"[No result was recorded for this call of {call.name[:64] or 'a tool'}.]"
