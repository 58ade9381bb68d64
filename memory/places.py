"""Where every episode of a user stands in what was said: arrays, by place. Pure.

A place is a position in the order of sessions, messages and their pieces. The arrays are read from
the journal once, and then only what came since (`lexical`): some fifty bytes an episode, so that
what stands beside an episode, and how long it is, is known without asking for every one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.models import Role

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]

NOWHERE = -1
"""The place of what is not there."""
APART = 8
"""Messages of one session that are numbered further apart than this are no neighbours: what stood
between them has no episodes any more."""
_ROLES = tuple(Role)


class Row(NamedTuple):
    """An episode as its place is found: `n` is its number in the journal, `words` its length in
    terms and `size` in bytes."""

    n: int
    session: str
    seq: int
    part: int
    words: int
    role: str
    speaker: str
    event_time: int
    size: int = 0


@dataclass(frozen=True)
class Places:
    """Every episode of one user that can be recalled, in order. All arrays are by place.

    `edition` is the journal's count of changes other than additions, when these were read.
    """

    edition: int
    sessions: tuple[str, ...]
    """Names of the numbers in `session`."""
    speakers: tuple[str, ...]
    """Names of the numbers in `speaker`."""
    n: Numbers
    session: Numbers
    seq: Numbers
    part: Numbers
    words: Numbers
    role: Numbers
    speaker: Numbers
    time: Numbers
    size: Numbers

    @classmethod
    def of(cls, rows: Iterable[Row], edition: int) -> Places:
        return cls(edition, (), (), *(np.zeros(0, dtype=np.int64) for _ in range(9))).with_more(
            rows
        )

    def with_more(self, rows: Iterable[Row]) -> Places:
        """These and others, in order."""
        sessions = {name: at for at, name in enumerate(self.sessions)}
        speakers = {name: at for at, name in enumerate(self.speakers)}
        added = [
            (
                row.n,
                sessions.setdefault(row.session, len(sessions)),
                row.seq,
                row.part,
                row.words,
                _ROLES.index(Role(row.role)),
                speakers.setdefault(row.speaker, len(speakers)),
                row.event_time,
                row.size,
            )
            for row in sorted(rows)  # sessions are numbered as they were first heard of
        ]
        if not added and len(self.n):
            return self
        new = np.array(added, dtype=np.int64).reshape(len(added), 9).T
        columns = [np.concatenate(pair) for pair in zip(self._columns, new, strict=True)]
        order = np.lexsort((columns[3], columns[2], columns[1]))
        ordered = (column[order] for column in columns)
        return Places(self.edition, tuple(sessions), tuple(speakers), *ordered)

    @property
    def _columns(self) -> Sequence[Numbers]:
        return (
            *(self.n, self.session, self.seq, self.part),
            *(self.words, self.role, self.speaker, self.time, self.size),
        )

    def __len__(self) -> int:
        return len(self.n)

    @property
    def newest(self) -> int:
        """The highest number; 0 without any."""
        return int(self._numbers[-1]) if len(self) else 0

    def ordinals(self, numbers: Any) -> Numbers:
        """Where episodes come in the order of their numbers; NOWHERE for those that are not there.

        More episodes come after those that are there: an ordinal stays what it is.
        """
        wanted = np.asarray(numbers, dtype=np.int64)
        if not len(self):
            return np.full(len(wanted), NOWHERE, dtype=np.int64)
        found = np.minimum(np.searchsorted(self._numbers, wanted), len(self) - 1)
        return np.where(self._numbers[found] == wanted, found, NOWHERE)

    def of_ordinals(self, ordinals: Numbers) -> Numbers:
        """The places of ordinals; NOWHERE for those of later episodes."""
        inside = ordinals < len(self)
        found = np.full(len(ordinals), NOWHERE, dtype=np.int64)
        found[inside] = self._by_number[ordinals[inside]]
        return found

    def newest_of(self, ordinals: Numbers) -> int:
        """The highest number of those with these ordinals, which are in order; 0 without any."""
        inside = ordinals[ordinals < len(self)]
        return int(self._numbers[inside[-1]]) if len(inside) else 0

    def at(self, numbers: Any) -> Numbers:
        """The places of episodes by their numbers; NOWHERE for those that are not there."""
        found = self.ordinals(numbers)
        return np.where(found >= 0, self.of_ordinals(np.maximum(found, 0)), NOWHERE)

    @cached_property
    def _by_number(self) -> Numbers:
        order: Numbers = np.argsort(self.n, kind="stable").astype(np.int64)
        return order

    @cached_property
    def _numbers(self) -> Numbers:
        return self.n[self._by_number]

    @cached_property
    def after(self) -> Numbers:
        """The place of what was said next in the session; NOWHERE at its end."""
        here = np.arange(len(self), dtype=np.int64)
        if not len(self):
            return here
        joined = (self.session[1:] == self.session[:-1]) & (np.diff(self.seq) <= APART)
        return np.append(np.where(joined, here[1:], NOWHERE), NOWHERE)

    @cached_property
    def before(self) -> Numbers:
        """The place of what was said just before it in the session; NOWHERE at its beginning."""
        here = np.arange(len(self), dtype=np.int64)
        found = np.full(len(self), NOWHERE, dtype=np.int64)
        has = self.after >= 0
        found[self.after[has]] = here[has]
        return found

    @cached_property
    def window_words(self) -> Numbers:
        """The length of each with its neighbours, two on each side."""
        total = self.words.copy()
        for step in (self.before, self.after):
            total += _taken(self.words, step) + _taken(self.words, _taken(step, step, NOWHERE))
        return total

    @cached_property
    def roles(self) -> frozenset[int]:
        """The numbers in `role`."""
        return frozenset(np.unique(self.role).tolist())

    @cached_property
    def mean_words(self) -> float:
        return max(1.0, float(self.words.mean())) if len(self) else 1.0

    @cached_property
    def mean_window_words(self) -> float:
        return max(1.0, float(self.window_words.mean())) if len(self) else 1.0

    def with_neighbours(self, places: Numbers, distance: int = 1) -> Numbers:
        """Those places and what stands at most so far beside them, in order, each once."""
        there = np.zeros(len(self) + 1, dtype=bool)  # the last one for NOWHERE
        there[places] = True
        for step in (self.before, self.after):
            beside = places
            for _ in range(distance):
                beside = step[beside[beside >= 0]]
                there[beside] = True
        return np.flatnonzero(there[:-1])


def _taken(values: Numbers, places: Numbers, nothing: int = 0) -> Numbers:
    """The values at those places; `nothing` for NOWHERE."""
    return np.where(places >= 0, values[places], nothing)
