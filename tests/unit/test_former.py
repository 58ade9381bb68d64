"""Former facts: which of them a question asks about, and what stands in their place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.codec import content_id
from memory.former import Former, asked, near_misses, open_slots, remarks, replaced
from memory.models import Dropped, Fact
from memory.semantic import Registry
from memory.semantic.timeline import change

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
REGISTRY = Registry.default()


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def history(*said: tuple[Any, ...], registry: Registry = REGISTRY) -> list[Fact]:
    """What is believed after this was said: (subject, predicate, object, days ago[, more])."""
    facts: dict[str, Fact] = {}
    for number, (subject, predicate, thing, days, *more) in enumerate(said):
        assertion = registry.assertion(
            **{
                "id": content_id("test", str(number)),
                "subject": subject,
                "predicate": predicate,
                "object": thing,
                "valid_from": ago(days),
                "learnt_at": max(ago(days), ago(400 - number)),
                **(more[0] if more else {}),
            }
        )
        decided = change(facts.values(), assertion)
        for closed in decided.close:
            del facts[closed]
        facts |= {fact.id: fact for fact in (*decided.touch, *decided.add)}
    return list(facts.values())


def missed(query: str, facts: Iterable[Fact], *, registry: Registry = REGISTRY) -> list[Dropped]:
    """The near misses of a question, of all that is believed."""
    facts = list(facts)
    current = [fact for fact in facts if fact.holds_at(NOW)]
    return explained(asked(facts, query, now=NOW), current, registry)


def explained(
    former: Sequence[Former], current: Iterable[Fact], registry: Registry = REGISTRY
) -> list[Dropped]:
    found = replaced(former, current, now=NOW, registry=registry)
    return near_misses(found, now=NOW, render=registry.render)


def remarked(query: str, facts: Sequence[Fact]) -> dict[str, str]:
    """What is said beside the messages that facts come from."""
    current = [fact for fact in facts if fact.holds_at(NOW)]
    found = replaced(asked(facts, query, now=NOW), current, now=NOW, registry=REGISTRY)
    return remarks(found, now=NOW, render=REGISTRY.render)


def told(found: Sequence[Dropped]) -> list[tuple[str, str | None]]:
    return [(each.text, each.cause) for each in found]


MOVED = history(
    ("user", "lives_in", "Oslo", 300),
    ("user", "lives_in", "Lisbon", 200),
    ("user", "lives_in", "Lyon", 10),
    ("user", "works_at", "Harlow", 300),
)


@pytest.mark.parametrize(
    "query", ["Where do I live?", "我住在哪个城市？", "Which city is my home, Lisbon?"]
)
def test_a_superseded_fact_names_the_version_that_holds_now(query: str) -> None:
    (lyon,) = [fact for fact in MOVED if fact.object == "Lyon"]
    found = missed(query, MOVED)
    assert {each.text for each in found} == {"user lives in Lisbon", "user lives in Oslo"}
    assert {(each.cause, each.by) for each in found} == {("superseded", lyon.id)}
    reasons = {each.text: each.reason for each in found}
    assert reasons["user lives in Lisbon"] == "superseded by 'user lives in Lyon' on 2026-02-19"
    assert reasons["user lives in Oslo"] == (
        "ended on 2025-08-13; superseded by 'user lives in Lyon' on 2026-02-19"
    )


def test_what_was_not_asked_for_is_no_near_miss_and_what_holds_neither() -> None:
    assert missed("Tell me a joke", MOVED) == []
    assert missed("Where do I work?", MOVED) == []
    assert told(missed("Is Oslo far?", MOVED)) == [("user lives in Oslo", "superseded")]


def test_what_ended_and_what_has_not_begun_is_out_of_time() -> None:
    facts = history(
        ("user", "works_at", "Harlow", 300),
        ("user", "works_at", "Harlow", 100, {"holds": False}),
        ("user", "plans", "a trip to Rome", -30),
        ("user", "plans", "a trip to Bern", 90, {"valid_to": ago(80)}),
        ("user", "likes", "trips", 90, {"holds": False}),
    )
    (job,) = missed("Where do I work?", facts)
    assert (job.cause, job.by) == ("out_of_time", None)
    assert job.reason == "true only from 2025-05-05 to 2025-11-21"
    plans = {each.text: each.reason for each in missed("What trips do I plan and like?", facts)}
    assert plans == {
        "user's plan: a trip to Rome": "not true before 2026-03-31",
        "user's plan: a trip to Bern": "true only from 2025-12-01 to 2025-12-11",
        "user likes trips": "said to hold no longer on 2025-12-01",
    }


def test_the_opposite_of_the_same_object_takes_its_place() -> None:
    facts = history(
        ("user", "likes", "jazz", 300),
        ("user", "likes", "tea", 300),
        ("user", "dislikes", "jazz", 20),
        ("user", "likes", "rock", 20),
    )
    (jazz,) = missed("Do I like jazz?", facts)
    assert (jazz.text, jazz.cause) == ("user likes jazz", "superseded")
    assert jazz.reason == "superseded by 'user dislikes jazz' on 2026-02-09"


def test_a_fact_that_holds_again_is_no_near_miss() -> None:
    facts = history(
        ("user", "lives_in", "Lyon", 300),
        ("user", "lives_in", "Oslo", 200),
        ("user", "lives_in", "Lyon", 100),
    )
    assert sum(not fact.holds_at(NOW) for fact in facts) == 2
    assert told(missed("Where do I live?", facts)) == [("user lives in Oslo", "superseded")]


def test_only_the_newest_version_of_a_fact_is_told_and_only_a_few_facts() -> None:
    moves = [("user", "lives_in", f"City {n % 9}", 300 - 10 * n) for n in range(25)]
    found = missed("Where do I live?", history(*moves))
    assert len(found) == 5
    assert len({each.text for each in found}) == 5
    assert found[0].text == "user lives in City 5"  # 24 % 9 is 6, and holds


def test_what_stands_in_its_place_is_looked_for_where_it_is_not_known_already() -> None:
    facts = history(
        ("Mia", "works_at", "Harlow", 300),
        ("Mia", "works_at", "Basalt", 20),
        ("user", "plans", "a visit to Harlow", 300),
        ("user", "plans", "a visit to Harlow", 20, {"holds": False}),
    )
    former = asked(facts, "Who works at Harlow?", now=NOW)
    assert {each.fact.subject for each in former} == {"Mia", "user"}
    assert open_slots(former, [], frozenset(), REGISTRY) == [("Mia", "works_at")]
    assert open_slots(former, [], frozenset({"mia"}), REGISTRY) == []
    current = [fact for fact in facts if fact.object == "Basalt"]
    assert open_slots(former, current, frozenset(), REGISTRY) == []
    reasons = {each.cause: each.reason for each in explained(former, current)}
    assert reasons["superseded"] == "superseded by 'Mia works at Basalt' on 2026-02-09"
    alone = explained(former, [])
    assert {each.cause for each in alone} == {"out_of_time"}


def test_unknown_predicates_only_end() -> None:
    facts = history(
        ("user", "drives", "a van", 300),
        ("user", "drives", "a van", 20, {"holds": False}),
        ("user", "drives", "a bicycle", 10),
    )
    assert told(missed("What do I drive, a van?", facts)) == [("user drives a van", "out_of_time")]


def test_long_and_hostile_facts_are_told_by_their_beginning() -> None:
    facts = history(
        ("user", "lives_in", "\ud83e\u202e\x00 " + "x" * 9_000, 300),
        ("user", "lives_in", "y" * 9_000, 10),
    )
    (one,) = missed("Where do I live?", facts)
    assert len(one.text) <= 160
    assert len(one.reason) < 300


SAYINGS = st.lists(
    st.tuples(
        st.sampled_from(["user", "Mia"]),
        st.sampled_from(["lives_in", "likes", "dislikes", "plans"]),
        st.sampled_from(["Oslo", "Lyon", "jazz"]),
        st.integers(-20, 300),
        st.fixed_dictionaries({"holds": st.booleans()}),
    ),
    max_size=12,
)


@given(SAYINGS)
def test_whatever_was_said_near_misses_do_not_hold_and_what_supersedes_them_does(
    said: list[tuple[Any, ...]],
) -> None:
    facts = history(*said)
    of = {fact.id: fact for fact in facts}
    found = missed("Does Mia live in Oslo, or do I like jazz in Lyon? What is planned?", facts)
    for each in found:
        assert not of[each.id].holds_at(NOW)
        assert (each.cause == "superseded") == (each.by is not None)
        if each.by is not None:
            assert of[each.by].holds_at(NOW)
            assert of[each.by].subject == of[each.id].subject
    assert found == missed(
        "Does Mia live in Oslo, or do I like jazz in Lyon? What is planned?", facts[::-1]
    )


@pytest.mark.parametrize(
    ("query", "first", "second", "shown"),
    [
        ("Where do I live?", "Oslo", "Lyon", "user lives in Lyon"),
        ("我住在哪里？", "上海", "成都", "用户住在成都"),
    ],
)
def test_the_messages_that_said_what_no_longer_holds_are_remarked_on(
    query: str, first: str, second: str, shown: str
) -> None:
    facts = history(
        ("user", "lives_in", first, 300, {"sources": ["m1", "m2"]}),
        ("user", "lives_in", second, 20, {"sources": ["m2", "m3"]}),
    )
    # m2 says both: where it was until then, and where it is now
    assert remarked(query, facts) == {"m1": f"no longer so: since 2026-02-09 {shown}"}
    assert remarked("Tell me a joke.", facts) == {}


def test_what_only_ended_is_remarked_on_and_what_is_still_to_come_is_not() -> None:
    facts = history(
        ("user", "works_at", "Harlow " * 40, 300, {"sources": ["m1"]}),
        ("user", "works_at", "Harlow " * 40, 20, {"holds": False}),
        ("user", "plans", "a job at Basalt", -9, {"sources": ["m2"]}),
    )
    remark = remarked("Where do I work, what job do I plan?", facts)
    assert remark.keys() == {"m1"}
    assert remark["m1"].startswith("no longer so: user works at Harlow Harlow")
    assert remark["m1"].endswith("…, until 2026-02-09")
    assert len(remark["m1"]) < 130
