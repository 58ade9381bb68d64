"""What the readers of dates share: what a rule says, and when that is, seen from now.

A rule is a pattern and what to make of its match: a `Period`; something that comes once in every
year, month or week (`Within`), which a neighbouring word may place ("last year", "of last week");
or None, when it was no date after all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Literal, NamedTuple

from memory.dates import calendar
from memory.dates.calendar import DAY, Period

Grain = Literal["week", "month", "year"]


class Within(NamedTuple):
    """What comes once in a period: given the start of one, when it is in that one."""

    grain: Grain
    at: Callable[[datetime], Period]

    def last(self, now: datetime) -> Period:
        """The last that has begun; of the days of a week, the last before today."""
        before = calendar.midnight(now) if self.grain == "week" else now + calendar.UNITS["minute"]
        return self._first(range(0, -9, -1), now, lambda found: found.start < before)

    def ended(self, now: datetime) -> Period:
        return self._first(range(0, -9, -1), now, lambda found: found.end <= calendar.midnight(now))

    def current(self, now: datetime) -> Period:
        """In this year, month or week; or that which began in the last one and lasts."""
        try:
            found = self.at(enclosing(now, self.grain, -1).start)
        except ValueError:
            pass
        else:
            if found.start <= now < found.end:
                return found
        return self.at(enclosing(now, self.grain, 0).start)

    def next(self, now: datetime) -> Period:
        return self._first(range(9), now, lambda found: found.start > now)

    def near(self, at: datetime, *, after: bool) -> Period:
        """The first from then on, or the last until then."""
        if after:
            return self._first(range(-1, 9), at, lambda found: found.start >= at)
        return self._first(range(1, -9, -1), at, lambda found: found.start <= at)

    def _first(
        self, offsets: Iterable[int], now: datetime, wanted: Callable[[Period], bool]
    ) -> Period:
        for offset in offsets:
            try:
                found = self.at(enclosing(now, self.grain, offset).start)
            except ValueError:
                continue
            if wanted(found):
                return found
        raise ValueError("not a date")


def enclosing(at: datetime, grain: Grain, offset: int) -> Period:
    if grain == "year":
        return calendar.year(at.year + offset)
    return (calendar.week if grain == "week" else calendar.month)(at, offset)


def is_whole(period: Period, grain: Grain) -> bool:
    return period == enclosing(period.start, grain, 0)


Meant = Period | Within | None
Rule = tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Meant]]


class Found(NamedTuple):
    """A time expression: where it stands, when it is, and what it is in other periods."""

    begin: int
    end: int
    period: Period
    within: Within | None = None
    open_ended: bool = False


def found(text: str, now: datetime, rules: Iterable[Rule]) -> list[Found]:
    """What the rules find, in order; of what overlaps, what begins first and is longest."""
    every: list[Found] = []
    for pattern, mean in rules:
        for match in pattern.finditer(text):
            try:
                meant = mean(match, now)
                if isinstance(meant, Within):
                    every.append(Found(*match.span(), meant.last(now), meant))
                elif meant is not None:
                    every.append(Found(*match.span(), meant))
            except (ValueError, OverflowError):
                continue
    every.sort(key=lambda each: (each.begin, -each.end))
    kept: list[Found] = []
    for each in every:
        if not kept or each.begin >= kept[-1].end:
            kept.append(each)
    return kept


def of_which(which: str | None, within: Within, now: datetime) -> Meant:
    """'last', 'this' or 'next' of what comes again and again; as it is without such a word."""
    if which is None:
        return within
    return {"last": within.ended, "this": within.current, "next": within.next}[which](now)


Change = tuple[
    Literal["before", "after"],
    re.Pattern[str],
    Callable[[Period, re.Match[str], datetime], Period | None],
]
"""Words beside a time expression that make another of it: `early`, `of last week`, 中旬."""


class Language(NamedTuple):
    """How one language speaks of time.

    Patterns that stand before something end in `$`. `bounds` name their groups since, after,
    before and until. `between_and` goes with `between` before it or `between_after` behind it:
    `between A and B`, A 和 B 之间; `to` is `A to B`. `also` may stand between two that share a
    year, `join` between a thing and the period it is in.
    """

    gate: re.Pattern[str]
    rules: tuple[Rule, ...]
    changes: tuple[Change, ...]
    bounds: tuple[tuple[Literal["before", "after"], re.Pattern[str]], ...]
    between: re.Pattern[str]
    between_after: re.Pattern[str]
    between_and: re.Pattern[str]
    to: re.Pattern[str]
    also: re.Pattern[str]
    join: re.Pattern[str]


NEVER: Final = re.compile(r"(?!)")
"""What a language does not say."""


def changed(within: Within, change: Callable[..., Period | None], *context: object) -> Within:
    """The same change, in whatever period it is."""

    def at(start: datetime) -> Period:
        period = change(within.at(start), *context)
        if period is None:
            raise ValueError("not a date")
        return period

    return Within(within.grain, at)


# --- what comes once in a year -----------------------------------------------------------------


def yearly(at: Callable[[int], Period], year: int | None = None) -> Period | Within:
    if year is not None:
        return at(year)
    return Within("year", lambda start: at(start.year))


def in_month(month: int, year: int | None = None) -> Period | Within:
    return yearly(lambda of: calendar.months(of, month), year)


def on_day(
    month: int, day: int, year: int | None = None, last: int | None = None
) -> Period | Within:
    """A day of the year, or with `last` all days until that one of the same month."""
    return yearly(
        lambda of: calendar.days(
            calendar.date(of, month, day), calendar.date(of, month, last if last else day)
        ),
        year,
    )


def on_weekday(which: int) -> Within:
    return Within("week", lambda start: calendar.day(start, which))


def on_weekend() -> Within:
    return Within("week", calendar.weekend)


def in_season(which: int, year: int | None = None) -> Period | Within:
    return yearly(lambda of: calendar.season(of, which), year)


def in_quarter(which: int, year: int | None = None) -> Period | Within:
    """The first (1) to fourth quarter."""
    return yearly(lambda of: calendar.months(of, 3 * which - 2, 3), year)


def in_half(which: int, year: int | None = None) -> Period | Within:
    return yearly(lambda of: calendar.months(of, 6 * which - 5, 6), year)


def full_year(number: str) -> int:
    """`23` is 2023, `98` is 1998."""
    year = int(number)
    return year if len(number) > 2 else year + (1900 if year >= 70 else 2000)


# --- times of day ------------------------------------------------------------------------------

HOURS: Final = {
    "dawn": (0, 7),
    "morning": (5, 12),
    "noon": (11, 15),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (19, 29),
}
"""From which hour to which; a night ends in the next morning."""


def part_of_day(day: Period, part: str) -> Period:
    first, last = HOURS[part]
    return Period(day.start + first * DAY / 24, day.start + last * DAY / 24)


# --- written in figures ------------------------------------------------------------------------

_ISO = re.compile(
    r"(?<![a-zA-Z\d_./:-])(?P<year>(?:19|20)\d\d)(?P<sep>[-/.])(?P<month>1[0-2]|0?[1-9])"
    r"(?:(?P=sep)(?P<day>3[01]|[12]\d|0?[1-9]))?(?!\d|[-/.:]\d|[-_/]?[a-su-zA-SU-Z_])"
)
_SLASHED = re.compile(
    r"(?<![\w./:-])(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<year>(?:19|20)\d\d)"
    r"(?![\w]|[-/.:]\d)"
)
_SHORT = re.compile(
    r"(?<=\s)(?P<a>\d{1,2})/(?P<b>\d{1,2})(?:/(?P<year>\d\d))?(?![\w%]|[-/.:]\d)", re.IGNORECASE
)
_BEFORE_SHORT = re.compile(r"\b(?:on|since|before|after|until|by|from|to|of)\s+$", re.IGNORECASE)


def _iso(match: re.Match[str], now: datetime) -> Meant:
    year, month = int(match["year"]), int(match["month"])
    if match["day"]:
        return on_day(month, int(match["day"]), year)
    return in_month(month, year) if match["sep"] == "-" and len(match["month"]) == 2 else None


def _slashed(match: re.Match[str], now: datetime) -> Meant:
    """Month first with slashes, day first with full stops or hyphens; the other way if it must."""
    a, b = int(match["a"]), int(match["b"])
    month, day = (a, b) if (match["sep"] == "/" and a <= 12) or b > 12 else (b, a)
    return on_day(month, day, int(match["year"]))


def _short(match: re.Match[str], now: datetime) -> Meant:
    year = match["year"] and full_year(match["year"])
    if not year and not _BEFORE_SHORT.search(match.string[: match.start()][-12:]):
        return None
    a, b = int(match["a"]), int(match["b"])
    month, day = (a, b) if a <= 12 else (b, a)
    return on_day(month, day, year or None)


RULES: Final[tuple[Rule, ...]] = ((_ISO, _iso), (_SLASHED, _slashed), (_SHORT, _short))
