"""Fences: how a context lends text that is data, so that it can be told from what was said. Pure.

A **fence** is `<memory-HASH>` … `</memory-HASH>` on lines of their own, where HASH is of what is
between, white space aside. Stored text cannot know it, so it cannot close the fence; and
`strip_fences` can tell a fence from text that only looks like one, so that what a context lent is
never stored as said: nor when a form has changed its line ends, an editor has indented it, or an
agent has written it into JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from memory.codec import digest

_MARK: Final = re.compile(r"<(/?)memory-([0-9a-f]{8})>")
_FENCE_LIKE: Final = re.compile(r"<(/?memory-[0-9a-f]{8})>", re.IGNORECASE)


def fence(body: str) -> str:
    """The body between two marks that carry its hash. The body must hold no such mark."""
    mark = _hash(body)
    return f"<memory-{mark}>\n{body}\n</memory-{mark}>"


def defused(text: str) -> str:
    """The text without anything in it that could be taken for a mark."""
    return _FENCE_LIKE.sub(r"[\1]", text)


def _hash(body: str) -> str:
    """Of the body as a request has it: without lone surrogates, which UTF-8 cannot hold."""
    units = "".join(body.split()).encode("utf-16-le", "surrogatepass")
    return digest(units.decode("utf-16-le", "replace").encode())[:8]


def strip_fences(text: str) -> str:
    """The text without the fences in it, and without the line ends right after each (before it, at
    the end of the text). Only a fence whose hash is right is one; all else stays as it is."""
    if "<memory-" not in text:
        return text
    kept: list[str] = []
    done = 0
    opened: re.Match[str] | None = None
    for mark in _MARK.finditer(text):
        if not mark[1]:
            opened = mark
        elif opened is not None and opened[2] == mark[2]:
            if _is_fence(text, opened, mark):
                kept.append(text[done : opened.start()])
                done = _after_line_ends(text, mark.end())
            opened = None
    if not kept:
        return text
    rest = text[done:]
    return "".join([*kept, rest]) if rest else "".join(kept).rstrip("\r\n")


def strip_all(value: Any) -> Any:
    """A JSON value with the fences taken out of every text in it."""
    if isinstance(value, str):
        return strip_fences(value)
    if isinstance(value, dict):
        return {name: strip_all(each) for name, each in value.items()}
    if isinstance(value, list):
        return [strip_all(each) for each in value]
    return value


def _is_fence(text: str, opened: re.Match[str], closed: re.Match[str]) -> bool:
    inside = text[opened.end() : closed.start()]
    return any(_hash(body) == closed[2] for body in _readings(inside))


def _readings(inside: str) -> Iterator[str]:
    """What the text stands for: itself, and what it is where it stands inside a text of JSON."""
    yield inside
    if "\\n" in inside:
        try:
            yield json.loads(f'"{inside}"', strict=False)
        except ValueError:
            return


def _after_line_ends(text: str, at: int) -> int:
    while at < len(text) and text[at] in "\r\n":
        at += 1
    return at
