"""The demo, act by act."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from consolidation import Policy, Report, consolidate
from memory.importers import Conversation, Problem, read
from memory.memory import Memory, UserMemory
from memory.models import Context, Fact, Item
from memory.semantic import render
from memory.settings import Settings
from memory.terminal import console as out
from memory.terminal import show

WIDTH = 80
FOLDER = Path(".demo")
FIRST_WEEK_ENDS = datetime(2026, 1, 12, tzinfo=UTC)
TODAY = datetime(2026, 2, 15, 16, 20, tzinfo=UTC)
NIGHT = datetime(2026, 2, 16, 3, 0, tzinfo=UTC)
HALF_LIFE = timedelta(days=14)
"""Shorter than the default of 90 days, so that six weeks are enough to see something fade."""

SYSTEM = "You are a considerate assistant. Answer in the user's language."
BUDGET, RESERVE = 1_200, 300


class Person(NamedTuple):
    """One of the two, and what the demo asks for them."""

    name: str
    title: str
    file: str
    early_question: str
    question: str
    superseded: str
    ended: str


MAYA = Person(
    name="maya",
    title="Maya, in English",
    file="maya.jsonl",
    early_question="Where did Ngozi like it so much, and what must I never eat?",
    question="Asmara Table then. What should I tell the kitchen about me?",
    superseded="lives_in",
    ended="diet",
)
LIN = Person(
    name="lin",
    title="林悦, in Chinese",
    file="lin.jsonl",
    early_question="我对什么过敏？周四晚上我一般做什么？",
    question="到了厦门想找一家餐厅，我有什么不能吃的？附近能游泳吗？",
    superseded="lives_in",
    ended="studies",
)


class Clock:
    """The story's time. Only goes forward."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def reach(self, moment: datetime) -> None:
        self.now = max(self.now, moment)


class Scene(NamedTuple):
    """One session of one person."""

    person: Person
    conversation: Conversation

    @property
    def ends(self) -> datetime:
        return max(
            message.event_time or FIRST_WEEK_ENDS for _, message in self.conversation.messages
        )


class Early(NamedTuple):
    """The context that was built in the first week, as it was recorded then."""

    snapshot_id: str
    data: bytes


async def run(home: Path | None) -> int:
    """Play the demo in `home`, or in .demo in the current folder. Gives the exit code."""
    began = time.monotonic()
    console = Console(width=min(WIDTH, Console().width), highlight=False, emoji=False, markup=False)
    folder = home or FOLDER
    tenant = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    clock = Clock()
    settings = Settings().model_copy(
        update={"tenant": tenant, "half_life": HALF_LIFE, "window_tokens": 420}
    )
    _opening(console, folder, settings)
    async with Memory.open(folder, settings=settings, clock=clock) as memory:
        for part in await memory.health():
            state = "ok" if part.ok else f"not ok: {part.problem}"
            console.print(out.said(f"  {part.part:<10} {part.version:<24} {state}"))
        early = await _remember(console, memory, clock)
        clock.reach(TODAY)
        for person in (MAYA, LIN):
            await _context(console, memory, person)
        await _facts(console, memory)
        clock.reach(NIGHT)
        await _night(console, memory)
        same = await _replay(console, memory, early)
    _next(console, folder, tenant, early, time.monotonic() - began)
    return 0 if same else 1


def _opening(console: Console, folder: Path, settings: Settings) -> None:
    console.print("trimem: three tiers, one journal, one command", style="bold")
    given = [
        name
        for name in ("journal", "redis", "chroma", "neo4j")
        if getattr(settings, f"{name}_url") is not None
    ]
    if given:
        console.print(f"Using your servers for: {', '.join(given)}; the rest in {folder}.")
    else:
        console.print(f"Starting the local stack in {folder} (no network, no LLM).")


# --- 1 -----------------------------------------------------------------------------------------


async def _remember(console: Console, memory: Memory, clock: Clock) -> Early:
    """Record both transcripts in the order in which things were said."""
    scenes = sorted([*_scenes(MAYA), *_scenes(LIN)], key=lambda scene: scene.ends)
    total = sum(len(scene.conversation.messages) for scene in scenes)
    _act(console, 1, "Remember", f"{len(scenes)} conversations, {total} messages, two people")
    early: Early | None = None
    began, done = time.monotonic(), 0
    with out.bar("remembering", total) as moved:
        for scene in scenes:
            if early is None and scene.ends >= FIRST_WEEK_ENDS:
                early = await _in_the_first_week(memory)
            clock.reach(scene.ends)
            await _record(memory, scene)
            done += len(scene.conversation.messages)
            moved(done, total)
        await memory.settled()
    took = time.monotonic() - began
    console.print(
        f"{total} messages in {took:.1f} s: durable in the journal, embedded, indexed,\n"
        "facts extracted, in English and Chinese.",
    )
    if early is None:
        raise AssertionError("the story has no second week")
    console.print("After the first week a context was built and kept; see act 5.", style="dim")
    return early


