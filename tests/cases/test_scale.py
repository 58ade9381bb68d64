"""What a memory costs as it grows, in counts: statements, steps of the database, items shown.

Steps are instructions of SQLite's machine, which are the same on every computer: a statement that
is run again, on the file that the journal left, takes as many as it took.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from memory import Memory
from memory.memory import UserMemory
from tests.behaviour.conftest import Open
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(seconds=60)
QUESTION = "Where is the red kayak, and who has its key?"
STEP = 10
"""Instructions between two counts."""


@dataclass
class Asked:
    """The statements that the journal's database was asked, with their values."""

    file: Path
    statements: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def reads(self) -> list[tuple[str, Any]]:
        return [each for each in self.statements if each[0].startswith(("SELECT", "WITH"))]

    def steps(self) -> int:
        """Instructions that the reads take, about."""
        with _opened(self.file) as connection:
            ticks = [0]

            def tick() -> int:
                ticks[0] += 1
                return 0

            connection.set_progress_handler(tick, STEP)
            for statement, values in self.reads:
                connection.execute(statement, values).fetchall()
            return STEP * ticks[0]

    def scans(self) -> set[str]:
        """Tables that a statement reads from end to end."""
        found = set()
        with _opened(self.file) as connection:
            for statement, values in self.statements:
                if statement.startswith(("SELECT", "WITH", "UPDATE", "DELETE")):
                    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
                    found |= {row[3] for row in plan if row[3].startswith("SCAN")}
        return {scan for scan in found if not any(name in scan for name in _NO_TABLES)}

    def plans(self, words: str, table: str) -> set[str]:
        """How the statements that have these words find the table's rows."""
        found: set[str] = set()
        with _opened(self.file) as connection:
            for statement, values in self.statements:
                if words in statement:
                    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
                    found |= {row[3] for row in plan if row[3].split()[1] == table}
        return found


_NO_TABLES = ("json_each", "CONSTANT ROW", "anon_", "SUBQUERY", "VIRTUAL TABLE")


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(file)
    try:
        yield connection
    finally:
        connection.close()


Listening = Callable[[], Any]


@pytest.fixture
def listening(urls: dict[str, str]) -> Listening:
    """Notes what the journal's database is asked, for as long as it is open."""

    @contextmanager
    def listen() -> Iterator[Asked]:
        asked = Asked(Path(urls["journal_url"].removeprefix("sqlite:///")))

        def remember(_: Any, cursor: Any, statement: str, values: Any, *__: Any) -> None:
            asked.statements.append((statement, values))

        event.listen(Engine, "before_cursor_execute", remember)
        try:
            yield asked
        finally:
            event.remove(Engine, "before_cursor_execute", remember)

    return listen


@pytest.fixture
async def memory(open_memory: Open) -> AsyncIterator[Memory]:
    """With an embedder that costs nothing."""
    async with open_memory(embedder=StubEmbedder()) as opened:
        yield opened


KAYAKS = [f"The red kayak of {place} has a key." for place in ("Ada", "Bob", "Chen", "Dora")]
RARE = "The harpsichord stands in Harlow."


async def talk(user: UserMemory, turns: int, *, first: int = 0) -> None:
    """Turns about kayaks, ten to a session."""
    for turn in range(first, first + turns, 10):
        await user.session(f"s{turn}").record(
            messages=[
                {"role": "user", "content": f"{KAYAKS[n % 4]} It was trip {n}."}
                for n in range(turn, turn + 10)
            ]
        )


async def test_a_search_reads_nothing_of_anybody_else(
    open_memory: Open, listening: Listening
) -> None:
    """PERF-01, of recall: as many steps alone as beside others who say the same words."""

    async def cost(session: str) -> Asked:
        """Of a memory that has read nothing yet."""
        async with open_memory(embedder=StubEmbedder()) as memory:
            user = memory.user("u1")
            assert await memory.settled(PATIENCE)
            with listening() as asked:
                found = await user.recall(QUESTION)
                await user.session(session).build_context(QUESTION)
            assert len(found.items) == 8
            return asked  # type: ignore[no-any-return]

    async with open_memory(embedder=StubEmbedder()) as memory:
        await talk(memory.user("u1"), 60)
        assert await memory.settled(PATIENCE)
    alone = await cost("before")
    steps = alone.steps()
    async with open_memory(embedder=StubEmbedder()) as memory:
        for number in range(10):
            await talk(memory.user(f"other {number}"), 120)
        assert await memory.settled(PATIENCE)
    beside = await cost("after")
    assert len(beside.reads) == len(alone.reads)
    assert beside.scans() == alone.scans() == set()
    assert steps <= beside.steps() <= 1.2 * steps
    async with open_memory(embedder=StubEmbedder()) as memory:  # the user's own do count
        await talk(memory.user("u1"), 300, first=60)
        assert await memory.settled(PATIENCE)
    assert (await cost("later")).steps() > 1.5 * steps


