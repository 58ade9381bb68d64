"""The demo, act by act."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path
from shlex import quote
from typing import NamedTuple, TextIO

from rich.console import Console
from rich.text import Text

from consolidation import Plan, Policy, Report, consolidate
from memory.importers import Conversation, Problem, read
from memory.memory import Memory, UserMemory
from memory.models import Context, Fact, Item, Value
from memory.semantic import render
from memory.settings import Settings
from memory.terminal import console as out
from memory.terminal import show
from memory.terminal.waiting import until_settled

WIDTH = 80
FOLDER = Path(".demo")
FIRST_WEEK_ENDS = datetime(2026, 1, 12, tzinfo=UTC)
MIDDLE = datetime(2026, 1, 20, tzinfo=UTC)
TODAY = datetime(2026, 2, 15, 16, 20, tzinfo=UTC)
NIGHT = datetime(2026, 2, 16, 3, 0, tzinfo=UTC)
HALF_LIFE = timedelta(days=16)
"""Shorter than the default of 90 days, so that six weeks are enough to see something fade."""

SYSTEM = "You are a considerate assistant. Answer in the user's language."
BUDGET, RESERVE = 1_200, 300
SHOWN = 12
"""Episodes of a context, so that it can be read."""


class Person(NamedTuple):
    """One of the two, and what the demo asks for them."""

    name: str
    title: str
    file: str
    question: str
    ended: str


MAYA = Person(
    name="maya",
    title="Maya, in English",
    file="maya.jsonl",
    question="Asmara Table, then! What should the kitchen know about peanuts and me?",
    ended="diet",
)
LIN = Person(
    name="lin",
    title="林悦, in Chinese",
    file="lin.jsonl",
    question="到了厦门想找一家餐厅，我有什么不能吃的？附近能游泳吗？",
    ended="plans",
)
PEOPLE = (MAYA, LIN)
SUPERSEDED = "lives_in"
EARLY_QUESTION = "Where did Ngozi eat so well, and what must never be on my plate?"


class Clock:
    """The story's time. Only goes forward."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def reach(self, moment: datetime) -> None:
        self.now = max(self.now, moment)


class Scene(NamedTuple):
    """One session of one person, and when it ended."""

    person: Person
    conversation: Conversation
    ended: datetime


class Early(NamedTuple):
    """The context of the first week, as it was recorded then."""

    snapshot_id: str
    data: bytes


class Played(Value):
    """What came of a demo: the contexts by user, the night, and whether the replay was the same."""

    tenant: str
    messages: int
    contexts: Mapping[str, Context]
    night: Report
    replayed: str
    identical: bool
    seconds: float


async def run(home: Path | None, stream: TextIO) -> Played:
    """Play the demo in `home`, or in .demo in the current folder; the show goes to `stream`."""
    began = time.monotonic()
    width = min(WIDTH, Console(file=stream).width)
    console = Console(file=stream, width=width, highlight=False, emoji=False, markup=False)
    folder = home or FOLDER
    tenant = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    settings = Settings().model_copy(update={"tenant": tenant})
    clock = Clock()
    _opening(console, folder, settings)
    async with Memory.open(folder, settings=settings, clock=clock) as memory:
        for part in await memory.health():
            state = "ok" if part.ok else f"not ok: {part.problem}"
            version = out.line(part.version, limit=24)
            console.print(out.said(f"  {part.part:<10} {version:<24} {state}"))
        messages, early = await _remember(console, memory, clock)
        clock.reach(TODAY)
        contexts = {
            person.name: await _context(console, memory, person, number)
            for number, person in enumerate(PEOPLE, start=2)
        }
        await _time(console, memory)
        clock.reach(NIGHT)
        night = await _night(console, memory)
        same = await _replay(console, memory, early)
    local = folder if _is_local(_servers(settings)) else None
    took = time.monotonic() - began
    _next(console, local, tenant, early, took)
    return Played(
        tenant=tenant,
        messages=messages,
        contexts=contexts,
        night=night,
        replayed=early.snapshot_id,
        identical=same,
        seconds=round(took, 1),
    )


def _act(console: Console, number: int, title: str) -> None:
    console.print()
    console.rule(Text(f"{number}  {title}", style="bold"), align="left")


def _opening(console: Console, folder: Path, settings: Settings) -> None:
    console.print("trimem: a memory in three tiers for LLM agents", style="bold")
    console.print("Six weeks of two people are played on their own clock. No LLM, no network.")
    servers = _servers(settings)
    if not servers:
        console.print(out.said(f"The local stack, started for you in {folder}:"))
    elif _is_local(servers):
        console.print(out.said(f"Your servers for {', '.join(servers)}; the rest in {folder}:"))
    else:
        console.print("On your servers:")


def _servers(settings: Settings) -> list[str]:
    """The stores for which the settings have a URL."""
    names = ("journal", "redis", "chroma", "neo4j")
    return [name for name in names if getattr(settings, f"{name}_url") is not None]


def _is_local(servers: Sequence[str]) -> bool:
    """Whether the local stack has a part in it."""
    return not {"journal", "redis", "chroma"} <= set(servers)


