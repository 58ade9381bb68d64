"""One entry of a chat to drafts, whichever provider wrote it.

Dispatch is by the shape of each entry, so that a list may mix them: `role` with a string or parts
(OpenAI, Anthropic, plain), `sender` (Claude's export), `lc` or `type` (LangChain). Content blocks
become what they mean: a `tool_use` block is a call, a `tool_result` block is a message of role
tool, thinking is left out because nobody said it. Parts of a kind that is not known stay as they
came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memory.importers import claude, langchain
from memory.importers.drafts import (
    THINKING,
    Draft,
    DraftCall,
    LeftOut,
    arguments_text,
    moment,
    text_or_none,
)
from memory.models import JsonObject, Role
from memory.providers import RAW_ARGUMENTS

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.DEVELOPER,
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_TIMES = ("event_time", "created_at", "timestamp", "create_time", "time", "date")
_THINKING = {"thinking", "redacted_thinking", "reasoning"}
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}
_RESULTS = {"tool_result", "web_search_tool_result", "mcp_tool_result"}
_TEXTS = {"text", "input_text", "output_text"}
_CONTENT_KEYS = ("content", "text", "tool_calls", "function_call", "refusal", "audio")


def is_message(entry: Any) -> bool:
    """Whether this entry is a message of a shape that is known here."""
    if not isinstance(entry, Mapping):
        return False
    if langchain.is_message(entry):
        return True
    speaker = entry.get("role", entry.get("sender"))
    return isinstance(speaker, str) and any(key in entry for key in _CONTENT_KEYS)


def drafts(entries: Sequence[JsonObject]) -> Iterator[Draft | LeftOut]:
    """What a list of entries says, in order."""
    for entry in langchain.joined(entries):
        chat = langchain.as_chat(entry) if langchain.is_message(entry) else entry
        if isinstance(chat, LeftOut):
            yield chat
        else:
            yield from _of_entry(claude.as_chat(chat) if "sender" in chat else chat)


def format_of(entries: Sequence[JsonObject]) -> str:
    """Whose shape these entries have."""
    if any(langchain.is_message(entry) for entry in entries):
        return "langchain"
    if any("sender" in entry for entry in entries):
        return "claude"
    blocks = [block for entry in entries for block in _blocks(entry.get("content"))]
    kinds = {block.get("type") for block in blocks if isinstance(block, Mapping)}
    return "anthropic" if kinds & (_CALLS | _RESULTS | _THINKING) else "openai"


def _of_entry(entry: JsonObject) -> Iterator[Draft | LeftOut]:
    role = ROLES.get(str(entry.get("role", "")).lower())
    if role is None:
        yield LeftOut(f"unknown role {entry.get('role')!r}")
        return
    metadata = entry.get("metadata")
    walk = _Walk(
        role=role,
        name=text_or_none(entry.get("name")),
        time=next((time for key in _TIMES if (time := moment(entry.get(key)))), None),
        metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
    )
    found = list(walk.messages(entry))
    yield from walk.left_out
    source_id = text_or_none(entry.get("id")) or text_or_none(entry.get("uuid"))
    for number, draft in enumerate(found):
        yield _identified(draft, source_id, number)


def _identified(draft: Draft, source_id: str | None, number: int) -> Draft:
    if source_id is None:
        return draft
    return replace(draft, source_id=f"{source_id}#{number + 1}" if number else source_id)


class _Walk:
    """One entry's content, block by block. A result ends the message before it."""

    def __init__(
        self, *, role: Role, name: str | None, time: datetime | None, metadata: JsonObject
    ) -> None:
        self.left_out: list[LeftOut] = []
        self._role = role
        self._name = name
        self._time = time
        self._metadata = metadata
        self._parts: list[JsonObject] = []
        self._calls: list[DraftCall] = []
        self._told = False

    def messages(self, entry: JsonObject) -> Iterator[Draft]:
        content = _content(entry)
        if self._role is Role.TOOL:
            yield self._answer(entry, content)
            return
        for block in _results_first(content) if self._role is Role.USER else content:
            kind = block.get("type")
            if kind in _RESULTS:
                yield from self._flush()
                yield self._result(block)
                self._told = True
            elif kind in _THINKING:
                self.left_out.append(LeftOut(THINKING))
            elif kind in _CALLS:
                self._calls.append(_block_call(block))
            elif kind in _TEXTS:
                self._parts.append(_text_part(block))
            else:
                self._parts.append(block)
        self._calls += [call for call in _calls(entry) if call.id not in self._known_calls()]
        yield from self._flush(always=not self._told)

    def _known_calls(self) -> set[str | None]:
        return {call.id for call in self._calls} - {None}

    def _flush(self, *, always: bool = False) -> Iterator[Draft]:
        calls = tuple(self._calls) if self._role is Role.ASSISTANT else ()
        said = always or any(part.get("text") or part.get("type") != "text" for part in self._parts)
        if said or calls:
            yield Draft(
                role=self._role,
                content=_simplest(self._parts),
                name=self._name,
                calls=calls,
                time=self._time,
                metadata=self._metadata,
            )
        self._parts, self._calls = [], []

    def _result(self, block: JsonObject) -> Draft:
        failed = {"is_error": True} if block.get("is_error") is True else {}
        return Draft(
            role=Role.TOOL,
            content=_simplest([_text_part(part) for part in _blocks(block.get("content"))]) or "",
            name=text_or_none(block.get("name")),
            answers=text_or_none(block.get("tool_use_id")) or text_or_none(block.get("id")),
            time=self._time,
            metadata=self._metadata | failed,
        )

    def _answer(self, entry: JsonObject, content: Sequence[JsonObject]) -> Draft:
        return Draft(
            role=Role.TOOL,
            content=_simplest([_text_part(part) for part in content]) or "",
            name=self._name,
            answers=text_or_none(entry.get("tool_call_id")),
            time=self._time,
            metadata=self._metadata,
        )


