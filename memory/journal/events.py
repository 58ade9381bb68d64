"""Events and messages as values, and how they lie in rows.

A message's row keeps id (as the key), session, seq and times in columns only; the body has the
rest. Whatever is read is checked: bytes that do not give the value back are Corrupt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from memory.codec import content_id, decode, encode
from memory.errors import Corrupt, InvalidInput
from memory.journal.append import Draft, Stored
from memory.models import JsonObject, Message, Moment, RecordedMessage, Scope, Value, valid_name
from memory.times import from_micros, iso, to_micros

MESSAGE = "message"
"""The kind of an event that is a message."""
KEY_LIMIT = 512
"""The longest key of an event, in characters: four bytes each still fit into an index."""


class NewEvent(Value):
    """An event to append. `key` is what makes it the same event: appended once per scope."""

    kind: str
    key: str
    body: JsonObject
    session: str | None = None
    event_time: Moment


class Event(Value):
    """An event in the journal. `seq` is set for messages only."""

    position: int
    scope: Scope
    session: str | None
    seq: int | None
    kind: str
    key: str
    body: JsonObject
    event_time: Moment
    recorded_at: Moment


class SessionInfo(Value):
    """A session from outside. `messages` is how many it has, so also its newest seq."""

    session: str
    agent: str | None
    messages: int
    first_event_time: Moment
    last_event_time: Moment
    updated_at: Moment


class Parked(Value):
    """An event that a projection could not apply and set aside, so that the rest goes on."""

    projection: str
    position: int
    reason: str
    attempts: int
    updated_at: Moment


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _key_bytes(key: str) -> bytes:
    if len(key) > KEY_LIMIT:
        raise InvalidInput(f"a key has {len(key)} characters; the limit is {KEY_LIMIT}")
    return to_bytes(key)


def draft_of_event(event: NewEvent) -> Draft:
    if event.kind == MESSAGE:
        raise InvalidInput("messages are appended by append_messages, which numbers them")
    valid_name("kind", event.kind)
    if event.session is not None:
        valid_name("session", event.session)
    return Draft(
        kind=event.kind,
        key=_key_bytes(event.key),
        session=event.session,
        body=encode(event.body),
        event_time=to_micros(event.event_time),
    )


_IN_COLUMNS = frozenset({"id", "session", "seq", "event_time", "recorded_at"})


def draft_of_message(
    scope: Scope, session: str, key: str, message: Message, *, agent: str | None, now: datetime
) -> Draft:
    message.require_content()
    body = {name: value for name, value in message.to_json().items() if name not in _IN_COLUMNS}
    if agent is not None:
        body["agent"] = agent
    return Draft(
        kind=MESSAGE,
        key=to_bytes(message_id(scope, session, key)),
        session=session,
        body=encode(body),
        event_time=to_micros(message.event_time or now),
        numbered=True,
    )


def message_id(scope: Scope, session: str, key: str) -> str:
    """The id of the message that is recorded in this session under `key`."""
    return content_id(MESSAGE, scope.tenant, scope.user, session, key)


def recorded_message(stored: Stored) -> RecordedMessage:
    try:
        return RecordedMessage.from_json(_message_body(stored))
    except InvalidInput as error:
        raise Corrupt(f"the message at position {stored.position}: {error}") from error


def _message_body(stored: Stored) -> JsonObject:
    return {
        **_body(stored),
        "id": to_text(stored.key),
        "session": stored.session,
        "seq": stored.seq,
        "event_time": iso(from_micros(stored.event_time)),
        "recorded_at": iso(from_micros(stored.recorded_at)),
    }


def _body(stored: Stored) -> JsonObject:
    body = decode(stored.body)
    if not isinstance(body, dict):
        raise Corrupt(f"the event at position {stored.position} has no JSON object in it")
    return body


def event_of(scope: Scope, stored: Stored) -> Event:
    return Event(
        position=stored.position,
        scope=scope,
        session=stored.session,
        seq=stored.seq,
        kind=stored.kind,
        key=to_text(stored.key),
        body=_message_body(stored) if stored.kind == MESSAGE else _body(stored),
        event_time=from_micros(stored.event_time),
        recorded_at=from_micros(stored.recorded_at),
    )


def owned(owner: bytes, rows: Iterable[Row[Any]]) -> Iterator[Stored]:
    """The rows as they are stored, after checking once more whose they are."""
    for row in rows:
        stored = Stored.of(row)
        if stored.owner != owner:
            raise Corrupt(f"the event at position {stored.position} is somebody else's")
        yield stored


def session_info(row: Row[Any]) -> SessionInfo:
    return SessionInfo(
        session=row.session,
        agent=row.agent,
        messages=row.messages,
        first_event_time=from_micros(row.first_event_time),
        last_event_time=from_micros(row.last_event_time),
        updated_at=from_micros(row.updated_at),
    )


def parked_of(row: Row[Any]) -> Parked:
    return Parked(
        projection=row.projection,
        position=row.position,
        reason=to_text(row.reason),
        attempts=row.attempts,
        updated_at=from_micros(row.updated_at),
    )
