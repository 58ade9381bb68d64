"""From loose entries to messages: what every format needs done, done once.

A draft is a message as a file has it: calls may lack ids, results may lack the id they answer,
times may be missing. `Ledger` knows what came before in a session and turns drafts into keyed
messages by these rules:

- A result without an id answers the first open call (of its name) in the newest message that
  calls; a call without an id gets one from its content. A result takes the name of its call.
- A missing time is that of the message before; before the first time, that of the conversation's
  start, else the first time in it. Zero is missing, not 1970. A time without a zone is UTC.
- A key is a hash of the source's id, the message and how often the same came before in the
  session, so that a file that has grown gives the old keys for its old part.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from memory.codec import content_id, encode
from memory.errors import InvalidInput, InvalidScope
from memory.importers.values import Conversation, KeyedMessage
from memory.models import JsonObject, Message, Role, ToolCall, valid_name
from memory.times import as_utc

THINKING = "thinking"
EMPTY = "empty message"


class LeftOut(NamedTuple):
    """Something that is not speech, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class DraftCall:
    """A tool call as a file has it; `arguments` is JSON text."""

    id: str | None
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A message as a file has it."""

    role: Role
    content: str | tuple[JsonObject, ...] | None = None
    name: str | None = None
    calls: tuple[DraftCall, ...] = ()
    answers: str | None = None
    time: datetime | None = None
    source_id: str | None = None
    metadata: JsonObject = field(default_factory=dict)


class Ledger:
    """What came before in one session of one file."""

    def __init__(self, session: str, format: str, *, title: str = "") -> None:
        self.session = session
        self._format = format
        self._title = title
        self._seen: Counter[str] = Counter()
        self._open: list[ToolCall] = []
        self._names: dict[str, str] = {}
        self._time: datetime | None = None

    def conversation(
        self, found: Iterable[Draft | LeftOut], *, started: datetime | None = None, entries: int = 1
    ) -> Conversation:
        """The drafts as a conversation that goes on where the last one ended."""
        drafts: list[Draft] = []
        left_out: list[str] = []
        for item in found:
            if isinstance(item, LeftOut):
                left_out.append(item.reason)
            else:
                drafts.append(item)
        kept: list[KeyedMessage] = []
        for draft in self._dated(drafts, started):
            message = self._message(draft)
            if message.is_empty:
                left_out.append(EMPTY)
            else:
                kept.append((self._key(draft.source_id, message), message))
        return Conversation(
            session=self.session,
            format=self._format,
            title=self._title,
            messages=tuple(kept),
            left_out=tuple(left_out),
            undated=sum(message.event_time is None for _, message in kept),
            entries=entries,
        )

    def _dated(self, drafts: Sequence[Draft], started: datetime | None) -> list[Draft]:
        first = next((draft.time for draft in drafts if draft.time), None)
        time = self._time or started or first
        dated = []
        for draft in drafts:
            time = draft.time or time
            dated.append(replace(draft, time=time))
        self._time = time
        return dated

    def _message(self, draft: Draft) -> Message:
        calls = tuple(self._call(call) for call in draft.calls)
        if calls:
            self._open = list(calls)
        answers, name = draft.answers, draft.name
        if draft.role is Role.TOOL:
            answers = answers or self._open_call(name) or _made_id(name or "", draft.content)
            name = name or self._names.get(answers)
            self._open = [call for call in self._open if call.id != answers]
        metadata = dict(draft.metadata)
        if self._format != "jsonl":
            metadata["source"] = self._format
        if draft.source_id is not None:
            metadata["source_id"] = draft.source_id
        return Message(
            role=draft.role,
            content=draft.content,
            name=name,
            tool_calls=calls,
            tool_call_id=answers,
            event_time=draft.time,
            metadata=metadata,
        )

    def _call(self, draft: DraftCall) -> ToolCall:
        made = _made_id(draft.name, draft.arguments, str(len(self._names)))
        call = ToolCall(id=draft.id or made, name=draft.name, arguments=draft.arguments)
        self._names[call.id] = call.name
        return call

    def _open_call(self, name: str | None) -> str | None:
        fitting = (call.id for call in self._open if name in (None, call.name))
        return next(fitting, None)

    def _key(self, source_id: str | None, message: Message) -> str:
        said = encode(message.to_json() | {"event_time": None, "metadata": None})
        key = content_id("imported", source_id or "", said.decode("utf-8", "surrogatepass"))
        self._seen[key] += 1
        return content_id("imported", key, str(self._seen[key]))


def _made_id(name: str, *parts: Any) -> str:
    return f"call-{content_id('call', name, *(repr(part) for part in parts))[:12]}"


def session_name(given: Any, otherwise: str) -> str:
    """`given` where it can name a session, else a name that follows from it, else `otherwise`."""
    if given is None or given == "":
        return otherwise
    text = str(given)
    try:
        return valid_name("session", text.strip())
    except InvalidScope:
        return f"imported-{content_id('session', text)[:12]}"


def moment(value: Any) -> datetime | None:
    """A time as exports write it; None when there is none or it cannot be read.

    Numbers are seconds since 1970, or milli-, micro- or nanoseconds when they are that large.
    """
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return _as_utc(value) if value.strip() else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    for limit, unit in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if value > limit:
            return _as_utc(value / unit)
    return _as_utc(value)


def _as_utc(value: str | float) -> datetime | None:
    try:
        return as_utc(value)
    except InvalidInput:
        return None


def arguments_text(value: Any) -> str:
    """Arguments of a call as JSON text: text as it came, anything else written as JSON."""
    if isinstance(value, str):
        return value or "{}"
    return json.dumps({} if value is None else value, ensure_ascii=False)


def text_or_none(value: Any) -> str | None:
    """A non-empty string, a number as one, or None."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None
