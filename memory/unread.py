"""What a nightly reader has read of each session, and what it could not read: in the journal.

    event `read`        the session's messages up to a seq were read, or are in the ledger
    event `reread`      messages that had failed before were read
    retries 'read'      messages that could not be read, with their nights
    retries 'reading'   portions that are being read; a process that died over one has left it there

What was found in a portion and the event that says it was read are appended in one transaction, so
that a reader killed anywhere has either read a portion or not. What is tidied up afterwards is
tidied up by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Select, func, select

from memory.codec import content_id, decode
from memory.errors import Corrupt
from memory.journal import Journal, NewEvent
from memory.journal.events import to_bytes
from memory.journal.retries import Retries, Standing
from memory.journal.schema import events, owner_of, sessions
from memory.models import Assertion, JsonObject, Moment, RecordedMessage, Scope, Value
from memory.projections import fact_events

READ: Final = "read"
REREAD: Final = "reread"
"""Kinds of event, and the first the ledger's job."""
READING: Final = "reading"
LAST: Final = "read.last"

NIGHTS: Final = 5
"""After so many nights on which it could not be read, a message is given up."""
NEXT_NIGHT: Final = timedelta(hours=12)
"""A message that failed is not read again sooner."""
BEFORE: Final = 4
"""Messages before a portion that are read with it."""


class Portion(Value):
    """Messages of one session that are read together, and those `before` them, oldest first.

    `again`: they have failed before; there may have been others between them.
    """

    session: str
    messages: tuple[RecordedMessage, ...]
    before: tuple[RecordedMessage, ...] = ()
    again: bool = False

    @property
    def key(self) -> str:
        """What it is known by while it is read. A new one may be cut elsewhere the next time."""
        if self.again:
            return content_id(REREAD, *(message.id for message in self.messages))
        return content_id(READ, self.messages[0].id)

    def first(self, number: int) -> Portion:
        return self.model_copy(update={"messages": self.messages[:number]})

    def without_first(self, number: int) -> Portion:
        """What is left of it; the messages that were taken are before it now, unless one of them
        may be what is in the way."""
        before = () if self.again else (*self.before, *self.messages[:number])[-BEFORE:]
        return self.model_copy(update={"messages": self.messages[number:], "before": before})


class Outcome(Value):
    """What was found in a portion. `missed` are ids of messages that are to be read once more;
    `about` is kept with it."""

    facts: tuple[Assertion, ...] = ()
    missed: tuple[str, ...] = ()
    about: JsonObject = Field(default_factory=dict)


class Ended(Value):
    """How the newest night of reading ended: `problem` says why not everything could be read."""

    at: Moment
    problem: str = ""


class State(Value):
    """How many messages were never tried, how it stands with those that failed, and how the newest
    night ended, if there was one."""

    untried: int
    failed: Standing
    newest: Ended | None = None


