"""An embedder for tests: texts that share words have vectors that are near. Needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from memory.embedding.base import Role
from memory.errors import EmbeddingFailed


class StubEmbedder:
    """Each word has a random direction of its own, a text the sum of its words'.

    `calls` has (role, texts) of every call. Texts in `wrong` get what is given there: a row, or an
    exception that is raised for the whole batch.
    """

    def __init__(self, name: str = "stub", dims: int = 384) -> None:
        self.identity = f"{name}/{dims}"
        self.dims = dims
        self.calls: list[tuple[Role, tuple[str, ...]]] = []
        self.wrong: dict[str, object] = {}

    async def embed(self, texts: Sequence[str], *, role: Role) -> NDArray[np.float32]:
        self.calls.append((role, tuple(texts)))
        rows: list[object] = []
        for text in texts:
            wrong = self.wrong.get(text)
            if isinstance(wrong, BaseException):
                raise wrong
            rows.append(self._vector(text) if wrong is None else wrong)
        return rows  # type: ignore[return-value]  # rows of several lengths are part of the tests

    async def close(self) -> None:
        pass

    @property
    def embedded(self) -> list[str]:
        return [text for _, texts in self.calls for text in texts]

    def _vector(self, text: str) -> NDArray[np.float32]:
        words = text.casefold().split() or [""]
        vector = np.sum([_direction(self.identity, word, self.dims) for word in words], axis=0)
        unit: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit


@lru_cache(maxsize=20_000)
def _direction(name: str, word: str, dims: int) -> NDArray[np.float64]:
    seed = int.from_bytes(blake2b(f"{name} {word}".encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dims)


FAILS = EmbeddingFailed("out of order")
