"""Compaction over real stores: killed on the way, done by several at once, made again from the
journal. Whatever happens, each message is summarised once and none is lost."""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memory import Memory
from memory.compaction import AT_ONCE, Compactor
from memory.journal import Journal
from memory.models import Scope, Summary
from memory.projections import ENOUGH, OLDEST, SUMMARY
from memory.settings import Settings
from memory.summary import Excerpts, Summariser
from memory.tokens import TokenCounter
from memory.working import WorkingMemory, open_redis
from tests.behaviour.compacting_process import (
    LIMIT,
    SESSION,
    Measured,
    compact_and_die,
    filled,
    journalled,
    record_lines,
    retelling,
    told,
    windows_at,
)
from tests.behaviour.conftest import Clock
from tests.scripted_llm import Asked, ScriptedLLM, fails, says
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(seconds=30)
PROCESSES = multiprocessing.get_context("spawn")

OpenWith = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def open_with(urls: dict[str, str], clock: Clock, scope: Scope) -> OpenWith:
    """Opens the test's memory with a language model, in a small window."""

    @asynccontextmanager
    async def open_it(llm: ScriptedLLM | None, **changes: Any) -> AsyncIterator[Memory]:
        sizes = {"window_tokens": 400, "summary_tokens": 100}
        settings = Settings.model_validate({**urls, "tenant": scope.tenant, **sizes, **changes})
        async with Memory.open(
            settings=settings, embedder=StubEmbedder(), llm=llm, clock=clock
        ) as memory:
            yield memory

    return open_it


async def talk(memory: Memory, size: int, *, user: str = "ada") -> None:
    session = memory.user(user).session(SESSION)
    for number in range(size):
        await session.record(user=f"Line {number}: the ferry leaves at nine.", assistant="Yes.")
    assert await memory.settled(PATIENCE)


async def summaries_in(journal: Journal, scope: Scope) -> list[Summary]:
    stored = await journal.events_of(scope, kinds=[SUMMARY], session=SESSION)
    return [Summary.from_json(event.body) for event in stored]


@pytest.mark.parametrize("point", ["answered", "written", "folded"])
async def test_a_process_that_is_killed_while_it_compacts_leaves_nothing_lost_and_nothing_twice(
    urls: dict[str, str], scope: Scope, tmp_path: Path, point: str
) -> None:
    asked = tmp_path / "asked"
    llm = ScriptedLLM(says("They spoke of the ferry."))
    async with windows_at(urls) as (journal, _, windows):
        recorded = await filled(journal, windows, scope, first=0, size=40)
        child = PROCESSES.Process(
            target=compact_and_die, args=(urls, scope.model_dump(), asked, point)
        )
        child.start()
        await asyncio.to_thread(child.join)
        assert child.exitcode == -signal.SIGKILL
        first = re.findall(r"Line (\d+)", asked.read_text())

        while await windows.compact(scope, SESSION, retelling(llm)):
            continue
        (stored,) = await summaries_in(journal, scope)
        window = await windows.read(scope, SESSION)
        assert window.summary == stored
        assert (stored.covers_from, stored.covers_to) == (1, len(first))
        kept = [message.seq for message in window.messages]
        assert kept == list(range(stored.covers_to + 1, len(recorded) + 1))
        assert window.unsummarised == 0
        assert await windows.from_journal(scope, SESSION) == window
        again = [re.findall(r"Line (\d+)", request.data) for request in llm.asked]
        assert again == ([first] if point == "answered" else [])
        assert ("died" in stored.text) == (point != "answered")


