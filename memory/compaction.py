"""Summaries by a language model, made in the background: nobody who talks waits for them.

Whoever finds a window over its limit asks for the session (`request`). A few sessions are attended
to at a time, each under a lease, so that one process does it. What fails leaves everything as it
was, is written down in the ledger of retries, and is tried again after a pause that doubles each
time; asking for the session meanwhile changes nothing. What is due is also looked up now and then,
so that a session is not forgotten in which nobody says anything more, or whose process is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Final, Protocol

from memory.codec import content_id
from memory.errors import AgentMemoryError, AlreadyRunning, LLMError, TierUnavailable
from memory.journal import Journal
from memory.journal.retries import Retries
from memory.models import Scope
from memory.summary import Summariser

JOB: Final = "compaction"
"""The name in the ledger of retries; an item is a session."""
AT_ONCE: Final = 4
"""Sessions that one process attends to at a time."""
POLL: Final = timedelta(seconds=5)
"""How often it is looked for what is due, and for what others held."""
FIRST_PAUSE: Final = timedelta(seconds=30)
LONGEST_PAUSE: Final = timedelta(hours=1)
_LEASES: Final = 64
"""Leases that sessions share: over SQLite each is a file that stays."""

_WHY: Final = {
    "unavailable": "the language model did not answer",
    "refused": "the language model declined to summarise",
    "malformed": "the language model's answer was no summary",
    "truncated": "the language model's summary was cut off",
    "too_long": "the language model's summary was too long",
    "spent": "the language model's budget is used up",
}

_log = logging.getLogger(__name__)

Clock = Callable[[], datetime]
_Session = tuple[Scope, str]


class Compactable(Protocol):
    """The windows of sessions."""

    async def compact(self, scope: Scope, session: str, summariser: Summariser) -> bool:
        """Fold a part of what is over the limit; False when there was nothing to do."""
        ...


class Compactor:
    """Has a summariser that may fail fold what windows have no room for, for as long as it runs."""

    def __init__(self, journal: Journal, summariser: Summariser, clock: Clock) -> None:
        self.retries = Retries(journal, JOB, longest=LONGEST_PAUSE)
        self._summariser = summariser
        self._clock = clock
        self._wanted: asyncio.Queue[_Session] = asyncio.Queue()
        self._known: set[_Session] = set()
        """Those that are wanted or attended to."""
        self._asked_again: set[_Session] = set()
        """Those that were asked for while they were attended to."""
        self._held: set[_Session] = set()
        """Those that another process has, or whose stores do not answer: for the next look."""
        self._moved = asyncio.Condition()
        self._leases: dict[str, _Shared] = defaultdict(lambda: _Shared(journal))

    def request(self, scope: Scope, session: str) -> None:
        """Have the session attended to. Asking twice changes nothing."""
        wanted = (scope, session)
        if wanted in self._known:
            self._asked_again.add(wanted)
        else:
            self._known.add(wanted)
            self._wanted.put_nowait(wanted)

    async def problem(self, scope: Scope, session: str) -> str:
        """Why the session could not be summarised yet, in our words; '' when nothing is wrong."""
        failed = await self.retries.of(scope, session)
        return f"{failed.reason}, tried {failed.times}" if failed else ""

    async def idle(self, timeout: timedelta) -> bool:
        """Wait until everything that was asked for has been tried. False when the time is up."""
        try:
            async with asyncio.timeout(timeout.total_seconds()), self._moved:
                await self._moved.wait_for(lambda: not self._known)
        except TimeoutError:
            return False
        return True

    async def run(self, windows: Compactable) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look())
            for _ in range(AT_ONCE):
                tasks.create_task(self._attend_to_all(windows))

    async def _look(self) -> None:
        while True:
            held, self._held = self._held, set()
            try:
                due = await self.retries.due(self._clock())
                held |= {(retry.scope, retry.item) for retry in due}
            except Exception as error:  # whatever it is, it is looked up again
                _log.warning("what is to be summarised could not be looked up: %s", _named(error))
            for scope, session in held:
                self.request(scope, session)
            await asyncio.sleep(POLL.total_seconds())

    async def _attend_to_all(self, windows: Compactable) -> None:
        while True:
            wanted = await self._wanted.get()
            self._asked_again.discard(wanted)
            try:
                await self._attend_to(*wanted, windows)
            except (
                Exception
            ) as error:  # another process has it, a store is silent, or a bug of ours
                if not isinstance(error, AgentMemoryError | OSError):
                    _log.warning("a session could not be attended to: %s", _named(error))
                self._asked_again.discard(wanted)
                self._held.add(wanted)
            if wanted in self._asked_again:
                self._wanted.put_nowait(wanted)
                continue
            async with self._moved:
                self._known.discard(wanted)
                self._moved.notify_all()

    async def _attend_to(self, scope: Scope, session: str, windows: Compactable) -> None:
        name = _lease(scope, session)
        async with self._leases[name].held(name):
            failed = await self.retries.of(scope, session)
            if failed is not None and not self.retries.is_due(failed, self._clock()):
                return
            try:
                while await windows.compact(scope, session, self._summariser):
                    continue
            except (AlreadyRunning, TierUnavailable):
                raise
            except Exception as error:  # no bug and no model of a caller's may end this for all
                await self._failed(scope, session, error, failed.attempts + 1 if failed else 1)
            else:
                if failed is not None:
                    await self.retries.done(scope, [session])

    async def _failed(self, scope: Scope, session: str, error: Exception, attempts: int) -> None:
        """Written down by its kind alone: what a provider says may hold what it was asked."""
        now = self._clock()
        kind = error.kind if isinstance(error, LLMError) else type(error).__name__
        _log.warning("a session could not be summarised: %s", kind)
        again = now + pause(attempts, content_id(JOB, scope.tenant, scope.user, session))
        reason = _WHY.get(kind, "the summary could not be made")
        await self.retries.failed(scope, session, reason, now=now, retry_at=again)


class _Shared:
    """A lease that sessions of this process hold together: a name stands for many sessions, and
    one that takes long must not keep the others waiting."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._turn = asyncio.Lock()
        self._users = 0
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[None]:
        """Raises AlreadyRunning when another process has it."""
        async with self._turn:
            if not self._users:
                await self._stack.enter_async_context(self._journal.lease(name))
            self._users += 1
        try:
            yield
        finally:
            async with self._turn:
                self._users -= 1
                if not self._users:
                    await self._stack.aclose()


def _named(error: Exception) -> str:
    """An error of ours by what it says, another by its kind: its text may hold anything."""
    return str(error) if isinstance(error, AgentMemoryError) else type(error).__name__


def pause(attempts: int, of: str) -> timedelta:
    """How long to wait after so many attempts: twice as long each time, up to LONGEST_PAUSE.

    Up to a quarter is taken off, as the hexadecimal name `of` says, so that sessions that failed
    together are not all tried again at one moment.
    """
    doubled: int = 2 ** min(attempts - 1, 20)
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * doubled)
    return longest * (1 - int(of[:4], 16) / 0xFFFF / 4)


def _lease(scope: Scope, session: str) -> str:
    number = int(content_id("lease", scope.tenant, scope.user, session)[:4], 16) % _LEASES
    return f"{JOB}-{number}"
