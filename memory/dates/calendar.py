"""The calendar that dates are read with: periods as half-open intervals of wall time.

Weeks begin on Monday; seasons are those of the northern hemisphere and begin with March, June,
September and December, a winter bearing the year in which it begins. Everything here is the wall
clock of whoever asks, written as UTC: `memory.dates` puts its zone in place. What no calendar has
(a 30th of February, a year 10000) raises ValueError or OverflowError, which the callers take for
"not a date".
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Final, NamedTuple

DAY: Final = timedelta(days=1)
FIRST: Final = datetime(2, 1, 1, tzinfo=UTC)
LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""The first and the last moment read: a year from the edges of time, to leave room for zones."""


def date(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


class Period(NamedTuple):
    """From `start` until just before `end`, in wall time."""

    start: datetime
    end: datetime

    def shifted(self, by: timedelta) -> Period:
        return Period(self.start + by, self.end + by)


class Season(IntEnum):
    """A season, as the month it begins with."""

    SPRING = 3
    SUMMER = 6
    AUTUMN = 9
    WINTER = 12


def midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def day(at: datetime, offset: int = 0) -> Period:
    start = midnight(at) + offset * DAY
    return Period(start, start + DAY)


def days(first: datetime, last: datetime) -> Period:
    """All of the days from the first to the last."""
    return Period(midnight(first), midnight(last) + DAY)


def week(at: datetime, offset: int = 0) -> Period:
    start = midnight(at) + (7 * offset - at.weekday()) * DAY
    return Period(start, start + 7 * DAY)


def weekend(at: datetime, offset: int = 0) -> Period:
    """Saturday and Sunday of the week."""
    start, end = week(at, offset)
    return Period(start + 5 * DAY, end)


def months(year: int, first: int, number: int = 1) -> Period:
    """Whole months; `first` may be beyond the year's twelve."""
    return Period(_first_of(year * 12 + first - 1), _first_of(year * 12 + first - 1 + number))


def _first_of(number: int) -> datetime:
    """The first day of a month, counted from the year 0."""
    return date(number // 12, number % 12 + 1, 1)


def month(at: datetime, offset: int = 0) -> Period:
    return months(at.year, at.month + offset)


def quarter(at: datetime, offset: int = 0) -> Period:
    return months(at.year, (at.month - 1) // 3 * 3 + 1 + 3 * offset, 3)


def year(number: int) -> Period:
    return months(number, 1, 12)


def season(year: int, which: int) -> Period:
    return months(year, which, 3)


def months_before(at: datetime, number: int) -> datetime:
    """The same day of an earlier month, or that month's last one."""
    first, last = months(at.year, at.month - number)
    return at.replace(year=first.year, month=first.month, day=min(at.day, (last - DAY).day), fold=0)


def weekday(at: datetime, which: int, *, week_offset: int) -> Period:
    """A day of the week (Monday is 0) of this week or another."""
    return day(week(at, week_offset).start, which)


def last_weekday(at: datetime, which: int) -> Period:
    """The last such day before today."""
    return day(at, -((at.weekday() - which - 1) % 7 + 1))


def next_weekday(at: datetime, which: int) -> Period:
    """The first such day after today."""
    return day(at, (which - at.weekday() - 1) % 7 + 1)


def latest(now: datetime, in_year: Callable[[int], Period]) -> Period:
    """What comes every year (or, as a 29th of February, in some): the last that has begun."""
    for back in range(9):
        try:
            found = in_year(now.year - back)
        except ValueError:
            continue
        if found.start <= now:
            return found
    raise ValueError("not a date")


def within(whole: Period, third: int) -> Period:
    """The first, middle or last third (0, 1, 2): ten days of a month, four months of a year."""
    length = (whole.end - whole.start) // DAY
    if 28 <= length <= 31:
        cuts = [whole.start, whole.start + 10 * DAY, whole.start + 20 * DAY, whole.end]
    elif length >= 365:
        cuts = [*(months(whole.start.year, whole.start.month + 4 * i).start for i in range(4))]
    else:
        cuts = [whole.start + (length * i // 3) * DAY for i in range(3)] + [whole.end]
    return Period(cuts[third], cuts[third + 1])


def half(whole: Period, which: int) -> Period:
    """The first or second half (0, 1)."""
    length = (whole.end - whole.start) // DAY
    middle = (
        months(whole.start.year, whole.start.month + 6).start
        if length >= 365
        else whole.start + (length // 2) * DAY
    )
    return Period(whole.start, middle) if which == 0 else Period(middle, whole.end)


def back(now: datetime, number: float, unit: str) -> datetime:
    """A moment so many units before now; `unit` is one of UNITS."""
    if unit in ("month", "year"):
        number = number * (12 if unit == "year" else 1)
        at = months_before(now, int(number))
        return at - (number - int(number)) * 30 * DAY
    return now - number * UNITS[unit]


UNITS: Final = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": DAY,
    "week": 7 * DAY,
    "month": 30 * DAY,
    "year": 365 * DAY,
}


def ago(now: datetime, least: float, most: float, unit: str) -> Period:
    """From `most` to `least` units ago, and as much around it as people who count in that unit
    leave open: the day itself, half a week to either side, the month, the calendar year."""
    early, late = back(now, most, unit), back(now, least, unit)
    if unit in ("minute", "hour"):
        return Period(early - UNITS[unit] / 2, late + UNITS[unit] / 2)
    if unit == "year" and least == int(least):
        return Period(year(early.year).start, year(late.year).end)
    slack = {"day": 0, "week": 3, "month": 15, "year": 60}[unit] * min(1, least)
    return days(early - slack * DAY, late + slack * DAY)


def lasting(now: datetime, number: float, unit: str) -> Period:
    """The last so many units, up to and with today (or this hour)."""
    start = back(now, number, unit)
    if unit in ("minute", "hour"):
        return Period(start, now + UNITS["minute"])
    return Period(midnight(start), midnight(now) + DAY)


def coming(now: datetime, number: float, unit: str) -> Period:
    """The next so many units, from now."""
    if unit in ("month", "year"):
        months_ahead = int(number * (12 if unit == "year" else 1))
        return Period(now, months_before(now, -months_ahead))
    return Period(now, now + number * UNITS[unit])


# --- feasts ------------------------------------------------------------------------------------


def nth_weekday(year: int, month: int, which: int, nth: int) -> datetime:
    """The nth Monday (0) … Sunday (6) of a month; the last one for -1."""
    first, after = months(year, month)
    if nth > 0:
        return first + ((which - first.weekday()) % 7 + 7 * (nth - 1)) * DAY
    last = after - DAY
    return last - ((last.weekday() - which) % 7) * DAY


def easter(year: int) -> datetime:
    """Easter Sunday (the Gregorian computus of Meeus, Jones and Butcher)."""
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (32 + 2 * e + 2 * i - h - k) % 7
    n = (a + 11 * h + 22 * m) // 451
    month, day = divmod(h + m - 7 * n + 114, 31)
    return date(year, month, day + 1)


# The new year, the fifth of the fifth month and the fifteenth of the eighth, 2000 to 2050.
_LUNAR: Final = [
    "205606912",
    "1246251001",
    "212615921",
    "201604911",
    "122622928",
    "209611918",
    "1295311006",
    "218619925",
    "207608914",
    "1265281003",
    "214616922",
    "203606912",
    "123623930",
    "210612919",
    "131602908",
    "219620927",
    "208609915",
    "1285301004",
    "216618924",
    "205607913",
    "1256251001",
    "212614921",
    "201603910",
    "122622929",
    "210610917",
    "1295311006",
    "217619925",
    "206609915",
    "1265281003",
    "213616922",
    "203605912",
    "1236241001",
    "211612919",
    "131601908",
    "219620927",
    "208610916",
    "1285301004",
    "215618924",
    "204607913",
    "1245271002",
    "212614920",
    "201603910",
    "122622928",
    "210611917",
    "1305311005",
    "217619925",
    "206608915",
    "1265291004",
    "214615922",
    "202604911",
    "123623930",
]


def lunar(year: int, which: int) -> datetime:
    """The Chinese new year, dragon boat or mid-autumn day (0, 1, 2). Known for 2000 to 2050."""
    if not 0 <= year - 2000 < len(_LUNAR):
        raise ValueError("not a date")
    told = _LUNAR[year - 2000]
    told = (told[:3], told[3:6], told[6:])[which]
    return date(year, int(told[:-2]), int(told[-2:]))
