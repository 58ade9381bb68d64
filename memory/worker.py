"""Workers: how what the journal holds reaches the tiers, in the background.

Each projection is fed the events after its cursor, in order, by one process at a time (a lease
that dies with its holder). `apply` must be idempotent: after a crash the last batch comes again.

A worker counts requests: `request()` is called after every write of this process and returns a
ticket; `reached(ticket)` waits until everything written before has been applied, which is how a
process reads its own writes. An event that cannot be applied is tried alone, `ATTEMPTS` times,
then parked with its reason, so that one bad item never stops the rest. What is parked is tried once
more by every process that opens: perhaps it was this program that could not, and has learnt to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Protocol

from memory.errors import AlreadyRunning, Corrupt, TierUnavailable
from memory.journal import Event, Journal
from memory.models import Value

BATCH = 256
ATTEMPTS = 3
POLL = timedelta(seconds=5)
"""How often a worker looks for events that a process now gone has left behind."""
FIRST_PAUSE = timedelta(milliseconds=200)
LONGEST_PAUSE = timedelta(seconds=30)
LEASE_POLL = timedelta(milliseconds=20)
LONGEST_LEASE_POLL = timedelta(milliseconds=500)
"""How often a worker asks whether another process is done: often while somebody waits to read,
else less and less often, because over PostgreSQL each time is a connection."""
GATHER = timedelta(milliseconds=50)
"""How long a worker lets writes gather, so that many come in one batch. Nobody waits for it: a
reader who does makes it start at once."""

_log = logging.getLogger(__name__)

Clock = Callable[[], datetime]


class Projection(Protocol):
    """One way to read the journal into a store. Applying an event twice changes nothing."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> tuple[str, ...]: ...

    async def apply(self, events: Sequence[Event]) -> None:
        """Raises TierUnavailable when the store did not answer: the batch is tried again later."""


class Lag(Value):
    """How far a projection is: events still to apply, events set aside, the last error if any."""

    projection: str
    behind: int
    parked: int
    error: str = ""


