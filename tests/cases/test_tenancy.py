"""Whose memory it is: filters narrow exactly, and nothing is anybody's by default."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

from memory import Memory
from memory.errors import InvalidFilter, InvalidInput
from memory.journal.schema import metadata
from memory.memory import UserMemory
from tests.behaviour.conftest import Open

PATIENCE = timedelta(seconds=30)
Where = dict[str, JsonValue]


@pytest.fixture
async def tickets(memory: Memory) -> UserMemory:
    """Six tickets of u1, two of them archived, one without a status; and one of somebody else."""
    user, other = memory.user("u1"), memory.user("u2")
    for count in range(1, 7):
        meta: Where = {"count": count, "lang": "en" if count % 2 else "zh"}
        if count != 6:
            meta["status"] = "archived" if count < 3 else "open"
        await user.session(f"s{1 + count % 2}", agent=f"a{1 + count % 2}").record(
            messages=[{"role": "user", "content": f"The printer ticket {count}", "metadata": meta}]
        )
    await other.session("s1", agent="a1").record(
        messages=[{"role": "user", "content": "The printer ticket 7", "metadata": {"count": 7}}]
    )
    assert await memory.settled(PATIENCE)
    return user


async def counts(user: UserMemory, where: Where | None = None, **narrowing: str) -> set[JsonValue]:
    recalled = await user.recall("printer ticket", k=10, where=where, **narrowing)  # type: ignore[arg-type]
    return {item.metadata["count"] for item in recalled.items if item.tier == "episodic"}


async def test_a_callers_filter_is_exact_and_never_reaches_another_user(
    memory: Memory, tickets: UserMemory
) -> None:
    """TEN-01"""
    everything = {1, 2, 3, 4, 5, 6}
    assert await counts(tickets) == everything
    assert await counts(tickets, {}) == everything
    assert await counts(tickets, agent="a1") == {2, 4, 6}
    assert await counts(tickets, agent="a1", session="s1") == {2, 4, 6}
    assert await counts(tickets, agent="a1", session="s2") == set()
    assert await counts(tickets, {"$and": [{"count": {"$gt": 2}}, {"lang": "zh"}]}) == {4, 6}
    assert await counts(tickets, {"$or": [{"count": 1}, {"count": 7}]}, agent="a2") == {1}
    for widening in (
        {"$or": [{"count": {"$exists": True}}, {"user": "u2"}]},
        {"$or": [{"user": {"$ne": "u1"}}, {"count": 7}, {"count": {"$lt": 7}}]},
        {"$not": {"user": "u1"}},
    ):
        assert await counts(tickets, widening) <= everything
    assert await counts(tickets, {"user": "u2"}) == set()
    assert await counts(memory.user("u2")) == {7}


async def test_a_negation_is_the_exact_complement_also_for_what_lacks_the_field(
    tickets: UserMemory,
) -> None:
    """TEN-02"""
    assert await counts(tickets, {"status": "archived"}) == {1, 2}
    assert await counts(tickets, {"$not": {"status": "archived"}}) == {3, 4, 5, 6}
    assert await counts(tickets, {"$not": {"count": {"$gt": 4}}, "lang": "en"}) == {1, 3}
    assert await counts(tickets, {"status": {"$exists": False}}) == {6}
    for unknown in ({"count": {"$about": 3}}, {"$nearly": [{"count": 3}]}):
        with pytest.raises(InvalidFilter):
            await tickets.recall("printer ticket", where=unknown)


async def test_what_is_nobodys_cannot_be_stored(open_memory: Open, tmp_path: Path) -> None:
    """TEN-05: there are no rows without an owner that a read could show to everybody."""
    async with open_memory() as memory:
        await memory.user("u1").session("s").record(user="I live in Lyon.")
        assert await memory.user("u1").facts()
    engine = create_engine(f"sqlite:///{tmp_path / 'journal.db'}")
    owned = [
        table for table in metadata.tables.values() if {"owner", "owner_n"} & set(table.c.keys())
    ]
    assert {table.name for table in owned} >= {"events", "episodes", "facts", "snapshots"}
    with engine.connect() as connection:
        for table in owned:
            owner = "owner" if "owner" in table.c else "owner_n"
            names = ", ".join(f'"{column}"' for column in table.c.keys())  # noqa: SIM118
            ownerless = names.replace(f'"{owner}"', "NULL")
            rows = f'"{table.name}" ({names}) SELECT {ownerless} FROM "{table.name}"'
            if connection.execute(text(f'SELECT count(*) FROM "{table.name}"')).scalar_one():
                with pytest.raises(IntegrityError, match="NOT NULL"):
                    connection.execute(text(f"INSERT INTO {rows}"))
    engine.dispose()


async def test_less_than_one_episode_cannot_be_asked_for(tickets: UserMemory) -> None:
    """TEN-01: a limit that would mean everything is refused."""
    for k in (0, -1):
        with pytest.raises(InvalidInput):
            await tickets.recall("printer ticket", k=k)
    assert len((await tickets.recall("printer ticket", k=1)).items) == 1
