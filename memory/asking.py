"""What a query asks for by its words: terms, and what each counts. Pure.

Words that only ask say little about an answer. In a dialogue the last two lines are what it is
about, and the lines before them what led there. The name of a speaker who is named is left out:
whose words they are is a part of the score of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from memory.bm25 import Wanted, term_key
from memory.places import Places
from memory.text import only_asking, terms
from memory.whose import named

ASKING: Final = 0.3
"""What a term of a word that only asks counts."""
EARLIER: Final = 0.5
"""What a term of an earlier line of a dialogue counts."""
LATEST: Final = 2
"""Lines of a dialogue that count in full."""
LOOKED_UP: Final = 1_000
"""Different terms that are looked at, the first ones."""
_LABEL: Final = re.compile(r"^\s*<?[\w ]{1,20}>?\s*[:：]\s*")


@dataclass(frozen=True)
class Query:
    """A query by its words."""

    text: str
    wanted: tuple[Wanted, ...]

    @classmethod
    def of(cls, text: str) -> Query:
        weights: dict[str, float] = {}
        for line, weight in _lines(text):
            for term in terms(line):
                weights[term] = max(weight, weights.get(term, 0.0))
        asking = only_asking(text)
        return cls(
            text,
            tuple(
                Wanted(
                    term_key(term),
                    group,
                    factor=weight * (ASKING if term in asking else 1.0),
                    asks=term in asking,
                )
                for group, (term, weight) in enumerate(list(weights.items())[:LOOKED_UP])
            ),
        )

    def without_names(self, places: Places) -> tuple[Wanted, ...]:
        """The terms without the names of speakers whom the query names; all, if it is only that."""
        names = {
            term_key(term)
            for number in named(self.text, places)
            for term in terms(places.speakers[number])
        }
        return tuple(each for each in self.wanted if each.key not in names) or self.wanted


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
