"""Snapshots in the journal: content-addressed objects and a flat list of their ids.

An object is stored once per owner, however many snapshots have it; a snapshot is a row with
(role, object id) pairs in order, and the id of the snapshot it followed. There are no chains of
deltas: any snapshot can be read, and any other dropped, without the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import TypeVar

from sqlalchemy import Connection, bindparam, insert, select

from memory.codec import decode, encode
from memory.errors import Conflict, Corrupt, NotFound
from memory.journal.journal import Journal
from memory.journal.schema import objects, owner_of, snapshots
from memory.journal.statements import among, compiled
from memory.models import Moment, Scope, Value, valid_name
from memory.times import from_micros, to_micros

Item = TypeVar("Item")


class SnapshotInfo(Value):
    """A snapshot from outside. `parent` is the one it followed in its session or fork."""

    id: str
    session: str
    parent: str | None
    created_at: Moment
    digest: str


class StoredSnapshot(SnapshotInfo):
    """A snapshot with its parts, (role, bytes) in the order they were saved in."""

    parts: tuple[tuple[str, bytes], ...]


class SnapshotStore:
    """The snapshots of everybody, in the journal's database."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def save(
        self,
        scope: Scope,
        session: str,
        *,
        snapshot_id: str,
        created_at: datetime,
        parts: Sequence[tuple[str, bytes]],
        digest: str,
        parent: str | None = None,
    ) -> None:
        """Keeps it; parts that are already there cost an id each. Without a `parent` it follows
        the session's newest.

        It is there when this returns, whoever is killed; a power cut may undo it until the next
        durable write, which is the turn's own append. Saving the same again changes nothing.
        Raises Conflict when there is another snapshot under this id.
        """
        owner = owner_of(scope)
        hashed = [(role, object_hash(data), data) for role, data in parts]
        row = {
            "owner": owner,
            "id": snapshot_id,
            "session": valid_name("session", session),
            "created_at": to_micros(created_at),
            "digest": digest,
        }

        def work(connection: Connection) -> None:
            ids = _ids_of(connection, owner, {key: data for _, key, data in hashed})
            manifest = encode([[role, ids[key]] for role, key, _ in hashed])
            newest = {"owner": owner, "session": session}
            follows = _NEWEST(connection).value(connection, newest) if parent is None else parent
            added = {**row, "parent": follows, "manifest": manifest}
            _ADD_SNAPSHOT(connection).run(connection, added)

        try:
            await self._journal.write(work, alone=f"snapshots {owner.hex()}", durable=False)
        except Conflict as error:
            if await self._digest(scope, snapshot_id) != digest:
                raise Conflict(f"there is another snapshot {snapshot_id!r}") from error

    async def _digest(self, scope: Scope, snapshot_id: str) -> str | None:
        mine = {"owner": owner_of(scope), "id": snapshot_id}

        def work(connection: Connection) -> str | None:
            digest: str | None = connection.scalar(_DIGEST, mine)
            return digest

        return await self._journal.query(work)

    async def load(self, scope: Scope, snapshot_id: str) -> StoredSnapshot:
        """The snapshot, after every object's hash was checked.

        Raises NotFound, and Corrupt naming the object that is missing or not what it was.
        """
        owner = owner_of(scope)

        def work(connection: Connection) -> StoredSnapshot:
            row = connection.execute(_WHOLE, {"owner": owner, "id": snapshot_id}).first()
            if row is None:
                raise NotFound(f"no snapshot {snapshot_id!r}")
            manifest = decode(row.manifest)
            bodies = _bodies(connection, owner, [number for _, number in manifest])
            parts = []
            for role, number in manifest:
                if number not in bodies:
                    raise Corrupt(f"snapshot {snapshot_id!r}: object {number} ({role}) is missing")
                key, data = bodies[number]
                if object_hash(data) != key:
                    raise Corrupt(
                        f"snapshot {snapshot_id!r}: object {number} ({role}) "
                        f"does not match its hash {key.hex()}"
                    )
                parts.append((role, data))
            return StoredSnapshot(
                id=row.id,
                session=row.session,
                parent=row.parent,
                created_at=from_micros(row.created_at),
                digest=row.digest,
                parts=tuple(parts),
            )

        return await self._journal.query(work)

    async def log(
        self,
        scope: Scope,
        session: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[SnapshotInfo]:
        """The newest first; with `before`, those older than that snapshot. Loads no bodies.

        Raises NotFound when there is no snapshot `before`.
        """
        owner = owner_of(scope)
        wanted = (
            select(*_INFO)
            .where(snapshots.c.owner == owner)
            .order_by(snapshots.c.position.desc())
            .limit(limit)
        )
        if session is not None:
            wanted = wanted.where(snapshots.c.session == session)

        def work(connection: Connection) -> list[SnapshotInfo]:
            page = wanted
            if before is not None:
                position = connection.scalar(_POSITION, {"owner": owner, "id": before})
                if position is None:
                    raise NotFound(f"no snapshot {before!r}")
                page = wanted.where(snapshots.c.position < position)
            return [
                SnapshotInfo(
                    id=row.id,
                    session=row.session,
                    parent=row.parent,
                    created_at=from_micros(row.created_at),
                    digest=row.digest,
                )
                for row in connection.execute(page)
            ]

        return await self._journal.query(work)

    async def head(self, scope: Scope, session: str) -> str | None:
        """The session's newest snapshot; None while it has none."""
        mine = {"owner": owner_of(scope), "session": session}

        def work(connection: Connection) -> str | None:
            newest: str | None = _NEWEST(connection).value(connection, mine)
            return newest

        return await self._journal.query(work)


def object_hash(data: bytes) -> bytes:
    """The 16 bytes that an object is stored under."""
    return blake2b(data, digest_size=16).digest()


_SLICE = 1_000
"""Objects looked up in one statement."""
_INFO = tuple(snapshots.c[name] for name in SnapshotInfo.model_fields)
_MINE = (snapshots.c.owner == bindparam("owner"), snapshots.c.id == bindparam("id"))
_ADD_SNAPSHOT = compiled(
    lambda _: insert(snapshots).values(
        {each.name: bindparam(each.name) for each in snapshots.c if not each.primary_key}
    )
)
_DIGEST = select(snapshots.c.digest).where(*_MINE)
_POSITION = select(snapshots.c.position).where(*_MINE)
_NEWEST = compiled(
    lambda _: (
        select(snapshots.c.id)
        .where(snapshots.c.owner == bindparam("owner"), snapshots.c.session == bindparam("session"))
        .order_by(snapshots.c.position.desc())
        .limit(1)
    )
)
_WHOLE = select(*_INFO, snapshots.c.manifest).where(*_MINE)
_KNOWN = compiled(
    lambda dialect: select(objects.c.hash, objects.c.id).where(
        objects.c.owner == bindparam("owner"), among(objects.c.hash, "hashes", dialect)
    )
)
_ADD = insert(objects).returning(objects.c.hash, objects.c.id)  # in no order: many in a statement
_BODIES = select(objects.c.id, objects.c.hash, objects.c.data).where(
    objects.c.owner == bindparam("owner"), objects.c.id.in_(bindparam("ids", expanding=True))
)


def _ids_of(connection: Connection, owner: bytes, wanted: dict[bytes, bytes]) -> dict[bytes, int]:
    """The ids of these objects (data by hash), after adding those that are new."""
    ids: dict[bytes, int] = {}
    for hashes in _sliced(list(wanted)):
        found = _KNOWN(connection).rows(connection, {"owner": owner, "hashes": hashes})
        ids.update((bytes(key), number) for key, number in found)
    new = [key for key in wanted if key not in ids]
    if new:
        rows = [{"owner": owner, "hash": key, "data": wanted[key]} for key in new]
        ids.update((key, number) for key, number in connection.execute(_ADD, rows))
    return ids


def _bodies(
    connection: Connection, owner: bytes, ids: Sequence[int]
) -> dict[int, tuple[bytes, bytes]]:
    found: dict[int, tuple[bytes, bytes]] = {}
    for part in _sliced(list(dict.fromkeys(ids))):
        rows = connection.execute(_BODIES, {"owner": owner, "ids": part})
        found.update((number, (key, data)) for number, key, data in rows)
    return found


def _sliced(items: list[Item]) -> Iterator[list[Item]]:
    return (items[start : start + _SLICE] for start in range(0, len(items), _SLICE))