async def test_a_question_is_as_many_statements_however_much_is_remembered(
    memory: Memory, listening: Listening
) -> None:
    """PERF-02, of contexts and recall."""
    user, asked_of = memory.user("u1"), []
    for turns in (10, 40, 400):
        await talk(user, turns, first=1_000 * turns)
        await user.session("rare").record(user=RARE)
        assert await memory.settled(PATIENCE)
        session = user.session("now")
        await session.build_context(QUESTION)
        counts = []
        for question in (QUESTION, "Where is the harpsichord?", "kayak " * 200):
            with listening() as asked:
                await session.build_context(question)
                await user.recall(question)
            counts.append(len(asked.statements))
        asked_of.append(counts)
    few, *more = asked_of
    for counts in more:  # what was read before and what is new are read apart
        assert all(abs(now - then) <= 4 for now, then in zip(counts, few, strict=True))
    assert max(map(max, asked_of)) <= 60


async def test_what_was_read_of_a_user_is_not_read_again(
    memory: Memory, listening: Listening
) -> None:
    """PERF-01: a second question takes a share of the steps, and a new message adds its own."""
    user = memory.user("u1")
    await talk(user, 500)
    assert await memory.settled(PATIENCE)
    steps = []
    for _ in range(3):
        with listening() as asked:
            await user.recall(QUESTION)
        steps.append(asked.steps())
    first, second, third = steps
    assert second < first / 3
    assert third <= second
    await user.session("late").record(user=RARE)
    assert await memory.settled(PATIENCE)
    with listening() as asked:
        found = await user.recall("Where is the harpsichord?")
    assert found.items[0].text == RARE
    assert asked.steps() < first / 3


async def test_what_is_looked_up_by_its_id_is_not_looked_for_among_all_that_a_user_has(
    memory: Memory, listening: Listening
) -> None:
    """PERF-01: of episodes that are recalled, noted as used, pinned, archived and stored again."""
    user = memory.user("u1")
    with listening() as asked:
        await talk(user, 40)
        assert await memory.settled(PATIENCE)
        await user.session("now").build_context(QUESTION)
        ids = [episode.id for episode in await user.episodes()]
        await user.pin(ids[:2])
        await user.archive(ids[2:4], run_id="r1")
        assert len(await user.vectors(await user.episodes())) == 38
        assert await memory.settled(PATIENCE)
    by_id = {statement for statement, _ in asked.statements if "episodes.id IN" in statement}
    assert len(by_id) >= 4
    assert asked.plans("episodes.id IN", "episodes") == {
        "SEARCH episodes USING INDEX episodes_id (id=?)"
    }


async def test_to_write_costs_the_same_however_much_others_have_written(
    memory: Memory, listening: Listening
) -> None:
    """PERF-01, on the local stack (the plans of Neo4j are in tests/contracts/test_semantic.py)."""

    async def write(name: str) -> Asked:
        user = memory.user(name)
        with listening() as asked:
            for number in range(20):
                await user.assert_fact(f"tool {number}", "USES", f"part {number}")
            await user.session("s").record(user="I live in Lima.", assistant="A fine town.")
            assert await memory.settled(PATIENCE)
            assert len(await user.facts()) == 21
        return asked  # type: ignore[no-any-return]

    few = await write("u1")
    few_steps = few.steps()
    for number in range(10):
        user = memory.user(f"other {number}")
        for each in range(100):
            await user.assert_fact(f"tool {each}", "USES", f"part {each} of {number}")
        await talk(user, 20)
    assert await memory.settled(PATIENCE)
    many = await write("u2")
    assert many.scans() == set()
    assert many.steps() <= 1.5 * few_steps


async def test_what_is_shown_has_a_bound_whatever_there_is(memory: Memory) -> None:
    """PERF-02, of contexts and recall: a hub of facts, one long message, a question for all."""
    user = memory.user("u1")
    long = "The red kayak is in the boathouse by the lake. " * 4_000
    for number in range(600):
        await user.assert_fact("the depot", "HOLDS", f"kayak number {number}")
    await user.session("long").record(user=long)
    await talk(user, 50)
    assert await memory.settled(PATIENCE)
    assert len(await user.facts("the depot")) == 600
    session = user.session("now")
    for question in ("What does the depot hold?", "kayak", long):
        recalled = await user.recall(question, k=8)
        assert sum(item.tier == "episodic" for item in recalled.items) <= 8
        assert sum(item.tier == "semantic" for item in recalled.items) <= 100
        assert len(recalled.dropped) <= 100
    for budget in (1_000, 4_000, 16_000):
        context = await session.build_context("What does the depot hold?", budget=budget)
        assert context.tokens.total <= budget
        assert "kayak number" in context.text
        assert len(context.dropped) <= 100
    everything = await user.recall("red kayak", k=10_000)
    assert sum(item.tier == "episodic" for item in everything.items) > 50
