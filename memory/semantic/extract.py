"""Facts read out of messages without a language model: narrow slots, precision first.

Only what users say is read, in the first person: their name, home, work, study, relatives and
pets by name, likes and dislikes, diet and allergies, plans, birthday; in English and Chinese. What
"no longer" holds ends a fact. Questions, hypotheses, quotations and reported speech give none.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from memory.codec import content_id
from memory.models import Assertion, RecordedMessage, Role
from memory.semantic import chinese, english
from memory.semantic.names import SELF
from memory.semantic.names import key as name_key
from memory.semantic.predicates import Registry
from memory.semantic.predicates import key as predicate_key
from memory.semantic.slots import Found
from memory.text import plain


def facts(message: RecordedMessage, *, registry: Registry, speaker: str = SELF) -> list[Assertion]:
    """What the message states, in its order; [] for messages that are not the user's.

    Valid from the message's `event_time`, or from an earlier moment that its words name, worked
    out from `event_time`. The same message gives the same assertions, ids included. `speaker` is
    who "I" is.
    """
    if message.role is not Role.USER:
        return []
    made: dict[str, Assertion] = {}
    for found in read(message.text, message.event_time):
        assertion = _assertion(message, found, registry, speaker)
        made.setdefault(assertion.id, assertion)
    return list(made.values())


def read(text: str, now: datetime) -> Iterator[Found]:
    """The slots that a text fills, said at `now`."""
    readable = plain(text)
    yield from english.read(readable, now)
    yield from chinese.read(readable, now)


def id_of(message: RecordedMessage, subject: str, predicate: str, object: str, holds: bool) -> str:
    """The id of what a message states: the same for whoever reads it there."""
    return content_id(
        "extracted",
        message.id,
        name_key(subject),
        predicate_key(predicate),
        name_key(object),
        "holds" if holds else "ends",
    )


def said_when(text: str, now: datetime) -> datetime | None:
    """The moment before `now` that a text names ("last week", 去年); None when it names none."""
    readable = plain(text)
    return english.when(readable, now) or chinese.when(readable, now)


def _assertion(
    message: RecordedMessage, found: Found, registry: Registry, speaker: str
) -> Assertion:
    subject = speaker if found.subject == SELF else found.subject
    began = found.since if found.since is not None and found.since < message.event_time else None
    return registry.assertion(
        id=id_of(message, subject, found.predicate, found.object, found.holds),
        subject=subject,
        predicate=found.predicate,
        object=found.object,
        holds=found.holds,
        valid_from=began or message.event_time,
        said_at=message.event_time if began and found.holds else None,
        learnt_at=message.recorded_at,
        sources=[message.id],
        origin="extracted",
        confidence=found.confidence,
        attributes=dict(found.attributes),
    )
