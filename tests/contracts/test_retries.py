"""The ledger of what a job could not do yet keeps one contract in both kinds of journal."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from memory.journal import Journal
from memory.journal.retries import Retries
from memory.models import Message, Role, Scope

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOSTILE = ["\x00", "\ud800 alone", "\u202eright to left", "", "x" * 5_000, "🦊 – %_"]


@pytest.fixture
async def owner(journal: Journal, scope: Scope) -> Scope:
    return await known(journal, scope)


async def known(journal: Journal, scope: Scope) -> Scope:
    """The scope, which the journal has heard of."""
    said = [("k", Message(role=Role.USER, content="hello"))]
    await journal.append_messages(scope, "s", said, agent=None, now=NOW)
    return scope


async def test_a_failure_is_counted_and_its_newest_reason_stands(journal: Journal, owner: Scope):
    retries = Retries(journal, "compaction")
    assert await retries.of(owner, "monday") is None
    assert await retries.failed(owner, "monday", "silent", now=NOW, retry_at=NOW + HOUR) == 1
    assert await retries.failed(owner, "monday", "too long", now=NOW + HOUR, retry_at=None) == 2
    found = await retries.of(owner, "monday")
    assert found is not None
    assert (found.attempts, found.reason, found.retry_at) == (2, "too long", None)
    assert (found.job, found.scope, found.item) == ("compaction", owner, "monday")
    assert found.updated_at == NOW + HOUR


async def test_what_is_done_is_gone_and_counts_from_one_again(journal: Journal, owner: Scope):
    retries = Retries(journal, "compaction")
    for item in ("a", "b"):
        await retries.failed(owner, item, "silent", now=NOW, retry_at=NOW)
    await retries.done(owner, ["a", "never failed"])
    await retries.done(owner, [])
    assert [each.item for each in await retries.all()] == ["b"]
    assert await retries.count() == 1
    assert await retries.failed(owner, "a", "silent", now=NOW, retry_at=NOW) == 1


async def test_due_is_what_may_be_tried_by_now_the_longest_due_first(
    journal: Journal, owner: Scope
):
    retries = Retries(journal, "compaction")
    for item, wait in (("later", 3), ("now", 0), ("soon", 1)):
        await retries.failed(owner, item, "silent", now=NOW, retry_at=NOW + wait * HOUR)
    await retries.failed(owner, "given up", "silent", now=NOW, retry_at=None)
    assert [each.item for each in await retries.due(NOW)] == ["now"]
    assert [each.item for each in await retries.due(NOW + 2 * HOUR)] == ["now", "soon"]
    assert [each.item for each in await retries.due(NOW + 9 * HOUR, limit=1)] == ["now"]
    assert await retries.due(NOW - timedelta(microseconds=1)) == []
    assert await retries.count() == 4


async def test_what_a_clock_that_was_wrong_has_put_off_for_years_is_due(
    journal: Journal, owner: Scope
):
    retries = Retries(journal, "compaction", longest=HOUR)
    year = timedelta(days=365)
    await retries.failed(owner, "s", "silent", now=NOW + year, retry_at=NOW + year + HOUR)
    await retries.failed(owner, "in time", "silent", now=NOW, retry_at=NOW + HOUR)
    await retries.failed(owner, "given up", "silent", now=NOW + year, retry_at=None)
    assert [each.item for each in await retries.due(NOW)] == ["s"]
    assert [each.item for each in await retries.due(NOW, scope=owner)] == ["s"]
    assert [r.item for r in await retries.all() if retries.is_due(r, NOW)] == ["s"]
    ever = Retries(journal, "compaction")
    assert await ever.due(NOW) == []
    assert not any(ever.is_due(each, NOW) for each in await ever.all())
    assert await retries.due(NOW + year, limit=9) == await ever.due(NOW + year, limit=9)


async def test_jobs_users_and_items_are_apart(journal: Journal, owner: Scope):
    other = await known(journal, Scope.of(owner.tenant, "somebody else"))
    one, two = Retries(journal, "compaction"), Retries(journal, "read")
    await one.failed(owner, "s", "of mine", now=NOW, retry_at=NOW)
    await one.failed(other, "s", "of another's", now=NOW, retry_at=NOW)
    await two.failed(owner, "s", "of another job", now=NOW, retry_at=NOW)
    await one.done(other, ["s"])
    assert [each.reason for each in await one.all()] == ["of mine"]
    assert [each.reason for each in await one.all(scope=other)] == []
    assert [each.reason for each in await two.all(scope=owner)] == ["of another job"]
    assert await one.of(other, "s") is None


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
async def test_any_text_comes_back_as_it_was(journal: Journal, owner: Scope, text: str):
    retries = Retries(journal, "read")
    await retries.failed(owner, text, text, now=NOW, retry_at=NOW)
    found = await retries.of(owner, text)
    assert found is not None
    assert (found.item, found.reason) == (text, text)
    await retries.done(owner, [text])
    assert await retries.count() == 0


async def test_attempts_that_fail_at_one_moment_are_all_counted(journal: Journal, owner: Scope):
    retries = Retries(journal, "read")
    counts = await asyncio.gather(
        *(retries.failed(owner, "m", "silent", now=NOW, retry_at=NOW) for _ in range(20))
    )
    assert sorted(counts) == list(range(1, 21))
