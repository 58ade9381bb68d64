"""The nightly job: for every user, forget what has faded, promote what keeps recurring, and have a
language model, where there is one, read what was said for facts.

Reads, decides by `plan` (pure), then applies; how facts are read is told in `reading`. One run at a
time over all processes; a run that is killed is simply run again, since everything it does is
idempotent and nothing is computed from the number of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from consolidation.plan import RECURS, Plan, Policy, plan
from consolidation.reading import Night, Reader, Reading
from memory.codec import content_id
from memory.errors import AgentMemoryError
from memory.llm import Spend
from memory.memory import Memory, UserMemory
from memory.models import Moment, Scope, Value
from memory.times import as_utc
from memory.unread import Ended

LEASE = "a night of consolidation"
LAST_RUN = "consolidation.last"
STOPPED_AT = "consolidation.stopped"
"""The user with whom the newest run's reading ended early: the next run begins there."""
SETTLE = timedelta(minutes=5)
"""The longest that a run waits for what was recorded just before it."""

Progress = Callable[[int, int, Scope], None]
"""Told (users done, users in all, the user at hand)."""


class Failure(Value):
    """A user whose night did not work out; the next run tries again."""

    scope: Scope
    error: str


class Report(Value):
    """What a run did, or with `dry_run` would do."""

    run_id: str
    dry_run: bool
    now: Moment
    users: int = 0
    episodes: int = 0
    archived: int = 0
    promoted: int = 0
    reading: Reading | None = None
    """What a language model has read; None without one. A dry run only counts what waits."""
    plans: tuple[Plan, ...] = ()
    failures: tuple[Failure, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be done for the store as a whole; the next run tries again."""

    @property
    def changed(self) -> bool:
        return bool(self.archived or self.promoted or (self.reading and self.reading.facts))


async def consolidate(
    memory: Memory,
    *,
    now: datetime,
    policy: Policy | None = None,
    scopes: Sequence[Scope] | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Run a night for `scopes`, by default everybody. Raises AlreadyRunning at once when another
    process is at it. A user that fails is reported and does not stop the others.
    """
    now = as_utc(now)
    policy = policy or Policy(half_life=memory.settings.half_life)
    run_id = content_id("consolidation", now.isoformat(), policy.model_dump_json())
    plans: list[Plan] = []
    failures: list[Failure] = []
    async with memory.exclusive(LEASE):
        await memory.settled(SETTLE)
        problems = () if dry_run else await _repaired(memory)
        reading = None if dry_run else _reading(memory, now)
        everybody = list(scopes) if scopes is not None else await _everybody(memory)
        stopped_at: Scope | None = None
        for done, scope in enumerate(everybody):
            if progress:
                progress(done, len(everybody), scope)
            user = memory.user(scope.user, tenant=scope.tenant)
            try:
                night = await _planned(user, now, policy)
                if not dry_run:
                    await _apply(user, night, run_id)
                plans.append(night)
                if reading is not None:
                    await reading.read(scope)
            except AgentMemoryError as error:
                failures.append(Failure(scope=scope, error=str(error)))
            if reading is not None and reading.ended and stopped_at is None:
                stopped_at = scope
        report = _report(run_id, dry_run, now, plans, failures, problems)
        report = await _with_reading(report, memory, reading, everybody)
        if reading is not None:
            await memory.note(STOPPED_AT, stopped_at.to_json() if stopped_at else {})
        if not dry_run:
            await memory.settled(SETTLE)
            summary = report.model_copy(update={"plans": ()})
            await memory.note(LAST_RUN, summary.to_json())
    return report


async def last_run(memory: Memory) -> Report | None:
    """The report of the newest finished run, without its plans; None when there was none yet."""
    noted = await memory.noted(LAST_RUN)
    return Report.from_json(noted) if noted else None


def _reading(memory: Memory, now: datetime) -> Night | None:
    """A night of reading within its budget; None without a language model."""
    if memory.llm is None:
        return None
    settings = memory.settings
    spend = Spend(calls=settings.llm_job_calls, tokens=settings.llm_job_tokens)
    return Night(Reader(memory.llm, memory.registry, memory.unread, spend), now)


async def _with_reading(
    report: Report, memory: Memory, reading: Night | None, everybody: Sequence[Scope]
) -> Report:
    """The report with what was read, and what was not."""
    if memory.llm is None:
        return report
    waiting = sum([await memory.unread.waiting(scope) for scope in everybody])
    if reading is None:
        return report.model_copy(update={"reading": Reading(waiting=waiting)})
    problem = reading.ended if reading.failed else ""
    await memory.unread.ended(Ended(at=report.now, problem=problem))
    unread = (f"not everything was read for facts: {problem}",) if problem else ()
    return report.model_copy(
        update={"reading": reading.reading(waiting), "problems": (*report.problems, *unread)}
    )


async def _everybody(memory: Memory) -> list[Scope]:
    """Everybody, from the user on with whom the run before had to stop reading: lest a budget that
    is too small for all is always used up by the same ones."""
    everybody = await memory.scopes()
    stopped_at = await memory.noted(STOPPED_AT)
    if memory.llm is None or not stopped_at:
        return everybody
    scope = Scope.from_json(stopped_at)
    first = everybody.index(scope) if scope in everybody else 0
    return everybody[first:] + everybody[:first]


async def _repaired(memory: Memory) -> tuple[str, ...]:
    """Make up for what the index of vectors has lost, or could not be given, since last night."""
    try:
        repaired = await memory.repair()
    except AgentMemoryError as error:
        return (f"the index of vectors was not looked over: {error}",)
    if not repaired.still_flawed:
        return ()
    return (f"{repaired.still_flawed} episodes cannot be embedded: found by their words alone",)


async def _planned(user: UserMemory, now: datetime, policy: Policy) -> Plan:
    episodes = await user.episodes(archived=True)
    vectors = await user.vectors(episodes)
    known = await user.facts(predicate=RECURS, history=True)
    return plan(user.scope, episodes, vectors, known, now=now, policy=policy)


async def _apply(user: UserMemory, night: Plan, run_id: str) -> None:
    await user.archive(night.archive, run_id=run_id)
    await user.promote(night.promote)


def _report(
    run_id: str,
    dry_run: bool,
    now: datetime,
    plans: list[Plan],
    failures: list[Failure],
    problems: tuple[str, ...],
) -> Report:
    return Report(
        run_id=run_id,
        dry_run=dry_run,
        now=now,
        users=len(plans),
        episodes=sum(one.episodes for one in plans),
        archived=sum(len(one.archive) for one in plans),
        promoted=sum(len(one.promote) for one in plans),
        plans=tuple(plans),
        failures=tuple(failures),
        problems=problems,
    )
