"""BM25 over places: of every episode by itself, and together with what stands beside it. Pure.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009): the sum over the query's terms of

    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * words / average))

over the user's N episodes that can be recalled. Terms that may stand for each other are a group, of
which the best one counts. The second score takes an episode with its neighbours, two on each side,
for one text, as they were said: an answer stands beside its question, and says no word of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.places import NOWHERE, Floats, Numbers, Places
from memory.shelf import Kept, Postings

K1: Final = 1.2
B: Final = 0.75
B_WINDOW: Final = 0.9
"""Windows of five differ less in what they are about than in how long they are."""


class Wanted(NamedTuple):
    """A term that a query asks for. Those of one `group` stand for each other: the one that is
    said, and those `near` it, which each count their `factor`. `asks` is a term of words that only
    ask, as 什么 does: an answer need not say it."""

    key: int
    group: int
    factor: float = 1.0
    near: bool = False
    asks: bool = False


class Term(NamedTuple):
    """A term as a user's episodes know it: `episodes` say it, of `of` in all."""

    wanted: Wanted
    episodes: int
    of: int

    @property
    def key(self) -> int:
        return self.wanted.key

    @property
    def weight(self) -> float:
        """What BM25 gives it, at most."""
        return (K1 + 1) * self._rarity * self.wanted.factor

    @property
    def share(self) -> float:
        """How much of a query it is: everything counts, and what is rare counts more."""
        return (1.0 + self._rarity) * self.wanted.factor

    @property
    def _rarity(self) -> float:
        return math.log1p(max(0.0, self.of - self.episodes + 0.5) / (self.episodes + 0.5))


class Scores(NamedTuple):
    """BM25 at places, in order, by itself and with its neighbours; and how much of the query each
    covers by itself, in [0, 1]."""

    at: Numbers
    own: Floats
    window: Floats
    covered: Floats

    def only(self, chosen: NDArray[np.bool_]) -> Scores:
        """Those of the places that are chosen."""
        columns = (self.own, self.window, self.covered)
        return Scores(self.at[chosen], *(column[chosen] for column in columns))


