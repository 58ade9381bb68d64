"""What is embedded of a text beside the whole of it: its passages, a few sentences each. Pure.

The vector of a long text is a mean of all that it says, so that one sentence that answers a query
is drowned in the others. A passage is short enough to be about one thing.
"""

from __future__ import annotations

from typing import Final

from memory.text import is_blank, pieces

WHOLE: Final = 200
"""Characters of the longest text that is about one thing as it is."""
LONG: Final = 130
"""Characters of a passage, about."""
MOST: Final = 16
"""Passages of one text, about: those of a longer one than episodes are get longer."""
_SPARE: Final = 1.25
"""What a passage may have more, so that sentences stay whole."""


def passages(text: str) -> list[str]:
    """The passages of a text; none of one that is short.

    Cut at the ends of sentences and lines; short sentences stay together, and only one that is too
    long by itself is cut within. Joined, they have all of the text but white space and blank ones.
    """
    if len(text) <= WHOLE:
        return []
    wanted = min(MOST, max(2, round(len(text) / LONG)))
    cut = pieces(text, int(len(text) / wanted * _SPARE))
    return [passage.strip() for passage in cut if not is_blank(passage)]
