"""Snapshots: every context that was built can be shown, replayed to the byte, and compared.

Reading one asks the journal and nothing else: no tier, no embedder, no language model; so a
replay gives what was recorded, whatever has happened to the memory since.
"""

from __future__ import annotations

from datetime import datetime

from memory.codec import digest as digest_of
from memory.errors import Corrupt
from memory.journal import SnapshotInfo, SnapshotStore
from memory.models import Context, Moment, Scope, Value
from memory.snapshots.diff import Diff, diff
from memory.snapshots.document import bytes_of, context_of, parts_of


class Replay(Value):
    """What was recorded, and its proof.

    `data` is the canonical JSON document of the context (memory.snapshots.document); `digest` is
    the hash that was stored beside it, which `data` was checked to have: 32 hex digits of BLAKE2b.
    """

    snapshot_id: str
    session: str
    created_at: Moment
    data: bytes
    digest: str
    verified: bool

    @property
    def context(self) -> Context:
        """The context as it was built. Raises SchemaTooNew, Corrupt."""
        return context_of(self.data, snapshot_id=self.snapshot_id)


class Snapshots:
    """The snapshots of everybody."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store

    async def record(
        self, scope: Scope, session: str, context: Context, *, snapshot_id: str, now: datetime
    ) -> None:
        """Keep a context; durable when this returns. It follows the session's newest snapshot.

        Raises InvalidInput naming the field that cannot be kept (nothing is stored then), Conflict
        when the id is another snapshot's, TierUnavailable.
        """
        parts = parts_of(context)
        await self._store.save(
            scope,
            session,
            snapshot_id=snapshot_id,
            created_at=now,
            parts=parts,
            digest=digest_of(bytes_of(parts)),
        )

    async def replay(self, scope: Scope, snapshot_id: str) -> Replay:
        """The recorded bytes, checked against their hash. Changes nothing.

        Raises NotFound, and Corrupt when they are not what was recorded. Bytes of a newer schema
        are given as they are.
        """
        stored = await self._store.load(scope, snapshot_id)
        data = bytes_of(stored.parts)
        if digest_of(data) != stored.digest:
            raise Corrupt(f"snapshot {snapshot_id!r} does not match its hash {stored.digest}")
        return Replay(
            snapshot_id=stored.id,
            session=stored.session,
            created_at=stored.created_at,
            data=data,
            digest=stored.digest,
            verified=True,
        )

    async def show(self, scope: Scope, snapshot_id: str) -> Context:
        """The context, equal to what was recorded. Raises NotFound, Corrupt, SchemaTooNew."""
        return (await self.replay(scope, snapshot_id)).context

    async def newest(self, scope: Scope, session: str) -> str | None:
        """The id of the session's newest snapshot; None while it has none."""
        return await self._store.head(scope, session)

    async def diff(self, scope: Scope, before: str, after: str) -> Diff:
        """What changed between two of the user's contexts. Raises as `show` does."""
        return diff(await self.show(scope, before), await self.show(scope, after))

    async def log(
        self,
        scope: Scope,
        session: str | None = None,
        *,
        limit: int = 50,
        before: str | None = None,
    ) -> list[SnapshotInfo]:
        """The newest snapshots first, of one session or of all; `before` gives older ones than it.

        Loads no contexts. Raises NotFound when there is no snapshot `before`.
        """
        return await self._store.log(scope, session, limit, before)
