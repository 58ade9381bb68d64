"""The journal in one SQLite file.

    journal.db          WAL, synchronous FULL: a commit that returned survives a power cut
    journal.db.NAME.lock  one file per lease, locked with flock: the kernel frees it with its holder

Writes take turns: inside the process under an asyncio lock (first come, first served), between
processes by BEGIN IMMEDIATE and SQLite's own waiting. One thread owns the writing connection of
`write`; `transaction` has an asynchronous one. Reading connections refuse to write. Reads that are
asked for together go to their thread together, in one transaction: the way there and back takes
longer than most.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from memory.errors import AlreadyRunning, ConfigurationError, UnsupportedPlatform
from memory.journal.database import Dialect, Result, Work, answering
from memory.journal.migrations import is_current, migrate
from memory.models import Scope

READERS = 4
"""Reading connections, and the threads that use them."""
_PATIENCE = 1
"""Milliseconds that one try for the right to write takes."""


_SHARED: dict[str, Any] = {
    "connect_args": {"isolation_level": None, "check_same_thread": False},
    "hide_parameters": True,
}


class SqliteDatabase:
    """A `Database` over one file."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, *, timeout: timedelta) -> None:
        self.where = str(path)
        self._path = path
        self._asked: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._turn = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None
        busy = round(timeout.total_seconds() * 1000)
        self._writing = create_engine(_url(path, "pysqlite"), pool_size=1, **_SHARED)
        self._reading = create_engine(_url(path, "pysqlite"), pool_size=READERS, **_SHARED)
        self._writing_async = create_async_engine(_url(path, "aiosqlite"), pool_size=1, **_SHARED)
        self._reading_async = create_async_engine(
            _url(path, "aiosqlite"), pool_size=READERS, **_SHARED
        )
        immediately, deferred = partial(_begin, how="BEGIN IMMEDIATE"), partial(_begin, how="BEGIN")
        _prepare(self._writing, busy, begin=partial(_begin_soon, busy=busy))
        _prepare(self._reading, busy, begin=deferred, query_only=True)
        _prepare(self._writing_async.sync_engine, busy, begin=immediately)
        _prepare(self._reading_async.sync_engine, busy, begin=None, query_only=True)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="journal-write")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="journal-read")

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, *, timeout: timedelta) -> AsyncIterator[SqliteDatabase]:
        """The file at `path`, made with its folder when missing, readable by its owner only."""
        with answering():
            _make_private(path)
        database = cls(path, timeout=timeout)
        try:
            with answering():
                await database._migrate(timeout)
            yield database
        finally:
            await database._close()

    async def _migrate(self, timeout: timedelta) -> None:
        async with asyncio.timeout(timeout.total_seconds()):
            while True:
                try:
                    async with self.lease("migration"):
                        await self._run(self._writer, self._migrate_file)
                        return
                except AlreadyRunning:
                    await asyncio.sleep(0.005)

    def _migrate_file(self) -> None:
        with self._writing.connect() as connection:
            _set_pragma(connection, "journal_mode=WAL")  # kept in the file
            with connection.begin():
                if not is_current(connection, self.where):
                    migrate(connection, self.where)

    async def write(
        self, work: Work[Result], *, alone: str | None = None, durable: bool = True
    ) -> Result:
        self._refuse_nested()
        with answering():
            async with self._turn:
                return await self._run(self._writer, self._write, work, durable)

    def _write(self, work: Work[Result], durable: bool) -> Result:
        with self._writing.connect() as connection:
            if durable:
                return _in_transaction(connection, work)
            _set_pragma(connection, "synchronous=NORMAL")
            try:
                return _in_transaction(connection, work)
            finally:
                _set_pragma(connection, "synchronous=FULL")

    async def query(self, work: Work[Result]) -> Result:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._asked.append((work, answer))
        if len(self._asked) == 1:
            loop.call_soon(self._ask_together, loop)
        with answering():
            return await answer

    def _ask_together(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send all that was asked for in this turn of the loop on its way."""
        asked = [(work, answer) for work, answer in self._asked if not answer.done()]
        self._asked = []
        waiting = [answer for _, answer in asked]
        try:
            done = loop.run_in_executor(self._readers, self._query, [work for work, _ in asked])
        except RuntimeError as error:  # the threads have been shut down
            _hand_out(waiting, [_Raised(error)] * len(waiting))
        else:
            done.add_done_callback(lambda answers: _hand_out(waiting, _all_of(answers, waiting)))

    def _query(self, works: Sequence[Work[Any]]) -> list[Any]:
        """The answer of each, or what it raised. They see one state of the journal; where one of
        them fails, each is asked by itself."""
        try:
            with self._reading.connect() as connection:
                return _in_transaction(connection, lambda same: [work(same) for work in works])
        except Exception as error:
            if len(works) == 1:
                return [_Raised(error)]
        return [answer for work in works for answer in self._query([work])]

    @staticmethod
    async def _run(
        threads: ThreadPoolExecutor, function: Callable[..., Result], *arguments: object
    ) -> Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, partial(function, *arguments))

    @asynccontextmanager
    async def transaction(self, scope: Scope | None) -> AsyncIterator[AsyncConnection]:
        self._refuse_nested()
        with answering():
            async with self._turn:
                self._holder = asyncio.current_task()
                try:
                    async with self._writing_async.begin() as connection:
                        yield connection
                finally:
                    self._holder = None

    def _refuse_nested(self) -> None:
        if self._holder is not None and self._holder is asyncio.current_task():
            raise RuntimeError("a write inside a transaction of the same task would wait for ever")

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        with answering():
            async with self._reading_async.connect() as connection:
                yield connection

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[None]:
        descriptor = os.open(self._lock_path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor, name)
            yield
        finally:
            os.close(descriptor)

    def _lock_path(self, name: str) -> Path:
        plain = name.isascii() and name.replace("-", "").isalnum() and len(name) <= 40
        part = name if plain else blake2b(name.encode(), digest_size=16).hexdigest()
        return self._path.with_name(f"{self._path.name}.{part}.lock")

    async def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    async def _close(self) -> None:
        await self._writing_async.dispose()
        await self._reading_async.dispose()
        await self._run(self._writer, self._writing.dispose)
        await asyncio.to_thread(self._readers.shutdown)
        await asyncio.to_thread(self._writer.shutdown)
        self._reading.dispose()


class _Raised(NamedTuple):
    """What a read raised, in the place of its answer."""

    error: BaseException


def _all_of(
    answers: asyncio.Future[list[Any]], waiting: Sequence[asyncio.Future[Any]]
) -> Sequence[Any]:
    """The answers that came; where the connection itself failed, each is that failure."""
    if answers.cancelled():
        return [_Raised(asyncio.CancelledError())] * len(waiting)
    error = answers.exception()
    return [_Raised(error)] * len(waiting) if error else answers.result()


def _hand_out(waiting: Sequence[asyncio.Future[Any]], answers: Sequence[Any]) -> None:
    for each, answer in zip(waiting, answers, strict=True):
        if each.done():  # whoever asked has gone
            continue
        if isinstance(answer, _Raised):
            each.set_exception(_settable(answer.error))
        else:
            each.set_result(answer)


def _settable(error: BaseException) -> BaseException:
    """The error, or one in its place where a future takes it not: whoever comes after it in the
    row would never hear of their answers."""
    if not isinstance(error, StopIteration):
        return error
    instead = RuntimeError("a read raised StopIteration")
    instead.__cause__ = error
    return instead


def _in_transaction(connection: Connection, work: Work[Result]) -> Result:
    try:
        with connection.begin():
            return work(connection)
    except BaseException:
        # A statement that was not read to its end stays open for as long as the error is known,
        # and whoever has this connection next would see the database as it was then.
        connection.invalidate()
        raise


def _set_pragma(connection: Connection, pragma: str) -> None:
    """Below SQLAlchemy, because it must be outside of a transaction."""
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _url(path: Path, driver: str) -> URL:
    return URL.create(f"sqlite+{driver}", database=str(path))


def _prepare(
    engine: Engine,
    busy: int,
    *,
    begin: Callable[[Connection], None] | None,
    query_only: bool = False,
) -> None:
    """Pragmas for each new connection, and transactions that begin the way we want.

    The driver's own idea of when to begin (before the first change, deferred) would let two
    writers read the same head and then fail with SQLITE_BUSY, which no timeout waits for.
    """

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={busy}")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA temp_store=MEMORY")
        cursor.execute("PRAGMA cache_size=-16000")
        cursor.execute(f"PRAGMA journal_size_limit={64 << 20}")
        if query_only:
            cursor.execute("PRAGMA query_only=ON")
        cursor.close()

    if begin is not None:
        event.listen(engine, "begin", begin)


def _begin(connection: Connection, how: str) -> None:
    connection.exec_driver_sql(how)


def _begin_soon(connection: Connection, busy: int) -> None:
    """BEGIN IMMEDIATE, asking again every millisecond or two while another process writes.

    SQLite's own waiting asks less often the longer it has waited, up to every 100 ms: among
    busy writers whoever waits longest is then the least likely to be next. It stays in force for
    everything else, such as the moment in which the last process before us closes the file.
    """
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={_PATIENCE}")
    try:
        for tries_left in range(busy // _PATIENCE, -1, -1):
            try:
                cursor.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not tries_left or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
    finally:
        cursor.execute(f"PRAGMA busy_timeout={busy}")
        cursor.close()


def _make_private(path: Path) -> None:
    if path.is_dir():
        raise ConfigurationError(f"the journal {path} is a folder; a file is wanted")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _lock(descriptor: int, name: str) -> None:
    if sys.platform == "win32":
        raise UnsupportedPlatform("a journal in a file needs POSIX locks; use PostgreSQL here")
    import fcntl  # not on every platform

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        raise AlreadyRunning(f"{name!r} is held by another process") from error
