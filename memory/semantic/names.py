"""Names: what makes two spellings the same entity.

A key is a normal form that is compared, indexed and never shown. It is careful in both directions:
'A.I.' is 'AI' and 'ann  ' is 'Ann', but 'Los Angeles' is not 'Angeles' and 'Otto Brandt' is not
'Otto Brandt, Jr.'. Nothing is stemmed, translated or dropped but what cannot be seen. Keys fit
into the text index of every store: no surrogates, no control characters, at most KEY_LIMIT
characters (a longer name gives its beginning and a hash of the whole).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from memory.codec import digest, encode

KEY_LIMIT = 200
"""The longest key, in characters."""

SELF = "user"
"""The subject of what a user says about themselves."""

_ABBREVIATION_DOT = re.compile(r"(?<![^\W\d_])([^\W\d_])\.(?=[^\W\d_](?:\.|\b)|\s|,|$)")
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def key(name: str) -> str:
    """The normal form of a name: NFKC, case-folded, invisible characters out, spaces folded.

    Dots of abbreviations go ('U.S.' → 'us'); typographic apostrophes and hyphens become plain.
    Never empty unless the name is blank. A name too long to index gives its beginning and a hash.
    """
    return _remembered(name) if len(name) <= KEY_LIMIT else _key(name)


def _key(name: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(_visible(c) for c in _VARIATION_SELECTORS.sub("", folded))
    text = _ABBREVIATION_DOT.sub(r"\1", " ".join(visible.split()))
    text = (text.rstrip(".").rstrip() or text) if text.count(".") < len(text) else text
    text = _SURROGATE.sub(lambda match: f"\ufffd{ord(match.group()):x}", text)
    if len(text) <= KEY_LIMIT:
        return text
    return f"{text[: KEY_LIMIT - 33]}~{digest(encode(text))}"


_remembered = lru_cache(maxsize=16_384)(_key)
"""The same few names come with every question. Long ones would fill the memory."""


def _visible(character: str) -> str:
    plain = _PLAIN.get(character)
    if plain is not None:
        return plain
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    return " " if category == "Cc" else character


_PLAIN = {"’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-", "–": "-", "—": "-"}


def is_blank(name: str) -> bool:
    """Nothing in it that anybody could see."""
    return not key(name)


def same(one: str, other: str) -> bool:
    """Whether two spellings name the same."""
    return key(one) == key(other)


# --- names inside a text -----------------------------------------------------------------------

_LONGEST_NAME = 4
"""Words of the longest name that is looked up."""
_LONGEST_RUN = 6
"""Characters of the longest name in a script without spaces."""
_MENTIONS = 400
"""The most keys that one text gives."""

_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_WORD = re.compile(r"[^\s,;:!?()\[\]{}\"“”«»。，；：！？、（）《》「」]+")
_POSSESSIVE = re.compile(r"['’]s?$")


def mentions(text: str) -> tuple[str, ...]:
    """Keys of everything in a text that could be somebody's or something's name.

    Every run of up to four words, and in scripts without spaces every run of two to six
    characters; at most 400, in the order of the text. Most are names of nothing: look them up.
    """
    found: dict[str, None] = {}
    for candidate in _candidates(text):
        if len(found) >= _MENTIONS:
            break
        if (candidate_key := key(candidate)) and len(candidate_key) > 1:
            found[candidate_key] = None
    return tuple(found)


def _candidates(text: str) -> list[str]:
    head = text[:2_000]
    made = []
    words = [(match.start(), match.end()) for match in _WORD.finditer(head)]
    for first in range(len(words)):
        for last in range(first, min(first + _LONGEST_NAME, len(words))):
            start, end = words[first][0], words[last][1]
            if last > first and words[last][0] - words[last - 1][1] > 1:
                break
            piece = head[start:end]
            made.append(piece)
            if (bare := _POSSESSIVE.sub("", piece)) != piece:
                made.append(bare)
    for run in _RUN.finditer(head):
        characters = run.group()
        for first in range(len(characters)):
            for length in range(2, min(_LONGEST_RUN, len(characters) - first) + 1):
                made.append(characters[first : first + length])
    return made
