"""When a question asks about: its time expressions, as spans of time.

    spans("What did we book the week after 8 May?", now=now)
    → (Span(2023-05-09 00:00+02:00, 2023-05-16 00:00+02:00, "the week after 8 May"),)

Readers (`english`, `chinese`, `others`) find what stands alone ("May", "last year", "Friday").
Then neighbours are put together, in this order: what is in something ("March last year", 去年三月),
what is a part of it ("late March", 三月中旬), what goes from one to another ("May to July"), and
what is bounded on one side ("since March", 五月以前).

A memory looks back: what has no year is the last that has begun, a weekday the last before today.
Spans are half-open, `start` < `end`, in the zone of `now`; days, weeks and months are those of its
wall clock. Vague amounts are wide ("a few days ago": two to five), and so are large ones ("two
weeks ago": the week around that day). Nothing raises, whatever the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from memory.dates import chinese, english, others, reading
from memory.dates.calendar import DAY, FIRST, LAST, Period, midnight
from memory.dates.reading import Found, Language

READ_LIMIT: Final = 4_000
"""Characters of a text that are read for dates."""

LANGUAGES: Final[tuple[Language, ...]] = (english.LANGUAGE, chinese.LANGUAGE, *others.LANGUAGES)
_FIGURES: Final = re.compile(r"\d[-/.]\d")


class Span(NamedTuple):
    """From `start` until just before `end`, as `text` says.

    `open_ended` when only one side was said: "since May" ends with today, "before May" begins with
    the year 2.
    """

    start: datetime
    end: datetime
    text: str
    open_ended: bool = False


def spans(query: str, *, now: datetime) -> tuple[Span, ...]:
    """The time expressions of a text in the order they are said, seen from `now` (aware)."""
    text = query[:READ_LIMIT]
    if not text.isascii():
        text = _folded(text)
    speaking = [language for language in LANGUAGES if language.gate.search(text)]
    if not speaking:
        return ()
    wall = now.replace(tzinfo=UTC, fold=0)
    rules = [rule for language in speaking for rule in language.rules]
    if _FIGURES.search(text):
        rules += reading.RULES
    founds = reading.found(text, wall, rules)
    if not founds:
        return ()
    reader = _Reader(text, wall, speaking)
    for step in (reader.joined, reader.changed, reader.ranges, reader.bounded):
        founds = list(step(founds))
    found_spans = (
        Span(
            found.period.start.replace(tzinfo=now.tzinfo),
            found.period.end.replace(tzinfo=now.tzinfo),
            query[found.begin : found.end],
            found.open_ended,
        )
        for found in founds
        if found.period.start >= FIRST and found.period.end < LAST
    )
    # Where clocks are put forward, wall time that never was can turn a minute inside out.
    return tuple(s for s in found_spans if s.start.astimezone(UTC) < s.end.astimezone(UTC))


def _folded(text: str) -> str:
    """Full-width figures and the like as plain ones: character by character, so places stay."""
    return "".join(
        folded if len(folded := unicodedata.normalize("NFKC", c)) == 1 else c for c in text
    )


# --- neighbours, put together ------------------------------------------------------------------


class _Reader:
    """A text, from where it is seen, and the languages that its words may belong to."""

    def __init__(self, text: str, now: datetime, languages: list[Language]) -> None:
        self._text = text
        self._now = now
        self._languages = languages

    def joined(self, founds: list[Found]) -> Iterator[Found]:
        """`March` + `last year`, 去年 + 三月: what is in something, with what it is in."""
        yield from self._pairwise(founds, self._join)

    def changed(self, founds: list[Found]) -> Iterator[Found]:
        """`late` + `March`, 三月 + 中旬: what is a part of something, or near it."""
        return self._each_in_its_room(founds, self._changed)

    def ranges(self, founds: list[Found]) -> Iterator[Found]:
        """`May` + `to` + `July`: from the one to the other; and lists, which share a year."""
        yield from self._pairwise(founds, self._range)

    def bounded(self, founds: list[Found]) -> Iterator[Found]:
        """`since` + `May`, 五月 + 以前: all that comes after it, or before."""
        return self._each_in_its_room(founds, self._bounded)

    def _each_in_its_room(
        self, founds: list[Found], step: Callable[[Found, int, int], Found]
    ) -> Iterator[Found]:
        """From the end of the one before to the beginning of the next: no word belongs to two."""
        begin = 0
        ends = [found.begin for found in founds[1:]] + [len(self._text)]
        for found, end in zip(founds, ends, strict=True):
            stepped = step(found, begin, end)
            begin = stepped.end
            yield stepped

    def _pairwise(
        self, founds: list[Found], put: Callable[[Found, Found, str], tuple[Found, ...]]
    ) -> Iterator[Found]:
        """Each with the one before it, which may itself be a pair."""
        last: Found | None = None
        for found in founds:
            if last is None:
                last = found
                continue
            try:
                *done, last = put(last, found, self._text[last.end : found.begin])
            except (ValueError, OverflowError):
                done, last = [last], found
            yield from done
        if last is not None:
            yield last

    def _join(self, first: Found, second: Found, between: str) -> tuple[Found, ...]:
        if between and not any(each.join.fullmatch(between) for each in self._languages):
            return first, second
        for part, whole in ((first, second), (second, first)):
            if (
                part.within is not None
                and whole.within is None
                and reading.is_whole(whole.period, part.within.grain)
            ):
                period = part.within.at(whole.period.start)
                return (Found(first.begin, second.end, period),)
        return first, second

    def _range(self, first: Found, second: Found, between: str) -> tuple[Found, ...]:
        if self._ranges(first, second, between):
            start, end = first.period, second.period
            if second.within is not None:
                end = second.within.near(start.start, after=True)
            elif first.within is not None:
                start = first.within.near(end.start, after=False)
            if start.start < end.end:
                return (Found(first.begin, second.end, Period(start.start, end.end)),)
        elif any(each.also.fullmatch(between) for each in self._languages):
            return _of_one_year(first, second)
        return first, second

    def _ranges(self, first: Found, second: Found, between: str) -> bool:
        before, after = self._text[: first.begin][-20:], self._text[second.end :][:8]
        return any(
            each.to.fullmatch(between)
            or (
                each.between_and.fullmatch(between)
                and (each.between.search(before) or each.between_after.match(after))
            )
            for each in self._languages
        )

    def _changed(self, found: Found, begin: int, end: int) -> Found:
        for _ in range(3):
            changed = self._changed_once(found, begin, end)
            if changed is None:
                break
            found = changed
        return found

    def _changed_once(self, found: Found, begin: int, end: int) -> Found | None:
        for language in self._languages:
            for side, pattern, change in language.changes:
                match = self._beside(side, pattern, found, begin, end)
                if match is None:
                    continue
                try:
                    period = change(found.period, match, self._now)
                except (ValueError, OverflowError):
                    continue
                if period is None or period.start >= period.end:
                    continue
                within = found.within and reading.changed(found.within, change, match, self._now)
                return Found(
                    min(found.begin, match.start()), max(found.end, match.end()), period, within
                )
        return None

    def _bounded(self, found: Found, begin: int, end: int) -> Found:
        for language in self._languages:
            for side, pattern in language.bounds:
                match = self._beside(side, pattern, found, begin, end)
                if match is None:
                    continue
                try:
                    period = self._bounds(found.period, match)
                except OverflowError:
                    continue
                if period.start < period.end:
                    first, last = min(found.begin, match.start()), max(found.end, match.end())
                    return Found(first, last, period, open_ended=True)
        return found

    def _bounds(self, period: Period, match: re.Match[str]) -> Period:
        way = match.lastgroup
        if way == "before":
            return Period(FIRST, period.start)
        if way == "until":
            return Period(FIRST, period.end)
        start = period.end if way == "after" else period.start
        return Period(start, midnight(self._now) + DAY)

    def _beside(
        self, side: str, pattern: re.Pattern[str], found: Found, begin: int, end: int
    ) -> re.Match[str] | None:
        if side == "after":
            return pattern.match(self._text, found.end, max(end, found.end))
        return pattern.search(self._text, max(begin, found.begin - 60), found.begin)


def _of_one_year(first: Found, second: Found) -> tuple[Found, ...]:
    """`March and April 2023`: the year of the one is the year of the other."""
    for dated, undated in ((first, second), (second, first)):
        if dated.within is None and undated.within is not None and undated.within.grain == "year":
            start = dated.period.start.replace(month=1, day=1, hour=0)
            placed = undated._replace(period=undated.within.at(start), within=None)
            return (first, placed) if dated is first else (placed, second)
    return first, second
