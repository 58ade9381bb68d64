"""Values as tables and lines for people. Everything fits a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from consolidation import Reading, Report
from memory.importers.values import ImportReport
from memory.journal import SessionInfo, SnapshotInfo
from memory.models import (
    Context,
    Dropped,
    Episode,
    Fact,
    Health,
    Item,
    JsonObject,
    Recall,
    Recalled,
)
from memory.semantic import render
from memory.snapshots import Diff, Replay
from memory.terminal.console import line, said

TIERS = {"working": "cyan", "episodic": "magenta", "semantic": "green"}
SECTIONS = ("tools", "system", "pinned", "summary", "turns", "memory", "message", "reserve")


def when(moment: datetime | None) -> str:
    """A moment as people read it, in UTC; '' for none."""
    return moment.strftime("%Y-%m-%d %H:%M") if moment else ""


def day(moment: datetime | None) -> str:
    """The day of a moment, in UTC; '' for none."""
    return moment.strftime("%Y-%m-%d") if moment else ""


def counted(number: int, what: str) -> str:
    """'1 fact', '2 facts'."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def sessions(console: Console, found: Sequence[SessionInfo]) -> None:
    table = _table("session", ">messages", "first", "last")
    for info in found:
        table.add_row(
            said(info.session),
            str(info.messages),
            when(info.first_event_time),
            when(info.last_event_time),
        )
    _print(console, table, empty="no sessions", rows=len(found))


def facts(console: Console, found: Sequence[Fact], *, history: bool = False) -> None:
    columns = ["fact", "true from", "until", "origin", ">sources"]
    if history:
        columns.insert(3, "believed")
    table = _table(*columns)
    for fact in found:
        row: list[RenderableType] = [
            said(line(render(fact)), "" if fact.unlearnt_at is None else "dim"),
            day(fact.valid_from),
            day(fact.valid_to),
            fact.origin,
            str(len(fact.sources)),
        ]
        if history:
            row.insert(3, _believed(fact))
        table.add_row(*row)
    _print(console, table, empty="no facts", rows=len(found))


def episodes(console: Console, found: Sequence[Episode]) -> None:
    table = _table("when", "speaker", "said", "")
    for episode in found:
        table.add_row(
            when(episode.event_time),
            said(episode.speaker),
            said(line(episode.text, limit=200)),
            "archived" if episode.archived else "",
        )
    _print(console, table, empty="no episodes", rows=len(found))


def rows(console: Console, found: Sequence[Mapping[str, object]], *, empty: str) -> None:
    """Flat records as a table, with their keys as its columns."""
    table = _table(*(f">{k}" if isinstance(v, int) else k for k, v in _first(found).items()))
    for row in found:
        table.add_row(*(said(_cell(value)) for value in row.values()))
    _print(console, table, empty=empty, rows=len(found))


def recall(console: Console, found: Recall) -> None:
    for item in found.items:
        console.print(entry(item.tier, f"{item.score:.2f}", item.text, _about(item)))
    if not found.items:
        console.print("nothing found", style="dim")
    dropped(console, found.dropped)
    remarks(console, found.unavailable, found.warnings)


def context(console: Console, built: Context, *, messages: bool = True) -> None:
    """A context: what the model sees, what it cost, what is in it and why, what just missed it."""
    if messages:
        for message in built.messages:
            console.print(_message(message))
    tokens(console, built)
    items(console, built.items)
    dropped(console, built.dropped)
    remarks(console, built.unavailable, built.warnings)
    if built.snapshot_id:
        console.print(f"snapshot {built.snapshot_id}", style="dim")


def tokens(console: Console, built: Context) -> None:
    """Tokens by section, all of them against the budget, and what of memory is what."""
    count = built.tokens
    parts = [f"{name} {n}" for name in SECTIONS if (n := getattr(count, name))]
    console.print(f"{count.total} of {count.budget} tokens", style="bold", end="")
    console.print(f" = {' + '.join(parts)}")
    if count.memory:
        console.print(
            f"memory = facts {count.facts} + episodes {count.episodes} + the fence around them",
            style="dim",
        )


def items(console: Console, found: Iterable[Item]) -> None:
    for item in found:
        console.print(entry(item.tier, f"{item.tokens} tok", item.text, item.reason))


def dropped(console: Console, found: Sequence[Dropped]) -> None:
    for miss in found:
        console.print(entry(miss.tier, "missed", line(miss.text, limit=100), miss.reason, "dim"))


def remarks(console: Console, unavailable: Sequence[str], warnings: Sequence[str]) -> None:
    for name in unavailable:
        console.print(said(f"! {name} did not answer (trimem doctor says more)", "bold red"))
    for warning in warnings:
        console.print(said(f"! {warning}", "yellow"))


def health(console: Console, found: Sequence[Health]) -> None:
    table = _table("part", "", "version", "where", "problem")
    for part in found:
        mark = Text("ok", style="green") if part.ok else Text("not ok", style="bold red")
        table.add_row(
            said(part.part), mark, said(part.version), said(part.where), said(part.problem)
        )
    _print(console, table, empty="nothing is running", rows=len(found))


def imported(console: Console, report: ImportReport) -> None:
    already = report.messages - report.added
    verb = "would add up to" if report.dry_run else "added"
    console.print(
        said(
            f"{report.file} ({report.format}): {counted(report.conversations, 'conversation')}, "
            f"{counted(report.messages, 'message')}; {verb} "
            f"{report.messages if report.dry_run else report.added}"
            + (f", {already} were there already" if already and not report.dry_run else "")
        )
    )
    if report.undated:
        console.print(f"  {report.undated} have no time in the file; that of their import is used")
    for reason, count in report.left_out.items():
        console.print(said(f"  left out: {count} × {reason}", "dim"))
    for problem in report.problems:
        console.print(said(f"  {problem.where}: {problem.reason}", "red"))


