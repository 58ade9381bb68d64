"""The budget: floors are sure, ceilings hold, and nothing is left over that somebody could use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory.budget import (
    LEAST_MEMORY,
    LEAST_PINNED,
    SECTIONS,
    ContextPolicy,
    Section,
    Share,
    allot,
)
from tests.policies import policies

ALL = 10_000
"""More than any room in these tests."""


def everybody(tokens: int = ALL) -> dict[Section, int]:
    return dict.fromkeys(SECTIONS, tokens)


WANTS = st.fixed_dictionaries({section: st.integers(0, 2_000) for section in SECTIONS})


@given(WANTS, st.integers(0, 3_000), policies())
def test_shares_keep_to_the_room_the_wants_the_floors_and_the_ceilings(
    wanted: dict[Section, int], room: int, policy: ContextPolicy
) -> None:
    given_ = allot(wanted, room, policy)
    assert sum(given_.values()) <= room
    least = {"pinned": LEAST_PINNED, "facts": LEAST_MEMORY, "episodes": LEAST_MEMORY}
    for section in SECTIONS:
        share = policy.share(section)
        assert 0 <= given_[section] <= wanted[section]
        assert given_[section] <= max(int(share.ceiling * room), least.get(section, 0))
        if room >= 2 * LEAST_MEMORY / max(0.01, policy.facts.floor + policy.episodes.floor):
            pinned_least = section == "pinned" or room < 4 * LEAST_PINNED
            assert pinned_least or given_[section] >= min(
                wanted[section], int(share.floor * room) - LEAST_PINNED
            )


@given(WANTS, st.integers(0, 3_000), policies())
def test_nothing_is_left_over_that_somebody_could_use(
    wanted: dict[Section, int], room: int, policy: ContextPolicy
) -> None:
    given_ = allot(wanted, room, policy)
    if sum(given_.values()) < room:
        for section in SECTIONS:
            assert given_[section] >= min(wanted[section], policy.most(section, room))


@given(WANTS, st.integers(0, 3_000), policies(), st.sampled_from(SECTIONS), st.integers(0, 500))
def test_nobody_gets_less_when_another_wants_less(
    wanted: dict[Section, int], room: int, policy: ContextPolicy, which: Section, less: int
) -> None:
    before = allot(wanted, room, policy)
    after = allot({**wanted, which: max(0, wanted[which] - less)}, room, policy)
    assert all(after[section] >= before[section] for section in SECTIONS if section != which)


def test_with_everybody_wanting_everything_the_default_shares_are_the_floors() -> None:
    assert allot(everybody(), 1_000, ContextPolicy()) == {
        "pinned": 150,
        "summary": 250,
        "turns": 300,
        "facts": 60,
        "episodes": 240,
    }


def test_what_one_does_not_need_the_others_have_in_the_policys_order() -> None:
    unpinned = allot({**everybody(), "pinned": 0}, 1_000, ContextPolicy())
    assert unpinned["turns"] == 300 + 150
    assert unpinned["summary"] == 250  # its ceiling
    episodes_first = ContextPolicy(order=("episodes", "turns", "pinned", "summary", "facts"))
    assert allot({**everybody(), "pinned": 0}, 1_000, episodes_first)["episodes"] == 240 + 150
    only_turns = allot({"turns": ALL}, 1_000, ContextPolicy())
    assert only_turns["turns"] == 1_000


def test_facts_and_episodes_lend_their_floors_to_each_other_first() -> None:
    only_facts = allot({**everybody(), "episodes": 0}, 1_000, ContextPolicy())
    assert only_facts["facts"] == 60 + 240
    few_facts = allot({**everybody(), "facts": 40}, 1_000, ContextPolicy())
    assert (few_facts["facts"], few_facts["episodes"]) == (40, 240 + 20)


def test_a_small_room_still_has_a_line_of_memory_and_a_pinned_fact() -> None:
    small = allot(everybody(), 200, ContextPolicy())
    assert small["facts"] + small["episodes"] == 200 // 2
    assert small["pinned"] == 200 // 4
    without = ContextPolicy(facts=Share(ceiling=0.0), episodes=Share(ceiling=0.0))
    assert allot(everybody(), 200, without)["facts"] == 0


def test_a_turn_that_needs_it_goes_before_all_else() -> None:
    given_ = allot(everybody(), 1_000, ContextPolicy().turns_first())
    assert given_["turns"] == 1_000
    some = allot({**everybody(), "turns": 700}, 1_000, ContextPolicy().turns_first())
    assert (some["turns"], some["pinned"], some["summary"]) == (700, 300, 0)


def test_a_policy_that_makes_no_sense_is_refused_and_says_why() -> None:
    with pytest.raises(ValidationError, match="above the ceiling"):
        Share(floor=0.5, ceiling=0.4)
    with pytest.raises(ValidationError, match="more than the room"):
        ContextPolicy(turns=Share(floor=0.5))
    with pytest.raises(ValidationError, match="each of"):
        ContextPolicy(order=("pinned", "summary", "turns", "facts"))
    with pytest.raises(ValidationError, match="each of"):
        ContextPolicy(order=("pinned", "summary", "turns", "facts", "facts"))
    assert ContextPolicy(turns=Share(floor=0.2, ceiling=0.6)).most("turns", 1_000) == 600