def _content(entry: JsonObject) -> list[JsonObject]:
    """The blocks of an entry's content, or of what stands in its place when there is none."""
    blocks = _blocks(entry.get("content"))
    if blocks:
        return blocks
    audio = entry.get("audio")
    spoken = audio.get("transcript") if isinstance(audio, Mapping) else None
    return next((_blocks(x) for x in (entry.get("text"), entry.get("refusal"), spoken) if x), [])


def _blocks(content: Any) -> list[JsonObject]:
    """Content as a list of blocks; a string is one of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if isinstance(content, Mapping):
        return [dict(content)]
    if not isinstance(content, Sequence):
        return []
    blocks: list[JsonObject] = []
    for block in content:
        blocks += _blocks(block)
    return blocks


def _results_first(blocks: Sequence[JsonObject]) -> list[JsonObject]:
    """Results before text, so that they follow the calls that they answer."""
    return sorted(blocks, key=lambda block: block.get("type") not in _RESULTS)


def _text_part(block: JsonObject) -> JsonObject:
    text = block.get("text")
    if block.get("type", "text") in _TEXTS and isinstance(text, str):
        return {"type": "text", "text": text}
    return block


def _simplest(parts: Sequence[JsonObject]) -> str | tuple[JsonObject, ...] | None:
    """A string where there is one text alone, else the parts."""
    said = [part for part in parts if part.get("type") != "text" or part.get("text")]
    if not said:
        return None
    if len(said) == 1 and said[0].get("type") == "text":
        return str(said[0]["text"])
    return tuple(said)


def _block_call(block: JsonObject) -> DraftCall:
    given = block.get("input")
    raw = given.get(RAW_ARGUMENTS) if isinstance(given, Mapping) and len(given) == 1 else None
    return DraftCall(
        id=text_or_none(block.get("id")),
        name=text_or_none(block.get("name")) or "unnamed",
        arguments=raw if isinstance(raw, str) else arguments_text(given),
    )


def _calls(entry: JsonObject) -> Iterator[DraftCall]:
    """`tool_calls` in OpenAI's nested, trimem's flat or LangChain's shape, and `function_call`."""
    given = entry.get("tool_calls")
    for call in given if isinstance(given, Sequence) and not isinstance(given, str) else ():
        if isinstance(call, Mapping):
            inner = call.get("function", call.get("custom", call))
            yield _call(inner if isinstance(inner, Mapping) else call, text_or_none(call.get("id")))
    legacy = entry.get("function_call")
    if isinstance(legacy, Mapping):
        yield _call(legacy, None)


def _call(call: Mapping[str, Any], id: str | None) -> DraftCall:
    arguments = next((call[key] for key in ("arguments", "args", "input") if key in call), None)
    name = text_or_none(call.get("name")) or "unnamed"
    return DraftCall(id=id, name=name, arguments=arguments_text(arguments))
