"""Who said what a query asks about: the speakers that it names, or itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from memory.models import Role
from memory.places import Floats, Numbers, Places

SHORTEST: Final = 2
"""Characters of a name by which a speaker is known, at least."""
_ROLES: Final = frozenset(role.value for role in Role)
_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile("[\u0e00-\u0edf\u1000-\u109f\u1780-\u17df\u3005-\u9fff\uac00-\ud7a3]")
"""Scripts without spaces between words, and Hangul, whose words have endings."""


def said_by(query: str) -> Callable[[Places, Numbers], Floats]:
    """1 for what was said by a speaker whom the query names, by the whole name or by its first.

    0 for all when there is one speaker, or the query names none, or all of them: it tells nothing.
    """

    def part(places: Places, at: Numbers) -> Floats:
        them = named(query, places)
        if not them or len(them) == len(places.speakers):
            return np.zeros(len(at))
        return np.isin(places.speaker[at], them).astype(np.float64)

    return part


def named(query: str, places: Places) -> list[int]:
    """The numbers of the speakers whom a query names; none where there is only one."""
    if len(places.speakers) < 2:
        return []
    asked = " ".join(_WORD.findall(query.casefold()))
    return [number for number, name in enumerate(places.speakers) if _names(asked, name)]


def _names(asked: str, speaker: str) -> bool:
    """Whether the words have the speaker's name, whole or its first part."""
    words = _WORD.findall(speaker.casefold())
    if not words or speaker in _ROLES:
        return False
    return any(len(name) >= SHORTEST and _has(asked, name) for name in (" ".join(words), words[0]))


def _has(asked: str, name: str) -> bool:
    if _UNSPACED.search(name):
        return name in asked
    return f" {name} " in f" {asked} "


def said_by_us(query: str) -> Callable[[Places, Numbers], Floats]:
    """How likely it was said by the user, or by the assistant, of those who talk of 'I' and 'you'.

    Who asks 'where did I put my keys' has said so, and 'what did you recommend' asks for an answer.
    0 for all where only one of the two ever said anything: it tells nothing.
    """
    wanted = _role(query)

    def part(places: Places, at: Numbers) -> Floats:
        if wanted is None or not {_USER, _ASSISTANT} <= places.roles:
            return np.zeros(len(at))
        role, sure = wanted
        return np.where(places.role[at] == role, sure, 0.0)

    return part


def _role(query: str) -> tuple[int, float] | None:
    """The number of the role, and how sure it is; None where the query speaks of neither."""
    words = query.replace("\u2019", "'")
    me, you = bool(_ME.search(words)), bool(_YOU.search(words))
    if you and (not me or _TOLD.search(words)):
        return _ASSISTANT, 1.0
    if me:
        return _USER, 0.5 if you else 1.0
    return None


_USER: Final = tuple(Role).index(Role.USER)
_ASSISTANT: Final = tuple(Role).index(Role.ASSISTANT)
_ME: Final = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|myself|we|we're|we've|(?-i:us)|our|ours|ich|mich|mir|mein\w*|wir|"
    r"uns|unser\w*|je|j'|moi|nous|notre|nos|yo|mí|conmigo|nosotros)\b"
    "|我|咱|俺|私|僕|ぼく|わたし",
    re.IGNORECASE,
)
_YOU: Final = re.compile(
    r"\b(?:you|you're|you've|your|yours|yourself|du|dich|dir|dein\w*|tu|toi|vous|votre|vos|tú|usted)\b"
    "|你|您|あなた",
    re.IGNORECASE,
)
_TOLD: Final = re.compile(
    r"\byou\b.{0,40}\b(?:tell|told|say|said|recommend\w*|suggest\w*|advis\w*|explain\w*|mention\w*|"
    r"g[ia]ve|given|provid\w*|shar\w*|writ\w*|wrote|list\w*|describ\w*|answer\w*|propos\w*|show\w*)\b"
    "|[你您].{0,12}(?:告诉|说|推荐|建议|提到|提过|解释|给|写|列|介绍|回答|讲)",
    re.IGNORECASE,
)
