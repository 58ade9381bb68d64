"""Where output goes: text that is safe on any terminal, JSON that parses back.

What was remembered may hold anything. For people, control and direction characters are shown as
what they are, so that a stored text cannot move the cursor or turn a line around. In JSON every
text stands as itself, not as escapes; only a lone surrogate, which no encoding has, becomes an
escape (which is JSON, and parses back to the same string).
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

UNFOLDED = 100_000
"""The width of what is no terminal, in cells."""

_KEPT = "\n\t"
_SHOWN = ("Cc", "Cs", "Zl", "Zp")
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def prepare_streams() -> None:
    """UTF-8 out, whatever the locale says; what cannot be encoded is escaped, never an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def people() -> Console:
    """The console for what people read, on stdout. Lines fold on a terminal and nowhere else."""
    console = Console(highlight=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:  # a folded path can be neither searched nor copied
        console.width = UNFOLDED
    return console


def notes() -> Console:
    """The console for progress and remarks, on stderr, so that stdout holds results only."""
    return Console(stderr=True, highlight=False, emoji=False)


def safe(text: str) -> str:
    """The text with control and direction characters made visible."""
    return "".join(_visible(c) for c in text)


def line(text: str, *, limit: int | None = None) -> str:
    """The text as one safe line, shortened to `limit` cells of a terminal with an ellipsis."""
    one = Text(safe(" ".join(text.split())))
    if limit is not None:
        one.truncate(limit, overflow="ellipsis")
    return one.plain


def said(text: str, style: str = "") -> Text:
    """Safe text for a table or a line, never read as markup."""
    return Text(safe(text), style=style)


def write_json(value: Any, out: TextIO | None = None) -> None:
    """The value as indented JSON on stdout."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain)
    (out or sys.stdout).write(text + "\n")


def fail(message: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"trimem: {line(message)}\n")


@contextmanager
def bar(description: str, *, shown: bool | None = None) -> Iterator[Callable[[float, float], None]]:
    """A progress bar on stderr; gives the function that moves it, of (done, total).

    It appears when it is first moved. `shown` None: when stderr is a terminal.
    """
    progress = Progress(
        TextColumn("{task.description:<11}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=notes(),
        disable=not (notes().is_terminal if shown is None else shown),
    )
    task = progress.add_task(description, total=None)

    def moved(done: float, total: float) -> None:
        progress.update(task, completed=round(done), total=round(total))
        progress.start()

    try:
        yield moved
    finally:
        if progress.live.is_started:
            progress.stop()


def _plain(value: Any) -> Any:
    """How JSON has a value of ours; anything else is a mistake and says so."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def _visible(c: str) -> str:
    if c in _DIRECTIONS or (c not in _KEPT and unicodedata.category(c) in _SHOWN):
        return f"<U+{ord(c):04X}>"
    return c
