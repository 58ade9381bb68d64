"""Turns as OpenAI's chat completions take them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from memory import codec
from memory.errors import EmptyInput
from memory.providers.parts import (
    THINKING,
    Media,
    Native,
    Part,
    Refusal,
    Text,
    data_of,
    stand_in,
    text_of,
)
from memory.providers.turns import Call, Turn, no_result, read
from memory.providers.wire import Ids, JsonObject, definition, sendable, string, tool_name

_ID: Final = re.compile(r"[\x21-\x7e]{1,40}")
_UNFIT_FOR_NAME: Final = re.compile(r"[\s<|\\/>]+")


def openai_request(
    messages: Iterable[Mapping[str, JsonValue]], tools: Iterable[Mapping[str, JsonValue]] = ()
) -> JsonObject:
    """`messages`, and `tools` where there are any, for OpenAI's chat completions.

    Tool definitions may be of OpenAI's or Anthropic's shape. The request shares nothing with what
    was given. Raises EmptyInput when there is nothing to send, InvalidInput for what is no message
    and for a tool that OpenAI does not have.
    """
    written = [message for turn in read(messages) for message in _messages(turn)]
    if not written:
        raise EmptyInput("no message has anything in it")
    request: JsonObject = {"messages": list(written)}
    if defined := [openai_tool(tool) for tool in tools]:
        request["tools"] = list(defined)
    return sendable(request)


def _messages(turn: Turn) -> Iterator[JsonObject]:
    """The message (none when it says nothing), then the results of its calls."""
    written: JsonObject = {"role": turn.role}
    parts = [part for given in turn.parts for part in _parts(turn.role, given)]
    plain = turn.plain and len(parts) == 1 and parts[0]["type"] == "text"
    content: JsonValue = parts[0]["text"] if plain else list(parts) or None
    if content is None and not turn.calls:
        return
    written["content"] = content
    if name := _UNFIT_FOR_NAME.sub("_", turn.name)[:64]:
        written["name"] = name
    ids = Ids(_ID)
    calls = [(ids.of(call.id), call) for call in turn.calls]
    if calls:
        written["tool_calls"] = [
            {
                "id": sent,
                "type": "function",
                "function": {
                    "name": tool_name(call.name, 64),
                    "arguments": codec.unescaped(call.arguments) or "{}",
                },
            }
            for sent, call in calls
        ]
    yield written
    shown: list[JsonValue] = []
    for sent, call in calls:
        yield {"role": "tool", "tool_call_id": sent, "content": _result(call)}
        shown += _pictures(call)
    if shown:
        yield {"role": "user", "content": shown}


def _parts(role: str, part: Part) -> Iterator[JsonObject]:
    if isinstance(part, Refusal) and role == "assistant" and part.text:
        yield {"type": "refusal", "refusal": part.text}
    elif isinstance(part, Text | Refusal):
        if part.text:
            yield {"type": "text", "text": part.text}
    elif isinstance(part, Native) and part.block["type"] in THINKING:
        return
    elif isinstance(part, Media) and (text := text_of(part)):
        yield {"type": "text", "text": text}
    else:
        shape = _media(part) if isinstance(part, Media) and role == "user" else None
        yield shape or {"type": "text", "text": stand_in(part)}


def _media(part: Media) -> JsonObject | None:
    """The part in OpenAI's shape; None when it has none."""
    if part.of == "openai":
        kind = "input_audio" if part.kind == "audio" else "file"
        named: JsonObject = {"filename": part.name} if part.name and kind == "file" else {}
        return {"type": kind, kind: {**part.block, **named}}
    is_image = part.kind == "image" or data_of(part.url).media_type.startswith("image/")
    if is_image and part.url:
        image: JsonObject = {"url": _typed(part.url)}
        if part.detail:
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}
    if part.kind == "file" and part.url.startswith("data:"):
        name = part.name or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": _typed(part.url)}}
    return None


def _typed(url: str) -> str:
    """The URL; a data URL that does not say what it holds says it then."""
    if not url.startswith("data:;"):
        return url
    found = data_of(url)
    return f"data:{found.media_type};base64,{found.base64}" if found.media_type else url


def _result(call: Call) -> JsonValue:
    if call.result is None:
        return no_result(call)
    texts = []
    for part in call.result.parts:
        if isinstance(part, Media) and _media(part) and not text_of(part):
            texts.append(f"[{part.kind}: in the message after the results]")
        else:
            texts += [string(each["text"]) for each in _parts("tool", part)]
    if len(texts) <= 1:
        return "".join(texts)
    return [{"type": "text", "text": text} for text in texts]


def _pictures(call: Call) -> list[JsonValue]:
    """What a result shows that is no text, for a message of the user."""
    parts = call.result.parts if call.result else ()
    media = [part for part in parts if isinstance(part, Media) and not text_of(part)]
    shapes: list[JsonValue] = [shape for part in media if (shape := _media(part))]
    name = tool_name(call.name, 40)
    return [{"type": "text", "text": f"[From the result of {name}:]"}, *shapes] if shapes else []


def openai_tool(tool: Mapping[str, JsonValue]) -> JsonObject:
    kind = tool.get("type")
    if kind in ("function", "custom") and kind in tool:
        return {"type": kind, kind: tool[kind]}
    return {"type": "function", "function": definition(tool, "OpenAI", "parameters")}
