"""When what a query asks about happened: the times that it names. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from memory.dates import Span, spans
from memory.embedding.script import is_latin
from memory.places import Floats, Numbers, Places
from memory.text import only_asking, terms
from memory.times import to_micros

LONGEST: Final = 300
"""Characters of a question. What is longer tells something, and its 'today' is when it was told."""
LONGEST_UNSPACED: Final = 150
EARLIER: Final = timedelta(days=2)
LATER: Final = timedelta(days=10)
"""How far before and after a span a part of 1 has faded to 0.37: people tell things afterwards."""
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class When:
    """Spans of time that a query asks about; `alone` when it asks about nothing else.

    `rest` is the query without the words that name them.
    """

    spans: tuple[Span, ...]
    alone: bool = False
    rest: str = ""

    @classmethod
    def of(cls, query: str, now: datetime) -> When | None:
        """None for a query that names no time, or is too long to ask about one."""
        if len(query) > (LONGEST if is_latin(query) else LONGEST_UNSPACED):
            return None
        found = spans(query, now=now)
        if not found:
            return None
        rest = query
        for span in found:
            rest = rest.replace(span.text, " ")
        # Pairs of characters say what the characters do, and reach from one word into the next.
        asked = {term for term in terms(rest) if len(term) != 2 or is_latin(term)}
        return cls(found, alone=not asked - only_asking(rest) - _HAPPENED, rest=rest)

    def __call__(self, places: Places, at: Numbers) -> Floats:
        """1 inside a span, and fading outside: fast before it, slowly after."""
        time = places.time[at]
        fading = [
            np.exp(
                -_days(to_micros(span.start) - time) / (EARLIER / _DAY)
                - _days(time - to_micros(span.end)) / (LATER / _DAY)
            )
            for span in self.spans
        ]
        return np.asarray(np.max(fading, axis=0), dtype=np.float64)

    def inside(self, places: Places, at: Numbers) -> Numbers:
        """Those of the places that are in a span."""
        time = places.time[at]
        found = np.zeros(len(at), dtype=bool)
        for span in self.spans:
            found |= (to_micros(span.start) <= time) & (time < to_micros(span.end))
        return at[found]

    def beside(self, places: Places, at: Numbers) -> Numbers:
        """Those of the places that are near enough to be of it: what was told soon after."""
        return at[self(places, at) >= BESIDE]


BESIDE: Final = 0.75
"""The part of what is near enough to a time to be of it, where nothing is inside: 2.9 days after
its end, half a day before it."""
_HAPPENED: Final = frozenset(
    terms(
        "happen happened talk talked say said discuss discussed tell told mention chat things "
        "anything something everything new day around show remind summarise summarize recap "
        "发生 说 聊 谈 做 事 过 干 忙 有 都 些 得 新鲜 总结 回顾 一下 前后 情况"
    )
)
"""Terms that ask for whatever there was."""


def _days(micros: Numbers) -> Floats:
    """As days, and 0 for what is below."""
    return np.maximum(micros, 0) / (_DAY / timedelta(microseconds=1))
