"""Lexical search: BM25 over postings of our own, in the journal's database.

Every posting is keyed by the user first, so that a search reads one range for each term and nothing
of anybody else's. How long an episode is and what stands beside it is known from the user's
`Places`, which are read once and kept; `bm25` has the formula. Archived episodes have no postings.
Which rules made the terms is kept with the user: after a change of `text.LEXICON` a rebuild makes
them again.

What is common tells little and costs most. So the rarest terms choose the candidates, as many as
have READ postings together, and the others only add to the scores of these. With no more postings
than that, which is all but always, nothing is left out; else the rarest term is read at its newest,
and wherever a candidate says it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from memory.asking import Query
from memory.bm25 import Said, Term, rarest_first, term_key
from memory.errors import InvalidInput
from memory.journal import Journal
from memory.journal.database import insert_into
from memory.journal.episode_tables import (
    episode_owners,
    episodes,
    posted_terms,
    postings,
)
from memory.journal.events import to_text
from memory.journal.schema import owner_of
from memory.journal.statements import among, compiled
from memory.models import Scope
from memory.places import Numbers, Row
from memory.shelf import Asked, Postings, Shelf, split
from memory.text import terms

T = TypeVar("T")
Terms = Counter[int]
"""The terms of a text as numbers, with their repetitions."""

LONGEST_QUERY = 64
"""Different terms of a query that count; of a longer query, the rarest ones."""
NEAR = 8
"""Words near a term that stand for it, at most."""
READ = 2_000
"""Postings that choose the candidates."""
CANDIDATES = 100
"""Candidates that common terms add to, at least."""
KEPT = 20_000
"""Postings of one term that are read whole, and kept in memory."""
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


class LexicalIndex:
    """Search by words in one user's episodes."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.shelf = Shelf()

    async def search(self, scope: Scope, text: str, k: int) -> list[Hit]:
        """The best `k` episodes by BM25 (> 0), best first, ties by id. None for a query without
        terms. Raises TierUnavailable("journal", …).
        """
        if k < 1:
            raise InvalidInput(f"k is {k}; at least 1 is wanted")
        query = Query.of(text).exact()
        if not query.wanted:
            return []
        return await self._journal.query(lambda c: self._search(c, scope, query, k))

    def _search(self, connection: Connection, scope: Scope, query: Query, k: int) -> list[Hit]:
        found = said(connection, self.shelf, scope, query)
        if found is None:
            return []
        if found.unread:
            found = completed(connection, found, np.sort(found.best(max(CANDIDATES, 2 * k))))
        at, own = found.own[0], np.round(found.own[1], _PLACES)
        last = np.sort(own[own > 0])[::-1][:k][-1:]
        chosen = own >= last if len(last) else own > 0  # of those as good as the last, ids decide
        numbers = found.places.n[at[chosen]].tolist()
        scored = dict(zip(numbers, own[chosen].tolist(), strict=True))
        hits = [
            Hit(row.id, scored[row.n])
            for row in _IDS(connection).rows(
                connection, {"owner_n": found.owner_n, "numbers": numbers}
            )
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:k]


def counted(text: str) -> Terms:
    """The terms of a text as the index takes them."""
    return Counter(map(term_key, terms(text)))


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
        update(episode_owners)
        .where(episode_owners.c.n == owner_n)
        .values(active=0, words=0, edition=episode_owners.c.edition + 1)
    )


def another_edition(connection: Connection, owner_n: int) -> None:
    """Says that what is there of a user has changed, other than by more of it."""
    connection.execute(
        update(episode_owners)
        .where(episode_owners.c.n == owner_n)
        .values(edition=episode_owners.c.edition + 1)
    )


def _count(connection: Connection, owner_n: int, found: Sequence[Posting], sign: int) -> None:
    """Adds episodes to the counts, or with -1 takes them away, which is another edition."""
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
            edition=episode_owners.c.edition + int(sign < 0),
        )
    )


# --- searching ---------------------------------------------------------------------------------

