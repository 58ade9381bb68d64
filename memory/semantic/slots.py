"""What readers of messages hand back, and what they share: when something was, in words.

A reader finds narrow slots in one language (`english`, `chinese`); `extract` makes assertions of
what they found. Both would rather miss a fact than invent one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from memory.semantic.names import SELF

READ_LIMIT = 20_000
"""Characters of a message that are read for facts."""
SENTENCE_LIMIT = 400
"""Characters of the longest sentence that is read: people state facts in short ones."""
HIDDEN = "\ufffc"
"""Stands where a quotation or code was: nothing matches it, so nothing is read across it."""


@dataclass(frozen=True)
class Found:
    """A slot that was filled. `since` is when it began, where the words said so."""

    predicate: str
    object: str
    subject: str = SELF
    holds: bool = True
    confidence: float = 0.9
    since: datetime | None = None
    attributes: Mapping[str, str | int] = field(default_factory=dict)


_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_QUOTATION = re.compile(
    r"\"[^\"\n]*\"|“[^”]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」]*」|『[^』]*』|《[^》]*》"
    r"|(?<!\w)'[^'\n]{2,}'(?!\w)|(?<!\w)‘[^’\n]{2,}’(?!\w)"
)


def own_words(text: str) -> str:
    """The beginning of a message without code, quoted lines and quotations."""
    text = _CODE.sub(HIDDEN, text[:READ_LIMIT])
    text = _QUOTED_LINE.sub(HIDDEN, text)
    return _QUOTATION.sub(HIDDEN, text)


# --- when ----------------------------------------------------------------------------------------

MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)


def ago(now: datetime, number: int, unit: str) -> datetime:
    """`number` of 'day', 'week', 'month' or 'year' before `now`."""
    if unit in ("day", "week"):
        return now - timedelta(days=number * (7 if unit == "week" else 1))
    months = number * (12 if unit == "year" else 1)
    index = now.year * 12 + now.month - 1 - months
    if index < 12:
        return now
    return now.replace(year=index // 12, month=index % 12 + 1, day=min(now.day, 28))


def start_of_year(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


def last_month_named(now: datetime, month: int, year: int | None = None) -> datetime:
    """The first day of that month: of the year, or the last one that has begun."""
    if year is None:
        year = now.year if month <= now.month else now.year - 1
    return datetime(year, month, 1, tzinfo=UTC)