# --- 1 -----------------------------------------------------------------------------------------


async def _remember(console: Console, memory: Memory, clock: Clock) -> tuple[int, Early]:
    """Record both transcripts in the order in which things were said: how many messages."""
    scenes = sorted([*_scenes(MAYA), *_scenes(LIN)], key=lambda scene: scene.ended)
    total = sum(len(scene.conversation.messages) for scene in scenes)
    _act(console, 1, "Remember")
    early: Early | None = None
    began, done = time.monotonic(), 0
    with out.bar("recording", shown=True) as moved:
        for scene in scenes:
            if early is None and scene.ended >= FIRST_WEEK_ENDS:
                early = await _in_the_first_week(memory)
            clock.reach(scene.ended)
            await _record(memory, scene)
            done += len(scene.conversation.messages)
            moved(done, total)
    await until_settled(memory, "remembering", shown=True)
    took = time.monotonic() - began
    if early is None:
        raise AssertionError("the story has no second week")
    console.print(
        f"{total} messages of {len(scenes)} conversations in {took:.1f} s: durable in the journal, "
        "then in all three tiers: windows, episodes (embedded here), and facts read out of what "
        "was said."
    )
    console.print("At the end of the first week a context was built and kept; see 6.", style="dim")
    return total, early


def _scenes(person: Person) -> list[Scene]:
    with as_file(files("memory.demo") / person.file) as path:
        found = list(read(path).found)
    scenes = []
    for item in found:
        if isinstance(item, Problem):
            raise AssertionError(f"{person.file}: {item.where}: {item.reason}")
        times = [message.event_time for _, message in item.messages if message.event_time]
        scenes.append(Scene(person, item, max(times)))
    return scenes


async def _record(memory: Memory, scene: Scene) -> None:
    messages = scene.conversation.messages
    session = memory.user(scene.person.name).session(scene.conversation.session)
    await session.record(
        messages=[message for _, message in messages], keys=[key for key, _ in messages]
    )


async def _in_the_first_week(memory: Memory) -> Early:
    await memory.settled()
    user = memory.user(MAYA.name)
    session = (await user.sessions())[0].session
    snapshot_id = _kept(await _built(user, session, EARLY_QUESTION))
    return Early(snapshot_id, (await user.replay(snapshot_id)).data)


async def _built(user: UserMemory, session: str, question: str) -> Context:
    return await user.session(session).build_context(
        question, system=SYSTEM, budget=BUDGET, reserve=RESERVE, k=SHOWN
    )


def _kept(built: Context) -> str:
    if built.snapshot_id is None:
        raise AssertionError("a context without a snapshot")
    return built.snapshot_id


# --- 2, 3 --------------------------------------------------------------------------------------


async def _context(console: Console, memory: Memory, person: Person, number: int) -> Context:
    """A context in the middle of the newest session, and why everything is in it."""
    _act(console, number, f"A context for {person.title}")
    user = memory.user(person.name)
    built = await _built(user, (await user.sessions())[0].session, person.question)
    console.print(Text.assemble(("new message: ", "dim"), (person.question, "bold")))
    show.tokens(console, built)
    show.items(console, _told([item for item in built.items if item.tier == "working"]))
    for tier in ("semantic", "episodic"):
        show.items(console, [_short(item) for item in built.items if item.tier == tier])
    missed = [miss for miss in built.dropped if miss.tier == "episodic"]
    show.dropped(console, sorted(missed, key=lambda miss: (-miss.score, miss.id))[:2])
    show.remarks(console, built.unavailable, built.warnings)
    return built


def _told(turns: Sequence[Item]) -> list[Item]:
    """Working memory as one item: it is the conversation itself, which need not be repeated."""
    if not turns:
        return []
    newest = out.line(turns[-1].text, limit=60)
    told = {
        "text": f"{len(turns)} messages of this conversation, up to: {newest}",
        "tokens": sum(item.tokens for item in turns),
        "reason": "the window, word for word",
    }
    return [turns[-1].model_copy(update=told)]


def _short(item: Item) -> Item:
    return item.model_copy(update={"text": out.line(item.text, limit=110)})


# --- 4 -----------------------------------------------------------------------------------------


async def _time(console: Console, memory: Memory) -> None:
    """A fact that another superseded, and one that ended."""
    _act(console, 4, "Time: facts are superseded, facts end, nothing is overwritten")
    for person in PEOPLE:
        user = memory.user(person.name)
        history = await user.facts(history=True)
        for what, predicate in (("superseded", SUPERSEDED), ("ended", person.ended)):
            for fact in _believed(history, predicate):
                held = f"{show.day(fact.valid_from)} to {show.day(fact.valid_to) or 'now':<10}"
                came = "holds" if fact.valid_to is None else what
                console.print(out.said(f"  {person.name:<5} {held}  {render(fact)}  ({came})"))
    for moment in (MIDDLE, TODAY):
        known = [await _known(memory.user(person.name), moment) for person in PEOPLE]
        console.print(out.said(f"as of {show.day(moment)}: {'; '.join(known)}", "dim"))


