"""Dates in questions: what they mean, seen from Wednesday, 19 June 2024, 14:30."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.dates import Span, spans

NOW = datetime(2024, 6, 19, 14, 30, tzinfo=UTC)
EVER = "0002-01-01"
TODAY_ENDS = "2024-06-20"


def read(text: str, now: datetime = NOW) -> list[tuple[str, str]]:
    return [(_short(span.start), _short(span.end)) for span in spans(text, now=now)]


def _short(at: datetime) -> str:
    return at.strftime("%Y-%m-%d" if (at.hour, at.minute) == (0, 0) else "%Y-%m-%d %H:%M").zfill(10)


def one(text: str) -> Span:
    (span,) = spans(text, now=NOW)
    return span


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Where were we on 8 May 2023?", "2023-05-08", "2023-05-09"),
        ("the dentist on May 8th", "2024-05-08", "2024-05-09"),
        ("the dentist on December 8th", "2023-12-08", "2023-12-09"),
        ("May 8, 2023: who called?", "2023-05-08", "2023-05-09"),
        ("Monday, 8 May 2023", "2023-05-08", "2023-05-09"),
        ("the 3rd of March", "2024-03-03", "2024-03-04"),
        ("the log of 2023-05-08", "2023-05-08", "2023-05-09"),
        ("backup 2023-05-08T10:00 failed", "2023-05-08", "2023-05-09"),
        ("reports of 2023-05", "2023-05-01", "2023-06-01"),
        ("flight on 3/14", "2024-03-14", "2024-03-15"),
        ("flight 3/14/2023", "2023-03-14", "2023-03-15"),
        ("Rechnung 14.03.2023", "2023-03-14", "2023-03-15"),
        ("on 25/12/2022", "2022-12-25", "2022-12-26"),
        ("lessons from January 6th to 9th", "2024-01-06", "2024-01-10"),
        ("who won in May?", "2024-05-01", "2024-06-01"),
        ("who won in July?", "2023-07-01", "2023-08-01"),
        ("May 2022", "2022-05-01", "2022-06-01"),
        ("a trip in 2021", "2021-01-01", "2022-01-01"),
        ("songs from the 90s", "1990-01-01", "2000-01-01"),
        ("what was due on the 8th?", "2024-06-08", "2024-06-09"),
        ("Q3 2023", "2023-07-01", "2023-10-01"),
        ("the second quarter of 2022", "2022-04-01", "2022-07-01"),
    ],
)
def test_absolute_dates_in_english(text: str, start: str, end: str) -> None:
    assert read(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("what did I eat yesterday?", "2024-06-18", "2024-06-19"),
        ("yesterday evening", "2024-06-18 17:00", "2024-06-19"),
        ("the day before yesterday", "2024-06-17", "2024-06-18"),
        ("tomorrow morning", "2024-06-20 05:00", "2024-06-20 12:00"),
        ("the call on Tuesday", "2024-06-18", "2024-06-19"),
        ("the call on Wednesday", "2024-06-12", "2024-06-13"),
        ("last Friday night", "2024-06-14 19:00", "2024-06-15 05:00"),
        ("Friday last week", "2024-06-14", "2024-06-15"),
        ("last week's Monday", "2024-06-10", "2024-06-11"),
        ("next Monday", "2024-06-24", "2024-06-25"),
        ("last week", "2024-06-10", "2024-06-17"),
        ("the week before last", "2024-06-03", "2024-06-10"),
        ("over the weekend", "2024-06-15", "2024-06-17"),
        ("this month", "2024-06-01", "2024-07-01"),
        ("next year", "2025-01-01", "2026-01-01"),
        ("last spring", "2024-03-01", "2024-06-01"),
        ("last summer", "2023-06-01", "2023-09-01"),
        ("the summer of 2021", "2021-06-01", "2021-09-01"),
        ("last winter", "2023-12-01", "2024-03-01"),
        ("three days ago", "2024-06-16", "2024-06-17"),
        ("two weeks ago", "2024-06-02", "2024-06-09"),
        ("a couple of days ago", "2024-06-16", "2024-06-19"),
        ("four years ago", "2020-01-01", "2021-01-01"),
        ("in the last 10 days", "2024-06-09", TODAY_ENDS),
        ("over the past week", "2024-06-12", TODAY_ENDS),
        ("March last year", "2023-03-01", "2023-04-01"),
        ("last year's Christmas party", "2023-12-24", "2023-12-27"),
        ("since Easter 2023", "2023-04-07", TODAY_ENDS),
        ("on Thanksgiving", "2023-11-23", "2023-11-24"),
    ],
)
def test_relative_dates_in_english(text: str, start: str, end: str) -> None:
    assert read(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("early March", "2024-03-01", "2024-03-11"),
        ("mid-January", "2024-01-11", "2024-01-21"),
        ("in late February 2023", "2023-02-21", "2023-03-01"),
        ("mid-2020", "2020-05-01", "2020-09-01"),
        ("the end of last month", "2024-05-21", "2024-06-01"),
        ("the first week of May", "2024-05-01", "2024-05-08"),
        ("the last Friday of March 2023", "2023-03-31", "2023-04-01"),
        ("the morning of May 8", "2024-05-08 05:00", "2024-05-08 12:00"),
        ("between May and July 2023", "2023-05-01", "2023-08-01"),
        ("from December to February", "2023-12-01", "2024-03-01"),
        ("Dec 2022 to Feb", "2022-12-01", "2023-03-01"),
        ("2019-2021", "2019-01-01", "2022-01-01"),
        ("the week after 8 May", "2024-05-09", "2024-05-16"),
        ("two days before May 3", "2024-05-01", "2024-05-02"),
        ("since March", "2024-03-01", TODAY_ENDS),
        ("before June 2022", EVER, "2022-06-01"),
        ("until June 2022", EVER, "2022-07-01"),
        ("after 8 May", "2024-05-09", TODAY_ENDS),
    ],
)
def test_parts_ranges_and_bounds_in_english(text: str, start: str, end: str) -> None:
    assert read(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2023年5月8日我们去了哪里", "2023-05-08", "2023-05-09"),
        ("5月8号下午谁来过", "2024-05-08 12:00", "2024-05-08 18:00"),
        ("二〇二三年五月", "2023-05-01", "2023-06-01"),
        ("五月份的账单", "2024-05-01", "2024-06-01"),
        ("十月一日", "2023-10-01", "2023-10-02"),
        ("三月中旬", "2024-03-11", "2024-03-21"),
        ("1月初", "2024-01-01", "2024-01-11"),
        ("2月11日至13日", "2024-02-11", "2024-02-14"),
        ("２０２４年３月", "2024-03-01", "2024-04-01"),
        ("2021年夏天", "2021-06-01", "2021-09-01"),
        ("昨天晚上吃了什么", "2024-06-18 17:00", "2024-06-19"),
        ("昨晚", "2024-06-18 17:00", "2024-06-19"),
        ("前天", "2024-06-17", "2024-06-18"),
        ("上周", "2024-06-10", "2024-06-17"),
        ("上上周", "2024-06-03", "2024-06-10"),
        ("上周五见了谁", "2024-06-14", "2024-06-15"),
        ("周末去哪了", "2024-06-15", "2024-06-17"),
        ("上个月", "2024-05-01", "2024-06-01"),
        ("上个月底", "2024-05-21", "2024-06-01"),
        ("上个月8号", "2024-05-08", "2024-05-09"),
        ("去年", "2023-01-01", "2024-01-01"),
        ("前年", "2022-01-01", "2023-01-01"),
        ("去年三月", "2023-03-01", "2023-04-01"),
        ("今年春天", "2024-03-01", "2024-06-01"),
        ("去年的国庆节", "2023-10-01", "2023-10-08"),
        ("今年春节", "2024-02-09", "2024-02-18"),
        ("去年中秋节", "2023-09-29", "2023-09-30"),
        ("两周前", "2024-06-02", "2024-06-09"),
        ("三天前", "2024-06-16", "2024-06-17"),
        ("最近一周", "2024-06-12", TODAY_ENDS),
        ("过去三个月", "2024-03-19", TODAY_ENDS),
        ("上半年", "2024-01-01", "2024-07-01"),
        ("三月到五月", "2024-03-01", "2024-06-01"),
        ("五月和六月之间", "2024-05-01", "2024-07-01"),
        ("去年以来", "2023-01-01", TODAY_ENDS),
        ("五月以前", EVER, "2024-05-01"),
        ("周五之前晚上", EVER, "2024-06-14"),
        ("8月的最后一周", "2023-08-25", "2023-09-01"),
    ],
)
def test_dates_in_chinese(text: str, start: str, end: str) -> None:
    assert read(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Was war letzte Woche?", "2024-06-10", "2024-06-17"),
        ("das Treffen am 3. März 2023", "2023-03-03", "2023-03-04"),
        ("vor fünf Tagen", "2024-06-14", "2024-06-15"),
        ("seit Mai", "2024-05-01", TODAY_ENDS),
        ("la semaine dernière", "2024-06-10", "2024-06-17"),
        ("il y a trois jours", "2024-06-16", "2024-06-17"),
        ("le 3 mars 2023", "2023-03-03", "2023-03-04"),
        ("en mayo de 2023", "2023-05-01", "2023-06-01"),
        ("hace dos semanas", "2024-06-02", "2024-06-09"),
        ("el año pasado", "2023-01-01", "2024-01-01"),
        ("la settimana scorsa", "2024-06-10", "2024-06-17"),
        ("a semana passada", "2024-06-10", "2024-06-17"),
        ("в прошлом месяце", "2024-05-01", "2024-06-01"),
        ("13 июля 2023", "2023-07-13", "2023-07-14"),
        ("先週の会議", "2024-06-10", "2024-06-17"),
        ("2023年5月3日の会議", "2023-05-03", "2023-05-04"),
        ("3日前", "2024-06-16", "2024-06-17"),
        ("지난주 회의", "2024-06-10", "2024-06-17"),
        ("5월 8일", "2024-05-08", "2024-05-09"),
    ],
)
def test_common_dates_in_other_languages(text: str, start: str, end: str) -> None:
    assert read(text) == [(start, end)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "You may go, and I may have two dogs.",
        "We march on; the march 20 miles long.",
        "June said hello. April likes May.",
        "iPhone 15, version 3.14, Office 2021, Windows 2000",
        "Call +1 2023-555-1234 or 555-123-4567.",
        "192.168.2022.1, v2023.05.01 and ISO 8601-2019",
        "I walked 2000 steps; in 2000 words, from 2000 to 3000 people",
        "Wait a second, the third one is in room 2020 at 10:30.",
        "How often a week do I run, every Friday or on Saturday mornings?",
        "spring boots, a fall, and winter is my favourite",
        "我三个月没见他，八号楼，三年级，两周一次，每周五",
        "马上周知，晚上月亮",
        "31/31/2023 and 2023-13-45",
        "Wie geht es dir hier? Je mange le mars.",
    ],
)
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert spans(text, now=NOW) == ()


def test_several_are_given_in_the_order_they_are_said() -> None:
    assert [s.text for s in spans("Was it last week or on 8 May?", now=NOW)] == [
        "last week",
        "8 May",
    ]


def test_those_of_a_list_share_the_year() -> None:
    assert read("in March and April 2022") == [
        ("2022-03-01", "2022-04-01"),
        ("2022-04-01", "2022-05-01"),
    ]


def test_the_text_is_what_was_said_with_all_that_changes_it() -> None:
    assert one("Did we meet in the first week of May 2023, or not?").text == (
        "the first week of May 2023"
    )
    assert one("去年的国庆节去了哪里").text == "去年的国庆节"


def test_what_is_bounded_on_one_side_says_so() -> None:
    assert one("since March").open_ended
    assert one("五月以前").open_ended
    assert not one("in March").open_ended


def test_days_are_those_of_the_zone_of_now() -> None:
    tokyo = datetime(2024, 6, 19, 23, 30, tzinfo=UTC).astimezone(ZoneInfo("Asia/Tokyo"))
    (span,) = spans("yesterday", now=tokyo)
    assert span.start == datetime(2024, 6, 18, 15, tzinfo=UTC)
    assert span.start.tzinfo is tokyo.tzinfo


def test_a_day_on_which_clocks_change_has_23_or_25_hours() -> None:
    now = datetime(2024, 11, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    for day, hours in (("31 March 2024", 23), ("27 October 2024", 25)):
        (span,) = spans(day, now=now)
        assert span.end.astimezone(UTC) - span.start.astimezone(UTC) == timedelta(hours=hours)


def test_a_29th_of_february_is_that_of_the_last_leap_year() -> None:
    assert read("29 February", datetime(2023, 6, 1, tzinfo=UTC)) == [("2020-02-29", "2020-03-01")]


def test_this_winter_in_january_began_last_year() -> None:
    assert read("this winter", datetime(2024, 1, 9, tzinfo=UTC)) == [("2023-12-01", "2024-03-01")]


# --- whatever is said, and whenever --------------------------------------------------------------

WORDS = st.sampled_from(
    """early mid late the end of last this next since before until between and to in on at May
    March 8th 31 2023 29 February Friday week month year spring Christmas two a couple days ago
    morning 2023-05-08 3/14 yesterday night first weekend Q3 1990s , - ? 去年 上 个月 三月 初 底 到
    以来 之前 8号 周五 上周 晚上 春节 十 半 年 前 vor Tagen seit Mai hace semanas назад 先週
    3日前""".split()  # noqa: SIM905
)
ZONES = st.sampled_from(
    [UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))]
    + [ZoneInfo(n) for n in ("Europe/Berlin", "America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia")]
)
MOMENTS = st.datetimes(timezones=ZONES)


@given(st.one_of(st.text(), st.lists(WORDS, max_size=9).map(" ".join)), MOMENTS)
@example("yesterday, since May, last week and 29 February", datetime.min.replace(tzinfo=UTC))
@example("tomorrow, since May, next week and next year", datetime.max.replace(tzinfo=UTC))
@example("30 minutes ago", datetime(2024, 3, 31, 3, 15, tzinfo=ZoneInfo("Europe/Berlin")))
@example("\ud800 yesterday \x00", NOW)
def test_every_span_is_ordered_and_nothing_raises(text: str, now: datetime) -> None:
    for span in spans(text, now=now):
        assert span.start.astimezone(UTC) < span.end.astimezone(UTC)
        assert span.start.tzinfo is span.end.tzinfo is now.tzinfo
        assert span.text
        assert span.text in text


@given(st.tuples(st.sampled_from(["", " "]), st.lists(WORDS, max_size=12)), MOMENTS)
@example((" ", ["Monday morning of May 8"]), NOW)
def test_expressions_do_not_overlap_in_the_text(said: tuple[str, list[str]], now: datetime) -> None:
    space, words = said
    text, at = space.join(words), 0
    for span in spans(text, now=now):
        at = text.index(span.text, at) + len(span.text)


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_a_date_written_out_is_that_day_however_it_is_written(day: date) -> None:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    for text in (
        day.isoformat(),
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ):
        assert [(s.start, s.end) for s in spans(text, now=NOW)] == [
            (start, start + timedelta(days=1))
        ], text
