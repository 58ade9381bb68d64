"""Turns as Anthropic's messages take them, with marks for its prompt cache."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from pydantic import JsonValue

from memory.errors import EmptyInput
from memory.providers.parts import (
    THINKING,
    Data,
    Media,
    Native,
    Part,
    Refusal,
    Text,
    data_of,
    decoded,
    is_blank,
    part_of,
    stand_in,
)
from memory.providers.turns import INSTRUCTIONS, Call, Turn, no_result, read
from memory.providers.wire import (
    RAW_ARGUMENTS,
    Ids,
    JsonObject,
    definition,
    fields,
    listed,
    sendable,
    string,
    tool_name,
)

NOT_SHOWN: Final = "[Earlier messages of this conversation are not shown.]"
"""What the user is made to say first where a conversation would begin with the assistant."""

CACHE_MARK: Final[JsonObject] = {"type": "ephemeral"}

_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def anthropic_request(
    messages: Iterable[Mapping[str, JsonValue]],
    tools: Iterable[Mapping[str, JsonValue]] = (),
    *,
    cache: bool = False,
    stable: int | None = None,
) -> JsonObject:
    """`system` and `tools` where there are any, and `messages`, for Anthropic's messages.

    With `cache` the ends of tools, of system, and of the first `stable` messages (None: all but the
    last) carry marks for the prompt cache; the end of the request too when it is a tool's result,
    because the next request of the same turn goes on from there.

    Tool definitions may be of Anthropic's or OpenAI's shape. The request shares nothing with what
    was given. Raises EmptyInput when nobody says anything, InvalidInput for what is no message and
    for a tool that Anthropic does not have.
    """
    turns = read(messages)
    said = list(_blocks(turns))
    if not said:
        raise EmptyInput("no message has anything in it")
    system = [block for turn in turns if turn.role in INSTRUCTIONS for block in _system(turn)]
    defined = [anthropic_tool(tool) for tool in tools]
    if cache:
        _mark(defined, system, said, stable)
    request: JsonObject = {}
    if defined:
        request["tools"] = list(defined)
    if system:
        request["system"] = list(system)
    request["messages"] = list(_taking_turns(said))
    return sendable(request)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block, who says it, and the number of the message that it is of."""

    role: str
    place: int
    block: JsonObject


def _blocks(turns: Sequence[Turn]) -> Iterator[_Block]:
    """All that users and assistants say, in order; the results right after their calls."""
    ids = Ids(_ID)
    for turn in turns:
        if turn.role in INSTRUCTIONS:
            continue
        parts = turn.parts
        if turn.role == "user" and turn.name:
            parts = _introduced(" ".join(turn.name.split()), parts)
        for part in parts:
            for block in _part(turn.role, part):
                yield _Block(turn.role, turn.place, block)
        calls = [(ids.of(call.id), call) for call in turn.calls]
        for sent, call in calls:
            use: JsonObject = {"type": "tool_use", "id": sent, "name": tool_name(call.name, 128)}
            yield _Block("assistant", turn.place, {**use, "input": input_of(call.arguments)})
        for sent, call in calls:
            place = call.result.place if call.result else turn.place
            yield _Block("user", place, _result(sent, call))


