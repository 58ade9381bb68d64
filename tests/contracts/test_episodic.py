"""What episodic memory promises: over SQLite and the local stack's Chroma, over PostgreSQL and a
Chroma server."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from sqlalchemy import Connection, select, update
from sqlalchemy import text as sql

from memory import episode_store as store
from memory import lexical
from memory.chroma import Chroma, Record, open_chroma
from memory.episodic import OWN_COLLECTION, EpisodicMemory, Remembered
from memory.errors import ConfigurationError, InvalidInput, TierUnavailable
from memory.journal import Journal
from memory.journal.episode_tables import episode_owners, episode_vectors
from memory.journal.schema import owner_of
from memory.lexical import Hit, LexicalIndex
from memory.local import LocalStack
from memory.models import Episode, Message, RecordedMessage, Role, Scope
from tests.contracts.moving_process import prepare_and_die, share_out_and_die
from tests.proxy import proxy
from tests.stub_embedder import FAILS, StubEmbedder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
TIMEOUT = timedelta(seconds=60)
HOSTILE = (
    "nul \x00 inside",
    "lone surrogates \ud800 and \udfff",
    "right to left \u202e\u05e9\u05dc\u05d5\u05dd",
    "<|endoftext|><|im_start|>system",
    "emoji 👩‍👩‍👧‍👦 and 你好，世界",
    "'; DROP TABLE episodes; --",
    "\r\n\t\u2028 spaces around \u0085 ",
)
THINGS = ("bicycle", "fence", "umbrella", "lamp", "garden", "piano", "kettle", "ladder", "mirror")


class Place(NamedTuple):
    """Where episodes are kept: a journal, and a Chroma."""

    journal: Journal
    chroma: Chroma
    chroma_url: str


@pytest.fixture(params=["local", "servers"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    if request.param == "servers":
        journal = str(request.getfixturevalue("postgres_url"))
        return journal, str(request.getfixturevalue("chroma_url"))
    local: LocalStack = request.getfixturevalue("local")
    return f"sqlite:///{tmp_path / 'journal.db'}", local.chroma_url


@asynccontextmanager
async def opened(urls: tuple[str, str]) -> AsyncIterator[Place]:
    journal_url, chroma_url = urls
    async with (
        Journal.open(journal_url, timeout=TIMEOUT) as journal,
        open_chroma(chroma_url, timeout=TIMEOUT) as chroma,
    ):
        yield Place(journal, chroma, chroma_url)


@pytest.fixture
async def place(urls: tuple[str, str]) -> AsyncIterator[Place]:
    async with opened(urls) as place:
        yield place
        for name in await collections(place):
            await place.chroma.drop(name)


@pytest.fixture
def embedder() -> StubEmbedder:
    return StubEmbedder()


@pytest.fixture
def episodic(place: Place, embedder: StubEmbedder) -> EpisodicMemory:
    return EpisodicMemory(place.journal, place.chroma, embedder, shards=4)


async def collections(place: Place) -> list[str]:
    """The collections of this journal: the server is shared."""
    layout = await place.journal.get_meta("episodic.layout")
    if not isinstance(layout, dict):
        return []
    return await place.chroma.collections(f"trimem-{layout['namespace']}-")


async def record(
    place: Place,
    scope: Scope,
    texts: Sequence[str],
    *,
    session: str = "monday",
    role: Role = Role.USER,
    agent: str | None = None,
    name: str | None = None,
) -> list[RecordedMessage]:
    messages = [
        (f"{session} {number} {text}"[:200], Message(role=role, content=text, name=name))
        for number, text in enumerate(texts)
    ]
    return await place.journal.append_messages(scope, session, messages, agent=agent, now=NOW)


async def found_by_meaning(episodic: EpisodicMemory, scope: Scope, query: str, k: int) -> list[str]:
    """The texts of the nearest episodes to a query."""
    vector = StubEmbedder()._vector(query)
    hits = await episodic.nearest(scope, vector, k)
    episodes = await episodic.episodes(scope, [hit.id for hit in hits])
    return [episodes[hit.id].text for hit in hits]


def sentences(count: int, seed: int = 0) -> list[str]:
    """Different texts that share words."""
    drawn = random.Random(seed)
    return [f"note {n} about the {' and the '.join(drawn.sample(THINGS, 3))}" for n in range(count)]


def same(some: Sequence[Hit], others: Sequence[Hit]) -> bool:
    """Whether these are the same hits, but for the last decimals of Chroma's arithmetic."""
    scores = {hit.id: hit.score for hit in others}
    return {hit.id: hit.score for hit in some} == pytest.approx(scores, abs=1e-4)


# --- remembering -------------------------------------------------------------------------------


async def test_what_was_said_is_found_again_word_for_word(
    place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    texts = [*sentences(20), "the cat sleeps on the piano"]
    messages = await record(place, scope, texts, agent="cook")
    remembered = await episodic.remember(scope, messages)
    assert len(remembered.episodes) == 21
    assert remembered == Remembered(episodes=remembered.episodes)
    assert await found_by_meaning(episodic, scope, "the cat sleeps on the piano", 1) == texts[-1:]
    episode = (await episodic.episodes(scope, remembered.episodes))[remembered.episodes[-1]]
    assert episode == Episode(
        id=episode.id,
        session="monday",
        message_id=messages[-1].id,
        seq=21,
        role=Role.USER,
        speaker="user",
        agent="cook",
        text=texts[-1],
        event_time=NOW,
        recorded_at=NOW,
    )
    assert Episode.from_json(episode.to_json()) == episode


async def test_a_name_is_searched_with_what_its_owner_said_and_stored_nowhere_in_it(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    ours = await record(place, scope, ["I have a dog", "It barks"], name="Caroline")
    theirs = await record(place, scope, ["I have a cat"], session="tuesday", name="Melanie")
    nameless = await record(place, scope, ["I have a fish"], session="wednesday")
    remembered = await episodic.remember(scope, [*ours, *theirs, *nameless])
    ids = dict(zip(("dog", "barks", "cat", "fish"), remembered.episodes, strict=True))
    assert [one.text for one in await episodic.all(scope)] == [
        "I have a dog", "It barks", "I have a cat", "I have a fish",
    ]  # fmt: skip
    assert sorted(embedder.embedded) == [
        "Caroline: I have a dog", "Caroline: It barks", "I have a fish", "Melanie: I have a cat",
    ]  # fmt: skip
    words = LexicalIndex(place.journal)
    of_caroline = [ids["dog"], ids["barks"]]
    assert sorted(hit.id for hit in await words.search(scope, "caroline", 9)) == sorted(of_caroline)
    assert await words.search(scope, "user", 9) == []
    await episodic.archive(scope, of_caroline, True)
    assert await words.search(scope, "caroline", 9) == []
    await episodic.archive(scope, of_caroline, False)
    assert sorted(hit.id for hit in await words.search(scope, "caroline", 9)) == sorted(of_caroline)
    await episodic.rebuild()
    assert sorted(hit.id for hit in await words.search(scope, "caroline", 9)) == sorted(of_caroline)


async def test_what_was_remembered_without_names_gets_them_from_a_repair(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    named = await record(place, scope, ["I have a dog", "It barks"], name="Caroline")
    nameless = await record(place, scope, sentences(5), session="tuesday")
    ids = (await episodic.remember(scope, [*named, *nameless])).episodes[:2]
    await as_before_names(place, episodic, scope)
    words = LexicalIndex(place.journal)
    old = await episodic.vectors(scope, ids)
    assert np.allclose(old[ids[0]], embedder._vector("I have a dog"))
    assert await found_by_meaning(episodic, scope, "I have a dog", 1) == ["I have a dog"]
    assert await words.search(scope, "caroline", 9) == []
    assert [hit.id for hit in await words.search(scope, "dog", 9)] == [ids[0]]

    embedder.calls.clear()
    repaired = await episodic.repair()
    assert (repaired.embedded, repaired.still_flawed, repaired.outdated) == (2, 0, 0)
    assert sorted(embedder.embedded) == ["Caroline: I have a dog", "Caroline: It barks"]
    assert sorted(hit.id for hit in await words.search(scope, "caroline", 9)) == sorted(ids)
    vector = embedder._vector("Caroline: I have a dog")
    assert np.allclose((await episodic.vectors(scope, ids))[ids[0]], vector)
    [best] = await episodic.nearest(scope, vector, 1)
    assert best == Hit(ids[0], pytest.approx(1.0, abs=1e-4))
    assert not (await episodic.repair()).model_dump(exclude_defaults=True)


async def test_old_vectors_serve_until_they_are_made_again_and_reembedding_does_all(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    await episodic.remember(scope, await record(place, scope, sentences(30), name="Caroline"))
    await as_before_names(place, episodic, scope)
    embedder.wrong = {f"Caroline: {text}": FAILS for text in sentences(30)}
    repaired = await episodic.repair()
    assert (repaired.embedded, repaired.still_flawed) == (0, 30)
    assert len(await episodic.nearest(scope, embedder._vector("note"), 30)) == 30
    embedder.wrong = {}
    assert (await episodic.reembed()).embedded == 30
    assert await episodic.outdated() == 0
    assert not (await episodic.repair()).model_dump(exclude_defaults=True)


async def as_before_names(place: Place, episodic: EpisodicMemory, scope: Scope) -> None:
    """Puts a user's postings and vectors there as they were before names were searched."""
    found = await episodic.all(scope)
    layout = await episodic._layout()
    vectors = {episode.id: StubEmbedder()._vector(episode.text) for episode in found}

    def work(connection: Connection) -> None:
        user = store.made_owner(connection, owner_of(scope))
        known = store.known(connection, user.n, list(vectors), layout.space)
        lexical.forget_all(connection, user.n)
        postings = [lexical.Posting.of(known[each.id].n, each.text) for each in found]
        lexical.index(connection, user.n, postings)
        numbers = {known[key].n: vector[np.newaxis] for key, vector in vectors.items()}
        store.put_vectors(connection, user.n, layout.space, numbers)
        mine = episode_owners.c.n == user.n
        connection.execute(update(episode_owners).where(mine).values(lexicon=1))

    await place.journal.write(work)
    name = layout.collection(owner_of(scope), own=False)
    user = owner_of(scope).hex()
    await place.chroma.upsert(name, [Record(key, user, each) for key, each in vectors.items()])


LETTER = [
    f"On day {n} we saw {thing} by the lake, and stayed until the last of the light was gone."
    for n, thing in enumerate(("herons", "otters", "swans", "pikes"))
]


async def test_passages_of_long_episodes_are_embedded_with_the_name_and_are_in_the_journal_alone(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    long = " ".join(LETTER)
    messages = await record(place, scope, [long, "It rained"], name="Caroline")
    ids = (await episodic.remember(scope, messages)).episodes
    expected = [f"Caroline: {text}" for text in (long, *LETTER)]
    [(_, embedded)] = embedder.calls
    assert sorted(embedded) == sorted([*expected, "Caroline: It rained"])
    stored = await stored_vectors(place, episodic, scope, ids)
    assert np.allclose(stored[ids[0]], [embedder._vector(text) for text in expected])
    assert stored[ids[1]].shape == (1, 384)
    whole = embedder._vector(expected[0])
    assert np.allclose((await episodic.vectors(scope, ids))[ids[0]], whole)
    for _ in range(2):
        assert len(await episodic.nearest(scope, whole, 9)) == 2
        [best] = await episodic.nearest(scope, whole, 1)
        assert best == Hit(ids[0], pytest.approx(1.0, abs=1e-4))
        await episodic.rebuild()
    await episodic.archive(scope, ids, True)
    await episodic.archive(scope, ids, False)
    assert len(await episodic.nearest(scope, whole, 9)) == 2
    assert await episodic.remember(scope, messages)  # again: puts them into Chroma once more
    assert len(await episodic.nearest(scope, whole, 9)) == 2


async def test_embedding_again_makes_the_passages_too(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    messages = await record(place, scope, [" ".join(LETTER)], name="Caroline")
    ids = (await episodic.remember(scope, messages)).episodes
    await as_before_names(place, episodic, scope)
    assert (await stored_vectors(place, episodic, scope, ids))[ids[0]].shape == (1, 384)
    assert (await episodic.repair()).embedded == 1
    made = (await stored_vectors(place, episodic, scope, ids))[ids[0]]
    assert np.allclose(made[1:], [embedder._vector(f"Caroline: {text}") for text in LETTER])
    other = episodic.of_embedder(StubEmbedder("another", dims=100))
    assert (await other.prepare()).embedded == 1
    assert (await other.reembed()).embedded == 0
    assert (await stored_vectors(place, other, scope, ids))[ids[0]].shape == (5, 100)
    assert (await other.vectors(scope, ids))[ids[0]].shape == (100,)


async def test_a_passage_whose_vector_is_of_no_use_is_left_to_the_whole(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    embedder.wrong = {LETTER[1]: np.full(384, np.nan), LETTER[2]: np.zeros(384)}
    remembered = await episodic.remember(scope, await record(place, scope, [" ".join(LETTER)]))
    assert remembered.flawed == ()
    stored = await stored_vectors(place, episodic, scope, remembered.episodes)
    expected = [embedder._vector(text) for text in (" ".join(LETTER), LETTER[0], LETTER[3])]
    assert np.allclose(stored[remembered.episodes[0]], expected)


async def test_without_a_vector_of_the_whole_there_are_none_of_the_passages(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    embedder.wrong = {" ".join(LETTER): np.zeros(384)}
    remembered = await episodic.remember(scope, await record(place, scope, [" ".join(LETTER)]))
    assert len(remembered.flawed) == 1
    assert await stored_vectors(place, episodic, scope, remembered.episodes) == {}
    embedder.wrong = {}
    assert (await episodic.repair()).embedded == 1
    stored = await stored_vectors(place, episodic, scope, remembered.episodes)
    assert stored[remembered.episodes[0]].shape == (5, 384)


async def stored_vectors(
    place: Place, episodic: EpisodicMemory, scope: Scope, ids: Sequence[str]
) -> dict[str, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    """The rows that the journal has of each episode."""
    layout = await episodic._layout()

    def work(connection: Connection) -> dict[str, bytes]:
        known = store.known(
            connection, store.made_owner(connection, owner_of(scope)).n, ids, layout.space
        )
        wanted = select(episode_vectors.c.n, episode_vectors.c.vector).where(
            episode_vectors.c.space == layout.space
        )
        found = {row.n: row.vector for row in connection.execute(wanted)}
        return {key: found[one.n] for key, one in known.items() if one.is_embedded}

    dims = episodic._embedder.dims
    found = await place.journal.write(work)
    return {key: np.frombuffer(data, dtype="<f4").reshape(-1, dims) for key, data in found.items()}


async def test_similarity_is_the_cosine(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    remembered = await episodic.remember(scope, await record(place, scope, sentences(30)))
    vector = embedder._vector("a note about the lamp")
    vectors = await episodic.vectors(scope, remembered.episodes)
    exact = {key: float(each @ vector) for key, each in vectors.items()}
    hits = await episodic.nearest(scope, vector, 30)
    assert {hit.id: hit.score for hit in hits} == pytest.approx(exact, abs=1e-5)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))
    assert (await episodic.nearest(scope, 7 * vector, 1))[0].score == pytest.approx(hits[0].score)


async def test_remembering_again_changes_nothing_and_embeds_nothing(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    messages = await record(place, scope, sentences(12))
    first = await episodic.remember(scope, messages)
    before = await episodic.all(scope)
    assert len(embedder.embedded) == 12
    assert await episodic.remember(scope, messages) == first
    assert await episodic.remember(scope, messages[3:5]) == first.model_copy(
        update={"episodes": first.episodes[3:5]}
    )
    assert await episodic.all(scope) == before
    assert len(embedder.embedded) == 12
    assert {role for role, _ in embedder.calls} == {"document"}
    assert len(await episodic.nearest(scope, embedder._vector("note"), 100)) == 12


async def test_the_same_messages_at_once_are_remembered_once(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    messages = await record(place, scope, sentences(12))
    other = EpisodicMemory(place.journal, place.chroma, embedder, shards=9)
    every = await asyncio.gather(
        *(memory.remember(scope, messages) for memory in (episodic, other) for _ in range(3))
    )
    assert len({one.episodes for one in every}) == 1
    assert len(await episodic.all(scope)) == 12
    assert len(await other.nearest(scope, embedder._vector("note"), 100)) == 12
    hits = await LexicalIndex(place.journal).search(scope, "note", 100)
    assert len(hits) == 12


async def test_hostile_text_comes_back_unharmed(
    place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    messages = await record(place, scope, HOSTILE)
    remembered = await episodic.remember(scope, messages)
    found = await episodic.episodes(scope, remembered.episodes)
    assert [episode.text for episode in found.values()] == list(HOSTILE)


async def test_long_messages_are_kept_whole_in_pieces_that_end_with_sentences(
    place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    story = " ".join(f"This is sentence {n}, of a story that goes on." for n in range(200))
    endless = "x" * 100_000
    [long, longer] = await record(place, scope, [story, endless])
    await episodic.remember(scope, [long, longer])
    parts = await episodic.of_messages(scope, [long.id])
    assert len(parts) > 5
    assert "".join(part.text for part in parts) == story
    assert all(part.text.rstrip().endswith(".") for part in parts)
    assert [part.part for part in parts] == list(range(len(parts)))
    assert {part.parts for part in parts} == {len(parts)}
    assert "".join(one.text for one in await episodic.of_messages(scope, [longer.id])) == endless
    last = "This is sentence 199, of a story that goes on."
    assert last in (await found_by_meaning(episodic, scope, last, 1))[0]


async def test_what_says_nothing_is_reported_and_is_no_episode(
    place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    pairs = [
        ("b", Message(role=Role.SYSTEM, content="Be brief.")),
        ("c", Message(role=Role.TOOL, content="", tool_call_id="1")),
        ("d", Message(role=Role.USER, content="👍")),
    ]
    messages = await place.journal.append_messages(scope, "s", pairs, agent=None, now=NOW)
    remembered = await episodic.remember(scope, messages)
    assert [one.message_id for one in remembered.skipped] == [one.id for one in messages[:2]]
    assert all(one.reason for one in remembered.skipped)
    assert [one.text for one in await episodic.all(scope)] == ["👍"]
    assert (await episodic.remember(scope, [])).episodes == ()


# --- finding -----------------------------------------------------------------------------------


async def test_asking_for_more_than_there_is_gives_what_there_is(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    other = Scope.of(scope.tenant, "other")
    await episodic.remember(other, await record(place, other, sentences(3)))
    vector = embedder._vector("note")
    assert await episodic.nearest(scope, vector, 10) == []
    assert len(await episodic.nearest(other, vector, 10)) == 3
    assert len(await episodic.nearest(other, vector, 1)) == 1
    assert await episodic.episodes(scope, []) == {}
    assert await episodic.all(scope) == []


@pytest.mark.parametrize("vector", [np.zeros(384), np.full(384, np.nan), np.ones(7)])
async def test_a_vector_that_is_none_is_refused(
    episodic: EpisodicMemory, scope: Scope, vector: np.ndarray
) -> None:
    with pytest.raises(InvalidInput):
        await episodic.nearest(scope, vector.astype(np.float32), 5)
    with pytest.raises(InvalidInput):
        await episodic.nearest(scope, np.ones(384, dtype=np.float32), 0)


async def test_the_nearest_is_found_among_many_users_for_any_k(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    users = [Scope.of(scope.tenant, f"{scope.user}-{number}") for number in range(20)]
    for number, user in enumerate(users):
        messages = await record(place, user, sentences(100, seed=number))
        await episodic.remember(user, messages)
    drawn = random.Random(1)
    exact_in_five = first_is_first = 0
    for _ in range(50):
        user = drawn.choice(users)
        vector = embedder._vector(f"note {drawn.randrange(100)} about the {drawn.choice(THINGS)}")
        every = await episodic.all(user)
        vectors = await episodic.vectors(user, [one.id for one in every])
        exact = max(vectors, key=lambda key: (round(float(vectors[key] @ vector), 5), key))
        five = await episodic.nearest(user, vector, 5)
        fifty = await episodic.nearest(user, vector, 50)
        assert await episodic.nearest(user, vector, 1) == five[:1]
        exact_in_five += exact in {hit.id for hit in five}
        first_is_first += five[0] == fifty[0]
    assert exact_in_five >= 49
    assert first_is_first >= 49


async def test_equals_come_in_the_order_of_their_ids(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    await episodic.remember(scope, await record(place, scope, ["the same words"] * 20))
    every = [hit.id for hit in await episodic.nearest(scope, embedder._vector("same"), 20)]
    assert len(every) == 20
    assert every == sorted(every)


async def test_every_read_gives_the_users_own_and_nobody_elses(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    messages = await record(place, scope, ["the vault opens with swordfish"])
    [key] = (await episodic.remember(scope, messages)).episodes
    vector = embedder._vector("vault swordfish")
    others = [Scope.of(scope.tenant, "somebody"), Scope.of("elsewhere", scope.user)]
    for other in others:
        await episodic.remember(other, await record(place, other, ["nothing of that kind"]))

    reads: list[Callable[[Scope], Awaitable[bool]]] = [
        lambda who: _any(episodic.nearest(who, vector, 5), lambda hit: hit.id == key),
        lambda who: _any(episodic.episodes(who, [key]), lambda found: found == key),
        lambda who: _any(episodic.vectors(who, [key]), lambda found: found == key),
        lambda who: _any(episodic.of_messages(who, [messages[0].id]), lambda one: one.id == key),
        lambda who: _any(episodic.around(who, "monday", [1], 3), lambda one: one.id == key),
        lambda who: _any(episodic.all(who, archived=True), lambda one: one.id == key),
    ]
    for read in reads:
        assert await read(scope)
        for other in others:
            assert not await read(other)


async def _any(found: Awaitable[Sequence[object]], matches: Callable[[object], bool]) -> bool:
    return any(map(matches, await found))


async def test_no_write_reaches_another_users_episodes(
    place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    messages = await record(place, scope, sentences(2))
    ids = (await episodic.remember(scope, messages)).episodes
    before = await episodic.all(scope)
    other = Scope.of(scope.tenant, "other")
    await episodic.remember(other, await record(place, other, ["something"]))
    await episodic.archive(other, ids, True)
    await episodic.pin(other, ids, True)
    await episodic.touch(other, ids, now=LATER)
    assert await episodic.all(scope) == before
    await episodic.pin(scope, ids, True)
    assert await episodic.all(scope) != before


async def test_neighbours_in_a_conversation_are_read_in_order(
    place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    await episodic.remember(scope, await record(place, scope, sentences(20)))
    await episodic.remember(scope, await record(place, scope, sentences(20), session="tuesday"))
    around = await episodic.around(scope, "monday", [1, 10], 2)
    assert [one.seq for one in around] == [1, 2, 3, 8, 9, 10, 11, 12]
    assert {one.session for one in around} == {"monday"}
    assert await episodic.around(scope, "nowhere", [1], 2) == []


# --- changing ----------------------------------------------------------------------------------


async def test_archived_episodes_leave_recall_and_come_back_as_they_were(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    ids = (await episodic.remember(scope, await record(place, scope, sentences(9)))).episodes
    words = LexicalIndex(place.journal)
    vector = embedder._vector("note")
    before = await episodic.nearest(scope, vector, 9), await words.search(scope, "note", 9)
    for _ in range(2):
        await episodic.archive(scope, ids[:4], True)
    assert {hit.id for hit in await episodic.nearest(scope, vector, 9)} == set(ids[4:])
    assert {hit.id for hit in await words.search(scope, "note", 9)} == set(ids[4:])
    assert len(await episodic.all(scope)) == 5
    assert [one.archived for one in await episodic.all(scope, archived=True)].count(True) == 4
    assert len(await episodic.vectors(scope, ids)) == 9
    for _ in range(2):
        await episodic.archive(scope, ids[:4], False)
    assert await words.search(scope, "note", 9) == before[1]
    assert same(await episodic.nearest(scope, vector, 9), before[0])


async def test_use_is_noted_but_never_set_back(
    place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    ids = (await episodic.remember(scope, await record(place, scope, sentences(2)))).episodes
    await episodic.touch(scope, ids[:1], now=LATER)
    await episodic.touch(scope, ids[:1], now=NOW)
    await episodic.pin(scope, ids[1:], True)
    found = await episodic.episodes(scope, ids)
    assert [one.last_access for one in found.values()] == [LATER, None]
    assert [one.pinned for one in found.values()] == [False, True]


# --- a large user ------------------------------------------------------------------------------


async def test_a_large_user_moves_to_a_collection_of_their_own_and_nothing_is_lost(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    other = Scope.of(scope.tenant, "other")
    await episodic.remember(other, await record(place, other, sentences(5)))
    count = OWN_COLLECTION + 60
    messages = await record(place, scope, sentences(count))
    await episodic.remember(scope, messages[:-90])
    await asyncio.gather(
        *(episodic.remember(scope, messages[at : at + 10]) for at in range(count - 90, count, 10))
    )
    own = [name for name in await collections(place) if "-u" in name]
    assert len(own) == 1
    assert await place.chroma.count(own[0]) == count
    for number in (0, 500, count - 75, count - 1):
        text = messages[number].text
        assert (await found_by_meaning(episodic, scope, text, 1)) == [text]
    assert len(await episodic.nearest(scope, embedder._vector("note"), 300)) == 300
    assert len(await episodic.nearest(other, embedder._vector("note"), 300)) == 5
    assert not (await episodic.repair()).model_dump(exclude_defaults=True)


async def test_a_move_that_was_cut_off_is_finished_and_everybody_finds_what_is_new(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    messages = await record(place, scope, [*sentences(OWN_COLLECTION + 1), "a zebra", "a quagga"])
    await episodic.remember(scope, messages[:-3])
    reader = EpisodicMemory(place.journal, place.chroma, embedder, shards=4)
    assert len(await reader.nearest(scope, embedder._vector("note"), 5)) == 5
    [shard] = await collections(place)
    before = [
        Record(key, owner_of(scope).hex(), vector)
        for key, vector in (
            await episodic.vectors(scope, [one.id for one in await episodic.all(scope)])
        ).items()
    ]
    await episodic.remember(scope, messages[:-1])
    await place.chroma.upsert(shard, before)  # as if it had been killed before it cleared these
    await episodic.remember(scope, messages[:-1])
    await episodic.remember(scope, messages[-1:])
    assert await found_by_meaning(episodic, scope, "a quagga", 1) == ["a quagga"]
    assert await found_by_meaning(reader, scope, "a zebra", 1) == ["a zebra"]
    assert await found_by_meaning(reader, scope, "a quagga", 1) == ["a quagga"]
    assert not (await episodic.repair()).model_dump(exclude_defaults=True)


# --- embedding that fails ----------------------------------------------------------------------


async def test_what_cannot_be_embedded_is_found_by_its_words_and_embedded_later(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    bad: dict[str, object] = {
        "not a number at all": np.full(384, np.nan),
        "beyond every bound": np.full(384, np.inf),
        "nothing but zeros": np.zeros(384),
        "far too short": np.ones(5),
        "an exception instead": FAILS,
    }
    good = sentences(5)
    embedder.wrong = bad
    remembered = await episodic.remember(scope, await record(place, scope, [*good, *bad]))
    reasons = {one.episode_id: one.reason for one in remembered.flawed}
    found = await episodic.episodes(scope, list(reasons))
    assert {one.text for one in found.values()} == set(bad)
    assert all(reasons.values())
    assert sorted(await found_by_meaning(episodic, scope, "note", 50)) == sorted(good)
    words = LexicalIndex(place.journal)
    for text in bad:
        [hit, *_] = await words.search(scope, text, 1)
        assert found[hit.id].text == text
    assert (await episodic.repair()).still_flawed == 5
    embedder.wrong = {}
    repaired = await episodic.repair()
    assert (repaired.embedded, repaired.still_flawed) == (5, 0)
    for text in bad:
        assert await found_by_meaning(episodic, scope, text, 1) == [text]


async def test_one_vector_for_different_texts_is_reported_and_not_searched(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    constant = embedder._vector("constant")
    embedder.wrong = dict.fromkeys(("one thing", "another thing", "a third thing"), constant)
    texts = [*embedder.wrong, "something else", "Something  ELSE"]
    remembered = await episodic.remember(scope, await record(place, scope, texts))
    assert len(remembered.flawed) == 3
    assert len(remembered.warnings) == 1
    assert len(await episodic.nearest(scope, constant, 10)) == 2


async def test_an_embedder_that_is_down_is_not_asked_for_every_text(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    texts = sentences(64)
    embedder.wrong = dict.fromkeys(texts, FAILS)
    remembered = await episodic.remember(scope, await record(place, scope, texts))
    assert len(remembered.flawed) == 64
    assert len(embedder.calls) < 20


# --- another embedder --------------------------------------------------------------------------


async def test_another_embedder_is_named_and_nothing_is_lost_until_and_after_reembedding(
    place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    texts = sentences(700)
    await episodic.remember(scope, await record(place, scope, texts))
    before = await episodic.all(scope)
    assert await episodic.mismatch(scope) is None

    embedder = StubEmbedder("larger", 768)
    changed = EpisodicMemory(place.journal, place.chroma, embedder)
    mismatch = await changed.mismatch(scope)
    assert mismatch is not None
    assert all(word in mismatch for word in ("700", "stub/384", "384", "larger/768", "768"))
    assert await changed.all(scope) == before
    assert await changed.nearest(scope, embedder._vector("note"), 5) == []
    assert await LexicalIndex(place.journal).search(scope, "note 17", 5) != []
    other = Scope.of(scope.tenant, "new")
    await changed.remember(other, await record(place, other, ["a fresh start"]))
    assert len(await changed.nearest(other, embedder._vector("fresh"), 5)) == 1

    stopped = asyncio.create_task(changed.reembed(lambda done, total: stopped.cancel()))
    with pytest.raises(asyncio.CancelledError):
        await stopped
    half = len(embedder.embedded)
    assert 0 < half < 700
    assert await changed.mismatch(scope) is not None
    seen: list[tuple[int, int]] = []
    await changed.reembed(lambda done, total: seen.append((done, total)))
    assert len(embedder.embedded) == 701
    assert seen[-1] == (701 - half, 701 - half)
    assert await changed.mismatch(scope) is None
    assert await changed.all(scope) == before
    assert len(await changed.nearest(scope, embedder._vector("note"), 700)) == 700
    assert (await changed.vectors(scope, [before[0].id]))[before[0].id].shape == (768,)
    assert await episodic.mismatch(scope) is not None
    assert await episodic.nearest(scope, StubEmbedder()._vector("note"), 5) == []


async def test_another_embedders_space_is_filled_while_the_first_one_serves(
    urls: tuple[str, str], place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    texts = sentences(1_200)
    for start in range(0, 1_200, 100):
        who = Scope.of(scope.tenant, f"{scope.user} {start}")
        await episodic.remember(who, await record(place, who, texts[start : start + 100]))
    await died(prepare_and_die, urls, "larger", 768)
    larger = StubEmbedder("larger", 768)
    coming = EpisodicMemory(place.journal, place.chroma, larger)
    who = Scope.of(scope.tenant, f"{scope.user} 0")

    async def first_one_serves() -> None:
        assert await found_by_meaning(episodic, who, texts[17], 1) == [texts[17]]
        assert await episodic.mismatch(who) is None

    await first_one_serves()
    await episodic.reembed()  # which must leave alone what is being prepared
    await first_one_serves()
    seen: list[tuple[int, int]] = []
    prepared = await coming.prepare(lambda done, total: seen.append((done, total)))
    assert 0 < prepared.embedded < 1_200
    assert seen[-1] == (prepared.embedded, prepared.embedded)
    assert len(set(larger.embedded)) == len(larger.embedded) == prepared.embedded
    await first_one_serves()
    new = await record(place, who, ["a zebra came meanwhile"], session="tuesday")
    await episodic.remember(who, new)
    assert (await coming.prepare()).embedded == 1
    assert (await coming.prepare()).embedded == 0

    flipped = EpisodicMemory(place.journal, place.chroma, StubEmbedder("larger", 768))
    assert await flipped.mismatch(who) is None
    [hit] = await flipped.nearest(who, larger._vector("a zebra came meanwhile"), 1)
    assert (await flipped.episodes(who, [hit.id]))[hit.id].text == "a zebra came meanwhile"
    assert len(await flipped.nearest(who, larger._vector("note"), 500)) == 101
    assert len(await episodic.nearest(who, StubEmbedder()._vector("note"), 500)) == 101
    assert (await flipped.reembed()).embedded == 0
    assert len(await flipped.nearest(who, larger._vector("note"), 500)) == 101
    assert await episodic.nearest(who, StubEmbedder()._vector("note"), 5) == []
    layout = await flipped._layout()
    assert all(name.startswith(layout.space_prefix) for name in await collections(place))
    assert not (await flipped.repair()).model_dump(exclude_defaults=True)


async def died(work: Callable[..., None], *arguments: object) -> None:
    """Runs it in a process of its own, which is killed in the middle."""
    process = get_context("spawn").Process(target=work, args=arguments)
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == -signal.SIGKILL


async def test_a_journal_from_before_there_were_several_spaces_is_brought_along(
    urls: tuple[str, str], place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    texts = sentences(5)
    await episodic.remember(scope, await record(place, scope, texts))
    blob = "BLOB" if urls[0].startswith("sqlite") else "BYTEA"
    async with place.journal.transaction() as connection:
        for statement in (
            "ALTER TABLE episode_vectors RENAME TO newer",
            "CREATE TABLE episode_vectors (n BIGINT NOT NULL PRIMARY KEY, "
            f"space BIGINT NOT NULL, vector {blob} NOT NULL)",
            "INSERT INTO episode_vectors SELECT n, space, vector FROM newer",
            "DROP TABLE newer",
            "DELETE FROM schema_versions WHERE version > 3",
        ):
            await connection.execute(sql(statement))
    async with opened(urls) as again:
        memory = EpisodicMemory(again.journal, again.chroma, StubEmbedder())
        assert len(await memory.vectors(scope, [one.id for one in await memory.all(scope)])) == 5
        other = EpisodicMemory(again.journal, again.chroma, StubEmbedder("larger", 768))
        assert (await other.prepare()).embedded == 5
        assert not (await memory.repair()).model_dump(exclude_defaults=True)


# --- another number of shards ------------------------------------------------------------------


class Crowd:
    """Users who write and are read all the time; what was acknowledged must be found.

    They are few and write little: of hundreds of vectors that are equally far from each other, as
    no real texts are, an index loses some.
    """

    MOST = 240

    def __init__(self, place: Place, scope: Scope, users: int) -> None:
        self.writer = EpisodicMemory(place.journal, place.chroma, StubEmbedder())
        self.reader = EpisodicMemory(place.journal, place.chroma, StubEmbedder())
        self.scopes = [Scope.of(scope.tenant, f"{scope.user} {n}") for n in range(users)]
        self.known: dict[Scope, dict[str, str]] = {who: {} for who in self.scopes}
        """The texts by the ids of their episodes, in order."""
        self.reads = 0
        self._place = place
        self._drawn = random.Random(1)
        self._written = 0

    @property
    def size(self) -> int:
        return sum(map(len, self.known.values()))

    async def write(self, who: Scope, count: int) -> None:
        first = self._written = self._written + count
        texts = [f"{n}-a {n}-b" for n in range(first, first + count)]
        messages = await record(self._place, who, texts, session=f"session {first}")
        ids = (await self.writer.remember(who, messages)).episodes
        self.known[who] |= dict(zip(ids, texts, strict=True))

    async def read(self, who: Scope) -> None:
        """The newest is the nearest to itself, and nothing else is missing."""
        texts, newest = dict(self.known[who]), next(reversed(self.known[who].values()))
        vector = StubEmbedder()._vector(newest)
        [nearest, *_] = await self.reader.nearest(who, vector, 1)
        assert self.known[who][nearest.id] == newest
        found = {hit.id for hit in await self.reader.nearest(who, vector, 1_000)}
        assert texts.keys() <= found
        self.reads += 1

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Both at once, until this is left, and once more for everybody."""
        ended = asyncio.Event()

        async def writing() -> None:
            while not ended.is_set() and self.size < self.MOST:
                await self.write(self._drawn.choice(self.scopes), 2)

        async def reading() -> None:
            while not ended.is_set():
                await self.read(self._drawn.choice(self.scopes))

        async with asyncio.TaskGroup() as group:
            group.create_task(writing())
            group.create_task(reading())
            yield
            ended.set()
        for who in self.scopes:
            await self.read(who)


async def test_users_are_shared_out_anew_while_others_read_and_write(
    place: Place, embedder: StubEmbedder, scope: Scope
) -> None:
    episodic = EpisodicMemory(place.journal, place.chroma, embedder, shards=16)
    await episodic._layout()
    crowd = Crowd(place, scope, 24)
    for who in crowd.scopes:
        await crowd.write(who, 4)
        await crowd.read(who)
    away = crowd.reader  # somebody who was not there when they were moved
    for who in crowd.scopes:
        await crowd.read(who)
    crowd.reader = EpisodicMemory(place.journal, place.chroma, StubEmbedder())
    for shards in (31, 9, 31):
        before, seen = crowd.reads, list[tuple[int, int]]()
        async with crowd.busy():
            copied = await episodic.relayout(
                shards, lambda done, total, seen=seen: seen.append((done, total))
            )
        assert copied >= 24 * 4
        assert seen[-1][0] == seen[-1][1]
        assert crowd.reads > before + 24
        crowd.reader, away = away, crowd.reader
        for who in crowd.scopes:
            await crowd.read(who)
        layout = await episodic._layout()
        assert layout.row.shards.number == shards
        assert (layout.row.coming, layout.row.left) == (None, ())
        expected = {layout.collection(owner_of(who), own=False) for who in crowd.scopes}
        repaired = await episodic.repair()  # drops what a writer may have made anew of the old ones
        assert not repaired.model_dump(exclude_defaults=True)
        assert set(await collections(place)) == expected
    assert await episodic.relayout(31) == 0


async def test_a_move_to_other_shards_that_was_killed_goes_on_or_is_given_up(
    urls: tuple[str, str], place: Place, embedder: StubEmbedder, scope: Scope
) -> None:
    episodic = EpisodicMemory(place.journal, place.chroma, embedder, shards=16)
    await episodic._layout()
    crowd = Crowd(place, scope, 24)
    for who in crowd.scopes:
        await crowd.write(who, 4)
    async with crowd.busy():
        await died(share_out_and_die, urls, 31)
    layout = await episodic._relaid(lambda row, space: row)
    assert layout.row.shards.number == 16
    assert layout.row.coming is not None
    faded = crowd.scopes[0]
    archived = list(crowd.known[faded])[:2]
    await crowd.writer.archive(faded, archived, True)
    for key in archived:
        del crowd.known[faded][key]
    assert not (await episodic.repair()).model_dump(exclude_defaults=True)
    async with crowd.busy():
        copied = await episodic.relayout(31)
    assert 0 < copied < 0.9 * crowd.size  # a third was there already
    assert not (await episodic.repair()).model_dump(exclude_defaults=True)
    async with crowd.busy():
        await died(share_out_and_die, urls, 8)
        assert await episodic.relayout(31) == 0
    layout = await episodic._layout()
    assert (layout.row.shards.number, layout.row.coming, layout.row.left) == (31, None, ())
    await episodic.repair()
    assert all(layout.is_used(name) for name in await collections(place))


@pytest.mark.parametrize("shards", [0, -1, 1_000])
async def test_an_impossible_number_of_shards_changes_nothing(
    episodic: EpisodicMemory, shards: int
) -> None:
    with pytest.raises(InvalidInput):
        await episodic.relayout(shards)
    assert (await episodic._layout()).row.coming is None


# --- Chroma that is down, or has lost something ------------------------------------------------


async def test_without_chroma_episodes_are_in_the_journal_and_remembered_again_they_are_whole(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    messages = await record(place, scope, sentences(5))
    async with open_chroma("http://127.0.0.1:9", timeout=TIMEOUT) as nowhere:
        down = EpisodicMemory(place.journal, nowhere, embedder)
        with pytest.raises(TierUnavailable, match="episodic") as raised:
            await down.remember(scope, messages)
        assert raised.value.tier == "episodic"
        assert raised.value.__cause__ is not None
        with pytest.raises(TierUnavailable):
            await down.nearest(scope, embedder._vector("note"), 5)
        assert len(await down.all(scope)) == 5
        assert len(await LexicalIndex(place.journal).search(scope, "note", 5)) == 5
        health = await down.health()
        assert (health.ok, health.part) == (False, "episodic")
        assert health.problem
    assert (await episodic.health()).ok
    await episodic.remember(scope, messages)
    assert len(embedder.embedded) == 5
    assert len(await episodic.nearest(scope, embedder._vector("note"), 5)) == 5


async def test_dropped_connections_are_not_noticed_and_answers_that_do_not_come_are_errors(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    await episodic.remember(scope, await record(place, scope, sentences(5)))
    vector = embedder._vector("note")
    server = urlsplit(place.chroma_url)
    async with (
        proxy(server.hostname or "", server.port or 0) as between,
        open_chroma(f"http://127.0.0.1:{between.port}", timeout=timedelta(seconds=2)) as chroma,
    ):
        far = EpisodicMemory(place.journal, chroma, embedder)
        before = await far.nearest(scope, vector, 5)
        assert len(before) == 5
        between.drop()
        assert same(await far.nearest(scope, vector, 5), before)
        between.freeze()
        with pytest.raises(TierUnavailable, match="no answer in time"):
            await far.nearest(scope, vector, 5)
        between.thaw()
        assert same(await far.nearest(scope, vector, 5), before)


async def test_a_search_that_is_given_up_leaves_no_answer_for_the_next(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    other = Scope.of(scope.tenant, "other")
    for who, words in ((scope, "ada alone"), (other, "ben alone")):
        await episodic.remember(who, await record(place, who, [f"{words} {n}" for n in range(5)]))
    vector = embedder._vector("alone")
    own = {one.id for one in await episodic.all(other)}
    server = urlsplit(place.chroma_url)
    async with (
        proxy(server.hostname or "", server.port or 0) as between,
        open_chroma(f"http://127.0.0.1:{between.port}", timeout=TIMEOUT) as chroma,
    ):
        far = EpisodicMemory(place.journal, chroma, embedder)
        assert {hit.id for hit in await far.nearest(other, vector, 5)} == own
        between.delay = timedelta(milliseconds=50)
        for _ in range(5):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await far.nearest(scope, vector, 5)
            assert {hit.id for hit in await far.nearest(other, vector, 5)} == own


async def test_a_lost_index_is_an_error_until_a_repair_brings_it_back(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    await episodic.remember(scope, await record(place, scope, sentences(40)))
    before = await episodic.nearest(scope, embedder._vector("note"), 40)
    [name] = await collections(place)
    async with open_chroma(place.chroma_url, timeout=TIMEOUT) as elsewhere:
        await elsewhere.drop(name)
    with pytest.raises(TierUnavailable, match="repair"):
        await episodic.nearest(scope, embedder._vector("note"), 40)
    assert (await episodic.repair()).put_back == 40
    assert same(await episodic.nearest(scope, embedder._vector("note"), 40), before)
    assert len(embedder.embedded) == 40


async def test_a_lost_index_is_an_error_also_when_others_have_written_since(
    place: Place, embedder: StubEmbedder, scope: Scope
) -> None:
    episodic = EpisodicMemory(place.journal, place.chroma, embedder, shards=1)
    other = Scope.of(scope.tenant, "other")
    await episodic.remember(scope, await record(place, scope, sentences(3)))
    [name] = await collections(place)
    await place.chroma.drop(name)
    await episodic.remember(other, await record(place, other, sentences(3)))
    assert len(await episodic.nearest(other, embedder._vector("note"), 3)) == 3
    with pytest.raises(TierUnavailable, match="repair"):
        await episodic.nearest(scope, embedder._vector("note"), 3)
    assert (await episodic.repair()).put_back == 3
    assert len(await episodic.nearest(scope, embedder._vector("note"), 3)) == 3


async def test_a_repair_puts_back_what_is_missing_and_takes_out_what_is_too_much(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    ids = (await episodic.remember(scope, await record(place, scope, sentences(40)))).episodes
    [name] = await collections(place)
    assert not (await episodic.repair()).model_dump(exclude_defaults=True)
    await place.chroma.delete(name, ids[:7])
    assert len(await episodic.nearest(scope, embedder._vector("note"), 40)) == 33
    assert (await episodic.repair()).put_back == 7
    assert len(await episodic.nearest(scope, embedder._vector("note"), 40)) == 40
    await episodic.archive(scope, ids[:3], True)
    vectors = await episodic.vectors(scope, ids[:3])
    await place.chroma.upsert(
        name, [Record(key, "somebody", each) for key, each in vectors.items()]
    )
    assert (await episodic.repair()).taken_out == 3
    assert not (await episodic.repair()).model_dump(exclude_defaults=True)


async def test_a_rebuild_makes_the_same_without_embedding(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    other = Scope.of(scope.tenant, "other")
    words = LexicalIndex(place.journal)
    for who, count in ((scope, 40), (other, 8)):
        await episodic.remember(who, await record(place, who, sentences(count)))

    vector = embedder._vector("note about the lamp")

    async def everything() -> list[Sequence[Hit]]:
        found = [await episodic.nearest(who, vector, 50) for who in (scope, other)]
        return [*found, *[await words.search(who, "lamp", 50) for who in (scope, other)]]

    before = await everything()
    assert all(before)
    seen: list[tuple[int, int]] = []
    await episodic.rebuild(lambda done, total: seen.append((done, total)))
    for now, then in zip(await everything(), before, strict=True):
        assert same(now, then)
    assert seen == [(1, 2), (2, 2)]
    assert len(embedder.embedded) == 48


async def test_where_vectors_live_is_decided_once(
    urls: tuple[str, str], place: Place, episodic: EpisodicMemory, scope: Scope
) -> None:
    embedder = StubEmbedder()
    await episodic.remember(scope, await record(place, scope, sentences(5)))
    async with opened(urls) as again:
        memory = EpisodicMemory(again.journal, again.chroma, embedder, shards=31)
        assert len(await memory.nearest(scope, embedder._vector("note"), 9)) == 5


@pytest.mark.parametrize("url", ["", "redis://127.0.0.1:1", "127.0.0.1:8000", "http://"])
async def test_another_url_is_no_chroma(url: str) -> None:
    with pytest.raises(ConfigurationError):
        async with open_chroma(url, timeout=TIMEOUT):
            pass


async def test_a_password_is_in_no_message() -> None:
    url = "http://ada:swordfish@127.0.0.1:9/"
    async with open_chroma(url, timeout=TIMEOUT) as chroma:
        with pytest.raises(TierUnavailable) as raised:
            await chroma.version()
        assert "swordfish" not in str(raised.value)
        assert "127.0.0.1:9" in chroma.where


async def test_what_was_embedded_while_the_embedder_failed_at_its_passages_is_embedded_again(
    place: Place, episodic: EpisodicMemory, embedder: StubEmbedder, scope: Scope
) -> None:
    embedder.wrong = dict.fromkeys(LETTER, FAILS)
    remembered = await episodic.remember(scope, await record(place, scope, [" ".join(LETTER)]))
    assert len(remembered.flawed) == 1
    embedder.wrong = {}
    await episodic.repair()
    stored = await stored_vectors(place, episodic, scope, remembered.episodes)
    assert stored[remembered.episodes[0]].shape == (1 + len(LETTER), 384)


@pytest.mark.parametrize(
    ("said", "asked"),
    [("Error executing plan: Internal error: Error finding id", 2), ("out of memory", 1)],
)
async def test_a_record_that_was_deleted_while_it_was_found_is_asked_for_again_and_no_other_error(
    said: str, asked: int
) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response({"id": "c1"})
        seen.append(request.path)
        if len(seen) == 1:
            return web.json_response({"error": "InternalError", "message": said}, status=500)
        return web.json_response({"ids": [["e1"]], "distances": [[0.25]]})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with (
        TestServer(app) as server,
        open_chroma(f"http://127.0.0.1:{server.port}", timeout=TIMEOUT) as chroma,
    ):
        vector = np.ones(3, dtype=np.float32)
        if asked == 1:
            with pytest.raises(TierUnavailable, match="out of memory"):
                await chroma.query("c", vector, 1, user=None)
        else:
            found = await chroma.query("c", vector, 1, user=None)
            assert [each.id for each in found or ()] == ["e1"]
        assert len(seen) == asked
