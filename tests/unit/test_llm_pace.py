"""How fast an endpoint is asked."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory.llm.pace import FIRST_PAUSE, LONGEST_PAUSE, Pace, pause


@given(
    st.integers(min_value=1, max_value=600),
    st.lists(st.floats(min_value=0, max_value=30), max_size=60),
)
def test_no_minute_sees_more_requests_than_it_may(per_minute: int, gaps: list[float]) -> None:
    pace, now, goes = Pace(per_minute), 1_000.0, []
    for gap in gaps:
        now += gap
        goes.append(now + pace.turn(now))

    assert goes == sorted(goes)
    for first, after in zip(goes, goes[per_minute:], strict=False):
        assert after - first >= 60 - 1e-6


def test_who_comes_late_does_not_wait_and_who_comes_together_goes_one_by_one() -> None:
    pace = Pace(60)

    assert [round(pace.turn(10.0), 6) for _ in range(3)] == [0, 1, 2]
    assert pace.turn(100.0) == 0


def test_without_a_limit_nobody_waits() -> None:
    pace = Pace(None)

    assert [pace.turn(5.0) for _ in range(100)] == [0] * 100


@given(st.integers(min_value=0, max_value=10_000), st.floats(min_value=0, max_value=1))
def test_pauses_grow_to_a_longest_one(attempt: int, chance: float) -> None:
    assert FIRST_PAUSE / 2 <= pause(attempt, None, chance) <= LONGEST_PAUSE
    assert pause(attempt + 1, None, chance) >= pause(attempt, None, chance)


def test_a_pause_is_what_the_server_asks_for_and_not_less() -> None:
    assert pause(0, timedelta(seconds=7), 0.0) == timedelta(seconds=7)
    assert pause(9, timedelta(seconds=7), 1.0) == timedelta(seconds=7) + FIRST_PAUSE
