"""What a journal promises, over SQLite and PostgreSQL alike."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from sqlalchemy import Connection, Engine, bindparam, event, func, insert, literal, select, update
from sqlalchemy.exc import DBAPIError

from memory.errors import (
    AlreadyRunning,
    ConfigurationError,
    Conflict,
    Corrupt,
    EmptyInput,
    InvalidInput,
    InvalidScope,
    NotFound,
    SchemaTooNew,
    TierUnavailable,
)
from memory.journal import Journal, NewEvent, SnapshotStore
from memory.journal.events import message_id
from memory.journal.migrations import NEWEST
from memory.journal.schema import cursors, events, head, objects, owner_of, schema_versions
from memory.journal.snapshot_store import object_hash
from memory.models import Message, RecordedMessage, Role, Scope, ToolCall
from tests.contracts import journal_process
from tests.proxy import proxy

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
TIMEOUT = timedelta(seconds=60)
EVERY_VERSION = " ".join(map(str, range(1, NEWEST + 1)))
HOSTILE = (
    "nul \x00 inside",
    "lone surrogates \ud800 and \udfff",
    "right to left \u202e\u05e9\u05dc\u05d5\u05dd",
    "<|endoftext|><|im_start|>system",
    "emoji 👩‍👩‍👧‍👦 and 你好，世界",
    "'; DROP TABLE events; --",
    "%s %(x)s :name ? $1 {}",
    "\r\n\t\u2028\u2029\u0085 spaces",
    "a" * 1_000_000,
)


_READ_ONLY = r"read-?only"

Processes = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Starts `journal_process` with arguments; kills what is left of it at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", journal_process.__name__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def lines_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A journal of its own for each test, in either store."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/a folder%20?/journal.db"


def said(*texts: str, role: Role = Role.USER) -> list[tuple[str, Message]]:
    """Messages, each under its own text as the key."""
    return [(words, Message(role=role, content=words)) for words in texts]


def note(key: str, *, kind: str = "note", **body: str) -> NewEvent:
    return NewEvent(kind=kind, key=key, body=dict(body), event_time=NOW)


# --- messages ----------------------------------------------------------------------------------


async def test_messages_come_back_as_they_were_said_in_order(
    journal: Journal, scope: Scope
) -> None:
    recorded = await journal.append_messages(
        scope, "monday", said("one", "two"), agent="cook", now=NOW
    )
    recorded += await journal.append_messages(scope, "monday", said("three"), agent=None, now=LATER)
    assert [message.content for message in recorded] == ["one", "two", "three"]
    assert [message.seq for message in recorded] == [1, 2, 3]
    assert [message.agent for message in recorded] == ["cook", "cook", None]
    assert [message.recorded_at for message in recorded] == [NOW, NOW, LATER]
    assert await journal.messages(scope, "monday") == recorded


async def test_every_field_of_a_message_survives(journal: Journal, scope: Scope) -> None:
    long_ago = datetime(1969, 7, 20, 20, 17, 40, 123456, tzinfo=UTC)
    messages = [
        Message(role=Role.SYSTEM, content="Be brief.", metadata={"a": [1, 2.5, None, {"b": True}]}),
        Message(
            role=Role.USER,
            name="Ada",
            content=({"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}),
            event_time=long_ago,
        ),
        Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="1", name="f", arguments="{x"),)),
        Message(role=Role.TOOL, tool_call_id="1", content=""),
    ]
    keyed = [(str(number), message) for number, message in enumerate(messages)]
    await journal.append_messages(scope, "s", keyed, agent=None, now=NOW)
    found = await journal.messages(scope, "s")
    names = Message.model_fields.keys() - {"event_time"}
    assert [m.model_dump(include=names) for m in found] == [
        m.model_dump(include=names) for m in messages
    ]
    assert [m.event_time for m in found] == [NOW, long_ago, NOW, NOW]


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_comes_back_unharmed(journal: Journal, scope: Scope, words: str) -> None:
    message = Message(role=Role.USER, content=words, metadata={words[:100]: words})
    recorded = await journal.append_messages(scope, "s", [(words, message)], agent=None, now=NOW)
    assert recorded[0].content == words
    assert await journal.messages(scope, "s") == recorded
    key = words[:500]
    event = await journal.append(scope, [note(key, **{words[:100]: words})], now=NOW)
    assert await journal.events_of(scope, kinds=["note"]) == event
    assert (event[0].key, event[0].body) == (key, {words[:100]: words})
    await journal.park("p", 1, words, now=NOW)
    assert [parked.reason for parked in await journal.parked("p")] == [words]
    await journal.set_meta("m", {words: words})
    assert await journal.get_meta("m") == {words: words}


async def test_the_longest_names_of_any_script_fit(journal: Journal) -> None:
    draw = random.Random(7)
    tenant, user, session, kind = (
        "".join(chr(draw.randrange(0x20000, 0x2A000)) for _ in range(512)) for _ in range(4)
    )
    scope = Scope.of(tenant, user)
    recorded = await journal.append_messages(scope, session, said("hi"), agent=user, now=NOW)
    await journal.append(scope, [note(kind, kind=kind)], now=NOW)
    assert await journal.messages(scope, session) == recorded
    assert await journal.scopes() == [scope]
    assert [event.key for event in await journal.events_of(scope, kinds=[kind])] == [kind]


async def test_a_slice_of_a_session_is_oldest_first(journal: Journal, scope: Scope) -> None:
    await journal.append_messages(scope, "s", said(*"abcdefgh"), agent=None, now=NOW)

    async def texts(**which: int) -> str:
        return "".join(m.text for m in await journal.messages(scope, "s", **which))

    assert await texts() == "abcdefgh"
    assert await texts(after_seq=6) == "gh"
    assert await texts(before_seq=3) == "ab"
    assert await texts(newest=3) == "fgh"
    assert await texts(newest=2, before_seq=5) == "cd"
    assert await texts(after_seq=1, before_seq=4, newest=10) == "bc"
    assert await texts(newest=0) == ""
    assert await journal.messages(scope, "another") == []


async def test_messages_are_found_by_id(journal: Journal, scope: Scope) -> None:
    many = [str(number) for number in range(2_500)]
    recorded = await journal.append_messages(scope, "s", said(*many), agent=None, now=NOW)
    await journal.append(scope, [note("not a message")], now=NOW)
    wanted = [message.id for message in recorded]
    found = await journal.messages_by_id(scope, [*wanted, "unknown", "not a message", wanted[0]])
    assert found == {message.id: message for message in recorded}
    assert await journal.messages_by_id(scope, []) == {}


async def test_the_same_key_again_gives_back_what_was_recorded(
    journal: Journal, scope: Scope
) -> None:
    first = await journal.append_messages(scope, "s", said("one", "two"), agent="a", now=NOW)
    again = [("two", Message(role=Role.USER, content="changed")), *said("three", "three")]
    second = await journal.append_messages(scope, "s", again, agent="b", now=LATER)
    assert second[0] == first[1]
    assert [(m.text, m.seq) for m in second] == [("two", 2), ("three", 3), ("three", 3)]
    assert [m.text for m in await journal.messages(scope, "s")] == ["one", "two", "three"]
    assert await journal.head() == 3


async def test_a_key_belongs_to_one_session_of_one_user(journal: Journal, scope: Scope) -> None:
    other = Scope.of(scope.tenant, "other")
    places = [(scope, "s"), (scope, "t"), (other, "s")]
    recorded = [
        (await journal.append_messages(whose, session, said("hi"), agent=None, now=NOW))[0]
        for whose, session in places
    ]
    assert [message.seq for message in recorded] == [1, 1, 1]
    assert len({message.id for message in recorded}) == 3


async def test_what_cannot_be_recorded_is_refused_and_nothing_is_written(
    journal: Journal, scope: Scope
) -> None:
    empty = [*said("fine"), ("e", Message(role=Role.USER, content="  "))]
    with pytest.raises(EmptyInput):
        await journal.append_messages(scope, "s", empty, agent=None, now=NOW)
    with pytest.raises(InvalidScope):
        await journal.append_messages(scope, " ", said("hi"), agent=None, now=NOW)
    with pytest.raises(InvalidScope):
        await journal.append_messages(scope, "s", said("hi"), agent="\x00", now=NOW)
    with pytest.raises(InvalidInput, match="513 characters"):
        await journal.append(scope, [note("k" * 513)], now=NOW)
    with pytest.raises(InvalidInput, match="append_messages"):
        await journal.append(scope, [note("k", kind="message")], now=NOW)
    assert await journal.append_messages(scope, "s", [], agent=None, now=NOW) == []
    assert await journal.head() == 0
    assert await journal.append_messages(scope, "s", said("hi"), agent=None, now=NOW)
    assert await journal.head() == 1


async def test_a_session_tells_its_size_and_its_times(journal: Journal, scope: Scope) -> None:
    old, older = NOW - timedelta(days=9), NOW - timedelta(days=10)
    turns = [
        ("1", Message(role=Role.USER, content="one", event_time=old)),
        ("2", Message(role=Role.ASSISTANT, content="two", event_time=older)),
    ]
    await journal.append_messages(scope, "s", turns, agent="cook", now=NOW)
    await journal.append_messages(scope, "t", said("hi"), agent=None, now=LATER)
    await journal.append_messages(scope, "s", said("three"), agent=None, now=NOW)
    info = await journal.session(scope, "s")
    assert info is not None
    assert (info.messages, info.agent) == (3, "cook")
    assert (info.first_event_time, info.last_event_time) == (older, NOW)
    assert [session.session for session in await journal.sessions(scope)] == ["t", "s"]
    assert await journal.session(scope, "unknown") is None


# --- whose it is -------------------------------------------------------------------------------


async def test_nobody_reads_what_belongs_to_another(journal: Journal, scope: Scope) -> None:
    others = [
        Scope.of(scope.tenant, "another user"),
        Scope.of("another tenant", scope.user),
        Scope.of(scope.user, scope.tenant),
    ]
    store = SnapshotStore(journal)
    recorded = await journal.append_messages(scope, "s", said("mine"), agent=None, now=NOW)
    await journal.append(scope, [note("mine")], now=NOW)
    await save(store, scope, "mine", [("message", b"mine")])

    async def visible(whose: Scope) -> list[object]:
        return [
            await journal.messages(whose, "s"),
            await journal.messages_by_id(whose, [recorded[0].id]),
            await journal.sessions(whose),
            await journal.session(whose, "s"),
            await journal.events_of(whose, kinds=["note", "message"]),
            await store.log(whose),
            await store.head(whose, "s"),
        ]

    for other in others:
        assert not any(await visible(other))
        with pytest.raises(NotFound):
            await store.load(other, "mine")
    assert all(await visible(scope))
    assert (await store.load(scope, "mine")).parts == (("message", b"mine"),)
    assert await journal.scopes() == [scope]


# --- events ------------------------------------------------------------------------------------


async def test_events_keep_one_order_over_everybody(journal: Journal, scope: Scope) -> None:
    other = Scope.of(scope.tenant, "other")
    await journal.append(scope, [note("1", said="a"), note("2", kind="fact")], now=NOW)
    await journal.append_messages(other, "s", said("hi"), agent=None, now=NOW)
    await journal.append(other, [note("1", said="b")], now=NOW)
    found = await journal.events(after=0, kinds=["note", "message", "fact"], limit=100)
    assert [(event.scope, event.kind, event.position) for event in found] == [
        (scope, "note", 1),
        (scope, "fact", 2),
        (other, "message", 3),
        (other, "note", 4),
    ]
    assert await journal.head() == 4
    assert await journal.events(after=0, kinds=["note"], limit=1) == [found[0]]
    assert await journal.events(after=1, kinds=["note"], limit=9) == [found[3]]
    assert await journal.events(after=4, kinds=["note"], limit=9) == []
    assert await journal.scopes() == sorted([scope, other], key=lambda s: (s.tenant, s.user))


async def test_a_message_event_has_the_recorded_message_in_it(
    journal: Journal, scope: Scope
) -> None:
    recorded = await journal.append_messages(scope, "s", said("one", "two"), agent="a", now=NOW)
    found = await journal.events(after=0, kinds=["message"], limit=9)
    assert [RecordedMessage.from_json(event.body) for event in found] == recorded
    assert [(event.key, event.seq) for event in found] == [(m.id, m.seq) for m in recorded]


async def test_an_event_is_appended_once(journal: Journal, scope: Scope) -> None:
    first = await journal.append(scope, [note("k", said="first"), note("l")], now=NOW)
    again = await journal.append(scope, [note("m"), note("k", said="second")], now=LATER)
    assert again[1] == first[0]
    assert [event.key for event in await journal.events_of(scope, kinds=["note"])] == [*"klm"]
    assert await journal.head() == 3
    elsewhere = await journal.append(Scope.of("t", "other"), [note("k", said="x")], now=NOW)
    assert elsewhere[0].body == {"said": "x"}


async def test_a_users_events_are_found_by_kind_session_and_position(
    journal: Journal, scope: Scope
) -> None:
    for key in "abcd":
        session = "s" if key in "bd" else None
        event = NewEvent(kind="note", key=key, body={}, session=session, event_time=NOW)
        await journal.append(scope, [event], now=NOW)

    async def keys(session: str | None = None, after: int = 0, newest: int | None = None) -> str:
        found = await journal.events_of(
            scope, kinds=["note"], session=session, after=after, newest=newest
        )
        return "".join(event.key for event in found)

    assert await keys() == "abcd"
    assert await keys(session="s") == "bd"
    assert await keys(after=2) == "cd"
    assert await keys(newest=2) == "cd"
    assert await keys(session="s", newest=1) == "d"
    assert await journal.events_of(scope, kinds=["other"]) == []


# --- projections -------------------------------------------------------------------------------


async def test_a_cursor_never_goes_back_except_by_a_reset(journal: Journal) -> None:
    assert await journal.cursor("p") == 0
    await journal.advance("p", 5, now=NOW)
    await journal.advance("p", 3, now=LATER)
    await journal.advance("q", 9, now=NOW)
    assert await journal.cursor("p") == 5
    await journal.advance("p", 6, now=LATER)
    assert await journal.cursor("p") == 6
    await journal.reset("p")
    assert (await journal.cursor("p"), await journal.cursor("q")) == (0, 9)


async def test_a_parked_event_counts_its_attempts_until_it_is_dealt_with(journal: Journal) -> None:
    assert await journal.park("p", 7, "no answer", now=NOW) == 1
    assert await journal.park("p", 7, "still none", now=LATER) == 2
    assert await journal.park("p", 3, "too long", now=NOW) == 1
    assert await journal.park("q", 7, "other", now=NOW) == 1
    parked = await journal.parked("p")
    assert [(p.position, p.attempts, p.reason) for p in parked] == [
        (3, 1, "too long"),
        (7, 2, "still none"),
    ]
    assert parked[1].updated_at == LATER
    await journal.unpark("p", 7)
    await journal.unpark("p", 99)
    assert [p.position for p in await journal.parked("p")] == [3]
    await journal.reset("p")
    assert await journal.parked("p") == []
    assert len(await journal.parked("q")) == 1


async def test_meta_keeps_the_newest_value(journal: Journal) -> None:
    assert await journal.get_meta("m") is None
    await journal.set_meta("m", {"a": [1, None]})
    assert await journal.get_meta("m") == {"a": [1, None]}
    await journal.set_meta("m", "b")
    assert await journal.get_meta("m") == "b"


# --- units of work -----------------------------------------------------------------------------


async def test_a_transaction_is_kept_whole_or_not_at_all(journal: Journal) -> None:
    add = insert(schema_versions)
    count = select(func.count()).select_from(schema_versions)

    async def add_and_fail() -> None:
        async with journal.transaction() as connection:
            await connection.execute(add, {"version": -1})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await add_and_fail()
    async with journal.read() as connection:
        assert await connection.scalar(count) == NEWEST
    async with journal.transaction() as connection:
        await connection.execute(add, {"version": -1})
    async with journal.read() as connection:
        assert await connection.scalar(count) == NEWEST + 1

    def fail(connection: Connection) -> None:
        connection.execute(add, {"version": -2})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await journal.write(fail)
    assert await journal.query(lambda connection: connection.scalar(count)) == NEWEST + 1
    await journal.write(lambda connection: connection.execute(add, {"version": -2}) and None)
    assert await journal.query(lambda connection: connection.scalar(count)) == NEWEST + 2


async def test_a_read_that_broke_off_does_not_show_the_next_ones_the_past(
    journal: Journal, scope: Scope
) -> None:
    await journal.append_messages(scope, "s", said("one", "two", "three"), agent=None, now=NOW)
    every = select(events.c.position).where(events.c.owner == owner_of(scope))

    def breaks_off(connection: Connection) -> None:
        rows = iter(connection.execute(every))
        next(rows)
        raise ZeroDivisionError

    kept = []
    for _ in range(8):  # as many as there are connections, and some
        with pytest.raises(ZeroDivisionError) as broken:
            await journal.query(breaks_off)
        kept.append(broken.value)
    await journal.append_messages(scope, "s", said("four"), agent=None, now=NOW)
    for _ in range(8):
        assert await journal.query(lambda connection: len(connection.execute(every).all())) == 4


async def test_transactions_take_turns(journal: Journal, scope: Scope) -> None:
    """Read, then write what was read plus one: nothing is lost when they take turns."""
    position = select(cursors.c.position).where(cursors.c.projection == bindparam("name"))
    move = update(cursors).where(cursors.c.projection == bindparam("name"))

    async def add_one(whose: Scope | None, name: str) -> None:
        async with journal.transaction(whose) as connection:
            value = await connection.scalar(position, {"name": name})
            await asyncio.sleep(0)
            await connection.execute(move.values(position=(value or 0) + 1), {"name": name})

    await journal.advance("a", 1, now=NOW)
    await journal.advance("b", 1, now=NOW)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(20):
            tasks.create_task(add_one(None, "a"))
            tasks.create_task(add_one(scope, "b"))
    assert (await journal.cursor("a"), await journal.cursor("b")) == (21, 21)


async def test_a_reading_connection_cannot_write(journal: Journal) -> None:
    def change(connection: Connection) -> None:
        connection.execute(insert(schema_versions), {"version": -1})

    with pytest.raises((TierUnavailable, DBAPIError), match=_READ_ONLY):
        await journal.query(change)

    async def change_through_a_connection() -> None:
        async with journal.read() as connection:
            await connection.run_sync(change)

    with pytest.raises((TierUnavailable, DBAPIError), match=_READ_ONLY):
        await change_through_a_connection()
    await journal.write(change)


async def test_a_broken_rule_is_a_conflict(journal: Journal) -> None:
    def again(connection: Connection) -> None:
        connection.execute(insert(schema_versions), {"version": NEWEST})

    with pytest.raises(Conflict):
        await journal.write(again)


async def test_a_write_inside_a_transaction_is_refused_where_it_would_wait_for_itself(
    journal: Journal,
) -> None:
    async with journal.transaction():
        if journal.dialect == "sqlite":
            with pytest.raises(RuntimeError, match="inside a transaction"):
                await journal.set_meta("m", 1)
    await journal.set_meta("m", 2)
    assert await journal.get_meta("m") == 2


async def test_a_closed_journal_says_so(url: str, scope: Scope) -> None:
    async with Journal.open(url, timeout=TIMEOUT) as journal:
        await journal.append_messages(scope, "s", said("hi"), agent=None, now=NOW)
    with pytest.raises(TierUnavailable, match="closed"):
        await journal.messages(scope, "s")
    with pytest.raises(TierUnavailable, match="closed"):
        await journal.append_messages(scope, "s", said("you"), agent=None, now=NOW)
    health = await journal.health()
    assert (health.ok, health.problem) == (False, "journal: it has been closed")


async def test_a_write_that_does_not_wait_for_the_disk_is_seen_at_once(
    url: str, journal: Journal
) -> None:
    def add(connection: Connection) -> None:
        connection.execute(insert(schema_versions), {"version": -1})

    await journal.write(add, durable=False)
    count = select(func.count()).select_from(schema_versions)
    async with Journal.open(url, timeout=TIMEOUT) as other:
        assert await other.query(lambda connection: connection.scalar(count)) == NEWEST + 1
    if journal.dialect == "sqlite":
        level = await journal.write(lambda c: c.exec_driver_sql("PRAGMA synchronous").scalar())
        assert level == 2


# --- many at once ------------------------------------------------------------------------------


async def test_appends_at_once_lose_nothing_and_stay_together(
    journal: Journal, scope: Scope
) -> None:
    async with asyncio.TaskGroup() as tasks:
        for turn in range(150):
            pair = said(f"{turn} question", f"{turn} answer")
            tasks.create_task(
                journal.append_messages(scope, f"s{turn % 2}", pair, agent=None, now=NOW)
            )
        for number in range(20):
            tasks.create_task(journal.append(scope, [note(str(number))], now=NOW))
    for session in ("s0", "s1"):
        messages = await journal.messages(scope, session)
        assert [message.seq for message in messages] == list(range(1, 151))
        for question, answer in zip(messages[::2], messages[1::2], strict=True):
            assert question.text.split() == [answer.text.split()[0], "question"]
    assert len(await journal.events_of(scope, kinds=["note"])) == 20


async def test_the_same_key_at_once_is_recorded_once(journal: Journal, scope: Scope) -> None:
    turns = [
        journal.append_messages(scope, "s", said("hi", "you"), agent=None, now=NOW)
        for _ in range(10)
    ]
    answers = await asyncio.gather(*turns)
    assert all(answer == answers[0] for answer in answers)
    assert len(await journal.messages(scope, "s")) == 2


async def test_a_cancelled_append_is_whole_and_disturbs_nobody(
    journal: Journal, scope: Scope
) -> None:
    tasks = [
        asyncio.create_task(
            journal.append_messages(scope, "s", said(f"{turn} a", f"{turn} b"), agent=None, now=NOW)
        )
        for turn in range(30)
    ]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    messages = await journal.messages(scope, "s")
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    texts = {message.text for message in messages}
    for turn, result in enumerate(results):
        if isinstance(result, list):
            assert {f"{turn} a", f"{turn} b"} <= texts
        else:
            assert isinstance(result, asyncio.CancelledError)
            assert (f"{turn} a" in texts) == (f"{turn} b" in texts)
    assert sum(isinstance(result, list) for result in results) == 20


async def test_positions_are_given_in_the_order_of_commits(
    url: str, journal: Journal, scope: Scope
) -> None:
    """An append waits for one that has taken its positions and not yet committed, so that a
    reader that has passed a position has missed nothing before it."""
    async with Journal.open(url, timeout=TIMEOUT) as other:
        async with journal.transaction() as connection:
            await connection.execute(update(head).values(position=head.c.position + 5))
            task = asyncio.create_task(other.append(scope, [note("second")], now=NOW))
            for _ in range(20):
                assert await other.events(after=0, kinds=["note"], limit=9) == []
            assert not task.done()
        assert [event.position for event in await task] == [6]
        assert len(await other.events(after=0, kinds=["note"], limit=9)) == 1


# --- several processes -------------------------------------------------------------------------


async def test_a_reader_by_position_misses_nothing_that_eight_processes_append(
    url: str, journal: Journal, scope: Scope, processes: Processes
) -> None:
    """Eight writers to one session: no message is lost, seq has no gaps, turns stay together,
    and who follows by position while they write sees every one, once and in order."""
    writers = [
        processes("append", url, scope.tenant, scope.user, "s", f"w{number}", "12")
        for number in range(8)
    ]
    seen: list[str] = []
    after = 0
    while True:
        over = all(writer.poll() is not None for writer in writers)
        found = await journal.events(after=after, kinds=["message"], limit=7)
        seen += [event.key for event in found]
        after = found[-1].position if found else after
        if over and not found:
            break
    assert [writer.returncode for writer in writers] == [0] * 8
    messages = await journal.messages(scope, "s")
    assert [message.seq for message in messages] == list(range(1, 8 * 12 * 2 + 1))
    assert seen == [message.id for message in messages]
    for question, answer in zip(messages[::2], messages[1::2], strict=True):
        assert question.text.replace("question", "answer").replace("of", "to") == answer.text
        assert question.agent == answer.agent


async def test_what_a_killed_writer_was_told_is_durable_is_there(
    url: str, journal: Journal, scope: Scope, processes: Processes
) -> None:
    acknowledged: list[str] = []
    for life in range(3):
        writer = processes("append", url, scope.tenant, scope.user, "s", f"life{life}")
        for _ in range(15):
            acknowledged += lines_of(writer).readline().split()
        writer.kill()
        writer.wait()
        rest = lines_of(writer).read()
        acknowledged += rest[: rest.rfind("\n") + 1].split()
    assert len(acknowledged) >= 90
    messages = await journal.messages(scope, "s")
    ids = {message.id for message in messages}
    assert {message_id(scope, "s", key) for key in acknowledged} <= ids
    assert message_id(scope, "s", "never.said") not in ids
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    assert len(messages) % 2 == 0
    again = await journal.append_messages(scope, "s", said("go on"), agent=None, now=NOW)
    assert again[0].seq == len(messages) + 1


async def test_processes_that_open_a_new_journal_at_once_make_it_once(
    url: str, processes: Processes
) -> None:
    openers = [processes("open", url) for _ in range(4)]
    for opener in openers:
        assert lines_of(opener).readline() == "ready\n"
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("go\n")
        opener.stdin.flush()
    assert [lines_of(opener).read() for opener in openers] == [f"{EVERY_VERSION}\n"] * 4


async def test_those_that_open_and_close_a_new_journal_at_once_all_find_it(url: str) -> None:
    async def head_of() -> int:
        async with Journal.open(url, timeout=TIMEOUT) as journal:
            return await journal.head()

    assert await asyncio.gather(*(head_of() for _ in range(12))) == [0] * 12


async def test_a_lease_is_freed_when_its_holder_is_killed(
    url: str, journal: Journal, processes: Processes
) -> None:
    holder = processes("lease", url, "nightly")
    assert lines_of(holder).readline() == "held\n"
    with pytest.raises(AlreadyRunning, match="'nightly'"):
        async with journal.lease("nightly"):
            pass
    async with journal.lease("another"):
        pass
    holder.kill()
    holder.wait()
    await hold_soon(journal, "nightly")


async def test_a_lease_has_one_holder_inside_a_process_too(url: str, journal: Journal) -> None:
    async with Journal.open(url, timeout=TIMEOUT) as other:
        async with journal.lease("a name: with / anything\u2603"):
            for second in (journal, other):
                with pytest.raises(AlreadyRunning):
                    async with second.lease("a name: with / anything\u2603"):
                        pass
        async with other.lease("a name: with / anything\u2603"):
            pass


async def test_a_lease_that_is_cut_off_at_any_moment_is_our_error_and_is_free_again(
    postgres_url: str,
) -> None:
    server = urlsplit(postgres_url)
    async with proxy(server.hostname or "", server.port or 0) as between:
        at = f"{server.netloc.rpartition('@')[0]}@127.0.0.1:{between.port}".removeprefix("@")
        far = urlunsplit(server._replace(netloc=at))
        async with Journal.open(far, timeout=TIMEOUT) as journal:
            between.delay = timedelta(milliseconds=5)
            cut_off = 0
            for moment in range(0, 60, 2):

                async def hold() -> None:
                    async with journal.lease("nightly"):
                        pass

                holding = asyncio.create_task(hold())
                await asyncio.sleep(moment / 1_000)
                between.drop()
                try:
                    await holding
                except (TierUnavailable, AlreadyRunning):
                    cut_off += 1
            assert cut_off
            between.delay = timedelta(0)
            await hold_soon(journal, "nightly")


async def hold_soon(journal: Journal, name: str) -> None:
    """Takes the lease once it is free; the server needs a moment to notice who has gone."""
    async with asyncio.timeout(TIMEOUT.total_seconds()):
        while True:
            try:
                async with journal.lease(name):
                    return
            except AlreadyRunning:
                await asyncio.sleep(0)


# --- opening -----------------------------------------------------------------------------------


async def test_a_journal_is_there_when_it_is_opened_again(url: str, scope: Scope) -> None:
    async with Journal.open(url, timeout=TIMEOUT) as journal:
        recorded = await journal.append_messages(scope, "s", said("hi"), agent=None, now=NOW)
        await journal.advance("p", 1, now=NOW)
    async with Journal.open(url, timeout=TIMEOUT) as journal:
        assert await journal.messages(scope, "s") == recorded
        assert (await journal.cursor("p"), await journal.head()) == (1, 1)


async def test_a_journal_from_the_future_is_refused_naming_both_versions(url: str) -> None:
    async with Journal.open(url, timeout=TIMEOUT) as journal, journal.transaction() as connection:
        await connection.execute(insert(schema_versions), {"version": NEWEST + 41})
    with pytest.raises(SchemaTooNew, match=rf"version {NEWEST + 41}.*up to {NEWEST}$"):
        async with Journal.open(url, timeout=TIMEOUT):
            pass


async def test_health_names_the_store_and_keeps_the_password_to_itself(
    url: str, journal: Journal
) -> None:
    health = await journal.health()
    assert health.ok
    assert health.part == "journal"
    assert health.version.startswith(("SQLite 3.", "PostgreSQL "))
    assert health.where.endswith(url.rpartition("/")[2])
    password = urlsplit(url).password
    assert password is None or password not in health.model_dump_json()


@pytest.mark.parametrize(
    "wrong", ["mysql://x/y", "journal.db", "sqlite:///", "sqlite:///:memory:", "sqlite://x"]
)
async def test_a_url_of_another_kind_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="sqlite:///PATH"):
        async with Journal.open(wrong, timeout=TIMEOUT):
            pass


async def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with socket.socket() as bound:  # bound and not listening: connections are refused
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(TierUnavailable, match=f"^journal: .*{port}") as raised:
            async with Journal.open(f"postgresql://u:s3cret@127.0.0.1:{port}/d", timeout=TIMEOUT):
                pass
    assert raised.value.tier == "journal"
    assert "s3cret" not in str(raised.value)


async def test_an_unknown_database_is_unavailable_and_named(postgres_url: str) -> None:
    missing = urlunsplit(urlsplit(postgres_url)._replace(path="/no_such_database"))
    with pytest.raises(TierUnavailable, match="no_such_database"):
        async with Journal.open(missing, timeout=TIMEOUT):
            pass


async def test_a_server_that_restarted_is_used_again(postgres_url: str, scope: Scope) -> None:
    async with Journal.open(postgres_url, timeout=TIMEOUT) as journal:
        recorded = await journal.append_messages(scope, "s", said("hi"), agent=None, now=NOW)
        connection = await asyncpg.connect(postgres_url)
        ended = await connection.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await connection.close()
        assert ended >= 1
        recorded += await journal.append_messages(scope, "s", said("you"), agent=None, now=NOW)
        assert await journal.messages(scope, "s") == recorded


async def test_of_reads_that_are_asked_for_together_each_has_its_own_answer(
    journal: Journal,
) -> None:
    ran: list[str] = []

    def gives(value: str) -> Callable[[Connection], str]:
        def work(connection: Connection) -> str:
            ran.append(value)
            return str(connection.scalar(select(literal(value))))

        return work

    def has_nothing(_: Connection) -> str:
        return next(iter(()))

    def breaks(_: Connection) -> str:
        raise Conflict("of one alone")

    async with asyncio.timeout(TIMEOUT.total_seconds()):
        asked = [
            asyncio.create_task(journal.query(work))
            for work in (gives("a"), breaks, gives("abandoned"), has_nothing, gives("b"))
        ]
        await asyncio.sleep(0)
        asked[2].cancel()
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert (answers[0], answers[4]) == ("a", "b")
    assert [type(answers[n]) for n in (1, 2, 3)] == [
        Conflict,
        asyncio.CancelledError,
        RuntimeError,
    ]
    assert set(ran) == {"a", "b"}  # whoever asked for the other has gone
    assert await journal.query(gives("c")) == "c"


async def test_whoever_reads_while_it_closes_has_an_answer(tmp_path: Path) -> None:
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(connection: Connection) -> int:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(TIMEOUT.total_seconds())
        return int(connection.scalar(select(literal(1))) or 0)

    async with asyncio.timeout(TIMEOUT.total_seconds()):
        async with Journal.open(f"sqlite:///{tmp_path}/j.db", timeout=TIMEOUT) as journal:
            first = asyncio.create_task(journal.query(slow))
            await begun.wait()
            others = [asyncio.create_task(journal.query(slow)) for _ in range(9)]
            await asyncio.sleep(0)
            go_on.set()
        assert await asyncio.gather(first, *others) == [1] * 10


async def test_a_file_is_private_and_in_wal(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.db"
    async with Journal.open(f"sqlite:///{path}", timeout=TIMEOUT) as journal:
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        mode = await journal.query(lambda c: c.exec_driver_sql("PRAGMA journal_mode").scalar())
        assert mode == "wal"
        for begun in (journal.write, journal.query):
            level = await begun(lambda c: c.exec_driver_sql("PRAGMA synchronous").scalar())
            assert level == 2


async def test_a_file_that_is_no_journal_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"these are not the bytes of a database " * 100)
    with pytest.raises(Corrupt, match="not a database"):
        async with Journal.open(f"sqlite:///{path}", timeout=TIMEOUT):
            pass
    with pytest.raises(ConfigurationError, match="folder"):
        async with Journal.open(f"sqlite:///{tmp_path}", timeout=TIMEOUT):
            pass


async def test_a_writer_that_never_ends_makes_the_journal_unavailable_until_it_does(
    url: str, journal: Journal, scope: Scope
) -> None:
    async with Journal.open(url, timeout=timedelta(seconds=1)) as waiting:
        async with journal.transaction() as connection:
            await connection.execute(update(head).values(position=head.c.position))
            with pytest.raises(TierUnavailable, match=r"^journal: "):
                await waiting.append_messages(scope, "s", said("hi"), agent=None, now=NOW)
            assert await waiting.messages(scope, "s") == []
        await waiting.append_messages(scope, "s", said("hi"), agent=None, now=NOW)
        assert len(await waiting.messages(scope, "s")) == 1


async def test_a_server_that_falls_silent_is_unavailable_until_it_answers_again(
    postgres_url: str, scope: Scope
) -> None:
    parts = urlsplit(postgres_url)
    async with proxy(str(parts.hostname), parts.port or 5432) as between:
        user = parts.netloc.rpartition("@")[0]
        through = urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{between.port}"))
        async with Journal.open(through, timeout=timedelta(seconds=2)) as journal:
            recorded = await journal.append_messages(scope, "s", said("hi"), agent=None, now=NOW)
            between.freeze()
            with pytest.raises(TierUnavailable, match="no answer in time"):
                await journal.messages(scope, "s")
            with pytest.raises(TierUnavailable, match="no answer in time"):
                await journal.append_messages(scope, "s", said("you"), agent=None, now=NOW)
            assert not (await journal.health()).ok
            between.thaw()
            between.drop()
            again = await journal.append_messages(scope, "s", said("you"), agent=None, now=NOW)
            assert await journal.messages(scope, "s") == recorded + again
            assert (await journal.health()).ok


async def test_a_stored_message_that_cannot_be_read_is_corrupt(
    journal: Journal, scope: Scope
) -> None:
    await journal.append_messages(scope, "s", said("fine", "harmed"), agent=None, now=NOW)
    harm = update(events).where(events.c.seq == 2)
    for body, problem in ((b"{", "cannot be read"), (b"[]", "JSON object"), (b"{}", "position 2")):
        async with journal.transaction() as connection:
            await connection.execute(harm.values(body=body))
        with pytest.raises(Corrupt, match=problem):
            await journal.messages(scope, "s")
        assert [m.text for m in await journal.messages(scope, "s", before_seq=2)] == ["fine"]


async def test_what_is_read_most_is_found_by_an_index(tmp_path: Path) -> None:
    async with Journal.open(f"sqlite:///{tmp_path}/journal.db", timeout=TIMEOUT) as journal:
        statements: list[tuple[str, Any]] = []

        def plans(connection: Connection) -> list[str]:
            return [
                str(row.detail)
                for statement, parameters in statements
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            ]

        @event.listens_for(Engine, "before_cursor_execute")
        def remember(
            connection: Connection, cursor: Any, statement: str, parameters: Any, *_: Any
        ) -> None:
            if statement.startswith(("SELECT", "UPDATE")):
                statements.append((statement, parameters))

        scope = Scope.of("t", "u")
        store = SnapshotStore(journal)
        try:
            turn = said("one", "two")
            recorded = await journal.append_messages(scope, "s", turn, agent=None, now=NOW)
            await journal.append_messages(scope, "s", said("three"), agent=None, now=NOW)
            await journal.append(scope, [note("k")], now=NOW)
            await journal.messages(scope, "s", newest=5)
            await journal.messages_by_id(scope, [m.id for m in recorded])
            await journal.events(after=1, kinds=["note"], limit=5)
            await journal.events_of(scope, kinds=["note"])
            await journal.session(scope, "s")
            await save(store, scope, "one", [("a", b"a")])
            await store.load(scope, "one")
            await store.log(scope, "s")
        finally:
            event.remove(Engine, "before_cursor_execute", remember)
        assert len(statements) >= 14
        found = await journal.query(plans)
        assert any("SEARCH events USING INDEX events_seq" in plan for plan in found)
        scanned = [plan for plan in found if plan.startswith("SCAN")]
        given = {"SCAN CONSTANT ROW", "SCAN anon_1 VIRTUAL TABLE INDEX 1:"}  # what it was asked for
        assert set(scanned) <= given


# --- snapshots ---------------------------------------------------------------------------------


async def save(
    store: SnapshotStore,
    scope: Scope,
    snapshot_id: str,
    parts: Sequence[tuple[str, bytes]],
    *,
    session: str = "s",
    parent: str | None = None,
) -> None:
    await store.save(
        scope,
        session,
        snapshot_id=snapshot_id,
        parent=parent,
        created_at=NOW,
        parts=parts,
        digest=f"digest of {snapshot_id}",
    )


async def test_a_snapshot_comes_back_part_by_part(journal: Journal, scope: Scope) -> None:
    store = SnapshotStore(journal)
    parts = [("system", b"same"), ("message", bytes(range(256))), ("item", b"same"), ("empty", b"")]
    await save(store, scope, "one", parts)
    await save(store, scope, "two", parts[:1], parent="one")
    await save(store, scope, "none", [])
    found = await store.load(scope, "one")
    assert found.parts == tuple(parts)
    assert (found.id, found.session, found.parent) == ("one", "s", None)
    assert (found.created_at, found.digest) == (NOW, "digest of one")
    assert (await store.load(scope, "two")).parent == "one"
    assert (await store.load(scope, "none")).parts == ()
    with pytest.raises(NotFound, match="'three'"):
        await store.load(scope, "three")


async def test_equal_parts_are_kept_once_for_each_owner(journal: Journal, scope: Scope) -> None:
    store = SnapshotStore(journal)

    async def objects_of(whose: Scope) -> int:
        count = select(func.count()).where(objects.c.owner == owner_of(whose))
        return await journal.query(lambda connection: connection.scalar(count) or 0)

    await save(store, scope, "one", [("a", b"1"), ("b", b"2"), ("c", b"1")])
    assert await objects_of(scope) == 2
    await save(store, scope, "two", [("a", b"1"), ("b", b"3")])
    assert await objects_of(scope) == 3
    other = Scope.of(scope.tenant, "other")
    await save(store, other, "one", [("a", b"1")])
    assert (await objects_of(scope), await objects_of(other)) == (3, 1)
    assert (await store.load(other, "one")).parts == (("a", b"1"),)


async def test_a_snapshot_is_saved_once(journal: Journal, scope: Scope) -> None:
    store = SnapshotStore(journal)
    await save(store, scope, "one", [("a", b"1")])
    await save(store, scope, "one", [("a", b"1")])
    assert [info.id for info in await store.log(scope)] == ["one"]
    with pytest.raises(Conflict, match="'one'"):
        await store.save(
            scope,
            "s",
            snapshot_id="one",
            parent=None,
            created_at=NOW,
            parts=[("a", b"2")],
            digest="another",
        )
    assert (await store.load(scope, "one")).parts == (("a", b"1"),)


async def test_the_log_is_newest_first_in_pages(journal: Journal, scope: Scope) -> None:
    store = SnapshotStore(journal)
    for number in range(5):
        await save(store, scope, str(number), [("a", b"1")], session="ab"[number % 2])

    async def ids(session: str | None = None, limit: int = 50, before: str | None = None) -> str:
        page = await store.log(scope, session, limit=limit, before=before)
        return "".join(info.id for info in page)

    assert await ids() == "43210"
    assert await ids("a") == "420"
    assert await ids(limit=2) == "43"
    assert await ids(limit=2, before="3") == "21"
    assert await ids("b", before="3") == "1"
    with pytest.raises(NotFound, match="'9'"):
        await ids(before="9")
    assert (await store.head(scope, "a"), await store.head(scope, "b")) == ("4", "3")
    assert await store.head(scope, "c") is None


async def test_a_snapshot_that_was_harmed_says_which_object(journal: Journal, scope: Scope) -> None:
    store = SnapshotStore(journal)
    await save(store, scope, "one", [("a", b"1"), ("b", b"2")])
    await save(store, scope, "two", [("a", b"1")])
    harmed = objects.c.hash == object_hash(b"2")
    async with journal.transaction() as connection:
        number = await connection.scalar(select(objects.c.id).where(harmed))
        await connection.execute(update(objects).where(harmed).values(data=b"3"))
    with pytest.raises(Corrupt, match=rf"'one': object {number} \(b\) does not match"):
        await store.load(scope, "one")
    async with journal.transaction() as connection:
        await connection.execute(objects.delete().where(harmed))
    with pytest.raises(Corrupt, match=rf"'one': object {number} \(b\) is missing"):
        await store.load(scope, "one")
    assert (await store.load(scope, "two")).parts == (("a", b"1"),)


async def test_snapshots_saved_at_once_share_their_objects(journal: Journal, scope: Scope) -> None:
    store = SnapshotStore(journal)
    parts = [(str(number), b"%d" % number) for number in range(20)]
    async with asyncio.TaskGroup() as tasks:
        for number in range(12):
            chosen = parts[number % 5 :] + parts[: number % 3]
            tasks.create_task(save(store, scope, str(number), chosen))
    for number in range(12):
        expected = (*parts[number % 5 :], *parts[: number % 3])
        assert (await store.load(scope, str(number))).parts == expected
    count = select(func.count()).select_from(objects)
    assert await journal.query(lambda connection: connection.scalar(count)) == 20


async def test_a_snapshot_may_have_thousands_of_parts(journal: Journal, scope: Scope) -> None:
    store = SnapshotStore(journal)
    parts = [("part", b"%d" % number) for number in range(2_345)]
    await save(store, scope, "large", parts)
    assert (await store.load(scope, "large")).parts == tuple(parts)
