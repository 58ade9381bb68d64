"""Reading and writing the tables of episodes: plain functions for units of work of the journal.

Each is given whose episodes it may touch and asks for nothing else, except those at the end, which
serve repairs and rebuilds and see everybody's. Vectors are little-endian float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from memory import lexical
from memory.codec import decode, digest, encode
from memory.errors import Corrupt
from memory.journal.database import insert_into
from memory.journal.episode_tables import (
    episode_flaws,
    episode_owners,
    episode_spaces,
    episode_vectors,
    episodes,
    owner_spaces,
)
from memory.journal.events import to_bytes, to_text
from memory.lexical import Posting
from memory.models import Episode, Role
from memory.text import LEXICON
from memory.times import from_micros, to_micros

T = TypeVar("T")
Vector = NDArray[np.float32]

_SLICE = 1_000
"""Ids looked up in one statement."""


class Owner(NamedTuple):
    """A user as the tables know one. `active` counts the episodes that are not archived."""

    n: int
    owner: bytes
    active: int
    has_own_collection: bool


class Known(NamedTuple):
    """An episode that is stored: its number, its vector's space if it has one, and its fate."""

    n: int
    space: int | None
    archived: bool


class New(NamedTuple):
    """An episode to store, with its vector, or with the reason why there is none."""

    episode: Episode
    vector: Vector | None
    flaw: str


class Space(NamedTuple):
    """An embedder's space, and how many vectors are in it."""

    space: int
    identity: str
    dims: int
    vectors: int


# --- owners and spaces -------------------------------------------------------------------------

_OWNER_COLUMNS = (
    episode_owners.c.n,
    episode_owners.c.owner,
    episode_owners.c.active,
    episode_owners.c.has_own_collection,
)
_OWNER = select(*_OWNER_COLUMNS).where(episode_owners.c.owner == bindparam("owner"))


def owner_of(connection: Connection, owner: bytes) -> Owner | None:
    """The user, if anything was ever stored for them."""
    row = connection.execute(_OWNER, {"owner": owner}).one_or_none()
    return None if row is None else _owner(row)


def made_owner(connection: Connection, owner: bytes) -> Owner:
    """The user, known from now on."""
    found = owner_of(connection, owner)
    if found is not None:
        return found
    row = {"owner": owner, "active": 0, "words": 0, "lexicon": LEXICON}
    connection.execute(
        insert_into(connection, episode_owners).on_conflict_do_nothing(),
        {**row, "has_own_collection": False},
    )
    return _owner(connection.execute(_OWNER, {"owner": owner}).one())


def _owner(row: Any) -> Owner:
    return Owner(row.n, row.owner, row.active, bool(row.has_own_collection))


def move_to_own_collection(connection: Connection, owner_n: int) -> None:
    connection.execute(
        update(episode_owners).where(episode_owners.c.n == owner_n).values(has_own_collection=True)
    )


def space_of(connection: Connection, identity: str, dims: int) -> int:
    """The number of the space that an embedder's vectors are in; new ones get one."""
    key = bytes.fromhex(digest(encode([identity, dims])))
    wanted = select(episode_spaces.c.space).where(episode_spaces.c.hash == key)
    found = connection.scalar(wanted)
    if found is None:
        connection.execute(
            insert_into(connection, episode_spaces).on_conflict_do_nothing(),
            {"hash": key, "identity": to_bytes(identity), "dims": dims},
        )
        found = connection.scalars(wanted).one()
    return int(found)


def spaces(connection: Connection, owner_n: int | None = None) -> list[Space]:
    """The spaces that vectors are in, of one user or (None) of everybody, by number."""
    wanted = (
        select(
            episode_spaces.c.space,
            episode_spaces.c.identity,
            episode_spaces.c.dims,
            func.sum(owner_spaces.c.vectors),
        )
        .join(owner_spaces, owner_spaces.c.space == episode_spaces.c.space)
        .group_by(episode_spaces.c.space, episode_spaces.c.identity, episode_spaces.c.dims)
        .having(func.sum(owner_spaces.c.vectors) > 0)
        .order_by(episode_spaces.c.space)
    )
    if owner_n is not None:
        wanted = wanted.where(owner_spaces.c.owner_n == owner_n)
    return [
        Space(space, to_text(identity), dims, int(vectors))
        for space, identity, dims, vectors in connection.execute(wanted)
    ]


