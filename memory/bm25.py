"""BM25 over places: of every episode by itself, and together with what stands beside it. Pure.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009): the sum over the query's terms of

    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * words / average))

over the user's N episodes that can be recalled. The second score takes an episode and its two
neighbours for one text, as they were said: an answer stands beside its question, and says the words
of neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.places import Floats, Numbers, Places
from memory.shelf import Kept, Postings

K1: Final = 1.2
B: Final = 0.75


class Term(NamedTuple):
    """A term of a query as a user's episodes know it. `episodes` say it, of `of` in all.

    `asks` is a term of words that only ask, as 什么 does: an answer need not say it.
    """

    key: int
    episodes: int
    of: int
    asks: bool = False

    @property
    def weight(self) -> float:
        """What BM25 gives it, at most."""
        return (K1 + 1) * self._rarity

    @property
    def share(self) -> float:
        """How much of a query it is: everything counts, and what is rare counts more."""
        return 1.0 + self._rarity

    @property
    def _rarity(self) -> float:
        return math.log1p(max(0.0, self.of - self.episodes + 0.5) / (self.episodes + 0.5))


class Scores(NamedTuple):
    """BM25 at places, in order, by itself and with its neighbours; and how much of the query each
    covers, in [0, 1], by itself and with its neighbours."""

    at: Numbers
    own: Floats
    window: Floats
    covered: Floats
    together: Floats

    def only(self, chosen: NDArray[np.bool_]) -> Scores:
        """Those of the places that are chosen."""
        return Scores(self.at[chosen], *(column[chosen] for column in self._numbers))

    @property
    def _numbers(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.own, self.window, self.covered, self.together

    def among(self, places: Numbers) -> Scores:
        """Of those places, in their order; 0 where nothing of the query is said."""
        if not len(self.at):
            nothing = np.zeros(len(places))
            return Scores(places, nothing, nothing, nothing, nothing)
        found = np.minimum(np.searchsorted(self.at, places), len(self.at) - 1)
        has = self.at[found] == places
        return Scores(places, *(np.where(has, column[found], 0.0) for column in self._numbers))


@dataclass(frozen=True)
class Said:
    """What of a query a user's episodes say.

    `rows` are postings: a term's index in `terms`, a place, and how often it is said there.
    `unread` are terms so common that they are looked up for candidates alone.
    """

    owner_n: int
    kept: Kept
    places: Places
    terms: tuple[Term, ...] = ()
    unread: tuple[Term, ...] = ()
    rows: Numbers = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))

    def with_more(
        self, terms: Sequence[Term], postings: Mapping[int, Postings], *, newest: int | None = None
    ) -> Said:
        """With postings of the terms; of one that has too many, only the `newest` so many."""
        index = {term.key: at for at, term in enumerate(self.terms)}
        made = [self.rows]
        for term in terms:
            numbers, times = postings[term.key]
            if newest is not None and len(numbers) > newest:
                numbers, times = numbers[-newest:], times[-newest:]
            places = self.places.at(numbers)
            rows = np.empty((len(numbers), 3), dtype=np.int64)
            rows[:, 0], rows[:, 1], rows[:, 2] = index[term.key], places, times
            made.append(rows[places >= 0])
        return replace(self, rows=np.concatenate(made))

    def only(self, places: Numbers) -> Said:
        """What those places say, which are in order."""
        if not len(places):
            return replace(self, rows=self.rows[:0])
        at = np.minimum(np.searchsorted(places, self.rows[:, 1]), len(places) - 1)
        return replace(self, rows=self.rows[places[at] == self.rows[:, 1]])

    @cached_property
    def scores(self) -> Scores:
        """Of every episode that says something of the query, or stands beside one that does."""
        rows, places = self.rows, self.places
        if not len(rows):
            nothing = np.zeros(0)
            return Scores(np.zeros(0, dtype=np.int64), nothing, nothing, nothing, nothing)
        beside = np.concatenate([rows, *(_moved(rows, to) for to in (places.before, places.after))])
        keys, row_of = np.unique(beside[:, 0] * len(places) + beside[:, 1], return_inverse=True)
        wide = np.empty((len(keys), 3), dtype=np.int64)
        wide[:, 0], wide[:, 1] = np.divmod(keys, len(places))
        wide[:, 2] = np.bincount(row_of, beside[:, 2])
        at = np.unique(wide[:, 1])
        return Scores(
            at,
            self._bm25(rows, at, places.words, places.mean_words),
            self._bm25(wide, at, places.window_words, places.mean_window_words),
            self._covered(rows, at),
            self._covered(wide, at),
        )

    def _bm25(self, rows: Numbers, at: Numbers, words: Numbers, average: float) -> Floats:
        times = rows[:, 2]
        length = K1 * (1 - B + B * words[rows[:, 1]] / average)
        part = self._per_term(lambda term: term.weight)[rows[:, 0]] * times / (times + length)
        summed = np.bincount(np.searchsorted(at, rows[:, 1]), part, minlength=len(at))
        return np.asarray(summed, dtype=np.float64)

    def _covered(self, rows: Numbers, at: Numbers) -> Floats:
        """The better of two: of all that is asked, or of all but what only asks."""
        found = np.searchsorted(at, rows[:, 1])
        covered = np.zeros(len(at))
        for counts in (lambda term: term.share, lambda term: 0.0 if term.asks else term.share):
            shares = self._per_term(counts)
            if whole := float(shares.sum()):
                part = np.bincount(found, shares[rows[:, 0]], minlength=len(at)) / whole
                covered = np.maximum(covered, part)
        return np.minimum(covered, 1.0)

    def _per_term(self, number: Callable[[Term], float]) -> Floats:
        return np.array([number(term) for term in self.terms])


def _moved(rows: Numbers, to: Numbers) -> Numbers:
    """The postings as those of the places beside them."""
    moved = rows.copy()
    moved[:, 1] = to[rows[:, 1]]
    return moved[moved[:, 1] >= 0]


def best(places: Numbers, scores: Floats, k: int) -> Numbers:
    """The `k` places with the highest scores above 0, ties by place."""
    found = np.flatnonzero(scores > 0)
    order = found[np.lexsort((places[found], -scores[found]))]
    return places[order[:k]]


def rarest_first(terms: Sequence[Term]) -> list[Term]:
    return sorted(terms, key=lambda term: (term.episodes, term.key))
