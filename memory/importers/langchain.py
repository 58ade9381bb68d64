"""LangChain's messages, in each form in which they are written down.

    {"type": "human", "data": {…}}                        messages_to_dict
    {"lc": 1, "type": "constructor", "id": […], "kwargs"}  dumpd; the path is read as a word only
    {"type": "ai", "content": …}                          model_dump
    {"type": "AIMessageChunk", …}                         pieces of a stream, joined by their id

Each becomes an entry of a chat (`role`, `content`, `tool_calls`), which `chat` then reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from memory.importers.drafts import LeftOut
from memory.models import JsonObject

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "chat": "",
    "developer": "developer",
    "remove": "",
}


_FIELDS = ("content", "name", "id", "tool_call_id", "created_at", "timestamp", "event_time")
_EXTRAS = ("function_call", "created_at", "timestamp", "event_time")


def is_message(entry: Mapping[str, Any]) -> bool:
    kind = _kind(entry)
    if kind not in _ROLES:
        return False
    return kind == "remove" or "content" in _data(entry)


def as_chat(entry: JsonObject) -> JsonObject | LeftOut:
    """The entry with `role` in place of `type`; instructions to a store are left out."""
    kind, data = _kind(entry), _data(entry)
    if kind == "remove":
        return LeftOut("removal of a message")
    extra = data.get("additional_kwargs")
    extra = extra if isinstance(extra, Mapping) else {}
    role = extra.get("__openai_role__") or _ROLES[kind] or data.get("role") or "chat"
    calls = data.get("tool_calls") or extra.get("tool_calls") or []
    invalid = data.get("invalid_tool_calls")
    chat: JsonObject = {"role": role, "tool_calls": [*_list(calls), *_list(invalid)]}
    for source, keys in ((extra, _EXTRAS), (data, _FIELDS)):
        chat.update((key, source[key]) for key in keys if key in source)
    return chat


def joined(entries: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """The entries, with the pieces of one streamed message put together."""
    for message_id, group in groupby(entries, key=_chunk_id):
        pieces = list(group)
        if message_id is None or len(pieces) == 1:
            yield from pieces
        else:
            yield _whole([_data(piece) for piece in pieces])


def _chunk_id(entry: JsonObject) -> str | None:
    message_id = _data(entry).get("id")
    return message_id if _is_chunk(entry) and isinstance(message_id, str) else None


def _whole(pieces: Sequence[JsonObject]) -> JsonObject:
    contents = [piece.get("content") for piece in pieces]
    content: Any
    if all(isinstance(content, str) for content in contents):
        content = "".join(str(content) for content in contents)
    else:
        content = [block for content in contents for block in _list(content)]
    calls = _joined_calls(pieces) or [
        call for piece in pieces for call in _list(piece.get("tool_calls"))
    ]
    data: JsonObject = {**pieces[0], "content": content, "tool_calls": calls}
    return {"type": "ai", "data": data}


def _joined_calls(pieces: Sequence[JsonObject]) -> list[Any]:
    """Calls whose arguments came in pieces, by their index."""
    calls: dict[Any, dict[str, Any]] = {}
    for chunk in (chunk for piece in pieces for chunk in _list(piece.get("tool_call_chunks"))):
        call = calls.setdefault(chunk.get("index"), {"id": None, "name": "", "arguments": ""})
        call["id"] = call["id"] or chunk.get("id")
        call["name"] += chunk.get("name") or ""
        call["arguments"] += chunk.get("args") or ""
    return list(calls.values())


def _kind(entry: Mapping[str, Any]) -> str:
    """'human', 'ai' … from `type`, or from the last word of a constructor's path."""
    if "role" in entry or "sender" in entry:
        return ""
    kind = entry.get("type")
    if kind == "constructor" and "lc" in entry:
        path = entry.get("id")
        kind = path[-1] if isinstance(path, list) and path else ""
    if not isinstance(kind, str):
        return ""
    return kind.removesuffix("Chunk").removesuffix("Message").lower()


def _is_chunk(entry: Mapping[str, Any]) -> bool:
    path = entry.get("id")
    last = path[-1] if isinstance(path, list) and path else entry.get("type")
    return last == "AIMessageChunk"


def _data(entry: Mapping[str, Any]) -> JsonObject:
    for key in ("data", "kwargs"):
        inner = entry.get(key)
        if isinstance(inner, dict):
            return inner
    return dict(entry)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
