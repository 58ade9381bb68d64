"""What a query asks for by its words: terms, what each counts, and what may stand for it. Pure.

A word near another in meaning stands for it, for half of what it counts and less the further away
it is (`near_words`); of all that say one term, the best counts. Words that only ask say little
about an answer. In a dialogue the last two lines are what it is about, and the lines before them
what led there. The name of a speaker who is named is left out: whose words they are is a part of
the score of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from memory.bm25 import Wanted, term_key
from memory.near_words import near
from memory.places import Places
from memory.text import only_asking, terms
from memory.whose import named

ASKING: Final = 0.3
"""What a term of a word that only asks counts."""
EARLIER: Final = 0.5
"""What a term of an earlier line of a dialogue counts."""
LATEST: Final = 2
"""Lines of a dialogue that count in full."""
NEAR: Final = 0.5
"""What a word near another counts, times their cosine."""
LOOKED_UP: Final = 1_000
"""Different terms that are looked at, the first ones."""
NEAR_LOOKED_UP: Final = 640
"""Words near them that are looked at in all: of a long query, fewer near each of its terms."""
_LABEL: Final = re.compile(r"^\s*<?[\w ]{1,20}>?\s*[:：]\s*")


@dataclass(frozen=True)
class Query:
    """A query by its words."""

    text: str
    wanted: tuple[Wanted, ...]

    @classmethod
    def of(cls, text: str, rest: str | None = None) -> Query:
        """`rest` is the text without the words that name a time: what was said at a time need not
        say so, and they ask."""
        weights: dict[str, float] = {}
        for line, weight in _lines(text):
            for term in terms(line):
                weights[term] = max(weight, weights.get(term, 0.0))
        asking = only_asking(text)
        aside = weights.keys() - terms(rest) if rest is not None else frozenset()
        asked = list(weights.items())[:LOOKED_UP]
        each = NEAR_LOOKED_UP // max(1, len(asked))
        wanted: dict[int, Wanted] = {}
        for group, (term, weight) in enumerate(asked):
            asks = term in asking
            factor = weight * (ASKING if asks else 1.0)
            asks = asks or term in aside
            wanted[term_key(term)] = Wanted(term_key(term), group, factor, asks=asks)
        for group, (term, _) in enumerate(asked):
            own = wanted[term_key(term)]
            for other, cosine in near(term)[:each]:
                key, factor = term_key(other), NEAR * cosine * own.factor
                if key not in wanted or (wanted[key].near and wanted[key].factor < factor):
                    wanted[key] = Wanted(key, group, factor, near=True, asks=own.asks)
        return cls(text, tuple(wanted.values()))

    def exact(self) -> Query:
        """Without words that may stand for others."""
        return Query(self.text, tuple(each for each in self.wanted if not each.near))

    def without_names(self, places: Places) -> tuple[Wanted, ...]:
        """The terms without the names of speakers whom the query names; all, if it is only that."""
        names = {
            term_key(term)
            for number in named(self.text, places)
            for term in terms(places.speakers[number])
        }
        groups = {each.group for each in self.wanted if each.key in names and not each.near}
        return tuple(each for each in self.wanted if each.group not in groups) or self.wanted


def last_line(text: str) -> str | None:
    """What was said last, when the query is a dialogue."""
    lines = _lines(text)
    return lines[-1][0] if len(lines) > LATEST else None


def _lines(text: str) -> list[tuple[str, float]]:
    """The lines of a dialogue without who says them, and what each counts; or the text as it is."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) <= LATEST:
        return [(text, 1.0)]
    earlier = len(lines) - LATEST
    return [
        (_LABEL.sub("", line), EARLIER if at < earlier else 1.0) for at, line in enumerate(lines)
    ]
