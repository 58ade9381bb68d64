"""Facts: one is true at a time, history remains, and whatever is given is only data."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import urlsplit

import pytest

from memory import Memory
from memory.errors import (
    EmbeddingFailed,
    InvalidFilter,
    InvalidInput,
    InvalidScope,
    NotFound,
    TierUnavailable,
)
from memory.models import Fact
from tests.behaviour.conftest import Clock, Open
from tests.proxy import proxy
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(seconds=30)


def triples(facts: list[Fact]) -> set[tuple[str, str, str]]:
    return {(fact.subject, fact.predicate, fact.object) for fact in facts}


# --- time --------------------------------------------------------------------------------------


async def test_thirty_ended_employers_do_not_crowd_out_the_current_one(
    memory: Memory, clock: Clock
) -> None:
    """TIME-02"""
    user = memory.user("u1")
    began = datetime(2010, 1, 1, tzinfo=UTC)
    for number in range(31):
        await user.assert_fact(
            "user", "works at", f"Firm{number:02}", valid_from=began + timedelta(days=180 * number)
        )
    for number, thing in enumerate(["tea", "chess", "rain", "maps", "bread"]):
        await user.assert_fact("user", "likes", thing, valid_from=began + timedelta(days=number))
    context = await user.session("s").build_context("where do I work?", budget=300)
    assert "Firm30" in context.text
    assert not any(f"Firm{number:02}" in context.text for number in range(30))
    middle = began + timedelta(days=180 * 15 + 7)
    employers = await user.facts(predicate="works at", as_of=middle)
    assert [fact.object for fact in employers] == ["Firm15"]
    history = await user.facts(predicate="works at", history=True)
    assert {fact.object for fact in history} == {f"Firm{number:02}" for number in range(31)}


async def test_one_fact_holds_at_the_instant_where_two_meet_however_it_is_written(
    memory: Memory,
) -> None:
    """TIME-03"""
    user = memory.user("u1")
    meeting = datetime(2024, 6, 1, tzinfo=UTC)
    await user.assert_fact("user", "lives in", "A", valid_from=datetime(2024, 1, 1, tzinfo=UTC))
    await user.assert_fact("user", "lives in", "B", valid_from=meeting)
    in_summer = timezone(timedelta(hours=2))
    for moment, holds in (
        (meeting - timedelta(microseconds=1), "A"),
        (meeting, "B"),
        (datetime(2024, 6, 1, 2, tzinfo=in_summer), "B"),
        (datetime(2024, 6, 1, 1, 59, 59, 999_999, tzinfo=in_summer), "A"),
    ):
        assert [fact.object for fact in await user.facts(as_of=moment)] == [holds]


# --- change of mind ----------------------------------------------------------------------------


async def test_a_change_of_mind_leaves_one_current_fact_and_the_old_one_in_history(
    memory: Memory, clock: Clock
) -> None:
    """UPD-01, as it is read without a language model."""
    session = memory.user("u1").session("s")
    for said, predicate in (
        ("I love jazz.", "likes"),
        ("I can no longer stand jazz.", "dislikes"),
        ("Actually, I like jazz again.", "likes"),
        ("I can't stand jazz anymore.", "dislikes"),
    ):
        await session.record(user=said)
        clock.forward(days=10)
        current = await memory.user("u1").facts(about="jazz")
        assert [(fact.predicate, fact.object) for fact in current] == [(predicate, "jazz")], said
    history = await memory.user("u1").facts(about="jazz", history=True)
    assert {fact.predicate for fact in history} == {"likes", "dislikes"}
    assert any(fact.predicate == "likes" and fact.valid_to is not None for fact in history)


async def test_a_new_home_ends_only_the_old_home_of_the_same_person(
    memory: Memory, clock: Clock
) -> None:
    """UPD-02"""
    user = memory.user("u1")
    await user.assert_fact("ann", "LIVES_IN", "Paris")
    await user.assert_fact("bob", "LIVES_IN", "Rome")
    await user.assert_fact("projectX", "USES", "Python")
    clock.forward(days=1)
    await user.assert_fact("ann", "LIVES_IN", "Oslo")
    await user.assert_fact("projectY", "USES", "Rust")
    clock.forward(days=1)
    assert triples(await user.facts()) == {
        ("ann", "LIVES_IN", "Oslo"),
        ("bob", "LIVES_IN", "Rome"),
        ("projectX", "USES", "Python"),
        ("projectY", "USES", "Rust"),
    }
    ended = [fact for fact in await user.facts(history=True) if fact.valid_to is not None]
    assert triples(ended) == {("ann", "LIVES_IN", "Paris")}


async def test_an_update_while_the_embedder_fails_is_there_at_once(
    open_memory: Open, clock: Clock
) -> None:
    """UPD-05: facts do not wait for vectors, and a text never has another text's vector."""
    embedder = StubEmbedder()
    async with open_memory(embedder=embedder) as memory:
        user = memory.user("u1")
        await user.session("s").record(user="I live in Lima.")
        assert [fact.object for fact in await user.facts(predicate="lives in")] == ["Lima"]
        clock.forward(days=3)
        moved = "I moved to Quito."
        embedder.wrong[moved] = EmbeddingFailed("out of order")
        await user.session("s").record(user=moved)
        assert [fact.object for fact in await user.facts(predicate="lives in")] == ["Quito"]
        (old, new) = await user.episodes()
        assert not (await user.vectors([new])).any()
        del embedder.wrong[moved]
        await memory.repair()
        vectors = await user.vectors([old, new])
        for vector, text in zip(vectors, (old.text, new.text), strict=True):
            assert vector @ embedder._vector(text) > 0.999
        assert [fact.object for fact in await user.facts(predicate="lives in")] == ["Quito"]


