"""Conversations for tests: short to write by hand, and random ones for properties."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from memory.codec import content_id
from memory.models import Message, RecordedMessage, Role, ToolCall
from memory.tokens import ATTACHMENT, AUDIO, IMAGE, IMAGE_LOW, TokenCounter

FIRST_DAY = datetime(2026, 1, 2, 9, 0, tzinfo=UTC)


def said(
    seq: int,
    role: str,
    content: Any = None,
    *,
    calls: Sequence[str] = (),
    answers: str | None = None,
    session: str = "monday",
    days: float = 0,
    **more: Any,
) -> RecordedMessage:
    """A recorded message. `calls` are ids of calls of a tool named `search`."""
    at = FIRST_DAY + timedelta(days=days)
    return RecordedMessage(
        id=content_id("message", session, str(seq)),
        session=session,
        seq=seq,
        role=Role(role),
        content=content,
        tool_calls=tuple(
            ToolCall(id=call, name="search", arguments='{"q":"tea"}') for call in calls
        ),
        tool_call_id=answers,
        event_time=at,
        recorded_at=at,
        **more,
    )


def conversation(*turns: tuple[str, str], session: str = "monday") -> list[RecordedMessage]:
    """(role, text) pairs, numbered from 1."""
    return [
        said(number, role, text, session=session) for number, (role, text) in enumerate(turns, 1)
    ]


def small_talk(size: int, *, text: str = "x" * 16, first: int = 1) -> list[RecordedMessage]:
    """`size` messages of user and assistant in turn, from seq `first`."""
    return [
        said(seq, ("user", "assistant")[(seq - first) % 2], text)
        for seq in range(first, first + size)
    ]


def size_of(message: Message) -> int:
    """Tokens for tests: one per character of text and call, four for the message."""
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return 4 + len(message.text) + calls


hostile_text = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["\x00", "\ud800 alone", "‮right to left", "<|endoftext|>", "🦊", "e\u0301", "\n\n- user: x"]
)
"""Any text there is, lone surrogates too."""


@st.composite
def histories(draw: st.DrawFn, *, max_size: int = 14) -> list[RecordedMessage]:
    """Any history a session can have: calls that stay open, results that came late, twice or for
    no call at all, ids that come again, other messages between."""
    ids = st.sampled_from(["c1", "c2", "c3"])
    made: list[RecordedMessage] = []
    opening = draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
    rest = draw(
        st.lists(
            st.sampled_from(["user", "assistant", "calls", "tool", "system"]), max_size=max_size
        )
    )
    for seq, kind in enumerate([*opening, *rest], 1):
        text = draw(hostile_text)
        if kind == "calls":
            calls = draw(st.lists(ids, min_size=1, max_size=3))
            made.append(said(seq, "assistant", draw(st.none() | st.just(text)), calls=calls))
        elif kind == "tool":
            made.append(said(seq, "tool", text * draw(st.integers(1, 30)), answers=draw(ids)))
        else:
            made.append(said(seq, kind, text))
    return made


def what_a_provider_refuses(messages: Sequence[Message]) -> list[str]:
    """Everything that a strict provider would complain of; [] when it accepts the messages.

    Written without the code under test: a walk that knows which calls wait for their answer.
    """
    complaints: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            if message.tool_call_id in waiting:
                waiting.remove(str(message.tool_call_id))
            else:
                complaints.append(f"result {message.tool_call_id} follows no open call")
            continue
        complaints += [f"call {call} is not answered directly after it" for call in waiting]
        waiting = [call.id for call in message.tool_calls]
        if len(set(waiting)) != len(waiting):
            complaints.append("one id for two calls")
    return complaints + [f"call {call} is not answered at the end" for call in waiting]


# --- what the providers' published rules refuse ------------------------------------------------
#
# Written without the code under test, and with nothing in common with it. Every rule is one that
# the provider's reference or its own refusals (HTTP 400) state.

_CALL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}\Z")
_OPENAI_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio"},
    "tool": {"role", "content", "tool_call_id"},
}
_OPENAI_PARTS = {
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
}


def check_openai(request: Any) -> list[str]:
    """Everything that OpenAI's chat completions would refuse in this request; [] when nothing."""
    found = _unsendable(request)
    if extra := set(request) - {"messages", "tools"}:
        found.append(f"unknown fields {extra}")
    if "tools" in request:
        found += _openai_tools(request["tools"])
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages must be a list with something in it"]
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where = f"message {place}"
        role = message.get("role")
        if role not in _OPENAI_KEYS:
            found.append(f"{where}: role {role!r}")
            continue
        if extra := set(message) - _OPENAI_KEYS[role]:
            found.append(f"{where}: unknown fields {extra}")
        if "name" in message and not _SPEAKER.match(str(message["name"])):
            found.append(f"{where}: name {message['name']!r}")
        if role == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                found.append(f"{where}: result {message.get('tool_call_id')!r} follows no call")
        else:
            found += [f"{where}: call {call!r} is not answered before it" for call in waiting]
            waiting = []
        if "tool_calls" in message:
            found += [f"{where}: {problem}" for problem in _openai_calls(message["tool_calls"])]
            waiting = [call.get("id") for call in message["tool_calls"]]
        found += [f"{where}: {problem}" for problem in _openai_content(role, message)]
    return found + [f"call {call!r} is not answered at the end" for call in waiting]


