"""Words near in meaning: `car` is near `vehicl`, `doctor` near `physician`; English only.

The secret is a table that comes with the install, so that a lookup costs no model: each whole word
of MiniLM's vocabulary is embedded once, by `scripts/make_near_words.py`. It speaks in the terms
that `memory.text.terms` gives. In the file are

    stems     all of them, sorted, one line each, as UTF-8
    counts    how many near ones each stem has
    others    which they are, one stem's after another's, best first
    nearness  as 255ths

Names of people, numbers, weekdays and months are in none of it: a question about one of them is
not about another. For the same reason no place is near another, and no word near its opposite.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memory.errors import Corrupt

FILE = "near_words.npz"

SHA256 = "5535576c3f02d8073e48faefe3519d8ba817677c89a109c4b6bb62b952437bea"
"""Of the file. It changes whenever the table is made again."""

Near = tuple[tuple[str, float], ...]


def near(term: str) -> Near:
    """The terms near this one, best first, with how near they are: 0.35 to 1. Never itself.

    Nothing for what is no English word, or a name. The first call of a process reads the table,
    which takes some 11 ms. Raises Corrupt when the file is not the one that was made.
    """
    return _remembered(term)


class Table(NamedTuple):
    """For each stem, which are near. Rows lie one after another: `starts` says where."""

    stems: Sequence[str]
    places: Mapping[str, int]
    starts: Sequence[int]
    others: npt.NDArray[np.uint16]
    nearness: npt.NDArray[np.uint8]

    def near(self, term: str) -> Near:
        place = self.places.get(term)
        if place is None:
            return ()
        row = slice(self.starts[place], self.starts[place + 1])
        others = map(self.stems.__getitem__, self.others[row].tolist())
        nearness = map(_NEARNESS.__getitem__, self.nearness[row].tolist())
        return tuple(zip(others, nearness, strict=True))


_NEARNESS = tuple(part / 255 for part in range(256))


def pack(rows: Mapping[str, Near]) -> bytes:
    """The file of a table; the same rows give the same bytes."""
    stems = sorted(rows)
    places = {stem: place for place, stem in enumerate(stems)}
    flat = [pair for stem in stems for pair in rows[stem]]
    file = io.BytesIO()
    np.savez_compressed(
        file,
        stems=np.frombuffer("\n".join(stems).encode(), np.uint8),
        counts=np.array([len(rows[stem]) for stem in stems], np.uint8),
        others=np.array([places[other] for other, _ in flat], np.uint16),
        nearness=np.array([round(255 * nearness) for _, nearness in flat], np.uint8),
    )
    return file.getvalue()


def unpack(file: bytes) -> Table:
    """The table in a file that `pack` made."""
    with np.load(io.BytesIO(file), allow_pickle=False) as arrays:
        stems = arrays["stems"].tobytes().decode().split("\n")
        return Table(
            stems=stems,
            places={stem: place for place, stem in enumerate(stems)},
            starts=list(accumulate(arrays["counts"].tolist(), initial=0)),
            others=arrays["others"],
            nearness=arrays["nearness"],
        )


def table() -> Table:
    """The table of this install, read once."""
    with _LOADING:
        return _table()


_LOADING = threading.Lock()
_remembered = lru_cache(maxsize=4_096)(lambda term: table().near(term))


@cache
def _table() -> Table:
    file = resources.files(__name__).joinpath(FILE).read_bytes()
    if hashlib.sha256(file).hexdigest() != SHA256:
        raise Corrupt(f"{FILE} is damaged, or of another version")
    return unpack(file)
