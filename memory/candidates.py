"""What is looked at for a query: what an arm found, what stands beside it, and their vectors.

One unit of work of the journal. The vectors come from there and not from the index of vectors: they
are exact, and those of the neighbours are there too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, select

from memory import episode_store as store
from memory import filters, lexical, recall
from memory.bm25 import Said
from memory.embedding.base import Vectors
from memory.filters import Accepts
from memory.journal.episode_tables import belongs_to, episode_vectors, episodes
from memory.journal.statements import among, compiled
from memory.models import Episode
from memory.places import Floats, Numbers, Places
from memory.recall import RecallPolicy
from memory.scoring import Calibration, Looked, Scored, cosines, scored
from memory.shelf import NO_PASSAGES
from memory.when import When

_BY_ID = compiled(
    lambda dialect: select(episodes.c.id, episodes.c.n).where(
        belongs_to(bindparam("owner_n")), among(episodes.c.id, "ids", dialect)
    )
)
_BY_MESSAGE = compiled(
    lambda dialect: select(episodes.c.message_id, episodes.c.n).where(
        episodes.c.owner_n == bindparam("owner_n"), among(episodes.c.message_id, "ids", dialect)
    )
)
_VECTORS = compiled(
    lambda dialect: select(episode_vectors.c.n, episode_vectors.c.vector).where(
        among(episode_vectors.c.n, "numbers", dialect),
        episode_vectors.c.space == bindparam("space"),
    )
)


class Shown(NamedTuple):
    """The end of a session that a context shows anyway, from a message on."""

    session: str
    first_seq: int


Part = Callable[[Places, Numbers], Floats]
"""A part of the score in [0, 1] of some places."""


@dataclass(frozen=True)
class Asked:
    """What a query asks for, beside its words.

    `vector` is its embedding, of unit length and in `space`. `nearest` are ids of episodes near it.
    `sources` are messages that facts about it came from, with how much each bears on it, in [0, 1].
    The best `each` of each arm are candidates, and `k` are wanted beside what is `shown` anyway.
    `by_passage`: an episode is as near as the nearest of its passages.
    """

    k: int
    each: int
    policy: RecallPolicy
    calibrated: Calibration
    space: int = 0
    vector: Vectors | None = None
    nearest: Sequence[str] = ()
    sources: Mapping[str, float] = field(default_factory=dict)
    speaker: Part | None = None
    person: Part | None = None
    when: When | None = None
    accepts: Accepts | None = None
    shown: Shown | None = None
    by_passage: bool = True


@dataclass(frozen=True)
class Found:
    """Scored candidates, and the episodes of the best of them by their place in that order.

    `k` is how many to recall: as many as were asked for, and those among them that are shown
    anyway. `all_seen` says that there are no more candidates.
    """

    scored: Scored
    episodes: Mapping[int, Episode] = field(default_factory=dict)
    k: int = 0
    all_seen: bool = True


SPARE: Final = 10
"""Episodes read beyond those that are wanted: some say the same, others are near misses."""


def find(connection: Connection, owner: bytes, said: Said, asked: Asked) -> Found:
    """The candidates for a query, and the best of them read."""
    looked = look_at(connection, said, asked)
    all_seen = max(len(looked.at), asked.each) >= len(said.places)
    if asked.accepts is not None:
        return _filtered(connection, owner, said, looked, asked, asked.accepts, all_seen)
    order = scored(looked, asked.policy.weights, asked.calibrated, alone=_alone(asked))
    inside = _inside(said.places, order.at, asked.shown)
    far = np.searchsorted(np.cumsum(~inside), asked.k) + 1
    count = max(SPARE + int(far), FEWEST)
    above = int((recall.strengths(order, asked.policy) >= asked.policy.floor).sum())
    wanted = np.unique(
        np.concatenate((np.arange(count), above + np.arange(asked.policy.near_misses)))
    )
    wanted = wanted[wanted < len(order.at)]
    numbers = said.places.n[order.at[wanted]].tolist()
    read = store.by_number(connection, owner, numbers, said.kept.episodes)
    found = {at: read[n] for at, n in zip(wanted.tolist(), numbers, strict=True) if n in read}
    return Found(order, found, asked.k + int(inside[: int(far)].sum()), all_seen)


FEWEST: Final = 30
"""Episodes that are read at least: a literal hit may be among them that nothing else speaks for."""


def _filtered(
    connection: Connection,
    owner: bytes,
    said: Said,
    looked: Looked,
    asked: Asked,
    accepts: Accepts,
    all_seen: bool,
) -> Found:
    """The candidates that the filter accepts, in an order of their own."""
    numbers = looked.places.n[looked.at].tolist()
    read = store.by_number(connection, owner, numbers, said.kept.episodes)
    fits = np.array([n in read and accepts(filters.view(read[n])) for n in numbers], dtype=bool)
    fitting = looked.only(fits)
    order = scored(fitting, asked.policy.weights, asked.calibrated, alone=_alone(asked))
    found = {at: read[n] for at, n in enumerate(looked.places.n[order.at].tolist())}
    return Found(order, found, asked.k, all_seen)


def _alone(asked: Asked) -> str | None:
    """The part that answers by itself what asks for nothing else."""
    return "time" if asked.when and asked.when.alone else None


def _inside(places: Places, at: Numbers, shown: Shown | None) -> NDArray[np.bool_]:
    """Which places are of what is shown anyway."""
    if shown is None or shown.session not in places.sessions:
        return np.zeros(len(at), dtype=bool)
    here = places.session[at] == places.sessions.index(shown.session)
    inside: NDArray[np.bool_] = here & (places.seq[at] >= shown.first_seq)
    return inside


def look_at(connection: Connection, said: Said, asked: Asked) -> Looked:
    """The candidates: the best by words, the nearest, where facts were learnt, and what stands
    beside all these."""
    places = said.places
    nearest = said.kept.numbers(asked.nearest, partial(_by_id, connection, said.owner_n))
    learnt = _learnt(connection, said.owner_n, asked)
    of_facts = places.at([n for _, n in learnt])
    chosen = np.concatenate(
        (said.best(asked.each), places.at(nearest), of_facts, _of_the_time(said, asked))
    )
    at = places.with_neighbours(chosen[chosen >= 0])
    if said.unread:
        said = lexical.completed(connection, said, places.with_neighbours(at, 2))
    known, vectors = _vectors(connection, said, places.with_neighbours(at), asked)
    passages = NO_PASSAGES
    if asked.by_passage:
        passages = said.kept.passages(places.n[at].tolist(), asked.space)
    own, near = cosines(asked.vector, vectors, known, at, places, passages)
    nothing = np.zeros(len(at))
    facts = np.zeros(len(at))
    for (message, _), place in zip(learnt, of_facts.tolist(), strict=True):
        if place >= 0:
            here = np.searchsorted(at, place)
            facts[here] = max(facts[here], asked.sources[message])
    return Looked(
        places,
        at,
        said.scores(at),
        own,
        near,
        speaker=asked.speaker(places, at) if asked.speaker else nothing,
        person=asked.person(places, at) if asked.person else nothing,
        time=asked.when(places, at) if asked.when else nothing,
        facts=facts,
    )


OF_A_TIME: Final = 30
"""Episodes of a time that is asked for that are candidates: the best by words."""
ALL_OF_A_TIME: Final = 100
"""Where there are no more of that time than this, they all are."""


def _of_the_time(said: Said, asked: Asked) -> Numbers:
    """Candidates for being of a time that is asked for."""
    if asked.when is None:
        return np.zeros(0, dtype=np.int64)
    anywhere = np.arange(len(said.places))
    every = asked.when.inside(said.places, anywhere)
    if asked.when.alone and (asked.accepts or not len(every)):  # what is inside may not be accepted
        every = asked.when.beside(said.places, anywhere)
    if len(every) <= ALL_OF_A_TIME:
        return every
    return said.best(OF_A_TIME, among=every)


def _learnt(connection: Connection, owner_n: int, asked: Asked) -> list[tuple[str, int]]:
    """The messages that facts were learnt from, and the numbers of their episodes."""
    if not asked.sources:
        return []
    given = {"owner_n": owner_n, "ids": list(asked.sources)}
    return [(row[0], row[1]) for row in _BY_MESSAGE(connection).rows(connection, given)]


def _by_id(connection: Connection, owner_n: int, ids: Sequence[str]) -> dict[str, int]:
    given = {"owner_n": owner_n, "ids": list(ids)}
    return {row[0]: row[1] for row in _BY_ID(connection).rows(connection, given)}


def _vectors(
    connection: Connection, said: Said, wanted: Numbers, asked: Asked
) -> tuple[Numbers, Vectors]:
    """The places that have a vector in the space, in order, and the vectors."""
    if asked.vector is None:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)

    def read(numbers: Sequence[int]) -> dict[int, bytes]:
        given = {"numbers": list(numbers), "space": asked.space}
        return {row[0]: row[1] for row in _VECTORS(connection).rows(connection, given)}

    numbers = said.places.n[wanted].tolist()
    found, matrix = said.kept.vectors(numbers, asked.space, len(asked.vector), read)
    if len(found) == len(numbers):
        return wanted, matrix
    return said.places.at(found), matrix