async def test_of_two_that_summarise_the_same_the_first_counts_for_both(
    urls: dict[str, str], scope: Scope
) -> None:
    both = asyncio.Barrier(2)

    class Waits(ScriptedLLM):
        async def text(self, *given: Any, **more: Any) -> str:
            await both.wait()
            return await super().text(*given, **more)

    async with windows_at(urls) as (journal, _, here), windows_at(urls) as (_, _, there):
        await filled(journal, here, scope, first=0, size=40)
        await asyncio.gather(
            here.compact(scope, SESSION, retelling(Waits(says("One tells it so.")))),
            there.compact(scope, SESSION, retelling(Waits(says("Another tells it otherwise.")))),
        )
        (stored,) = await summaries_in(journal, scope)
        for windows in (here, there):
            assert (await windows.read(scope, SESSION)).summary == stored
            assert (await windows.from_journal(scope, SESSION)).summary == stored


async def test_excerpts_and_a_language_model_at_once_give_one_summary(
    urls: dict[str, str], scope: Scope
) -> None:
    async with windows_at(urls) as (journal, _, here), windows_at(urls) as (_, _, there):
        for first in range(0, 400, 40):
            await filled(journal, here, scope, first=first, size=40)
            await asyncio.gather(
                here.compact(scope, SESSION, retelling(ScriptedLLM(says("One tells it so.")))),
                there.compact(scope, SESSION, Excerpts(TokenCounter().count)),
            )
            window = await here.read(scope, SESSION)
            assert window.summary == (await summaries_in(journal, scope))[-1]
            assert window == await there.from_journal(scope, SESSION)
        ranges = [(each.covers_from, each.covers_to) for each in await summaries_in(journal, scope)]
        assert [first for first, _ in ranges] == [1] * len(ranges)
        assert [last for _, last in ranges] == sorted({last for _, last in ranges})


async def test_one_of_two_memories_compacts_a_session_and_both_see_it(open_with: OpenWith) -> None:
    here, there = ScriptedLLM(says("They spoke.")), ScriptedLLM(says("They spoke."))
    here.open.clear()
    there.open.clear()
    async with open_with(here) as one, open_with(there) as other:
        first = one.user("ada").session(SESSION)
        second = other.user("ada").session(SESSION)
        for number in range(30):
            session = (first, second)[number % 2]
            await session.record(user=f"Line {number}: the ferry leaves at nine.", assistant="Yes.")
            assert (await session.window()).tokens <= LIMIT
        async with asyncio.timeout(PATIENCE.total_seconds()):
            while not here.asked and not there.asked:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert len(here.asked) + len(there.asked) == 1
        here.open.set()
        there.open.set()
        assert await one.settled(PATIENCE)
        assert await other.settled(PATIENCE)
        async with asyncio.timeout(PATIENCE.total_seconds()):
            while (await first.window()).unsummarised:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await first.window() == await second.window()
        assert (await first.window()).summary is not None


async def test_what_waits_to_be_summarised_is_there_again_when_redis_was_erased(
    open_with: OpenWith, urls: dict[str, str], clock: Clock
) -> None:
    llm = ScriptedLLM(says("They spoke of the ferry."))
    async with open_with(llm) as memory:
        session = memory.user("ada").session(SESSION)
        await talk(memory, 30)
        llm.script = fails()
        await talk(memory, 30)
        before = await session.window()
        assert before.summary is not None
        assert before.unsummarised > 0
        async with open_redis(urls["redis_url"], timeout=PATIENCE) as redis:
            await WorkingMemory(redis, ttl=None).clear(session.scope, SESSION)
        assert await session.window() == before
        await memory.rebuild()
        assert await session.window() == before
        await session.record(user="And on it goes.")
        assert await memory.settled(PATIENCE)
        assert (await session.window()).summary == before.summary
        llm.script = says("They spoke of the ferry, for long.")
        clock.forward(hours=2)
        await session.record(user="And on.")
        assert await memory.settled(PATIENCE)
        after = await session.window()
        assert after.summary is not None
        assert (after.summary.text, after.unsummarised) == ("They spoke of the ferry, for long.", 0)


