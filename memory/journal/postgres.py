"""The journal in PostgreSQL, through asyncpg.

Rows order appends (see `append`); advisory locks do the rest, all keyed by 64 bits of a digest:
transaction locks for work that must be alone, one session lock per lease on a connection of its
own, so that the server frees it when the holder's connection ends. The URL is handed to asyncpg as
it is, so that everything libpq understands in one (sslmode, host lists, …) works.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from urllib.parse import urlsplit

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from memory.errors import AlreadyRunning, ConfigurationError, TierUnavailable
from memory.journal.database import Dialect, Result, Work, answering
from memory.journal.migrations import is_current, migrate
from memory.journal.schema import owner_of
from memory.models import Scope

_log = logging.getLogger(__name__)

WRITERS = 8
READERS = 10
"""Connections of a pool of their own, so that whoever holds one for writing can always read."""
_SESSION = {
    "application_name": "trimem",
    # a client that stopped in the middle of a transaction must not hold up all others for ever
    "idle_in_transaction_session_timeout": "60000",
    # a machine that vanished must not keep its leases for ever
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
_NOT_DURABLE = text("SELECT set_config('synchronous_commit', 'off', true)")
_ALONE_NOT_DURABLE = text(
    "SELECT pg_advisory_xact_lock(:key), set_config('synchronous_commit', 'off', true)"
)
_ALONE = text("SELECT pg_advisory_xact_lock(:key)")
_WITH_SCOPES = text("SELECT pg_advisory_xact_lock_shared(:every), pg_advisory_xact_lock(:key)")


class PostgresDatabase:
    """A `Database` over a server."""

    dialect: Dialect = "postgresql"

    def __init__(self, url: str, *, timeout: timedelta) -> None:
        self._url = url
        self._seconds = timeout.total_seconds()
        parts = urlsplit(url)
        self.where = f"postgresql://{parts.hostname or ''}:{parts.port or 5432}{parts.path}"
        self._writing = self._engine(WRITERS, _SESSION)
        self._reading = self._engine(
            READERS, {**_SESSION, "default_transaction_read_only": "on"}, autocommit=True
        )

    def _engine(
        self, size: int, session: dict[str, str], *, autocommit: bool = False
    ) -> AsyncEngine:
        return create_async_engine(
            "postgresql+asyncpg://",
            async_creator=partial(self._connect, session),
            pool_size=size,
            max_overflow=0,
            pool_timeout=self._seconds,
            pool_pre_ping=True,
            hide_parameters=True,
            **({"isolation_level": "AUTOCOMMIT"} if autocommit else {}),
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, *, timeout: timedelta) -> AsyncIterator[PostgresDatabase]:
        """The database that `url` names; it must exist."""
        database = cls(url, timeout=timeout)
        try:
            with answering():
                await database._migrate()
            yield database
        finally:
            await database._writing.dispose()
            await database._reading.dispose()

    async def _connect(self, session: dict[str, str]) -> asyncpg.Connection:
        try:
            return await asyncpg.connect(
                self._url,
                timeout=self._seconds,
                command_timeout=self._seconds,
                server_settings=session,
            )
        except asyncpg.ClientConfigurationError as error:
            raise ConfigurationError(f"the journal's URL: {error}") from error
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise TierUnavailable("journal", f"{self.where}: {error}") from error
        except (OSError, TimeoutError) as error:
            said = str(error) or "no answer in time"
            raise TierUnavailable("journal", f"{self.where}: {said}") from error

    async def _migrate(self) -> None:
        async with self._writing.begin() as connection:
            if await connection.run_sync(is_current, self.where):
                return
            await connection.execute(_ALONE, {"key": _key("migration")})
            await connection.run_sync(migrate, self.where)

    async def write(
        self, work: Work[Result], *, alone: str | None = None, durable: bool = True
    ) -> Result:
        with answering():
            async with self._writing.begin() as connection:
                if alone is not None and not durable:
                    await connection.execute(_ALONE_NOT_DURABLE, {"key": _key(alone)})
                elif alone is not None:
                    await connection.execute(_ALONE, {"key": _key(alone)})
                elif not durable:
                    await connection.execute(_NOT_DURABLE)
                return await connection.run_sync(work)

    async def query(self, work: Work[Result]) -> Result:
        with answering():
            async with self._reading.connect() as connection:
                return await connection.run_sync(work)

    @asynccontextmanager
    async def transaction(self, scope: Scope | None) -> AsyncIterator[AsyncConnection]:
        every = _key("transaction")
        with answering():
            async with self._writing.begin() as connection:
                if scope is None:
                    await connection.execute(_ALONE, {"key": every})
                else:
                    key = _key(f"transaction {owner_of(scope).hex()}")
                    await connection.execute(_WITH_SCOPES, {"every": every, "key": key})
                yield connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        with answering():
            async with self._reading.connect() as connection:
                yield connection

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[None]:
        with answering():
            connection = await self._connect(_SESSION)
        try:
            got = await self._locked(connection, _key(f"lease {name}"))
            if not got:
                raise AlreadyRunning(f"{name!r} is held by another process")
            yield
        finally:
            try:  # the server would free it too, once it notices that the connection has ended
                await connection.execute("SELECT pg_advisory_unlock_all()")
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                _log.warning("the connection that held the lease %r was lost", name)
            finally:
                connection.terminate()

    async def _locked(self, connection: asyncpg.Connection, key: int) -> bool:
        try:
            with answering():
                return bool(await connection.fetchval("SELECT pg_try_advisory_lock($1)", key))
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise TierUnavailable("journal", f"{self.where}: {error}") from error

    async def version(self) -> str:
        async with self.read() as connection:
            version = (await connection.execute(text("SHOW server_version"))).scalar_one()
        return f"PostgreSQL {version}"


def _key(name: str) -> int:
    """The advisory lock of that name: a signed 64-bit number."""
    hashed = blake2b(f"trimem {name}".encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big", signed=True)
