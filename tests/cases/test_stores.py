"""Stores and embedders that are slow, exchanged, shared or killed: nothing is lost or mixed."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from redis.asyncio import Redis

from consolidation import consolidate
from memory import Memory
from memory.errors import Corrupt, EmptyInput
from memory.memory import UserMemory
from memory.models import Scope
from memory.tokens import TokenCounter
from tests.behaviour.conftest import Clock, Open
from tests.proxy import proxy
from tests.stub_embedder import FAILS, StubEmbedder

PATIENCE = timedelta(seconds=30)
WINDOW = 400


# --- embedders ---------------------------------------------------------------------------------


async def test_another_embedder_finds_everything_again_though_it_was_stopped_half_way(
    open_memory: Open,
) -> None:
    """EMB-03"""
    rows = [
        {
            "role": "user",
            "content": f"Note {number} about the {('kayak', 'ledger', 'orchard')[number % 3]}.",
            "metadata": {"status": ("open", "done")[number % 2], "number": number},
        }
        for number in range(1_100)
    ]
    done: dict[str, object] = {"status": "done"}
    async with open_memory(embedder=StubEmbedder("small", 384)) as memory:
        user = memory.user("u1")
        await user.session("s").record(messages=rows)
        assert await memory.settled(PATIENCE)
        before = await user.episodes()
        filtered = await user.recall("kayak note", k=600, where=done)  # type: ignore[arg-type]
        assert len(before) == 1_100
        assert len(filtered.items) > 100
    large = StubEmbedder("large", 768)
    async with open_memory(embedder=large) as memory:
        user, newcomer = memory.user("u1"), memory.user("u2")
        meanwhile = await user.recall("kayak note", where=done)  # type: ignore[arg-type]
        assert meanwhile.items
        (warning,) = meanwhile.warnings
        assert all(part in warning for part in ("'small/384'", "384", "'large/768'", "768", "1100"))
        await newcomer.session("s").record(user="The kayak is new here.")
        assert [item.text for item in (await newcomer.recall("kayak")).items] == [
            "The kayak is new here."
        ]

        def stop_half_way(done: int, of: int) -> None:
            raise KeyboardInterrupt(f"{done} of {of}")

        with pytest.raises(KeyboardInterrupt):
            await memory.reembed(stop_half_way)
        half = len(large.embedded)
        assert 0 < half < 1_100
        repaired = await memory.reembed()
        assert repaired.still_flawed == 0
        assert len([text for text in large.embedded if text.startswith("Note")]) == 1_100
        assert await user.episodes() == before
        again = await user.recall("kayak note", k=600, where=done)  # type: ignore[arg-type]
        assert again.warnings == ()
        assert {item.id for item in again.items} == {item.id for item in filtered.items}
        vectors = await user.vectors(before)
        assert vectors.shape == (1_100, 768)
        assert vectors.any(axis=1).all()


@pytest.mark.parametrize("text", ["", "   ", "\u200b", "\u200b\u2060 \ufeff"])
async def test_what_shows_nothing_is_refused_and_asks_for_nothing(
    memory: Memory, text: str
) -> None:
    """EMB-04"""
    user = memory.user("u1")
    with pytest.raises(EmptyInput):
        await user.session("s").record(user=text)
    with pytest.raises(EmptyInput):
        await user.session("s").record(user=None, assistant=None)
    await user.session("s").record(user="👍")
    assert [episode.text for episode in await user.episodes()] == ["👍"]
    assert (await user.recall(text)).items == ()


async def test_vectors_that_cannot_be_used_poison_nothing(open_memory: Open) -> None:
    """EMB-04"""
    embedder = StubEmbedder()
    constant = np.ones(embedder.dims, dtype=np.float32) / np.sqrt(embedder.dims)
    bad = {
        "The budget of the choir is not a number.": np.full(embedder.dims, np.nan),
        "The budget of the club has no end.": np.full(embedder.dims, np.inf),
        "The budget of the band is nothing.": np.zeros(embedder.dims),
        "The budget of the team is too short.": np.ones(7),
        "The budget of the crew raises.": FAILS,
        "The budget of the school is 100.": constant,
        "The budget of the ferry is 200.": constant,
        "The budget of the museum is 300.": constant,
    }
    embedder.wrong.update(bad)
    good = ["The budget of the library was cut.", "The orchard needs rain."]
    async with open_memory(embedder=embedder) as memory:
        user = memory.user("u1")
        for number, session in enumerate(("one", "two", "three")):
            await user.session(session).record(
                messages=[
                    {"role": "user", "content": text, "metadata": {"round": number}}
                    for text in (*bad, *good)
                ]
            )
        assert await memory.settled(PATIENCE)
        episodes = await user.episodes()
        assert len(episodes) == 30
        vectors = await user.vectors(episodes)
        usable = {e.text for e, v in zip(episodes, vectors, strict=True) if v.any()}
        assert usable == set(good)
        assert np.isfinite(vectors).all()
        for text in (*bad, *good):
            recalled = await user.recall(text)
            assert recalled.items[0].text == text
            assert all(np.isfinite(item.score) for item in recalled.items)
        assert (await user.recall("")).items == ()
        await consolidate(memory, now=memory._parts.clock(), scopes=[user.scope])
        promoted = {fact.object for fact in await user.facts() if fact.origin == "promoted"}
        assert promoted == set(good)
        embedder.wrong.clear()
        repaired = await memory.repair()
        assert (repaired.embedded, repaired.still_flawed) == (24, 0)


# --- tokenizers --------------------------------------------------------------------------------


async def test_without_a_tokenizer_counts_are_flagged_and_too_high_until_it_is_there(
    open_memory: Open, tmp_path: Path
) -> None:
    """CFG-02"""
    folder = tmp_path / "ranks"
    folder.mkdir()
    question = "请解释一下备份是怎么做的？ And in English, please."
    exact = TokenCounter()
    async with open_memory(tokenizer_dir=folder) as memory:
        session = memory.user("u1").session("s")
        await session.record(user="我们用 cron 做备份。")
        estimated = await session.build_context(question)
        (warning,) = [each for each in estimated.warnings if "o200k_base.tiktoken" in each]
        assert "TRIMEM_TOKENIZER_DIR" in warning
        assert estimated.tokens.message > exact.count(question)
        published = next(_installed().glob("o200k_base.tiktoken*"))
        (folder / published.name).write_bytes(published.read_bytes())
        counted = await session.build_context(question)
        assert counted.warnings == ()
        assert counted.tokens.message == exact.count(question) + 4


def _installed() -> Path:
    from memory.tokens import _installed_ranks

    return _installed_ranks()


# --- Redis -------------------------------------------------------------------------------------


@pytest.fixture
async def redis(urls: dict[str, str]) -> AsyncIterator[Redis]:
    client = Redis.from_url(urls["redis_url"])
    yield client
    await client.aclose()


async def keys_of(redis: Redis, scope: Scope) -> list[bytes]:
    return [key async for key in redis.scan_iter(match=f"*{scope.tenant}*")]


async def test_all_keys_of_a_session_end_together_and_only_a_message_prolongs_them(
    open_memory: Open, redis: Redis, clock: Clock, scope: Scope
) -> None:
    """TTL-01 and TTL-02"""
    async with open_memory(window_tokens=WINDOW, session_ttl=3_600) as memory:
        user = memory.user(scope.user)
        session = user.session("s")

        async def ends() -> set[int]:
            assert await memory.settled(PATIENCE)
            return {await redis.pexpiretime(key) for key in await keys_of(redis, scope)}

        for number in range(30):
            await session.record(user=f"Line {number}: the ferry to the island leaves at nine.")
        assert (await session.window()).summary is not None
        (end,) = await ends()
        assert end > 0
        for _ in range(5):
            clock.forward(minutes=10)
            await session.window()
            await session.build_context("When does the ferry leave?")
            await user.sessions()
        assert await ends() == {end}
        await session.record(user="One more line.")
        (later,) = await ends()
        assert later > end


async def test_without_a_time_to_live_nothing_ends(
    open_memory: Open, redis: Redis, scope: Scope
) -> None:
    """TTL-02"""
    async with open_memory(window_tokens=WINDOW) as memory:
        session = memory.user(scope.user).session("s")
        for number in range(30):
            await session.record(user=f"Line {number}: the ferry to the island leaves at nine.")
        await session.build_context("When does the ferry leave?")
        assert await memory.settled(PATIENCE)
        keys = await keys_of(redis, scope)
        assert keys
        assert {await redis.ttl(key) for key in keys} == {-1}


async def test_a_context_that_was_given_up_never_reaches_another_user(
    open_memory: Open, redis_url: str, clock: Clock
) -> None:
    """CON-05, with two connections to Redis behind a slow proxy."""
    server = urlsplit(redis_url)
    dice = random.Random(11)
    async with proxy(server.hostname or "", server.port or 0) as through:
        slow = redis_url.replace(f"{server.hostname}:{server.port}", f"127.0.0.1:{through.port}")
        async with open_memory(
            redis_url=f"{slow}?max_connections=2", window_tokens=WINDOW // 2
        ) as memory:
            alice, bob = memory.user("alice"), memory.user("bob")
            for user, word in ((alice, "walrus"), (bob, "heron")):
                for number in range(20):
                    await user.session("default").record(user=f"Line {number} about the {word}.")
            assert await memory.settled(PATIENCE)
            his = await bob.session("default").window()
            assert his.summary is not None
            through.delay = timedelta(milliseconds=4)
            given_up = 0
            for round_ in range(60):
                hers = alice.session("default")
                reading = asyncio.create_task(
                    hers.build_context("What about it?") if round_ % 2 else hers.window()
                )
                await asyncio.wait([reading], timeout=dice.uniform(0, 0.012))
                given_up += reading.cancel()
                assert await bob.session("default").window() == his
                if round_ % 6 == 0:
                    context = await bob.session("default").build_context("What about it?")
                    assert "heron" in context.text
                    assert "walrus" not in context.text
            assert given_up > 10
            through.delay = timedelta(0)
            assert "walrus" in (await alice.session("default").build_context("And?")).text


# --- several at once ---------------------------------------------------------------------------


async def test_messages_of_many_writers_are_in_the_window_or_its_summary_once_each(
    open_memory: Open,
) -> None:
    """CON-01: four openings, two writers each, while windows are folded."""
    async with (
        open_memory(window_tokens=WINDOW) as one,
        open_memory(window_tokens=WINDOW) as two,
        open_memory(window_tokens=WINDOW) as three,
        open_memory(window_tokens=WINDOW) as four,
    ):

        async def write(memory: Memory, writer: int) -> None:
            session = memory.user("u1").session("s1")
            for number in range(25):
                await session.record(user=f"writer {writer} says {number}")

        openings = (one, two, three, four)
        await asyncio.gather(*(write(openings[n % 4], n) for n in range(8)))
        for memory in openings:
            assert await memory.settled(PATIENCE)
        messages = await one.user("u1").session("s1").messages()
        assert [message.seq for message in messages] == list(range(1, 201))
        for writer in range(8):
            own = [m.text for m in messages if m.text.startswith(f"writer {writer} ")]
            assert own == [f"writer {writer} says {number}" for number in range(25)]
        windows = [await memory.user("u1").session("s1").window() for memory in openings]
        assert all(window == windows[0] for window in windows)
        window = windows[0]
        assert window.summary is not None
        assert (window.summary.covers_from, window.summary.covers_to + 1) == (
            1,
            window.messages[0].seq,
        )
        assert list(window.messages) == messages[window.summary.covers_to :]


WRITER = """
import asyncio
from memory import Memory

