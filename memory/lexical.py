"""Lexical search: BM25 over postings of our own, in the journal's database.

Every posting is keyed by the user first and holds the length of its episode, so that a search reads
one range for each term and nothing of anybody else's. The score is that of Robertson and Zaragoza,
"The Probabilistic Relevance Framework: BM25 and Beyond" (2009): the sum over the query's terms of

    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * words / average))

over the user's N episodes that are not archived; archived ones have no postings. Which rules made
the terms is kept with the user: after a change of `text.LEXICON` a rebuild makes them again.

What is common tells little and costs most. So the rarest terms choose the candidates, as many as
have READ postings together, and the others only add to the scores of these. With no more postings
than that, which is all but always, nothing is left out; else the rarest term is read at its newest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar, cast

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
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
from memory.journal.database import insert_into
from memory.journal.episode_tables import (
    episode_owners,
    episodes,
    posted_terms,
    postings,
)
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
READ = 2_000
"""Postings that choose the candidates."""
CANDIDATES = 100
"""Candidates that common terms add to, at least."""
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
    _count(connection, owner_n, found, 1)


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
    _count(connection, owner_n, found, -1)


def forget_all(connection: Connection, owner_n: int) -> None:
    """Empties a user's part of the index, inside the caller's transaction."""
    for table in (postings, posted_terms):
        connection.execute(delete(table).where(table.c.owner_n == owner_n))
    connection.execute(
        update(episode_owners).where(episode_owners.c.n == owner_n).values(active=0, words=0)
    )


def _count(connection: Connection, owner_n: int, found: Sequence[Posting], sign: int) -> None:
    """Adds episodes to the counts, or with -1 takes them away."""
    saying = Counter(term for each in found for term in each.terms)
    rows = [
        {"owner_n": owner_n, "term": term, "episodes": sign * count}
        for term, count in sorted(saying.items())
    ]
    statement = insert_into(connection, posted_terms)
    counted = statement.on_conflict_do_update(
        index_elements=["owner_n", "term"],
        set_={"episodes": posted_terms.c.episodes + statement.excluded.episodes},
    )
    for part in _slices(rows):
        connection.execute(counted, part)
    connection.execute(
        update(episode_owners)
        .where(episode_owners.c.n == owner_n)
        .values(
            active=episode_owners.c.active + sign * len(found),
            words=episode_owners.c.words + sign * sum(each.words for each in found),
        )
    )


def _key(term: str) -> int:
    """A term as a number: 64 bits of its hash."""
    hashed = blake2b(term.encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big", signed=True)


# --- searching ---------------------------------------------------------------------------------

_FREQUENCIES = (
    select(
        episode_owners.c.n,
        episode_owners.c.active,
        episode_owners.c.words,
        posted_terms.c.term,
        posted_terms.c.episodes,
    )
    .join(posted_terms, posted_terms.c.owner_n == episode_owners.c.n)
    .where(
        episode_owners.c.owner == bindparam("owner"),
        posted_terms.c.term.in_(bindparam("terms", expanding=True)),
        posted_terms.c.episodes > 0,
    )
)


class _Term(NamedTuple):
    """A term that the user's episodes say: what it weighs, and how many say it."""

    key: int
    weight: float
    episodes: int


def _search(connection: Connection, scope: Scope, wanted: Sequence[int], k: int) -> list[Hit]:
    found = connection.execute(_FREQUENCIES, {"owner": owner_of(scope), "terms": wanted}).all()
    if not found:
        return []
    user = _User(*found[0][:3])
    weighed = sorted(
        (_Term(term, _weight(user, df), df) for *_, term, df in found),
        key=lambda term: (term.episodes, term.key),
    )[:LONGEST_QUERY]
    choosing = _choosing(weighed)
    common = weighed[len(choosing) :]
    if not common:
        return _ranked(_best(connection, user, choosing, k), k)
    candidates = _best(connection, user, choosing, max(CANDIDATES, 2 * k))
    return _ranked(_completed(connection, user, common, candidates), k)


def _weight(user: _User, df: int) -> float:
    return (K1 + 1) * math.log1p(max(0.0, user.active - df + 0.5) / (df + 0.5))


