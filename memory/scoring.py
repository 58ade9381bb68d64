"""How well each candidate answers a query: named parts in [0, 1], and their weighted sum. Pure.

    words          BM25, as a share of the best
    meaning        cosine, of the whole or the passage of it that is nearest, from the least of the
                   candidates (0) to the best (1, or less where that is what unrelated texts
                   reach); as `words`, where there is no vector
    words_near     BM25 of it and two neighbours on each side as one text, as a share of the best
    meaning_near   cosine of the mean of its vector and its neighbours', of wholes, scaled as
                   `meaning`; its own, where it is long
    session        what the best place of its session has of the two above: their mean by weight
    speaker        1 where the query names who said it
    person         1 where the query says 'I' and the user said it, or 'you' and the assistant did
    time           1 where it is about a time that the query names; less, the further away
    facts          1 for where the best fact that the query is about was learnt; less for others

A candidate is what an arm found, or what stands beside that. The parts order candidates against
each other; how sure it is that anything answers is another number (`Scored.confidence`), on a scale
that means the same for every query: cosines by the embedder's calibration, and how much of the
query is said. docs/decisions/0024-ranking.md has what was tried, and what each part gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory.bm25 import Scores
from memory.embedding.base import Vectors
from memory.models import Value
from memory.places import NOWHERE, Floats, Numbers, Places
from memory.shelf import NO_PASSAGES, Passages
from memory.when import BESIDE

DECIMALS: Final = 5
"""Of cosines: the last bits of the same one depend on what is computed beside it."""
LONG: Final = 300
"""Bytes of an episode that says enough by itself."""
PARTS: Final = (
    *("words", "meaning", "words_near", "meaning_near"),
    *("session", "speaker", "person", "time", "facts"),
)


class Weights(Value):
    """What each part counts."""

    words: float = 1.0
    meaning: float = 1.0
    words_near: float = 1.0
    meaning_near: float = 1.0
    session: float = 2.0
    speaker: float = 1.2
    person: float = 1.0
    time: float = 2.0
    facts: float = 0.5

    def with_words(self, part: float) -> Weights:
        """These, with words counting a part of what they do here."""
        return self.model_copy(
            update={"words": self.words * part, "words_near": self.words_near * part}
        )


class Calibration(Value):
    """What an embedder's cosines mean: `low` and below is unrelated, `high` and above the same."""

    low: float
    high: float

    def related(self, cosines: Floats) -> float:
        """How far the best cosine is from that of unrelated texts, in [0, 1]: the order by meaning
        means nothing where all of it is noise."""
        best = float(np.max(cosines[~np.isnan(cosines)], initial=0.0))
        return min(1.0, best / self.low) if self.low > 0 else 1.0

    def __call__(self, cosine: Floats) -> Floats:
        return np.clip((cosine - self.low) / (self.high - self.low), 0.0, 1.0)


@dataclass(frozen=True)
class Looked:
    """What is known of the candidates of a query.

    `at` are their places, in order. `cosines` are of `at`, `near` of the windows around them; NaN
    where there is no vector. `said` are the scores by words.
    """

    places: Places
    at: Numbers
    said: Scores
    cosines: Floats
    near: Floats
    speaker: Floats
    person: Floats
    time: Floats
    facts: Floats

    def only(self, chosen: NDArray[np.bool_]) -> Looked:
        """Those of the candidates that are chosen."""
        columns = (self.speaker, self.person, self.time, self.facts)
        return Looked(
            self.places,
            self.at[chosen],
            self.said.only(chosen),
            self.cosines[chosen],
            self.near[chosen],
            *(column[chosen] for column in columns),
        )


@dataclass(frozen=True)
class Scored:
    """Candidates with their parts, best first.

    `relative` is their sum as a share of what the best one has, in [0, 1]; `confidence`, in [0, 1],
    says how well the query is answered at all; `evidence` how much there is for that.
    """

    at: Numbers
    relative: Floats
    parts: Mapping[str, Floats] = field(default_factory=dict)
    confidence: float = 0.0
    evidence: float = 0.0


SURE: Final = 0.5
"""How sure it is that what is of the time answers a query that asks for nothing else."""


