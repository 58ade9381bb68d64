"""A worker brings every event to its projection, in order, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from memory.errors import TierUnavailable
from memory.journal import Event, Journal, NewEvent
from memory.journal.schema import events
from memory.models import Scope
from memory.worker import ATTEMPTS, LEASE_POLL, Worker

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
PATIENCE = timedelta(seconds=20)
ADA = Scope.of("default", "ada")


class Notebook:
    """A projection that writes down what it is given; some numbers it cannot take."""

    name = "notebook"
    kinds = ("note",)

    def __init__(self) -> None:
        self.written: list[int] = []
        self.refuses: set[int] = set()
        self.refused = 0
        self.is_down = False
        self.batches: list[int] = []
        self.busy = 0
        self.most_busy = 0

    async def apply(self, events: Sequence[Event]) -> None:
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            await asyncio.sleep(0)
            numbers = [int(str(event.body["number"])) for event in events]
            if self.is_down:
                raise TierUnavailable("notebook", "nobody there")
            if self.refuses & set(numbers):
                self.refused += 1
                raise ValueError("cannot take this")
            self.batches.append(len(numbers))
            self.written += numbers
        finally:
            self.busy -= 1


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    async with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}", timeout=PATIENCE) as opened:
        yield opened


async def note(journal: Journal, *numbers: int) -> None:
    events = [
        NewEvent(kind="note", key=f"note:{number}", body={"number": number}, event_time=NOW)
        for number in numbers
    ]
    await journal.append(ADA, events, now=NOW)


@asynccontextmanager
async def working(journal: Journal, notebook: Notebook) -> AsyncIterator[Worker]:
    worker = Worker(journal, notebook, lambda: NOW)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_is_written_before_a_ticket_has_been_applied_when_it_is_reached(
    journal: Journal,
) -> None:
    notebook = Notebook()
    await note(journal, 0)
    async with working(journal, notebook) as worker:
        for number in range(1, 20):
            await note(journal, number)
            assert await worker.reached(worker.request(), PATIENCE)
            assert notebook.written == list(range(number + 1))


async def test_other_kinds_of_event_are_passed_over(journal: Journal) -> None:
    notebook = Notebook()
    other = NewEvent(kind="other", key="other", body={}, event_time=NOW)
    await journal.append(ADA, [other], now=NOW)
    await note(journal, 1)
    async with working(journal, notebook) as worker:
        assert await worker.reached(worker.request(), PATIENCE)
    assert notebook.written == [1]


async def test_one_event_that_cannot_be_applied_is_set_aside_and_the_rest_goes_on(
    journal: Journal,
) -> None:
    notebook = Notebook()
    notebook.refuses = {3}
    await note(journal, *range(6))
    async with working(journal, notebook) as worker:
        assert await worker.reached(worker.request(), PATIENCE)
        lag = await worker.lag()
    assert notebook.written == [0, 1, 2, 4, 5]
    assert notebook.refused == 1 + ATTEMPTS
    assert (lag.behind, lag.parked) == (0, 1)
    (parked,) = await journal.parked("notebook")
    assert "cannot take this" in parked.reason


async def test_what_was_set_aside_is_tried_again_by_the_next_process(journal: Journal) -> None:
    notebook = Notebook()
    notebook.refuses = {2, 4}
    await note(journal, 1, 2, 3, 4)
    async with working(journal, notebook) as worker:
        assert await worker.reached(worker.request(), PATIENCE)
    notebook.refuses = {4}
    await note(journal, 5)
    async with working(journal, notebook) as worker:
        assert await worker.reached(worker.request(), PATIENCE)
        assert sorted(notebook.written) == [1, 2, 3, 5]
        assert (await worker.lag()).parked == 1
    (parked,) = await journal.parked("notebook")
    assert (parked.position, parked.attempts) == (4, 2)
    notebook.is_down = True
    async with working(journal, notebook) as worker:
        assert not await worker.reached(worker.request(), PATIENCE)
        assert len(await journal.parked("notebook")) == 1
        notebook.refuses, notebook.is_down = set(), False
        assert await worker.reached(worker.request(), PATIENCE)
    assert sorted(notebook.written) == [1, 2, 3, 4, 5]
    assert await journal.parked("notebook") == []


async def test_an_event_that_cannot_be_read_is_set_aside_and_the_rest_goes_on(
    journal: Journal,
) -> None:
    notebook = Notebook()
    await note(journal, *range(6))
    broken = update(events).where(events.c.position.in_([1, 4])).values(body=b"{broken")
    await journal.write(lambda connection: connection.execute(broken) and None)
    for attempts in (1, 2):
        async with working(journal, notebook) as worker:
            assert (await worker.lag()).behind == (6 if attempts == 1 else 0)
            assert await worker.reached(worker.request(), PATIENCE)
            assert (await worker.lag()).behind == 0
        assert notebook.written == [1, 2, 4, 5]
        parked = await journal.parked("notebook")
        assert [(each.position, each.attempts) for each in parked] == [(1, attempts), (4, attempts)]
        assert all(each.reason.startswith("Corrupt: ") for each in parked)


async def test_a_store_that_is_down_is_said_and_loses_nothing(journal: Journal) -> None:
    notebook = Notebook()
    notebook.is_down = True
    await note(journal, 1, 2)
    async with working(journal, notebook) as worker:
        assert not await worker.reached(worker.request(), PATIENCE)
        assert "nobody there" in worker.error
        assert (await worker.lag()).behind == 2
        notebook.is_down = False
        ticket = worker.request()
        while worker.error:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await worker.reached(ticket, PATIENCE)
        assert (await worker.lag()).error == ""
    assert notebook.written == [1, 2]
    assert await journal.parked("notebook") == []


async def test_a_batch_comes_again_when_nobody_wrote_down_how_far_it_was(journal: Journal) -> None:
    notebook = Notebook()
    await note(journal, 1, 2)
    async with working(journal, notebook) as worker:
        assert await worker.reached(worker.request(), PATIENCE)
    await journal.reset("notebook")
    async with working(journal, notebook) as worker:
        assert await worker.reached(worker.request(), PATIENCE)
    assert notebook.written == [1, 2, 1, 2]


async def test_only_one_worker_at_a_time_is_at_a_projection(journal: Journal) -> None:
    notebook = Notebook()
    async with working(journal, notebook) as one, working(journal, notebook) as other:
        for number in range(30):
            await note(journal, number)
            one.request()
            other.request()
        assert await one.reached(one.request(), PATIENCE)
        assert await other.reached(other.request(), PATIENCE)
    assert notebook.written == list(range(30))
    assert notebook.most_busy == 1


class Asked(Journal):
    """A journal that writes down when it was asked for a lease, six times."""

    at: list[float]
    six_times: asyncio.Event

    def lease(self, name: str) -> AbstractAsyncContextManager[None]:
        self.at.append(asyncio.get_running_loop().time())
        if len(self.at) == 6:
            self.six_times.set()
        return super().lease(name)


async def test_whoever_waits_for_another_process_asks_less_and_less_often(
    journal: Journal, tmp_path: Path
) -> None:
    notebook = Notebook()
    await note(journal, 1)
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    async with Asked.open(url, timeout=PATIENCE) as asked:
        assert isinstance(asked, Asked)
        asked.at, asked.six_times = [], asyncio.Event()
        async with journal.lease("projection:notebook"), working(asked, notebook) as worker:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await asked.six_times.wait()
            assert asked.at[5] - asked.at[4] >= 10 * LEASE_POLL.total_seconds()
            assert not await worker.reached(worker.request(), timedelta(milliseconds=200))
        async with working(asked, notebook) as worker:
            assert await worker.reached(worker.request(), PATIENCE)
    assert notebook.written == [1]


async def test_many_writes_come_in_few_batches(journal: Journal) -> None:
    notebook = Notebook()
    async with working(journal, notebook) as worker:
        await asyncio.gather(*(note(journal, number) for number in range(200)))
        assert await worker.reached(worker.request(), PATIENCE)
    assert sorted(notebook.written) == list(range(200))
    assert len(notebook.batches) <= 20


async def test_a_worker_is_behind_until_what_was_requested_has_been_applied(
    journal: Journal,
) -> None:
    async with working(journal, Notebook()) as worker:
        assert await worker.reached(worker.request(), PATIENCE)
        assert not worker.is_behind
        await note(journal, 1)
        ticket = worker.request()
        assert worker.is_behind
        assert await worker.reached(ticket, PATIENCE)
        assert not worker.is_behind