def _believed(history: Sequence[Fact], predicate: str) -> list[Fact]:
    """The versions of a predicate that are believed now and held for a while, oldest first."""
    versions = [
        fact
        for fact in history
        if fact.predicate == predicate
        and fact.unlearnt_at is None
        and (fact.valid_to is None or fact.valid_to > fact.valid_from)
    ]
    return sorted(versions, key=lambda fact: (fact.valid_from, fact.id))


async def _known(user: UserMemory, moment: datetime) -> str:
    found = await user.facts(predicate=SUPERSEDED, as_of=moment)
    return ", ".join(render(fact) for fact in found) or "nothing known"


# --- 5 -----------------------------------------------------------------------------------------


async def _night(console: Console, memory: Memory) -> Report:
    """What a night makes of the weeks, and that a second one changes nothing."""
    _act(console, 5, "A night: what recurs becomes a fact, what has faded is archived")
    scopes = [memory.user(person.name).scope for person in PEOPLE]
    policy = Policy(half_life=HALF_LIFE)
    report = await consolidate(memory, now=NIGHT, policy=policy, scopes=scopes)
    console.print(
        f"{show.counted(report.episodes, 'episode')}: {report.promoted} promoted to facts, "
        f"{report.archived} archived (half-life {HALF_LIFE.days} days here)"
    )
    for plan in report.plans:
        await _plan(console, memory.user(plan.scope.user), plan)
    again = await consolidate(memory, now=NIGHT, policy=policy, scopes=scopes)
    console.print(_second_night(again), style="dim")
    return report


async def _plan(console: Console, user: UserMemory, plan: Plan) -> None:
    name = plan.scope.user
    for fact in plan.promote:
        said = f"{name} {fact.predicate}: “{out.line(fact.object)}”"
        often = (
            f"{show.counted(len(fact.sources), 'episode')} in "
            f"{show.counted(_sessions(fact.attributes), 'session')}"
        )
        console.print(show.entry("semantic", "new", said, often))
    texts = {episode.id: episode.text for episode in await user.episodes(archived=True)}
    for episode_id in plan.archive[:1]:
        said = f"{len(plan.archive)} of {name}, such as “{out.line(texts[episode_id], limit=60)}”"
        console.print(show.entry("episodic", "faded", said, "archived, kept in the journal"))
    for reason in plan.held_back:
        console.print(out.said(f"  ! {name}: {reason}", "yellow"))


def _sessions(attributes: object) -> int:
    found = attributes.get("sessions") if isinstance(attributes, dict) else None
    return found if isinstance(found, int) else 0


def _second_night(report: Report) -> str:
    if report.changed:
        return f"Run again: {report.promoted} promoted, {report.archived} archived."
    return "Run again: nothing to do."


# --- 6 -----------------------------------------------------------------------------------------


async def _replay(console: Console, memory: Memory, early: Early) -> bool:
    """The first week's context, byte for byte, after all that has happened since."""
    _act(console, 6, "Replay: a context of the first week, to the byte")
    user = memory.user(MAYA.name)
    replayed = await user.replay(early.snapshot_id)
    same = replayed.verified and replayed.data == early.data
    console.print(Text.assemble(("asked then: ", "dim"), (EARLY_QUESTION, "bold")))
    console.print(
        f"built {show.when(replayed.created_at)}, {len(replayed.data)} bytes, "
        f"BLAKE2b {replayed.digest}"
    )
    console.print(
        "✓ byte-identical to what was built then; the hash is verified"
        if same
        else "✗ NOT the bytes that were built then",
        style="bold green" if same else "bold red",
    )
    now = await _built(user, replayed.session, EARLY_QUESTION)
    change = await user.diff(early.snapshot_id, _kept(now))
    console.print("The same question today, after five more weeks:", style="dim")
    for mark, style, items in (("-", "red", change.removed), ("+", "green", change.added)):
        for item in [item for item in items if item.tier == "semantic"][:4]:
            console.print(out.said(f"  {mark} {out.line(item.text, limit=WIDTH - 6)}", style))
    return same


# --- end ---------------------------------------------------------------------------------------


def _next(console: Console, local: Path | None, tenant: str, early: Early, took: float) -> None:
    console.print()
    console.rule(Text(f"Done in {took:.0f} s. Try next", style="bold"), align="left")
    trimem = _program()
    home = f"TRIMEM_HOME={quote(str(local))} " if local else ""
    for command in (
        f"export {home}TRIMEM_TENANT={tenant}",
        f"{trimem} facts -u maya --as-of 2026-01-20",
        f"{trimem} recall -u lin 老周",
        f'{trimem} context -u maya -s birthday-plans "Does Ngozi like fish?"',
        f"{trimem} snapshots replay -u maya {early.snapshot_id}",
        f"{trimem} import -u you conversations.json   # ChatGPT, Claude, …",
        *([f"{trimem} down"] if local else []),
    ):
        console.print(out.said(f"  {command}"), soft_wrap=True)


def _program() -> str:
    """How `trimem` is called from here: by its name when it is on the path."""
    beside = Path(sys.executable).parent / "trimem"
    if shutil.which("trimem") or not beside.exists():
        return "trimem"
    return quote(os.path.relpath(beside))