async def main() -> None:
    async with Memory.open() as memory:
        session = memory.user("u1").session("c")
        for number in range(10_000):
            await session.record(user=f"kayak trip {number} of the other one")
            print(number, flush=True)

asyncio.run(main())
"""


async def test_writers_a_nightly_job_and_a_kill_share_one_stack_and_every_write_survives(
    open_memory: Open, urls: dict[str, str], scope: Scope, clock: Clock
) -> None:
    """CON-04, with the servers of the local stack in place of an embedded directory."""
    environment = {f"TRIMEM_{name.upper()}": url for name, url in urls.items()}
    environment |= {"TRIMEM_TENANT": scope.tenant, "PATH": str(Path(sys.executable).parent)}
    async with open_memory() as memory, open_memory() as night:
        other = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            WRITER,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            cwd=Path(__file__).resolve().parents[2],
        )
        assert other.stdout is not None
        assert await other.stdout.readline()
        user = memory.user("u1")
        acknowledged = 0
        for number in range(40):
            await user.session("a").record(user=f"kayak trip {number} of mine")
            acknowledged = int(await other.stdout.readline())
            if number % 20 == 10:
                await consolidate(night, now=clock.now)
                assert await night.user("u1").sessions()
        other.send_signal(signal.SIGKILL)
        await other.wait()
        assert await memory.settled(PATIENCE)
        wanted = {f"kayak trip {n} of mine" for n in range(40)}
        wanted |= {f"kayak trip {n} of the other one" for n in range(acknowledged + 1)}
        texts = [episode.text for episode in await user.episodes()]
        assert wanted <= set(texts)
        assert len(texts) == len(set(texts))
        recalled = await user.recall("kayak trip", k=len(texts))
        assert {item.text for item in recalled.items if item.tier == "episodic"} == set(texts)
        assert (await night.user("u1").recall(f"kayak trip {acknowledged} of the other one")).items
        assert recalled.unavailable == ()


# --- opening again -----------------------------------------------------------------------------


async def test_opening_a_session_again_wipes_nothing_and_a_given_history_is_appended(
    open_memory: Open,
) -> None:
    """DUR-04"""
    line = "Line {}: the ferry to the island leaves at nine in the morning."
    history = [{"role": "user", "content": line.format(number)} for number in range(12)]
    async with open_memory(window_tokens=200) as memory:
        await memory.user("u1").session("s1").record(messages=history)
        assert await memory.settled(PATIENCE)
        before = await memory.user("u1").session("s1").window()
        assert before.summary is not None
    for limit in (200, 4_000):
        async with open_memory(window_tokens=limit) as memory:
            session = memory.user("u1").session("s1")
            assert await session.window() == before
            assert len(await session.messages()) == 12
    async with open_memory(window_tokens=4_000) as memory:
        session = memory.user("u1").session("s1")
        await session.record(messages=[{"role": "user", "content": "an initial history"}])
        texts = [message.text for message in await session.messages()]
        assert texts == [each["content"] for each in history] + ["an initial history"]
        window = await session.window()
        assert window.summary == before.summary
        assert window.messages[-1].text == "an initial history"


# --- snapshots ---------------------------------------------------------------------------------


async def a_snapshot(user: UserMemory) -> str:
    await user.session("s").record(user="The red kayak is in the boathouse.")
    return (await user.session("t").build_context("Where is the red kayak?")).snapshot_id or ""


async def test_a_replay_asks_no_store_and_no_embedder_and_notices_one_flipped_bit(
    open_memory: Open, tmp_path: Path
) -> None:
    """SNP-03"""
    embedder = StubEmbedder()
    async with open_memory(embedder=embedder) as memory:
        snapshot = await a_snapshot(memory.user("u1"))
        assert await memory.settled(PATIENCE)
        first = await memory.user("u1").replay(snapshot)
    embedder.calls.clear()
    nowhere = {"redis_url": "redis://127.0.0.1:1", "chroma_url": "http://127.0.0.1:1"}
    async with open_memory(embedder=embedder, **nowhere) as memory:
        assert (await memory.user("u1").replay(snapshot)).data == first.data
        assert embedder.calls == []
    with sqlite3.connect(tmp_path / "journal.db") as journal:
        for row, data in journal.execute("SELECT rowid, data FROM objects").fetchall():
            if b"boathouse" in data:
                harmed = data.replace(b"boathouse", b"boathousf")
                journal.execute("UPDATE objects SET data = ? WHERE rowid = ?", (harmed, row))
    async with open_memory(embedder=embedder) as memory:
        for read in (memory.user("u1").replay, memory.user("u1").snapshot):
            with pytest.raises(Corrupt):
                await read(snapshot)


async def test_a_part_of_an_unknown_kind_is_replayed_as_it_came(memory: Memory) -> None:
    """SNP-03"""
    part = {"type": "hologram", "frames": [1, 2**60, None, {"深": "度"}]}
    user = memory.user("u1")
    context = await user.session("s").build_context({"role": "user", "content": [part]})
    replayed = await user.replay(context.snapshot_id or "")
    assert replayed.context.messages[-1]["content"] == [part]
    assert json.loads(replayed.data)["entries"][-1]["message"]["content"] == [part]