class Worker:
    """Feeds one projection for as long as `run` runs."""

    def __init__(self, journal: Journal, projection: Projection, clock: Clock) -> None:
        self.projection = projection
        self.error = ""
        self._journal = journal
        self._clock = clock
        self._lease = f"projection:{projection.name}"
        self._requested = 1  # what an earlier process left behind
        self._reached = 0
        self._has_looked_back = False
        self._failed = 0  # the newest ticket that was tried in vain
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._readers = 0
        self._moved = asyncio.Condition()

    def request(self) -> int:
        """Ask for everything written so far to be applied; returns the ticket to wait for."""
        self._requested += 1
        self._wake.set()
        return self._requested

    @property
    def ticket(self) -> int:
        """The ticket of the newest request."""
        return self._requested

    @property
    def is_behind(self) -> bool:
        """Whether something was requested that has not been applied yet."""
        return self._reached < self._requested

    async def reached(self, ticket: int, timeout: timedelta) -> bool:
        """Wait for a ticket. False when it was tried in vain or the time is up."""
        if self._reached >= ticket:
            return True
        self._readers += 1
        self._hurry.set()
        try:
            async with asyncio.timeout(timeout.total_seconds()), self._moved:
                await self._moved.wait_for(lambda: max(self._reached, self._failed) >= ticket)
        except TimeoutError:
            return False
        finally:
            self._readers -= 1
        return self._reached >= ticket

    async def run(self) -> None:
        pause, poll = FIRST_PAUSE, LEASE_POLL
        while True:
            if not self._readers:
                self._hurry.clear()
                await _within(self._hurry, GATHER)
            ticket = self._requested
            self._wake.clear()
            try:
                await self._drain()
            except AlreadyRunning:
                poll = await self._stood_back(poll)
                self._wake.set()
            except Exception as error:
                await self._say(error, ticket)
                await _within(self._wake, pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            else:
                pause, poll = FIRST_PAUSE, LEASE_POLL
                async with self._moved:
                    self.error = ""
                    self._reached = max(self._reached, ticket)
                    self._moved.notify_all()
            if self._requested == ticket:
                await _within(self._wake, POLL)

    async def _stood_back(self, poll: timedelta) -> timedelta:
        """Leave another process to it for a moment; the moment to wait the next time."""
        if self._readers:
            await asyncio.sleep(LEASE_POLL.total_seconds())
            return LEASE_POLL
        self._hurry.clear()
        await _within(self._hurry, poll)
        return min(poll * 2, LONGEST_LEASE_POLL)

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        """While this lasts, nobody applies anything: neither this process nor another."""
        async with AsyncExitStack() as stack:
            while True:
                try:
                    await stack.enter_async_context(self._journal.lease(self._lease))
                    break
                except AlreadyRunning:
                    await asyncio.sleep(LEASE_POLL.total_seconds())
            yield

    async def lag(self) -> Lag:
        name = self.projection.name
        behind, _ = await self._journal.waiting(
            after=await self._journal.cursor(name), kinds=self.projection.kinds
        )
        parked = await self._journal.parked(name)
        return Lag(projection=name, behind=behind, parked=len(parked), error=self.error)

    async def _drain(self) -> None:
        name, kinds = self.projection.name, self.projection.kinds
        async with self._journal.lease(self._lease):
            if not self._has_looked_back:
                await self._look_back()
            after = await self._journal.cursor(name)
            limit, more = BATCH, True
            while more:  # a short batch was all there was: what came since may gather
                try:
                    batch = await self._journal.events(after=after, kinds=kinds, limit=limit)
                except Corrupt as error:  # one by one, until it is the first
                    if limit == 1:
                        after = await self._pass_over(after, error)
                    limit = BATCH if limit == 1 else 1
                    continue
                more = len(batch) == limit
                if batch:
                    await self._apply(batch)
                    after = batch[-1].position
                    await self._journal.advance(name, after, now=self._clock())

    async def _look_back(self) -> None:
        """Try once more what was parked before this process began."""
        name, kinds = self.projection.name, self.projection.kinds
        for parked in (await self._journal.parked(name))[:BATCH]:
            at = parked.position
            try:
                found = await self._journal.events(after=at - 1, kinds=kinds, limit=1)
            except Corrupt as error:
                await self._park(at, error)
                continue
            if found and found[0].position == at and await self._applies(found[0]):
                await self._journal.unpark(name, at)
        self._has_looked_back = True

    async def _pass_over(self, after: int, error: Corrupt) -> int:
        """Set the next event aside, which cannot even be read; its position."""
        name, kinds = self.projection.name, self.projection.kinds
        _, position = await self._journal.waiting(after=after, kinds=kinds)
        if position is None:
            return after
        await self._park(position, error)
        await self._journal.advance(name, position, now=self._clock())
        return position

    async def _applies(self, event: Event) -> bool:
        try:
            await self.projection.apply([event])
        except TierUnavailable:
            raise
        except Exception as error:
            await self._park(event.position, error)
            return False
        return True

    async def _apply(self, batch: Sequence[Event]) -> None:
        try:
            await self.projection.apply(batch)
        except TierUnavailable:
            raise
        except Exception as error:
            if len(batch) > 1:
                for event in batch:
                    await self._apply([event])
            else:
                await self._retry_alone(batch[0], error)

    async def _retry_alone(self, event: Event, error: Exception) -> None:
        for _ in range(ATTEMPTS - 1):
            try:
                await self.projection.apply([event])
                return
            except TierUnavailable:
                raise
            except Exception as again:
                error = again
        await self._park(event.position, error)

    async def _park(self, position: int, error: Exception) -> None:
        name = self.projection.name
        reason = f"{type(error).__name__}: {error}"
        _log.error("%s: event %d is set aside: %s", name, position, type(error).__name__)
        await self._journal.park(name, position, reason, now=self._clock())

    async def _say(self, error: Exception, ticket: int) -> None:
        """Make a failure visible. One that is no store's silence is a bug: it keeps its trace."""
        said = str(error) if isinstance(error, TierUnavailable) else repr(error)
        if said != self.error:
            trace = None if isinstance(error, TierUnavailable) else error
            _log.warning("%s waits: %s", self.projection.name, said, exc_info=trace)
        async with self._moved:
            self.error = said
            self._failed = max(self._failed, ticket)
            self._moved.notify_all()


async def _within(event: asyncio.Event, longest: timedelta) -> None:
    """Wait for an event, but no longer than that."""
    try:
        async with asyncio.timeout(longest.total_seconds()):
            await event.wait()
    except TimeoutError:
        return