def _introduced(name: str, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts with the speaker's name before the first text, or alone where there is none."""
    for number, part in enumerate(parts):
        if isinstance(part, Text) and not is_blank(part.text):
            named = replace(part, text=f"{name}: {part.text}")
            return (*parts[:number], named, *parts[number + 1 :])
    is_silent = all(isinstance(part, Text) for part in parts)
    return () if is_silent else (Text(f"{name}:"), *parts)


def _part(role: str, part: Part) -> Iterator[JsonObject]:
    if isinstance(part, Text | Refusal):
        if not is_blank(part.text):
            cited = part.citations if isinstance(part, Text) else None
            yield {"type": "text", "text": part.text, **({"citations": cited} if cited else {})}
    elif isinstance(part, Native):
        if (block := _native(role, part)) is not None:
            yield block
    else:
        shape = _media(part) if isinstance(part, Media) and role != "assistant" else None
        yield shape or {"type": "text", "text": stand_in(part)}


_SPEAKERS: Final = {"search_result": ("user", "tool"), "container_upload": ("user",)}


def _native(role: str, part: Native) -> JsonObject | None:
    """The block as it came; a text where this speaker cannot say it; None for unsigned thinking."""
    kind = part.block["type"]
    if kind in THINKING:
        signed = kind == "redacted_thinking" or part.block.get("signature")
        return part.block if signed and role == "assistant" else None
    if role in _SPEAKERS.get(str(kind), ("assistant",)):
        return part.block
    return {"type": "text", "text": stand_in(part)}


def _media(part: Media) -> JsonObject | None:
    """The part in Anthropic's shape; None when it has none."""
    source = fields(part.block.get("source"))
    if part.kind == "image" and source:
        return part.block
    found = data_of(part.url)
    if found.media_type in _IMAGES:
        return {"type": "image", "source": _base64_source(found)}
    if part.kind == "image" and part.url.startswith("https://"):
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    if part.kind != "file":
        return None
    titled: JsonObject = {"title": part.name[:500]} if part.name else {}
    kept: JsonObject = {
        key: part.block[key] for key in ("title", "context", "citations") if key in part.block
    }
    document: JsonObject = {"type": "document", **titled, **kept}
    if source.get("type") == "file":
        return {**document, "source": source}
    if blocks := _content_of(source):
        return {**document, "source": {"type": "content", "content": blocks}}
    if found.media_type == "application/pdf":
        return {**document, "source": _base64_source(found)}
    if text := string(source.get("data")) if source.get("type") == "text" else decoded(found):
        plain: JsonObject = {"type": "text", "media_type": "text/plain", "data": text}
        return {**document, "source": plain}
    is_pdf = part.media_type == "application/pdf" or part.url.partition("?")[0].endswith(".pdf")
    if part.url.startswith("https://") and (is_pdf or part.of == "anthropic"):
        return {**document, "source": {"type": "url", "url": part.url}}
    return None


def _content_of(source: JsonObject) -> list[JsonValue]:
    """The blocks of a document that is made of blocks."""
    given = listed(source.get("content")) if source.get("type") == "content" else ()
    made = [block for each in given for block in _part("user", part_of(each))]
    return [block for block in made if block["type"] in ("text", "image")]


def _base64_source(data: Data) -> JsonObject:
    return {"type": "base64", "media_type": data.media_type, "data": data.base64}


def _result(sent: str, call: Call) -> JsonObject:
    result: JsonObject = {"type": "tool_result", "tool_use_id": sent}
    parts = call.result.parts if call.result else (Text(no_result(call)),)
    if blocks := [block for part in parts for block in _part("tool", part)]:
        result["content"] = list(blocks)
    if call.result and call.result.failed:
        result["is_error"] = True
    return result


def _system(turn: Turn) -> list[JsonObject]:
    """What instructions say, word for word."""
    texts = [
        part.text if isinstance(part, Text | Refusal) else stand_in(part) for part in turn.parts
    ]
    return [{"type": "text", "text": text} for text in texts if not is_blank(text)]


def _taking_turns(said: Sequence[_Block]) -> list[JsonObject]:
    """Messages in which the user speaks first and then each in turn."""
    blocks: list[tuple[str, list[JsonValue]]] = []
    if said[0].role != "user":
        blocks.append(("user", [{"type": "text", "text": NOT_SHOWN}]))
    for each in said:
        if not blocks or blocks[-1][0] != each.role:
            blocks.append((each.role, []))
        blocks[-1][1].append(each.block)
    role, last = blocks[-1]
    final = fields(last[-1])
    if role == "assistant" and isinstance(text := final.get("text"), str):
        last[-1] = {**final, "text": text.rstrip()}
    return [{"role": role, "content": content} for role, content in blocks]


_RUN_BY_ANTHROPIC: Final = re.compile(r"[a-z_]+_\d{8}|mcp_toolset")


def anthropic_tool(tool: Mapping[str, JsonValue]) -> JsonObject:
    if "input_schema" in tool or _RUN_BY_ANTHROPIC.fullmatch(string(tool.get("type"))):
        return dict(tool)
    defined = definition(tool, "Anthropic", "input_schema")
    return {**defined, "input_schema": {"type": "object", **fields(defined["input_schema"])}}


def _mark(
    tools: list[JsonObject], system: list[JsonObject], said: list[_Block], stable: int | None
) -> None:
    """Puts the marks where the cache can be of use, and takes out those that tools brought."""
    for tool in tools:
        tool.pop("cache_control", None)
    for end in (tools[-1:], system[-1:]):
        for block in end:
            block["cache_control"] = dict(CACHE_MARK)
    last = said[-1]
    before = last.place if stable is None else stable
    ends = [n for n, each in enumerate(said) if each.place < before and _is_markable(each.block)]
    marked = set(ends[-1:])
    if last.block["type"] == "tool_result":
        marked.add(len(said) - 1)
    for number in marked:
        each = said[number]
        said[number] = replace(each, block={**each.block, "cache_control": dict(CACHE_MARK)})


def _is_markable(block: JsonObject) -> bool:
    return block["type"] not in THINKING


def input_of(arguments: str) -> JsonObject:
    """The arguments as an object. What is none, or would not come back whole, stays text."""
    try:
        value = json.loads(
            arguments or "{}",
            object_pairs_hook=_without_doubles,
            parse_constant=_refused,
            parse_float=_finite,
        )
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and set(value) != {RAW_ARGUMENTS} and _is_shallow(value):
        return value
    return {RAW_ARGUMENTS: arguments}


def _without_doubles(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is there twice")
    return made


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large")
    return number


_DEEPEST: Final = 64


def _is_shallow(value: JsonValue) -> bool:
    """Whether it nests at most _DEEPEST deep, so that it can be written inside a request."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