async def test_an_update_while_the_graph_is_away_is_never_lost_nor_half_done(
    open_memory: Open, clock: Clock, neo4j_url: str
) -> None:
    """UPD-05 and CFG-03, with Neo4j behind a proxy that refuses for a while."""
    server = urlsplit(neo4j_url)
    async with proxy(server.hostname or "", server.port or 0) as through:
        url = neo4j_url.replace(f"{server.hostname}:{server.port}", f"127.0.0.1:{through.port}")
        async with open_memory(neo4j_url=url, timeout=1) as memory:
            user = memory.user("ann")
            await user.assert_fact("ann", "LIVES_IN", "Lima")
            assert [fact.object for fact in await user.facts("ann")] == ["Lima"]
            clock.forward(days=1)
            through.refusing = True
            through.drop()
            await user.assert_fact("ann", "LIVES_IN", "Quito")
            with pytest.raises(TierUnavailable):
                await user.facts("ann")
            context = await user.session("s").build_context("Where does ann live?")
            assert "semantic" in context.unavailable
            through.refusing = False
            clock.forward(days=1)
            await user.assert_fact("bob", "LIVES_IN", "Rome")
            assert await memory.settled(PATIENCE)
            assert [fact.object for fact in await user.facts("ann")] == ["Quito"]
            assert len(await user.facts("ann", history=True)) == 3  # Lima as believed twice
            assert [
                f.object for f in await user.facts("ann", as_of=clock.now - timedelta(days=2))
            ] == ["Lima"]


# --- the same again, and names -----------------------------------------------------------------


async def test_the_same_fact_in_other_spellings_is_one_fact_with_every_source(
    memory: Memory,
) -> None:
    """DUP-02, of facts."""
    user = memory.user("u1")
    recorded = await user.session("s").record(
        messages=[{"role": "user", "content": f"note {number}"} for number in range(4)]
    )
    ids = [message.id for message in recorded.messages]
    for _ in range(2):
        for source, (subject, thing) in zip(
            ids, [("ann", "tea"), ("Ann", " tea"), ("ann", "tea"), ("ann", "jazz")], strict=True
        ):
            await user.assert_fact(subject, "LIKES", thing, sources=[source])
    facts = {fact.object.strip(): fact for fact in await user.facts("ann")}
    assert set(facts) == {"tea", "jazz"}
    assert len(await user.facts("ann")) == 2
    assert set(facts["tea"].sources) == set(ids[:3])
    assert set(facts["jazz"].sources) == {ids[3]}


async def test_a_short_name_is_one_entity_of_each_user_in_every_spelling(
    open_memory: Open,
) -> None:
    """ENT-01: names are compared as names; no vector has a say."""
    for predicate, subject, thing in (
        ("PART_OF", "QZTA", "Ministry"),
        ("HAS_HEAD", "QZTA", "ann"),
        ("LOCATED_IN", "qzta", "Rome"),
    ):
        async with open_memory() as memory:
            await memory.user("u1").assert_fact(subject, predicate, thing)
            await memory.user("u2").assert_fact("QZTA", "IS", "a band")
    async with open_memory() as memory:
        for spelling in ("QZTA", "qzta", "Qzta"):
            facts = await memory.user("u1").facts(spelling)
            assert {fact.object for fact in facts} == {"Ministry", "ann", "Rome"}
            assert {fact.object for fact in await memory.user("u2").facts(spelling)} == {"a band"}


