"""Episodic memory: what happened, word for word; rows in the journal, their vectors in Chroma.

Collections are named after the journal, so that two journals can share a server, and after the
embedder, so that vectors of two embedders never meet (`layout`). A filter on a collection costs in
proportion to all that is in it, which is why there are shards, and why a large user is alone
(docs/decisions/0009-vector-layout.md).

The journal is written first: rows, vectors and postings in one transaction. Then the vectors go to
Chroma, which can lose all of them, since `repair` and `rebuild` bring them back without embedding
again. `remember` of a message that is there already only puts its vectors into Chroma again.

Long episodes are embedded as a whole and in passages (`passages`). The journal has all of these
vectors, and recall judges by them; Chroma has that of the whole.

Where vectors live can change while others read and write: whoever writes reads afterwards where
they should be by now, and puts them there too; whoever reads asks for it beside the search, and
searches again when it has changed. So a move may fill, flip one row, and clear.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select, update

from memory import episode_store as store
from memory import lexical
from memory.chroma import Chroma, Neighbour, Record
from memory.embedding.base import Embedder, Vectors, alike, embedded, usable
from memory.episode_store import Known, New, Owner, Unplaced
from memory.episodes import embedded_texts, searched_text, split
from memory.errors import EmbeddingFailed, IndexLost, InvalidInput, TierUnavailable
from memory.journal import Journal
from memory.journal.database import insert_into
from memory.journal.episode_tables import episodes
from memory.journal.schema import meta, owner_of
from memory.layout import Layout, Row, Shards, space_key
from memory.lexical import Hit
from memory.models import Episode, Health, RecordedMessage, Scope, Value
from memory.text import plain

T = TypeVar("T")
Vector = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Told (done, in all)."""

SHARDS = 64
OWN_COLLECTION = 1_000
"""A user with more episodes than this gets a collection of their own."""
FEWEST_SOUGHT = 32
"""Neighbours asked of Chroma at least: an approximate index misses the nearest for a small k."""
PAGE = 512
"""Episodes embedded, copied or placed at a time in repairs and rebuilds, and the most texts that
an embedder is given at once."""
FAILED = "the embedder failed"
"""How the reason begins why there is no vector, where another time there may be one."""
AHEAD = 64
"""Episodes that are embedded together while those before them are stored."""
RENEWED = 10_000
"""Outdated vectors that one repair makes again, at most."""
HOPELESS = 3
"""Texts that an embedder refuses one after the other before the rest is not tried any more."""

MOST_SHARDS = 999

SEEN = 10_000
"""Users of whom it is remembered where their vectors are."""
_LAYOUT = "episodic.layout"


class Skipped(Value):
    """A message that became no episode, and why."""

    message_id: str
    reason: str


class Flawed(Value):
    """An episode without a vector, and why. It is found by its words."""

    episode_id: str
    reason: str


class Remembered(Value):
    """What became of messages. `episodes` are the ids of all of theirs, also of those that were
    there before; `warnings` tell of vectors that look wrong but were kept."""

    episodes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    flawed: tuple[Flawed, ...] = ()
    warnings: tuple[str, ...] = ()


class Repaired(Value):
    """What a repair did: embeddings made up for, still missing, and still of former rules; vectors
    put back into Chroma and taken out, collections made anew, users whose postings were made
    again."""

    embedded: int = 0
    still_flawed: int = 0
    outdated: int = 0
    put_back: int = 0
    taken_out: int = 0
    collections: int = 0
    reindexed: int = 0