@dataclass(frozen=True)
class Said:
    """What of a query a user's episodes say.

    `rows` are postings: a term's index in `terms`, a place, and how often it is said there.
    `unread` are terms that are looked up for candidates alone: common ones, those of which only the
    newest postings were read, and words near others.
    """

    owner_n: int
    kept: Kept
    places: Places
    terms: tuple[Term, ...] = ()
    unread: tuple[Term, ...] = ()
    rows: Numbers = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))

    def with_more(
        self, terms: Sequence[Term], postings: Mapping[int, Postings], among: Numbers | None = None
    ) -> Said:
        """With the postings of terms, everywhere or only at these places, in place of what was."""
        found = [(self._index[term.key], *postings[term.key]) for term in terms]
        if not found:
            return self
        rows = np.empty((sum(len(times) for _, _, times in found), 3), dtype=np.int64)
        rows[:, 0] = np.repeat([at for at, _, _ in found], [len(times) for _, _, times in found])
        rows[:, 1] = self.places.of_ordinals(np.concatenate([each for _, each, _ in found]))
        rows[:, 2] = np.concatenate([times for _, _, times in found])
        if among is None:
            chosen = rows[:, 1] >= 0
        else:
            wanted = np.zeros(len(self.places) + 1, dtype=bool)  # the last one for NOWHERE
            wanted[among] = True
            chosen = wanted[rows[:, 1]]
        others = np.ones(len(self.terms), dtype=bool)
        others[[at for at, _, _ in found]] = False
        return replace(
            self, rows=np.concatenate((self.rows[others[self.rows[:, 0]]], rows[chosen]))
        )

    @property
    def _index(self) -> dict[int, int]:
        return {term.key: at for at, term in enumerate(self.terms)}

    def best(self, k: int, among: Numbers | None = None) -> Numbers:
        """The `k` best places (of these) by their own words, > 0, ties by place, in that order."""
        at, own = self.own
        found = np.flatnonzero(own > 0 if among is None else (own > 0) & np.isin(at, among))
        order = found[np.lexsort((at[found], -own[found]))]
        return at[order[:k]]

    @cached_property
    def own(self) -> tuple[Numbers, Floats]:
        """Every place that says something of the query, in order, and its BM25."""
        at = np.unique(self.rows[:, 1])
        return at, self._own(at)

    def scores(self, at: Numbers) -> Scores:
        """Of those places, which are in order."""
        return Scores(at, self._own(at), self._window(at), self._covered(at))

    def _own(self, at: Numbers) -> Floats:
        term, here, times = self._inside(self.rows, at)
        length = _length(self.places.words[at], self.places.mean_words, B)[here]
        return self._by_group(term, here, self._weights[term] * times / (times + length), len(at))

    def _window(self, at: Numbers) -> Floats:
        places = self.places
        beside = [self.rows]
        for step in (places.before, places.after):
            next_to = _moved(self.rows, step)
            beside += [next_to, _moved(next_to, step)]
        term, here, times = self._inside(np.concatenate(beside), at)
        width = max(1, len(at))
        said = np.bincount(term * width + here, times)
        keys = np.flatnonzero(said)
        (term, here), times = np.divmod(keys, width), said[keys]
        length = _length(places.window_words[at], places.mean_window_words, B_WINDOW)[here]
        return self._by_group(term, here, self._weights[term] * times / (times + length), len(at))

    def _covered(self, at: Numbers) -> Floats:
        """The better of two: of all that is asked, or of all but what only asks."""
        term, here, _ = self._inside(self.rows, at)
        covered = np.zeros(len(at))
        for without_asking in (False, True):
            counting = [
                0.0 if without_asking and each.wanted.asks else each.share for each in self.terms
            ]
            shares = np.array(counting)
            whole = sum(
                share
                for share, each in zip(counting, self.terms, strict=True)
                if not each.wanted.near
            )
            if whole > 0:
                said = self._by_group(term, here, shares[term], len(at))
                covered = np.maximum(covered, np.asarray(said / whole, dtype=np.float64))
        return np.minimum(covered, 1.0)

    def _inside(self, rows: Numbers, at: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The rows of those places: their terms, where each place is among them, how often."""
        where = np.full(len(self.places), NOWHERE, dtype=np.int64)
        where[at] = np.arange(len(at))
        here = where[rows[:, 1]]
        inside = here >= 0
        return rows[inside, 0], here[inside], rows[inside, 2]

    def _by_group(self, term: Numbers, here: Numbers, part: Floats, places: int) -> Floats:
        """The sum over the groups of the best part of each."""
        groups = self._groups
        best_of = np.zeros((int(groups.max(initial=-1)) + 1, places))
        np.maximum.at(best_of, (groups[term], here), part)
        return np.asarray(best_of.sum(axis=0), dtype=np.float64)

    @cached_property
    def _groups(self) -> Numbers:
        return np.array([term.wanted.group for term in self.terms], dtype=np.int64)

    @cached_property
    def _weights(self) -> Floats:
        return np.array([term.weight for term in self.terms])


def _length(words: Numbers, average: float, b: float) -> Floats:
    return np.asarray(K1 * (1 - b + b * words / average), dtype=np.float64)


def _moved(rows: Numbers, to: Numbers) -> Numbers:
    """The postings as those of the places beside them."""
    moved = rows.copy()
    moved[:, 1] = to[rows[:, 1]]
    return moved[moved[:, 1] >= 0]


def term_key(term: str) -> int:
    """A term as a number: 64 bits of its hash."""
    hashed = blake2b(term.encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big", signed=True)


def rarest_first(terms: Sequence[Term]) -> list[Term]:
    return sorted(terms, key=lambda term: (term.episodes, term.key))
