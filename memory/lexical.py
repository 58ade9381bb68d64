"""Lexical search: BM25 over postings of our own, in the journal's database.

Every posting is keyed by the user first, so that a search reads one range for each term and nothing
of anybody else's. How long an episode is and what stands beside it is known from the user's
`Places`, which are read once and kept; `bm25` has the formula. Archived episodes have no postings.
Which rules made the terms is kept with the user: after a change of `text.LEXICON` a rebuild makes
them again.

What is common tells little and costs most. So the rarest terms choose the candidates, as many as
have READ postings together, and the others only add to the scores of these. With no more postings
than that, which is all but always, nothing is left out; else the rarest term is read at its newest.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from memory.bm25 import Said, Term, best, rarest_first
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
from memory.models import Scope
from memory.places import Numbers, Places, Row
from memory.text import only_asking, terms

T = TypeVar("T")
Terms = Counter[int]
"""The terms of a text as numbers, with their repetitions."""

LONGEST_QUERY = 64
"""Different terms of a query that count; of a longer query, the rarest ones."""
READ = 2_000
"""Postings that choose the candidates."""
CANDIDATES = 100
"""Candidates that common terms add to, at least."""
ROOM = 500_000
"""Episodes whose places are kept in memory, over all users: some thirty megabytes."""
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


class Query(NamedTuple):
    """The terms of a query, as the index has them; `asking` are those of words that only ask."""

    keys: tuple[int, ...]
    asking: frozenset[int] = frozenset()

    @classmethod
    def of(cls, query: str) -> Query:
        keys = tuple(dict.fromkeys(map(_key, terms(query))))[:_LOOKED_UP]
        return cls(keys, frozenset(map(_key, only_asking(query))))


class LexicalIndex:
    """Search by words in one user's episodes."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.shelf = Shelf()

    async def search(self, scope: Scope, query: str, k: int) -> list[Hit]:
        """The best `k` episodes by BM25 (> 0), best first, ties by id. None for a query without
        terms. Raises TierUnavailable("journal", …).
        """
        if k < 1:
            raise InvalidInput(f"k is {k}; at least 1 is wanted")
        wanted = Query.of(query)
        if not wanted.keys:
            return []
        return await self._journal.query(lambda c: self._search(c, scope, wanted, k))

    def _search(self, connection: Connection, scope: Scope, query: Query, k: int) -> list[Hit]:
        found = said(connection, self.shelf, scope, query)
        if found is None:
            return []
        if found.unread:
            at, own = found.scores.at, found.scores.own
            found = completed(connection, found, best(at, own, max(CANDIDATES, 2 * k)))
        at, own = found.scores.at, np.round(found.scores.own, _PLACES)
        if len(first := best(at, own, k)) < k:
            chosen = own > 0
        else:  # with those as good as the last one: their ids decide
            chosen = own >= own[np.searchsorted(at, first[-1])]
        numbers = found.places.n[at[chosen]].tolist()
        scored = dict(zip(numbers, own[chosen].tolist(), strict=True))
        hits = [
            Hit(row.id, scored[row.n])
            for part in _slices(list(scored), _LOOKED_UP)
            for row in connection.execute(_IDS, {"owner_n": found.owner_n, "numbers": part})
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:k]


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
        update(episode_owners)
        .where(episode_owners.c.n == owner_n)
        .values(active=0, words=0, edition=episode_owners.c.edition + 1)
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
            edition=episode_owners.c.edition + (sign < 0),
        )
    )


