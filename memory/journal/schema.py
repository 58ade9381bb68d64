"""The journal's tables, on one MetaData that the other stores add theirs to.

    owners     who has anything here: the owner digest, and the two names that it stands for
    events     append-only; `position` orders everything, `seq` orders the messages of a session
    sessions   the head of each session: how many messages, when, with whom
    head       one row: the newest position; updating it is the lock that orders appends
    cursors    how far each projection has read
    parked     events that a projection has set aside, with the reason
    meta       small JSON values by name
    objects    content-addressed bytes that snapshots are made of, per owner
    snapshots  a flat list of object ids, with the snapshot it followed

Three rules keep every store able to hold everything: text that people or models wrote is bytes
(`codec`), times are integer microseconds (`times`), and an owner is a digest of fixed size, because
two names of 512 characters do not fit into an index of PostgreSQL.
"""

from __future__ import annotations

from hashlib import blake2b

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from memory.codec import encode
from memory.models import Scope

metadata = MetaData()

Serial = BigInteger().with_variant(Integer(), "sqlite")
"""The type of a generated integer key: SQLite only generates for INTEGER."""


def owner_of(scope: Scope) -> bytes:
    """The 16 bytes that stand for a tenant's user in every table."""
    return blake2b(encode(["owner", scope.tenant, scope.user]), digest_size=16).digest()


def owner_column() -> Column[bytes]:
    """Whose row it is: `owner_of(scope)`. Part of every key and of every WHERE."""
    return Column("owner", LargeBinary(16), nullable=False)


def moment_column(name: str, *, nullable: bool = False) -> Column[int]:
    """A time, in microseconds since 1970 (`times.to_micros`)."""
    return Column(name, BigInteger, nullable=nullable)


def bytes_column(name: str, *, nullable: bool = False) -> Column[bytes]:
    """Text or JSON as the bytes of `codec.encode`, so that any string comes back unharmed."""
    return Column(name, LargeBinary, nullable=nullable)


schema_versions = Table(
    "schema_versions", metadata, Column("version", Integer, primary_key=True, autoincrement=False)
)

owners = Table(
    "owners",
    metadata,
    owner_column(),
    Column("tenant", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    PrimaryKeyConstraint("owner"),
    sqlite_with_rowid=False,
)

events = Table(
    "events",
    metadata,
    Column("position", Serial, primary_key=True, autoincrement=False),
    owner_column(),
    Column("session", Text),
    Column("seq", BigInteger),
    Column("kind", Text, nullable=False),
    bytes_column("key"),
    bytes_column("body"),
    moment_column("event_time"),
    moment_column("recorded_at"),
)
Index("events_key", events.c.key, events.c.owner, unique=True)
Index(
    "events_seq",
    events.c.owner,
    events.c.session,
    events.c.seq,
    unique=True,
    sqlite_where=events.c.seq.is_not(None),
    postgresql_where=events.c.seq.is_not(None),
)
Index("events_kind", events.c.owner, events.c.kind, events.c.position)

sessions = Table(
    "sessions",
    metadata,
    owner_column(),
    Column("session", Text, nullable=False),
    Column("agent", Text),
    Column("messages", BigInteger, nullable=False),
    moment_column("first_event_time"),
    moment_column("last_event_time"),
    moment_column("updated_at"),
    PrimaryKeyConstraint("owner", "session"),
    sqlite_with_rowid=False,
)

head = Table(
    "head",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
)

cursors = Table(
    "cursors",
    metadata,
    Column("projection", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    moment_column("updated_at"),
)

parked = Table(
    "parked",
    metadata,
    Column("projection", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    bytes_column("reason"),
    Column("attempts", Integer, nullable=False),
    moment_column("updated_at"),
    PrimaryKeyConstraint("projection", "position"),
)

meta = Table("meta", metadata, Column("key", Text, primary_key=True), bytes_column("value"))

objects = Table(
    "objects",
    metadata,
    Column("id", Serial, primary_key=True),
    owner_column(),
    Column("hash", LargeBinary(16), nullable=False),
    bytes_column("data"),
)
Index("objects_hash", objects.c.owner, objects.c.hash, unique=True)

snapshots = Table(
    "snapshots",
    metadata,
    Column("position", Serial, primary_key=True),
    owner_column(),
    Column("id", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("parent", Text),
    moment_column("created_at"),
    bytes_column("manifest"),
    Column("digest", Text, nullable=False),
    sqlite_autoincrement=True,
)
Index("snapshots_id", snapshots.c.owner, snapshots.c.id, unique=True)
Index("snapshots_session", snapshots.c.owner, snapshots.c.session, snapshots.c.position)