def _choosing(weighed: Sequence[_Term]) -> list[_Term]:
    """The rarest terms, as many as have READ postings together; at least one."""
    chosen, read = [weighed[0]], weighed[0].episodes
    for term in weighed[1:]:
        read += term.episodes
        if read > READ:
            break
        chosen.append(term)
    return chosen


class _Scored(NamedTuple):
    n: int
    id: str
    score: float


def _best(connection: Connection, user: _User, chosen: Sequence[_Term], k: int) -> list[_Scored]:
    """The best `k` by these terms, ties by id."""
    statement = _scoring(len(chosen), chosen[0].episodes > READ)
    rows = connection.execute(statement, {**_given(user, chosen), "k": k})
    return [_Scored(n, id_, score) for n, id_, score in rows]


def _completed(
    connection: Connection, user: _User, common: Sequence[_Term], candidates: Sequence[_Scored]
) -> list[_Scored]:
    """The candidates with what the common terms add to their scores."""
    more = dict.fromkeys((one.n for one in candidates), 0.0)
    given = _given(user, common)
    for part in _slices(list(more), _LOOKED_UP):
        rows = connection.execute(_adding(len(common)), {**given, "numbers": part})
        more.update((row[0], row[1]) for row in rows)
    return [one._replace(score=one.score + more[one.n]) for one in candidates]


def _given(user: _User, weighed: Sequence[_Term]) -> dict[str, float]:
    """The parameters of `_scoring` and `_adding`."""
    average = max(user.words / user.active, 1.0)
    given = {"owner_n": user.n, "per_word": K1 * B / average}
    for at, term in enumerate(weighed):
        given[f"term_{at}"], given[f"weight_{at}"] = term.key, term.weight
    return given


@lru_cache(maxsize=2 * LONGEST_QUERY)
def _scoring(terms_given: int, is_too_much: bool) -> Select[Any]:
    """The best by so many terms. With `is_too_much`, only the newest of the postings are read."""
    wanted = _chosen_postings(terms_given)
    if is_too_much:
        wanted = wanted.order_by(postings.c.n.desc()).limit(READ)
    read = wanted.subquery().c
    score = func.sum(_part(terms_given, read)).label("score")
    scored = select(read.n, score).group_by(read.n).subquery()
    return (
        select(scored.c.n, episodes.c.id, scored.c.score)
        .join(episodes, episodes.c.n == scored.c.n)
        .where(episodes.c.owner_n == bindparam("owner_n", type_=BigInteger))
        .order_by(func.round(scored.c.score * 10.0**_PLACES).desc(), episodes.c.id)
        .limit(bindparam("k", type_=Integer))
    )


@lru_cache(maxsize=LONGEST_QUERY)
def _adding(terms_given: int) -> Select[Any]:
    """What so many terms add to the scores of the episodes with `numbers`."""
    return (
        _chosen_postings(terms_given)
        .with_only_columns(postings.c.n, func.sum(_part(terms_given, postings.c)))
        .where(postings.c.n.in_(bindparam("numbers", expanding=True)))
        .group_by(postings.c.n)
    )


def _chosen_postings(terms_given: int) -> Select[Any]:
    wanted = [bindparam(f"term_{at}", type_=BigInteger) for at in range(terms_given)]
    return select(postings).where(
        postings.c.owner_n == bindparam("owner_n", type_=BigInteger), postings.c.term.in_(wanted)
    )


def _part(terms_given: int, columns: Any) -> ColumnElement[float]:
    """What one posting adds to the score of its episode."""
    weight = case(
        *(
            (
                columns.term == bindparam(f"term_{at}", type_=BigInteger),
                bindparam(f"weight_{at}", type_=Float),
            )
            for at in range(terms_given)
        ),
        else_=0.0,
    )
    length = K1 * (1 - B) + columns.words * bindparam("per_word", type_=Float)
    return cast(ColumnElement[float], weight * columns.times / (columns.times + length))


def _ranked(scored: Sequence[_Scored], k: int) -> list[Hit]:
    hits = [Hit(one.id, round(one.score, _PLACES)) for one in scored]
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    return hits[:k]


def _slices(rows: Sequence[T], size: int = _SLICE) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