def _count_vectors(connection: Connection, owner_n: int, space: int, more: int) -> None:
    statement = insert_into(connection, owner_spaces)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["owner_n", "space"],
            set_={"vectors": owner_spaces.c.vectors + statement.excluded.vectors},
        ),
        {"owner_n": owner_n, "space": space, "vectors": more},
    )


# --- writing -----------------------------------------------------------------------------------

_KNOWN = (
    select(episodes.c.id, episodes.c.n, episode_vectors.c.space, episodes.c.archived)
    .outerjoin(episode_vectors, episode_vectors.c.n == episodes.c.n)
    .where(
        episodes.c.owner_n == bindparam("owner_n"),
        episodes.c.id.in_(bindparam("ids", expanding=True)),
    )
)


def known(connection: Connection, owner_n: int, ids: Sequence[str]) -> dict[str, Known]:
    """Those of the ids that the user has."""
    return {
        row.id: Known(row.n, row.space, bool(row.archived))
        for part in slices(ids, _SLICE)
        for row in connection.execute(_KNOWN, {"owner_n": owner_n, "ids": part})
    }


def add(
    connection: Connection, owner_n: int, found: Sequence[tuple[New, lexical.Terms]], space: int
) -> None:
    """Stores episodes that are not there yet, with their vectors (in `space`) and postings."""
    stored = known(connection, owner_n, [new.episode.id for new, _ in found])
    fresh = {new.episode.id: (new, terms) for new, terms in found if new.episode.id not in stored}
    if not fresh:
        return
    connection.execute(
        insert(episodes), [_columns(owner_n, new.episode, terms) for new, terms in fresh.values()]
    )
    numbers = {id_: row.n for id_, row in known(connection, owner_n, list(fresh)).items()}
    put_vectors(
        connection,
        owner_n,
        space,
        {numbers[id_]: new.vector for id_, (new, _) in fresh.items() if new.vector is not None},
    )
    flawed = {numbers[id_]: new.flaw for id_, (new, _) in fresh.items() if new.vector is None}
    note_flaws(connection, flawed)
    lexical.index(
        connection, owner_n, [Posting(numbers[id_], terms) for id_, (_, terms) in fresh.items()]
    )


def put_vectors(
    connection: Connection, owner_n: int, space: int, vectors: dict[int, Vector]
) -> None:
    """The vectors of a user's episodes, in place of what was there."""
    if not vectors:
        return
    for part in slices(list(vectors), _SLICE):
        before = connection.execute(
            select(episode_vectors.c.space, func.count())
            .where(episode_vectors.c.n.in_(part))
            .group_by(episode_vectors.c.space)
        ).all()
        for other, count in before:
            _count_vectors(connection, owner_n, other, -count)
        if before:
            connection.execute(delete(episode_vectors).where(episode_vectors.c.n.in_(part)))
        connection.execute(
            insert(episode_vectors),
            [{"n": n, "space": space, "vector": to_vector_bytes(vectors[n])} for n in part],
        )
        connection.execute(delete(episode_flaws).where(episode_flaws.c.n.in_(part)))
    _count_vectors(connection, owner_n, space, len(vectors))


def note_flaws(connection: Connection, reasons: dict[int, str]) -> None:
    """Why episodes have no vector, after one more attempt."""
    if not reasons:
        return
    statement = insert_into(connection, episode_flaws)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["n"],
            set_={
                "reason": statement.excluded.reason,
                "attempts": episode_flaws.c.attempts + 1,
            },
        ),
        [{"n": n, "reason": to_bytes(why), "attempts": 1} for n, why in reasons.items()],
    )


