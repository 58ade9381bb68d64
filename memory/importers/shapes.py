"""Which entries are conversations and which are messages; what nothing knows is refused.

A document may be one conversation, a list of them, or a list of messages; a line may be a message
or a conversation. Where some entries are known, the others are problems with their place. Where
none is, the file is refused as a whole, so that no shape is ever stored as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memory.codec import content_id
from memory.errors import ImportRefused
from memory.importers import chat, chatgpt, claude
from memory.importers.drafts import Draft, Ledger, LeftOut, moment, session_name, text_or_none
from memory.importers.reading import Document, Line, Lines, load
from memory.importers.values import Conversation, Problem
from memory.models import JsonObject

RUN = 200
"""The most messages of one session that are taken from a file of lines at a time."""

_IDS = ("conversation_id", "uuid", "id", "session", "session_id", "thread_id")
_SESSIONS = ("session", "session_id", "conversation_id", "thread_id")


class Source(NamedTuple):
    """A file that is open to be read: how many entries it has, and what they are, in order.

    Iterating raises ImportRefused when no entry has a shape that is known.
    """

    entries: int
    found: Iterator[Conversation | Problem]


def read(path: Path, *, session: str | None = None) -> Source:
    """The conversations of a file, whatever wrote it.

    `session` names a conversation that has no name of its own; otherwise the file's name does.
    Raises ImportRefused for a file that is empty, no JSON, or of a shape that nothing knows.
    """
    name = session_name(session or path.stem, "imported")
    sources = [_source(part, name, path.name) for part in load(path)]
    return Source(
        entries=sum(source.entries for source in sources),
        found=(item for source in sources for item in source.found),
    )


def _source(part: Document | Lines, name: str, file: str) -> Source:
    if isinstance(part, Lines):
        return Source(part.total, _refuse_unknown(_of_lines(part, name), file))
    found = list(_of_document(part.value, name))
    if not any(isinstance(item, Conversation) for item in found):
        raise ImportRefused(f"{file}: {_unknown(part.value)}")
    return Source(
        sum(item.entries for item in found if isinstance(item, Conversation)), iter(found)
    )


def _refuse_unknown(
    found: Iterator[Conversation | Problem], file: str
) -> Iterator[Conversation | Problem]:
    first: Problem | None = None
    known = False
    for item in found:
        known = known or isinstance(item, Conversation)
        if first is None and isinstance(item, Problem):
            first = item
        yield item
    if not known:
        reason = f"{first.where}: {first.reason}" if first else "nothing in it"
        raise ImportRefused(f"{file}: no line is a message or a conversation; {reason}")


# --- documents ---------------------------------------------------------------------------------


def _of_document(value: Any, name: str) -> Iterator[Conversation | Problem]:
    if isinstance(value, Mapping) and isinstance(value.get("conversations"), list):
        value = value["conversations"]
    if _is_conversation(value):
        yield _conversation(value, name)
    elif chat.is_message(value):  # a file of lines that has one line as yet
        yield from _of_lines([Line(1, value)], name)
    elif isinstance(value, list) and any(_is_conversation(entry) for entry in value):
        yield from _each(value, name)
    elif isinstance(value, list) and any(chat.is_message(entry) for entry in value):
        known = [entry for entry in value if chat.is_message(entry)]
        yield _chat(known, name, "")
        for number, entry in enumerate(value, start=1):
            if not chat.is_message(entry):
                yield Problem(where=f"message {number}", reason=_unknown(entry))


def _each(value: Sequence[Any], name: str) -> Iterator[Conversation | Problem]:
    for number, entry in enumerate(value, start=1):
        if _is_conversation(entry):
            yield _conversation(entry, None, prefix=name)
        else:
            yield Problem(where=f"conversation {number}", reason=_unknown(entry))


def _is_conversation(entry: Any) -> bool:
    if chatgpt.is_conversation(entry) or claude.is_conversation(entry):
        return True
    messages = entry.get("messages") if isinstance(entry, Mapping) else None
    return isinstance(messages, list) and any(chat.is_message(message) for message in messages)


def _conversation(
    entry: Mapping[str, Any], name: str | None, *, prefix: str = "imported"
) -> Conversation:
    """A conversation under its own id, else `name`, else a name that its first message gives."""
    given = next((given for key in _IDS if (given := text_or_none(entry.get(key)))), None)
    session = session_name(given, name or "")
    title = text_or_none(entry.get("title")) or text_or_none(entry.get("name")) or ""
    started = moment(entry.get("create_time")) or moment(entry.get("created_at"))
    form, found, entries = _contents(entry)
    conversation = Ledger(session or prefix, form, title=title).conversation(
        found, started=started, entries=entries
    )
    if session:
        return conversation
    first = conversation.messages[0][0] if conversation.messages else ""
    name = session_name(f"{prefix}-{content_id('conversation', first)[:8]}", prefix)
    return conversation.model_copy(update={"session": name})


def _contents(entry: Mapping[str, Any]) -> tuple[str, list[Draft | LeftOut], int]:
    if chatgpt.is_conversation(entry):
        return "chatgpt", list(chatgpt.drafts(entry)), max(1, len(entry["mapping"]))
    if claude.is_conversation(entry):
        shown, left_out = claude.entries(entry)
        return "claude", [*left_out, *chat.drafts(shown)], max(1, len(shown))
    messages: list[JsonObject] = [m for m in entry["messages"] if chat.is_message(m)]
    unknown = [LeftOut("unknown shape")] * (len(entry["messages"]) - len(messages))
    system = entry.get("system")
    if system:
        messages = [*_system(system), *messages]
    return chat.format_of(messages), [*unknown, *chat.drafts(messages)], max(1, len(messages))


def _system(system: Any) -> list[JsonObject]:
    """Anthropic's top-level system text: a string, or blocks that may have an identity."""
    blocks = (
        [block for block in system if isinstance(block, dict)] if isinstance(system, list) else []
    )
    if not blocks:
        return [{"role": "system", "content": system}]
    return [
        {"role": "system", **block, "content": block.get("text")}
        for block in blocks
        if block.get("text")
    ]