async def test_a_long_backlog_is_left_out_and_then_summarised_in_portions(
    open_with: OpenWith, clock: Clock
) -> None:
    llm = ScriptedLLM(fails(), window=1_500)
    async with open_with(llm) as memory:
        session = memory.user("ada").session(SESSION)
        lines = [
            {
                "role": ("user", "assistant")[n % 2],
                "content": f"Line {n}: the ferry leaves at nine.",
            }
            for n in range(600)
        ]
        await session.record(messages=lines)
        assert await memory.settled(PATIENCE)
        window = await session.window()
        assert window.tokens <= LIMIT
        assert window.unsummarised == 600 - len(window.messages)
        assert [m.seq for m in window.messages] == list(range(window.unsummarised + 1, 601))
        llm.script = lambda asked: f"They spoke of the ferry {asked.number} times."
        calls = len(llm.asked)
        clock.forward(hours=2)
        await session.record(user="And now?")
        assert await memory.settled(PATIENCE)
        after = await session.window()
        assert after.unsummarised == 0
        assert after.summary is not None
        said = "".join(asked.data for asked in llm.asked[calls:])
        told_of = [int(n) for n in re.findall(r"Line (\d+):", said)]
        assert told_of == list(range(after.summary.covers_to))
        assert len(llm.asked) - calls > 5


async def test_a_failure_of_last_year_by_a_clock_that_was_wrong_does_not_wait_for_that_day(
    open_with: OpenWith, clock: Clock
) -> None:
    llm = ScriptedLLM(fails())
    today = clock.now
    clock.forward(days=365)
    async with open_with(llm) as memory:
        await talk(memory, 30)
        assert (await memory.user("ada").session(SESSION).window()).unsummarised > 0
        clock.now = today
        llm.script = says("They spoke of the ferry.")
        await talk(memory, 1)
        assert (await memory.user("ada").session(SESSION).window()).summary is not None


async def test_a_bug_over_one_session_does_not_end_compaction(
    tmp_path: Path, scope: Scope, caplog: pytest.LogCaptureFixture
) -> None:
    class Buggy(Journal):
        @asynccontextmanager
        async def lease(self, name: str) -> AsyncIterator[None]:
            bugs.append(name)
            if len(bugs) <= 2 * AT_ONCE:
                raise RuntimeError("sk-secret")
            async with super().lease(name):
                yield

    class Folds:
        async def compact(self, scope: Scope, session: str, summariser: Summariser) -> bool:
            attended.append(session)
            return False

    bugs: list[str] = []
    attended: list[str] = []
    async with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}", timeout=PATIENCE) as opened:
        journal = Buggy(opened._open_database())
        compactor = Compactor(journal, Excerpts(TokenCounter().count), Clock())
        running = asyncio.create_task(compactor.run(Folds()))
        sessions = [f"session {n}" for n in range(3 * AT_ONCE)]
        for session in sessions:
            compactor.request(scope, session)
        assert await compactor.idle(PATIENCE)
        assert attended == sessions[2 * AT_ONCE :]
        assert "RuntimeError" in caplog.text
        assert "sk-secret" not in caplog.text
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("urls", ["local"], indirect=True)
async def test_a_backlog_of_a_day_is_summarised_without_reading_all_of_it_for_each_portion(
    urls: dict[str, str], scope: Scope
) -> None:
    llm = ScriptedLLM(says("They spoke of the ferry."), window=6_000)
    Measured.gave.clear()
    async with windows_at(urls, Measured) as (journal, _, windows):
        recorded = await filled(journal, windows, scope, first=0, size=4 * OLDEST)
        while await windows.compact(scope, SESSION, retelling(llm)):
            continue
        window = await windows.read(scope, SESSION)
        assert window.summary is not None
        assert window.unsummarised == 0
        assert window.summary.covers_to + len(window.messages) == len(recorded)
        told_of = "".join(asked.data for asked in llm.asked)
        numbers = [int(n) for n in re.findall(r"Line (\d+):", told_of)]
        assert numbers == list(range(window.summary.covers_to))
        assert len(llm.asked) > 4
        assert max(Measured.gave) == OLDEST
        assert await windows.from_journal(scope, SESSION) == window


