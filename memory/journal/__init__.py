"""The journal: the one commit point. Everything else can be rebuilt from it."""

from memory.journal.events import Event, NewEvent, Parked, SessionInfo
from memory.journal.journal import Journal
from memory.journal.snapshot_store import SnapshotInfo, SnapshotStore, StoredSnapshot

__all__ = [
    "Event",
    "Journal",
    "NewEvent",
    "Parked",
    "SessionInfo",
    "SnapshotInfo",
    "SnapshotStore",
    "StoredSnapshot",
]
