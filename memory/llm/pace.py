"""How fast an endpoint is asked: so many requests a minute, and growing pauses after failures.

Pure: moments are seconds of any clock that never goes back.
"""

from __future__ import annotations

from datetime import timedelta

FIRST_PAUSE = timedelta(milliseconds=500)
LONGEST_PAUSE = timedelta(seconds=30)


class Pace:
    """At most `per_minute` requests in a minute, evenly; None: as fast as they come.

    A bucket of one token that fills with the rate. `turn` gives places in a queue, so that
    callers who wait at the same time do not go at the same time.
    """

    def __init__(self, per_minute: int | None) -> None:
        self._apart = 60 / per_minute if per_minute else 0.0
        self._next = float("-inf")

    def turn(self, now: float) -> float:
        """Seconds that the caller, who comes at `now`, has to wait before it asks."""
        goes = max(now, self._next)
        self._next = goes + self._apart
        return goes - now


def pause(attempt: int, wanted: timedelta | None, chance: float) -> timedelta:
    """How long to wait after failed attempt 0, 1, …, before the next one.

    As long as the server says, and a little more by `chance` (0 to 1), lest all who were sent away
    come back at once; else a pause that doubles, of which chance takes up to a half.
    """
    if wanted is not None:
        return wanted + chance * FIRST_PAUSE
    longest: timedelta = min(FIRST_PAUSE * 2 ** min(attempt, 16), LONGEST_PAUSE)
    return longest * (1 - chance / 2)
