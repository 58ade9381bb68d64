"""How much of what was said is found again: the product beside plain baselines and its peers.

    python -m benchmarks.recall --bench FOLDER --sets locomo_fixed,bfcl_memory --out recall.jsonl
    python -m benchmarks.recall --bench FOLDER --peer mem0 --peer mempalace --table recall.md
    python -m benchmarks.recall --bench FOLDER --sets locomo --conversations conv-26 --sample 50

FOLDER has public sets and a load.py that reads them (benchmarks/recall/sets.py has its shape);
nothing of it is copied, and results name turns by id. Nothing is tuned on answers here: a system
gets turns, then questions, and what was found is compared afterwards.

The product is used as an application would: `session.record` in batches (each turn's speaker as
the message's name where speakers have names, else its role; its time as event_time), one user a
conversation; then `user.recall` and, in a new session for each context, `session.build_context`.
Evidence is counted by message: an episode stands for its message (also one part of a long one), a
fact for the messages that it was read from. The clock stands at the question's time, or at the
conversation's last turn. Each question is answered as if it were the only one: what earlier
contexts showed does not count as used, so that two runs give the same.

Beside it run the newest turns, BM25, Chroma with the product's embedder (text alone, and with
speakers), BM25 and Chroma fused by reciprocal ranks, and with --peer other memories, installed from
the package index into environments under --cache. A peer that cannot be installed, or does not
work, is named with its reason.

The file of --out grows by whole conversations: the same command goes on where it was stopped, and a
changed product or question is asked again. Without --sample all questions are asked; with it they
are drawn by --seed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks.recall.endpoint import serving
from benchmarks.recall.metrics import distinct
from benchmarks.recall.peers import PEERS, PeerUnavailable, installed, running
from benchmarks.recall.report import Measured, SetReport, markdown, summary
from benchmarks.recall.results import Answer, Block, Results
from benchmarks.recall.sets import Conversation, Question, chosen, read_sets
from benchmarks.recall.systems import Remembering, System, baselines, open_product
from memory import Settings
from memory.embedding import Embedder, open_embedder
from memory.tokens import TokenCounter

DEPTH = 20
"""Turns, or the product's episodes, that recall is asked for."""
BUDGETS = (512, 1_024, 2_048)
PRODUCT = "trimem"
SYSTEMS = (PRODUCT, "recency", "bm25", "chroma", "chroma-named", "rrf")
CONSOLE = Console(stderr=True)


class Plan(NamedTuple):
    """What decides the answers to a question, beside the system."""

    embedder: str
    depth: int = DEPTH
    budgets: tuple[int, ...] = BUDGETS
    context_k: int | None = None

    def block(self, conversation: Conversation, system: System) -> Block:
        asked = [question.id for question in conversation.questions]
        plan = sha256(json.dumps([self, len(conversation.turns), asked]).encode()).hexdigest()[:12]
        return Block(conversation.set, system.name, system.version, conversation.id, plan)


async def measure(
    systems: Sequence[System],
    conversations: Sequence[Conversation],
    results: Results,
    plan: Plan,
    *,
    progress: Progress | None = None,
    embedder: Remembering | None = None,
) -> dict[str, str]:
    """Ask every system everything that `results` do not have yet.

    Gives the reasons of those that stopped working, by name; they are not asked further.
    """
    stopped: dict[str, str] = {}
    for conversation in conversations:
        for system in systems:
            block = plan.block(conversation, system)
            if block in results or system.name in stopped:
                continue
            try:
                results.add(block, await _answers(system, conversation, plan, progress))
            except PeerUnavailable as problem:
                stopped[system.name] = str(problem)
        if embedder is not None:
            embedder.forget()
    return stopped


async def _answers(
    system: System, conversation: Conversation, plan: Plan, progress: Progress | None
) -> list[Answer]:
    progress = progress or Progress(disable=True)
    title = f"{conversation.user}: {system.name}"
    task = progress.add_task(f"{title} learns {len(conversation.turns):,} turns", total=None)
    try:
        await system.learn(conversation)
        progress.update(
            task, description=f"{title} answers", total=len(conversation.questions), completed=0
        )
        answers = []
        for question in conversation.questions:
            answers.append(await _answer(system, conversation, question, plan))
            progress.advance(task)
        return answers
    finally:
        progress.remove_task(task)


async def _answer(
    system: System, conversation: Conversation, question: Question, plan: Plan
) -> Answer:
    began = time.perf_counter()
    found = await system.ranked(question, plan.depth)
    took = 1000 * (time.perf_counter() - began)
    contexts = {budget: await system.context(question, budget) for budget in plan.budgets}
    return Answer(
        question=question.id,
        category=question.category,
        answerable=question.answerable,
        evidence=tuple(sorted(question.evidence)),
        evidence_sessions=tuple(sorted(question.sessions)),
        ranked=tuple(found.turns),
        ranked_sessions=tuple(distinct(conversation.session_of[turn] for turn in found.turns)),
        recall_ms=took,
        nothing=found.nothing,
        contexts=contexts,
    )


def reported(
    name: str,
    conversations: Sequence[Conversation],
    systems: Sequence[System],
    results: Results,
    plan: Plan,
    *,
    note: str = "",
    skipped: dict[str, str],
) -> SetReport:
    """What the results say of one set. A system that was left out has its reason; it has no
    figures where it did not get to the end, as they would be of other questions than the rest."""
    measured = [
        Measured(
            system.name,
            system.version,
            _all_answers(conversations, system, results, plan),
            skipped.get(system.name, ""),
        )
        for system in systems
    ]
    known = {each.system for each in measured}
    measured += [Measured(each, "", (), why) for each, why in skipped.items() if each not in known]
    turns = sum(len(each.turns) for each in conversations)
    return SetReport(name, len(conversations), turns, note, measured)