def set_archived(
    connection: Connection, owner_n: int, ids: Sequence[str], *, archived: bool
) -> list[Episode]:
    """Takes episodes out of recall, or back in; the ones that changed, as they were."""
    changed = [
        (row.n, _episode(row))
        for part in slices(ids, _SLICE)
        for row in connection.execute(
            select(*_FIELDS_OF_EPISODES, episodes.c.n).where(
                episodes.c.owner_n == owner_n,
                episodes.c.id.in_(part),
                episodes.c.archived.is_(not archived),
            )
        )
    ]
    for part in slices([n for n, _ in changed], _SLICE):
        connection.execute(update(episodes).where(episodes.c.n.in_(part)).values(archived=archived))
    postings = [Posting.of(n, episode.text) for n, episode in changed]
    if archived:
        lexical.unindex(connection, owner_n, postings)
    else:
        lexical.index(connection, owner_n, postings)
    return [episode for _, episode in changed]


def set_pinned(connection: Connection, owner_n: int, ids: Sequence[str], *, pinned: bool) -> None:
    for part in slices(ids, _SLICE):
        connection.execute(
            update(episodes)
            .where(episodes.c.owner_n == owner_n, episodes.c.id.in_(part))
            .values(pinned=pinned)
        )


def touch(connection: Connection, owner_n: int, ids: Sequence[str], now: datetime) -> None:
    """Notes that the episodes were used; never sets a time back."""
    at = to_micros(now)
    for part in slices(ids, _SLICE):
        connection.execute(
            update(episodes)
            .where(
                episodes.c.owner_n == owner_n,
                episodes.c.id.in_(part),
                or_(episodes.c.last_access.is_(None), episodes.c.last_access < at),
            )
            .values(last_access=at)
        )


def _columns(owner_n: int, episode: Episode, terms: lexical.Terms) -> dict[str, Any]:
    last = episode.last_access
    return {
        "owner_n": owner_n,
        "id": episode.id,
        "session": episode.session,
        "message_id": episode.message_id,
        "seq": episode.seq,
        "part": episode.part,
        "parts": episode.parts,
        "role": episode.role.value,
        "speaker": to_bytes(episode.speaker),
        "agent": episode.agent,
        "text": to_bytes(episode.text),
        "metadata": encode(episode.metadata),
        "event_time": to_micros(episode.event_time),
        "recorded_at": to_micros(episode.recorded_at),
        "importance": episode.importance,
        "pinned": episode.pinned,
        "archived": episode.archived,
        "last_access": None if last is None else to_micros(last),
        "words": terms.total(),
    }


# --- reading -----------------------------------------------------------------------------------

_FIELDS = tuple(Episode.model_fields)
_FIELDS_OF_EPISODES = tuple(episodes.c[name] for name in _FIELDS)
_EPISODES = select(*_FIELDS_OF_EPISODES, episode_owners.c.owner).join(
    episode_owners, episode_owners.c.n == episodes.c.owner_n
)
_BY_ID = _EPISODES.where(
    episode_owners.c.owner == bindparam("owner"),
    episodes.c.id.in_(bindparam("ids", expanding=True)),
)


_BY_NUMBER = (
    select(*_FIELDS_OF_EPISODES, episodes.c.n, episode_owners.c.owner)
    .join(episode_owners, episode_owners.c.n == episodes.c.owner_n)
    .where(
        episode_owners.c.owner == bindparam("owner"),
        episodes.c.n.in_(bindparam("numbers", expanding=True)),
    )
)


def by_id(connection: Connection, owner: bytes, ids: Sequence[str]) -> list[Episode]:
    """Those of the ids that the user has, in no order."""
    return [
        episode
        for part in slices(ids, _SLICE)
        for episode in _owned(owner, connection.execute(_BY_ID, {"owner": owner, "ids": part}))
    ]


def by_number(connection: Connection, owner: bytes, numbers: Sequence[int]) -> dict[int, Episode]:
    """Those of the numbers that are the user's episodes."""
    return {
        row.n: episode
        for part in slices(numbers, _SLICE)
        for row, episode in _numbered(
            owner, connection.execute(_BY_NUMBER, {"owner": owner, "numbers": part})
        )
    }