async def test_the_language_model_can_be_taken_away_and_given_back(
    open_with: OpenWith, clock: Clock
) -> None:
    llm = ScriptedLLM(fails())
    async with open_with(llm) as memory:
        await talk(memory, 30)
        assert (await memory.user("ada").session(SESSION).window()).unsummarised > 0
    async with open_with(None) as memory:
        session = memory.user("ada").session(SESSION)
        assert (await session.window()).unsummarised == 0
        await talk(memory, 1)
        window = await session.window()
        assert window.summary is not None
        assert window.summary.method == "extract"
        assert window.tokens <= LIMIT
    llm.script = says("They spoke of the ferry.")
    clock.forward(hours=2)
    async with open_with(llm) as memory:
        await talk(memory, 30)
        after = await memory.user("ada").session(SESSION).window()
        assert after.summary is not None
        assert (after.summary.method, after.summary.covers_from) == ("llm", 1)


async def test_a_lower_limit_holds_at_the_first_read_also_with_a_language_model(
    open_with: OpenWith,
) -> None:
    """WIN-03, with summaries by a language model"""

    def script(asked: Asked) -> str:
        return "They spoke of the ferry that leaves at nine. " * 7

    async with open_with(ScriptedLLM(script), window_tokens=800, summary_tokens=200) as memory:
        await talk(memory, 60)
        before = await memory.user("ada").session(SESSION).window()
        assert before.tokens > 300
    async with open_with(ScriptedLLM(fails()), window_tokens=200) as memory:
        session = memory.user("ada").session(SESSION)
        window = await session.window()
        assert window.tokens <= 200
        assert window.unsummarised > 0
        assert window.summary is not None
        assert window.messages[-1] == before.messages[-1]
        context = await session.build_context("hi", budget=600)
        assert context.tokens.total <= 600


async def test_two_processes_see_the_same_window_and_redis_holds_no_more_than_that(
    urls: dict[str, str], scope: Scope, tmp_path: Path
) -> None:
    """WIN-04"""
    settings = {**urls, "tenant": scope.tenant, "window_tokens": 200, "summary_tokens": 60}
    found = tmp_path / "found"
    child = PROCESSES.Process(target=record_lines, args=(settings, scope.user, 50, found))
    child.start()
    await asyncio.to_thread(child.join)
    assert child.exitcode == 0
    async with Memory.open(
        settings=Settings.model_validate(settings), embedder=StubEmbedder(), clock=Clock()
    ) as memory:
        session = memory.user(scope.user).session(SESSION)
        window = await session.window()
        assert found.read_text() == told(window)
        assert window.tokens <= 200
        assert window.messages[-1].seq == 50
        assert [m.id for m in await session.messages(after_seq=window.messages[0].seq - 1)] == [
            m.id for m in window.messages
        ]
        async with open_redis(urls["redis_url"], timeout=PATIENCE) as redis:
            held = await WorkingMemory(redis, ttl=None).read(scope, SESSION)
            assert held is not None
            assert held.messages == window.messages


@pytest.mark.parametrize("missed", [1, ENOUGH - 1, ENOUGH, ENOUGH + 1, 3 * ENOUGH])
async def test_what_a_window_has_not_been_told_of_is_read_beside_it(
    urls: dict[str, str], scope: Scope, missed: int
) -> None:
    async with windows_at(urls) as (journal, working, windows), windows_at(urls) as (_, _, other):
        await filled(journal, windows, scope, first=0, size=6)
        before = (await windows.read(scope, SESSION)).last_seq
        await journalled(journal, scope, first=6, size=missed)
        for _ in range(2):  # the second time it is known where the window ended
            told = await windows.read(scope, SESSION)
            assert told.last_seq == before + missed
            assert told == await other.read(scope, SESSION)
        await working.clear(scope, SESSION)
        assert (await windows.read(scope, SESSION)).last_seq == before + missed