def night(console: Console, report: Report) -> None:
    """What a night of consolidation did, or would do."""
    would = "would be " if report.dry_run else ""
    console.print(
        f"{counted(report.users, 'user')}, {counted(report.episodes, 'episode')}: "
        f"{report.archived} {would}archived, {report.promoted} {would}promoted"
    )
    if report.reading and report.dry_run:
        console.print(f"{counted(report.reading.waiting, 'message')} would be read for facts")
    elif report.reading:
        _reading(console, report.reading)
    for plan in report.plans:
        for fact in plan.promote:
            console.print(
                entry(
                    "semantic",
                    "new",
                    line(render(fact)),
                    f"from {counted(len(fact.sources), 'message')}",
                )
            )
        for reason in plan.held_back:
            console.print(said(f"! {plan.scope.user}: {reason}", "yellow"))
    for failure in report.failures:
        console.print(said(f"! {failure.scope.user}: {failure.error}", "bold red"))
    for problem in report.problems:
        console.print(said(f"! {problem}", "yellow"))


def _reading(console: Console, reading: Reading) -> None:
    """What a language model has read of what was said."""
    used = reading.usage
    parts = [
        f"{counted(reading.read, 'message')} read for {counted(reading.facts, 'new fact')}",
        f"{reading.rejected} not believed" if reading.rejected else "",
        f"{reading.failed} could not be read" if reading.failed else "",
        f"{reading.given_up} given up" if reading.given_up else "",
        f"{reading.waiting} wait" if reading.waiting else "",
        f"{counted(used.calls, 'call')}, {counted(used.tokens, 'token')}" if used.calls else "",
    ]
    console.print("; ".join(filter(None, parts)))
    if used.failures:
        failures = (f"{count} × {kind}" for kind, count in sorted(used.failures.items()))
        console.print(said(f"! no use: {', '.join(failures)}", "yellow"))
    if reading.ended:
        console.print(said(f"! {reading.ended}", "yellow"))


def snapshots(console: Console, found: Sequence[SnapshotInfo]) -> None:
    table = _table("snapshot", "session", "built")
    for info in found:
        table.add_row(info.id, said(info.session), when(info.created_at))
    _print(console, table, empty="no snapshots", rows=len(found))


def diff(console: Console, change: Diff) -> None:
    before, after = change.tokens_before.total, change.tokens_after.total
    console.print(f"{before} tokens before, {after} after", style="bold")
    if change.is_empty:
        console.print("the same", style="dim")
    for what, changed in (
        ("system text", change.system_changed),
        ("newest message", change.message_changed),
    ):
        if changed:
            console.print(f"~ another {what}", style="yellow")
    for item in change.removed:
        console.print(said(f"- {item.tier}: {line(item.text)}", "red"))
    for item in change.added:
        console.print(said(f"+ {item.tier}: {line(item.text)}", "green"))
    for move in change.moved:
        console.print(
            said(
                f"~ {move.tier}: {line(move.text)} "
                f"(place {move.place_before + 1} → {move.place_after + 1}, "
                f"score {move.score_before:.2f} → {move.score_after:.2f})",
                "yellow",
            )
        )


def replay(console: Console, replayed: Replay) -> None:
    console.print(
        f"snapshot {replayed.snapshot_id}, built {when(replayed.created_at)} in "
        f"session {line(replayed.session)}"
    )
    console.print(f"{len(replayed.data)} bytes, BLAKE2b {replayed.digest}")
    console.print("verified: these are the bytes that were recorded", style="bold green")


# --- pieces ------------------------------------------------------------------------------------


def _table(*columns: str) -> Table:
    """A table; a column whose name starts with '>' is of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column.removeprefix(">"),
            justify="right" if column.startswith(">") else "left",
            overflow="fold",
        )
    return table


def _print(console: Console, table: Table, *, empty: str, rows: int) -> None:
    if rows:
        console.print(table)
    else:
        console.print(empty, style="dim")


def entry(tier: str, number: str, text: str, reason: str, style: str = "") -> Table:
    """One thing in three columns: its tier, a number or a word, its text and the reason."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=8, style=style or TIERS.get(tier, ""))
    grid.add_column(width=7, justify="right", style=style)
    grid.add_column(overflow="fold")
    body = said(line(text), style)
    if reason:
        body = Text.assemble(body, "  ", said(f"({line(reason)})", "dim italic"))
    grid.add_row(tier, number, body)
    return grid


def _message(message: JsonObject) -> RenderableType:
    content = message.get("content")
    text = content if isinstance(content, str) else _parts(content)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
            text += f"{function.get('name')}({function.get('arguments')})"
    role = str(message.get("role"))
    return Text.assemble((f"[{role}]\n", "bold"), said(text), "\n")


def _parts(content: object) -> str:
    parts = (
        [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)


def _about(item: Recalled) -> str:
    place = [when(item.event_time) or day(item.valid_from), item.speaker, item.session or ""]
    return " · ".join(part for part in (*place, item.reason) if part)


def _first(found: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    return found[0] if found else {}


def _cell(value: object) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list) else str(value)


def _believed(fact: Fact) -> str:
    until = day(fact.unlearnt_at) or "now"
    return f"{day(fact.learnt_at)} to {until}"
