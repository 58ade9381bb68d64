"""How long `record` and `build_context` take, as the memory grows.

For 1k, 10k and 100k episodes in one memory: `record` of a turn until it is acknowledged, and
`build_context` of a small user (200 episodes) and of a large one (10,000), in a conversation of
twelve turns and in one that fills its window (4,000 tokens), one at a time and sixteen at once;
each part of it; the whole with embedding the question; and the snapshot alone.

    python benchmarks/latency.py                 # 1k and 10k
    python benchmarks/latency.py --sizes 1000,10000,100000 --runs 200

Episodes are made of a seeded vocabulary and their vectors are drawn around 64 topics, so that no
time goes into embedding 100,000 texts; only the rows "with embedding" run the real embedder. The
tables name medians, p95 and p99 in milliseconds of wall time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memory import Memory
from memory.embedding import Embedder, open_embedder
from memory.local import stop_stack
from memory.memory import Session, UserMemory
from memory.search import Search
from memory.settings import Settings

SMALL, LARGE = 200, 10_000
BATCH = 500
TOPICS, DIMS = 64, 384
CONSOLE = Console(width=100)

_SYLLABLES = """ba ke lo mi nu ra se ti vo zu pa gri sta ple chi dor fen gal""".split()  # noqa: SIM905
_PEOPLE = "Anna Boris Chloe Dmitri Elena Farid Greta Hugo Ines Jonas Kira".split()  # noqa: SIM905


class DrawnVectors:
    """An embedder that draws a vector around one of 64 topics from a text's hash: no time, and
    neighbourhoods like those of real texts."""

    identity = f"drawn/{DIMS}"
    dims = DIMS

    def __init__(self) -> None:
        self._topics = np.random.default_rng(7).normal(size=(TOPICS, DIMS)).astype(np.float32)

    async def embed(
        self, texts: Sequence[str], *, role: Literal["query", "document"]
    ) -> NDArray[np.float32]:
        return np.stack([self._draw(text) for text in texts])

    async def close(self) -> None:
        """Nothing is open."""

    def _draw(self, text: str) -> NDArray[np.float32]:
        seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        noise = np.random.default_rng(seed).normal(size=DIMS).astype(np.float32)
        vector = self._topics[seed % TOPICS] + 0.8 * noise
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


class RealQueries(DrawnVectors):
    """The same vectors, after the time that a real embedder takes for the question."""

    def __init__(self, real: Embedder) -> None:
        super().__init__()
        self._real = real

    async def embed(
        self, texts: Sequence[str], *, role: Literal["query", "document"]
    ) -> NDArray[np.float32]:
        if role == "query":
            await self._real.embed(texts, role=role)
        return await super().embed(texts, role=role)


def vocabulary(rng: random.Random) -> list[str]:
    return sorted({"".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3))) for _ in range(4000)})


def sentence(rng: random.Random, words: Sequence[str]) -> str:
    """Some fifteen words, frequent ones more often (Zipf), with a name and a number."""
    chosen = [words[min(int(rng.paretovariate(0.9)) - 1, len(words) - 1)] for _ in range(13)]
    return f"{rng.choice(_PEOPLE)} {' '.join(chosen)} {rng.randint(1, 9999)}"


async def fill(memory: Memory, total: int) -> tuple[UserMemory, UserMemory | None]:
    """Put `total` episodes in: a small user, a large one where there is room for it, others."""
    rng = random.Random(total)
    words = vocabulary(rng)
    plan = [("small", SMALL)]
    if total > LARGE:
        plan.append(("large", LARGE))
    rest = total - sum(count for _, count in plan)
    share = max(1, min(500, rest // 100))
    plan += [(f"other-{i}", rest // share) for i in range(share)]
    for name, count in track(plan, description=f"{total:,} episodes", console=CONSOLE):
        user = memory.user(name)
        for start in range(0, count, BATCH):
            messages = [
                {"role": "user", "content": sentence(rng, words)}
                for _ in range(min(BATCH, count - start))
            ]
            await user.session(f"s{start}").record(messages=messages)
        for fact in range(20 if name in ("small", "large") else 0):
            await user.assert_fact("user", "likes", f"{words[fact * 7]} {fact}")
    await memory.settled(timedelta(hours=2))
    for name in ("small", "large") if total > LARGE else ("small",):
        await talk(memory.user(name).session("evening"), 12, rng, words)
    await memory.settled(timedelta(minutes=5))
    return memory.user("small"), memory.user("large") if total > LARGE else None


async def talk(session: Session, turns: int, rng: random.Random, words: Sequence[str]) -> None:
    for _ in range(turns):
        await session.record(user=sentence(rng, words), assistant=sentence(rng, words))


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1000


async def one_at_a_time(work: Callable[[], Awaitable[object]], runs: int) -> list[float]:
    for _ in range(5):
        await work()
    return [await timed(work) for _ in range(runs)]


async def sixteen_at_once(work: Callable[[], Awaitable[object]], runs: int) -> list[float]:
    times: list[float] = []
    for _ in range(max(1, runs // 16)):
        times += await asyncio.gather(*(timed(work) for _ in range(16)))
    return times


class Figures:
    """Rows of one table: what was measured, and its quantiles."""

    def __init__(self, title: str) -> None:
        self.table = Table("what", "p50 ms", "p95", "p99", title=title, title_justify="left")
        self.medians: dict[str, float] = {}

    def add(self, what: str, times: Sequence[float]) -> None:
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        self.medians[what] = cuts[49]
        self.table.add_row(what, *(f"{cuts[at]:.2f}" for at in (49, 94, 98)))


async def measure(total: int, runs: int, home: Path) -> Figures:
    figures = Figures(f"{total:,} episodes")
    settings = Settings(home=home, recall_k=8)
    async with Memory.open(home, settings=settings, embedder=DrawnVectors()) as memory:
        small, large = await fill(memory, total)
        rng = random.Random(1)
        words = vocabulary(random.Random(total))
        session = small.session("today")

        async def record() -> None:
            await session.record(user=sentence(rng, words), assistant=sentence(rng, words))

        figures.add("record, acknowledged (user + assistant)", await one_at_a_time(record, runs))
        await memory.settled(timedelta(minutes=5))
        figures.add("record, 16 at once", await sixteen_at_once(record, runs))
        await memory.settled(timedelta(minutes=5))
        for name, user in (("small user", small), ("10k user", large)):
            if user is None:
                continue
            evening = user.session("evening")

            async def build(evening: Session = evening) -> None:
                await evening.build_context(sentence(rng, words), system="You help.")

            figures.add(f"build_context, {name}", await one_at_a_time(build, runs))
            figures.add(f"build_context, {name}, 16 at once", await sixteen_at_once(build, runs))
            await measure_parts(figures, name, user, evening, rng, words, runs)

        async def build_full() -> None:
            await session.build_context(sentence(rng, words), system="You help.")

        full = await one_at_a_time(build_full, runs)
        figures.add("build_context, small user, window full", full)
    real = RealQueries(await open_embedder(settings))
    async with Memory.open(home, settings=settings, embedder=real) as memory:
        for name, user in (("small user", small), ("10k user", large)):
            if user is None:
                continue
            evening = memory.user(user.scope.user).session("evening")

            async def whole(evening: Session = evening) -> None:
                await evening.build_context(sentence(rng, words), system="You help.")

            figures.add(f"build_context, {name}, with embedding", await one_at_a_time(whole, runs))
    return figures


async def measure_parts(
    figures: Figures,
    name: str,
    user: UserMemory,
    today: Session,
    rng: random.Random,
    words: Sequence[str],
    runs: int,
) -> None:
    """The parts that `build_context` is made of, each alone."""
    parts = user._parts
    search = Search(parts, user.scope)
    vectors = DrawnVectors()
    now = parts.clock()

    async def nearest() -> None:
        await parts.episodic.nearest(user.scope, vectors._draw(sentence(rng, words)), 50)

    async def lexical() -> None:
        await parts.lexical.search(user.scope, sentence(rng, words), 50)

    async def facts() -> None:
        await search.facts(sentence(rng, words), now=now)

    async def snapshot() -> None:
        await parts.snapshots.record(
            user.scope, today.name, context, snapshot_id=parts.new_id(), now=now
        )

    async def explanation() -> None:
        context.explain()

    context = await today.build_context(sentence(rng, words), system="You help.")
    for part, work in (
        ("window", today.window),
        ("dense", nearest),
        ("lexical", lexical),
        ("facts", facts),
        ("snapshot", snapshot),
        ("explanation as text", explanation),
    ):
        figures.add(f"  {part}, {name}", await one_at_a_time(work, runs))


async def run(sizes: Sequence[int], runs: int) -> None:
    CONSOLE.print(
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"{runs} runs a row, local stack"
    )
    measured = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="trimem-bench-") as home:
            measured[size] = await measure(size, runs, Path(home))
            await stop_stack(Path(home))
        CONSOLE.print(measured[size].table)
    ratios(measured)


def ratios(measured: dict[int, Figures]) -> None:
    first, last = min(measured), max(measured)
    if first == last:
        return
    table = Table("what", f"p50 at {last:,} / at {first:,}", title="growth", title_justify="left")
    for what, median in measured[first].medians.items():
        if what in measured[last].medians:
            table.add_row(what, f"{measured[last].medians[what] / median:.2f}")
    CONSOLE.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000", help="episodes, comma-separated")
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    asyncio.run(run([int(size) for size in options.sizes.split(",")], options.runs))


if __name__ == "__main__":
    main()