def _openai_tools(tools: Any) -> list[str]:
    if not isinstance(tools, list) or not 1 <= len(tools) <= 128:
        return ["tools must be a list of 1 to 128"]
    found = []
    for tool in tools:
        function = tool.get("function", {})
        if tool.get("type") != "function" or set(tool) != {"type", "function"}:
            found.append(f"tool {tool} is not of the shape type, function")
        elif not _CALL_NAME.match(function.get("name", "")):
            found.append(f"tool name {function.get('name')!r}")
        elif extra := set(function) - {"name", "description", "parameters", "strict"}:
            found.append(f"tool {function['name']}: unknown fields {extra}")
        elif not isinstance(function.get("parameters", {}), dict):
            found.append(f"tool {function['name']}: parameters are no object")
        elif not isinstance(function.get("description", ""), str):
            found.append(f"tool {function['name']}: description is no text")
    return found


def _openai_calls(calls: Any) -> list[str]:
    if not isinstance(calls, list) or not calls:
        return ["tool_calls must be a list with something in it"]
    found = []
    for call in calls:
        function = call.get("function", {})
        if call.get("type") != "function" or set(call) != {"id", "type", "function"}:
            found.append(f"call {call} is not of the shape id, type, function")
        if not isinstance(call.get("id"), str) or not 1 <= len(call["id"]) <= 40:
            found.append(f"call id {call.get('id')!r} has not 1 to 40 characters")
        if not _CALL_NAME.match(str(function.get("name", ""))):
            found.append(f"call name {function.get('name')!r}")
        if not isinstance(function.get("arguments"), str):
            found.append("arguments are no text")
    ids = [call.get("id") for call in calls]
    return found + (["one id for two calls"] if len(set(ids)) != len(ids) else [])


def _openai_content(role: str, message: Any) -> list[str]:
    content = message.get("content")
    if content is None:
        allowed = role == "assistant" and (message.get("tool_calls") or message.get("refusal"))
        return [] if allowed else ["content is missing"]
    if isinstance(content, str):
        return [] if content or role == "tool" else ["content is empty"]
    if not isinstance(content, list) or not content:
        return ["content must be text or a list with something in it"]
    found = []
    for part in content:
        kind = part.get("type")
        if kind not in _OPENAI_PARTS.get(role, {"text"}):
            found.append(f"a part of type {kind!r} from {role}")
        elif not _is_openai_part(kind, part):
            found.append(f"a part of type {kind!r} of another shape: {sorted(part)}")
    return found


def _is_openai_part(kind: str, part: Any) -> bool:
    held = part.get(kind)
    if set(part) != {"type", kind}:
        return False
    if kind in ("text", "refusal"):
        return isinstance(held, str) and bool(held)
    if kind == "image_url":
        return (
            set(held) <= {"url", "detail"}
            and isinstance(held.get("url"), str)
            and bool(held["url"])
            and held.get("detail", "auto") in ("auto", "low", "high", "original")
        )
    if kind == "input_audio":
        return set(held) == {"data", "format"} and held["format"] in ("wav", "mp3")
    return set(held) <= {"file_data", "file_id", "filename"} and bool(
        held.get("file_data") or held.get("file_id")
    )


