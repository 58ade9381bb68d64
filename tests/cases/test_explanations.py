"""Why and why not: what is in a context and what just missed it, through the front door."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len

from memory import Memory
from memory.memory import UserMemory
from memory.models import Context, Dropped
from tests.behaviour.conftest import Clock

PATIENCE = timedelta(seconds=30)
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)


async def moved_twice(user: UserMemory) -> None:
    for number, city in enumerate(("Oslo", "Lisbon", "Lyon")):
        await user.assert_fact(
            "user", "lives in", city, valid_from=BEGAN + timedelta(days=300 * number)
        )


def missed(dropped: tuple[Dropped, ...], cause: str) -> dict[str, Dropped]:
    return {miss.text: miss for miss in dropped if miss.cause == cause}


def facts_of(context: Context) -> set[str]:
    return {item.text for item in context.items if item.tier == "semantic"}


@pytest.mark.parametrize("query", ["Where do I live?", "我现在住在哪里？"])
async def test_what_was_true_once_is_a_near_miss_that_names_what_holds_now(
    memory: Memory, query: str
) -> None:
    user = memory.user("u1")
    await moved_twice(user)
    (lyon,) = await user.facts(predicate="lives in")
    context = await user.session("s").build_context(query)
    recalled = await user.recall(query)
    for dropped in (context.dropped, recalled.dropped):
        old = missed(dropped, "superseded")
        assert old.keys() == {"user lives in Oslo", "user lives in Lisbon"}
        assert {miss.by for miss in old.values()} == {lyon.id}
        lisbon = old["user lives in Lisbon"]
        assert lisbon.reason == "superseded by 'user lives in Lyon' on 2025-08-23"
        assert lisbon.scores["cue"] > 0
    assert facts_of(context) == {"user lives in Lyon"}
    assert "Lisbon" not in context.text
    assert "Oslo" not in context.text


async def test_what_is_not_asked_for_is_no_near_miss(memory: Memory) -> None:
    user = memory.user("u1")
    await moved_twice(user)
    for query in ("Tell me a joke about rain.", "hello", "What is two and two?"):
        context = await user.session("s").build_context(query)
        assert not missed(context.dropped, "superseded")
    asked = await user.session("s").build_context("Is Oslo far from here?")
    assert missed(asked.dropped, "superseded").keys() == {"user lives in Oslo"}


async def test_a_named_third_person_is_told_of_with_what_holds_of_them_now(
    memory: Memory,
) -> None:
    user = memory.user("u1")
    await user.assert_fact("Mia", "works at", "Harlow", valid_from=BEGAN)
    await user.assert_fact("Mia", "works at", "Basalt", valid_from=BEGAN + timedelta(days=99))
    for query in ("Who works at Harlow?", "Is Mia still with Harlow?"):
        context = await user.session("s").build_context(query)
        (harlow,) = missed(context.dropped, "superseded").values()
        assert harlow.reason == "superseded by 'Mia works at Basalt' on 2024-04-09"


async def test_whom_a_question_is_about_without_a_name_is_told_of_too(memory: Memory) -> None:
    user = memory.user("u1")
    await user.assert_fact("user", "sister", "Mia", valid_from=BEGAN)
    await user.assert_fact("Mia", "lives in", "Oslo", valid_from=BEGAN)
    await user.assert_fact("Mia", "lives in", "Bergen", valid_from=BEGAN + timedelta(days=99))
    session = user.session("s")
    context = await session.build_context("Where does my sister live?")
    assert "Bergen" in context.text
    (oslo,) = missed(context.dropped, "superseded").values()
    assert oslo.reason == "superseded by 'Mia lives in Bergen' on 2024-04-09"
    other = await session.build_context("Where does my brother live?")
    assert not missed(other.dropped, "superseded")


async def test_what_ended_and_what_has_not_begun_is_out_of_its_time(
    memory: Memory, clock: Clock
) -> None:
    user = memory.user("u1")
    await user.assert_fact("user", "works at", "Harlow", valid_from=BEGAN)
    await user.assert_fact(
        "user", "works at", "Harlow", holds=False, valid_from=BEGAN + timedelta(days=31)
    )
    later = clock.now + timedelta(days=30)
    await user.assert_fact("user", "plans", "a trip to Rome", valid_from=later)
    ask = "Where do I work, and which trip do I plan?"
    context = await user.session("s").build_context(ask)
    reasons = {t: miss.reason for t, miss in missed(context.dropped, "out_of_time").items()}
    assert reasons == {
        "user works at Harlow": "true only from 2024-01-01 to 2024-02-01",
        "user's plan: a trip to Rome": f"not true before {later.date()}",
    }
    clock.forward(days=31)
    context = await user.session("s").build_context(ask)
    assert missed(context.dropped, "out_of_time").keys() == {"user works at Harlow"}
    assert facts_of(context) == {"user's plan: a trip to Rome"}


async def test_facts_beyond_those_that_are_offered_are_near_misses_with_their_rank(
    memory: Memory,
) -> None:
    user = memory.user("u1")
    for number in range(40):
        await user.assert_fact("user", "likes", f"thing {number:02}", valid_from=BEGAN)
    context = await user.session("s").build_context("What do I like?", budget=8_000)
    assert len(facts_of(context)) == 30
    beyond = [miss for miss in context.dropped if miss.cause == "beyond_k"]
    assert [miss.rank for miss in beyond] == [31, 32, 33, 34, 35]
    assert not facts_of(context) & {miss.text for miss in beyond}


async def test_everything_in_a_context_and_beside_it_has_its_reason_and_is_explained(
    memory: Memory,
) -> None:
    user = memory.user("u1")
    await moved_twice(user)
    for session in ("a", "b"):
        for text in (
            "The red kayak is in the boathouse. 🛶",
            f"The kayak's paddle was mended in {session}, " + "and it took long, " * 9,
            "红色的皮划艇在船库里。",
            "The tax return is due in May.",
        ):
            await user.session(session).record(user=text, assistant="Noted.")
    assert await memory.settled(PATIENCE)
    session = user.session("a")
    context = await session.build_context(
        "Where is the red kayak, and where do I live?", budget=280
    )
    found = [item for item in context.items if item.tier != "working"]
    assert {item.tier for item in found} == {"episodic", "semantic"}
    assert all(item.rank and item.reason and item.scores and item.tokens for item in found)
    assert all(miss.cause and miss.reason for miss in context.dropped)
    causes = {miss.cause for miss in context.dropped}
    assert {"over_budget", "superseded"} <= causes
    assert all(miss.missing > 0 for miss in context.dropped if miss.cause == "over_budget")
    explained = context.explain()
    assert all(cell_len(line) <= 100 for line in explained.splitlines())
    for item in found:
        assert item.text[:20] in explained
        assert item.reason in explained
    assert "over budget by" in explained
    assert "superseded by 'user lives in Lyon'" in explained
    again = await user.snapshot(context.snapshot_id or "")
    assert again.explain() == explained


@pytest.mark.parametrize(
    ("first", "second", "query"),
    [
        ("I live in Oslo.", "I live in Lyon now.", "Where do I live?"),
        ("我住在上海。", "我现在住在成都。", "我住在哪里？"),
    ],
)
async def test_what_was_said_and_is_no_longer_so_is_marked_in_the_context(
    memory: Memory, clock: Clock, first: str, second: str, query: str
) -> None:
    user = memory.user("u1")
    for number, text in enumerate((first, second)):
        await user.session(f"s{number}").record(user=text, assistant="I see.")
        assert await memory.settled(PATIENCE)
        clock.forward(days=9)
    context = await user.session("s").build_context(query)
    lines = [line for line in context.text.splitlines() if line.endswith((first, second))]
    old, new = lines
    (now,) = (fact for fact in await user.facts(predicate="lives in"))
    shown = memory.registry.render(now)
    marked = f"user [no longer so: since {now.valid_from.date()} {shown}]: {first}"
    assert old == f"{(clock() - timedelta(days=18)).date()} {marked}"
    assert new == f"{clock() - timedelta(days=9):%m-%d} user: {second}"
    (item,) = (item for item in context.items if item.text == first)
    assert "no longer so" in item.reason
    assert "no longer so" in context.explain()
