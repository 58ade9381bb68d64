"""Lexical search: BM25 over postings of our own, in the journal's database.

Every posting is keyed by the user first and holds the length of its episode, so that a search reads
one range for each term and nothing of anybody else's. The score is that of Robertson and Zaragoza,
"The Probabilistic Relevance Framework: BM25 and Beyond" (2009): the sum over the query's terms of

    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * words / average))

over the user's N episodes that are not archived; archived ones have no postings. Which rules made
the terms is kept with the user: after a change of `text.LEXICON` a rebuild makes them again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    update,
)

from memory.errors import InvalidInput
from memory.journal import Journal
from memory.journal.episode_tables import episode_owners, episodes, postings
from memory.journal.schema import owner_of
from memory.models import Scope
from memory.text import terms

T = TypeVar("T")
Terms = Counter[int]
"""The terms of a text as numbers, with their repetitions."""

K1 = 1.2
B = 0.75
LONGEST_QUERY = 64
"""Different terms of a query that count; of a longer query, the rarest ones."""
_LOOKED_UP = 1_000
"""Different terms whose rarity is looked up, the first ones."""
_PLACES = 9
"""Decimals of a score that order hits: sums of the same numbers can differ in the last bits."""
_SLICE = 5_000


class Hit(NamedTuple):
    """An episode that was found, and how well it fits."""

    id: str
    score: float


class Posting(NamedTuple):
    """An episode for the index: its number in the journal, and its terms."""

    n: int
    terms: Terms

    @classmethod
    def of(cls, n: int, text: str) -> Posting:
        return cls(n, counted(text))

    @property
    def words(self) -> int:
        """Its length, in terms."""
        return self.terms.total()


class _User(NamedTuple):
    """Whose index it is, with the number of episodes in it and the sum of their lengths."""

    n: int
    active: int
    words: int


class LexicalIndex:
    """Search by words in one user's episodes."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def search(self, scope: Scope, query: str, k: int) -> list[Hit]:
        """The best `k` episodes by BM25 (> 0), best first, ties by id. None for a query without
        terms. Raises TierUnavailable("journal", …).
        """
        if k < 1:
            raise InvalidInput(f"k is {k}; at least 1 is wanted")
        wanted = list(dict.fromkeys(map(_key, terms(query))))[:_LOOKED_UP]
        if not wanted:
            return []
        return await self._journal.query(lambda connection: _search(connection, scope, wanted, k))


def counted(text: str) -> Terms:
    """The terms of a text as the index takes them."""
    return Counter(map(_key, terms(text)))


def index(connection: Connection, owner_n: int, found: Sequence[Posting]) -> None:
    """Adds episodes that are not in the index yet, inside the caller's transaction."""
    rows = [
        {"owner_n": owner_n, "term": term, "n": each.n, "times": times, "words": each.words}
        for each in found
        for term, times in each.terms.items()
    ]
    rows.sort(key=lambda row: row["term"])  # neighbours in the tree are written together
    for part in _slices(rows):
        connection.execute(insert(postings), part)
    _count(connection, owner_n, len(found), sum(each.words for each in found))


def unindex(connection: Connection, owner_n: int, found: Sequence[Posting]) -> None:
    """Takes episodes out that are in the index, inside the caller's transaction."""
    rows = [{"term_": term, "n_": each.n} for each in found for term in each.terms]
    gone = delete(postings).where(
        postings.c.owner_n == owner_n,
        postings.c.term == bindparam("term_"),
        postings.c.n == bindparam("n_"),
    )
    for part in _slices(rows):
        connection.execute(gone, part)
    _count(connection, owner_n, -len(found), -sum(each.words for each in found))


def forget_all(connection: Connection, owner_n: int) -> None:
    """Empties a user's part of the index, inside the caller's transaction."""
    connection.execute(delete(postings).where(postings.c.owner_n == owner_n))
    connection.execute(
        update(episode_owners).where(episode_owners.c.n == owner_n).values(active=0, words=0)
    )


def _count(connection: Connection, owner_n: int, active: int, words: int) -> None:
    connection.execute(
        update(episode_owners)
        .where(episode_owners.c.n == owner_n)
        .values(active=episode_owners.c.active + active, words=episode_owners.c.words + words)
    )


def _key(term: str) -> int:
    """A term as a number: 64 bits of its hash."""
    hashed = blake2b(term.encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big", signed=True)


# --- searching ---------------------------------------------------------------------------------

_OWNER = select(episode_owners.c.n, episode_owners.c.active, episode_owners.c.words).where(
    episode_owners.c.owner == bindparam("owner")
)
_FREQUENCIES = (
    select(postings.c.term, func.count())
    .where(
        postings.c.owner_n == bindparam("owner_n"),
        postings.c.term.in_(bindparam("terms", expanding=True)),
    )
    .group_by(postings.c.term)
)
_NAMES = (
    select(episodes.c.n, episodes.c.id)
    .join(episode_owners, episode_owners.c.n == episodes.c.owner_n)
    .where(
        episodes.c.n.in_(bindparam("numbers", expanding=True)),
        episode_owners.c.owner == bindparam("owner"),
    )
)


def _search(connection: Connection, scope: Scope, wanted: Sequence[int], k: int) -> list[Hit]:
    owner = owner_of(scope)
    row = connection.execute(_OWNER, {"owner": owner}).one_or_none()
    if row is None or not row.active:
        return []
    user = _User(*row)
    weights = _weights(connection, user, wanted)
    if not weights:
        return []
    best = _best(connection, user, weights, k)
    numbers = [n for n, _ in best]
    names = {
        row.n: row.id
        for part in _slices(numbers)
        for row in connection.execute(_NAMES, {"numbers": part, "owner": owner})
    }
    hits = [Hit(names[n], score) for n, score in best if n in names]
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    return hits[:k]


def _weights(connection: Connection, user: _User, wanted: Sequence[int]) -> dict[int, float]:
    """The weight of each term that the user's episodes say, rarest first."""
    rows = connection.execute(_FREQUENCIES, {"owner_n": user.n, "terms": wanted}).all()
    rarest = sorted(rows, key=lambda row: (row[1], row[0]))[:LONGEST_QUERY]
    return {
        term: (K1 + 1) * math.log1p(max(0.0, user.active - df + 0.5) / (df + 0.5))
        for term, df in rarest
    }


def _best(
    connection: Connection, user: _User, weights: dict[int, float], k: int
) -> list[tuple[int, float]]:
    """At least the best `k`, with all that tie with the last of them."""
    statement = _scoring(user, weights)
    limit = k + 1
    while True:
        rows = connection.execute(statement.limit(limit)).all()
        scored = [(row[0], round(row[1], _PLACES)) for row in rows]
        if len(scored) < limit or scored[-1][1] < scored[k - 1][1]:
            return scored
        limit *= 4


def _scoring(user: _User, weights: dict[int, float]) -> Any:
    average = max(user.words / user.active, 1.0)
    weight: ColumnElement[float] = case(weights, value=postings.c.term, else_=0.0)
    length = K1 * (1 - B) + postings.c.words * bindparam(None, K1 * B / average, Float)
    score = func.sum(weight * postings.c.times / (postings.c.times + length))
    return (
        select(postings.c.n, score)
        .where(and_(postings.c.owner_n == user.n, postings.c.term.in_(list(weights))))
        .group_by(postings.c.n)
        .order_by(score.desc(), postings.c.n)
    )


def _slices(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + _SLICE] for start in range(0, len(rows), _SLICE))
