"""When what is asked about happened."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.places import Places, Row
from memory.times import to_micros
from memory.when import EARLIER, LATER, LONGEST, LONGEST_UNSPACED, When

NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)  # a Wednesday


def at(*moments: datetime) -> Places:
    return Places.of(
        [Row(n, "s", n, 0, 1, "user", "user", to_micros(m)) for n, m in enumerate(moments, 1)], 0
    )


def part(query: str, *moments: datetime) -> list[float]:
    when = When.of(query, NOW)
    assert when is not None
    places = at(*moments)
    return list(when(places, places.at(range(1, len(moments) + 1))).tolist())


def inside(query: str, *moments: datetime) -> list[int]:
    """Which of the moments are meant, from 0."""
    when = When.of(query, NOW)
    assert when is not None
    places = at(*moments)
    return [
        int(n) - 1 for n in places.n[when.inside(places, places.at(range(1, len(moments) + 1)))]
    ]


def day(number: int, hour: float = 12, month: int = 3, year: int = 2026) -> datetime:
    return datetime(year, month, number, tzinfo=UTC) + timedelta(hours=hour)


# --- inside, before and after ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("What did we do yesterday?", day(10, 0), day(10, 23.99)),
        ("我昨天做了什么？", day(10, 0), day(10, 23.99)),
        ("What happened on 5 February 2026?", day(5, 0, 2), day(5, 23.99, 2)),
        ("我们去年五月去了哪里？", day(1, 0, 5, 2025), day(31, 23.99, 5, 2025)),
        ("Where did we go in May last year?", day(1, 0, 5, 2025), day(31, 23.99, 5, 2025)),
    ],
)
def test_what_is_in_the_span_has_all_of_it_and_what_is_outside_less(
    query: str, first: datetime, last: datetime
) -> None:
    tick = timedelta(minutes=1)
    moments = (first, last, first - tick, last + timedelta(hours=1))
    assert part(query, *moments)[:2] == [1.0, 1.0]
    assert all(0.9 < each < 1.0 for each in part(query, *moments)[2:])
    assert inside(query, *moments) == [0, 1]


def test_a_span_ends_before_its_end() -> None:
    midnight = day(11, 0)
    assert inside("what was said yesterday", midnight - timedelta(microseconds=1), midnight) == [0]


def test_it_fades_fast_before_a_span_and_slowly_after_it() -> None:
    start, end = day(10, 0), day(11, 0)
    before, after = part("yesterday's walk", start - EARLIER, end + LATER)
    assert before == pytest.approx(math.exp(-1))
    assert after == pytest.approx(math.exp(-1))
    gap = timedelta(days=3)
    before, after = part("yesterday's walk", start - gap, end + gap)
    assert before < after


@settings(max_examples=30)
@given(st.integers(-40_000, 20_000), st.integers(0, 20_000))
def test_further_away_is_never_better(days: int, more: int) -> None:
    start, end = day(10, 0), day(11, 0)
    edge, way = (start, -1) if days < 0 else (end, 1)
    near = edge + timedelta(days=days)
    far = near + way * timedelta(days=more)
    (one, other) = part("yesterday", near, far)
    assert 0.0 <= other <= one <= 1.0


def test_of_two_spans_the_nearer_one_counts() -> None:
    query = "Did it rain on 2 March 2026 or on 6 March 2026?"
    assert part(query, day(2), day(6), day(4)) == [1.0, 1.0, pytest.approx(0.9, abs=0.1)]
    assert inside(query, day(2), day(4), day(6)) == [0, 2]


def test_what_has_no_beginning_holds_all_that_was_before() -> None:
    assert part("What did we do before 2026?", day(1, year=1970), day(31, 12, 12, 2025)) == [1, 1]


def test_of_nobody_nothing_is_of_any_time() -> None:
    assert part("yesterday") == []
    assert inside("yesterday") == []


# --- questions without a time ------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["", "Where is the red kayak?", "红色的皮划艇在哪里？", "May I?", "\ud800", "7"]
)
def test_a_query_that_names_no_time_asks_about_none(query: str) -> None:
    assert When.of(query, NOW) is None


def test_what_tells_a_story_asks_about_no_time() -> None:
    story = "Yesterday I went to the lake. "
    assert When.of(story, NOW) is not None
    assert When.of(story + "x" * LONGEST, NOW) is None
    assert When.of("我昨天去了湖边。", NOW) is not None
    assert When.of("我昨天去了湖边。" + "湖" * LONGEST_UNSPACED, NOW) is None
    assert When.of("yesterday " * 100_000, NOW) is None


# --- nothing but a time ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "What did I do yesterday?",
        "What happened yesterday?",
        "What did we talk about last week?",
        "what were the things we discussed on Monday",
        "yesterday?",
        "我昨天做了什么？",
        "昨天发生了什么事",
        "我们上周聊了什么",
        "2026年2月5日",
    ],
)
def test_a_query_for_whatever_there_was_asks_about_a_time_alone(query: str) -> None:
    when = When.of(query, NOW)
    assert when is not None
    assert when.alone


@pytest.mark.parametrize(
    "query",
    [
        "What did I cook yesterday?",
        "What did Ada tell me yesterday?",
        "我昨天做饭了吗",
        "昨天谁给我打电话了",
        "What happened to the kayak last week?",
    ],
)
def test_a_query_for_something_of_a_time_does_not(query: str) -> None:
    when = When.of(query, NOW)
    assert when is not None
    assert not when.alone


def test_yesterday_is_that_of_the_zone_that_asks() -> None:
    east = NOW.replace(hour=20).astimezone(timezone(timedelta(hours=8)))  # there it is the 12th
    when = When.of("yesterday", east)
    assert when is not None
    places = at(day(10, 15.9), day(10, 16), day(11, 15.9), day(11, 16))
    assert when.inside(places, places.at([1, 2, 3, 4])).tolist() == [1, 2]
