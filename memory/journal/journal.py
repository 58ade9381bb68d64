"""The journal: append-only events in one SQL database, the only commit point there is.

Everything that happens is an event with a position in one total order; the messages of a session
also have a `seq` from 1 without gaps. Projections read events by position and keep their cursor
here, so that they can be killed, dropped and rebuilt. Appends that arrive together share one
commit: while a transaction is on its way to the disk, those that come in wait and go next as one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from functools import lru_cache

from pydantic import JsonValue
from sqlalchemy import Connection, bindparam, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.codec import decode, encode
from memory.errors import AgentMemoryError, TierUnavailable
from memory.journal.append import COLUMNS, Appender, Draft, Request, Stored
from memory.journal.database import Database, Dialect, Result, Work, insert_into
from memory.journal.engine import open_database
from memory.journal.events import (
    MESSAGE,
    Event,
    NewEvent,
    Parked,
    SessionInfo,
    draft_of_event,
    draft_of_message,
    event_of,
    owned,
    parked_of,
    recorded_message,
    session_info,
    to_bytes,
)
from memory.journal.schema import cursors, events, head, meta, owner_of, owners, parked, sessions
from memory.journal.statements import Statement
from memory.models import Health, Message, RecordedMessage, Scope, valid_name
from memory.times import to_micros

_SLICE = 1_000
"""Ids looked up in one statement."""
_HEAD = select(head.c.position).where(head.c.one == 1)
_MESSAGES_BY_KEY = select(*COLUMNS).where(
    events.c.key.in_(bindparam("keys", expanding=True)),
    events.c.owner == bindparam("owner"),
    events.c.kind == MESSAGE,
)


@lru_cache
def _messages(dialect: str, before: bool, newest: bool) -> Statement:
    """Those of a session after a place in it, before another, and only the newest."""
    wanted = select(*COLUMNS).where(
        events.c.owner == bindparam("owner"),
        events.c.session == bindparam("session"),
        events.c.seq > bindparam("after_seq"),
    )
    if before:
        wanted = wanted.where(events.c.seq < bindparam("before_seq"))
    if newest:
        wanted = wanted.order_by(events.c.seq.desc()).limit(bindparam("newest"))
    else:
        wanted = wanted.order_by(events.c.seq)
    return Statement.of(wanted, dialect)


class Journal:
    """The events of everybody, opened by `Journal.open`.

    Every method raises TierUnavailable("journal", …) when the database does not answer, and
    Corrupt for stored bytes that cannot be read back.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._appender = Appender(database)
        self._closed = False

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, *, timeout: timedelta) -> AsyncIterator[Journal]:
        """The journal at `sqlite:///PATH` (made when missing) or `postgresql://…`, migrated.

        `timeout` is the longest that one operation waits. Raises ConfigurationError for another
        URL and SchemaTooNew when a newer version wrote it.
        """
        async with open_database(url, timeout=timeout) as database:
            journal = cls(database)
            try:
                yield journal
            finally:
                journal._closed = True
                await journal._appender.finish()

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    def _open_database(self) -> Database:
        if self._closed:
            raise TierUnavailable("journal", "it has been closed")
        return self._database

    # --- units of work -------------------------------------------------------------------------

    async def write(
        self, work: Work[Result], *, alone: str | None = None, durable: bool = True
    ) -> Result:
        """`work(connection)` in one write transaction, in one go: the cheapest way to write.

        `work` is a plain function. Over PostgreSQL, writes with the same `alone` take turns.
        Without `durable` it does not wait for the disk: for what a projection can do again. A
        power cut may then undo it, but not without everything that was written after it; a
        killed process undoes nothing.
        """
        return await self._open_database().write(work, alone=alone, durable=durable)

    async def query(self, work: Work[Result]) -> Result:
        """`work(connection)` on a connection that only reads: the cheapest way to read."""
        return await self._open_database().query(work)

    def transaction(
        self, scope: Scope | None = None
    ) -> AbstractAsyncContextManager[AsyncConnection]:
        """A write transaction: committed at the end, rolled back when the block raises.

        They take turns: over SQLite all writes do, over PostgreSQL those of the same scope (and
        one without a scope with all others). Do not call other writing methods inside.
        """
        return self._open_database().transaction(scope)

    def read(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A connection that only reads; each statement sees what was committed before it."""
        return self._open_database().read()

    def lease(self, name: str) -> AbstractAsyncContextManager[None]:
        """Held by one holder over all processes; raises AlreadyRunning at once.

        When the holder dies, the kernel (SQLite) or the server (PostgreSQL) frees it.
        """
        return self._open_database().lease(name)

    # --- appending -----------------------------------------------------------------------------

    async def append(self, scope: Scope, new: Sequence[NewEvent], *, now: datetime) -> list[Event]:
        """The events as stored, durable when this returns, in the order given.

        An event whose key is already there gives back the stored one and changes nothing.
        """
        drafts = [draft_of_event(event) for event in new]
        stored = await self._append(scope, drafts, now=now)
        return [event_of(scope, event) for event in stored]

    async def append_messages(
        self,
        scope: Scope,
        session: str,
        messages: Sequence[tuple[str, Message]],
        *,
        agent: str | None,
        now: datetime,
    ) -> list[RecordedMessage]:
        """The messages of (key, message) as recorded, durable when this returns.

        They are appended together: another writer's messages come before or after, never
        between. A key that the session already has gives back what was recorded under it. A
        message without event_time was said `now`. Raises EmptyInput for a message with nothing
        in it.
        """
        valid_name("session", session)
        if agent is not None:
            valid_name("agent", agent)
        drafts = [
            draft_of_message(scope, session, key, message, agent=agent, now=now)
            for key, message in messages
        ]
        stored = await self._append(scope, drafts, now=now, agent=agent)
        return [recorded_message(event) for event in stored]

    async def _append(
        self, scope: Scope, drafts: Sequence[Draft], *, now: datetime, agent: str | None = None
    ) -> list[Stored]:
        self._open_database()
        if not drafts:
            return []
        request = Request(
            scope=scope,
            owner=owner_of(scope),
            drafts=drafts,
            recorded_at=to_micros(now),
            agent=agent,
        )
        return await self._appender.append(request)

    # --- a user's own --------------------------------------------------------------------------

    async def messages(
        self,
        scope: Scope,
        session: str,
        *,
        after_seq: int = 0,
        before_seq: int | None = None,
        newest: int | None = None,
    ) -> list[RecordedMessage]:
        """The session's messages with after_seq < seq < before_seq, oldest first.

        With `newest`, only the last so many of them. An unknown session has none.
        """
        owner = owner_of(scope)
        given = {
            "owner": owner,
            "session": session,
            "after_seq": after_seq,
            "before_seq": before_seq,
            "newest": None if newest is None else max(newest, 0),
        }

        def work(connection: Connection) -> list[RecordedMessage]:
            shape = (before_seq is not None, newest is not None)
            wanted = _messages(connection.dialect.name, *shape)
            found = owned(owner, wanted.rows(connection, given))
            recorded = [recorded_message(event) for event in found]
            return recorded if newest is None else recorded[::-1]

        return await self.query(work)

    async def messages_by_id(self, scope: Scope, ids: Sequence[str]) -> dict[str, RecordedMessage]:
        """Those of the messages that this user has, by id."""
        owner = owner_of(scope)
        keys = [to_bytes(message_id) for message_id in dict.fromkeys(ids)]

        def work(connection: Connection) -> dict[str, RecordedMessage]:
            found = {}
            for start in range(0, len(keys), _SLICE):
                part = {"keys": keys[start : start + _SLICE], "owner": owner}
                for event in owned(owner, connection.execute(_MESSAGES_BY_KEY, part)):
                    message = recorded_message(event)
                    found[message.id] = message
            return found

        return await self.query(work) if keys else {}

    async def sessions(self, scope: Scope) -> list[SessionInfo]:
        """The user's sessions, the one that changed last first."""
        owner = owner_of(scope)
        wanted = (
            select(sessions)
            .where(sessions.c.owner == owner)
            .order_by(sessions.c.updated_at.desc(), sessions.c.session)
        )

        def work(connection: Connection) -> list[SessionInfo]:
            return [session_info(row) for row in connection.execute(wanted)]

        return await self.query(work)

    async def session(self, scope: Scope, session: str) -> SessionInfo | None:
        owner = owner_of(scope)
        wanted = select(sessions).where(sessions.c.owner == owner, sessions.c.session == session)

        def work(connection: Connection) -> SessionInfo | None:
            row = connection.execute(wanted).first()
            return session_info(row) if row is not None else None

        return await self.query(work)

    async def events_of(
        self,
        scope: Scope,
        *,
        kinds: Sequence[str],
        session: str | None = None,
        after: int = 0,
        newest: int | None = None,
    ) -> list[Event]:
        """The user's events of these kinds with position > after, oldest first.

        With `newest`, only the last so many of them.
        """
        owner = owner_of(scope)
        wanted = select(*COLUMNS).where(
            events.c.owner == owner, events.c.kind.in_(kinds), events.c.position > after
        )
        if session is not None:
            wanted = wanted.where(events.c.session == session)
        if newest is None:
            wanted = wanted.order_by(events.c.position)
        else:
            wanted = wanted.order_by(events.c.position.desc()).limit(max(newest, 0))

        def work(connection: Connection) -> list[Event]:
            found = [event_of(scope, event) for event in owned(owner, connection.execute(wanted))]
            return found if newest is None else found[::-1]

        return await self.query(work)

    # --- for projections, jobs and rebuilds: everybody's -----------------------------------------

    async def scopes(self) -> list[Scope]:
        """Everybody who has anything here, in order. For jobs and rebuilds, not for callers."""
        wanted = select(owners.c.tenant, owners.c.user_id)

        def work(connection: Connection) -> list[Scope]:
            return [Scope.of(*row) for row in connection.execute(wanted)]

        found = await self.query(work)
        return sorted(found, key=lambda scope: (scope.tenant, scope.user))

    async def head(self) -> int:
        """The newest position; 0 while there is none."""
        return await self.query(lambda connection: connection.scalars(_HEAD).one())

    async def events(self, *, after: int, kinds: Sequence[str], limit: int) -> list[Event]:
        """The first `limit` events of these kinds with position > after, by position.

        No event can appear later at a position that was passed: whoever goes on from the last
        position that it was given sees every event exactly once.
        """
        wanted = (
            select(*COLUMNS, owners.c.tenant, owners.c.user_id)
            .join_from(events, owners, events.c.owner == owners.c.owner)
            .where(events.c.position > after, events.c.kind.in_(kinds))
            .order_by(events.c.position)
            .limit(limit)
        )

        def work(connection: Connection) -> list[Event]:
            return [
                event_of(Scope.of(tenant, user), Stored(*columns))
                for *columns, tenant, user in connection.execute(wanted)
            ]

        return await self.query(work)

    async def waiting(self, *, after: int, kinds: Sequence[str]) -> tuple[int, int | None]:
        """How many events of these kinds have a position > after, and the first such position.

        Reads none of them, so also tells where one is that cannot be read.
        """
        wanted = select(func.count(), func.min(events.c.position)).where(
            events.c.position > after, events.c.kind.in_(kinds)
        )

        def work(connection: Connection) -> tuple[int, int | None]:
            count, first = connection.execute(wanted).one()
            return int(count), first

        return await self.query(work)

    async def cursor(self, projection: str) -> int:
        """The position up to which the projection has applied everything; 0 at first."""
        wanted = select(cursors.c.position).where(cursors.c.projection == projection)

        def work(connection: Connection) -> int:
            return int(connection.scalar(wanted) or 0)

        return await self.query(work)

    async def advance(self, projection: str, position: int, *, now: datetime) -> None:
        """Moves the cursor to `position`; to an earlier one it changes nothing.

        After a power cut it may be at an earlier position; what is applied again changes nothing.
        """
        at = to_micros(now)

        def work(connection: Connection) -> None:
            row = {"projection": projection, "position": position, "updated_at": at}
            insert = insert_into(connection, cursors)
            connection.execute(
                insert.on_conflict_do_update(
                    index_elements=["projection"],
                    set_={"position": insert.excluded.position, "updated_at": at},
                    where=cursors.c.position < insert.excluded.position,
                ),
                row,
            )

        await self.write(work, durable=False)

    async def reset(self, projection: str) -> None:
        """Back to the beginning, with nothing parked: for a rebuild."""

        def work(connection: Connection) -> None:
            connection.execute(delete(cursors).where(cursors.c.projection == projection))
            connection.execute(delete(parked).where(parked.c.projection == projection))

        await self.write(work)

    async def park(self, projection: str, position: int, reason: str, *, now: datetime) -> int:
        """Sets the event at `position` aside, or counts one more attempt; how many there were."""
        values = {"reason": to_bytes(reason), "updated_at": to_micros(now)}

        def work(connection: Connection) -> int:
            row = {"projection": projection, "position": position, "attempts": 1, **values}
            attempts = connection.execute(
                insert_into(connection, parked)
                .on_conflict_do_update(
                    index_elements=["projection", "position"],
                    set_={"attempts": parked.c.attempts + 1, **values},
                )
                .returning(parked.c.attempts),
                row,
            )
            return int(attempts.scalar_one())

        return await self.write(work)

    async def parked(self, projection: str) -> list[Parked]:
        """What the projection has set aside, by position."""
        wanted = select(parked).where(parked.c.projection == projection).order_by(parked.c.position)

        def work(connection: Connection) -> list[Parked]:
            return [parked_of(row) for row in connection.execute(wanted)]

        return await self.query(work)

    async def unpark(self, projection: str, position: int) -> None:
        """The event is dealt with. One that is not parked changes nothing."""
        done = delete(parked).where(
            parked.c.projection == projection, parked.c.position == position
        )
        await self.write(lambda connection: connection.execute(done) and None)

    # --- about itself --------------------------------------------------------------------------

    async def get_meta(self, key: str) -> JsonValue | None:
        wanted = select(meta.c.value).where(meta.c.key == key)
        value = await self.query(lambda connection: connection.scalar(wanted))
        found: JsonValue | None = decode(value) if value is not None else None
        return found

    async def set_meta(self, key: str, value: JsonValue) -> None:
        row = {"key": key, "value": encode(value)}

        def work(connection: Connection) -> None:
            insert = insert_into(connection, meta)
            connection.execute(
                insert.on_conflict_do_update(
                    index_elements=["key"], set_={"value": insert.excluded.value}
                ),
                row,
            )

        await self.write(work)

    async def health(self) -> Health:
        """Whether the database answers, and which it is. Never raises for one that does not."""
        try:
            version = await self._open_database().version()
            await self.head()
        except AgentMemoryError as error:
            return Health(part="journal", ok=False, where=self._database.where, problem=str(error))
        return Health(part="journal", ok=True, version=version, where=self._database.where)
