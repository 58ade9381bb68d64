"""English dates: rules for what stands alone, and the words before and after that change it.

What is also another word is a date only beside one that makes it one: `may` and `march` need "in",
a day or a year; `2021` needs "in", "since" or "the summer of", and is none before "words".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from memory.dates import calendar
from memory.dates.calendar import DAY, Period, Season
from memory.dates.reading import (
    NEVER,
    Language,
    Meant,
    Rule,
    Within,
    full_year,
    in_half,
    in_month,
    in_quarter,
    in_season,
    of_which,
    on_day,
    on_weekday,
    on_weekend,
    part_of_day,
    yearly,
)

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        [
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ],
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        [
            "monday mon",
            "tuesday tues tue",
            "wednesday weds wed",
            "thursday thurs thur thu",
            "friday fri",
            "saturday sat",
            "sunday sun",
        ]
    )
    for name in names.split()
}
_NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        [
            "a",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
} | {"a": 1, "an": 1}
_SEASONS: Final = {
    "spring": Season.SPRING,
    "summer": Season.SUMMER,
    "autumn": Season.AUTUMN,
    "fall": Season.AUTUMN,
    "winter": Season.WINTER,
}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_MONTH = rf"(?P<month>{_any(MONTHS)})\b\.?"
_DASH = "-\u2013\u2014"
_DAY = r"(?P<day>[12]\d|3[01]|0?[1-9])(?P<th>st|nd|rd|th)?(?![\d:%]|[.,/]\d)"
_UNTIL = (
    rf"(?:\s*(?:[{_DASH}]|to|and|through|until)\s*(?:the\s+)?(?P<last>[12]\d|3[01]|0?[1-9])"
    r"(?:st|nd|rd|th)?\b(?![:%]|[.,/]\d))?"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)\b(?![.,:/-]?\d|%)"
_OF_YEAR = rf"(?:,?\s+(?:of\s+|in\s+)?{_YEAR})?"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WHICH = r"(?:(?P<which>this\s+past|last|this|next)\s+)"
_N = (
    rf"(?P<n>\d{{1,3}}|half\s+an?|(?:a\s+)?couple(?:\s+of)?|(?:a\s+)?few|several|some|"
    rf"{_any(_NUMBERS)})"
)
_UNIT = r"(?P<unit>minute|hour|day|night|week|fortnight|month|year|decade)"


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _before(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - 40) : match.start()]


def _number(word: str) -> tuple[float, float]:
    """The least and the most that is meant."""
    word = " ".join(word.lower().split())
    if word.startswith("half"):
        return 0.5, 0.5
    if "couple" in word:
        return 1, 3
    if "few" in word or word in ("several", "some"):
        return 2, 5
    number = int(word) if word.isdecimal() else _NUMBERS[word]
    return number, number


def _unit(word: str) -> tuple[str, int]:
    word = word.lower()
    many = {"fortnight": ("week", 2), "decade": ("year", 10), "night": ("day", 1)}
    return many.get(word, (word, 1))


def _which(match: re.Match[str]) -> str | None:
    said = match["which"]
    if said is None:
        return None
    said = said.lower().split()[-1]
    return "last" if said in ("past", "previous") else said


# --- days and moments, seen from now -------------------------------------------------------------


def _near(match: re.Match[str], now: datetime) -> Meant:
    said = " ".join(match.group().lower().split())
    if said in ("last night", "last evening"):
        return part_of_day(calendar.day(now, -1), said.split()[1])
    if said == "tonight":
        return part_of_day(calendar.day(now), "evening")
    if said.startswith("this "):
        return part_of_day(calendar.day(now), said.split()[1])
    if said == "the other day":
        return calendar.ago(now, 1, 7, "day")
    return calendar.day(now, _DAYS[said])


_DAYS: Final = {
    "today": 0,
    "yesterday": -1,
    "tomorrow": 1,
    "the day before yesterday": -2,
    "day before yesterday": -2,
    "the day after tomorrow": 2,
    "day after tomorrow": 2,
}


def _ago(match: re.Match[str], now: datetime) -> Meant:
    least, most = _number(match["n"])
    unit, times = _unit(match["unit"])
    half = 0.5 if match["half"] else 0
    return calendar.ago(now, (least + half) * times, (most + half) * times, unit)


def _lasting(match: re.Match[str], now: datetime) -> Meant:
    unit, times = _unit(match["unit"])
    number = _number(match["n"] or "one")[1] * times
    return calendar.lasting(now, number + (unit == "day" and number == 1), unit)


def _coming(match: re.Match[str], now: datetime) -> Meant:
    unit, times = _unit(match["unit"])
    return calendar.coming(now, _number(match["n"])[1] * times, unit)


def _from_now(match: re.Match[str], now: datetime) -> Meant:
    unit, times = _unit(match["unit"])
    number = int(_number(match["n"])[1] * times)
    if unit in ("month", "year"):
        return calendar.day(calendar.months_before(now, -number * (12 if unit == "year" else 1)))
    return calendar.day(now + number * calendar.UNITS[unit])


def _this_time(match: re.Match[str], now: datetime) -> Meant:
    unit = match["unit"].lower()
    at = calendar.back(now, 1, unit)
    slack = {"week": 1, "month": 4, "year": 15}[unit]
    return calendar.days(at - slack * DAY, at + slack * DAY)


# --- weeks, months, years --------------------------------------------------------------------


def _calendar_unit(match: re.Match[str], now: datetime) -> Meant:
    which = _which(match)
    offset = {"last": -1, "this": 0, "next": 1}[which or "this"]
    unit = match["unit"].lower()
    if unit == "weekend":
        return of_which(which, on_weekend(), now)
    if unit == "year":
        return calendar.year(now.year + offset)
    return {"week": calendar.week, "month": calendar.month, "quarter": calendar.quarter}[unit](
        now, offset
    )


def _before_last(match: re.Match[str], now: datetime) -> Meant:
    unit = match["unit"].lower()
    if unit in _SEASONS:
        return calendar.season(
            _ended(in_season(_SEASONS[unit]), now).start.year - 1, _SEASONS[unit]
        )
    if unit == "weekend":
        return on_weekend().ended(now).shifted(-7 * DAY)
    if unit == "year":
        return calendar.year(now.year - 2)
    return (calendar.week if unit == "week" else calendar.month)(now, -2)


def _ended(meant: Period | Within, now: datetime) -> Period:
    return meant.ended(now) if isinstance(meant, Within) else meant


def _weekend(match: re.Match[str], now: datetime) -> Meant:
    return on_weekend()


def _weekday(match: re.Match[str], now: datetime) -> Meant:
    name = match["weekday"]
    which = _which(match)
    if len(name) < 6 and not which and not _ON.search(_before(match)):
        return None
    before, after = _before(match), match.string[match.end() :][:20]
    if (
        _EVERY.search(before)
        or _USUALLY.match(after)
        or (_OF.match(after) and (which == "last" or _NTH.search(before)))
    ):
        return None
    return of_which(which, on_weekday(_WEEKDAYS[name.lower()]), now)


_ON = _rule(r"\b(?:on|since|until|by|before|after)\s+$")
_OF = _rule(r"\s+(?:of|in)\s+(?!(?:last|this|next|the)\s+week\b)")
_NTH = _rule(r"\b(?:first|second|third|fourth|fifth|[1-5](?:st|nd|rd|th))\s+$")
_USUALLY = _rule(r"\s+(?:morning|afternoon|evening|night)s\b")
_EVERY = _rule(r"\b(?:every|each|good|black|ash|easter|cyber|ruby)\s+(?:other\s+)?$")


# --- dates -----------------------------------------------------------------------------------


def _month_day(match: re.Match[str], now: datetime) -> Meant:
    year = match["year"] and int(match["year"])
    last = match["last"] and int(match["last"])
    month, day = MONTHS[match["month"].lower()], int(match["day"])
    if (
        match["month"] in ("may", "march", "mar")
        and not (year or match["th"])
        and not _CUE.search(_before(match))
    ):
        return None
    return on_day(month, day, year or None, last if last and last > day else None)


def _day_month(match: re.Match[str], now: datetime) -> Meant:
    if (
        match["month"] in ("may", "march")
        and not (match["year"] or match["of"])
        and not _CUE.search(_before(match))
    ):
        return None
    year = match["year"] and int(match["year"])
    last = match["last"] and int(match["last"])
    month, day = MONTHS[match["month"].lower()], int(match["day"])
    return on_day(month, day, year or None, last if last and last > day else None)


def _one_month(match: re.Match[str], now: datetime) -> Meant:
    name = match["month"]
    month = MONTHS[name.lower()]
    if match["year"]:
        return in_month(month, full_year(match["year"]))
    which = _which(match)
    if name.lower() in _WORDS and not which:
        before, after = _before(match), match.string[match.end() : match.end() + 20]
        if not (
            (_CUE.search(before) and not (name.islower() and _VERB.match(after)))
            or (_OTHER_MONTH.search(before) and not name.islower())
            or (not name.islower() and _THE.search(before) and _NOUN.match(after))
            or (_NEXT_MONTH.match(after) and not name.islower())
            or _LAST_YEAR.match(after)
        ):
            return None
    within = in_month(month)
    return of_which(which, within, now) if isinstance(within, Within) else within


_WORDS: Final = frozenset(MONTHS) - {
    *("january", "february", "july", "september", "october", "november", "december")
}
"""Names of months that are also other words, or names of people."""
_CUE = _rule(
    r"\b(?:in|during|since|until|till|by|before|after|from|between|of|throughout|early|mid|late|"
    r"on|around|month\s+of)[\s-]+(?:the\s+)?(?:(?:beginning|start|end|middle)\s+of\s+)?$"
)
_VERB = _rule(
    r"\s+(?:be|have|not|also|need|want|help|cause|contain|still|never|well|as|only|i|we)\b"
)
_OTHER_MONTH = _rule(
    rf"\b(?:{_any(MONTHS)})\.?(?:,?\s+(?:19|20)\d\d)?\s*(?:,|and|or|to|through|until|-|–|/|&|,\s*and|,\s*or)\s*"
    r"(?:early|mid|late|the\s+end\s+of)?[\s-]*$"
)
_NEXT_MONTH = _rule(
    rf"\s*(?:,|and|or|to|through|until|-|–|/|&)\s*(?:early|mid|late)?[\s-]*(?:{_any(MONTHS)})\b"
)
_THE = _rule(r"\bthe\s+$")
_NOUN = _rule(r"\s+(?!on\b|for\b|of\b|to\b|from\b)[a-z]{3,}")
_LAST_YEAR = _rule(r",?\s+(?:of\s+)?(?:last|this|next)\s+year\b")


def _year(match: re.Match[str], now: datetime) -> Meant:
    if _IN_YEAR.search(_before(match)) or _ITS.match(match.string[match.end() :][:12]):
        return calendar.year(int(match["year"]))
    return None


_IN_YEAR = _rule(
    r"\b(?:in|since|before|after|until|till|during|from|between|of|by|throughout|early|mid|late|for|"
    r"year|around|(?:19|20)\d\d\s*(?:,|and|or|to|until|-|–)|late[\s-]+to)[\s-]*(?:the\s+)?(?:year\s+)?$"
    r"|\b(?:between|from)\s+(?:(?:19|20)\d\d)\s+(?:and|to)\s+$"
)
_ITS = re.compile(r"['’]s\b")


def _years(match: re.Match[str], now: datetime) -> Meant:
    return Period(calendar.year(int(match["year"])).start, calendar.year(int(match["last"])).end)


def _decade(match: re.Match[str], now: datetime) -> Meant:
    start = full_year(match["decade"])
    return Period(calendar.year(start).start, calendar.year(start + 9).end)


def _day_of_month(match: re.Match[str], now: datetime) -> Meant:
    day = int(match["day"])
    return Within("month", lambda start: calendar.day(start.replace(day=day)))


# --- seasons, quarters, feasts -----------------------------------------------------------------


def _season(match: re.Match[str], now: datetime) -> Meant:
    year, which = match["year"] and int(match["year"]), _which(match)
    if not (year or which or _IN_SEASON.search(_before(match))) and not _LAST_YEAR.match(
        match.string[match.end() :]
    ):
        return None
    within = in_season(_SEASONS[match["season"].lower()], year or None)
    return of_which(which, within, now) if isinstance(within, Within) else within


_IN_SEASON = _rule(
    r"\b(?:in|during|over|since|until|till|before|after|by|of|throughout|early|mid|late)[\s-]+"
    r"(?:the\s+)?$"
)


def _quarter(match: re.Match[str], now: datetime) -> Meant:
    year = match["year"] and int(match["year"])
    if match["half"]:
        return in_half(int(match["half"]), year or None)
    if match["q"]:
        return in_quarter(int(match["q"]), year or None)
    return in_quarter(_ORDINALS[match["nth"].lower()], year or None)


_ORDINALS: Final = {
    word: number
    for number, words in enumerate(
        ("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th"), start=1
    )
    for word in words.split()
}


def _feast(match: re.Match[str], now: datetime) -> Meant:
    name = re.sub(r"[^a-z0-9 ]", "", " ".join(match["feast"].lower().split()))
    which = _which(match)
    year = match["year"] and int(match["year"])
    if name in ("christmas", "xmas", "easter") and not (
        which or year or _AT_FEAST.search(_before(match))
    ):
        return None
    within = yearly(_FEASTS[name], year or None)
    return of_which(which, within, now) if isinstance(within, Within) else within


_AT_FEAST = _rule(
    r"\b(?:on|at|over|for|from|during|since|until|before|after|by|around|of)\s+(?:the\s+)?$"
    r"|\byear['’]s\s+$"
)


def _fixed(month: int, day: int, until: int = 0) -> Callable[[int], Period]:
    return lambda year: calendar.days(
        calendar.date(year, month, day), calendar.date(year, month, day) + until * DAY
    )


def _movable(month: int, weekday: int, nth: int) -> Callable[[int], Period]:
    return lambda year: calendar.day(calendar.nth_weekday(year, month, weekday, nth))


_FEASTS: Final[dict[str, Callable[[int], Period]]] = {
    "new years day": _fixed(1, 1),
    "new years eve": _fixed(12, 31),
    "new years": _fixed(12, 31, 1),
    "new year": _fixed(12, 31, 1),
    "chinese new year": lambda year: calendar.day(calendar.lunar(year, 0)),
    "lunar new year": lambda year: calendar.day(calendar.lunar(year, 0)),
    "spring festival": lambda year: Period(
        calendar.lunar(year, 0) - DAY, calendar.lunar(year, 0) + 7 * DAY
    ),
    "midautumn festival": lambda year: calendar.day(calendar.lunar(year, 2)),
    "dragon boat festival": lambda year: calendar.day(calendar.lunar(year, 1)),
    "valentines day": _fixed(2, 14),
    "valentines": _fixed(2, 14),
    "st patricks day": _fixed(3, 17),
    "good friday": lambda year: calendar.day(calendar.easter(year), -2),
    "easter": lambda year: calendar.days(
        calendar.easter(year) - 2 * DAY, calendar.easter(year) + DAY
    ),
    "easter sunday": lambda year: calendar.day(calendar.easter(year)),
    "easter monday": lambda year: calendar.day(calendar.easter(year), 1),
    "mothers day": _movable(5, 6, 2),
    "memorial day": _movable(5, 0, -1),
    "fathers day": _movable(6, 6, 3),
    "juneteenth": _fixed(6, 19),
    "independence day": _fixed(7, 4),
    "fourth of july": _fixed(7, 4),
    "4th of july": _fixed(7, 4),
    "labor day": _movable(9, 0, 1),
    "halloween": _fixed(10, 31),
    "thanksgiving": _movable(11, 3, 4),
    "black friday": lambda year: calendar.day(calendar.nth_weekday(year, 11, 3, 4), 1),
    "christmas eve": _fixed(12, 24),
    "christmas day": _fixed(12, 25),
    "boxing day": _fixed(12, 26),
    "christmas": _fixed(12, 24, 2),
    "xmas": _fixed(12, 24, 2),
}


def _feast_pattern(name: str) -> str:
    name = re.sub(r"\b(year|valentine|mother|father|patrick)s\b", r"\1['’]?s['’]?", name)
    return name.replace("midautumn", "mid-?autumn").replace("st ", r"st\.?\s").replace(" ", r"\s+")


RULES: Final[tuple[Rule, ...]] = (
    (
        _rule(
            r"\b(?:today|tonight|tomorrow|yesterday|(?:the\s+)?day\s+before\s+yesterday|"
            r"(?:the\s+)?day\s+after\s+tomorrow|last\s+(?:night|evening)|the\s+other\s+day|"
            r"this\s+(?:morning|afternoon|evening))\b"
        ),
        _near,
    ),
    (_rule(rf"\b{_N}\s+{_UNIT}s?(?P<half>\s+and\s+a\s+half)?\s+(?:ago|back)\b"), _ago),
    (
        _rule(
            rf"\b(?:the\s+|these\s+|this\s+)?(?:last|past|previous)\s+(?:{_N}\s+)(?:or\s+so\s+)?{_UNIT}s?\b"
            r"(?!\s+of\b)"
        ),
        _lasting,
    ),
    (
        _rule(
            r"\b(?:in|over|during|within|throughout|for)\s+(?:the\s+)(?:last|past)(?P<n>)\s+"
            r"(?P<unit>hour|day|week|fortnight|month|year|decade)\b(?!\s+of\b)"
        ),
        _lasting,
    ),
    (_rule(rf"\b(?:the\s+)?(?:next|coming|upcoming)\s+{_N}\s+{_UNIT}s?\b"), _coming),
    (_rule(rf"\b{_N}\s+{_UNIT}s?\s+from\s+(?:now|today)\b"), _from_now),
    (_rule(r"\b(?:around\s+)?this\s+time\s+last\s+(?P<unit>week|month|year)\b"), _this_time),
    (
        _rule(rf"\b{_WHICH}(?P<unit>weekend|week|month|year|quarter)\b(?!\s+of\s+(?!last|this))"),
        _calendar_unit,
    ),
    (
        _rule(
            r"\b(?:the\s+)?(?P<unit>weekend|week|month|year|spring|summer|autumn|fall|winter)\s+"
            r"before\s+last\b"
        ),
        _before_last,
    ),
    (_rule(r"(?<=\bon the )weekend\b|(?<=\bat the )weekend\b|(?<=\bover the )weekend\b"), _weekend),
    (
        _rule(
            rf"\b{_WHICH}?(?P<weekday>{_WEEKDAY}|tues?|weds?|thurs?|thu|fri|mon|sat|sun)\b\.?"
            r"(?!\s*['’]?s\s+child)"
        ),
        _weekday,
    ),
    (
        _rule(
            rf"\b(?:{_WEEKDAY},?\s+(?:the\s+)?)?{_MONTH}\s*(?:the\s+)?{_DAY}{_UNTIL}{_OF_YEAR}"
        ),
        _month_day,
    ),
    (
        _rule(
            rf"(?<![\w.:/-])(?:{_WEEKDAY},?\s+)?(?:the\s+)?{_DAY}{_UNTIL}\s*(?P<of>of\s+)?{_MONTH}"
            rf"{_OF_YEAR}"
        ),
        _day_month,
    ),
    (
        _rule(
            rf"\b{_WHICH}?{_MONTH}(?:,?\s+(?:of\s+|in\s+)?(?P<year>(?:19|20)\d\d\b|['’]\d\d\b)"
            r"(?![.,:/-]?\d|%))?(?!\s*\d)"
        ),
        _one_month,
    ),
    (
        _rule(
            rf"(?:(?<=mid-)|(?<=early-)|(?<=late-)|(?<![\w.,:/#$€£+-])){_YEAR}(?!\s*(?:to|-|–)\s*(?!(?:19|20)\d\d\b)\d{{3,}})(?!\s*(?:words|people|tokens|"
            r"dollars|euros|pounds|bucks|miles|steps|met(?:er|re)s|k?m|kcal|calories|hours|minutes|"
            r"times|items|rows|users|bytes|mb|gb|ml|mg|kg|px|yuan|rmb|usd|eur)\b)"
        ),
        _year,
    ),
    (
        _rule(
            rf"(?<![\w.,:/-])(?P<year>(?:19|20)\d\d)\s*[{_DASH}]\s*"
            r"(?P<last>(?:19|20)\d\d)(?![\w-])"
        ),
        _years,
    ),
    (
        _rule(
            r"(?:(?<=\bthe )|(?<=\bin )|(?<=\bof ))(?P<decade>(?:19|20)\d0|[6-9]0)['’]?s\b"
        ),
        _decade,
    ),
    (
        _rule(
            r"(?<=\bon )the\s+(?P<day>[12]\d|3[01]|[1-9])(?:st|nd|rd|th)\b(?=\s*(?:$|[,.;?!)])|"
            r"\s+(?:of\s+(?:this|last|next)\s+month|and|i|we|he|she|they|did|was|at)\b)"
        ),
        _day_of_month,
    ),
    (
        _rule(
            rf"\b{_WHICH}?(?P<season>spring|summer|autumn|fall|winter)\b{_OF_YEAR}"
            r"(?!\s+(?:festival|boot|framework|onions?|rolls?|clean|asleep|in\s+love))"
        ),
        _season,
    ),
    (
        _rule(
            rf"\b(?:Q(?P<q>[1-4])|H(?P<half>[12])(?=,?\s+(?:of\s+)?(?:19|20)\d\d\b)|"
            rf"(?:the\s+)?(?P<nth>first|second|third|fourth|[1-4](?:st|nd|rd|th))\s+quarter)\b{_OF_YEAR}"
        ),
        _quarter,
    ),
    (
        _rule(
            rf"\b{_WHICH}?(?P<feast>{_any(_feast_pattern(name) for name in _FEASTS)})(?!\w)"
            rf"{_OF_YEAR}(?!\s+resolution)"
        ),
        _feast,
    ),
)  # fmt: skip


# --- what stands before or after and changes it --------------------------------------------------


def _of_day(day: Period, match: re.Match[str], now: datetime) -> Period | None:
    if day.end - day.start > DAY:
        return None
    return part_of_day(day, match["part"].lower())


def _part(whole: Period, match: re.Match[str], now: datetime) -> Period | None:
    """`early`, `the end of` …: a third of it, or so. A day has other parts."""
    if whole.end - whole.start <= 2 * DAY:
        return None
    said = re.sub(r"\b(?:the|very)\s+", "", " ".join(match["part"].lower().split()))
    if said in ("earlier", "later"):
        if not whole.start < now < whole.end:
            return None
        return Period(whole.start, now) if said == "earlier" else Period(now, whole.end)
    if said.endswith("half"):
        return calendar.half(whole, int(said.startswith("second")))
    thirds = [
        third
        for third, words in enumerate(("early beginning start", "mid middle", "late end"))
        for word in words.split()
        if re.search(rf"\b{word}\b", said)
    ]
    return Period(
        calendar.within(whole, min(thirds)).start, calendar.within(whole, max(thirds)).end
    )


def _nth(whole: Period, match: re.Match[str], now: datetime) -> Period | None:
    """`the first week of`, `the last Friday of` …"""
    number = _ORDINALS.get(match["nth"].lower(), -1)
    unit = match["unit"].lower()
    length = (whole.end - whole.start) // DAY
    if length < 27:
        return None
    if unit == "half":
        return calendar.half(whole, int(number in (2, -1)))
    if unit in ("week", "day"):
        size = 7 if unit == "week" else 1
        start = whole.end - size * DAY if number < 0 else whole.start + (number - 1) * size * DAY
        return Period(start, start + size * DAY) if start < whole.end else None
    weekday = 5 if unit == "weekend" else _WEEKDAYS[unit]
    if number < 0:
        start = calendar.nth_weekday((whole.end - DAY).year, (whole.end - DAY).month, weekday, -1)
    else:
        start = calendar.nth_weekday(whole.start.year, whole.start.month, weekday, number)
    return Period(start, start + (2 if unit == "weekend" else 1) * DAY)


def _distant(from_: Period, match: re.Match[str], now: datetime) -> Period | None:
    """`two days before`, `the week after` …"""
    unit, _ = _unit(match["unit"])
    before = match["way"].lower() in ("before",) or match["way"].lower().startswith("prior")
    if unit == "weekend":
        weekend = calendar.weekend(from_.start, -1 if before else 0)
        if not before and weekend.start < from_.end:
            weekend = weekend.shifted(7 * DAY)
        return weekend
    step = calendar.UNITS[unit]
    if match["n"] and unit != "day":
        number = _NUMBERS.get(match["n"].lower()) or int(match["n"])
        at = from_.start - number * step if before else from_.start + number * step
        slack = {"week": 3, "month": 10, "year": 60}[unit]
        return calendar.days(at - slack * DAY, at + slack * DAY)
    number = (_NUMBERS.get(match["n"].lower()) or int(match["n"])) if match["n"] else 1
    if unit == "day":
        return calendar.day(from_.start, -number) if before else calendar.day(from_.end, number - 1)
    return (
        Period(from_.start - step, from_.start) if before else Period(from_.end, from_.end + step)
    )


LANGUAGE: Final = Language(
    gate=_rule(
        r"\b(?:19|20)\d\d\b|\d[/.-]\d|\b(?:today|tonight|tomorrow|yesterday|last|past|this|next|ago|back|"
        r"previous|coming|upcoming|now|weekend|the\s+other\s+day|spring|summer|autumn|fall|winter|quarter|"
        rf"q[1-4]|\d*0['’]?s|{_any(MONTHS)}|{_WEEKDAY}|mon|tues?|weds?|thurs?|thu|fri|sat|sun|"
        rf"the\s+\d\d?(?:st|nd|rd|th)|{_any(map(_feast_pattern, _FEASTS))})\b"
    ),
    rules=RULES,
    changes=(
        (
            "before",
            _rule(
                r"\b(?:the\s+)?(?P<part>(?:the\s+)?(?:very\s+)?(?:early|earlier|beginning|start|"
                r"mid(?:dle)?|late|later|end|first\s+half|second\s+half|early[\s-]+to[\s-]+mid|"
                r"mid[\s-]+to[\s-]+late))(?:\s+(?:of|in|part\s+of))?(?:\s+the)?[\s-]+"
                r"(?:month\s+of\s+)?$"
            ),
            _part,
        ),
        (
            "before",
            _rule(
                rf"\b(?:the\s+)?(?P<nth>{_any(_ORDINALS)}|last)\s+"
                rf"(?P<unit>week(?:end)?|day|half|{_WEEKDAY})\s+(?:of|in)\s+(?:the\s+)?$"
            ),
            _nth,
        ),
        (
            "before",
            _rule(
                r"\b(?:the\s+)?(?:early\s+|late\s+)?(?P<part>morning|afternoon|evening|night|noon)\s+"
                r"(?:of|on)\s+(?:the\s+)?$"
            ),
            _of_day,
        ),
        (
            "after",
            _rule(
                r"(?:,?\s+(?:in\s+the\s+|at\s+)?(?:early\s+|late\s+)?|['’]s\s+)"
                r"(?P<part>morning|afternoon|evening|night|noon)\b"
            ),
            _of_day,
        ),
        (
            "before",
            _rule(
                rf"\b(?:the\s+|(?P<n>\d{{1,2}}|{_any(_NUMBERS)})\s+)"
                r"(?P<unit>day|night|week|weekend|month|year)s?\s+"
                r"(?P<way>before|after|following|prior\s+to)\s+(?:the\s+)?$"
            ),
            _distant,
        ),
    ),
    bounds=(
        (
            "before",
            _rule(
                r"\b(?:(?P<since>since|starting(?:\s+(?:from|in|on))?|as\s+of)|"
                r"(?P<after>after|following)|(?P<before>before|prior\s+to)|"
                r"(?P<until>until|till|(?<!\bi )(?<!\bwe )(?<!\byou )up\s+to|by))\s+(?:the\s+)?$"
            ),
        ),
        ("after", _rule(r"\s+(?P<since>onwards?)\b")),
    ),
    between=_rule(r"\bbetween\s+(?:the\s+)?$"),
    between_after=NEVER,
    between_and=_rule(r"\s+and\s+(?:the\s+)?"),
    to=_rule(r"\s*(?:\bto|\bthrough|\bthru|\buntil|\btill|-|–|—|~)\s*(?:the\s+)?"),
    also=_rule(r"\s*(?:,|\band|\bor|&|,\s*(?:and|or))\s*(?:in\s+|on\s+|the\s+)?"),
    join=_rule(r"(?:['’]s|,)?\s+(?:(?:of|in|on|the)\s+)*"),
)
