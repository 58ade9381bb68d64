"""Places: the order of what was said, and what stands beside what."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.models import Role
from memory.places import APART, NOWHERE, Places, Row

FEW = settings(max_examples=30)
ROLES = tuple(Role)


def row(n: int, session: str = "s", seq: int = 1, part: int = 0, words: int = 5) -> Row:
    return Row(n, session, seq, part, words, "user", "user", 1_000 * n)


def talk(*seqs: int, session: str = "s", first: int = 1) -> list[Row]:
    """One session, with messages of these numbers."""
    return [row(n, session, seq) for n, seq in enumerate(seqs, first)]


@st.composite
def any_rows(draw: st.DrawFn) -> list[Row]:
    """Rows of any conversation: some sessions, gaps, pieces, numbers in no order of time."""
    spots = draw(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.integers(1, 40), st.integers(0, 2)),
            unique=True,
            max_size=30,
        )
    )
    numbers = draw(st.permutations(range(1, len(spots) + 1)))
    return [
        Row(
            3 * n,
            *spot,
            draw(st.integers(0, 30)),
            draw(st.sampled_from(ROLES)).value,
            draw(st.sampled_from(["user", "Ada", "爱丽丝", "\ud800"])),
            draw(st.integers(-(10**15), 10**15)),
        )
        for n, spot in zip(numbers, spots, strict=True)
    ]


def as_rows(places: Places) -> list[Row]:
    """What the arrays say, by place."""
    return [
        Row(
            int(places.n[at]),
            places.sessions[places.session[at]],
            int(places.seq[at]),
            int(places.part[at]),
            int(places.words[at]),
            ROLES[places.role[at]].value,
            places.speakers[places.speaker[at]],
            int(places.time[at]),
        )
        for at in range(len(places))
    ]


def beside(ordered: Sequence[Row], at: int, steps: int) -> int:
    """The place that is so many steps away, found by walking; NOWHERE where the session ends or
    has a gap."""
    way = 1 if steps > 0 else -1
    for _ in range(abs(steps)):
        there = at + way
        if not 0 <= there < len(ordered):
            return NOWHERE
        one, other = ordered[at], ordered[there]
        if one.session != other.session or abs(one.seq - other.seq) > APART:
            return NOWHERE
        at = there
    return at


# --- order -------------------------------------------------------------------------------------


@FEW
@given(any_rows(), st.randoms(use_true_random=False))
def test_every_row_has_one_place_by_session_message_and_piece(
    rows: list[Row], chance: random.Random
) -> None:
    places = Places.of(rows, 4)
    ordered = as_rows(places)
    assert places.edition == 4
    assert sorted(ordered) == sorted(rows)
    assert ordered == sorted(
        rows, key=lambda each: (places.sessions.index(each.session), each.seq, each.part)
    )
    shuffled = list(rows)
    chance.shuffle(shuffled)
    assert as_rows(Places.of(shuffled, 4)) == ordered


@FEW
@given(any_rows(), st.integers(0, 30), st.integers(0, 30))
def test_more_rows_give_what_reading_all_of_them_gives(rows: list[Row], one: int, two: int) -> None:
    by_age = sorted(rows)
    first, second = sorted((one, two))
    grown = Places.of(by_age[:first], 1)
    _ = grown.after, grown.before, grown.window_words, grown.newest  # nothing stale may stay
    grown = grown.with_more(by_age[first:second]).with_more(by_age[second:])
    anew = Places.of(by_age, 1)
    assert as_rows(grown) == as_rows(anew)
    assert grown.sessions == anew.sessions
    assert grown.speakers == anew.speakers
    for name in ("after", "before", "window_words"):
        assert getattr(grown, name).tolist() == getattr(anew, name).tolist()


def test_without_more_they_are_the_same_places() -> None:
    places = Places.of(talk(1, 2), 1)
    assert places.with_more([]) is places


def test_what_is_said_late_in_an_old_session_moves_the_places_behind_it() -> None:
    old = Places.of([*talk(1, 2, session="a"), *talk(1, 2, session="b", first=3)], 1)
    more = old.with_more([row(5, "a", 3)])
    assert old.n.tolist() == [1, 2, 3, 4]
    assert more.n.tolist() == [1, 2, 5, 3, 4]


# --- by number ---------------------------------------------------------------------------------


@FEW
@given(any_rows(), st.lists(st.integers(-1, 100)))
def test_places_are_found_by_number_and_unknown_numbers_are_nowhere(
    rows: list[Row], asked: list[int]
) -> None:
    places = Places.of(rows, 1)
    there = {each.n for each in rows}
    found = places.at(asked)
    assert len(found) == len(asked)
    for number, at in zip(asked, found.tolist(), strict=True):
        assert (at == NOWHERE) if number not in there else places.n[at] == number


def test_numbers_asked_twice_are_answered_twice() -> None:
    places = Places.of(talk(1, 2, 3), 1)
    assert places.at([2, 2, 9, 1]).tolist() == [1, 1, NOWHERE, 0]
    assert places.at([]).tolist() == []


@FEW
@given(any_rows())
def test_the_newest_is_the_highest_number(rows: list[Row]) -> None:
    assert Places.of(rows, 1).newest == max((each.n for each in rows), default=0)


def test_of_nobody_nothing_is_found() -> None:
    places = Places.of([], 7)
    assert (len(places), places.newest, places.edition) == (0, 0, 7)
    assert places.at([1, 2]).tolist() == [NOWHERE, NOWHERE]
    assert places.after.tolist() == places.before.tolist() == places.window_words.tolist() == []
    assert places.mean_words == places.mean_window_words == 1.0
    assert places.with_neighbours(np.zeros(0, dtype=np.int64)).tolist() == []
    assert places.roles == frozenset()
    assert as_rows(places.with_more(talk(1, 2))) == talk(1, 2)


# --- beside ------------------------------------------------------------------------------------


def test_a_session_ends_where_another_begins() -> None:
    places = Places.of([*talk(1, 2, session="a"), *talk(3, 4, session="b", first=3)], 1)
    assert places.after.tolist() == [1, NOWHERE, 3, NOWHERE]
    assert places.before.tolist() == [NOWHERE, 0, NOWHERE, 2]


def test_what_lost_everything_between_it_is_not_beside_each_other() -> None:
    places = Places.of(talk(1, 1 + APART, 2 + 2 * APART), 1)
    assert places.after.tolist() == [1, NOWHERE, NOWHERE]
    assert places.before.tolist() == [NOWHERE, 0, NOWHERE]


def test_the_pieces_of_a_message_are_beside_each_other() -> None:
    places = Places.of([row(1, seq=1), row(2, seq=2, part=1), row(3, seq=2), row(4, seq=3)], 1)
    assert places.n.tolist() == [1, 3, 2, 4]
    assert places.after.tolist() == [1, 2, 3, NOWHERE]


@FEW
@given(any_rows(), st.integers(1, 3), st.data())
def test_neighbours_are_those_a_walk_along_the_session_meets(
    rows: list[Row], distance: int, data: st.DataObject
) -> None:
    places = Places.of(rows, 1)
    ordered = as_rows(places)
    every = range(len(ordered))
    assert places.after.tolist() == [beside(ordered, at, 1) for at in every]
    assert places.before.tolist() == [beside(ordered, at, -1) for at in every]
    chosen = data.draw(st.lists(st.sampled_from([NOWHERE, *every])))
    met = {
        beside(ordered, at, steps)
        for at in chosen
        if at != NOWHERE
        for steps in range(-distance, distance + 1)
    }
    found = places.with_neighbours(np.array(chosen, dtype=np.int64), distance)
    assert found.tolist() == sorted(met - {NOWHERE})


def test_neighbours_of_one_and_of_two_steps() -> None:
    places = Places.of([*talk(*range(1, 8)), row(8, "other")], 1)
    middle = np.array([3])
    assert places.with_neighbours(middle).tolist() == [2, 3, 4]
    assert places.with_neighbours(middle, 2).tolist() == [1, 2, 3, 4, 5]
    assert places.with_neighbours(np.array([6, 7])).tolist() == [5, 6, 7]


# --- lengths -----------------------------------------------------------------------------------


@FEW
@given(any_rows())
def test_a_window_is_as_long_as_all_that_is_in_it(rows: list[Row]) -> None:
    places = Places.of(rows, 1)
    ordered = as_rows(places)
    expected = [
        sum(
            ordered[there].words
            for steps in range(-2, 3)
            if (there := beside(ordered, at, steps)) != NOWHERE
        )
        for at in range(len(ordered))
    ]
    assert places.window_words.tolist() == expected
    assert places.words.tolist() == [each.words for each in ordered]  # its own stays as it is
    if rows:
        assert places.mean_words == max(1.0, float(np.mean([each.words for each in rows])))
        assert places.mean_window_words == max(1.0, float(np.mean(expected)))


def test_texts_without_words_have_a_length_to_divide_by() -> None:
    places = Places.of([row(1, words=0), row(2, seq=2, words=0)], 1)
    assert places.mean_words == places.mean_window_words == 1.0


def test_roles_are_those_that_were_heard() -> None:
    places = Places.of([row(1), row(2, seq=2)._replace(role="assistant")], 1)
    assert {ROLES[role] for role in places.roles} == {Role.USER, Role.ASSISTANT}
