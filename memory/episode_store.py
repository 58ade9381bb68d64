"""Reading and writing the tables of episodes: plain functions for units of work of the journal.

Each is given whose episodes it may touch and asks for nothing else, except those at the end, which
serve repairs and rebuilds and see everybody's.

Vectors are little-endian float32: that of the whole episode, and behind it those of its passages,
where it has any. Whatever is given only the whole's here reads the first `dims` numbers.
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
    LargeBinary,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from memory import lexical
from memory.codec import decode, digest, encode
from memory.embedding.base import Vectors
from memory.episodes import embedded_texts, searched, searched_text
from memory.errors import Corrupt
from memory.journal.database import insert_into
from memory.journal.episode_tables import (
    belongs_to,
    episode_flaws,
    episode_owners,
    episode_spaces,
    episode_vectors,
    episodes,
    owner_spaces,
)
from memory.journal.events import to_bytes, to_text
from memory.journal.schema import meta
from memory.journal.statements import among, compiled
from memory.lexical import Posting
from memory.models import Episode, Role
from memory.shelf import Episodes
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
    """An episode that is stored: its number, whether it has a vector in a space, and its fate."""

    n: int
    is_embedded: bool
    archived: bool


class New(NamedTuple):
    """An episode to store, with its vectors, or with the reason why there are none.

    `vectors` are rows: the first is that of the whole, the others are those of its passages.
    """

    episode: Episode
    vectors: Vectors | None
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


_WHEREABOUTS = compiled(
    lambda _: (
        select(meta.c.value, *_OWNER_COLUMNS)
        .select_from(meta)
        .outerjoin(episode_owners, episode_owners.c.owner == bindparam("owner"))
        .where(meta.c.key == bindparam("key"))
    )
)


def whereabouts(connection: Connection, key: str, owner: bytes) -> tuple[bytes, Owner | None]:
    """The small value under `key`, and the user, in one go."""
    (row,) = _WHEREABOUTS(connection).rows(connection, {"key": key, "owner": owner})
    return row.value, None if row.n is None else _owner(row)


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
    .outerjoin(
        episode_vectors,
        and_(episode_vectors.c.n == episodes.c.n, episode_vectors.c.space == bindparam("of_space")),
    )
    .where(
        belongs_to(bindparam("owner_n")),
        episodes.c.id.in_(bindparam("ids", expanding=True)),
    )
)


def known(connection: Connection, owner_n: int, ids: Sequence[str], space: int) -> dict[str, Known]:
    """Those of the ids that the user has."""
    return {
        row.id: Known(row.n, row.space is not None, bool(row.archived))
        for part in slices(ids, _SLICE)
        for row in connection.execute(_KNOWN, {"owner_n": owner_n, "ids": part, "of_space": space})
    }


def add(
    connection: Connection, owner_n: int, found: Sequence[tuple[New, lexical.Terms]], space: int
) -> None:
    """Stores episodes that are not there yet, with their vectors (in `space`) and postings."""
    stored = known(connection, owner_n, [new.episode.id for new, _ in found], space)
    fresh = {new.episode.id: (new, terms) for new, terms in found if new.episode.id not in stored}
    if not fresh:
        return
    connection.execute(
        insert(episodes), [_columns(owner_n, new.episode, terms) for new, terms in fresh.values()]
    )
    numbers = {id_: row.n for id_, row in known(connection, owner_n, list(fresh), space).items()}
    put_vectors(
        connection,
        owner_n,
        space,
        {numbers[id_]: new.vectors for id_, (new, _) in fresh.items() if new.vectors is not None},
    )
    flawed = {numbers[id_]: new.flaw for id_, (new, _) in fresh.items() if new.vectors is None}
    note_flaws(connection, flawed)
    lexical.index(
        connection, owner_n, [Posting(numbers[id_], terms) for id_, (_, terms) in fresh.items()]
    )


def put_vectors(
    connection: Connection, owner_n: int, space: int, vectors: dict[int, Vectors]
) -> None:
    """The vectors of a user's episodes (see `New`) in a space, in place of what was there."""
    if not vectors:
        return
    before = 0
    for part in slices(list(vectors), _SLICE):
        gone = connection.execute(
            delete(episode_vectors).where(
                episode_vectors.c.n.in_(part), episode_vectors.c.space == space
            )
        )
        before += gone.rowcount
        connection.execute(
            insert(episode_vectors),
            [{"n": n, "space": space, "vector": to_vector_bytes(vectors[n])} for n in part],
        )
    if before:  # what was read of these is out of date
        lexical.another_edition(connection, owner_n)
    if len(vectors) > before:
        _count_vectors(connection, owner_n, space, len(vectors) - before)


