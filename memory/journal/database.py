"""What the journal asks of a database, and the one place where driver errors become ours.

A unit of work is a plain function of a SQLAlchemy `Connection`. The same function runs over both
stores: over SQLite in a thread of its own (one hop for the whole unit, where an asynchronous
driver needs several for each statement), over PostgreSQL on the event loop through asyncpg.
`transaction` and `read` give an `AsyncConnection` where a unit has to await between statements.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Literal, Protocol, TypeVar, cast

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import AgentMemoryError, Conflict, Corrupt, TierUnavailable
from memory.models import Scope

Dialect = Literal["sqlite", "postgresql"]
Result = TypeVar("Result")
Work = Callable[[Connection], Result]


class Database(Protocol):
    """One SQL database, open and migrated."""

    dialect: Dialect
    where: str
    """What it is, for people: a path or host and database, never with a password."""

    async def write(
        self, work: Work[Result], *, alone: str | None = None, durable: bool = True
    ) -> Result:
        """`work` in one transaction, committed when this returns.

        Over SQLite all writes take turns. Over PostgreSQL only those with the same name in
        `alone` do; the lock is taken before the first statement of `work`.

        With `durable`, it is on the disk. Without, a power cut (not a killed process) may undo
        the last moments, in order: never this one without all that came after it.
        """
        ...

    async def query(self, work: Work[Result]) -> Result:
        """`work` on a connection that only reads."""
        ...

    def transaction(self, scope: Scope | None) -> AbstractAsyncContextManager[AsyncConnection]: ...

    def read(self) -> AbstractAsyncContextManager[AsyncConnection]: ...

    def lease(self, name: str) -> AbstractAsyncContextManager[None]: ...

    async def version(self) -> str:
        """The server's or library's name and version."""
        ...


@contextmanager
def answering() -> Iterator[None]:
    """Driver errors inside become Conflict, Corrupt or TierUnavailable; ours pass through.

    A statement that the database refuses to understand is a mistake of ours and passes as it is.
    """
    try:
        yield
    except IntegrityError as error:
        raise Conflict(f"journal: {_said(error.orig)}") from error
    except ProgrammingError:
        raise
    except DBAPIError as error:
        raise _ours(error.orig) from error
    except sqlite3.Error as error:
        raise _ours(error) from error
    except PoolTimeout as error:
        raise TierUnavailable("journal", "every connection stayed busy") from error
    except TimeoutError as error:
        raise TierUnavailable("journal", "no answer in time") from error
    except OSError as error:
        raise TierUnavailable("journal", _said(error)) from error


def _ours(error: BaseException | None) -> AgentMemoryError:
    if type(error) is sqlite3.DatabaseError:  # the base class itself: malformed, or no database
        return Corrupt(f"journal: {_said(error)}")
    return TierUnavailable("journal", _said(error))


def _said(error: BaseException | None) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def insert_into(connection: Connection | AsyncConnection, table: Table) -> sqlite.Insert:
    """An INSERT that knows `on_conflict_do_nothing` and `on_conflict_do_update`.

    Both stores spell them alike; SQLAlchemy has a class for each.
    """
    if connection.dialect.name == "postgresql":
        return cast(sqlite.Insert, postgresql.insert(table))
    return sqlite.insert(table)
