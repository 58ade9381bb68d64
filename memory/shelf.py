"""What was read of the users who were asked about last: places, postings, vectors, episodes.

The journal is the truth, and says with every question how many episodes a user has, how many of
them say each term, and which edition they are: additions leave the edition as it is, so that what
is here is completed and not read again. All of it together stays below ROOM bytes; the user who
was asked about longest ago goes first. Used by several threads at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np

from memory.embedding.base import Vectors
from memory.models import Episode
from memory.places import NOWHERE, Numbers, Places, Row

ROOM: Final = 256 << 20
"""Bytes kept in all, about."""
_OF_A_PLACE: Final = 120

Postings = tuple[Numbers, Numbers]
"""Ordinals (`Places.ordinals`) of the episodes that say a term, in order, and how often each."""


class Asked(NamedTuple):
    """Whose they are: how many episodes can be recalled, and which edition of them it is."""

    n: int
    active: int
    edition: int


class Passages(NamedTuple):
    """Vectors of passages, those of one episode after the other.

    `of` are positions among the episodes asked for, in order; `first` the row where those of each
    begin. Every one of `of` has some.
    """

    of: Numbers
    first: Numbers
    rows: Vectors


NO_PASSAGES: Final = Passages(
    np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
)


class Episodes:
    """Episodes by their numbers, each with the part of its row that can change."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[State, Episode]] = {}
        self.size = 0
        """Bytes, about."""

    def __contains__(self, number: int) -> bool:
        return number in self._known

    def __getitem__(self, number: int) -> tuple[State, Episode]:
        return self._known[number]

    def put(self, number: int, state: State, episode: Episode, size: int = 0) -> None:
        """Keeps it; `size` are the bytes of what it has, where it is new."""
        if number not in self._known:
            self.size += _OF_AN_EPISODE + size
        self._known[number] = state, episode


State = tuple[Any, ...]
_OF_AN_EPISODE: Final = 2_000