class Unread:
    """The messages of everybody that a reader has still to read."""

    def __init__(
        self, journal: Journal, clock: Callable[[], datetime], written: Callable[[], object]
    ) -> None:
        """`written` is called when facts were appended."""
        self._journal = journal
        self._clock = clock
        self._written = written
        self._failed = Retries(journal, READ, longest=NEXT_NIGHT)
        self._claims = Retries(journal, READING)

    # --- what there is to read -------------------------------------------------------------------

    async def behind(self, scope: Scope) -> dict[str, int]:
        """The sessions with messages that were never tried, and up to which seq each was; the one
        that changed the longest ago first."""
        read = await _read_up_to(self._journal, scope)
        found = await self._journal.sessions(scope)
        tried = {info.session: read.get((owner_of(scope), info.session), 0) for info in found}
        return {
            info.session: tried[info.session]
            for info in sorted(found, key=lambda info: (info.updated_at, info.session))
            if info.messages > tried[info.session]
        }

    async def waiting(self, scope: Scope) -> int:
        """How many of the user's messages were never tried."""
        return await _untried(self._journal, scope)

    async def page(self, scope: Scope, session: str, *, after: int, size: int) -> Portion:
        """The session's next `size` messages at most, with those before them."""
        messages = await self._journal.messages(
            scope, session, after_seq=after, before_seq=after + size + 1
        )
        before = await self._journal.messages(
            scope, session, after_seq=max(0, after - BEFORE), before_seq=after + 1
        )
        return Portion(session=session, messages=tuple(messages), before=tuple(before))

    async def due(self, scope: Scope, now: datetime, sizes: Sequence[int]) -> list[Portion]:
        """What failed before and may be read again: so many together as `sizes` has for each time
        they have failed, the last one from then on; and nothing before them, which may have been
        what was in the way."""
        failed = {r.item: r.attempts for r in await self._failed.due(now, scope=scope)}
        found = await self._journal.messages_by_id(scope, list(failed))
        ordered = sorted(found.values(), key=lambda message: (message.session, message.seq))
        portions = []
        for (session, tried), group in groupby(
            ordered, key=lambda message: (message.session, failed[message.id])
        ):
            messages, size = tuple(group), sizes[min(tried, len(sizes)) - 1]
            portions += [
                Portion(session=session, messages=messages[start : start + size], again=True)
                for start in range(0, len(messages), size)
            ]
        return portions

    # --- reading a portion -----------------------------------------------------------------------

    async def tidy(self, scope: Scope) -> None:
        """Finish what a reader that died had read, and not tidied up."""
        for claim in await self._claims.all(scope=scope):
            body = await self._read_event(scope, claim.item)
            if body is not None:
                await self._failed.done(scope, await self._ids(scope, body))
                await self._claims.done(scope, [claim.item])

    async def begin(self, scope: Scope, portion: Portion) -> int:
        """The portion is going to be read. How often it was begun since it was last ended: more
        than once where a process died over it."""
        reason = "the process ended while it was read"
        return await self._claims.failed(
            scope, portion.key, reason, now=self._clock(), retry_at=None
        )

    async def put_back(self, scope: Scope, portion: Portion) -> None:
        """It was not read after all, through no fault of its own."""
        await self._claims.done(scope, [portion.key])

    async def finish(self, scope: Scope, portion: Portion, outcome: Outcome) -> None:
        """The portion has been read. Facts that the journal has already change nothing.

        What it missed must be in the ledger before.
        """
        now = self._clock()
        missed: JsonObject = {"missed": list(outcome.missed)} if outcome.missed else {}
        event = _event(portion, {**outcome.about, **missed}, now)
        await self._journal.append(scope, [*fact_events(outcome.facts), event], now=now)
        if outcome.facts:
            self._written()
        ids = [message.id for message in portion.messages if message.id not in outcome.missed]
        await self._failed.done(scope, ids)
        await self._claims.done(scope, [portion.key])

    async def fail(self, scope: Scope, portion: Portion, reason: str, *, now: datetime) -> int:
        """The portion could not be read, and each of its messages has failed once more. How many
        were given up."""
        given_up = await self.failed(scope, portion.messages, reason, now=now)
        if not portion.again:  # last, lest one be neither read nor in the ledger
            event = _event(portion, {"failed": reason}, now)
            await self._journal.append(scope, [event], now=self._clock())
        await self._claims.done(scope, [portion.key])
        return given_up

    async def failed(
        self, scope: Scope, messages: Sequence[RecordedMessage], reason: str, *, now: datetime
    ) -> int:
        """These messages have failed once more. How many were given up."""
        given_up = 0
        for message in messages:
            before = await self._failed.of(scope, message.id)
            last = before is not None and before.attempts + 1 >= NIGHTS
            retry_at = None if last else now + NEXT_NIGHT
            await self._failed.failed(scope, message.id, reason, now=now, retry_at=retry_at)
            given_up += last
        return given_up

    async def ended(self, ended: Ended) -> None:
        """A night of reading is over."""
        await self._journal.set_meta(LAST, ended.to_json())

    # --- the journal -----------------------------------------------------------------------------

    async def _read_event(self, scope: Scope, key: str) -> JsonObject | None:
        wanted = _bodies(events.c.owner == owner_of(scope), events.c.key == to_bytes(key))

        def work(connection: Connection) -> JsonObject | None:
            row = connection.execute(wanted).first()
            return None if row is None else {**_body(row.body), "session": row.session}

        return await self._journal.query(work)

    async def _ids(self, scope: Scope, body: JsonObject) -> list[str]:
        """The messages of a portion that were read."""
        if "failed" in body:
            return []
        missed = body.get("missed")
        missed = missed if isinstance(missed, list) else []
        ids = await self._all_ids(scope, body)
        return [each for each in ids if each not in missed]

    async def _all_ids(self, scope: Scope, body: JsonObject) -> list[str]:
        listed = body.get("messages")
        if isinstance(listed, list):
            return [str(each) for each in listed]
        messages = await self._journal.messages(
            scope,
            str(body["session"]),
            after_seq=_whole(body, "from") - 1,
            before_seq=_whole(body, "to") + 1,
        )
        return [message.id for message in messages]


async def state(journal: Journal) -> State:
    """How it stands with everybody's messages."""
    noted = await journal.get_meta(LAST)
    return State(
        untried=await _untried(journal, None),
        failed=await Retries(journal, READ).standing(),
        newest=None if noted is None else Ended.from_json(noted),
    )


async def _untried(journal: Journal, scope: Scope | None) -> int:
    wanted = select(sessions.c.owner, sessions.c.session, sessions.c.messages)
    if scope is not None:
        wanted = wanted.where(sessions.c.owner == owner_of(scope))
    read = await _read_up_to(journal, scope)

    def work(connection: Connection) -> int:
        return sum(
            max(0, messages - read.get((owner, session), 0))
            for owner, session, messages in connection.execute(wanted)
        )

    return await journal.query(work)


async def _read_up_to(journal: Journal, scope: Scope | None) -> dict[tuple[bytes, str], int]:
    """Up to which seq each session was read, by owner and name."""
    of_whom = [] if scope is None else [events.c.owner == owner_of(scope)]
    newest = (
        select(func.max(events.c.position))
        .where(events.c.kind == READ, *of_whom)
        .group_by(events.c.owner, events.c.session)
    )
    wanted = _bodies(events.c.position.in_(newest))

    def work(connection: Connection) -> dict[tuple[bytes, str], int]:
        return {
            (row.owner, row.session): _whole(_body(row.body), "to")
            for row in connection.execute(wanted)
        }

    return await journal.query(work)


def _event(portion: Portion, about: JsonObject, now: datetime) -> NewEvent:
    body: JsonObject = (
        {"messages": [message.id for message in portion.messages]}
        if portion.again
        else {"from": portion.messages[0].seq, "to": portion.messages[-1].seq}
    )
    return NewEvent(
        kind=REREAD if portion.again else READ,
        key=portion.key,
        session=portion.session,
        body={**about, **body},
        event_time=now,
    )


def _bodies(*conditions: ColumnElement[bool]) -> Select[Any]:
    return select(events.c.owner, events.c.session, events.c.body).where(*conditions)


def _body(data: bytes) -> JsonObject:
    body = decode(data)
    if not isinstance(body, dict):
        raise Corrupt("a note of what was read is no JSON object")
    return body


def _whole(body: JsonObject, name: str) -> int:
    number = body.get(name)
    if not isinstance(number, int):
        raise Corrupt(f"a note of what was read has no number {name!r}")
    return number