def matching(
    connection: Connection, owner: bytes, *conditions: ColumnElement[bool]
) -> list[Episode]:
    """The user's episodes that meet all conditions, by session, place and part."""
    wanted = _EPISODES.where(and_(episode_owners.c.owner == owner, *conditions))
    found = list(_owned(owner, connection.execute(wanted)))
    found.sort(key=lambda one: (one.session, one.seq, one.part, one.id))
    return found


def vectors_of(
    connection: Connection, owner: bytes, ids: Sequence[str], space: int
) -> dict[str, Vector]:
    """The vectors in `space` of those of the ids that the user has."""
    return {
        row.id: from_vector_bytes(row.vector)
        for part in slices(ids, _SLICE)
        for row in connection.execute(_VECTORS, {"owner": owner, "ids": part, "space": space})
    }


_VECTORS = (
    select(episodes.c.id, episode_vectors.c.vector)
    .join(episode_vectors, episode_vectors.c.n == episodes.c.n)
    .join(episode_owners, episode_owners.c.n == episodes.c.owner_n)
    .where(
        episode_owners.c.owner == bindparam("owner"),
        episodes.c.id.in_(bindparam("ids", expanding=True)),
        episode_vectors.c.space == bindparam("space"),
    )
)


def _owned(owner: bytes, rows: Iterable[Row[Any]]) -> Iterator[Episode]:
    """The rows as episodes, after checking once more whose they are."""
    return (episode for _, episode in _numbered(owner, rows))


def _numbered(owner: bytes, rows: Iterable[Row[Any]]) -> Iterator[tuple[Row[Any], Episode]]:
    for row in rows:
        if row[-1] != owner:
            raise Corrupt(f"the episode {row.id!r} is somebody else's")
        yield row, _episode(row)


def _episode(row: Any) -> Episode:
    """A row that begins with `_FIELDS`. Nothing is checked again: an Episode was written."""
    fields = dict(zip(_FIELDS, row, strict=False))
    fields["role"] = _ROLES[fields["role"]]
    for name in ("speaker", "text"):
        fields[name] = to_text(fields[name])
    for name in ("event_time", "recorded_at", "last_access"):
        fields[name] = None if fields[name] is None else from_micros(fields[name])
    fields["metadata"] = decode(fields["metadata"]) if fields["metadata"] != _NO_METADATA else {}
    return Episode.trusted(**fields)


_ROLES = {role.value: role for role in Role}
_NO_METADATA = encode({})


def to_vector_bytes(vector: Vector) -> bytes:
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def from_vector_bytes(data: bytes) -> Vector:
    return np.frombuffer(data, dtype="<f4").astype(np.float32, copy=False)


# --- everybody's: for repairs and rebuilds -----------------------------------------------------


class Unplaced(NamedTuple):
    """An episode that has no vector in the current space."""

    n: int
    owner_n: int
    owner: bytes
    id: str
    text: str
    archived: bool


class Placed(NamedTuple):
    """A vector that belongs into the index."""

    n: int
    id: str
    owner: bytes
    vector: Vector


def owners(connection: Connection) -> list[Owner]:
    """Everybody, by number."""
    rows = connection.execute(select(*_OWNER_COLUMNS).order_by(episode_owners.c.n))
    return [_owner(row) for row in rows]


def placed_counts(connection: Connection, space: int) -> dict[int, int]:
    """How many vectors of each user (by number) belong into the index of `space`."""
    rows = connection.execute(
        select(episodes.c.owner_n, func.count())
        .join(episode_vectors, episode_vectors.c.n == episodes.c.n)
        .where(episode_vectors.c.space == space, episodes.c.archived.is_(False))
        .group_by(episodes.c.owner_n)
    )
    return {row[0]: row[1] for row in rows}


def placed_ids(connection: Connection, owner_numbers: Sequence[int], space: int) -> set[str]:
    """The ids of these users' episodes whose vectors belong into the index of `space`."""
    return {
        row.id
        for part in slices(owner_numbers, _SLICE)
        for row in connection.execute(
            select(episodes.c.id)
            .join(episode_vectors, episode_vectors.c.n == episodes.c.n)
            .where(
                episodes.c.owner_n.in_(part),
                episode_vectors.c.space == space,
                episodes.c.archived.is_(False),
            )
        )
    }


