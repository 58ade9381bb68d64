"""Every context that was built: kept, shown, replayed to the byte, compared."""

from memory.snapshots.diff import Diff, Move, diff
from memory.snapshots.document import context_of, parts_of
from memory.snapshots.snapshots import Replay, Snapshots

__all__ = ["Diff", "Move", "Replay", "Snapshots", "context_of", "diff", "parts_of"]