def _scenes(person: Person) -> list[Scene]:
    with as_file(files("memory.demo") / person.file) as path:
        found = list(read(path).found)
    problems = [item for item in found if isinstance(item, Problem)]
    if problems:
        raise AssertionError(f"{person.file}: {problems[0].where}: {problems[0].reason}")
    return [Scene(person, item) for item in found if isinstance(item, Conversation)]


async def _record(memory: Memory, scene: Scene) -> None:
    messages = scene.conversation.messages
    await (
        memory.user(scene.person.name)
        .session(scene.conversation.session)
        .record(
            messages=[message for _, message in messages],
            keys=[key for key, _ in messages],
        )
    )


async def _in_the_first_week(memory: Memory) -> Early:
    await memory.settled()
    user = memory.user(MAYA.name)
    session = (await user.sessions())[0].session
    built = await user.session(session).build_context(
        MAYA.early_question, system=SYSTEM, budget=BUDGET, reserve=RESERVE
    )
    snapshot_id = _kept(built)
    return Early(snapshot_id, (await user.replay(snapshot_id)).data)


def _kept(built: Context) -> str:
    if built.snapshot_id is None:
        raise AssertionError("a context without a snapshot")
    return built.snapshot_id


# --- 2 -----------------------------------------------------------------------------------------


async def _context(console: Console, memory: Memory, person: Person) -> None:
    """A context in the middle of the newest session, and why everything is in it."""
    _act(console, 2, "A context", f"for {person.title}")
    user = memory.user(person.name)
    session = (await user.sessions())[0].session
    built = await user.session(session).build_context(
        person.question, system=SYSTEM, budget=BUDGET, reserve=RESERVE
    )
    console.print(Text.assemble(("new message: ", "dim"), (person.question, "bold")))
    show.tokens(console, built)
    _working(console, built)
    for tier in ("semantic", "episodic"):
        show.items(console, [item for item in built.items if item.tier == tier])
    missed = sorted(built.dropped, key=lambda miss: (-miss.score, miss.id))[:2]
    show.dropped(console, missed)
    show.remarks(console, built.unavailable, built.warnings)


def _working(console: Console, built: Context) -> None:
    """Working memory in two lines: it is the conversation itself, which need not be repeated."""
    turns = [item for item in built.items if item.tier == "working"]
    if built.tokens.summary:
        summary = next(item for item in turns if item.tokens == built.tokens.summary)
        turns.remove(summary)
        show.items(console, [_shorter(summary)])
    tokens = sum(item.tokens for item in turns)
    if turns:
        newest = out.line(turns[-1].text, limit=100)
        text = f"{len(turns)} messages of this conversation; the newest: {newest}"
        about = {"text": text, "tokens": tokens, "reason": "recent turns, word for word"}
        show.items(console, [turns[-1].model_copy(update=about)])


def _shorter(item: Item) -> Item:
    return item.model_copy(update={"text": out.line(item.text, limit=180)})


# --- 3 -----------------------------------------------------------------------------------------


async def _facts(console: Console, memory: Memory) -> None:
    """A fact that another superseded, and one that ended."""
    _act(console, 3, "Time", "facts are superseded and end; nothing is overwritten")
    for person in (MAYA, LIN):
        user = memory.user(person.name)
        history = await user.facts(history=True)
        for what, predicate in (("superseded", person.superseded), ("ended", person.ended)):
            versions = _believed(history, predicate)
            console.print(Text.assemble((f"{person.name}: {what}", "bold")))
            for fact in versions:
                until = show.day(fact.valid_to) or "now"
                console.print(
                    out.said(f"  {show.day(fact.valid_from)} to {until:<10}  {render(fact)}")
                )
        then = datetime(2026, 1, 20, tzinfo=UTC)
        console.print(
            out.said(
                f"  as of {show.day(then)}: {await _line(user, person, then)}\n"
                f"  as of {show.day(TODAY)}: {await _line(user, person, TODAY)}",
                "dim",
            )
        )


