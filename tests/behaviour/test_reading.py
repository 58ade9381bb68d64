"""Nights of reading facts with a language model: killed anywhere, out of budget, and in company."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from consolidation import Report, consolidate
from consolidation.reading import DEATHS, DIED, TOO_DEAR, TOO_LITTLE, TOO_SMALL
from memory import Memory
from memory.errors import LLMError, LLMMalformed, LLMRefused, LLMTruncated, LLMUnavailable
from memory.journal import Journal
from memory.journal.retries import Retries
from memory.models import Assertion, Scope
from memory.settings import Settings
from memory.terminal import show
from memory.unread import NIGHTS, READ
from tests.behaviour.conftest import Clock
from tests.behaviour.reading_process import (
    NIGHT,
    Killed,
    ListingLLM,
    MortalJournal,
    boxes,
    journal_at,
    read,
    read_and_die,
    record,
)
from tests.stub_embedder import StubEmbedder

DAY = timedelta(days=1)
BOXES = [f"Box {n} holds a lamp" for n in range(4)]


@pytest.fixture
async def journal(urls: dict[str, str]) -> AsyncIterator[Journal]:
    async with journal_at(urls["journal_url"]) as opened:
        yield opened


async def facts(journal: Journal, scope: Scope) -> list[Assertion]:
    events = await journal.events_of(scope, kinds=["fact"])
    return [Assertion.from_json(event.body) for event in events]


async def sources(journal: Journal, scope: Scope) -> list[str]:
    """The message of each fact, in no order."""
    return sorted(source for fact in await facts(journal, scope) for source in fact.sources)


async def failed(journal: Journal, scope: Scope) -> dict[str, int]:
    """How often each message that is not read has failed."""
    rows = await Retries(journal, READ).all(scope=scope)
    return {row.item: row.attempts for row in rows}


async def killed_at(journal: Journal, llm: ListingLLM, scope: Scope, at: int) -> bool:
    """Read until the process dies at its write number `at`; False when it did not come to it."""
    try:
        await read(MortalJournal(journal, at), llm, scope)
    except Killed:
        return True
    return False


async def test_a_reader_killed_before_any_of_its_writes_and_run_again_leaves_the_same_facts(
    journal: Journal, scope: Scope
) -> None:
    """CONS-08"""
    whole = Scope.of(scope.tenant, "whole")
    for session in ("one", "two"):
        await record(journal, whole, session, *(f"{text} of {session}" for text in BOXES))
    await read(journal, ListingLLM(boxes), whole)
    expected = {(fact.subject, fact.object) for fact in await facts(journal, whole)}
    assert len(expected) == 8

    at, died = 0, True
    while died:
        user = Scope.of(scope.tenant, f"killed at {at}")
        ids = []
        for session in ("one", "two"):
            ids += await record(journal, user, session, *(f"{text} of {session}" for text in BOXES))
        llm = ListingLLM(boxes)
        died = await killed_at(journal, llm, user, at)
        reading = await read(journal, llm, user)
        assert {(f.subject, f.object) for f in await facts(journal, user)} == expected
        assert await sources(journal, user) == sorted(ids)
        assert len(llm.asked) <= 3  # of two portions, one at most is asked about again
        assert (reading.waiting, await failed(journal, user)) == (0, {})
        assert (await read(journal, llm, user)).usage.calls == 0
        at += 1
    assert at > 8


async def test_a_model_that_says_it_otherwise_each_time_makes_no_doubles_of_a_killed_night(
    journal: Journal, scope: Scope
) -> None:
    at, died = 0, True
    while died:
        user = Scope.of(scope.tenant, f"killed at {at}")
        ids = await record(journal, user, "s", *(f"{text} and a rope" for text in BOXES))
        words = iter([" and a rope", " a lamp", " a lamp and a rope", " rope"])

        def otherwise(data: str, words: Any = words) -> list[dict[str, Any]]:
            said = next(words)
            return [{**each, "object": said.strip()} for each in boxes(data)]

        llm = ListingLLM(otherwise)
        died = await killed_at(journal, llm, user, at)
        await read(journal, llm, user)
        assert await sources(journal, user) == sorted(ids)
        at += 1
    assert at > 4


@pytest.mark.parametrize("again", [False, True])
async def test_a_reader_killed_while_it_notes_a_failure_loses_no_message(
    journal: Journal, scope: Scope, again: bool
) -> None:
    at, died = 0, True
    while died:
        user = Scope.of(scope.tenant, f"killed at {at}")
        ids = await record(journal, user, "s", *BOXES)
        llm = ListingLLM(lambda _: LLMRefused("no"))
        if again:
            await read(journal, llm, user, now=NIGHT - DAY)
        died = await killed_at(journal, llm, user, at)
        await read(journal, llm, user)
        assert sorted(await failed(journal, user)) == sorted(ids)
        llm.script = boxes
        await read(journal, llm, user, now=NIGHT + DAY)
        assert await sources(journal, user) == sorted(ids)
        assert await failed(journal, user) == {}
        at += 1
    assert at > 6


async def test_what_a_cancelled_reader_was_asking_about_is_asked_again(
    journal: Journal, scope: Scope
) -> None:
    ids = await record(journal, scope, "s", *BOXES)
    begun = asyncio.Event()

    class Slow(ListingLLM):
        async def listed(self, *args: Any, **kwargs: Any) -> Any:
            begun.set()
            await asyncio.Event().wait()

    night = asyncio.create_task(read(journal, Slow(boxes), scope))
    await begun.wait()
    night.cancel()
    with pytest.raises(asyncio.CancelledError):
        await night
    assert await sources(journal, scope) == []
    await read(journal, ListingLLM(boxes), scope)
    assert await sources(journal, scope) == sorted(ids)


async def test_a_message_over_which_every_process_dies_is_set_aside_and_all_others_are_read(
    journal: Journal, urls: dict[str, str], scope: Scope, tmp_path: Path
) -> None:
    """CONS-08"""
    texts = [f"Box {n} holds a lamp" for n in range(60)]
    texts[23] = "Box 23 holds POISON"
    ids = await record(journal, scope, "s", *texts)
    asked = tmp_path / "asked"
    context = multiprocessing.get_context("spawn")
    args = (urls["journal_url"], scope.to_json(), asked)
    deaths = 0
    while True:
        process = context.Process(target=read_and_die, args=args)
        process.start()
        await asyncio.to_thread(process.join)
        if process.exitcode == 0:
            break
        deaths += 1
    assert deaths == DEATHS
    reasons = {row.reason for row in await Retries(journal, READ).all(scope=scope)}
    assert reasons == {DIED}
    llm = ListingLLM(lambda data: LLMUnavailable("gone") if "POISON" in data else boxes(data))
    for number in range(1, NIGHTS + 1):
        await read(journal, llm, scope, now=NIGHT + number * DAY)
    assert await sources(journal, scope) == sorted(set(ids) - {ids[23]})
    assert await failed(journal, scope) == {ids[23]: NIGHTS}
    requests = asked.read_text(encoding="utf-8").split("=====")
    assert sum("POISON" in request for request in requests) == DEATHS
    assert sum("Box 45 " in request for request in requests) == 1


@pytest.mark.parametrize(
    "error", [LLMRefused("no"), LLMMalformed("chat"), LLMTruncated("cut"), LLMUnavailable("gone")]
)
async def test_one_message_that_cannot_be_read_does_not_keep_the_others_from_it(
    journal: Journal, scope: Scope, error: LLMError
) -> None:
    texts = [f"Box {n} holds a lamp" for n in range(100)]
    texts[57] = "Box 57 holds POISON"
    ids = await record(journal, scope, "s", *texts)
    llm = ListingLLM(lambda data: error if "POISON" in data else boxes(data))
    given_up = []
    for number in range(NIGHTS + 1):
        reading = await read(journal, llm, scope, now=NIGHT + number * DAY)
        given_up.append(reading.given_up)
    assert await sources(journal, scope) == sorted(set(ids) - {ids[57]})
    assert await failed(journal, scope) == {ids[57]: NIGHTS}
    assert given_up == [0, 0, 0, 0, 1, 0]
    assert len(llm.asked) < 40


async def test_a_model_that_is_gone_ends_the_night_and_is_nothing_against_anybody(
    journal: Journal, scope: Scope
) -> None:
    ids = await record(journal, scope, "one", *BOXES)
    ids += await record(journal, scope, "two", *BOXES[:1])
    llm = ListingLLM(boxes)
    llm.is_gone = True
    for number in range(NIGHTS + 1):
        reading = await read(journal, llm, scope, now=NIGHT + number * DAY)
        assert (reading.failed, reading.waiting) == (0, 5)
        assert reading.ended == "the language model did not answer"
    assert len(llm.asked) == NIGHTS + 1
    llm.is_gone = False
    reading = await read(journal, llm, scope, now=NIGHT)
    assert (reading.read, reading.waiting, reading.ended) == (5, 0, "")
    assert await sources(journal, scope) == sorted(ids)


async def test_a_night_ends_with_its_budget_and_the_next_goes_on(
    journal: Journal, scope: Scope
) -> None:
    ids = await record(journal, scope, "s", *(f"Box {n} holds a lamp" for n in range(100)))
    llm = ListingLLM(boxes)
    first = await read(journal, llm, scope, calls=1)
    assert (first.read, first.waiting, first.usage.calls) == (40, 60, 1)
    assert first.ended == "the night's budget of calls or tokens is used up"
    second = await read(journal, llm, scope, calls=5)
    assert (second.read, second.waiting, second.ended) == (60, 0, "")
    assert await sources(journal, scope) == sorted(ids)
    assert len(llm.asked) == 3


async def test_what_alone_needs_more_than_a_nights_budget_does_not_end_every_night(
    journal: Journal, scope: Scope
) -> None:
    long = "Box 1 holds a lamp. " + "The harbour was full of boats again. " * 1_500
    ids = await record(journal, scope, "a", long)
    ids += await record(journal, scope, "b", "Box 2 holds a rope")
    llm = ListingLLM(boxes)
    reading = await read(journal, llm, scope, calls=2)
    assert (reading.read, reading.failed, reading.waiting, reading.ended) == (1, 1, 0, "")
    assert await sources(journal, scope) == ids[1:]
    assert len(llm.asked) == 1
    (row,) = await Retries(journal, READ).all(scope=scope)
    assert (row.item, row.reason) == (ids[0], TOO_DEAR)
    reading = await read(journal, llm, scope, now=NIGHT + DAY, calls=20)
    assert (reading.read, reading.failed) == (1, 0)
    assert "Box 1 holds a lamp" in llm.asked[1]


async def test_a_budget_of_few_tokens_asks_about_less_at_once_and_one_of_next_to_none_is_a_problem(
    journal: Journal, scope: Scope
) -> None:
    ids = await record(journal, scope, "s", *(f"Box {n} holds a lamp" for n in range(100)))
    llm = ListingLLM(boxes)
    reading = await read(journal, llm, scope, tokens=4_000)
    assert (reading.read, reading.failed) == (100, 0)
    assert max(data.count(" holds ") for data in llm.asked) < 40
    assert await sources(journal, scope) == sorted(ids)
    asked = len(llm.asked)
    await record(journal, scope, "s", "Box 100 holds a rope")
    reading = await read(journal, llm, scope, tokens=2_000)
    assert (reading.ended, reading.waiting, len(llm.asked)) == (TOO_LITTLE, 1, asked)


async def test_a_night_without_anything_new_asks_nothing(journal: Journal, scope: Scope) -> None:
    await record(journal, scope, "s", *BOXES)
    llm = ListingLLM(boxes)
    assert (await read(journal, llm, scope)).usage.calls == 1
    assert (await read(journal, llm, scope)).usage.calls == 0
    await record(journal, scope, "s", "Box 9 holds a rope")
    assert (await read(journal, llm, scope)).usage.calls == 1
    assert "Box 3 holds a lamp" in llm.asked[-1]  # to be understood by
    assert len(await facts(journal, scope)) == 5


async def test_a_window_that_is_too_small_is_said_and_nothing_is_asked(
    journal: Journal, scope: Scope
) -> None:
    await record(journal, scope, "s", *BOXES)
    llm = ListingLLM(boxes, window=1_000)
    reading = await read(journal, llm, scope)
    assert (reading.ended, reading.waiting, llm.asked) == (TOO_SMALL, 4, [])


# --- as a part of the night ----------------------------------------------------------------------


def memory_at(
    urls: dict[str, str], clock: Clock, scope: Scope, llm: ListingLLM | None, **changes: Any
) -> AbstractAsyncContextManager[Memory]:
    settings = Settings.model_validate({**urls, "tenant": scope.tenant, **changes})
    return Memory.open(settings=settings, embedder=StubEmbedder(), llm=llm, clock=clock)


async def test_what_was_read_at_night_is_known_in_the_morning(
    urls: dict[str, str], clock: Clock, scope: Scope
) -> None:
    llm = ListingLLM(boxes)
    async with memory_at(urls, clock, scope, llm) as memory:
        user = memory.user("ada")
        await user.session("s").record(user="Box 7 holds the lamp of Vera", assistant="Good!")
        dry = await consolidate(memory, now=clock.now, dry_run=True)
        assert dry.reading is not None
        assert (dry.reading.waiting, dry.reading.read, llm.asked) == (2, 0, [])
        seen: list[tuple[int, int]] = []
        report = await consolidate(
            memory, now=clock.now, progress=lambda done, total, _: seen.append((done, total))
        )
        assert seen == [(0, 1)]
        assert report.reading is not None
        assert (report.reading.read, report.reading.facts, report.changed) == (2, 1, True)
        assert report.problems == ()
        recalled = await user.recall("What does box 7 hold?")
        known = [item.text for item in recalled.items if item.tier == "semantic"]
        assert known == ["Box 7 holds the lamp of Vera"]
        context = await user.session("t").build_context("What does box 7 hold?")
        assert "lamp of Vera" in context.text
        again = await consolidate(memory, now=clock.now)
        assert again.reading is not None
        assert (again.reading.usage.calls, again.changed) == (0, False)


async def test_without_a_model_a_night_does_not_speak_of_reading(
    urls: dict[str, str], clock: Clock, scope: Scope
) -> None:
    async with memory_at(urls, clock, scope, None) as memory:
        await memory.user("ada").session("s").record(user="Box 7 holds the lamp")
        report = await consolidate(memory, now=clock.now)
        assert report.reading is None
        assert "reading" not in report.to_json()


async def test_a_budget_too_small_for_all_is_not_used_up_by_the_same_users_every_night(
    urls: dict[str, str], clock: Clock, scope: Scope
) -> None:
    llm = ListingLLM(boxes)
    async with memory_at(urls, clock, scope, llm, llm_job_calls=1) as memory:
        names = ["ada", "bob", "cleo"]
        for name in names:
            await memory.user(name).session("s").record(user="Box 7 holds the lamp")
        for _ in names:
            report = await consolidate(memory, now=clock.now)
            assert report.problems == ()
            for name in names:  # everybody has something new every day
                await memory.user(name).session("s").record(user="Box 8 holds a rope")
            clock.forward(days=1)
        for name in names:
            assert "the lamp" in {fact.object for fact in await memory.user(name).facts()}


async def test_a_model_that_is_gone_is_a_problem_of_the_night_and_of_nobody(
    urls: dict[str, str], clock: Clock, scope: Scope
) -> None:
    llm = ListingLLM(boxes)
    llm.is_gone = True
    async with memory_at(urls, clock, scope, llm) as memory:
        await memory.user("ada").session("s").record(user="Box 7 holds the lamp")
        report = await consolidate(memory, now=clock.now)
        assert report.failures == ()
        assert "the language model did not answer" in report.problems[0]
        assert report.reading is not None
        assert report.reading.usage.failures == {"unavailable": 1}


async def test_an_error_of_a_models_own_making_does_not_end_the_night_for_the_others(
    urls: dict[str, str], clock: Clock, scope: Scope
) -> None:
    def script(data: str) -> list[dict[str, Any]]:
        if "POISON" in data:
            raise RuntimeError("sk-secret")
        return boxes(data)

    async with memory_at(urls, clock, scope, ListingLLM(script)) as memory:
        await memory.user("ada").session("s").record(user="Box 7 holds POISON")
        await memory.user("bob").session("s").record(user="Box 8 holds a rope")
        report = await consolidate(memory, now=clock.now)
        assert report.users == 2
        assert report.reading is not None
        assert (report.reading.read, report.reading.failed) == (1, 1)
        assert [fact.object for fact in await memory.user("bob").facts()] == ["a rope"]
        assert "sk-secret" not in report.model_dump_json()


async def test_people_are_told_what_a_night_has_read(
    urls: dict[str, str], clock: Clock, scope: Scope
) -> None:
    llm = ListingLLM(boxes)
    async with memory_at(urls, clock, scope, llm) as memory:
        session = memory.user("ada").session("s")
        await session.record(user="Box 7 holds the lamp")
        assert "1 message would be read for facts" in told(
            await consolidate(memory, now=clock.now, dry_run=True)
        )
        assert "1 message read for 1 new fact; 1 call, " in told(
            await consolidate(memory, now=clock.now)
        )
        llm.script = lambda _: LLMRefused("no")
        await session.record(user="Box 8 holds a rope")
        refused = told(await consolidate(memory, now=clock.now))
        assert "1 could not be read; 1 call" in refused
        assert "no use: 1 × refused" in refused
        llm.is_gone = True
        await session.record(user="Box 9 holds a net")
        gone = told(await consolidate(memory, now=clock.now))
        assert "1 wait" in gone
        assert "! the language model did not answer" in gone


def told(report: Report) -> str:
    written = StringIO()
    show.night(Console(file=written, width=100), report)
    return written.getvalue()