class EpisodicMemory:
    """The episodes of everybody, each read and written through their scope.

    Raises TierUnavailable("episodic", …) when Chroma does not answer and
    TierUnavailable("journal", …) when the journal does not.
    """

    def __init__(
        self, journal: Journal, chroma: Chroma, embedder: Embedder, *, shards: int = SHARDS
    ) -> None:
        """`shards` counts for a journal without episodes; later, what it began with does."""
        self._journal = journal
        self._chroma = chroma
        self._embedder = embedder
        self._shards = shards
        self._known_layout: tuple[bytes, Layout] | None = None
        self._seen: dict[bytes, Owner] = {}

    def of_embedder(self, embedder: Embedder) -> EpisodicMemory:
        """The same episodes, with another embedder's vectors."""
        return EpisodicMemory(self._journal, self._chroma, embedder, shards=self._shards)

    # --- remembering ---------------------------------------------------------------------------

    async def remember(self, scope: Scope, messages: Sequence[RecordedMessage]) -> Remembered:
        """Makes episodes of the messages; durable in the journal, and then in Chroma.

        Texts are embedded once. What cannot be embedded is stored all the same, found by its
        words, and flagged with the reason. The same messages again change nothing. When Chroma
        does not answer, raises TierUnavailable: everything is in the journal then, and to
        remember the same again does what is missing.
        """
        layout = await self._layout()
        owner = owner_of(scope)
        parted = [(message.id, split(message)) for message in messages]
        found = {one.id: one for _, parts in parted for one in parts.episodes}
        if not found:
            return Remembered(skipped=_skipped(parted))
        known = await self._journal.query(lambda c: _known(c, owner, list(found), layout.space))
        fresh = [episode for key, episode in found.items() if key not in known]
        flawed: list[Flawed] = []
        warnings: list[str] = []
        silent: TierUnavailable | None = None
        async with aclosing(self._embedded_ahead(fresh)) as parts:
            async for new, more in parts:
                user = await self._stored(owner, new, layout)
                warnings += more
                flawed += [
                    Flawed(episode_id=one.episode.id, reason=one.flaw)
                    for one in new
                    if one.vectors is None
                ]
                vectors = {one.episode.id: one.vectors[0] for one in new if one.vectors is not None}
                if silent is None:
                    try:
                        await self._place(owner, user, vectors, layout)
                    except TierUnavailable as error:  # what comes after it is stored all the same
                        silent = error
        if silent is not None:
            raise silent
        await self._place_known(owner, user, known, layout)
        return Remembered(
            episodes=tuple(found),
            skipped=_skipped(parted),
            flawed=tuple(flawed),
            warnings=tuple(dict.fromkeys(warnings)),
        )

    async def _embedded_ahead(
        self, fresh: Sequence[Episode]
    ) -> AsyncGenerator[tuple[list[New], tuple[str, ...]]]:
        """The episodes with their vectors, AHEAD at a time, and warnings: at least once. While one
        part is being stored, the next is being embedded."""
        parts = list(store.slices(fresh, AHEAD)) or [()]
        patience = _Patience()

        def begun(part: Sequence[Episode]) -> asyncio.Task[_Outcome]:
            texts = [embedded_texts(one.text, one.role.value, one.speaker) for one in part]
            return asyncio.create_task(self._embedded(texts, patience))

        embedding = begun(parts[0])
        try:
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                outcome = await embedding
                if following is not None:
                    embedding = begun(following)
                pairs = zip(part, outcome.results, strict=True)
                yield [New(one, *_vectors_or_flaw(got)) for one, got in pairs], outcome.warnings
        finally:
            embedding.cancel()
            await asyncio.gather(embedding, return_exceptions=True)

    async def _stored(self, owner: bytes, new: Sequence[New], layout: Layout) -> Owner:
        rows = await asyncio.to_thread(
            lambda: [(one, lexical.counted(searched_text(one.episode))) for one in new]
        )

        def work(connection: Connection) -> Owner:
            user = store.made_owner(connection, owner)
            store.add(connection, user.n, rows, layout.space)
            return user._replace(active=user.active + len(rows))

        return await self._write(owner, work, durable=False)

    async def _place_known(
        self, owner: bytes, user: Owner, known: Mapping[str, Known], layout: Layout
    ) -> None:
        """Puts those that were there before into Chroma again, and moves a user who has grown."""
        before = [key for key, one in known.items() if one.is_embedded and not one.archived]
        if before:
            vectors = await self._journal.query(
                lambda c: store.vectors_of(c, owner, before, layout.space)
            )
            await self._place(owner, user, vectors, layout)
        if user.active > OWN_COLLECTION and not user.has_own_collection:
            await self._give_own_collection(owner, user.n, layout)
        elif known and user.has_own_collection:
            # These come again: the last time may have ended before the shard was cleared, and
            # whoever still searches there would never see that it is out of date.
            await self._clear_shard(owner, layout)

    async def _place(
        self, owner: bytes, user: Owner, vectors: Mapping[str, Vector], layout: Layout
    ) -> None:
        """Puts a user's vectors where they belong, also when that changes meanwhile.

        Whoever moves them says so in the journal first and then copies what is in it: either these
        vectors are among it, or we see after our own writing that they belong elsewhere too.
        """
        if not vectors:
            return
        records = [Record(key, owner.hex(), vector) for key, vector in vectors.items()]
        done: set[str] = set()
        while wanted := [
            name for name in layout.written(owner, own=user.has_own_collection) if name not in done
        ]:
            for name in wanted:
                await self._chroma.upsert(name, records)
                done.add(name)
            layout, now = await self._whereabouts(owner)
            user = now or user

    async def _give_own_collection(self, owner: bytes, owner_n: int, layout: Layout) -> None:
        """Copies a user's vectors to a collection of their own, flips, and clears the shard."""
        own = layout.collection(owner, own=True)
        copied = await self._copy(owner_n, own, layout, after=0)
        await self._write(owner, lambda c: store.move_to_own_collection(c, owner_n))
        await self._copy(owner_n, own, layout, after=copied)
        await self._clear_shard(owner, layout)

    async def _clear_shard(self, owner: bytes, layout: Layout) -> None:
        layout, _ = await self._whereabouts(owner)
        for name in layout.shards_of(owner):
            await self._chroma.delete_user(name, owner.hex())

    async def _copy(self, owner_n: int, collection: str, layout: Layout, *, after: int) -> int:
        """Puts a user's vectors with numbers above `after` there; the last number."""
        while True:
            page = await self._journal.query(
                lambda c, after=after: store.placed(  # type: ignore[misc]
                    c, owner_n, layout.space, after=after, limit=PAGE
                )
            )
            if not page:
                return after
            await self._chroma.upsert(
                collection, [Record(one.id, one.owner.hex(), one.vector) for one in page]
            )
            after = page[-1].n

    # --- finding -------------------------------------------------------------------------------

    async def nearest(self, scope: Scope, vector: Vector, k: int) -> list[Hit]:
        """The user's episodes whose vectors are nearest: cosine similarity in [-1, 1], best first,
        ties by id. There are fewer than `k` only when there are no more.

        `vector` has the embedder's length; its own length does not matter, but it must not be
        zero. Raises InvalidInput for other vectors.
        """
        if k < 1:
            raise InvalidInput(f"k is {k}; at least 1 is wanted")
        if problem := usable([vector], 1, self._embedder.dims)[0]:
            raise InvalidInput(f"cannot search for this vector: {problem}")
        layout = await self._layout()
        owner = owner_of(scope)
        user = self._seen.get(owner)
        if user is None:
            layout, user = await self._whereabouts(owner)
        found: list[Neighbour] | None = None
        asked = ""
        while user is not None and user.active:
            own = user.has_own_collection
            asked = layout.collection(owner, own=own)
            sought = max(k, min(FEWEST_SOUGHT, user.active))
            found, (layout, user) = await asyncio.gather(
                self._chroma.query(
                    asked,
                    np.asarray(vector, dtype=np.float32),
                    sought,
                    user=None if own else owner.hex(),
                ),
                self._whereabouts(owner),
            )
            if user is not None and len(found or ()) < min(sought, user.active):
                # Fewer than there should be: they were moved after we asked where they are, or
                # some are flawed.
                layout, user = await self._whereabouts(owner)
            if user is None or layout.collection(owner, own=user.has_own_collection) == asked:
                break
        if user is None or not user.active:
            return []
        if not found and await self._expects_vectors(owner, layout):
            raise IndexLost("episodic", "the index of vectors is gone: it needs a repair")
        return [Hit(one.id, one.similarity) for one in found or ()][:k]

    async def _whereabouts(self, owner: bytes) -> tuple[Layout, Owner | None]:
        """Where vectors live as of now, and the user, of whom it is remembered for the next search:
        what has changed since is seen beside it."""
        layout = await self._layout()
        value, user = await self._journal.query(lambda c: store.whereabouts(c, _LAYOUT, owner))
        if self._known_layout is None or self._known_layout[0] != value:
            layout = layout._replace(row=Row.of(value))
            self._known_layout = value, layout
        self._seen.pop(owner, None)
        if user is not None and user.active:
            self._seen[owner] = user
            if len(self._seen) > SEEN:
                del self._seen[next(iter(self._seen))]
        return layout, user

    async def _expects_vectors(self, owner: bytes, layout: Layout) -> bool:
        def work(connection: Connection) -> bool:
            user = store.owner_of(connection, owner)
            return user is not None and bool(
                store.placed(connection, user.n, layout.space, after=0, limit=1)
            )

        return await self._journal.query(work)

    async def space(self) -> int:
        """The space in which the vectors are that `nearest` looks at."""
        return (await self._layout()).space

    async def episodes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Episode]:
        """Those of the ids that the user has, in the order of `ids`."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        found = await self._read(scope, lambda c, owner: store.by_id(c, owner, wanted))
        by_id = {episode.id: episode for episode in found}
        return {key: by_id[key] for key in wanted if key in by_id}

    async def around(
        self, scope: Scope, session: str, seqs: Sequence[int], radius: int
    ) -> list[Episode]:
        """The session's episodes at most `radius` messages from one of `seqs`, in order.

        Archived ones are left out.
        """
        wanted = {seq + step for seq in seqs for step in range(-radius, radius + 1)}
        return await self._matching(
            scope,
            wanted,
            lambda part: (
                episodes.c.session == session,
                episodes.c.seq.in_(part),
                episodes.c.archived.is_(False),
            ),
        )

    async def of_messages(self, scope: Scope, message_ids: Sequence[str]) -> list[Episode]:
        """The episodes of these messages, archived ones too, by session and order."""
        return await self._matching(
            scope, message_ids, lambda part: (episodes.c.message_id.in_(part),)
        )

    async def all(self, scope: Scope, *, archived: bool = False) -> list[Episode]:
        """All of the user's episodes by the time they are about; with `archived`, those too."""
        active = () if archived else (episodes.c.archived.is_(False),)
        found = await self._read(scope, lambda c, owner: store.matching(c, owner, *active))
        return sorted(found, key=lambda one: (one.event_time, one.session, one.seq, one.part))

    async def vectors(self, scope: Scope, ids: Sequence[str]) -> dict[str, Vector]:
        """The embeddings, of the current embedder, of those of the ids that the user has and that
        have one. Each of unit length."""
        layout = await self._layout()
        wanted = list(dict.fromkeys(ids))
        return await self._read(
            scope, lambda c, owner: store.vectors_of(c, owner, wanted, layout.space)
        )

    async def _matching(
        self, scope: Scope, values: Iterable[Any], conditions: Callable[[Sequence[Any]], Any]
    ) -> list[Episode]:
        wanted = sorted(set(values))

        def work(connection: Connection, owner: bytes) -> list[Episode]:
            return [
                episode
                for part in store.slices(wanted, PAGE)
                for episode in store.matching(connection, owner, *conditions(part))
            ]

        found = await self._read(scope, work) if wanted else []
        return sorted(found, key=lambda one: (one.session, one.seq, one.part, one.id))

    # --- changing ------------------------------------------------------------------------------

    async def touch(self, scope: Scope, ids: Sequence[str], *, now: datetime) -> None:
        """Notes that the episodes were used. Never sets a time back."""
        await self._change(scope, lambda c, user: store.touch(c, user.n, list(ids), now))

    async def pin(self, scope: Scope, ids: Sequence[str], pinned: bool) -> None:
        """Keeps episodes from fading, or no longer."""
        await self._change(
            scope, lambda c, user: store.set_pinned(c, user.n, list(ids), pinned=pinned)
        )

    async def archive(self, scope: Scope, ids: Sequence[str], archived: bool) -> None:
        """Takes episodes out of recall (they stay in the journal), or back in. Twice is as once."""
        owner = owner_of(scope)
        wanted = list(dict.fromkeys(ids))
        await self._change(
            scope, lambda c, user: store.set_archived(c, user.n, wanted, archived=archived)
        )
        layout, user = await self._whereabouts(owner)
        if user is None or not wanted:
            return
        if archived:
            names = {*layout.shards_of(owner), *layout.written(owner, own=user.has_own_collection)}
            for name in sorted(names):
                await self._chroma.delete(name, wanted)
        else:
            vectors = await self._journal.query(
                lambda c: store.vectors_of(c, owner, wanted, layout.space)
            )
            await self._place(owner, user, vectors, layout)

    async def _change(
        self, scope: Scope, change: Callable[[Connection, Owner], object]
    ) -> Owner | None:
        """Applies `change` for a user who has episodes."""
        owner = owner_of(scope)

        def work(connection: Connection) -> Owner | None:
            user = store.owner_of(connection, owner)
            if user is not None:
                change(connection, user)
            return user

        return await self._write(owner, work)

    # --- embedding -----------------------------------------------------------------------------

    async def _embedded(self, episodes: Sequence[Sequence[str]], patience: _Patience) -> _Outcome:
        """Vectors of what is to be embedded of each episode, the whole first, or the reason why
        there are none."""
        clean = [[plain(text) for text in texts] for texts in episodes]
        wholes = list(dict.fromkeys(texts[0] for texts in clean))
        rest = dict.fromkeys(text for texts in clean for text in texts[1:])
        different = list(dict.fromkeys([*wholes, *rest]))
        results = [
            result
            for part in store.slices(different, PAGE)
            for result in await self._embed_each(part, patience)
        ]
        of_wholes = results[: len(wholes)]
        warnings = _refuse_constant(wholes, of_wholes)
        by_text = dict(zip(different, [*of_wholes, *results[len(wholes) :]], strict=True))
        return _Outcome([_stacked([by_text[text] for text in texts]) for texts in clean], warnings)

    async def _embed_each(self, part: Sequence[str], patience: _Patience) -> list[Vector | str]:
        """All at once; where that fails, by halves, so that one bad text does not take others
        with it. An embedder that refuses one after the other is left alone."""
        if not part:
            return []
        if patience.refused >= HOPELESS:
            return [patience.reason] * len(part)
        try:
            vectors = await embedded(self._embedder, part, role="document")
        except EmbeddingFailed as error:
            if len(part) == 1:
                patience.refused += 1
                patience.reason = f"{FAILED}: {error}"
                return [patience.reason]
            half = len(part) // 2
            return [
                *await self._embed_each(part[:half], patience),
                *await self._embed_each(part[half:], patience),
            ]
        patience.refused = 0
        problems = usable(vectors, len(part), self._embedder.dims)
        return [
            _unit(row) if problem is None else f"the embedder gave {problem}"
            for row, problem in zip(_padded(vectors, len(part)), problems, strict=True)
        ]

    # --- another embedder ----------------------------------------------------------------------

    async def mismatch(self, scope: Scope) -> str | None:
        """How many of the user's episodes are in the space of another embedder only, and of which;
        None when none are. They are found by their words alone until `reembed` has run."""
        layout = await self._layout()

        def work(connection: Connection, owner: bytes) -> tuple[list[store.Space], int]:
            user = store.owner_of(connection, owner)
            found = [] if user is None else store.spaces(connection, user.n)
            if user is None or all(one.space == layout.space for one in found):
                return found, 0
            return found, store.count_only_elsewhere(connection, user.n, layout.space)

        found, count = await self._read(scope, work)
        if not count:
            return None
        others = [one for one in found if one.space != layout.space]
        here = sum(one.vectors for one in found if one.space == layout.space)
        whose = ", ".join(f"{one.identity!r} ({one.dims} numbers)" for one in others)
        return (
            f"{count} of {here + count} episodes were embedded by {whose}, "
            f"not by {self._embedder.identity!r} ({self._embedder.dims} numbers): "
            f"until they are embedded again, they are found by their words alone"
        )

    async def reembed(self, progress: Progress | None = None) -> Repaired:
        """Embeds everybody's episodes that have no vector of this embedder, or an outdated one.

        Only vectors change. Can be stopped at any moment and run again: it goes on with what is
        left. Then vectors of other embedders are dropped, but those that are being prepared.
        """
        layout = await self._relaid(lambda row, space: row.prepared(space))
        embedded = await self._embed_missing(layout, progress, prepares=False)
        kept = [layout.space, *layout.row.preparing]
        after: int | None = 0
        while after is not None:
            after = await self._journal.write(
                lambda c, after=after: store.drop_vectors(  # type: ignore[misc]
                    c, kept, beside=layout.space, after=after, limit=PAGE
                ),
                durable=False,
            )
        repaired = await self._repair_index(layout)
        await self._drop_unused(layout)
        return await self._with_what_is_left(repaired.model_copy(update={"embedded": embedded}))

    async def prepare(self, progress: Progress | None = None) -> Repaired:
        """Fills this embedder's space while others use another's, who notice nothing of it.

        Can be stopped at any moment and run again, and again for what came meanwhile. When it is
        done, a memory that is opened with this embedder finds everything at once; `reembed` then
        drops what the former one made.
        """
        layout = await self._relaid(lambda row, space: row.prepares(space))
        embedded = await self._embed_missing(layout, progress, prepares=True)
        return Repaired(embedded=embedded)

    async def _embed_missing(
        self, layout: Layout, progress: Progress | None, *, prepares: bool
    ) -> int:
        """Embeds what is missing until a pass finds nothing new to do; how many there were."""
        again = not prepares
        total = await self._journal.query(
            lambda c: store.count_unembedded(c, layout.space, again=again)
        )
        done = embedded = 0
        while True:
            after, before = 0, embedded
            while page := await self._journal.query(
                lambda c, after=after: store.unembedded(  # type: ignore[misc]
                    c, layout.space, again=again, after=after, limit=PAGE
                )
            ):
                embedded += await self._embed_again(page, layout, settles=again)
                after, done = page[-1].n, done + len(page)
                if progress:
                    progress(min(done, max(total, embedded)), max(total, embedded))
            if embedded == before:
                return embedded

    async def _embed_again(
        self, page: Sequence[Unplaced], layout: Layout, *, settles: bool = True
    ) -> int:
        """Embeds stored episodes and puts their vectors where they belong; how many there are.
        Where it `settles`, these need not be embedded again, or it is noted why they must."""
        outcome = await self._embedded([one.texts for one in page], _Patience())
        by_owner: defaultdict[bytes, list[tuple[Unplaced, Vectors | str]]] = defaultdict(list)
        for one, result in zip(page, outcome.results, strict=True):
            by_owner[one.owner].append((one, result))
        embedded = 0
        for owner, results in by_owner.items():
            good = {one.n: got for one, got in results if not isinstance(got, str)}
            bad = {one.n: got for one, got in results if isinstance(got, str)}

            def work(
                connection: Connection,
                owner_n: int = results[0][0].owner_n,
                good: dict[int, Vectors] = good,
                bad: dict[int, str] = bad,
                owner: bytes = owner,
            ) -> Owner:
                store.put_vectors(connection, owner_n, layout.space, good)
                if settles:
                    if good:  # also those that had none: what was read of the user is out of date
                        lexical.another_edition(connection, owner_n)
                    store.settle(connection, list(good))
                    store.note_flaws(connection, bad)
                return store.made_owner(connection, owner)

            user = await self._write(owner, work, durable=False)
            active = {one.id: good[one.n][0] for one, _ in results if one.n in good}
            archived = {one.id for one, _ in results if one.archived}
            vectors = {key: vector for key, vector in active.items() if key not in archived}
            await self._place(owner, user, vectors, layout)
            embedded += len(good)
        return embedded

    async def outdated(self) -> int:
        """How many episodes have vectors that were made by former rules: they are found, but not by
        all that they should be. A repair makes some again, `reembed` all of them."""
        return await self._journal.query(store.count_outdated)

    async def _with_what_is_left(self, repaired: Repaired) -> Repaired:
        flawed, outdated = await self._journal.query(
            lambda c: (store.count_flawed(c), store.count_outdated(c))
        )
        return repaired.model_copy(update={"still_flawed": flawed, "outdated": outdated})

    async def _drop_unused(self, layout: Layout) -> None:
        """Drops the collections of embedders whose vectors nobody has any more."""
        spaces = await self._journal.query(store.spaces)
        needed = {layout.space_key, *(space_key(one.identity, one.dims) for one in spaces)}
        for name in await self._chroma.collections(layout.prefix):
            if name.removeprefix(layout.prefix).partition("-")[0] not in needed:
                await self._chroma.drop(name)

    # --- repairs -------------------------------------------------------------------------------

    async def repair(self, *, limit: int = 1_000) -> Repaired:
        """Makes up for what is missing: embeddings that failed (at most `limit` in one go),
        postings and vectors that were made by former rules (of vectors, RENEWED in one go), and
        what Chroma has lost or has too much, which is seen by counting and by asking each
        collection. Worth it after every start; changes nothing when all is well."""
        layout = await self._relaid(lambda row, space: row)
        repaired = await self._repair_index(layout)
        reindexed = await self._reindex_outdated()
        flawed, outdated = await self._journal.query(
            lambda c: (store.flawed(c, limit=limit), store.outdated(c, limit=RENEWED))
        )
        embedded = 0
        for page in (*store.slices(flawed, PAGE), *store.slices(outdated, PAGE)):
            embedded += await self._embed_again(page, layout)
        return await self._with_what_is_left(
            repaired.model_copy(update={"embedded": embedded, "reindexed": reindexed})
        )

    async def rebuild(self, progress: Progress | None = None) -> Repaired:
        """Everything that can be derived, made again from the journal: all collections of the
        current embedder, and the postings of everybody. Embeds nothing."""
        layout = await self._relaid(lambda row, space: row)
        everybody = await self._journal.query(store.owners)
        for name in await self._chroma.collections(layout.space_prefix):
            await self._chroma.drop(name)
        before: set[str] = set()
        for done, user in enumerate(everybody, start=1):
            await self._write(user.owner, lambda c, n=user.n: store.reindex(c, n))  # type: ignore[misc]
            name = layout.collection(user.owner, own=user.has_own_collection)
            await self._copy(user.n, name, layout, after=0)
            before.add(name)
            if progress:
                progress(done, len(everybody))
        repaired = await self._repair_index(layout)
        return repaired.model_copy(update={"collections": len(before), "reindexed": len(everybody)})

    async def _reindex_outdated(self) -> int:
        outdated = await self._journal.query(store.owners_with_other_lexicon)
        for user in outdated:
            await self._write(user.owner, lambda c, n=user.n: store.reindex(c, n))  # type: ignore[misc]
        return len(outdated)

    async def _repair_index(self, layout: Layout) -> Repaired:
        """Brings every collection to what the journal says it holds."""
        owners, counts = await self._journal.query(
            lambda c: (store.owners(c), store.placed_counts(c, layout.space))
        )
        living: defaultdict[str, list[Owner]] = defaultdict(list)
        for user in owners:
            living[layout.collection(user.owner, own=user.has_own_collection)].append(user)
        for name in await self._chroma.collections(layout.space_prefix):
            if not layout.is_used(name):  # left behind by a move, or by one who had not heard of it
                await self._chroma.drop(name)
            elif layout.row.coming is None or name[len(layout.space_prefix)] == "u":
                living.setdefault(name, [])
        put_back = taken_out = anew = 0
        for name, users in sorted(living.items()):
            expected = sum(counts.get(user.n, 0) for user in users)
            if not await self._is_sound(name, expected, self._embedder.dims):
                await self._chroma.drop(name)
                anew += 1
            elif (await self._chroma.count(name) or 0) == expected:
                continue
            added, removed = await self._reconcile(name, users, layout)
            put_back, taken_out = put_back + added, taken_out + removed
        return Repaired(put_back=put_back, taken_out=taken_out, collections=anew)

    async def _is_sound(self, collection: str, expected: int, dims: int) -> bool:
        """Whether the collection answers a search. An index that broke with its server does not."""
        if not expected:
            return True
        probe = np.ones(dims, dtype=np.float32)
        try:
            await self._chroma.query(collection, probe, 1, user=None)
        except TierUnavailable:
            await self._chroma.version()  # raises when it is the server that does not answer
            return False
        return True

    async def _reconcile(
        self, collection: str, users: Sequence[Owner], layout: Layout
    ) -> tuple[int, int]:
        """Adds what is missing from a collection and takes out what is too much.

        Chroma is read before the journal, so that what is being remembered right now is never
        taken for too much.
        """
        there = await self._chroma.records(collection) or {}
        numbers = [user.n for user in users]
        wanted = await self._journal.query(lambda c: store.placed_ids(c, numbers, layout.space))
        missing = wanted - there.keys()
        added = 0
        for user in users if missing else ():
            after = 0
            while page := await self._journal.query(
                lambda c, n=user.n, after=after: store.placed(  # type: ignore[misc]
                    c, n, layout.space, after=after, limit=PAGE
                )
            ):
                lost = [one for one in page if one.id in missing]
                await self._chroma.upsert(
                    collection, [Record(one.id, one.owner.hex(), one.vector) for one in lost]
                )
                added, after = added + len(lost), page[-1].n
                await self._take_out_archived(collection, user, lost)
        surplus = sorted(there.keys() - wanted)
        await self._chroma.delete(collection, surplus)
        return added, len(surplus)

    async def _take_out_archived(
        self, collection: str, user: Owner, put: Sequence[store.Placed]
    ) -> None:
        """Takes out again what was archived between its reading and its writing."""
        if not put:
            return
        ids = [one.id for one in put]
        gone = await self._journal.query(lambda c: store.archived_among(c, user.n, ids))
        await self._chroma.delete(collection, gone)

    # --- another number of shards --------------------------------------------------------------

    async def relayout(self, shards: int, progress: Progress | None = None) -> int:
        """Shares users out among so many shards, while others read and write; how many vectors
        were copied.

        Fills the new shards from the journal, to which everybody writes as well from then on,
        flips one row, and clears the old ones. Can be stopped at any moment and run again: it goes
        on where it was, or, with another number, gives up what it had begun. Nobody may repair,
        rebuild or embed again meanwhile. Raises InvalidInput for an impossible number.
        """
        if not 1 <= shards <= MOST_SHARDS:
            raise InvalidInput(f"{shards} shards; 1 to {MOST_SHARDS} are possible")
        layout = await self._relaid(lambda row, space: row.moving_to(shards))
        copied = 0
        if layout.row.coming is not None:
            copied = await self._fill_shards(layout, progress)
            layout = await self._relaid(lambda row, space: row.moved())
        for name in await self._chroma.collections(layout.prefix):
            ending = name.removeprefix(layout.prefix).partition("-")[2]
            if any(way.has(ending) for way in layout.row.left):
                await self._chroma.drop(name)
        await self._relaid(lambda row, space: row.cleared())
        return copied

    async def _fill_shards(self, layout: Layout, progress: Progress | None) -> int:
        """Brings the coming shards of every space to what the journal says belongs there."""
        everybody, spaces = await self._journal.query(lambda c: (store.owners(c), store.spaces(c)))
        plan: list[tuple[Layout, int, str, list[Owner], int]] = []
        for one in spaces:
            of_space = layout._replace(space=one.space, space_key=space_key(one.identity, one.dims))
            counts = await self._journal.query(
                lambda c, n=one.space: store.placed_counts(c, n)  # type: ignore[misc]
            )
            sharing: defaultdict[str, list[Owner]] = defaultdict(list)
            for user in everybody:
                name = of_space.coming(user.owner)
                if name is not None and not user.has_own_collection and counts.get(user.n):
                    sharing[name].append(user)
            plan += [
                (of_space, one.dims, name, users, sum(counts[user.n] for user in users))
                for name, users in sorted(sharing.items())
            ]
        total = sum(expected for *_, expected in plan)
        copied = done = 0
        for of_space, dims, name, users, expected in plan:
            if not await self._is_sound(name, expected, dims):
                await self._chroma.drop(name)
            added, _ = await self._reconcile(name, users, of_space)
            copied, done = copied + added, done + expected
            if progress:
                progress(done, total)
        return copied

    async def health(self) -> Health:
        """Whether Chroma answers, and which it is. Never raises TierUnavailable."""
        try:
            version = await self._chroma.version()
        except TierUnavailable as error:
            return Health(part="episodic", ok=False, where=self._chroma.where, problem=str(error))
        return Health(
            part="episodic", ok=True, version=f"Chroma API {version}", where=self._chroma.where
        )

    # --- the journal ---------------------------------------------------------------------------

    async def _layout(self) -> Layout:
        """Where vectors live, as far as we know; decided for a journal by whoever asks first."""
        if self._known_layout is not None:
            return self._known_layout[1]
        return await self._relaid(lambda row, space: row)

    async def _relaid(self, change: Callable[[Row, int], Row]) -> Layout:
        """Where vectors live after a change of the row, which is told the embedder's space."""
        identity, dims = self._embedder.identity, self._embedder.dims
        # Two journals on one server must never share a collection, and nothing in a journal tells
        # it from every other one: the only random number of this module.
        proposed = Row(secrets.token_hex(5), Shards(self._shards))

        def work(connection: Connection) -> tuple[bytes, int]:
            connection.execute(
                insert_into(connection, meta).on_conflict_do_nothing(),
                {"key": _LAYOUT, "value": proposed.to_bytes()},
            )
            wanted = select(meta.c.value).where(meta.c.key == _LAYOUT).with_for_update()
            before: bytes = connection.scalars(wanted).one()
            space = store.space_of(connection, identity, dims)
            row = Row.of(before)
            changed = change(row, space)
            if changed == row:
                return before, space
            value = changed.to_bytes()
            connection.execute(update(meta).where(meta.c.key == _LAYOUT).values(value=value))
            return value, space

        value, space = await self._journal.write(work)
        layout = Layout(Row.of(value), space, space_key(identity, dims))
        self._known_layout = value, layout
        return layout

    async def _read(self, scope: Scope, work: Callable[[Connection, bytes], T]) -> T:
        owner = owner_of(scope)
        return await self._journal.query(lambda connection: work(connection, owner))

    async def _write(
        self, owner: bytes, work: Callable[[Connection], T], *, durable: bool = True
    ) -> T:
        """`work` in a transaction; those of one user take turns. Not `durable` is what can be done
        again: a power cut undoes it in order of commit, so together with the cursor after it."""
        alone = f"episodes {owner.hex()}"
        return await self._journal.write(work, alone=alone, durable=durable)