def _believed(history: Sequence[Fact], predicate: str) -> list[Fact]:
    """The versions of a predicate that are believed now, by the time from which they held."""
    versions = [f for f in history if f.predicate == predicate and f.unlearnt_at is None]
    return sorted(versions, key=lambda fact: (fact.valid_from, fact.id))


async def _line(user: UserMemory, person: Person, moment: datetime) -> str:
    found = await user.facts(predicate=person.superseded, as_of=moment)
    return "; ".join(render(fact) for fact in found) or "nothing known"


# --- 4 -----------------------------------------------------------------------------------------


async def _night(console: Console, memory: Memory) -> None:
    """What a night makes of the weeks, and that a second one changes nothing."""
    _act(console, 4, "A night", "what recurred becomes a fact, what has faded is archived")
    scopes = [memory.user(person.name).scope for person in (MAYA, LIN)]
    policy = Policy(half_life=HALF_LIFE)
    report = await consolidate(memory, now=NIGHT, policy=policy, scopes=scopes)
    console.print(
        f"{report.episodes} episodes: {report.promoted} facts promoted, {report.archived} archived "
        f"(half-life {HALF_LIFE.days} days here)"
    )
    for plan in report.plans:
        for fact in plan.promote:
            console.print(
                out.said(f"  {plan.scope.user}: {out.line(render(fact), limit=140)}", "green")
            )
            console.print(out.said(f"    ↳ {_support(fact.attributes)}", "dim"))
        for reason in plan.held_back:
            console.print(out.said(f"  {plan.scope.user}: {reason}", "yellow"))
    again = await consolidate(memory, now=NIGHT, policy=policy, scopes=scopes)
    console.print(_second_night(again), style="dim")


def _support(attributes: object) -> str:
    if not isinstance(attributes, dict):
        return ""
    return f"in {attributes.get('episodes')} episodes over {attributes.get('sessions')} sessions"


def _second_night(report: Report) -> str:
    if report.changed:
        return f"run again: {report.promoted} promoted, {report.archived} archived"
    return "Run again: nothing to do."


# --- 5 -----------------------------------------------------------------------------------------


async def _replay(console: Console, memory: Memory, early: Early) -> bool:
    """The first week's context, byte for byte, after all that has happened since."""
    _act(console, 5, "Replay", "the context of the first week, to the byte")
    user = memory.user(MAYA.name)
    replayed = await user.replay(early.snapshot_id)
    same = replayed.verified and replayed.data == early.data
    console.print(Text.assemble(("asked then: ", "dim"), MAYA.early_question))
    console.print(f"built {show.when(replayed.created_at)}, {len(replayed.data)} bytes")
    console.print(f"BLAKE2b recorded {replayed.digest}")
    console.print(
        "byte-identical to what was built then, hash verified"
        if same
        else "NOT the bytes that were built then",
        style="bold green" if same else "bold red",
    )
    session = user.session(replayed.session)
    now = await session.build_context(
        MAYA.early_question, system=SYSTEM, budget=BUDGET, reserve=RESERVE
    )
    change = await user.diff(early.snapshot_id, _kept(now))
    console.print(
        f"The same question today has {len(change.added)} items that it had not then and lacks "
        f"{len(change.removed)} that it had:",
        style="dim",
    )
    for mark, style, items in (("-", "red", change.removed), ("+", "green", change.added)):
        for item in [item for item in items if item.tier != "working"][:3]:
            console.print(out.said(f"  {mark} {out.line(item.text, limit=WIDTH - 6)}", style))
    return same


# --- end ---------------------------------------------------------------------------------------


def _next(console: Console, folder: Path, tenant: str, early: Early, took: float) -> None:
    console.print()
    console.rule(Text(f"done in {took:.0f} s; try next", style="bold"), align="left")
    of_demo = f"--home {_quoted(str(folder))} --tenant {tenant}"
    for command in (
        "trimem facts -u maya --as-of 2026-01-20",
        'trimem recall -u lin "老周"',
        'trimem context -u maya -s birthday-plans "What shall I wear?"',
        f"trimem snapshots replay -u maya {early.snapshot_id}",
        "trimem import -u you conversations.json",
    ):
        console.print(out.said(f"  {command} \\"), out.said(f"\n      {of_demo}", "dim"), sep="")
    console.print(out.said(f"  trimem down --home {_quoted(str(folder))}"))


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text


def _act(console: Console, number: int, title: str, about: str) -> None:
    console.print()
    console.rule(Text.assemble((f"{number}  {title}", "bold"), (f"  {about}", "")), align="left")