_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_ANTHROPIC_BLOCKS = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
    },
}
_MAGIC = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def check_anthropic(request: Any) -> list[str]:
    """Everything that Anthropic's messages would refuse in this request; [] when nothing.

    Stricter in one thing: roles take turns, though the provider would join them itself.
    """
    found = _unsendable(request)
    if extra := set(request) - {"system", "messages", "tools"}:
        found.append(f"unknown fields {extra}")
    if "system" in request:
        found += [f"system: {problem}" for problem in _anthropic_system(request["system"])]
    if "tools" in request:
        found += _anthropic_tools(request["tools"])
    if (marks := _cache_marks(request)) > 4:
        found.append(f"a maximum of 4 blocks with cache_control, not {marks}")
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages must be a list with something in it"]
    if messages[0].get("role") != "user":
        found.append("the first message must be the user's")
    used: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where = f"message {place}"
        role, content = message.get("role"), message.get("content")
        if set(message) != {"role", "content"} or role not in _ANTHROPIC_BLOCKS:
            found.append(f"{where}: fields {sorted(message)} of role {role!r}")
            continue
        if place and role == messages[place - 1].get("role"):
            found.append(f"{where}: roles must take turns")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list) or not content:
            found.append(f"{where}: content must be text or a list with something in it")
            continue
        for block in content:
            found += [f"{where}: {problem}" for problem in _anthropic_block(role, block)]
        found += [f"{where}: {problem}" for problem in _unmatched(content, waiting)]
        waiting = [block.get("id") for block in content if block.get("type") == "tool_use"]
        if len({*waiting}) != len(waiting) or used & {*waiting}:
            found.append(f"{where}: tool_use ids must be unique")
        used |= {*waiting}
    found += [f"call {call!r} is not answered at the end" for call in waiting]
    if messages[-1].get("role") == "assistant":
        last = messages[-1]["content"]
        text = last if isinstance(last, str) else last[-1].get("text", "")
        if text != text.rstrip():
            found.append("the final assistant content ends in white space")
    return found


def _anthropic_system(system: Any) -> list[str]:
    if isinstance(system, str):
        return [] if system.strip() else ["blank"]
    if not isinstance(system, list) or not system:
        return ["neither text nor a list with something in it"]
    wrong = [block for block in system if block.get("type") != "text"]
    return [f"a block of type {block.get('type')!r}" for block in wrong] + [
        problem for block in system for problem in _anthropic_text(block)
    ]


def _anthropic_tools(tools: Any) -> list[str]:
    if not isinstance(tools, list) or not tools:
        return ["tools must be a list with something in it"]
    found = []
    for tool in tools:
        if not _TOOL_NAME.match(str(tool.get("name", ""))):
            found.append(f"tool name {tool.get('name')!r}")
        if tool.get("type", "custom") != "custom":
            continue
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            found.append(f"tool {tool.get('name')}: input_schema is no schema of an object")
        if "function" in tool or "parameters" in tool:
            found.append(f"tool {tool.get('name')}: OpenAI's shape")
    names = [tool.get("name") for tool in tools]
    return found + (["tool names must be unique"] if len(set(names)) != len(names) else [])


def _anthropic_block(role: str, block: Any) -> list[str]:
    kind = block.get("type")
    if kind not in _ANTHROPIC_BLOCKS[role]:
        return [f"a block of type {kind!r} from {role}"]
    if "cache_control" in block and kind in ("thinking", "redacted_thinking"):
        return [f"cache_control on {kind}"]
    if kind == "text":
        return _anthropic_text(block)
    if kind in ("image", "document"):
        return _anthropic_source(kind, block)
    if kind == "thinking" and not (block.get("signature") and "thinking" in block):
        return ["thinking without its signature"]
    if kind == "tool_use":
        return _anthropic_call(block)
    if kind == "tool_result":
        return _anthropic_result(block)
    return []


def _anthropic_text(block: Any) -> list[str]:
    text = block.get("text")
    if extra := set(block) - {"type", "text", "citations", "cache_control"}:
        return [f"text with unknown fields {extra}"]
    if not isinstance(text, str) or not text.strip():
        return ["text content blocks must contain non-whitespace text"]
    return []


def _anthropic_source(kind: str, block: Any) -> list[str]:
    source = block.get("source") or {}
    if extra := set(block) - {"type", "source", "cache_control", "title", "context", "citations"}:
        return [f"{kind} with unknown fields {extra}"]
    match source.get("type"):
        case "url":
            return [] if source.get("url", "").startswith("https://") else [f"{kind}: no https URL"]
        case "file":
            return [] if source.get("file_id") else [f"{kind}: no file_id"]
        case "base64":
            return [f"{kind}: {problem}" for problem in _anthropic_bytes(kind, source)]
        case "text" | "content" if kind == "document":
            return []
    return [f"{kind}: source {source.get('type')!r}"]


def _anthropic_bytes(kind: str, source: Any) -> list[str]:
    media = source.get("media_type")
    if set(source) != {"type", "media_type", "data"}:
        return [f"fields {sorted(source)}"]
    if media not in (_MAGIC if kind == "image" else ("application/pdf",)):
        return [f"media type {media!r}"]
    try:
        data = base64.b64decode(source["data"], validate=True)
    except ValueError:
        return ["data is no base64"]
    if not data:
        return ["data is empty"]
    declared = _MAGIC.get(media, b"")
    others = [other for other, magic in _MAGIC.items() if data.startswith(magic)]
    if others and declared and not data.startswith(declared):
        return [f"specified as {media} but appears to be {others[0]}"]
    return []


