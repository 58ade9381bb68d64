"""A URL decides where the journal lives."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

from memory.errors import ConfigurationError
from memory.journal.database import Database
from memory.journal.sqlite import SqliteDatabase

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")


def open_database(url: str, *, timeout: timedelta) -> AbstractAsyncContextManager[Database]:
    """`sqlite:///PATH` (a file, made when missing) or `postgresql://…`, migrated when opened.

    Raises ConfigurationError for any other URL, SchemaTooNew for a database that a newer version
    wrote, TierUnavailable when it does not answer within `timeout`.
    """
    if url.startswith(_POSTGRES):
        # a laptop's journal must not wait for the other store's driver to be loaded
        from memory.journal.postgres import PostgresDatabase

        return PostgresDatabase.open(url, timeout=timeout)
    if not url.startswith(_SQLITE):
        scheme = url.partition(":")[0]
        raise ConfigurationError(f"a journal is sqlite:///PATH or postgresql://…, not {scheme!r}")
    path = url.removeprefix(_SQLITE)
    if path in ("", ":memory:") or path.startswith("file:"):
        raise ConfigurationError("a journal has to be a file: sqlite:///PATH")
    return SqliteDatabase.open(Path(path), timeout=timeout)
