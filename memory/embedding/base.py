"""What an embedder is, and the one that runs a model of this machine in a thread.

What callers need not know: a model sees only clean text of bounded length. Blank texts never reach
it (many models put them near everything), hostile characters are replaced, long documents are
embedded in pieces whose vectors are averaged, and of long queries both ends are read.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory.errors import EmbeddingFailed
from memory.text import is_blank, pieces, plain

Role = Literal["query", "document"]
Vectors = NDArray[np.float32]
T = TypeVar("T")


class Embedder(Protocol):
    """Turns texts into vectors. Vectors of different identities must never be compared."""

    @property
    def identity(self) -> str:
        """Names the vector space: model, version, what else decides the vectors, and dims."""

    @property
    def dims(self) -> int:
        """The length of every vector."""

    async def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        """One row a text, shape (len(texts), dims), each of unit length.

        `role` says what the text is for; many models want to know. Any string is taken. A blank
        text has no direction: its row is zero, which `usable` refuses. Never blocks the event
        loop. Raises EmbeddingFailed.
        """

    async def close(self) -> None:
        """Lets go of threads and connections. Closing twice changes nothing."""


async def embedded(embedder: Embedder, texts: Sequence[str], *, role: Role) -> Vectors:
    """What the embedder gives. Whatever it raises is EmbeddingFailed, with the cause kept.

    An embedder may be a caller's own, and its errors any: what it cannot embed must still be
    remembered, and found by its words.
    """
    try:
        return await embedder.embed(texts, role=role)
    except EmbeddingFailed:
        raise
    except Exception as error:
        raise EmbeddingFailed(f"{type(error).__name__}: {error}") from error


# --- what cannot be used -----------------------------------------------------------------------


def usable(vectors: Any, n: int, dims: int) -> list[str | None]:
    """For each of `n` rows, why it cannot be used as a vector of length `dims`; None when it can.

    `vectors` is whatever an embedder gave: an array, or rows of any shape.
    """
    rows = list(vectors) if isinstance(vectors, Sequence | np.ndarray) else []
    return [_problem(rows[i], dims) if i < len(rows) else "no vector" for i in range(n)]


def _problem(row: Any, dims: int) -> str | None:
    try:
        vector = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        return "not a vector of numbers"
    if vector.shape != (dims,):
        return f"a vector of {vector.size} numbers, not of {dims}"
    if not np.isfinite(vector).all():
        return "not all numbers are finite"
    if not vector.any():
        return "all numbers are zero"
    return None


def alike(texts: Sequence[str], vectors: Vectors) -> list[tuple[int, ...]]:
    """Groups of rows that have the very same vector though their texts differ.

    A sign of an embedder that answers without reading. Zero rows are left to `usable`.
    """
    rows: defaultdict[bytes, list[int]] = defaultdict(list)
    for at, vector in enumerate(np.ascontiguousarray(vectors, dtype=np.float32)):
        if vector.any():
            rows[vector.tobytes()].append(at)
    return [tuple(group) for group in rows.values() if len({texts[at].strip() for at in group}) > 1]


def unit(vectors: Vectors) -> Vectors:
    """Each row at length one. Zero and not finite rows stay what they are."""
    wide = vectors.astype(np.float64)  # float32 squares of tiny and huge numbers are 0 and inf
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    sound = np.isfinite(lengths) & (lengths > 0)
    narrow: Vectors = np.divide(wide, lengths, out=wide, where=sound).astype(np.float32)
    return narrow


# --- texts as models can take them -------------------------------------------------------------


class Piece(NamedTuple):
    """A part of the text in row `row`."""

    row: int
    text: str


def readable(texts: Sequence[str], *, role: Role, longest: Callable[[str], int]) -> list[Piece]:
    """The texts as pieces that a model can read whole; none for a blank text.

    `longest` says how many characters of such a text fit. A document is cut at sentence ends. A
    query that is longer is one piece all the same, made of its two ends, because somebody waits
    for it, and what is asked stands at an end.
    """
    return [
        Piece(row, piece)
        for row, text in enumerate(map(plain, texts))
        for piece in _readable_parts(text, role, longest(text))
        if not is_blank(piece)
    ]


def _readable_parts(text: str, role: Role, limit: int) -> list[str]:
    if role == "document" or len(text) <= limit:
        return pieces(text, limit)
    half = limit // 2
    return [f"{text[:half]}\n{text[-half + 1 :]}"]


def few(found: Sequence[Piece], size: int) -> Iterator[Sequence[Piece]]:
    """The pieces in order, at most `size` at a time."""
    return (found[start : start + size] for start in range(0, len(found), size))


def joined(found: Sequence[tuple[Piece, Vectors]], n: int, dims: int) -> Vectors:
    """One row a text: the mean of its pieces' directions, weighted by their lengths."""
    rows = np.zeros((n, dims), dtype=np.float32)
    for piece, vector in found:
        rows[piece.row] += unit(vector) * len(piece.text)
    return unit(rows)


# --- models in this process --------------------------------------------------------------------


class Model(Protocol):
    """A model in this process. Its methods may block; they are called in threads."""

    @property
    def identity(self) -> str: ...

    @property
    def dims(self) -> int: ...

    def longest(self, text: str) -> int:
        """How many characters of such a text it reads whole."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row a text, of any length but zero. Loads the model when it is not."""


class LocalEmbedder:
    """An Embedder over a model in this process.

    Documents are embedded a few at a time, in threads of their own, so that a query never waits
    for more than the few before it; with `reentrant`, for none, because queries have a thread too.
    Only a reentrant model computes in more than one thread.
    """

    def __init__(self, model: Model, *, at_a_time: int, reentrant: bool, threads: int = 1) -> None:
        self._model = model
        self._at_a_time = at_a_time
        documents = ThreadPoolExecutor(threads if reentrant else 1, "trimem-embed")
        queries = ThreadPoolExecutor(1, "trimem-query") if reentrant else documents
        self._threads: dict[Role, Executor] = {"query": queries, "document": documents}

    @property
    def identity(self) -> str:
        return self._model.identity

    @property
    def dims(self) -> int:
        return self._model.dims

    def warm(self) -> None:
        """Begins to load the model, and does not wait for it. What fails, fails again when used."""
        self._threads["query"].submit(self._model.encode, ["warm"], "query")

    async def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        wanted = await self._in_thread(
            role, lambda: readable(texts, role=role, longest=self._model.longest)
        )
        wanted.sort(key=lambda piece: len(piece.text))  # equal lengths need no padding
        parts = await asyncio.gather(
            *(
                self._in_thread(role, partial(self._encode, part, role))
                for part in few(wanted, self._at_a_time)
            )
        )
        found = [each for part in parts for each in part]
        return joined(found, len(texts), self.dims)

    async def close(self) -> None:
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def _encode(self, part: Sequence[Piece], role: Role) -> list[tuple[Piece, Vectors]]:
        try:
            vectors = self._model.encode([piece.text for piece in part], role)
        except EmbeddingFailed:
            raise
        except Exception as error:
            raise EmbeddingFailed(f"{self.identity}: {error}") from error
        expected = (len(part), self.dims)
        if vectors.shape != expected:
            raise EmbeddingFailed(f"{self.identity} gave {vectors.shape}, not {expected}")
        return list(zip(part, vectors, strict=True))

    async def _in_thread(self, role: Role, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads[role], work)