class Kept:
    """Of one user."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._postings: dict[int, Postings] = {}
        self._vectors: dict[int, _Rows] = {}
        self._numbers: dict[str, int] = {}
        self.episodes = Episodes()
        """Those that were read."""
        self._lock = Lock()

    def update(self, user: Asked, read: Callable[[int], Sequence[Row]]) -> None:
        """Read the places that are missing; all of them after any change but more of them."""
        known = self.places
        if known.edition == user.edition:
            if len(known) >= user.active:
                return
            more = read(known.newest)
            if len(known) + len(more) == user.active:
                self.places = known.with_more(more)
                return
        places = Places.of(read(0), user.edition)
        with self._lock:
            self.places, self._postings, self._vectors = places, {}, {}
            self.episodes = Episodes()

    def postings(
        self,
        places: Places,
        wanted: Mapping[int, int],
        read: Callable[[Sequence[int], int], Sequence[Sequence[Any]]],
    ) -> dict[int, Postings]:
        """The postings of terms of which so many episodes say each; read where they are not here.

        `read` gives term, number and times of those of these terms with numbers above one.
        """
        with self._lock:  # ordinals of another edition mean others
            kept = self._postings if self.places.edition == places.edition else {}
        found = {key: known for key in wanted if (known := kept.get(key)) is not None}
        missing = [key for key in wanted if key not in found]
        grown = [key for key in found if len(found[key][0]) < wanted[key]]
        if missing:
            found |= split(places, missing, read(missing, 0))
        if grown:
            seen = min(places.newest_of(found[key][0]) for key in grown)
            more = split(places, grown, read(grown, seen))
            found |= {key: _joined(found[key], more[key]) for key in grown}
        with self._lock:
            kept.update({key: found[key] for key in (*missing, *grown)})
        return found

    def numbers(
        self, ids: Sequence[str], read: Callable[[Sequence[str]], Mapping[str, int]]
    ) -> list[int]:
        """The numbers of those of the ids that the user has."""
        missing = [key for key in ids if key not in self._numbers]
        if missing:
            more = read(missing)
            with self._lock:
                self._numbers.update(more)
        return [self._numbers[key] for key in ids if key in self._numbers]

    def vectors(
        self,
        numbers: Sequence[int],
        space: int,
        dims: int,
        read: Callable[[Sequence[int]], Mapping[int, bytes]],
    ) -> tuple[list[int], Vectors]:
        """Those of the numbers that have a vector in the space, in order, and the vectors, each
        that of the whole."""
        with self._lock:
            rows = self._vectors.setdefault(space, _Rows(dims))
            missing = [n for n in numbers if n not in rows.of]
        if missing:
            more = read(missing)
            with self._lock:
                rows.add(more)
        with self._lock:
            found = [n for n in numbers if n in rows.of]
            return found, rows.matrix[[rows.of[n] for n in found]]

    def passages(self, numbers: Sequence[int], space: int) -> Passages:
        """The passages of those of the numbers whose vectors were read before."""
        with self._lock:
            rows = self._vectors.get(space)
            if rows is None or not rows.spans:
                return NO_PASSAGES
            return rows.passages(numbers)

    @property
    def size(self) -> int:
        """Bytes, about."""
        postings = sum(2 * part[0].nbytes for part in list(self._postings.values()))
        vectors = sum(rows.size for rows in list(self._vectors.values()))
        others = _OF_A_PLACE * len(self.places) + 200 * len(self._numbers) + self.episodes.size
        return others + postings + vectors


def split(
    places: Places, keys: Sequence[int], rows: Sequence[Sequence[Any]]
) -> dict[int, Postings]:
    """Rows of term, number and times as the postings of each term."""
    read = np.array([tuple(row) for row in rows], dtype=np.int64).reshape(-1, 3)
    read[:, 1] = places.ordinals(read[:, 1])
    read = read[read[:, 1] >= 0]
    read = read[np.lexsort((read[:, 1], read[:, 0]))]
    wanted = np.array(keys, dtype=np.int64)
    starts = np.searchsorted(read[:, 0], wanted)
    ends = np.searchsorted(read[:, 0], wanted, side="right")
    return {
        key: (read[start:end, 1].copy(), read[start:end, 2].copy())
        for key, start, end in zip(keys, starts.tolist(), ends.tolist(), strict=True)
    }


def _joined(known: Postings, more: Postings) -> Postings:
    newer = more[0] > (known[0][-1] if len(known[0]) else NOWHERE)
    return np.append(known[0], more[0][newer]), np.append(known[1], more[1][newer])


class _Rows:
    """Vectors in matrices that grow: those of wholes, and which row is whose; those of passages,
    and which rows (from, to) are whose."""

    def __init__(self, dims: int) -> None:
        self.of: dict[int, int] = {}
        self.matrix: Vectors = np.zeros((0, dims), dtype=np.float32)
        self.spans: dict[int, tuple[int, int]] = {}
        self._passages: Vectors = np.zeros((0, dims), dtype=np.float32)
        self._used = 0

    def add(self, vectors: Mapping[int, bytes]) -> None:
        dims = self.matrix.shape[1]
        new = {
            n: np.frombuffer(data, dtype="<f4").reshape(-1, dims)
            for n, data in vectors.items()
            if n not in self.of
        }
        self.matrix = _with_room(self.matrix, len(self.of) + len(new))
        more = sum(len(rows) - 1 for rows in new.values())
        self._passages = _with_room(self._passages, self._used + more)
        for n, rows in new.items():
            at = len(self.of)
            self.matrix[at] = rows[0]
            self.of[n] = at
            if len(rows) > 1:
                start, self._used = self._used, self._used + len(rows) - 1
                self._passages[start : self._used] = rows[1:]
                self.spans[n] = start, self._used

    def passages(self, numbers: Sequence[int]) -> Passages:
        found = [
            (at, *span) for at, n in enumerate(numbers) if (span := self.spans.get(n)) is not None
        ]
        if not found:
            return NO_PASSAGES
        at, start, end = np.array(found, dtype=np.int64).T
        counts = end - start
        firsts = np.cumsum(counts) - counts
        rows = np.arange(counts.sum()) + np.repeat(start - firsts, counts)
        return Passages(at, firsts, self._passages[rows])

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self.matrix.nbytes + self._passages.nbytes + 200 * len(self.spans)


def _with_room(matrix: Vectors, needed: int) -> Vectors:
    if needed <= len(matrix):
        return matrix
    grown = np.zeros((needed + needed // 4, matrix.shape[1]), dtype=np.float32)
    grown[: len(matrix)] = matrix
    return grown


class Shelf:
    """Of all users."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._lock = Lock()

    def of(self, user: Asked, read: Callable[[int], Sequence[Row]]) -> Kept:
        """What is kept of a user, up to date. `read` gives rows of places above a number."""
        with self._lock:
            kept = self._kept.get(user.n)
        if kept is None:
            kept = Kept(Places.of((), user.edition))
        kept.update(user, read)
        with self._lock:
            self._kept[user.n] = kept
            self._kept.move_to_end(user.n)
            if len(self._kept) > 1:
                self._make_room()
        return kept

    def _make_room(self) -> None:
        sizes = {n: kept.size for n, kept in self._kept.items()}
        total = sum(sizes.values())
        for n in list(self._kept)[:-1]:
            if total <= self._room:
                return
            total -= sizes[n]
            del self._kept[n]
