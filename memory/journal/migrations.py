"""The schema's versions, in order. A database is brought up to date when it is opened.

Version 1 makes every table of the shared MetaData. A later version is a function that changes
what an earlier one made; it must not rely on `schema.py` as it is today.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from sqlalchemy import Connection, func, inspect, select, text

from memory.errors import SchemaTooNew
from memory.journal.schema import head, metadata, schema_versions

TABLE_MODULES = (
    "memory.journal.episode_tables",
    "memory.journal.retries",
    "memory.semantic.sql",
)
"""Modules that add tables to the MetaData; imported late, because they import the journal."""


def _create_all(connection: Connection) -> None:
    for module in TABLE_MODULES:
        import_module(module)
    metadata.create_all(connection)
    connection.execute(head.insert(), {"one": 1, "position": 0})


def _retries_and_pins(connection: Connection) -> None:
    """Two tables more. A database that was made today has them already."""
    micros, blob = "BIGINT", "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    for statement in (
        f"CREATE TABLE IF NOT EXISTS retries (job TEXT NOT NULL, owner {blob} NOT NULL, "
        f"item {blob} NOT NULL, attempts INTEGER NOT NULL, reason {blob} NOT NULL, "
        f"retry_at {micros}, updated_at {micros} NOT NULL, PRIMARY KEY (job, owner, item))",
        "CREATE INDEX IF NOT EXISTS retries_due ON retries (job, retry_at)",
        f"CREATE TABLE IF NOT EXISTS fact_pins (owner {blob} NOT NULL, subject_key TEXT NOT NULL, "
        "predicate_key TEXT NOT NULL, object_key TEXT NOT NULL, "
        "PRIMARY KEY (owner, subject_key, predicate_key, object_key))",
    ):
        connection.execute(text(statement))


def _names(connection: Connection) -> None:
    """The other forms of names, of the facts that are there. Those of today may have them."""
    blob = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    connection.execute(
        text(
            f"CREATE TABLE IF NOT EXISTS fact_names (owner {blob} NOT NULL, form TEXT NOT NULL, "
            "name_key TEXT NOT NULL, PRIMARY KEY (owner, form, name_key))"
        )
    )
    import_module("memory.semantic.sql").fill_names(connection)


def _editions(connection: Connection) -> None:
    """How often a user's episodes changed other than by more of them, and an index of each user's.
    Those of today may have them."""
    columns = {column["name"] for column in inspect(connection).get_columns("episode_owners")}
    if "edition" not in columns:
        connection.execute(
            text("ALTER TABLE episode_owners ADD COLUMN edition BIGINT NOT NULL DEFAULT 0")
        )
    connection.execute(text("CREATE INDEX IF NOT EXISTS episodes_owner ON episodes (owner_n, n)"))


def _several_spaces(connection: Connection) -> None:
    """An episode may have a vector in each of several spaces. Those of today may already."""
    key = inspect(connection).get_pk_constraint("episode_vectors")
    if "space" in key["constrained_columns"]:
        return
    if connection.dialect.name == "sqlite":  # which cannot change a key
        statements = [
            "CREATE TABLE vectors_of_spaces (n BIGINT NOT NULL, space BIGINT NOT NULL, "
            "vector BLOB NOT NULL, PRIMARY KEY (n, space))",
            "INSERT INTO vectors_of_spaces SELECT n, space, vector FROM episode_vectors ORDER BY n",
            "DROP TABLE episode_vectors",
            "ALTER TABLE vectors_of_spaces RENAME TO episode_vectors",
        ]
    else:
        statements = [
            f"ALTER TABLE episode_vectors DROP CONSTRAINT {key['name']}, "
            "ADD PRIMARY KEY (n, space)",
        ]
    for statement in statements:
        connection.execute(text(statement))


MIGRATIONS: tuple[tuple[int, Callable[[Connection], None]], ...] = (
    (1, _create_all),
    (2, _retries_and_pins),
    (3, _names),
    (4, _several_spaces),
    (5, _editions),
)
NEWEST = MIGRATIONS[-1][0]


def version_of(connection: Connection) -> int:
    """The schema's version; 0 for a database that has none yet."""
    if not inspect(connection).has_table(schema_versions.name):
        return 0
    version = connection.execute(select(func.max(schema_versions.c.version))).scalar()
    return version or 0


def is_current(connection: Connection, where: str) -> bool:
    """Whether nothing is left to do. Raises SchemaTooNew for a database from the future."""
    version = version_of(connection)
    if version > NEWEST:
        raise SchemaTooNew(
            f"the journal {where} has schema version {version}; "
            f"this trimem knows versions up to {NEWEST}"
        )
    return version == NEWEST


def migrate(connection: Connection, where: str) -> None:
    """Every version that is missing, inside the caller's transaction and lock."""
    if is_current(connection, where):
        return
    before = version_of(connection)
    for version, change in MIGRATIONS:
        if version > before:
            change(connection)
            connection.execute(schema_versions.insert(), {"version": version})
