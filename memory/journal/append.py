"""Appending: the one way events come into the journal.

A batch is one transaction. Its first statement moves the row of `head` on by as many positions as
the batch may need; what was not needed is given back before the commit. That row stays locked
until then, so whoever comes next takes positions only after these are visible: order of position
is order of commit, and a projection that asks for everything after its cursor can never miss one.
Under the same lock the heads of the sessions are read and moved on, which is what makes `seq`
gapless, and keys that are already there are found, which is what makes a second append change
nothing.

Requests that arrive together share a transaction: while one is on its way to the disk, those that
come in wait and go next as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, tuple_, update

from memory.journal.database import Database
from memory.journal.schema import events, head, owners, sessions
from memory.models import Scope

_SLICE = 1_000
"""Keys looked up in one statement: well below the limits on parameters of either store."""
_BATCH = 64
"""Requests that one transaction takes along at most."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event to be appended, as columns. `numbered`: it takes the session's next seq."""

    kind: str
    key: bytes
    session: str | None
    body: bytes
    event_time: int
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """An event as its row has it."""

    position: int
    owner: bytes
    session: str | None
    seq: int | None
    kind: str
    key: bytes
    body: bytes
    event_time: int
    recorded_at: int

    @classmethod
    def of(cls, row: Row[Any]) -> Stored:
        return cls(*tuple(row))


COLUMNS = tuple(events.c)
"""What `Stored.of` takes, in its order."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one caller wants appended, all of one scope. `agent` is who the session is with."""

    scope: Scope
    owner: bytes
    drafts: Sequence[Draft]
    recorded_at: int
    agent: str | None = None


@dataclass(slots=True)
class _Session:
    """The head of a session while a batch is being appended."""

    agent: str | None
    messages: int
    first_event_time: int
    last_event_time: int
    updated_at: int
    is_new: bool = False
    is_changed: bool = False


_RESERVE = (
    update(head)
    .where(head.c.one == 1)
    .values(position=head.c.position + bindparam("count"))
    .returning(head.c.position)
)
_BY_KEY = select(*COLUMNS).where(events.c.key.in_(bindparam("keys", expanding=True)))
_HEADS = select(sessions).where(
    tuple_(sessions.c.owner, sessions.c.session).in_(bindparam("heads", expanding=True))
)
_MOVE_ON = (
    update(sessions)
    .where(sessions.c.owner == bindparam("of_owner"), sessions.c.session == bindparam("of_session"))
    .values({name: bindparam(name) for name in ("agent", "messages")})
    .values({name: bindparam(name) for name in ("first_event_time", "last_event_time")})
    .values(updated_at=bindparam("updated_at"))
)
_OWNERS = select(owners.c.owner).where(owners.c.owner.in_(bindparam("owners", expanding=True)))


def append_batch(connection: Connection, requests: Sequence[Request]) -> list[list[Stored]]:
    """For each request the events as stored, in the order of its drafts."""
    count = sum(len(request.drafts) for request in requests)
    reserved: int = connection.execute(_RESERVE, {"count": count}).scalar_one()
    position = reserved - count
    found = _already_there(connection, requests)
    heads = _heads_of(connection, requests)
    fresh: list[Stored] = []
    answers: list[list[Stored]] = []
    for request in requests:
        answer = []
        for draft in request.drafts:
            stored = found.get((request.owner, draft.key))
            if stored is None:
                position += 1
                seq = _next_seq(heads, request, draft)
                stored = Stored(
                    position=position,
                    owner=request.owner,
                    session=draft.session,
                    seq=seq,
                    kind=draft.kind,
                    key=draft.key,
                    body=draft.body,
                    event_time=draft.event_time,
                    recorded_at=request.recorded_at,
                )
                found[request.owner, draft.key] = stored
                fresh.append(stored)
            answer.append(stored)
        answers.append(answer)
    if position < reserved:
        connection.execute(_RESERVE, {"count": position - reserved})
    if fresh:
        connection.execute(insert(events), [_columns(stored) for stored in fresh])
        _save_heads(connection, heads)
        _save_owners(connection, requests, heads)
    return answers


def _already_there(
    connection: Connection, requests: Sequence[Request]
) -> dict[tuple[bytes, bytes], Stored]:
    keys = list({draft.key for request in requests for draft in request.drafts})
    slices = (keys[start : start + _SLICE] for start in range(0, len(keys), _SLICE))
    rows = chain.from_iterable(connection.execute(_BY_KEY, {"keys": part}) for part in slices)
    stored = (Stored.of(row) for row in rows)
    return {(event.owner, event.key): event for event in stored}


