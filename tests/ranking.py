"""Recall without a store: a handful of episodes, with the cosines that a test gives them.

Everything else is real. Rows in memory take the place of the journal behind a real `Shelf`, terms
are counted and weighed as the index does it, and every cosine is that of a vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from memory import lexical
from memory.asking import Query
from memory.bm25 import Said, Term, Wanted, rarest_first
from memory.models import Dropped, Episode, Recalled, Role
from memory.places import Floats, Numbers, Places, Row
from memory.recall import RecallPolicy, ranked
from memory.scoring import Calibration, Looked, Scored, Vectors, cosines, scored
from memory.shelf import Asked, Kept, Shelf
from memory.times import to_micros

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
POLICY = RecallPolicy(
    latin=Calibration(low=0.2, high=0.6), other=Calibration(low=0.2, high=0.6), recency=0.0
)

Part = Callable[[Places, Numbers], Floats]


def episode(name: str, text: str, **fields: Any) -> Episode:
    """Alone in its session unless a test says otherwise."""
    return Episode(
        **{
            "id": name,
            "session": f"session of {name}",
            "message_id": f"message of {name}",
            "seq": 1,
            "role": Role.USER,
            "speaker": "user",
            "text": text,
            "event_time": NOW - timedelta(days=2),
            "recorded_at": NOW,
            **fields,
        }
    )


def conversation(*texts: str, session: str = "monday", first: int = 1) -> list[Episode]:
    """What was said in one session, one after the other: e1, e2 …"""
    return [
        episode(f"e{seq}", text, session=session, seq=seq) for seq, text in enumerate(texts, first)
    ]


def ids(recalled: Iterable[Recalled | Dropped | Episode]) -> list[str]:
    return [each.id for each in recalled]


class Journal:
    """A user's episodes as rows, numbered from 1, and how often which of them were read.

    `edition` counts what was no addition, as the journal's does.
    """

    def __init__(self, episodes: Iterable[Episode] = ()) -> None:
        self.episodes: list[Episode] = []
        self.archived: set[int] = set()
        self.edition = 0
        self.reads: list[tuple[str, int]] = []
        self.add(episodes)

    def add(self, episodes: Iterable[Episode]) -> None:
        self.episodes.extend(episodes)

    def archive(self, *numbers: int) -> None:
        self.archived.update(numbers)
        self.edition += 1

    def unarchive(self, *numbers: int) -> None:
        self.archived.difference_update(numbers)
        self.edition += 1

    def reindex(self) -> None:
        self.edition += 1

    def asked(self, user: int = 1) -> Asked:
        return Asked(user, len(self.rows()), self.edition)

    def rows(self, after: int = 0) -> list[Row]:
        """Rows of places above a number."""
        return [
            Row(
                n,
                each.session,
                each.seq,
                each.part,
                lexical.counted(each.text).total(),
                each.role.value,
                each.speaker,
                to_micros(each.event_time),
                len(each.text.encode(errors="surrogatepass")),
            )
            for n, each in enumerate(self.episodes, start=1)
            if n > after and n not in self.archived
        ]

    def postings(self, keys: Sequence[int], after: int = 0) -> list[tuple[int, int, int]]:
        """A term, a number above one, and how often; the newest first, to be in nobody's order."""
        return [
            (key, n, times)
            for n, each in reversed(list(enumerate(self.episodes, start=1)))
            if n > after and n not in self.archived
            for key, times in lexical.counted(each.text).items()
            if key in keys
        ]

    def saying(self, keys: Iterable[int]) -> dict[int, int]:
        """How many episodes say each of the terms."""
        counts = Counter(key for key, _, _ in self.postings(list(keys)))
        return {key: counts[key] for key in keys}

    def read_rows(self, after: int) -> list[Row]:
        self.reads.append(("places", after))
        return self.rows(after)

    def read_terms(self, keys: Sequence[int], after: int) -> list[tuple[int, int, int]]:
        self.reads.append(("postings", after))
        return self.postings(keys, after)

    def kept(self, shelf: Shelf | None = None, user: int = 1) -> Kept:
        """What a shelf keeps of it, up to date."""
        return (shelf or Shelf()).of(self.asked(user), self.read_rows)

    def said(self, query: str | Sequence[Wanted], kept: Kept | None = None) -> Said:
        """What of a query it says, with nothing left out."""
        kept = kept or self.kept()
        places = kept.places
        if isinstance(query, str):
            wanted = Query.of(query).exact().without_names(places)
        else:
            wanted = tuple(query)
        saying = self.saying([each.key for each in wanted])
        terms = [Term(each, saying[each.key], len(self.rows())) for each in wanted]
        known = rarest_first([term for term in terms if term.episodes])
        unknown = [term for term in terms if not term.episodes]
        found = kept.postings(places, {term.key: term.episodes for term in known}, self.read_terms)
        return Said(1, kept, places, terms=(*known, *unknown)).with_more(known, found)