_USER = compiled(
    lambda _: select(episode_owners.c.n, episode_owners.c.active, episode_owners.c.edition).where(
        episode_owners.c.owner == bindparam("owner")
    )
)
_FREQUENCIES = compiled(
    lambda dialect: select(posted_terms.c.term, posted_terms.c.episodes).where(
        posted_terms.c.owner_n == bindparam("owner_n"), among(posted_terms.c.term, "terms", dialect)
    )
)
_EPISODES = compiled(
    lambda _: select(
        *(episodes.c[name] for name in Row._fields[:-1]), func.length(episodes.c.text)
    ).where(
        episodes.c.owner_n == bindparam("owner_n"),
        episodes.c.n > bindparam("after"),
        episodes.c.archived.is_(False),
    )
)
_POSTINGS = compiled(
    lambda dialect: select(postings.c.term, postings.c.n, postings.c.times).where(
        postings.c.owner_n == bindparam("owner_n"),
        among(postings.c.term, "terms", dialect),
        postings.c.n > bindparam("after"),
    )
)
_OF_NUMBERS = compiled(
    lambda dialect: select(postings.c.term, postings.c.n, postings.c.times).where(
        postings.c.owner_n == bindparam("owner_n"),
        among(postings.c.term, "terms", dialect),
        among(postings.c.n, "numbers", dialect),
    )
)
_IDS = compiled(
    lambda dialect: select(episodes.c.n, episodes.c.id).where(
        episodes.c.owner_n == bindparam("owner_n"), among(episodes.c.n, "numbers", dialect)
    )
)


def said(connection: Connection, shelf: Shelf, scope: Scope, query: Query) -> Said | None:
    """What of the query the user's episodes say; None for a user without any."""
    rows = _USER(connection).rows(connection, {"owner": owner_of(scope)})
    if not rows or not rows[0].active:
        return None
    user = Asked(*rows[0])
    kept = shelf.of(user, partial(_rows, connection, user.n))
    places = kept.places
    wanted = query.without_names(places)
    given = {"owner_n": user.n, "terms": [each.key for each in wanted]}
    found = _FREQUENCIES(connection).rows(connection, given) if wanted else []
    saying = {row.term: row.episodes for row in found if row.episodes > 0}
    asked = [Term(each, saying.get(each.key, 0), user.active) for each in wanted]
    known = rarest_first([term for term in asked if term.episodes and not term.wanted.near])
    known = known[:LONGEST_QUERY]
    unknown = [term for term in asked if not (term.episodes or term.wanted.near)][:LONGEST_QUERY]
    beside = _nearest([term for term in asked if term.episodes and term.wanted.near])
    chosen = _choosing(known or rarest_first(beside))
    cut = [term for term in chosen if term.episodes > READ]
    others = [term for term in (*known, *beside) if term not in chosen]
    unread = Said(user.n, kept, places, terms=(*known, *unknown, *beside), unread=(*cut, *others))
    read = _whole(connection, unread, chosen)
    newest = {key: (which[-READ:], times[-READ:]) for key, (which, times) in read.items()}
    return unread.with_more(chosen, newest)


def completed(connection: Connection, found: Said, places: Numbers) -> Said:
    """With what common terms say at those places."""
    short = [term for term in found.unread if term.episodes <= KEPT]
    long = [term for term in found.unread if term.episodes > KEPT]
    read = _whole(connection, found, short) if short else {}
    if long:
        read |= _of_some(connection, found, long, places)
    return found.with_more(found.unread, read, places)


def _nearest(beside: Sequence[Term]) -> list[Term]:
    """Of the words near each term that the user's episodes say, the nearest few."""
    groups: dict[int, list[Term]] = {}
    for term in sorted(beside, key=lambda each: (-each.wanted.factor, each.key)):
        groups.setdefault(term.wanted.group, []).append(term)
    return [term for group in groups.values() for term in group[:NEAR]]


def _choosing(weighed: Sequence[Term]) -> tuple[Term, ...]:
    """The rarest terms, as many as have READ postings together; at least one, if there is one."""
    read = 0
    for at, term in enumerate(weighed):
        read += term.episodes
        if at and read > READ:
            return tuple(weighed[:at])
    return tuple(weighed)


def _rows(connection: Connection, owner_n: int, after: int) -> list[Row]:
    given = {"owner_n": owner_n, "after": after}
    return [
        Row(*row)._replace(speaker=to_text(row.speaker))
        for row in _EPISODES(connection).rows(connection, given)
    ]


def _whole(connection: Connection, found: Said, terms: Sequence[Term]) -> dict[int, Postings]:
    """All postings of the terms."""

    def read(keys: Sequence[int], after: int) -> Sequence[Any]:
        given = {"owner_n": found.owner_n, "terms": list(keys), "after": after}
        return _POSTINGS(connection).rows(connection, given)

    return found.kept.postings(found.places, {term.key: term.episodes for term in terms}, read)


def _of_some(
    connection: Connection, found: Said, terms: Sequence[Term], places: Numbers
) -> dict[int, Postings]:
    """The postings of the terms at those places."""
    given = {
        "owner_n": found.owner_n,
        "terms": [term.key for term in terms],
        "numbers": found.places.n[places].tolist(),
    }
    rows = _OF_NUMBERS(connection).rows(connection, given)
    return split(found.places, given["terms"], rows)


def _slices(rows: Sequence[T], size: int = _SLICE) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
