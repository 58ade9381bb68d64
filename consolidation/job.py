"""The nightly job: for every user, forget what has faded and promote what keeps recurring.

Reads, decides by `plan` (pure), then applies. One run at a time over all processes; a run that is
killed is simply run again, since everything it does is idempotent and nothing is computed from the
number of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from consolidation.plan import RECURS, Plan, Policy, plan
from memory.codec import content_id
from memory.errors import AgentMemoryError
from memory.memory import Memory, UserMemory
from memory.models import Moment, Scope, Value
from memory.times import as_utc

LEASE = "a night of consolidation"
LAST_RUN = "consolidation.last"
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
    plans: tuple[Plan, ...] = ()
    failures: tuple[Failure, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be done for the store as a whole; the next run tries again."""

    @property
    def changed(self) -> bool:
        return bool(self.archived or self.promoted)


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
        everybody = list(scopes) if scopes is not None else await memory.scopes()
        for done, scope in enumerate(everybody):
            if progress:
                progress(done, len(everybody), scope)
            user = memory.user(scope.user, tenant=scope.tenant)
            try:
                night = await _planned(user, now, policy)
                if not dry_run:
                    await _apply(user, night, run_id)
                plans.append(night)
            except AgentMemoryError as error:
                failures.append(Failure(scope=scope, error=str(error)))
        report = _report(run_id, dry_run, now, plans, failures, problems)
        if not dry_run:
            await memory.settled(SETTLE)
            summary = report.model_copy(update={"plans": ()})
            await memory.note(LAST_RUN, summary.to_json())
    return report


async def last_run(memory: Memory) -> Report | None:
    """The report of the newest finished run, without its plans; None when there was none yet."""
    noted = await memory.noted(LAST_RUN)
    return Report.from_json(noted) if noted else None


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