def _all_answers(
    conversations: Sequence[Conversation], system: System, results: Results, plan: Plan
) -> list[Answer]:
    blocks = [plan.block(conversation, system) for conversation in conversations]
    if not all(block in results for block in blocks):
        return []
    return [answer for block in blocks for answer in results.of(block)]


async def run(given: argparse.Namespace) -> None:
    sets = {
        name: chosen(conversations, only=given.conversations, sample=given.sample, seed=given.seed)
        for name, conversations in read_sets(given.bench, given.sets).items()
    }
    sets = {name: conversations for name, conversations in sets.items() if conversations}
    if not sets:
        raise LookupError(f"nothing to ask: no conversation {', '.join(given.conversations)}")
    embedder = await open_embedder(Settings(llm=None))
    remembering = Remembering(embedder)
    plan = Plan(embedder.identity, given.depth, given.budgets, given.context_k)
    results, skipped = Results(given.out), dict[str, str]()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(embedder.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recall-")))
        systems = await _systems(stack, given, remembering, folder, skipped)
        progress = stack.enter_context(
            Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=CONSOLE,
            )
        )
        reports = []
        everything = progress.add_task("sets", total=len(sets))
        for name, conversations in sets.items():
            named = any(each.named for each in conversations)
            able = [each for each in systems if each.name not in skipped]
            if not named:  # the two are the same then
                able = [each for each in able if each.name != "Chroma, speaker in text"]
            skipped |= await measure(
                able, conversations, results, plan, progress=progress, embedder=remembering
            )
            report = reported(
                name, conversations, able, results, plan, note=_sampled(given), skipped=skipped
            )
            reports.append(report)
            progress.advance(everything)
    how = [f"Embedder {plan.embedder}; {_context_k(plan)}."]
    table = markdown(reports, budgets=plan.budgets, k=plan.depth, how=how)
    print(table)
    if given.table is not None:
        given.table.write_text(table, encoding="utf-8")
    if given.json is not None:
        figures = json.dumps(summary(reports, plan.budgets), indent=1)
        given.json.write_text(figures + "\n", encoding="utf-8")


async def _systems(
    stack: AsyncExitStack,
    given: argparse.Namespace,
    embedder: Embedder,
    folder: Path,
    skipped: dict[str, str],
) -> list[System]:
    """What is to be compared, all running. Peers that do not are told in `skipped`."""
    counter = TokenCounter(Settings().model)
    systems: list[System] = []
    if PRODUCT in given.systems:
        product = open_product(folder / "product", embedder, k=given.context_k)
        systems.append(await stack.enter_async_context(product))
    plain = baselines(counter, embedder)
    systems += [plain[name] for name in plain if name in given.systems]
    if given.peer:
        endpoint = await stack.enter_async_context(serving(embedder))
        for name in given.peer:
            try:
                with CONSOLE.status(f"{name}: installing"):
                    python = await installed(PEERS[name], given.cache)
                home = Path(tempfile.mkdtemp(dir=folder, prefix=name))
                peer = running(PEERS[name], python, home, endpoint, counter)
                systems.append(await stack.enter_async_context(peer))
            except PeerUnavailable as problem:
                skipped[name] = str(problem)
                CONSOLE.print(f"{name} is left out: {problem}", markup=False)
    return systems


def _sampled(given: argparse.Namespace) -> str:
    parts = []
    if given.conversations:
        parts.append(f"Only {', '.join(given.conversations)}.")
    if given.sample is not None:
        parts.append(f"{given.sample} questions drawn with seed {given.seed}.")
    return " ".join(parts)


def _context_k(plan: Plan) -> str:
    if plan.context_k is None:
        return "trimem's contexts hold as many episodes as its own settings say"
    return f"trimem's contexts hold at most {plan.context_k} episodes"


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _systems_named(given: str) -> list[str]:
    names = _names(given)
    for name in names:
        if name not in SYSTEMS:
            raise argparse.ArgumentTypeError(f"no system {name!r}: {', '.join(SYSTEMS)}")
    return names


def _numbers(given: str) -> tuple[int, ...]:
    return tuple(sorted(int(each) for each in _names(given)))


def parser() -> argparse.ArgumentParser:
    ours = argparse.ArgumentParser(
        prog="python -m benchmarks.recall",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = ours.add_argument
    add("--bench", type=Path, required=True, help="the folder of sets, with its load.py")
    add("--sets", type=_names, default=[], help="names, with commas; all by default")
    add("--conversations", type=_names, default=[], help="only these, by id")
    add(
        "--systems", type=_systems_named, default=SYSTEMS, help="names, with commas; all by default"
    )
    add("--peer", action="append", default=[], choices=sorted(PEERS), help="may be repeated")
    add("--sample", type=int, help="so many questions of each set")
    add("--seed", type=int, default=0, help="what draws them")
    add("--depth", type=int, default=DEPTH, help="turns that recall is asked for")
    add("--budgets", type=_numbers, default=BUDGETS, help="tokens of the contexts")
    add("--context-k", type=int, help="episodes in the product's contexts; its own by default")
    add("--out", type=Path, default=Path("recall.jsonl"), help="results by question")
    add("--table", type=Path, help="the report as markdown")
    add("--json", type=Path, help="the figures as JSON")
    add("--cache", type=Path, default=Path.home() / ".cache" / "trimem" / "peers")
    return ours


def main() -> None:
    given = parser().parse_args()
    try:
        asyncio.run(run(given))
    except (LookupError, KeyboardInterrupt) as stop:
        raise SystemExit(str(stop) or "stopped; the same command goes on") from None


if __name__ == "__main__":
    main()
