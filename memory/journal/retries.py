"""What a job could not do yet: how often it tried, why not, and when to try again.

    retries    one row for each (job, owner, item) that failed; gone when it is done

An item is whatever the job works on, by a name of its own: a session, a message's id. Unlike what
a projection has parked, nothing else waits for it.

A clock that went wrong may have written down a moment of years ahead. A job that knows its longest
pause does not wait for that: what is to be tried again later than after that pause is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    delete,
    func,
    or_,
    select,
)

from memory.journal.database import insert_into
from memory.journal.events import to_bytes, to_text
from memory.journal.journal import Journal
from memory.journal.schema import (
    bytes_column,
    metadata,
    moment_column,
    owner_column,
    owner_of,
    owners,
)
from memory.models import Moment, Scope, Value
from memory.times import from_micros, to_micros

retries_table = Table(
    "retries",
    metadata,
    Column("job", Text, nullable=False),
    owner_column(),
    bytes_column("item"),
    Column("attempts", Integer, nullable=False),
    bytes_column("reason"),
    moment_column("retry_at", nullable=True),
    moment_column("updated_at"),
    PrimaryKeyConstraint("job", "owner", "item"),
)
_retries = retries_table.c
Index("retries_due", _retries.job, _retries.retry_at)


class Retry(Value):
    """Something that a job could not do. `retry_at` None: it has been given up."""

    job: str
    scope: Scope
    item: str
    attempts: int
    reason: str
    retry_at: Moment | None
    updated_at: Moment

    @property
    def times(self) -> str:
        """How often it was tried, for people."""
        return "once" if self.attempts == 1 else f"{self.attempts} times"


class Standing(Value):
    """How many items wait to be tried again, how many were given up, and what failed last."""

    waiting: int
    given_up: int
    newest: Retry | None


class Retries:
    """The failures of one job, in the journal's database. It never pauses longer than `longest`."""

    def __init__(self, journal: Journal, job: str, *, longest: timedelta | None = None) -> None:
        self._journal = journal
        self.job = job
        self._longest = longest

    async def failed(
        self, scope: Scope, item: str, reason: str, *, now: datetime, retry_at: datetime | None
    ) -> int:
        """Count one more attempt at the item; how many there were. None: it is given up."""
        values = {
            "reason": to_bytes(reason),
            "retry_at": None if retry_at is None else to_micros(retry_at),
            "updated_at": to_micros(now),
        }
        row = {
            "job": self.job,
            "owner": owner_of(scope),
            "item": to_bytes(item),
            "attempts": 1,
            **values,
        }

        def work(connection: Connection) -> int:
            attempts = connection.execute(
                insert_into(connection, retries_table)
                .on_conflict_do_update(
                    index_elements=["job", "owner", "item"],
                    set_={"attempts": _retries.attempts + 1, **values},
                )
                .returning(_retries.attempts),
                row,
            )
            return int(attempts.scalar_one())

        return await self._journal.write(work)

    async def done(self, scope: Scope, items: Sequence[str]) -> None:
        """The items are dealt with. Those that never failed change nothing."""
        if not items:
            return
        gone = delete(retries_table).where(
            _retries.job == self.job,
            _retries.owner == owner_of(scope),
            _retries.item.in_([to_bytes(item) for item in items]),
        )
        await self._journal.write(lambda connection: connection.execute(gone) and None)

    async def of(self, scope: Scope, item: str) -> Retry | None:
        """The item's failure; None when it has none."""
        found = await self._found(
            _retries.owner == owner_of(scope), _retries.item == to_bytes(item), limit=1
        )
        return found[0] if found else None

    async def all(self, *, scope: Scope | None = None, limit: int = 1_000) -> list[Retry]:
        """What failed, of one user or of everybody, the longest ago first; given up included."""
        conditions = [] if scope is None else [_retries.owner == owner_of(scope)]
        return await self._found(*conditions, limit=limit)

    async def due(
        self, now: datetime, *, scope: Scope | None = None, limit: int = 1_000
    ) -> list[Retry]:
        """What may be tried again by `now`, of one user or of everybody, the longest due first."""
        by_now = _retries.retry_at <= to_micros(now)
        if self._longest is not None:
            by_now = or_(by_now, _retries.retry_at > to_micros(now + self._longest))
        conditions: list[ColumnElement[bool]] = [by_now]
        if scope is not None:
            conditions.append(_retries.owner == owner_of(scope))
        return await self._found(*conditions, limit=limit, order=_retries.retry_at)

    def is_due(self, retry: Retry, now: datetime) -> bool:
        """Whether it may be tried again by `now`; never, when it has been given up."""
        wait = None if retry.retry_at is None else retry.retry_at - now
        if wait is None:
            return False
        return wait <= timedelta(0) or (self._longest is not None and wait > self._longest)

    async def count(self) -> int:
        """How many items have failed and are not done."""
        wanted = select(func.count()).select_from(retries_table).where(_retries.job == self.job)
        return await self._journal.query(lambda connection: int(connection.scalar(wanted) or 0))

    async def standing(self) -> Standing:
        """How it stands with all that failed, of everybody."""
        row = select(func.count(), func.count(_retries.retry_at)).where(_retries.job == self.job)

        def work(connection: Connection) -> tuple[int, int]:
            failed, waiting = connection.execute(row).one()
            return int(failed), int(waiting)

        failed, waiting = await self._journal.query(work)
        newest = await self._found(limit=1, order=_retries.updated_at.desc()) if failed else []
        return Standing(
            waiting=waiting, given_up=failed - waiting, newest=newest[0] if newest else None
        )

    async def _found(
        self,
        *conditions: ColumnElement[bool],
        limit: int,
        order: ColumnElement[int] = _retries.updated_at,
    ) -> list[Retry]:
        wanted = (
            select(retries_table, owners.c.tenant, owners.c.user_id)
            .join_from(retries_table, owners, _retries.owner == owners.c.owner)
            .where(_retries.job == self.job, *conditions)
            .order_by(order, _retries.owner, _retries.item)
            .limit(limit)
        )

        def work(connection: Connection) -> list[Retry]:
            return [
                Retry(
                    job=row.job,
                    scope=Scope.of(row.tenant, row.user_id),
                    item=to_text(row.item),
                    attempts=row.attempts,
                    reason=to_text(row.reason),
                    retry_at=None if row.retry_at is None else from_micros(row.retry_at),
                    updated_at=from_micros(row.updated_at),
                )
                for row in connection.execute(wanted)
            ]

        return await self._journal.query(work)