# --- only data ---------------------------------------------------------------------------------

PREDICATES = [
    "works at",
    "a`b",
    "a``b",
    "x\u0060]-() DETACH DELETE n //",
    "喜欢",
    "ist-Mitglied",
    "o'neil",
    "Person` REMOVE e:Memory WITH e MATCH (n) DETACH DELETE n //",
    "A:Admin",
]


async def with_every_predicate(memory: Memory) -> None:
    user = memory.user("u1")
    for number, predicate in enumerate(PREDICATES):
        await user.assert_fact(f"s{number}", predicate, f"o{number}")
    for refused in ("WORKS\tAT", "", "r" * 300):
        with pytest.raises(InvalidInput):
            await user.assert_fact("s", refused, "o")
    assert triples(await user.facts()) == {
        (f"s{number}", predicate, f"o{number}") for number, predicate in enumerate(PREDICATES)
    }


@pytest.mark.parametrize("urls", ["local", "servers"], indirect=True)
async def test_every_predicate_reads_back_as_it_was_given_or_is_refused(memory: Memory) -> None:
    """GRA-01 and SEC-01"""
    await with_every_predicate(memory)


async def test_both_ends_of_a_fact_can_be_opened(memory: Memory) -> None:
    """GRA-03"""
    user = memory.user("u1")
    await user.assert_fact("Nobody_1", "knows", "Nobody_2")
    for end in ("Nobody_1", "Nobody_2"):
        assert triples(await user.facts(end)) == {("Nobody_1", "knows", "Nobody_2")}
    assert await user.facts("Nobody_3") == []


ATTRIBUTES = {
    "history": [{"year": 2020, "event": "x"}],
    "tags": ["a", "b"],
    "v": None,
    "mixed": [1, "a"],
    "large": 2**60 + 1,
    "when": "2026-03-01T12:00:00.123456789+02:00",
    "small": 1e-9,
}


@pytest.mark.parametrize("urls", ["local", "servers"], indirect=True)
async def test_nested_and_large_values_come_back_equal_from_the_graph_and_a_replay(
    memory: Memory,
) -> None:
    """GRA-02 and SNP-02"""
    user = memory.user("u1")
    await user.assert_fact("user", "likes", "乌龙茶", attributes=ATTRIBUTES)
    (fact,) = await user.facts()
    assert fact.attributes == ATTRIBUTES
    assert json.loads(fact.model_dump_json())["attributes"] == ATTRIBUTES
    context = await user.session("s").build_context("喜欢什么茶？")
    replayed = await user.replay(context.snapshot_id or "")
    assert replayed.context == context
    assert "乌龙茶".encode() in replayed.data


@pytest.mark.parametrize("value", [float("inf"), float("nan"), datetime(2026, 1, 1, tzinfo=UTC)])
async def test_what_json_cannot_hold_is_refused_by_the_name_of_its_field(
    memory: Memory, value: object
) -> None:
    """SNP-02 and SNP-03: at write time, and nothing is stored."""
    user = memory.user("u1")
    with pytest.raises(InvalidInput, match=r"attributes.*half_life"):
        await user.assert_fact("user", "likes", "tea", attributes={"half_life": value})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput, match=r"metadata.*half_life"):
        await user.session("s").record(
            messages=[{"role": "user", "content": "tea", "metadata": {"half_life": value}}]
        )
    assert await user.facts() == []
    assert await user.session("s").messages() == []
    await user.assert_fact("user", "likes", "tea", attributes={"half_life": 5.5})
    assert len(await user.facts()) == 1


async def test_errors_quote_text_in_its_own_script(memory: Memory) -> None:
    """UNI-02"""
    user = memory.user("u1")
    text = "乌龙茶 naïve 🐈"
    with pytest.raises(NotFound) as no_snapshot:
        await user.snapshot(text)
    with pytest.raises(InvalidScope) as no_scope:
        memory.user(f"{text}\x00")
    with pytest.raises(InvalidFilter) as no_filter:
        await user.recall("tea", where={text: {"$near": 1}})
    for caught in (no_snapshot, no_scope, no_filter):
        assert text in str(caught.value)
        assert "\\u" not in str(caught.value)