def _chat(entries: Sequence[JsonObject], name: str, title: str) -> Conversation:
    ledger = Ledger(name, chat.format_of(entries), title=title)
    return ledger.conversation(chat.drafts(entries), entries=len(entries))


# --- lines -------------------------------------------------------------------------------------


def _of_lines(lines: Iterable[Line | Problem], name: str) -> Iterator[Conversation | Problem]:
    """Conversations as they stand, and runs of messages that follow each other in one session."""
    ledgers: dict[str, Ledger] = {}
    run: list[JsonObject] = []
    running = ""

    def finished() -> Iterator[Conversation]:
        if run:
            ledger = ledgers.setdefault(running, Ledger(running, "jsonl"))
            yield ledger.conversation(chat.drafts(run), entries=len(run))
            run.clear()

    for line in lines:
        if isinstance(line, Line) and chat.is_message(line.value):
            session = _session(line.value, name)
            if session != running or len(run) >= RUN:
                yield from finished()
            running = session
            run.append(line.value)
            continue
        yield from finished()
        yield _other(line, name)
    yield from finished()


def _session(entry: Mapping[str, Any], name: str) -> str:
    given = next((entry[key] for key in _SESSIONS if entry.get(key)), None)
    return session_name(given, name)


def _other(line: Line | Problem, name: str) -> Conversation | Problem:
    if isinstance(line, Problem):
        return line
    if _is_conversation(line.value):
        return _conversation(line.value, None, prefix=name).model_copy(update={"entries": 1})
    return Problem(where=f"line {line.number}", reason=_unknown(line.value))


def _unknown(value: Any) -> str:
    """What stands there instead of something known, in a few words."""
    if isinstance(value, Mapping):
        keys = ", ".join(str(key)[:20] for key in list(value)[:6]) or "none"
        return f"neither a message nor a conversation (keys: {keys})"
    if isinstance(value, list):
        return (
            f"a list of nothing that is known; {_unknown(value[0])}" if value else "an empty list"
        )
    return f"neither a message nor a conversation ({type(value).__name__})"