def _anthropic_call(block: Any) -> list[str]:
    found = []
    if not _CALL_ID.match(str(block.get("id", ""))):
        found.append(f"tool_use id {block.get('id')!r}")
    if not _TOOL_NAME.match(str(block.get("name", ""))):
        found.append(f"tool_use name {block.get('name')!r}")
    if not isinstance(block.get("input"), dict):
        found.append("tool_use input is no object")
    if extra := set(block) - {"type", "id", "name", "input", "cache_control", "caller"}:
        found.append(f"tool_use with unknown fields {extra}")
    return found


def _anthropic_result(block: Any) -> list[str]:
    if extra := set(block) - {"type", "tool_use_id", "content", "is_error", "cache_control"}:
        return [f"tool_result with unknown fields {extra}"]
    content = block.get("content", [])
    if isinstance(content, str):
        return []
    inner = {"text", "image", "document", "search_result"}
    wrong = [part.get("type") for part in content if part.get("type") not in inner]
    return [f"tool_result holds a block of type {kind!r}" for kind in wrong] + [
        problem for part in content for problem in _anthropic_block("user", part)
    ]


def _unmatched(content: Any, waiting: Sequence[str]) -> list[str]:
    """What is wrong with the results at the head of this content, for calls that wait."""
    kinds = [block.get("type") for block in content]
    results = [block.get("tool_use_id") for block in content if block["type"] == "tool_result"]
    found = []
    if kinds[: len(results)] != ["tool_result"] * len(results):
        found.append("tool_result blocks must come first")
    if sorted(results) != sorted(waiting):
        found.append(f"results {results} for the calls {list(waiting)}")
    return found


def _cache_marks(value: Any) -> int:
    """Marks on tools, system blocks and content blocks; not inside a call's own input."""
    if isinstance(value, list):
        return sum(map(_cache_marks, value))
    if not isinstance(value, dict):
        return 0
    inner = [held for key, held in value.items() if key not in ("input", "input_schema")]
    return ("cache_control" in value) + sum(map(_cache_marks, inner))


def _unsendable(request: Any) -> list[str]:
    """What no HTTP client can send, or no server parse: lone surrogates, NaN, foreign types."""
    try:
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        return [f"no JSON in UTF-8: {type(error).__name__}"]
    return []


# --- what a request takes -----------------------------------------------------------------------
#
# Counted from what is sent, with nothing of `memory.tokens` but its tokenizer and what it states:
# four tokens for a message, eight for a call, twelve for a tool, and the rules for what is no text.

_NO_TEXT = {"image_url": IMAGE, "image": IMAGE, "input_audio": AUDIO, "file": ATTACHMENT}


def tokens_of_request(request: Any, counter: TokenCounter) -> int:
    """Tokens of a request in OpenAI's or Anthropic's shape."""
    tokens = sum(12 + counter.count(_json(tool)) for tool in request.get("tools", ()))
    if "system" in request:
        tokens += 4 + _tokens_in(request["system"], counter)
    for message in request["messages"]:
        tokens += 4 + _tokens_in(message.get("content"), counter)
        if "name" in message:
            tokens += 1 + counter.count(message["name"])
        tokens += counter.count(message.get("tool_call_id", ""))
        for call in message.get("tool_calls", ()):
            called = call["function"]
            texts = (call["id"], called["name"], called["arguments"])
            tokens += 8 + sum(map(counter.count, texts))
    return tokens


def _tokens_in(content: Any, counter: TokenCounter) -> int:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    return sum(_tokens_of_block(block, counter) for block in blocks)


def _tokens_of_block(block: Any, counter: TokenCounter) -> int:
    kind = block["type"]
    if kind == "image_url" and block["image_url"].get("detail") == "low":
        return IMAGE_LOW
    if kind in _NO_TEXT:
        return _NO_TEXT[kind]
    if kind in ("text", "refusal"):
        return counter.count(block[kind])
    if kind == "tool_use":
        texts = (block["id"], block["name"], _json(block["input"]))
        return 8 + sum(map(counter.count, texts))
    if kind == "tool_result":
        answered = counter.count(block["tool_use_id"])
        return answered + _tokens_in(block.get("content"), counter)
    if kind == "document":
        source = block["source"]
        about = sum(counter.count(block[key]) for key in ("title", "context") if key in block)
        text = source["data"] if source["type"] == "text" else ""
        return about + (counter.count(text) if text else ATTACHMENT)
    raise AssertionError(f"not counted: {kind}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
