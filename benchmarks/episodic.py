"""How long episodic memory takes: nearest, lexical search and remember, without embedding.

    python benchmarks/episodic.py CHROMA_URL [JOURNAL_URL] [--sizes 1000,10000,100000]
                                  [--vectors random|clustered]

A tenth of the episodes belongs to one user, the rest to users of 100 each. Vectors are drawn, so
that what is measured is storing and finding. Prints medians and 95th percentiles in milliseconds,
and how often the nearest five have the exact nearest (by comparing with all of the user's vectors).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.chroma import open_chroma
from memory.embedding.base import Role
from memory.episodic import EpisodicMemory
from memory.journal import Journal
from memory.lexical import LexicalIndex
from memory.models import RecordedMessage, Scope
from memory.models import Role as Speaker

DIMS = 384
SMALL = 100
NOW = datetime(2026, 3, 1, tzinfo=UTC)
TIMEOUT = timedelta(seconds=120)
ROUNDS = 100
_WORDS = [f"{first}{second}" for first in "bcdfghjklmnpqrstvwz" for second in (
    "aro", "eli", "inu", "oma", "uka", "alt", "ern", "ind", "ost", "urm", "ash", "ell", "ick",
    "oft", "unt", "ade", "ive", "ome", "ure", "ain", "eed", "oil", "out", "aul", "ean", "ios",
)]  # fmt: skip


class DrawnVectors:
    """An embedder that draws: from everywhere, or from around 200 centres."""

    dims = DIMS

    def __init__(self, kind: str) -> None:
        self.identity = f"drawn-{kind}/{DIMS}"
        self._drawn = np.random.default_rng(7)
        self._centres = self._drawn.standard_normal((200, DIMS)) if kind == "clustered" else None

    def draw(self, n: int) -> NDArray[np.float32]:
        rows = self._drawn.standard_normal((n, DIMS))
        if self._centres is not None:
            rows = self._centres[self._drawn.integers(0, 200, n)] + 0.5 * rows
        unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(
            np.float32
        )
        return unit

    async def embed(self, texts: Sequence[str], *, role: Role) -> NDArray[np.float32]:
        return self.draw(len(texts))

    async def close(self) -> None:
        pass


def said(scope: Scope, seq: int, drawn: random.Random) -> RecordedMessage:
    """A message of a dozen words, the frequent ones far more often than the rare ones."""
    words = [_WORDS[min(int(drawn.paretovariate(0.6)), len(_WORDS)) - 1] for _ in range(12)]
    return RecordedMessage(
        id=f"{scope.user}-{seq}",
        session=f"s{seq // 50}",
        seq=seq,
        role=Speaker.USER,
        content=" ".join(words) + f" {seq}",
        event_time=NOW + timedelta(seconds=seq),
        recorded_at=NOW,
    )


async def timed(call: Callable[[], Awaitable[object]]) -> str:
    taken = []
    for _ in range(5):
        await call()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await call()
        taken.append(1000 * (time.perf_counter() - began))
    taken.sort()
    return f"{statistics.median(taken):6.2f} {taken[int(0.95 * ROUNDS)]:7.2f}"


async def measure(size: int, embedder: DrawnVectors, chroma_url: str, journal_url: str) -> None:
    drawn = random.Random(size)
    async with (
        Journal.open(journal_url, timeout=TIMEOUT) as journal,
        open_chroma(chroma_url, timeout=TIMEOUT) as chroma,
    ):
        memory, words = EpisodicMemory(journal, chroma, embedder), LexicalIndex(journal)
        large = Scope.of(f"bench-{size}", "large")
        small = [
            Scope.of(large.tenant, f"user-{n}") for n in range(max(size * 9 // 10 // SMALL, 1))
        ]
        began = time.perf_counter()
        for start in range(0, size // 10, 500):
            messages = [said(large, n, drawn) for n in range(start, min(start + 500, size // 10))]
            await memory.remember(large, messages)
        for scope in small:
            await memory.remember(scope, [said(scope, n, drawn) for n in range(SMALL)])
        took = time.perf_counter() - began
        print(f"{size:>7,} episodes, {took:.0f} s to store ({1000 * took / size:.2f} ms each)")

        for name, users in (("small user", small), ("large user", [large])):
            await measure_users(name, users, memory, words, embedder, drawn)


async def measure_users(
    name: str,
    users: Sequence[Scope],
    memory: EpisodicMemory,
    words: LexicalIndex,
    embedder: DrawnVectors,
    drawn: random.Random,
) -> None:
    sequence = iter(range(10**6, 10**7))

    def query() -> str:
        return " ".join(said(users[0], 0, drawn).text.split()[:6])

    def message() -> list[RecordedMessage]:
        return [said(users[0], next(sequence), drawn)]

    for scope in users:  # the first search of a collection after many writes reads what is new
        await memory.nearest(scope, embedder.draw(1)[0], 50)
    near = await timed(lambda: memory.nearest(drawn.choice(users), embedder.draw(1)[0], 50))
    found = await timed(lambda: words.search(drawn.choice(users), query(), 50))
    share = await exact(memory, users, embedder, drawn)
    one = await timed(lambda: memory.remember(users[0], message()))
    print(f"    {name}: nearest {near}  lexical {found}  remember {one}  exact in 5: {share:.0%}")


async def exact(
    memory: EpisodicMemory,
    users: Sequence[Scope],
    embedder: DrawnVectors,
    drawn: random.Random,
) -> float:
    """The share of searches whose nearest five have the exact nearest among them."""
    right, known = 0, {}
    for _ in range(ROUNDS):
        scope, vector = drawn.choice(users), embedder.draw(1)[0]
        if scope.user not in known:
            ids = [episode.id for episode in await memory.all(scope)]
            known[scope.user] = await memory.vectors(scope, ids)
        vectors = known[scope.user]
        best = max(vectors, key=lambda key: float(vectors[key] @ vector))
        right += best in {hit.id for hit in await memory.nearest(scope, vector, 5)}
    return right / ROUNDS


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chroma_url")
    parser.add_argument("journal_url", nargs="?")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--vectors", choices=("random", "clustered"), default="random")
    given = parser.parse_args()
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            journal_url = given.journal_url or f"sqlite:///{Path(folder) / 'journal.db'}"
            await measure(size, DrawnVectors(given.vectors), given.chroma_url, journal_url)


if __name__ == "__main__":
    asyncio.run(main())
