"""How much of an episode is left: computed when asked, never written back.

    retention = importance · 0.5 ^ (idle / half_life)

the exponential forgetting curve (Ebbinghaus 1885, in the half-life form of Settles & Meeder 2016).
`idle` is the time since the episode was learnt or last used, whichever is later, so a job that runs
twice, or not at all, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from memory.models import Episode


def retention(episode: Episode, now: datetime, half_life: timedelta) -> float:
    """What is left at `now`, in [0, importance]. A date in the future counts as now."""
    used = max(episode.recorded_at, episode.last_access or episode.recorded_at)
    idle = max(timedelta(0), now - used)
    return float(episode.importance * 0.5 ** (idle / half_life))


def faded(
    episodes: Iterable[Episode], now: datetime, *, half_life: timedelta, floor: float
) -> list[Episode]:
    """The episodes whose retention is below `floor`, pinned and archived ones apart; by id."""
    below = (
        episode
        for episode in episodes
        if not (episode.pinned or episode.archived) and retention(episode, now, half_life) < floor
    )
    return sorted(below, key=lambda episode: episode.id)
