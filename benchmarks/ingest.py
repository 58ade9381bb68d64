"""How many short messages a second go in, until every tier has them.

Three ways in: `record` with one message at a time, with a hundred, and a file through the importer,
each with the default embedder and with drawn vectors, which take no time: the rest of the work.
Messages have 20 to 25 English words, in sessions of 200.

    python benchmarks/ingest.py                       # 2,000 messages each way
    python benchmarks/ingest.py --ways file --messages 100000 --vectors drawn

"acknowledged" counts until all are durable in the journal, "settled" until working, episodic and
semantic memory have them too. "cpu" is processor time in milliseconds a message, of this process
and (where there is /proc) of the servers: what the machine's load does not change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from latency import DrawnVectors
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from memory import Memory
from memory.importers.importing import import_file
from memory.local import stop_stack
from memory.settings import Settings

SESSION = 200
TOGETHER = 100
LOOK = 0.2
CONSOLE = Console(width=100)

_NAMES = "Anna Boris Chloe Dmitri Elena Farid Greta Hugo Ines Jonas Kira Leo Mona Nils".split()  # noqa: SIM905
_WORDS = """about after again all always and another are asked away because been before book bought
bus called came car city coffee cold could day decided dinner early evening every family film
finally first found four friend from garden gave going good had happy have heard her holiday home
hotel house hundred idea into job just kitchen know last late left letter like little long looking
lunch made many maybe meeting money month more morning moved music need never new next night not
nothing now office often old one only other our out over paid people phone photo place plan played
quite rain read ready really recipe road room said same saw school sea second seems she short since
sister slept small some song soon started still story street summer table talk tea than that their
then there they thing think this three ticket time today together told tomorrow too took town train
trip two until usually very visit walk want was watch water week well went were what when where
which while wine winter with work world would write year yesterday you""".split()  # noqa: SIM905


class Figure(NamedTuple):
    """One way in: seconds until acknowledged and until settled, and the processors' for it."""

    way: str
    vectors: str
    messages: int
    acknowledged: float
    settled: float
    cpu: float
    servers: float


def said(rng: random.Random) -> str:
    """A message: 20 to 25 words with a name and a number in it, in two sentences."""
    words = rng.choices(_WORDS, k=rng.randint(18, 23))
    words.insert(rng.randrange(len(words)), rng.choice(_NAMES))
    words.insert(rng.randrange(len(words)), str(rng.randint(2, 9999)))
    half = len(words) // 2
    return f"{' '.join(words[:half]).capitalize()}. {' '.join(words[half:]).capitalize()}."


Told = Callable[[int], None]
"""Told how many more messages are done."""


async def one_by_one(memory: Memory, texts: Sequence[str], told: Told) -> None:
    user = memory.user("ada")
    for at, text in enumerate(texts):
        await user.session(f"s{at // SESSION}").record(user=text)
        told(1)


async def in_batches(memory: Memory, texts: Sequence[str], told: Told) -> None:
    user = memory.user("ada")
    for start in range(0, len(texts), TOGETHER):
        part = texts[start : start + TOGETHER]
        await user.session(f"s{start // SESSION}").record(
            messages=[{"role": "user", "content": text} for text in part]
        )
        told(len(part))


async def from_a_file(memory: Memory, texts: Sequence[str], told: Told) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    with tempfile.TemporaryDirectory(prefix="trimem-bench-") as folder:
        file = Path(folder) / "said.jsonl"
        with file.open("w", encoding="utf-8") as out:
            for at, text in enumerate(texts):
                line = {
                    "role": "user",
                    "content": text,
                    "session": f"s{at // SESSION}",
                    "time": (began + timedelta(minutes=at)).isoformat(),
                }
                out.write(json.dumps(line) + "\n")
        done = 0

        def moved(entries: float, total: int) -> None:
            nonlocal done
            told(round(entries) - done)
            done = round(entries)

        report = await import_file(memory, file, "ada", progress=moved)
        assert report.added == len(texts), report


WAYS: dict[str, Callable[[Memory, Sequence[str], Told], Awaitable[None]]] = {
    "one": one_by_one,
    "batches": in_batches,
    "file": from_a_file,
}
VECTORS = ("drawn", "real")


async def measure(way: str, vectors: str, messages: int, progress: Progress) -> Figure:
    rng = random.Random(messages)
    texts = [said(rng) for _ in range(messages)]
    with tempfile.TemporaryDirectory(prefix="trimem-bench-") as folder:
        home = Path(folder)
        embedder = DrawnVectors() if vectors == "drawn" else None
        async with Memory.open(home, settings=Settings(home=home), embedder=embedder) as memory:
            await memory.user("warm").session("up").record(user="How are you?")
            await memory.settled()
            recording = progress.add_task(f"{way}, {vectors}: record", total=messages)
            settling = progress.add_task(f"{way}, {vectors}: settle", total=messages)
            began, cpu, served = time.perf_counter(), time.process_time(), of_servers(home)
            watch = asyncio.create_task(watched(memory, messages, progress, settling))
            await WAYS[way](memory, texts, lambda more: progress.advance(recording, more))
            acknowledged = time.perf_counter() - began
            assert await memory.settled(timedelta(hours=4))
            settled = time.perf_counter() - began
            spent, served = time.process_time() - cpu, of_servers(home) - served
            watch.cancel()
            progress.update(settling, completed=messages)
        await stop_stack(home)
    return Figure(way, vectors, messages, acknowledged, settled, spent, served)


def of_servers(home: Path) -> float:
    """Processor seconds of the processes that have the folder in their command line."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(home).encode() in (process / "cmdline").read_bytes():
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
        except OSError:  # it has ended
            continue
    return total / os.sysconf("SC_CLK_TCK")


async def watched(memory: Memory, messages: int, progress: Progress, task: TaskID) -> None:
    """Shows how far the tier that is furthest behind has come."""
    recorded = 0
    while True:
        await asyncio.sleep(LOOK)
        lags = {lag.projection: lag.behind for lag in await memory.lags()}
        recorded = max(recorded, *lags.values())
        progress.update(task, completed=min(messages, recorded - max(lags.values())))


async def run(ways: Sequence[str], vectors: Sequence[str], messages: int) -> None:
    CONSOLE.print(
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        "local stack"
    )
    table = Table(
        "way in", "vectors", "messages", "acknowledged/s", "settled/s", "cpu", "of servers"
    )
    with Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=CONSOLE,
    ) as progress:
        for way in ways:
            for kind in vectors:
                found = await measure(way, kind, messages, progress)
                table.add_row(
                    found.way,
                    found.vectors,
                    f"{messages:,}",
                    f"{messages / found.acknowledged:,.0f}",
                    f"{messages / found.settled:,.0f}",
                    f"{1000 * found.cpu / messages:.2f}",
                    f"{1000 * found.servers / messages:.2f}",
                )
    CONSOLE.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--ways", default=",".join(WAYS), help="of: " + ", ".join(WAYS))
    parser.add_argument("--vectors", default=",".join(VECTORS), help="of: " + ", ".join(VECTORS))
    options = parser.parse_args()
    asyncio.run(run(options.ways.split(","), options.vectors.split(","), options.messages))


if __name__ == "__main__":
    main()