def _heads_of(
    connection: Connection, requests: Sequence[Request]
) -> dict[tuple[bytes, str], _Session]:
    wanted = list({(request.owner, session) for request, session in _numbered(requests)})
    if not wanted:
        return {}
    return {
        (row.owner, row.session): _Session(
            agent=row.agent,
            messages=row.messages,
            first_event_time=row.first_event_time,
            last_event_time=row.last_event_time,
            updated_at=row.updated_at,
        )
        for row in connection.execute(_HEADS, {"heads": wanted})
    }


def _numbered(requests: Sequence[Request]) -> Iterator[tuple[Request, str]]:
    for request in requests:
        for draft in request.drafts:
            if draft.numbered and draft.session is not None:
                yield request, draft.session


def _next_seq(
    heads: dict[tuple[bytes, str], _Session], request: Request, draft: Draft
) -> int | None:
    if not draft.numbered or draft.session is None:
        return None
    session = heads.get((request.owner, draft.session))
    if session is None:
        session = _Session(
            agent=None,
            messages=0,
            first_event_time=draft.event_time,
            last_event_time=draft.event_time,
            updated_at=request.recorded_at,
            is_new=True,
        )
        heads[request.owner, draft.session] = session
    session.messages += 1
    session.agent = request.agent or session.agent
    session.first_event_time = min(session.first_event_time, draft.event_time)
    session.last_event_time = max(session.last_event_time, draft.event_time)
    session.updated_at = max(session.updated_at, request.recorded_at)
    session.is_changed = True
    return session.messages


def _columns(stored: Stored) -> dict[str, Any]:
    return {column.name: getattr(stored, column.name) for column in COLUMNS}


def _save_heads(connection: Connection, heads: dict[tuple[bytes, str], _Session]) -> None:
    new, changed = [], []
    for (owner, session), state in heads.items():
        if not state.is_changed:
            continue
        values = {
            "agent": state.agent,
            "messages": state.messages,
            "first_event_time": state.first_event_time,
            "last_event_time": state.last_event_time,
            "updated_at": state.updated_at,
        }
        if state.is_new:
            new.append({"owner": owner, "session": session, **values})
        else:
            changed.append({"of_owner": owner, "of_session": session, **values})
    if new:
        connection.execute(insert(sessions), new)
    if changed:
        connection.execute(_MOVE_ON, changed)


def _save_owners(
    connection: Connection,
    requests: Sequence[Request],
    heads: dict[tuple[bytes, str], _Session],
) -> None:
    """Who is new here. An owner with an older session is known, so most batches ask nothing."""
    known = {owner for (owner, _), state in heads.items() if not state.is_new}
    scopes = {r.owner: r.scope for r in requests if r.owner not in known}
    if not scopes:
        return
    known = set(connection.scalars(_OWNERS, {"owners": list(scopes)}))
    new = [
        {"owner": owner, "tenant": scope.tenant, "user_id": scope.user}
        for owner, scope in scopes.items()
        if owner not in known
    ]
    if new:
        connection.execute(insert(owners), new)


_Waiting = tuple[Request, "asyncio.Future[list[Stored]]"]


class Appender:
    """Carries requests to the database, as many at once as have come in since the last commit.

    The work is done by a task of its own: a caller that is cancelled while it waits does not
    disturb the others, and its own events are then in or not in, as a whole.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def append(self, request: Request) -> list[Stored]:
        """The request's events as stored, durable when this returns."""
        answer: asyncio.Future[list[Stored]] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._carry(), name="journal-append")
        return await answer

    async def finish(self) -> None:
        """Waits for what is on its way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _carry(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                await self._commit(batch)
        finally:
            self._task = None
            for _, answer in self._waiting:  # some are left only when the loop is being ended
                answer.cancel()

    async def _commit(self, batch: Sequence[_Waiting]) -> None:
        requests = [request for request, _ in batch]
        try:
            results = await self._database.write(
                lambda connection: append_batch(connection, requests)
            )
        except Exception as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
        except BaseException:
            for _, answer in batch:
                answer.cancel()
            raise
        else:
            for (_, answer), result in zip(batch, results, strict=True):
                if not answer.done():
                    answer.set_result(result)
