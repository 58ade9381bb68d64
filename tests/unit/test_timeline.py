"""What an assertion changes: by example, then for any order of any assertions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.models import Assertion, Fact
from memory.semantic import Predicate, Registry
from memory.semantic.timeline import MARKS_LIMIT, change, fact_id

REGISTRY = Registry.default()
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    return EPOCH + timedelta(days=number)


def says(
    subject: str,
    predicate: str,
    object: str,
    start: float,
    *,
    until: float | None = None,
    said: float | None = None,
    learnt: float | None = None,
    holds: bool = True,
    origin: str = "stated",
    id: str | None = None,
    **more: object,
) -> Assertion:
    return REGISTRY.assertion(
        id=id or f"{subject} {predicate} {object} {start} {until} {holds} {learnt}",
        subject=subject,
        predicate=predicate,
        object=object,
        holds=holds,
        valid_from=day(start),
        valid_to=None if until is None else day(until),
        said_at=None if said is None else day(said),
        learnt_at=day(start if learnt is None else learnt),
        origin=origin,
        **more,
    )


def learn(assertions: Iterable[Assertion]) -> list[Fact]:
    """Every version that there is after the assertions, one after the other."""
    versions: dict[str, Fact] = {}
    for assertion in assertions:
        decided = change(versions.values(), assertion)
        for closed in decided.close:
            assert versions[closed].unlearnt_at is None
            versions[closed] = versions[closed].model_copy(update={"unlearnt_at": decided.at})
        for fact in decided.touch:
            old = versions[fact.id]
            same = {"sources", "attested", "denied", "origin", "confidence"}
            assert old.model_dump(exclude=same) == fact.model_dump(exclude=same)
            assert set(old.sources) <= set(fact.sources)
            versions[fact.id] = fact
        for fact in decided.add:
            assert fact.id not in versions
            versions[fact.id] = fact
    return list(versions.values())


def believed(versions: Iterable[Fact]) -> list[Fact]:
    return [version for version in versions if version.unlearnt_at is None]


def spans(versions: Iterable[Fact]) -> list[tuple[str, float, float | None]]:
    """(object, from, to) in days of what is believed, oldest first."""
    return sorted(
        (
            fact.object,
            _days(fact.valid_from),
            None if fact.valid_to is None else _days(fact.valid_to),
        )
        for fact in believed(versions)
    )


def _days(moment: datetime) -> float:
    return (moment - EPOCH) / timedelta(days=1)


def at(versions: Iterable[Fact], moment: float) -> list[str]:
    return sorted(fact.object for fact in believed(versions) if fact.holds_at(day(moment)))


# --- by example ----------------------------------------------------------------------------------


def test_a_newer_object_ends_the_older_one_but_history_remains() -> None:
    versions = learn([says("ann", "lives_in", "Lyon", 1), says("ann", "lives_in", "Oslo", 5)])
    assert spans(versions) == [("Lyon", 1, 5), ("Oslo", 5, None)]
    first = next(version for version in versions if version.unlearnt_at is not None)
    assert (first.object, first.valid_to, first.unlearnt_at) == ("Lyon", None, day(5))


def test_an_end_and_the_next_beginning_share_no_instant_and_leave_none_out() -> None:
    versions = learn([says("ann", "lives_in", "Lyon", 1), says("ann", "lives_in", "Oslo", 5)])
    just_before = 5 - timedelta(microseconds=1) / timedelta(days=1)
    assert at(versions, just_before) == ["Lyon"]
    assert at(versions, 5) == ["Oslo"]


def test_objects_of_a_multi_valued_predicate_stand_side_by_side() -> None:
    versions = learn([says("ann", "likes", "tea", 1), says("ann", "likes", "jazz", 2)])
    assert at(versions, 3) == ["jazz", "tea"]


def test_an_unknown_predicate_ends_nothing() -> None:
    versions = learn([says("ann", "USES", "Rust", 1), says("ann", "USES", "Python", 2)])
    assert at(versions, 3) == ["Python", "Rust"]


def test_what_happens_to_one_subject_leaves_others_alone() -> None:
    everybody = learn(
        [
            says("ann", "lives_in", "Paris", 1),
            says("bob", "lives_in", "Rome", 1),
            says("projectX", "uses", "Python", 1),
            says("ann", "lives_in", "Oslo", 2),
            says("projectY", "uses", "Rust", 2),
        ]
    )
    assert at(everybody, 3) == ["Oslo", "Python", "Rome", "Rust"]
    assert at(everybody, 1) == ["Paris", "Python", "Rome"]


def test_something_older_that_is_learnt_later_slots_into_the_past() -> None:
    versions = learn(
        [says("ann", "lives_in", "Oslo", 5), says("ann", "lives_in", "Lyon", 1, learnt=9)]
    )
    assert spans(versions) == [("Lyon", 1, 5), ("Oslo", 5, None)]


def test_saying_it_again_adds_a_source_and_keeps_the_earliest_start() -> None:
    once = says("ann", "likes", "tea", 5, sources=["m1"])
    again = says("Ann", "LIKES", " tea ", 7, sources=["m2"])
    before = says("ann", "likes", "Tea", 3, learnt=8, sources=["m0"])
    (fact,) = believed(learn([once, again]))
    assert (fact.valid_from, fact.object, fact.sources) == (day(5), "tea", ("m1", "m2"))
    (earlier,) = believed(learn([once, again, before]))
    assert (earlier.valid_from, set(earlier.sources)) == (day(3), {"m0", "m1", "m2"})


def test_saying_it_again_makes_no_new_version() -> None:
    versions = learn(says("ann", "likes", "tea", number) for number in range(1, 9))
    assert len(versions) == 1
    assert len(learn([says("ann", "likes", "tea", 1), says("ann", "likes", "jazz", 1)])) == 2


def test_an_ending_ends_it_and_leaves_nothing_in_its_place() -> None:
    versions = learn(
        [says("ann", "works_at", "Initech", 1), says("ann", "works_at", "Initech", 4, holds=False)]
    )
    assert spans(versions) == [("Initech", 1, 4)]
    assert at(versions, 3) == ["Initech"]
    assert at(versions, 4) == []


def test_an_ending_keeps_the_message_that_told_of_it_as_a_source() -> None:
    (fact,) = believed(
        learn(
            [
                says("ann", "works_at", "Initech", 1, sources=["m1"]),
                says("ann", "works_at", "Initech", 4, holds=False, sources=["m2"]),
            ]
        )
    )
    assert fact.sources == ("m1", "m2")


def test_an_ending_of_another_object_ends_nothing() -> None:
    versions = learn(
        [says("ann", "works_at", "Initech", 1), says("ann", "works_at", "Globex", 4, holds=False)]
    )
    assert at(versions, 5) == ["Initech"]


def test_an_ending_without_a_known_beginning_is_kept_and_holds_never() -> None:
    versions = learn([says("ann", "works_at", "Initech", 4, holds=False, sources=["m1"])])
    (fact,) = versions
    assert (fact.valid_from, fact.valid_to, fact.sources) == (day(4), day(4), ("m1",))
    assert not fact.holds_at(day(4))


def test_a_beginning_that_is_learnt_after_its_ending_ends_there() -> None:
    ending = says("ann", "works_at", "Initech", 4, holds=False, sources=["m2"])
    versions = learn([ending, says("ann", "works_at", "Initech", 1, learnt=9, sources=["m1"])])
    assert spans(versions) == [("Initech", 1, 4)]
    assert set(believed(versions)[0].sources) == {"m1", "m2"}


def test_what_ended_can_begin_again() -> None:
    versions = learn(
        [
            says("ann", "works_at", "Initech", 1),
            says("ann", "works_at", "Initech", 4, holds=False),
            says("ann", "works_at", "Initech", 6, sources=["m3"]),
        ]
    )
    assert spans(versions) == [("Initech", 1, 4), ("Initech", 6, None)]
    assert believed(versions)[-1].sources == ("m3",)


def test_opposites_end_each_other_about_the_same_object() -> None:
    versions = learn(
        [
            says("ann", "likes", "jazz", 1),
            says("ann", "likes", "tea", 1),
            says("ann", "dislikes", "Jazz", 5),
        ]
    )
    now = [(fact.predicate, fact.object) for fact in believed(versions) if fact.holds_at(day(6))]
    assert sorted(now) == [("dislikes", "Jazz"), ("likes", "tea")]
    then = [(fact.predicate, fact.object) for fact in believed(versions) if fact.holds_at(day(2))]
    assert sorted(then) == [("likes", "jazz"), ("likes", "tea")]


def test_a_closed_span_interrupts_and_what_held_goes_on_after_it() -> None:
    versions = learn(
        [says("ann", "lives_in", "Lyon", 1), says("ann", "lives_in", "Rome", 4, until=6, learnt=9)]
    )
    assert spans(versions) == [("Lyon", 1, 4), ("Lyon", 6, None), ("Rome", 4, 6)]


def test_a_closed_span_of_the_same_object_inside_changes_nothing() -> None:
    versions = learn(
        [says("ann", "lives_in", "Lyon", 1), says("ann", "lives_in", "Lyon", 4, until=6)]
    )
    assert spans(versions) == [("Lyon", 1, None)]


def test_closed_spans_that_overlap_become_one() -> None:
    versions = learn(
        [says("ann", "likes", "tea", 1, until=4), says("ann", "likes", "tea", 3, until=8, learnt=9)]
    )
    assert spans(versions) == [("tea", 1, 8)]


def test_a_closed_span_over_everything_replaces_it() -> None:
    versions = learn(
        [
            says("ann", "lives_in", "Rome", 3, until=4),
            says("ann", "lives_in", "Lyon", 1, until=9, learnt=9),
        ]
    )
    assert spans(versions) == [("Lyon", 1, 9)]


def test_a_closed_ending_leaves_a_gap() -> None:
    versions = learn(
        [says("ann", "likes", "tea", 1), says("ann", "likes", "tea", 3, until=5, holds=False)]
    )
    assert spans(versions) == [("tea", 1, 3), ("tea", 5, None)]


def test_of_two_about_the_same_moment_the_later_learnt_wins() -> None:
    versions = learn(
        [says("ann", "lives_in", "Lyon", 1), says("ann", "lives_in", "Oslo", 1, learnt=2)]
    )
    assert spans(versions) == [("Oslo", 1, None)]
    assert len(versions) == 2


def test_a_callers_word_ends_what_was_said_to_hold_later() -> None:
    told = [says("ann", "lives_in", "Lyon", number, origin="extracted") for number in (1, 3, 5)]
    ended = says("ann", "lives_in", "Lyon", 2, holds=False, learnt=9)
    assert spans(learn([*told, ended])) == [("Lyon", 1, 2)]


def test_a_message_ends_it_only_until_it_was_said_again() -> None:
    told = [says("ann", "lives_in", "Lyon", number, origin="extracted") for number in (1, 3, 5)]
    ended = says("ann", "lives_in", "Lyon", 2, holds=False, learnt=9, origin="extracted")
    assert spans(learn([*told, ended])) == [("Lyon", 1, 2), ("Lyon", 3, None)]


def test_a_move_in_the_past_is_current_although_the_old_place_was_named_since() -> None:
    versions = learn(
        [
            says("user", "lives_in", "Lyon", 40, origin="extracted"),
            says(
                "user",
                "lives_in",
                "Oslo",
                31,
                said=45,
                learnt=45,
                origin="extracted",
                sources=["m2"],
            ),
        ]
    )
    assert at(versions, 46) == ["Oslo"]
    assert at(versions, 32) == ["Oslo"]
    assert all(f.sources == ("m2",) for f in believed(versions) if f.object == "Oslo")


def test_another_attribute_is_a_new_version_and_the_old_one_is_known_as_it_was() -> None:
    versions = learn(
        [
            says("ann", "has_pet", "Rex", 1, attributes={"kind": "dog"}),
            says("ann", "has_pet", "Rex", 5, attributes={"age": 3}),
        ]
    )
    assert [fact.attributes for fact in believed(versions)] == [{"kind": "dog", "age": 3}]
    assert [fact.attributes for fact in versions if fact.unlearnt_at] == [{"kind": "dog"}]


def test_a_fact_made_by_hand_without_marks_is_understood() -> None:
    fact = Fact(
        id="v1",
        fact_id=fact_id("ann", "lives_in", "Lyon"),
        subject="ann",
        predicate="lives_in",
        object="Lyon",
        valid_from=day(1),
        valid_to=day(3),
        learnt_at=day(1),
    )
    decided = change([fact], says("ann", "lives_in", "Oslo", 2, learnt=5))
    assert decided.close == ("v1",)
    assert sorted((f.object, f.valid_from, f.valid_to) for f in decided.add) == [
        ("Lyon", day(1), day(2)),
        ("Oslo", day(2), None),
    ]


def test_thirty_jobs_leave_one_and_each_can_be_asked_for() -> None:
    versions = learn(says("user", "works_at", f"Company {n}", n) for n in range(31))
    assert at(versions, 40) == ["Company 30"]
    assert at(versions, 14.5) == ["Company 14"]
    assert len(believed(versions)) == 31


def test_marks_do_not_grow_without_end() -> None:
    versions = learn(says("ann", "likes", "tea", number) for number in range(3 * MARKS_LIMIT))
    (fact,) = versions
    assert len(fact.attested) == MARKS_LIMIT
    assert fact.attested[0] == fact.valid_from


def test_an_extended_registry_makes_a_predicate_single_valued() -> None:
    registry = REGISTRY.extended(Predicate(name="reports_to", single=True))
    one, two = (
        registry.assertion(
            id=boss,
            subject="ann",
            predicate="Reports To",
            object=boss,
            valid_from=day(start),
            learnt_at=day(start),
        )
        for boss, start in (("bob", 1), ("cy", 2))
    )
    assert at(learn([one, two]), 3) == ["cy"]


# --- for any order of any assertions -------------------------------------------------------------

PLACES = st.sampled_from(["Lyon", "Oslo", "Rome"])
ORIGINS = st.sampled_from(["stated", "extracted", "promoted"])


@st.composite
def anything(draw: st.DrawFn, predicate: str = "lives_in") -> Assertion:
    start = draw(st.integers(0, 12))
    holds = draw(st.booleans()) or draw(st.booleans())
    until = draw(st.none() | st.integers(start + 1, 15))
    said = draw(st.none() | st.integers(start, 15)) if until is None else None
    place = draw(PLACES)
    learnt = draw(st.integers(0, 20))
    origin = draw(ORIGINS)
    nonce = draw(st.integers(0, 10**9))
    return says(
        "ann",
        predicate,
        place,
        start,
        until=until,
        said=said,
        learnt=learnt,
        holds=holds,
        origin=origin,
        id=f"{nonce} {place} {start} {until} {said} {learnt} {holds} {origin}",
        sources=[f"m{nonce}"],
    )


def unique(assertions: Sequence[Assertion]) -> list[Assertion]:
    return list({assertion.id: assertion for assertion in assertions}.values())


ANY_LIST = st.lists(anything(), max_size=9).map(unique)
HALF_DAYS = [number / 2 for number in range(-1, 45)]


@given(ANY_LIST)
@settings(max_examples=150, deadline=None)
def test_at_any_two_times_a_single_valued_predicate_has_at_most_one_object(
    assertions: list[Assertion],
) -> None:
    versions = learn(assertions)
    for known in HALF_DAYS:
        seen = [
            fact
            for fact in versions
            if fact.learnt_at <= day(known)
            and (fact.unlearnt_at is None or day(known) < fact.unlearnt_at)
        ]
        for true in HALF_DAYS:
            assert len([fact for fact in seen if fact.holds_at(day(true))]) <= 1
    for true in HALF_DAYS:
        assert len(at(versions, true)) <= 1


@given(ANY_LIST)
@settings(max_examples=100, deadline=None)
def test_what_was_just_stated_holds_at_its_start(assertions: list[Assertion]) -> None:
    for number, assertion in enumerate(assertions, start=1):
        now = at(learn(assertions[:number]), _days(assertion.valid_from))
        assert now == [assertion.object] if assertion.holds else assertion.object not in now


@given(ANY_LIST)
@settings(max_examples=100, deadline=None)
def test_learning_more_never_loses_a_version(assertions: list[Assertion]) -> None:
    before: set[str] = set()
    for number in range(len(assertions) + 1):
        after = {fact.id for fact in learn(assertions[:number])}
        assert before <= after
        before = after


@given(ANY_LIST)
@settings(max_examples=100, deadline=None)
def test_the_same_order_gives_the_same_versions(assertions: list[Assertion]) -> None:
    assert learn(assertions) == learn(assertions)


@given(ANY_LIST, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_in_which_believed_facts_are_read_does_not_matter(
    assertions: list[Assertion], random: object
) -> None:
    if not assertions:
        return
    versions = believed(learn(assertions[:-1]))
    shuffled = list(versions)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert change(versions, assertions[-1]) == change(shuffled, assertions[-1])


@given(
    st.lists(st.tuples(PLACES, st.booleans() | st.just(True)), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150, deadline=None)
def test_what_messages_say_gives_the_same_timeline_in_whatever_order_they_are_read(
    said: list[tuple[str, bool]], random: object
) -> None:
    told = [
        says("ann", "lives_in", place, number, holds=holds, origin="extracted")
        for number, (place, holds) in enumerate(said)
    ]
    shuffled = list(told)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    expected, found = learn(told), learn(shuffled)
    moments = [number / 2 for number in range(-1, 2 * len(said) + 2)]
    assert [at(found, moment) for moment in moments] == [at(expected, moment) for moment in moments]


@given(
    st.lists(
        st.tuples(st.sampled_from(["likes", "dislikes"]), st.booleans() | st.just(True)), max_size=8
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None)
def test_opposites_never_hold_at_once_in_whatever_order_they_are_read(
    said: list[tuple[str, bool]], random: object
) -> None:
    told = [
        says("ann", predicate, "jazz", number, holds=holds, origin="extracted")
        for number, (predicate, holds) in enumerate(said)
    ]
    shuffled = list(told)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    expected, found = learn(told), learn(shuffled)
    for moment in (number / 2 for number in range(-1, 2 * len(said) + 2)):
        held = [f.predicate for f in believed(found) if f.holds_at(day(moment))]
        assert len(held) <= 1
        assert held == [f.predicate for f in believed(expected) if f.holds_at(day(moment))]


@pytest.mark.parametrize("origin", ["stated", "extracted"])
def test_every_source_of_what_is_believed_was_given(origin: str) -> None:
    versions = learn(
        [
            says("ann", "lives_in", "Lyon", 1, sources=["m1"], origin=origin),
            says("ann", "lives_in", "Oslo", 5, sources=["m2"], origin=origin),
        ]
    )
    assert {fact.object: fact.sources for fact in believed(versions)} == {
        "Lyon": ("m1",),
        "Oslo": ("m2",),
    }
