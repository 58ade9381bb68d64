"""Which episodes say the same thing again. Pure.

Leader clustering in the order in which episodes were learnt: one joins the first leader that it
repeats, or becomes a leader. Leaders never change when more is learnt, be it of long ago, so a
cluster keeps its identity from night to night, and nothing joins through a chain of neighbours.

Similar vectors are not enough, since sentences that differ only in the value that matters ("runs on
port 8090", "… 8091") lie close together: `repeats` also compares numbers, negation, names and the
words that one has in place of the other's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from memory.models import Episode
from memory.text import terms

BLOCK = 512
"""Episodes compared with all leaders at once: bounds the memory that a large user takes."""

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"(?<![.!?。！？]\s)(?<!^)\b[A-Z][\w'’-]+")
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|cannot|nobody|nothing|stopped|quit)\b|n['’]t\b|不|没|沒|别|無|无|未",
    re.IGNORECASE,
)
_NOT_NAMES = frozenset({"I", "I'm", "I've", "I'd", "I'll", "I’m", "I’ve", "I’d", "I’ll"})


@dataclass(frozen=True)
class Cluster:
    """Episodes that repeat one another, the one that was learnt first (the leader) first."""

    episodes: tuple[Episode, ...]

    @property
    def leader(self) -> Episode:
        return self.episodes[0]

    @property
    def sessions(self) -> frozenset[str]:
        return frozenset(episode.session for episode in self.episodes)


@dataclass(frozen=True)
class Gist:
    """What of a text must agree when another repeats it."""

    terms: tuple[str, ...]
    numbers: frozenset[str]
    names: frozenset[str]
    negated: bool


def clusters(
    episodes: Sequence[Episode], vectors: NDArray[np.float32], *, threshold: float, shared: float
) -> list[Cluster]:
    """All clusters, singletons too, in the order in which their leaders were learnt.

    `vectors` has a unit row per episode. Two episodes can only be together with a cosine of at
    least `threshold` and a share of at least `shared` of the shorter one's terms.
    """
    order = sorted(range(len(episodes)), key=lambda i: _learnt(episodes[i]))
    gists = [gist(episode.text) for episode in episodes]
    leaders: list[int] = []
    members: dict[int, list[int]] = {}
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        known = len(leaders)
        near = vectors[block] @ vectors[leaders].T if leaders else np.zeros((len(block), 0))
        for row, index in enumerate(block):
            candidates = [leaders[c] for c in np.flatnonzero(near[row] >= threshold)]
            candidates += [
                leader
                for leader in leaders[known:]
                if float(vectors[index] @ vectors[leader]) >= threshold
            ]
            leader = next(
                (c for c in candidates if repeats(gists[c], gists[index], shared=shared)), None
            )
            if leader is None:
                leaders.append(index)
                members[index] = [index]
            else:
                members[leader].append(index)
    return [Cluster(tuple(episodes[i] for i in members[leader])) for leader in leaders]


def _learnt(episode: Episode) -> tuple[datetime, datetime, str]:
    return episode.recorded_at, episode.event_time, episode.id


def repeats(a: Gist, b: Gist, *, shared: float) -> bool:
    """Whether one can be a repetition of the other: numbers, polarity and names do not disagree,
    enough words are the same, and they are not one sentence with another value in it."""
    if a.negated != b.negated or _disagree(a.numbers, b.numbers) or _disagree(a.names, b.names):
        return False
    words, other = frozenset(a.terms), frozenset(b.terms)
    smaller = min(len(words), len(other))
    if not smaller or len(words & other) < shared * smaller:
        return False
    same_value = bool(a.numbers & b.numbers) and a.names == b.names
    return same_value or not _differ_in_a_value(a.terms, b.terms)


def _disagree(a: frozenset[str], b: frozenset[str]) -> bool:
    """Both say something, and nothing of it is the same."""
    return bool(a and b and not a & b)


def _differ_in_a_value(a: Sequence[str], b: Sequence[str]) -> bool:
    """The same words in the same places, but for a few that stand where others stood."""
    steps = {step[0] for step in SequenceMatcher(None, a, b, autojunk=False).get_opcodes()}
    return steps == {"equal", "replace"}


def gist(text: str) -> Gist:
    return Gist(
        terms=tuple(terms(text)),
        numbers=frozenset(_NUMBER.findall(text)),
        names=frozenset(_NAME.findall(text)) - _NOT_NAMES,
        negated=bool(_NEGATION.search(text)),
    )