class _Outcome(NamedTuple):
    """For each episode its vectors, that of the whole first, or the reason why it has none."""

    results: list[Vectors | str]
    warnings: tuple[str, ...]


class _Patience:
    """How often an embedder has refused in a row, and why the last time."""

    def __init__(self) -> None:
        self.refused = 0
        self.reason = ""


def _known(
    connection: Connection, owner: bytes, ids: Sequence[str], space: int
) -> dict[str, Known]:
    user = store.owner_of(connection, owner)
    return {} if user is None else store.known(connection, user.n, ids, space)


def _skipped(parted: Iterable[tuple[str, Any]]) -> tuple[Skipped, ...]:
    return tuple(
        Skipped(message_id=key, reason=parts.skipped) for key, parts in parted if parts.skipped
    )


def _vectors_or_flaw(result: Vectors | str) -> tuple[Vectors | None, str]:
    return (None, result) if isinstance(result, str) else (result, "")


def _stacked(results: Sequence[Vector | str]) -> Vectors | str:
    """What was made of an episode and its passages as rows. Where there is nothing of the whole,
    or the embedder failed at any of it, there is nothing, and it is embedded again; a passage whose
    vector is of no use is left to the whole."""
    for at, result in enumerate(results):
        if isinstance(result, str) and (at == 0 or result.startswith(FAILED)):
            return result
    return np.stack([row for row in results if not isinstance(row, str)])


def _refuse_constant(texts: Sequence[str], results: list[Vector | str]) -> tuple[str, ...]:
    """Reports different texts with one and the same vector; three or more are no embedding at all,
    and lose it. Writing the same in capitals is no difference."""
    rows = [at for at, result in enumerate(results) if not isinstance(result, str)]
    if len(rows) < 2:
        return ()
    folded = [" ".join(texts[at].casefold().split()) for at in rows]
    matrix = np.stack([result for result in results if not isinstance(result, str)])
    warnings = []
    for group in alike(folded, matrix):
        different = len({folded[at] for at in group})
        warnings.append(f"the embedder gave {different} different texts the same vector")
        if different > 2:
            for at in group:
                results[rows[at]] = f"the embedder gave {different} different texts this vector"
    return tuple(warnings)


def _padded(vectors: Any, n: int) -> list[Any]:
    rows = list(vectors)[:n]
    return [*rows, *[None] * (n - len(rows))]


def _unit(row: Any) -> Vector:
    vector = np.asarray(row, dtype=np.float64)
    unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit
