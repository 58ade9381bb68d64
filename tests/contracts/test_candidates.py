"""What is looked at for a question, over SQLite and PostgreSQL alike."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection

from memory import Memory, candidates, filters, lexical
from memory import episode_store as store
from memory.asking import Query
from memory.candidates import FEWEST, Asked, Found, Shown
from memory.journal import Journal
from memory.journal.schema import owner_of
from memory.lexical import READ
from memory.local import LocalStack
from memory.memory import UserMemory
from memory.models import Episode, Recall, Scope
from memory.recall import RecallPolicy, ranked
from memory.scoring import PARTS, Looked, Weights
from memory.settings import Settings
from memory.shelf import Shelf
from memory.when import When
from tests.ranking import NOW, POLICY, conversation, episode, ids
from tests.stub_embedder import FAILS, StubEmbedder

PATIENCE = timedelta(seconds=30)
DIMS = 8


# --- over a journal ----------------------------------------------------------------------------


def towards(cosine: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A vector of unit length with this cosine to ASKED."""
    vector = np.zeros(DIMS, dtype=np.float32)
    vector[0], vector[1] = cosine, np.sqrt(1 - cosine * cosine)
    return vector


def rows(cosines: float | Sequence[float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.stack([towards(each) for each in np.atleast_1d(cosines)])


ASKED = towards(1.0)


class Stored:
    """One user's episodes in a journal, and questions to them."""

    def __init__(self, journal: Journal, scope: Scope) -> None:
        self._journal = journal
        self._scope = scope
        self._owner = owner_of(scope)
        self._shelf = Shelf()
        self.space = 0

    async def add(
        self,
        episodes: Sequence[Episode],
        cosines: Mapping[str, float | Sequence[float]] | None = None,
    ) -> None:
        """Stores episodes; those that are given a cosine have a vector, or several: that of the
        whole and those of its passages."""
        given = cosines or {}
        new = [
            (
                store.New(each, rows(given[each.id]) if each.id in given else None, "not embedded"),
                lexical.counted(each.text),
            )
            for each in episodes
        ]

        def work(connection: Connection) -> None:
            user = store.made_owner(connection, self._owner)
            self.space = store.space_of(connection, "test", DIMS)
            store.add(connection, user.n, new, self.space)

        await self._journal.write(work)

    async def archive(self, *names: str, archived: bool = True) -> None:
        def work(connection: Connection) -> None:
            user = store.made_owner(connection, self._owner)
            store.set_archived(connection, user.n, names, archived=archived)

        await self._journal.write(work)

    async def _ask(self, query: str, work: Callable[..., Any], **wish: Any) -> Any:
        asked = Asked(
            **{
                "k": 8,
                "each": 50,
                "policy": POLICY,
                "calibrated": POLICY.meaning(query),
                "space": self.space,
                "vector": ASKED,
                **wish,
            }
        )
        said = await self._journal.query(
            lambda connection: lexical.said(connection, self._shelf, self._scope, Query.of(query))
        )
        assert said is not None
        return await self._journal.query(lambda connection: work(connection, said, asked))

    async def look(self, query: str, **wish: Any) -> Looked:
        looked: Looked = await self._ask(query, candidates.look_at, **wish)
        return looked

    async def find(self, query: str, **wish: Any) -> Found:
        found: Found = await self._ask(
            query, lambda c, said, asked: candidates.find(c, self._owner, said, asked), **wish
        )
        return found

    async def recalled(
        self, query: str, *, policy: RecallPolicy = POLICY, **wish: Any
    ) -> list[str]:
        """Names of what is recalled, best first."""
        found = await self.find(query, policy=policy, **wish)
        items, _ = ranked(
            found.scored, found.episodes, query=query, k=found.k, now=NOW, policy=policy
        )
        return ids(items)


@pytest.fixture
def stored(journal: Journal, scope: Scope) -> Stored:
    return Stored(journal, scope)


async def names_of(stored: Stored, looked: Looked, episodes: Sequence[Episode]) -> list[str]:
    """The candidates by name, in the order of places; the episodes are all that was ever added."""
    return [episodes[n - 1].id for n in looked.places.n[looked.at].tolist()]


async def test_what_stands_beside_a_candidate_is_one_too(stored: Stored) -> None:
    talk = [
        *conversation("where is the kayak", "at the lake", "good", "fine", "it rains"),
        episode("elsewhere", "at the lake house", session="z"),
    ]
    await stored.add(talk)
    looked = await stored.look("kayak")
    assert await names_of(stored, looked, talk) == ["e1", "e2"]
    near = await stored.look("unheard", nearest=["e3"])
    assert await names_of(stored, near, talk) == ["e2", "e3", "e4"]


async def test_vectors_are_those_of_the_journal_and_of_neighbours_too(stored: Stored) -> None:
    talk = conversation("one", "two", "three", "four")
    await stored.add(talk, {"e1": 0.1, "e2": 0.6, "e3": 0.3})
    for _ in range(2):  # read, and kept
        looked = await stored.look("unheard", nearest=["e2", "unknown id"])
        assert await names_of(stored, looked, talk) == ["e1", "e2", "e3"]
        assert looked.cosines.tolist() == pytest.approx([0.1, 0.6, 0.3], abs=1e-5)
    alone = await stored.look("four", nearest=[])
    assert alone.cosines.tolist() == pytest.approx([0.3, np.nan], abs=1e-5, nan_ok=True)
    assert alone.near.tolist()[1] == pytest.approx(0.3, abs=1e-5)


async def test_an_episode_is_as_close_as_its_closest_passage_and_its_neighbours_are_not(
    stored: Stored,
) -> None:
    talk = conversation("one", "two, which is long", "three", "four")
    await stored.add(talk[:2], {"e1": 0.1, "e2": [0.2, 0.1, 0.8]})
    await stored.add(talk[2:], {"e3": 0.3, "e4": [0.5, 0.4]})
    for _ in range(2):  # read, and kept
        looked = await stored.look("unheard", nearest=["e2", "e4"])
        assert await names_of(stored, looked, talk) == ["e1", "e2", "e3", "e4"]
        assert looked.cosines.tolist() == pytest.approx([0.1, 0.8, 0.3, 0.5], abs=1e-5)
        window = [mean_cosine(*each) for each in ((0.1, 0.2), (0.1, 0.2, 0.3), (0.2, 0.3, 0.5))]
        assert looked.near.tolist()[:3] == pytest.approx(window, abs=1e-5)
    whole = await stored.look("unheard", nearest=["e2", "e4"], by_passage=False)
    assert whole.cosines.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.5], abs=1e-5)


def mean_cosine(*cosines: float) -> float:
    """The cosine of the mean of such vectors to ASKED."""
    mean = np.sum([towards(each) for each in cosines], axis=0)
    return float(mean[0] / np.linalg.norm(mean))


async def test_episodes_of_which_only_the_whole_was_embedded_are_as_close_as_that(
    journal: Journal, scope: Scope, stored: Stored
) -> None:
    long = [[0.2, 0.1, 0.8], [0.5, 0.4]]
    await stored.add(conversation("one", "two"), dict(zip(("e1", "e2"), long, strict=True)))
    before = Stored(journal, Scope.of(scope.tenant, "somebody of old"))
    old = [each.model_copy(update={"id": f"old {each.id}"}) for each in conversation("one", "two")]
    await before.add(old, {"old e1": 0.2, "old e2": 0.5})
    now = await stored.look("unheard", nearest=["e1", "e2"])
    then = await before.look("unheard", nearest=["old e1", "old e2"])
    assert now.cosines.tolist() == pytest.approx([0.8, 0.5])
    assert then.cosines.tolist() == pytest.approx([0.2, 0.5])
    assert then.near.tolist() == now.near.tolist()
    assert (await stored.recalled("unheard", nearest=["e1", "e2"]))[0] == "e1"
    assert (await before.recalled("unheard", nearest=["old e1", "old e2"]))[0] == "old e2"


async def test_without_a_vector_of_the_question_words_still_answer(stored: Stored) -> None:
    talk = conversation("the kayak is at the lake", "good")
    await stored.add(talk, {"e1": 0.9})
    looked = await stored.look("kayak lake", vector=None)
    assert np.isnan(looked.cosines).all()
    assert (await stored.recalled("kayak lake", vector=None))[0] == "e1"


async def test_vectors_of_another_space_do_not_count(stored: Stored) -> None:
    await stored.add(conversation("one"), {"e1": 0.9})
    here = await stored.look("unheard", nearest=["e1"])
    assert here.cosines.tolist() == pytest.approx([0.9])
    elsewhere = await stored.look("unheard", nearest=["e1"], space=stored.space + 1)
    assert np.isnan(elsewhere.cosines).all()


async def test_where_a_fact_was_learnt_is_a_candidate_by_how_much_the_fact_bears_on_it(
    stored: Stored,
) -> None:
    talk = [
        episode("a", "she is called Mia", message_id="m1"),
        episode("b", "of Harlow", message_id="m2"),
        episode("c", "and so on", message_id="m2", session="session of b", part=1),
        episode("d", "elsewhere", message_id="m3"),
    ]
    await stored.add(talk)
    looked = await stored.look("unheard", sources={"m1": 1.0, "m2": 0.4, "m9": 1.0})
    assert await names_of(stored, looked, talk) == ["a", "b", "c"]
    assert looked.facts.tolist() == [1.0, 0.4, 0.4]


async def test_what_is_of_a_time_that_is_named_is_a_candidate(stored: Stored) -> None:
    talk = [
        episode("then", "at the lake", event_time=NOW - timedelta(days=1)),
        episode("before", "in the garden", event_time=NOW - timedelta(days=40)),
    ]
    await stored.add(talk)
    looked = await stored.look("What happened yesterday?", when=When.of("yesterday", NOW))
    assert await names_of(stored, looked, talk) == ["then"]
    assert looked.time.tolist() == [1.0]


async def test_of_a_crowded_time_the_best_by_words_are_candidates(stored: Stored) -> None:
    yesterday = NOW - timedelta(days=1)
    talk = [
        episode(f"e{n}", "the kayak" if n == 150 else f"note {n}", event_time=yesterday)
        for n in range(1, 200)
    ]
    await stored.add(talk)
    when = When.of("yesterday", NOW)
    looked = await stored.look("kayak", when=when, each=1)
    assert await names_of(stored, looked, talk) == ["e150"]


async def test_archived_episodes_are_no_candidates_until_they_are_back(stored: Stored) -> None:
    talk = conversation("the kayak", "at the lake", "good")
    await stored.add(talk, {"e1": 0.6, "e2": 0.5, "e3": 0.5})
    every = await stored.recalled("kayak", nearest=ids(talk))
    assert set(every) == {"e1", "e2", "e3"}
    await stored.archive("e2")
    looked = await stored.look("kayak", nearest=["e2"])
    assert await names_of(stored, looked, talk) == ["e1", "e3"]  # now beside each other
    assert "e2" not in await stored.recalled("kayak", nearest=ids(talk))
    await stored.archive("e2", archived=False)
    assert await stored.recalled("kayak", nearest=ids(talk)) == every


async def test_of_an_episode_that_was_read_before_what_has_changed_is_seen(
    stored: Stored, journal: Journal, scope: Scope
) -> None:
    talk = conversation("the kayak is red", "a kayak trip", "tax")
    talk[0] = talk[0].model_copy(update={"metadata": {"of": ["lake", 1]}, "speaker": "Ada"})
    await stored.add(talk)

    async def read() -> dict[str, Episode]:
        return {each.id: each for each in (await stored.find("kayak")).episodes.values()}

    first = await read()
    assert first["e1"] == talk[0]
    assert (await read())["e1"] is first["e1"]

    def use(connection: Connection) -> None:
        user = store.made_owner(connection, owner_of(scope))
        store.touch(connection, user.n, ["e1"], NOW)
        store.set_pinned(connection, user.n, ["e2"], pinned=True)

    await journal.write(use)
    for _ in range(2):
        now = await read()
        assert now["e1"] == first["e1"].model_copy(update={"last_access": NOW})
        assert now["e2"] == first["e2"].model_copy(update={"pinned": True})
    await stored.archive("e1")
    assert "e1" not in await read()
    await stored.archive("e1", archived=False)
    assert (await read())["e1"] == now["e1"]


async def test_what_is_stored_between_reading_and_looking_changes_no_answer(
    journal: Journal, scope: Scope
) -> None:
    stored = Stored(journal, scope)
    talk = [*conversation("where is the kayak", "at the lake"), episode("z", "fig", session="z")]
    await stored.add(talk)
    shelf = stored._shelf
    query = Query.of("kayak fig")
    said = await journal.query(lambda c: lexical.said(c, shelf, scope, query))
    assert said is not None
    await stored.add(conversation("and the paddle of the kayak", first=3))
    await journal.query(lambda c: lexical.said(c, shelf, scope, query))
    asked = Asked(k=8, each=50, policy=POLICY, calibrated=POLICY.latin)
    looked = await journal.query(lambda c: candidates.look_at(c, said, asked))
    assert looked.places.n[looked.at].tolist() == [1, 2, 3]
    assert (looked.said.own > 0).tolist() == [True, False, True]


async def test_nobody_elses_episodes_are_candidates(journal: Journal, scope: Scope) -> None:
    mine, other = Stored(journal, scope), Stored(journal, Scope.of(scope.tenant, "somebody else"))
    await other.add([episode("theirs", "the kayak", message_id="m1")], {"theirs": 1.0})
    await mine.add([episode("mine", "the lake", message_id="m2")], {"mine": 0.5})
    looked = await mine.look("kayak", nearest=["theirs"], sources={"m1": 1.0})
    assert looked.at.tolist() == []
    assert await mine.recalled("kayak", nearest=["theirs", "mine"]) == ["mine"]


async def test_a_filter_leaves_k_of_those_that_it_accepts(stored: Stored) -> None:
    talk = [
        episode(f"e{n:02}", f"the kayak number {n}", metadata={"kind": "odd" if n % 2 else "even"})
        for n in range(40)
    ]
    await stored.add(talk)
    accepts = filters.compile({"kind": "odd"})
    found = await stored.recalled("kayak", accepts=accepts, k=15)
    assert len(found) == 15
    assert all(int(name[1:]) % 2 for name in found)
    nobody = await stored.find("kayak", accepts=filters.compile({"kind": "none"}), k=15)
    assert (len(nobody.scored.at), nobody.episodes) == (0, {})
    assert nobody.all_seen


async def test_of_many_candidates_the_best_are_read_and_the_next_that_are_too_low(
    stored: Stored,
) -> None:
    talk = [episode(f"e{n:03}", f"text {n}", session=f"s{n:03}") for n in range(100)]
    cosines = {each.id: 0.6 if n < 60 else 0.0 for n, each in enumerate(talk)}
    await stored.add(talk, cosines)
    found = await stored.find("soil", nearest=ids(talk), k=5)
    assert len(found.scored.at) == 100
    assert sorted(found.episodes) == [*range(FEWEST), *range(60, 60 + POLICY.near_misses)]
    items, dropped = ranked(
        found.scored, found.episodes, query="soil", k=found.k, now=NOW, policy=POLICY
    )
    assert len(items) == 5
    assert {each.cause: each.rank for each in dropped}["below_floor"] >= 61
    assert any("60 were found; the best 5" in each.reason for each in dropped)


async def test_what_a_context_shows_anyway_comes_beside_the_k(stored: Stored) -> None:
    window = [
        episode(f"w{n}", f"the kayak of the window {n}", session="now", seq=n) for n in range(1, 11)
    ]
    past = [episode(f"p{n:02}", f"the kayak of the past {n}") for n in range(30)]
    talk = [*window, *past]
    await stored.add(talk, {each.id: 0.6 for each in window} | {each.id: 0.5 for each in past})
    wish: dict[str, Any] = {"nearest": ids(talk), "k": 5}
    assert len(await stored.recalled("kayak", **wish)) == 5
    found = await stored.recalled("kayak", **wish, shown=Shown("now", 1))
    assert set(found[:10]) == set(ids(window))
    assert [name[0] for name in found[10:]] == ["p"] * 5
    from_six = await stored.recalled("kayak", **wish, shown=Shown("now", 6))
    assert sum(name not in ids(window[5:]) for name in from_six) == 5
    assert len(from_six) > 5
    for shown in (Shown("never", 1), Shown("now", 11)):
        assert len(await stored.recalled("kayak", **wish, shown=shown)) == 5


# --- through an open memory --------------------------------------------------------------------

Open = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def open_memory(url: str, local: LocalStack, scope: Scope) -> Open:
    """Opens the test's memory; keywords override settings."""

    def open_it(
        embedder: StubEmbedder | None = None,
        recall_policy: RecallPolicy | None = None,
        **changes: Any,
    ) -> Any:
        urls = {"journal_url": url, "redis_url": local.redis_url, "chroma_url": local.chroma_url}
        settings = Settings.model_validate({**urls, "tenant": scope.tenant, **changes})
        return Memory.open(
            settings=settings,
            embedder=embedder or StubEmbedder(),
            recall=recall_policy,
            clock=lambda: NOW,
        )

    return open_it


async def say(user: UserMemory, *texts: str, session: str = "notes", **metadata: Any) -> None:
    await user.session(session).record(
        messages=[{"role": "user", "content": text, "metadata": metadata} for text in texts]
        if metadata
        else [{"role": "user", "content": text} for text in texts]
    )


def texts(recalled: Recall) -> list[str]:
    return [item.text for item in recalled.items if item.tier == "episodic"]


def nobody_there() -> str:
    """A server's address at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


FILLER = [f"note {n} about nothing of interest {n}" for n in range(150)]


CHATTER = [
    f"Then we talked for {n} hours about {thing} and what it costs to keep one of these at home."
    for n, thing in enumerate(("gardens", "pianos", "beans", "ladders", "bees", "lamps", "goats"))
]


async def test_an_answer_in_one_sentence_of_a_long_message_is_near_the_question(
    open_memory: Open,
) -> None:
    """By meaning alone: a word of these is a fourth of the short ones, and little of the long."""
    answer = "The kayak sleeps behind the mill, under a blue sail that Tom left there in spring."
    long = " ".join([*CHATTER[:4], answer, *CHATTER[4:]])
    others = [f"A kayak of {wood}" for wood in ("oak", "ash", "pine", "fir", "elm")]
    only_meaning = Weights(**{name: float(name == "meaning") for name in PARTS})
    policy = POLICY.model_copy(update={"weights": only_meaning, "floor": 0.0})
    async with open_memory(recall_policy=policy) as memory:
        user = memory.user("ada")
        for at, text in enumerate([*others, long]):
            await say(user, text, session=f"day {at}")
        await memory.settled(PATIENCE)
        assert texts(await user.recall("kayak sleeps behind mill", k=3))[0] == long
        assert long not in texts(await user.recall("kayak of oak", k=3))


async def test_a_neighbour_that_no_arm_found_is_recalled(open_memory: Open) -> None:
    embedder, answer = StubEmbedder(), "In Harlow, behind the mill."
    embedder.wrong[answer] = FAILS  # it has no vector, and says no word of the question
    async with open_memory(embedder) as memory:
        user = memory.user("ada")
        await say(user, "Where is the red kayak?", answer, session="asked")
        await say(user, *FILLER, session="filler")
        await memory.settled(PATIENCE)
        assert texts(await user.recall("red kayak", k=4))[:2] == [
            "Where is the red kayak?",
            answer,
        ]
        assert answer not in texts(await user.recall("nothing of interest", k=4))


async def test_filters_leave_k_however_far_down_they_are(open_memory: Open) -> None:
    async with open_memory() as memory:
        user = memory.user("ada")
        await say(user, *(f"the red kayak, told {n} times" for n in range(120)), session="much")
        wanted = [f"the red kayak and {name}" for name in ("Ada", "Bob", "Chen", "Dora")]
        await say(user, *wanted, session="little")
        assert await memory.settled(PATIENCE)
        found = await user.recall("red kayak told times", k=4, session="little")
        assert sorted(texts(found)) == wanted
        assert found.unavailable == ()


async def test_looking_on_for_what_a_filter_accepts_comes_to_an_end(open_memory: Open) -> None:
    """Neither arm ever finds an episode that has no vector and says no word of the question."""
    embedder = StubEmbedder()
    embedder.wrong["unembedded"] = FAILS
    async with open_memory(embedder) as memory:
        user = memory.user("ada")
        for number, text in enumerate(["the red kayak", *FILLER[:70], *["unembedded"] * 3]):
            await say(user, text, session=f"s{number}")
        await memory.settled(PATIENCE)
        found = await user.recall("red kayak", k=3, session="s0")
        assert texts(found) == ["the red kayak"]
    async with open_memory(embedder, chroma_url=nobody_there(), timeout=2) as memory:
        found = await memory.user("ada").recall("red kayak", k=3, session="s0")
        assert texts(found) == ["the red kayak"]
        assert found.unavailable == ("episodic",)


async def test_an_episode_without_a_vector_is_found_by_its_words(open_memory: Open) -> None:
    embedder = StubEmbedder()
    text = "The red kayak is in the boathouse."
    embedder.wrong[text] = FAILS
    async with open_memory(embedder) as memory:
        user = memory.user("ada")
        await say(user, "It rains.", text, "Good.")
        await memory.settled(PATIENCE)
        assert text in texts(await user.recall("red kayak"))


async def test_without_the_index_of_vectors_words_answer_and_the_tier_is_named(
    open_memory: Open,
) -> None:
    async with open_memory() as memory:
        await say(memory.user("ada"), "The red kayak is in the boathouse.", "It rains.")
        assert await memory.settled(PATIENCE)
    async with open_memory(chroma_url=nobody_there(), timeout=2) as memory:
        found = await memory.user("ada").recall("red kayak boathouse")
        assert texts(found)[0] == "The red kayak is in the boathouse."
        assert found.unavailable == ("episodic",)


async def test_what_a_fact_was_learnt_from_has_a_part_of_its_score_for_it(
    open_memory: Open,
) -> None:
    async with open_memory() as memory:
        user = memory.user("ada")
        await say(user, "I work at Northwind.", session="long ago")
        await say(user, "The work on the kayak is done.", session="later")
        assert await memory.settled(PATIENCE)
        assert [fact.object for fact in await user.facts()] == ["Northwind"]
        found = await user.recall("Where do I work?")
        parts = {item.text: item.scores for item in found.items if item.tier == "episodic"}
        assert parts["I work at Northwind."]["facts"] == 1.0
        assert parts["The work on the kayak is done."]["facts"] == 0.0


async def test_a_context_shows_k_beside_what_the_conversation_says_itself(
    open_memory: Open,
) -> None:
    async with open_memory() as memory:
        user = memory.user("ada")
        past = [f"The red kayak of year {n}." for n in range(1990, 2010)]
        for number, text in enumerate(past):
            await say(user, text, session=f"past {number}")
        await say(user, *(f"The red kayak, now {n}." for n in range(12)), session="now")
        assert await memory.settled(PATIENCE)
        context = await user.session("now").build_context("Where is the red kayak?", k=6)
        shown = [item.text for item in context.items if item.tier == "episodic"]
        assert len(shown) == 6
        assert set(shown) <= set(past)


async def test_a_vector_that_was_made_again_takes_the_place_of_the_former(stored: Stored) -> None:
    """put_vectors replaces a vector in the same space (embedded again by newer rules)."""
    talk = conversation("one")
    await stored.add(talk, {"e1": 0.9})
    assert (await stored.look("unheard", nearest=["e1"])).cosines.tolist() == pytest.approx([0.9])

    def again(connection: Connection) -> None:
        user = store.made_owner(connection, stored._owner)
        store.put_vectors(connection, user.n, stored.space, {1: rows(0.1)})

    await stored._journal.write(again)
    assert (await stored.look("unheard", nearest=["e1"])).cosines.tolist() == pytest.approx([0.1])


async def test_the_rarest_term_of_all_counts_for_old_candidates_too(stored: Stored) -> None:
    """A question of one term that more than READ episodes say: only the newest READ get its BM25,
    also among candidates that the vectors found."""
    talk = [episode(f"e{n}", "kayak") for n in range(READ + 500)]
    await stored.add(talk)
    looked = await stored.look("kayak", nearest=["e3"])
    own = dict(
        zip(
            (talk[n - 1].id for n in looked.places.n[looked.at]),
            looked.said.own.tolist(),
            strict=True,
        )
    )
    assert own["e3"] == pytest.approx(max(own.values()))


async def test_what_a_caller_does_to_what_was_recalled_stays_with_the_caller(
    open_memory: Open,
) -> None:
    async with open_memory() as memory:
        user = memory.user("ada")
        told = {"role": "user", "content": "The kayak is red.", "metadata": {"of": ["lake"]}}
        await user.session("s").record(messages=[told])
        assert await memory.settled(PATIENCE)
        for _ in range(2):
            (item, *_) = (await user.recall("red kayak")).items
            assert item.metadata == {"of": ["lake"]}
            item.metadata["of"].append("mine")  # type: ignore[union-attr]
            item.metadata["hidden"] = True  # type: ignore[index]