def placed(
    connection: Connection, owner_n: int, space: int, *, after: int, limit: int
) -> list[Placed]:
    """A user's vectors that belong into the index, by number from `after` on."""
    rows = connection.execute(
        select(episodes.c.n, episodes.c.id, episode_owners.c.owner, episode_vectors.c.vector)
        .join(episode_vectors, episode_vectors.c.n == episodes.c.n)
        .join(episode_owners, episode_owners.c.n == episodes.c.owner_n)
        .where(
            episodes.c.owner_n == owner_n,
            episodes.c.n > after,
            episode_vectors.c.space == space,
            episodes.c.archived.is_(False),
        )
        .order_by(episodes.c.n)
        .limit(limit)
    )
    return [Placed(row.n, row.id, row.owner, from_vector_bytes(row.vector)) for row in rows]


_UNPLACED = (
    select(
        episodes.c.n,
        episodes.c.owner_n,
        episode_owners.c.owner,
        episodes.c.id,
        episodes.c.text,
        episodes.c.archived,
    )
    .join(episode_owners, episode_owners.c.n == episodes.c.owner_n)
    .outerjoin(episode_vectors, episode_vectors.c.n == episodes.c.n)
)


def elsewhere(connection: Connection, space: int, *, after: int, limit: int) -> list[Unplaced]:
    """Episodes with a vector in another space, or with none, by number from `after` on."""
    return _unplaced(
        connection.execute(
            _UNPLACED.where(
                episodes.c.n > after,
                or_(episode_vectors.c.n.is_(None), episode_vectors.c.space != space),
            )
            .order_by(episodes.c.n)
            .limit(limit)
        )
    )


def count_elsewhere(connection: Connection, space: int) -> int:
    """How many episodes `elsewhere` would give in all."""
    return int(
        connection.scalar(
            select(func.count())
            .select_from(episodes)
            .outerjoin(episode_vectors, episode_vectors.c.n == episodes.c.n)
            .where(or_(episode_vectors.c.n.is_(None), episode_vectors.c.space != space))
        )
        or 0
    )


def flawed(connection: Connection, *, limit: int) -> list[Unplaced]:
    """Episodes without a vector, those first that were tried least often."""
    return _unplaced(
        connection.execute(
            _UNPLACED.join(episode_flaws, episode_flaws.c.n == episodes.c.n)
            .where(episode_vectors.c.n.is_(None))
            .order_by(episode_flaws.c.attempts, episode_flaws.c.n)
            .limit(limit)
        )
    )


def count_flawed(connection: Connection) -> int:
    return int(connection.scalar(select(func.count()).select_from(episode_flaws)) or 0)


def _unplaced(rows: Iterable[Any]) -> list[Unplaced]:
    return [
        Unplaced(row.n, row.owner_n, row.owner, row.id, to_text(row.text), bool(row.archived))
        for row in rows
    ]


def owners_with_other_lexicon(connection: Connection) -> list[Owner]:
    """Users whose postings were made by other rules than today's, by number."""
    wanted = select(*_OWNER_COLUMNS).where(episode_owners.c.lexicon != LEXICON)
    return [_owner(row) for row in connection.execute(wanted.order_by(episode_owners.c.n))]


def reindex(connection: Connection, owner_n: int) -> None:
    """A user's postings, made again from the texts."""
    lexical.forget_all(connection, owner_n)
    rows = connection.execute(
        select(episodes.c.n, episodes.c.text)
        .where(episodes.c.owner_n == owner_n, episodes.c.archived.is_(False))
        .order_by(episodes.c.n)
    ).all()
    for part in slices(rows, _SLICE):
        lexical.index(connection, owner_n, [Posting.of(row.n, to_text(row.text)) for row in part])
    connection.execute(
        update(episode_owners).where(episode_owners.c.n == owner_n).values(lexicon=LEXICON)
    )


def slices(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