def settle(connection: Connection, numbers: Sequence[int]) -> None:
    """These need not be embedded again."""
    for part in slices(numbers, _SLICE):
        connection.execute(delete(episode_flaws).where(episode_flaws.c.n.in_(part)))


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
                belongs_to(owner_n),
                episodes.c.id.in_(part),
                episodes.c.archived.is_(not archived),
            )
        )
    ]
    for part in slices([n for n, _ in changed], _SLICE):
        connection.execute(update(episodes).where(episodes.c.n.in_(part)).values(archived=archived))
    postings = [Posting.of(n, searched_text(episode)) for n, episode in changed]
    if archived:
        lexical.unindex(connection, owner_n, postings)
    elif postings:
        lexical.index(connection, owner_n, postings)
        lexical.another_edition(connection, owner_n)  # these are not the newest
    return [episode for _, episode in changed]


def set_pinned(connection: Connection, owner_n: int, ids: Sequence[str], *, pinned: bool) -> None:
    for part in slices(ids, _SLICE):
        connection.execute(
            update(episodes)
            .where(belongs_to(owner_n), episodes.c.id.in_(part))
            .values(pinned=pinned)
        )


def touch(connection: Connection, owner_n: int, ids: Sequence[str], now: datetime) -> None:
    """Notes that the episodes were used; never sets a time back."""
    at = to_micros(now)
    for part in slices(ids, _SLICE):
        connection.execute(
            update(episodes)
            .where(
                belongs_to(owner_n),
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
_CHANGING = ("importance", "pinned", "archived", "last_access")
"""What of a stored episode can change."""
_FIELDS_OF_EPISODES = tuple(episodes.c[name] for name in _FIELDS)
_EPISODES = select(*_FIELDS_OF_EPISODES, episode_owners.c.owner).join(
    episode_owners, episode_owners.c.n == episodes.c.owner_n
)
_BY_ID = (
    select(*_FIELDS_OF_EPISODES, episode_owners.c.owner)
    .join(episode_owners, belongs_to(episode_owners.c.n))
    .where(
        episode_owners.c.owner == bindparam("owner"),
        episodes.c.id.in_(bindparam("ids", expanding=True)),
    )
)


_BY_NUMBER = compiled(
    lambda dialect: (
        select(*_FIELDS_OF_EPISODES, episodes.c.n, episode_owners.c.owner)
        .join(episode_owners, episode_owners.c.n == episodes.c.owner_n)
        .where(
            episode_owners.c.owner == bindparam("owner"), among(episodes.c.n, "numbers", dialect)
        )
    )
)


def by_id(connection: Connection, owner: bytes, ids: Sequence[str]) -> list[Episode]:
    """Those of the ids that the user has, in no order."""
    return [
        episode
        for part in slices(ids, _SLICE)
        for episode in _owned(owner, connection.execute(_BY_ID, {"owner": owner, "ids": part}))
    ]


_STATES = compiled(
    lambda dialect: (
        select(episodes.c.n, *(episodes.c[name] for name in _CHANGING), episode_owners.c.owner)
        .join(episode_owners, episode_owners.c.n == episodes.c.owner_n)
        .where(
            episode_owners.c.owner == bindparam("owner"), among(episodes.c.n, "numbers", dialect)
        )
    )
)


def by_number(
    connection: Connection, owner: bytes, numbers: Sequence[int], kept: Episodes
) -> dict[int, Episode]:
    """Those of the numbers that are the user's episodes. Of those that are `kept` only what can
    change is read; the others are kept from now on."""
    found: dict[int, Episode] = {}
    known = [n for n in numbers if n in kept]
    if known:
        for row in _STATES(connection).rows(connection, {"owner": owner, "numbers": known}):
            number, *state, owned_by = row
            if owned_by != owner:
                raise Corrupt(f"the episode {number} is somebody else's")
            before, episode = kept[number]
            if (now := tuple(state)) != before:
                episode = Episode.trusted(**{**episode.__dict__, **_changing(now)})
                kept.put(number, now, episode)
            found[number] = episode
    if missing := [n for n in numbers if n not in kept]:
        rows = _BY_NUMBER(connection).rows(connection, {"owner": owner, "numbers": missing})
        for row, episode in _numbered(owner, rows):
            size = len(row.text) + 4 * len(row.metadata)
            kept.put(row.n, tuple(getattr(row, name) for name in _CHANGING), episode, size)
            found[row.n] = episode
    return found


def _changing(state: Sequence[Any]) -> dict[str, Any]:
    """What can change, from its columns; SQLite has what is true or false as numbers."""
    importance, pinned, archived, last_access = state
    return {
        "importance": importance,
        "pinned": bool(pinned),
        "archived": bool(archived),
        "last_access": None if last_access is None else from_micros(last_access),
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
    """The vectors in `space` of those of the ids that the user has, of each as a whole."""
    return {
        row.id: from_vector_bytes(row.vector)
        for part in slices(ids, _SLICE)
        for row in connection.execute(_VECTORS, {"owner": owner, "ids": part, "space": space})
    }


_OF_THE_WHOLE = func.substr(
    episode_vectors.c.vector, 1, 4 * episode_spaces.c.dims, type_=LargeBinary
).label("vector")
_VECTORS = (
    select(episodes.c.id, _OF_THE_WHOLE)
    .join(episode_vectors, episode_vectors.c.n == episodes.c.n)
    .join(episode_spaces, episode_spaces.c.space == episode_vectors.c.space)
    .join(episode_owners, belongs_to(episode_owners.c.n))
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
    for name in ("event_time", "recorded_at"):
        fields[name] = from_micros(fields[name])
    fields |= _changing([fields[name] for name in _CHANGING])
    fields["metadata"] = decode(fields["metadata"]) if fields["metadata"] != _NO_METADATA else {}
    return Episode.trusted(**fields)


_ROLES = {role.value: role for role in Role}
_NO_METADATA = encode({})


def to_vector_bytes(vectors: Vectors) -> bytes:
    return np.ascontiguousarray(vectors, dtype="<f4").tobytes()


def from_vector_bytes(data: bytes) -> Vector:
    return np.frombuffer(data, dtype="<f4").astype(np.float32, copy=False)


# --- everybody's: for repairs and rebuilds -----------------------------------------------------


class Unplaced(NamedTuple):
    """An episode to be embedded: its number, whose it is, and what is embedded of it, the whole
    first."""

    n: int
    owner_n: int
    owner: bytes
    id: str
    texts: tuple[str, ...]
    archived: bool


class Placed(NamedTuple):
    """A vector that belongs into the index: that of an episode as a whole."""

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


def archived_among(connection: Connection, owner_n: int, ids: Sequence[str]) -> list[str]:
    """Those of a user's episodes that are archived."""
    return [
        id_
        for part in slices(ids, _SLICE)
        for id_ in connection.scalars(
            select(episodes.c.id).where(
                belongs_to(owner_n),
                episodes.c.id.in_(part),
                episodes.c.archived.is_(True),
            )
        )
    ]


def placed(
    connection: Connection, owner_n: int, space: int, *, after: int, limit: int
) -> list[Placed]:
    """A user's vectors that belong into the index, by number from `after` on."""
    rows = connection.execute(
        select(episodes.c.n, episodes.c.id, episode_owners.c.owner, _OF_THE_WHOLE)
        .join(episode_vectors, episode_vectors.c.n == episodes.c.n)
        .join(episode_spaces, episode_spaces.c.space == episode_vectors.c.space)
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


_SEARCHED = (episodes.c.text, episodes.c.role, episodes.c.speaker)
"""The columns that `_searched` takes."""


def _searched(row: Any) -> str:
    return searched(to_text(row.text), row.role, to_text(row.speaker))


_UNPLACED = select(
    episodes.c.n,
    episodes.c.owner_n,
    episode_owners.c.owner,
    episodes.c.id,
    *_SEARCHED,
    episodes.c.archived,
).join(episode_owners, episode_owners.c.n == episodes.c.owner_n)


def unembedded(
    connection: Connection, space: int, *, again: bool, after: int, limit: int
) -> list[Unplaced]:
    """Episodes without a vector in the space, by number from `after` on; with `again`, also those
    that are to be embedded again."""
    return _unplaced(
        connection.execute(
            _UNPLACED.where(episodes.c.n > after, _is_unembedded(space, again))
            .order_by(episodes.c.n)
            .limit(limit)
        )
    )


def count_unembedded(connection: Connection, space: int, *, again: bool) -> int:
    """How many episodes `unembedded` would give in all."""
    wanted = select(func.count()).select_from(episodes).where(_is_unembedded(space, again))
    return int(connection.scalar(wanted) or 0)


def _is_unembedded(space: int, again: bool) -> ColumnElement[bool]:
    has_none = ~_has_vector(episode_vectors.c.space == space)
    return or_(has_none, episodes.c.n.in_(select(episode_flaws.c.n))) if again else has_none


def _has_vector(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return exists().where(episode_vectors.c.n == episodes.c.n, condition)


def count_only_elsewhere(connection: Connection, owner_n: int, space: int) -> int:
    """How many of a user's episodes have vectors, but none in this space."""
    wanted = (
        select(func.count())
        .select_from(episodes)
        .where(
            episodes.c.owner_n == owner_n,
            ~_has_vector(episode_vectors.c.space == space),
            _has_vector(episode_vectors.c.space != space),
        )
    )
    return int(connection.scalar(wanted) or 0)


def drop_vectors(
    connection: Connection, kept: Sequence[int], *, beside: int, after: int, limit: int
) -> int | None:
    """Drops vectors that are not in the spaces `kept`, of episodes that have one in `beside`, among
    the next `limit` numbers after `after`. The last number; None when that was the end."""
    numbers = connection.scalars(
        select(episodes.c.n).where(episodes.c.n > after).order_by(episodes.c.n).limit(limit)
    ).all()
    if not numbers:
        return None
    other = episode_vectors.alias()
    unneeded = and_(
        episode_vectors.c.n > after,
        episode_vectors.c.n <= numbers[-1],
        episode_vectors.c.space.not_in(kept),
        exists().where(other.c.n == episode_vectors.c.n, other.c.space == beside),
    )
    counts = connection.execute(
        select(episodes.c.owner_n, episode_vectors.c.space, func.count())
        .join(episodes, episodes.c.n == episode_vectors.c.n)
        .where(unneeded)
        .group_by(episodes.c.owner_n, episode_vectors.c.space)
    ).all()
    for owner_n, space, count in counts:
        _count_vectors(connection, owner_n, space, -count)
    if counts:
        connection.execute(delete(episode_vectors).where(unneeded))
    return int(numbers[-1])


def flawed(connection: Connection, *, limit: int) -> list[Unplaced]:
    """Episodes that could not be embedded, those first that were tried least often."""
    return _to_be_embedded(connection, episode_flaws.c.attempts > 0, limit)


def outdated(connection: Connection, *, limit: int) -> list[Unplaced]:
    """Episodes whose vectors were made by former rules."""
    return _to_be_embedded(connection, episode_flaws.c.attempts == 0, limit)


def _to_be_embedded(
    connection: Connection, condition: ColumnElement[bool], limit: int
) -> list[Unplaced]:
    return _unplaced(
        connection.execute(
            _UNPLACED.join(episode_flaws, episode_flaws.c.n == episodes.c.n)
            .where(condition)
            .order_by(episode_flaws.c.attempts, episode_flaws.c.n)
            .limit(limit)
        )
    )


def count_flawed(connection: Connection) -> int:
    """How many episodes `flawed` would give in all."""
    return _count_flaws(connection, episode_flaws.c.attempts > 0)


def count_outdated(connection: Connection) -> int:
    """How many episodes `outdated` would give in all."""
    return _count_flaws(connection, episode_flaws.c.attempts == 0)


def _count_flaws(connection: Connection, condition: ColumnElement[bool]) -> int:
    wanted = select(func.count()).select_from(episode_flaws).where(condition)
    return int(connection.scalar(wanted) or 0)


def _unplaced(rows: Iterable[Any]) -> list[Unplaced]:
    return [
        Unplaced(
            *(row.n, row.owner_n, row.owner, row.id),
            embedded_texts(to_text(row.text), row.role, to_text(row.speaker)),
            bool(row.archived),
        )
        for row in rows
    ]


def owners_with_other_lexicon(connection: Connection) -> list[Owner]:
    """Users whose postings were made by other rules than today's, by number."""
    wanted = select(*_OWNER_COLUMNS).where(episode_owners.c.lexicon != LEXICON)
    return [_owner(row) for row in connection.execute(wanted.order_by(episode_owners.c.n))]


def reindex(connection: Connection, owner_n: int) -> None:
    """A user's postings, made again from the texts; vectors that were made by rules as old as
    theirs are outdated from now on."""
    lexicon = connection.scalar(
        select(episode_owners.c.lexicon).where(episode_owners.c.n == owner_n)
    )
    if lexicon is not None and lexicon < NAMES_SEARCHED:
        _outdate_named(connection, owner_n)
    lexical.forget_all(connection, owner_n)
    rows = connection.execute(
        select(episodes.c.n, *_SEARCHED, episodes.c.words, episodes.c.archived)
        .where(episodes.c.owner_n == owner_n)
        .order_by(episodes.c.n)
    ).all()
    for part in slices(rows, _SLICE):
        made = [(row, Posting.of(row.n, _searched(row))) for row in part]
        lexical.index(connection, owner_n, [each for row, each in made if not row.archived])
        lengths = [
            {"of_n": row.n, "words": each.words} for row, each in made if each.words != row.words
        ]
        if lengths:
            connection.execute(
                update(episodes)
                .where(episodes.c.n == bindparam("of_n"))
                .values(words=bindparam("words")),
                lengths,
            )
    connection.execute(
        update(episode_owners).where(episode_owners.c.n == owner_n).values(lexicon=LEXICON)
    )


NAMES_SEARCHED = 2
"""The LEXICON from which on the names of those who speak are embedded with what they say."""


def _outdate_named(connection: Connection, owner_n: int) -> None:
    """The user's episodes of whom the speaker has a name are to be embedded again."""
    rows = connection.execute(
        select(episodes.c.n, episodes.c.role, episodes.c.speaker).where(
            episodes.c.owner_n == owner_n,
            exists().where(episode_vectors.c.n == episodes.c.n),
        )
    )
    named = [row.n for row in rows if to_text(row.speaker) != row.role]
    if named:
        connection.execute(
            insert_into(connection, episode_flaws).on_conflict_do_nothing(),
            [{"n": n, "reason": _OUTDATED, "attempts": 0} for n in named],
        )


_OUTDATED = to_bytes("its vector does not have the speaker's name")


def slices(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
