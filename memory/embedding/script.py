"""Which script a text is written in: what decides which model reads it, and how much of it."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

LETTERS_A_CHARACTER = 3
"""Latin letters that weigh as much as one letter of another script."""

LOOKED_AT = 2_000
"""Characters from which the script of a text is told."""


def is_latin(text: str) -> bool:
    """Whether a text is mostly in Latin script, or has no letters at all.

    A letter of another script counts for LETTERS_A_CHARACTER, because one Han character says about
    as much: "我在Google上班" is Chinese, "my Chinese name is 李雷" is English.
    """
    balance = 0
    for character in text[:LOOKED_AT]:
        if character.isalpha():
            balance += 1 if _is_latin_letter(character) else -LETTERS_A_CHARACTER
    return balance >= 0


@lru_cache(maxsize=8_192)
def _is_latin_letter(character: str) -> bool:
    return character.isascii() or "LATIN" in unicodedata.name(character, "")