def wanted(*words: str, near: Mapping[str, tuple[str, float]] | None = None) -> list[Wanted]:
    """Terms of single words, each a group; `near` gives words that count their factor in the
    group of another."""
    group = {word: at for at, word in enumerate(words)}
    made = [Wanted(key_of(word), group[word]) for word in words]
    for word, (other, factor) in (near or {}).items():
        made.append(Wanted(key_of(word), group[other], factor, near=True))
    return made


def key_of(word: str) -> int:
    (key,) = lexical.counted(word)
    return key


def vectors_for(given: Sequence[float]) -> tuple[Vectors, Vectors]:
    """A query's vector, and one for each cosine with it, with nothing else in common."""
    query = np.zeros(len(given) + 1, dtype=np.float32)
    query[0] = 1.0
    vectors = np.zeros((len(given), len(given) + 1), dtype=np.float32)
    for row, cosine in enumerate(given):
        vectors[row, 0] = cosine
        vectors[row, row + 1] = np.sqrt(max(0.0, 1.0 - cosine * cosine))
    return query, vectors


def looked(
    episodes: Iterable[Episode],
    query: str | Sequence[Wanted],
    given: Mapping[str, float] | None = None,
    *,
    speaker: Part | None = None,
    person: Part | None = None,
    time: Part | None = None,
    facts: Mapping[str, float] | None = None,
) -> Looked:
    """The candidates for a query: what says a word of it, what was given a cosine, what stands
    beside these. Episodes that are not given one have no vector."""
    there = list(episodes)
    said = Journal(there).said(query)
    places = said.places
    number = {each.id: n for n, each in enumerate(there, start=1)}
    of = {number[name]: cosine for name, cosine in (given or {}).items()}
    known = places.at(list(of))
    by_place = np.argsort(known)
    vector, vectors = vectors_for(list(of.values()))
    learnt = {number[name]: score for name, score in (facts or {}).items()}
    chosen = np.concatenate((said.own[0], known, places.at(list(learnt))))
    at = places.with_neighbours(chosen)
    own, near = cosines(vector, vectors[by_place], known[by_place], at, places)
    nothing = np.zeros(len(at))
    return Looked(
        places,
        at,
        said.scores(at),
        own,
        near,
        speaker=speaker(places, at) if speaker else nothing,
        person=person(places, at) if person else nothing,
        time=time(places, at) if time else nothing,
        facts=np.array([learnt.get(int(n), 0.0) for n in places.n[at]]),
    )


def score(found: Looked, policy: RecallPolicy = POLICY, *, alone: str | None = None) -> Scored:
    return scored(found, policy.weights, policy.latin, alone=alone)


def names(order: Scored, found: Looked, episodes: Sequence[Episode]) -> list[str]:
    """The candidates in their order, by name."""
    return [episodes[n - 1].id for n in found.places.n[order.at].tolist()]


def recalled(
    query: str,
    episodes: Iterable[Episode],
    given: Mapping[str, float] | None = None,
    *,
    k: int = 8,
    policy: RecallPolicy = POLICY,
    now: datetime = NOW,
    alone: str | None = None,
    **parts: Any,
) -> tuple[list[Recalled], list[Dropped]]:
    """What is recalled of a handful of episodes, and the near misses."""
    there = list(episodes)
    found = looked(there, query, given, **parts)
    order = scored(found, policy.weights, policy.meaning(query), alone=alone)
    read = {at: there[n - 1] for at, n in enumerate(found.places.n[order.at].tolist())}
    return ranked(order, read, query=query, k=k, now=now, policy=policy)