def _key(term: str) -> int:
    """A term as a number: 64 bits of its hash."""
    hashed = blake2b(term.encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big", signed=True)


# --- searching ---------------------------------------------------------------------------------


class _User(NamedTuple):
    """Whose index it is: how many episodes are in it, and which edition of them it is."""

    n: int
    active: int
    edition: int


_USER = select(episode_owners.c.n, episode_owners.c.active, episode_owners.c.edition).where(
    episode_owners.c.owner == bindparam("owner")
)
_FREQUENCIES = select(posted_terms.c.term, posted_terms.c.episodes).where(
    posted_terms.c.owner_n == bindparam("owner_n"),
    posted_terms.c.term.in_(bindparam("terms", expanding=True)),
)
_EPISODES = select(*(episodes.c[name] for name in Row._fields)).where(
    episodes.c.owner_n == bindparam("owner_n"),
    episodes.c.n > bindparam("after"),
    episodes.c.archived.is_(False),
)
_POSTINGS = select(postings.c.term, postings.c.n, postings.c.times).where(
    postings.c.owner_n == bindparam("owner_n"),
    postings.c.term.in_(bindparam("terms", expanding=True)),
)
_NEWEST = _POSTINGS.order_by(postings.c.n.desc()).limit(READ)
_OF_NUMBERS = _POSTINGS.where(postings.c.n.in_(bindparam("numbers", expanding=True)))
_IDS = select(episodes.c.n, episodes.c.id).where(
    episodes.c.owner_n == bindparam("owner_n"),
    episodes.c.n.in_(bindparam("numbers", expanding=True)),
)


class Shelf:
    """The places of those users who were asked about last, of so many episodes in all.

    Kept up to date by what the journal says of each: how many episodes there are, and which edition
    they are. Used by several threads at once.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._kept: OrderedDict[int, Places] = OrderedDict()
        self._lock = Lock()

    def places(self, connection: Connection, user: _User) -> Places:
        with self._lock:
            known = self._kept.get(user.n)
        if known is not None and known.edition == user.edition and len(known) >= user.active:
            found = known
        else:
            found = self._read(connection, user, known)
        with self._lock:
            self._kept[user.n] = found
            self._kept.move_to_end(user.n)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > self._room:
                self._kept.popitem(last=False)
        return found

    @staticmethod
    def _read(connection: Connection, user: _User, known: Places | None) -> Places:
        if known is not None and known.edition == user.edition:
            more = _rows(connection, user, known.newest)
            if len(known) + len(more) == user.active:
                return known.with_more(more)
        return Places.of(_rows(connection, user, 0), user.edition)


def _rows(connection: Connection, user: _User, after: int) -> list[Row]:
    given = {"owner_n": user.n, "after": after}
    return [
        Row(*row)._replace(speaker=to_text(row.speaker))
        for row in connection.execute(_EPISODES, given)
    ]


def said(connection: Connection, shelf: Shelf, scope: Scope, query: Query) -> Said | None:
    """What of the query the user's episodes say; None for a user without any."""
    row = connection.execute(_USER, {"owner": owner_of(scope)}).one_or_none()
    if row is None or not row.active:
        return None
    user = _User(*row)
    places = shelf.places(connection, user)
    if not query.keys:
        return Said(user.n, places)
    found = connection.execute(_FREQUENCIES, {"owner_n": user.n, "terms": query.keys}).all()
    saying = {row.term: row.episodes for row in found if row.episodes > 0}
    asked = [Term(key, saying.get(key, 0), user.active, key in query.asking) for key in query.keys]
    known = rarest_first([term for term in asked if term.episodes])[:LONGEST_QUERY]
    unknown = [term for term in asked if not term.episodes][:LONGEST_QUERY]
    read = _choosing(known)
    return Said(
        user.n,
        places,
        terms=(*known, *unknown),
        unread=tuple(known[len(read) :]),
        postings=_postings(connection, user.n, places, known, read),
    )


def completed(connection: Connection, found: Said, places: Numbers) -> Said:
    """With what common terms say at those places and beside them."""
    if not found.unread:
        return found
    numbers = found.places.n[found.places.with_neighbours(places)].tolist()
    rows = [
        _postings(connection, found.owner_n, found.places, found.terms, found.unread, part)
        for part in _slices(numbers, _LOOKED_UP)
    ]
    return found.with_more(np.concatenate(rows) if rows else found.postings[:0])


def _choosing(weighed: Sequence[Term]) -> tuple[Term, ...]:
    """The rarest terms, as many as have READ postings together; at least one."""
    read = 0
    for at, term in enumerate(weighed):
        read += term.episodes
        if at and read > READ:
            return tuple(weighed[:at])
    return tuple(weighed)


def _postings(
    connection: Connection,
    owner_n: int,
    places: Places,
    terms: Sequence[Term],
    wanted: Sequence[Term],
    numbers: Sequence[int] | None = None,
) -> Numbers:
    """The postings of the wanted terms (of episodes with these numbers) as `Said` has them."""
    given: dict[str, Any] = {"owner_n": owner_n, "terms": [term.key for term in wanted]}
    if numbers is None:
        too_many = sum(term.episodes for term in wanted) > READ
        rows = connection.execute(_NEWEST if too_many else _POSTINGS, given).all()
    else:
        rows = connection.execute(_OF_NUMBERS, {**given, "numbers": numbers}).all()
    index = {term.key: at for at, term in enumerate(terms)}
    made = np.empty((len(rows), 3), dtype=np.int64)
    made[:, 0] = [index[row[0]] for row in rows]
    made[:, 1] = places.at([row[1] for row in rows])
    made[:, 2] = [row[2] for row in rows]
    return made[made[:, 1] >= 0]


def _slices(rows: Sequence[T], size: int = _SLICE) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