def scored(
    looked: Looked, weights: Weights, calibrated: Calibration, *, alone: str | None = None
) -> Scored:
    """The candidates, best first, ties by what they have by themselves, then by place.

    Candidates with nearly all of the part `alone` answer the query, whatever they say; all count as
    far as they have of it, and none before those that have the whole.
    """
    if not len(looked.at):
        return Scored(looked.at, np.zeros(0))
    low = min(_least(looked), calibrated.low)
    related = calibrated.related(looked.cosines)
    words, words_near = _share(looked.said.own), _share(looked.said.window)
    near = np.where(np.isnan(looked.near), words_near, related * _relative(looked.near, low))
    own = np.where(np.isnan(looked.cosines), words, related * _relative(looked.cosines, low))
    parts = {
        "words": words,
        "meaning": own,
        "words_near": words_near,
        "meaning_near": near,
        "session": _best_of_session(
            (words_near, near),
            (weights.words_near, weights.meaning_near),
            looked.places.session[looked.at],
        ),
        "speaker": looked.speaker,
        "person": looked.person,
        "time": looked.time,
        "facts": looked.facts,
    }
    total = np.sum([getattr(weights, name) * parts[name] for name in PARTS], axis=0)
    of_alone = parts[alone] if alone else np.zeros(1)
    answered = bool(of_alone.max() >= BESIDE)
    if answered:
        inside = total[of_alone >= 1.0]
        total = of_alone * np.where(
            of_alone < 1.0, np.minimum(total, inside.min(initial=np.inf)), total
        )
    by_itself = words + own
    order = np.lexsort((looked.at, -np.round(by_itself, 9), -np.round(total, 9)))
    best = float(total[order[0]])
    meaning = calibrated(np.nan_to_num(looked.cosines, nan=-1.0))
    covered = looked.said.covered
    answers = 1.0 - (1.0 - 0.5 * meaning) * (1.0 - words * np.sqrt(covered))
    evidence = 0.5 * meaning + 0.5 * words * np.clip((covered - 0.3) / 0.4, 0.0, 1.0)
    sure = SURE if answered else 0.0
    return Scored(
        looked.at[order],
        total[order] / best if best > 0 else total[order],
        {name: part[order] for name, part in parts.items()},
        max(sure, float(answers.max())),
        max(sure, float(evidence.max())),
    )


def _share(scores: Floats) -> Floats:
    most = float(scores.max(initial=0.0))
    return scores / most if most > 0 else scores


def _least(looked: Looked) -> float:
    """The least cosine of the candidates, of their own or their windows'; 0 where there is none."""
    known = np.concatenate((looked.cosines, looked.near))
    known = known[~np.isnan(known)]
    return float(known.min()) if len(known) else 0.0


def _relative(cosines: Floats, low: float) -> Floats:
    """From `low` (0) to the best (1); 0 where there is none."""
    return _share(np.nan_to_num(cosines - low, nan=0.0))


def _best_of_session(
    parts: tuple[Floats, ...], weights: tuple[float, ...], session: Numbers
) -> Floats:
    """The weighted mean of what the best place of each session has of each part."""
    _, of = np.unique(session, return_inverse=True)
    total = np.zeros(len(session))
    for part, weight in zip(parts, weights, strict=True):
        most = np.zeros(int(of.max()) + 1)
        np.maximum.at(most, of, part)
        total += weight * most[of]
    return total / (sum(weights) or 1.0)


def cosines(
    query: Vectors | None,
    vectors: Vectors,
    known: Numbers,
    at: Numbers,
    places: Places,
    passages: Passages = NO_PASSAGES,
) -> tuple[Floats, Floats]:
    """Cosines with the query, of places by themselves and of the windows around them.

    `vectors` are rows of unit length for the places `known`, in order; `passages` are of `at`, and
    a place is as close by itself as the closest of them. NaN where there is none.
    """
    nothing = np.full(len(at), np.nan)
    if query is None or not len(known):
        return nothing, nothing
    rows = np.vstack([vectors, np.zeros((1, vectors.shape[1]), dtype=vectors.dtype)])

    def row_of(wanted: Numbers) -> Numbers:
        """The row of each place; the last one, which is nothing, where there is no vector."""
        found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where((wanted != NOWHERE) & (known[found] == wanted), found, len(known))

    here = row_of(at)
    own = np.where(here < len(known), rows[here] @ query, np.nan)
    if len(passages.of):
        closest = np.maximum.reduceat(passages.rows @ query, passages.first)
        own[passages.of] = np.maximum(own[passages.of], closest)
    around = rows[here] + rows[row_of(places.before[at])] + rows[row_of(places.after[at])]
    length = np.linalg.norm(around, axis=1)
    near = np.where(length > 0, (around @ query) / np.where(length > 0, length, 1.0), np.nan)
    return _rounded(own), _rounded(np.where(places.size[at] > LONG, own, near))


def _rounded(cosines: Vectors) -> Floats:
    return np.asarray(np.round(cosines.astype(np.float64), DECIMALS), dtype=np.float64)
