"""The pure half of a night: what fades, what repeats, what is planned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from consolidation.cluster import clusters, gist, repeats
from consolidation.decay import faded, retention
from consolidation.plan import RECURS, Policy, plan
from memory.models import Episode, Fact, Role, Scope

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
HALF_LIFE = timedelta(days=90)
ADA = Scope.of("default", "ada")


def episode(
    number: int, text: str = "nothing much", *, session: str = "s", **fields: object
) -> Episode:
    moment = START + timedelta(days=number)
    return Episode.model_validate(
        {
            "id": f"e{number:03}",
            "session": session,
            "message_id": f"m{number:03}",
            "seq": number + 1,
            "role": Role.USER,
            "speaker": "user",
            "text": text,
            "event_time": moment,
            "recorded_at": moment,
            **fields,
        }
    )


def same_direction(count: int) -> NDArray[np.float32]:
    return np.tile(np.array([[1.0, 0.0]], dtype=np.float32), (count, 1))


# --- fading ------------------------------------------------------------------------------------


def test_half_of_an_important_episode_is_left_after_the_half_life() -> None:
    important = episode(0, importance=1.0)
    assert retention(important, START + HALF_LIFE, HALF_LIFE) == pytest.approx(0.5)


@given(st.integers(0, 3000), st.integers(0, 3000), st.floats(0, 1))
def test_retention_only_falls_and_stays_in_its_bounds(a: int, b: int, importance: float) -> None:
    one = episode(0, importance=importance)
    earlier, later = (
        retention(one, START + timedelta(days=days), HALF_LIFE) for days in sorted((a, b))
    )
    assert 0.0 <= later <= earlier <= importance


def test_a_date_in_the_future_is_no_boost() -> None:
    tomorrow = episode(0, importance=0.4, recorded_at=START + timedelta(days=1))
    assert retention(tomorrow, START, HALF_LIFE) == 0.4


def test_using_an_episode_makes_it_young_again() -> None:
    now = START + timedelta(days=400)
    used = episode(0, last_access=now - timedelta(days=1))
    unused = episode(1)
    assert [e.id for e in faded([used, unused], now, half_life=HALF_LIFE, floor=0.1)] == ["e001"]


def test_pinned_episodes_never_fade_and_others_do() -> None:
    now = START + timedelta(days=2000)
    gone = faded([episode(0, pinned=True), episode(1)], now, half_life=HALF_LIFE, floor=0.1)
    assert [e.id for e in gone] == ["e001"]


# --- repeating ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Mara Lind is CEO of Acme", "Ines Roth is CTO of Acme"),
        ("Our HQ is in Turin", "Our HQ is in Ghent"),
        ("My favourite colour is amber", "My favourite colour is teal"),
        ("The service runs on port 8090", "The service runs on port 8091"),
        ("The backup job does run", "The backup job does not run"),
        ("我住在成都", "我不住在成都"),
        ("I ran along the river", "The tax office wrote again"),
    ],
)
def test_sentences_that_differ_in_what_matters_do_not_repeat_each_other(a: str, b: str) -> None:
    assert not repeats(gist(a), gist(b), shared=0.5)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Tuesday run along the river again", "Did my Tuesday run by the river, slow but good"),
        ("The backend is at localhost:8090", "The backend runs on port 8090"),
        ("今天又去跑步了，沿着河边", "晚上沿着河边跑步，舒服"),
    ],
)
def test_sentences_that_say_the_same_again_repeat_each_other(a: str, b: str) -> None:
    assert repeats(gist(a), gist(b), shared=0.3)


def test_later_episodes_never_change_an_earlier_cluster() -> None:
    texts = ["Tuesday run along the river", "Paid the rent today, finally", "Tuesday run, river"]
    episodes = [episode(i, text) for i, text in enumerate(texts)]
    before = clusters(episodes[:2], same_direction(2), threshold=0.6, shared=0.5)
    after = clusters(episodes, same_direction(3), threshold=0.6, shared=0.5)
    assert [c.leader for c in before] == [c.leader for c in after]
    assert [len(c.episodes) for c in after] == [2, 1]


def test_words_alone_do_not_make_a_cluster() -> None:
    episodes = [episode(i, "Tuesday run along the river") for i in range(2)]
    apart = np.eye(2, dtype=np.float32)
    assert len(clusters(episodes, apart, threshold=0.6, shared=0.5)) == 2
    assert len(clusters(episodes, same_direction(2), threshold=0.6, shared=0.5)) == 1


# --- the plan ----------------------------------------------------------------------------------

RUNS = [
    episode(0, "Tuesday run along the river", session="one"),
    episode(7, "My Tuesday run along the river was slow", session="two"),
    episode(14, "Tuesday run along the river again!", session="two"),
]


def planned(episodes: list[Episode], known: list[Fact] | None = None, **policy: object):  # type: ignore[no-untyped-def]
    return plan(
        ADA,
        episodes,
        same_direction(len(episodes)),
        known or [],
        now=START + timedelta(days=20),
        policy=Policy.model_validate(policy),
    )


def test_what_recurs_becomes_a_fact_in_its_own_words_with_all_its_sources() -> None:
    (fact,) = planned(RUNS).promote
    assert (fact.predicate, fact.object) == (RECURS, "Tuesday run along the river")
    assert set(fact.sources) == {"m000", "m007", "m014"}
    assert fact.origin == "promoted"


def test_two_episodes_or_one_session_are_not_enough() -> None:
    one_session = [e.model_copy(update={"session": "one"}) for e in RUNS]
    assert planned(RUNS[:2]).promote == ()
    assert planned(one_session).promote == ()
    assert planned(RUNS).promote != ()


def test_questions_small_talk_and_the_assistant_are_not_promoted() -> None:
    asked = [e.model_copy(update={"text": e.text + "?"}) for e in RUNS]
    thanks = [e.model_copy(update={"text": "Ok, thanks"}) for e in RUNS]
    answered = [e.model_copy(update={"role": Role.ASSISTANT}) for e in RUNS]
    for episodes in (asked, thanks, answered):
        assert planned(episodes).promote == ()


def test_what_is_known_already_is_not_planned_again() -> None:
    (promoted,) = planned(RUNS).promote
    known = Fact(
        id="v1",
        fact_id="f1",
        subject=promoted.subject,
        predicate=promoted.predicate,
        object=promoted.object,
        valid_from=promoted.valid_from,
        learnt_at=promoted.learnt_at,
        sources=promoted.sources,
    )
    assert planned(RUNS, [known]).is_empty
    more = [*RUNS, episode(18, "Tuesday run along the river, sunny", session="three")]
    (grown,) = planned(more, [known]).promote
    assert grown.object == promoted.object
    assert set(grown.sources) > set(promoted.sources)


def test_two_things_that_the_same_messages_say_are_two_facts() -> None:
    said = ("the office moves to Kettle Street", "please send the invoices to accounting")
    parts = [
        episode(2 * n + part, text, session=f"s{n}", message_id=f"m{n}", part=part, parts=2)
        for n in range(3)
        for part, text in enumerate(said)
    ]
    found = plan(
        ADA,
        parts,
        np.tile(np.eye(2, dtype=np.float32), (3, 1)),
        [],
        now=START + timedelta(days=20),
        policy=Policy(),
    ).promote
    assert [fact.object for fact in found] == list(said)
    assert found[0].sources == found[1].sources
    assert found[0].id != found[1].id


def test_a_night_that_would_archive_too_much_archives_nothing_and_says_so() -> None:
    old = [episode(i, f"note number {i}") for i in range(100)]
    later = START + timedelta(days=2000)
    held = plan(ADA, old, same_direction(100), [], now=later, policy=Policy())
    assert held.archive == ()
    assert "100 of 100" in held.held_back[0]
    allowed = plan(ADA, old, same_direction(100), [], now=later, policy=Policy(most_archived=1.0))
    assert len(allowed.archive) == 100
