"""What happens when a part does not answer, dies, or has lost its data."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray

from memory import Memory, Session
from memory.chroma import open_chroma
from memory.embedding import Embedder
from memory.errors import EmbeddingFailed, TierUnavailable
from memory.models import Scope
from memory.settings import Settings
from memory.working import WorkingMemory, open_redis
from tests.behaviour.conftest import Clock, Open
from tests.proxy import proxy as proxied

PATIENCE = timedelta(seconds=30)
LOCAL_ONLY = pytest.mark.parametrize("urls", ["local"], indirect=True)


def nobody_there() -> str:
    """An address at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


TIERS = {
    "working": ("redis_url", "redis://{}"),
    "episodic": ("chroma_url", "http://{}"),
    "semantic": ("neo4j_url", "bolt://{}"),
}


@LOCAL_ONLY
@pytest.mark.parametrize("tier", TIERS)
async def test_a_tier_that_does_not_answer_is_named_and_the_others_serve(
    open_memory: Open, tier: str
) -> None:
    async with open_memory() as memory:
        session = memory.user("ada").session("s")
        await session.record(user="I live in Lyon.", assistant="A fine city.")
        await session.record(user="The red kayak is in the boathouse.", assistant="Good.")
        await memory.settled(PATIENCE)
        whole = await memory.user("ada").session("t").build_context("Where is the red kayak?")
        assert whole.unavailable == ()
    setting, url = TIERS[tier]
    async with open_memory(**{setting: url.format(nobody_there()), "timeout": 2}) as memory:
        user = memory.user("ada")
        recorded = await user.session("s").record(user="And the blue one?")
        assert recorded.messages[0].seq == 5
        context = await user.session("s").build_context("Where is the red kayak?")
        assert tier in context.unavailable
        assert "And the blue one?" in context.text
        if tier != "semantic":
            assert "Lyon" in context.text
        health = {each.part: each for each in await memory.health()}
        assert [part for part, each in health.items() if not each.ok] == [tier]


@LOCAL_ONLY
async def test_asking_a_tier_that_does_not_answer_raises_instead_of_saying_nothing(
    open_memory: Open,
) -> None:
    async with open_memory() as memory:
        await memory.user("ada").session("s").record(user="I live in Lyon.")
        assert [fact.object for fact in await memory.user("ada").facts()] == ["Lyon"]
    async with open_memory(neo4j_url=f"bolt://{nobody_there()}", timeout=2) as memory:
        with pytest.raises(TierUnavailable) as caught:
            await memory.user("ada").facts()
        assert caught.value.tier == "semantic"


async def test_a_window_that_redis_lost_is_rebuilt_from_the_journal(
    memory: Memory, urls: dict[str, str], scope: Scope
) -> None:
    session = memory.user("ada").session("s")
    for number in range(30):
        await session.record(user=f"Message number {number}", assistant="Yes.")
    await memory.settled(PATIENCE)
    before = await session.window()
    async with open_redis(urls["redis_url"], timeout=PATIENCE) as redis:
        await WorkingMemory(redis, ttl=None).clear(session.scope, "s")
    assert await session.window() == before
    await session.record(user="and on it goes")
    await memory.settled(PATIENCE)
    assert (await session.window()).messages[-1].text == "and on it goes"


async def test_an_expired_session_says_so_and_its_past_is_still_recalled(
    open_memory: Open, urls: dict[str, str], clock: Clock
) -> None:
    async with open_memory(session_ttl=3600) as memory:
        user = memory.user("ada")
        session = user.session("s")
        await session.record(user="The red kayak is in the boathouse.", assistant="Good.")
        await memory.settled(PATIENCE)
        clock.forward(hours=3)
        async with open_redis(urls["redis_url"], timeout=PATIENCE) as redis:
            # Redis has a clock of its own, which cannot be moved.
            await WorkingMemory(redis, ttl=None).clear(session.scope, "s")
        recorded = await session.record(user="Hello again!")
        assert recorded.messages[0].seq == 3
        window = await session.window()
        assert [message.text for message in window.messages] == ["Hello again!"]
        assert window.expired_at == clock.now - timedelta(hours=2)
        context = await session.build_context("Where is the red kayak?")
        assert any("expired" in warning for warning in context.warnings)
        assert "boathouse" in context.text


async def talk(memory: Memory, clock: Clock, *, minutes: float) -> None:
    """Sixty messages, so long one after the other; most of them are then in the summary."""
    session = memory.user("ada").session("s")
    for number in range(30):
        await session.record(user=f"Line {number}: the ferry leaves at nine.", assistant="Yes.")
        clock.forward(minutes=minutes)
    assert await memory.settled(PATIENCE)


async def lost(urls: dict[str, str], session: Session) -> None:
    """Redis has a clock of its own, which cannot be moved; it can be emptied."""
    async with open_redis(urls["redis_url"], timeout=PATIENCE) as redis:
        await WorkingMemory(redis, ttl=None).clear(session.scope, "s")


SMALL = {"window_tokens": 300, "summary_tokens": 60}


async def test_a_session_that_never_paused_is_rebuilt_whole_however_long_ago_it_began(
    open_memory: Open, urls: dict[str, str], clock: Clock
) -> None:
    async with open_memory(session_ttl=3600, **SMALL) as memory:
        session = memory.user("ada").session("s")
        await session.record(messages=[{"role": "system", "content": "Be kind."}])
        await talk(memory, clock, minutes=10)
        before = await session.window()
        assert before.messages[0].text == "Be kind."
        assert before.summary is not None
        assert before.summary.covers_to > 20
        await lost(urls, session)
        assert await session.window() == before


async def test_a_session_that_expired_and_went_on_is_rebuilt_from_its_newest_beginning(
    open_memory: Open, urls: dict[str, str], clock: Clock
) -> None:
    async with open_memory(session_ttl=3600, **SMALL) as memory:
        session = memory.user("ada").session("s")
        await session.record(messages=[{"role": "system", "content": "Be kind."}])
        await talk(memory, clock, minutes=1)
        clock.forward(hours=3)
        await lost(urls, session)
        await talk(memory, clock, minutes=1)
        before = await session.window()
        assert before.summary is not None
        assert before.summary.covers_from == 62
        assert before.expired_at is not None
        await lost(urls, session)
        assert await session.window() == before
        clock.forward(hours=3)
        await lost(urls, session)
    async with open_memory(session_ttl=36_000, **SMALL) as memory:
        session = memory.user("ada").session("s")
        await talk(memory, clock, minutes=1)
        window = await session.window()
        assert window.summary is not None
        assert (window.summary.covers_from, window.last_seq) == (62, 181)
        seqs = [message.seq for message in window.messages]
        assert seqs == list(range(window.summary.covers_to + 1, 182))
        async with open_redis(urls["redis_url"], timeout=PATIENCE) as redis:
            held = await WorkingMemory(redis, ttl=None).read(session.scope, "s")
            assert held is not None
            assert held.last_seq == 181


@LOCAL_ONLY
async def test_an_index_that_was_lost_is_said_once_and_then_made_again_by_itself(
    open_memory: Open, urls: dict[str, str]
) -> None:
    async with open_memory() as memory, open_chroma(urls["chroma_url"], timeout=PATIENCE) as chroma:
        user = memory.user("ada")
        await user.session("s").record(user="The red kayak is in the boathouse by the lake.")
        await memory.settled(PATIENCE)
        layout = await memory._parts.episodic._layout()
        for name in await chroma.collections(layout.prefix):
            await chroma.drop(name)
        lost = await user.recall("Where do I keep my boat?")
        assert lost.unavailable == ("episodic",)
        async with asyncio.timeout(PATIENCE.total_seconds()):
            while (found := await user.recall("Where do I keep my boat?")).unavailable:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert "red kayak" in found.items[0].text


class FailsFor:
    """An embedder that cannot embed texts with a certain word, until it is told to."""

    identity = "fails-for/8"
    dims = 8

    def __init__(self, word: str) -> None:
        self.word = word

    async def embed(
        self, texts: Sequence[str], *, role: Literal["query", "document"]
    ) -> NDArray[np.float32]:
        if any(self.word in text for text in texts):
            raise EmbeddingFailed("the embedder is out of order")
        rows = [np.random.default_rng(list(text.encode())).normal(size=self.dims) for text in texts]
        return np.stack([row / np.linalg.norm(row) for row in rows]).astype(np.float32)

    async def close(self) -> None:
        """Nothing is open."""


async def test_what_cannot_be_embedded_is_stored_and_found_by_its_words(open_memory: Open) -> None:
    async with open_memory(embedder=FailsFor("kayak")) as memory:
        user = memory.user("ada")
        await user.session("s").record(user="The red kayak is in the boathouse.")
        await user.session("s").record(user="The blue tent is in the attic.")
        await memory.settled(PATIENCE)
        recalled = await user.recall("boathouse kayak")
        assert "red kayak" in recalled.items[0].text
        assert recalled.unavailable == ("episodic",)
        assert "blue tent" in (await user.recall("blue tent attic")).items[0].text


class Unreachable(FailsFor):
    """An embedder of somebody else's, with errors of its own."""

    identity = "unreachable/8"

    async def embed(
        self, texts: Sequence[str], *, role: Literal["query", "document"]
    ) -> NDArray[np.float32]:
        raise ConnectionError("no route to the embedder")


@LOCAL_ONLY
async def test_whatever_an_embedder_raises_nothing_is_set_aside(open_memory: Open) -> None:
    async with open_memory(embedder=Unreachable("")) as memory:
        user = memory.user("ada")
        await user.session("s").record(user="The red kayak is in the boathouse.")
        assert await memory.settled(PATIENCE)
        recalled = await user.recall("boathouse kayak")
        assert "red kayak" in recalled.items[0].text
        assert recalled.unavailable == ("episodic",)
        assert [lag.parked for lag in await memory.lags()] == [0, 0, 0, 0]


async def test_another_embedder_is_said_and_nothing_is_lost(
    open_memory: Open, embedder: Embedder
) -> None:
    async with open_memory() as memory:
        user = memory.user("ada")
        for number in range(5):
            await user.session("s").record(user=f"The red kayak no. {number} is in the boathouse.")
        await memory.settled(PATIENCE)
    async with open_memory(embedder=FailsFor("nothing")) as memory:
        user = memory.user("ada")
        recalled = await user.recall("boathouse kayak")
        assert "red kayak" in recalled.items[0].text
        (warning,) = [w for w in recalled.warnings if "embed" in w]
        assert embedder.identity in warning
        assert "fails-for/8" in warning
        newcomer = memory.user("bob")
        await newcomer.session("s").record(user="The green canoe is at the pier.")
        assert "green canoe" in (await newcomer.recall("green canoe")).items[0].text
        assert (await newcomer.recall("green canoe")).warnings == ()
        await memory.reembed()
        after = await user.recall("boathouse kayak")
        assert after.warnings == ()
        assert {item.id for item in after.items} == {item.id for item in recalled.items}


WRITER = """
import asyncio, sys
from memory import Memory, Session
from memory.settings import Settings

async def main() -> None:
    async with Memory.open() as memory:
        session = memory.user("ada").session("s")
        for number in range(1000):
            await session.record(user=f"message {number}", assistant=f"answer {number}")
            print(number, flush=True)

asyncio.run(main())
"""


async def test_what_was_acknowledged_survives_kill_9_and_is_applied_once(
    open_memory: Open, urls: dict[str, str], scope: Scope
) -> None:
    environment = {f"TRIMEM_{name.upper()}": url for name, url in urls.items()}
    environment |= {"TRIMEM_TENANT": scope.tenant, "PATH": str(Path(sys.executable).parent)}
    acknowledged = -1
    for rounds in range(2):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, stdout=subprocess.PIPE, env=environment,
            cwd=Path(__file__).resolve().parents[2],
        )  # fmt: skip
        assert process.stdout is not None
        for _ in range(25):
            acknowledged = int(await process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        await process.wait()
        async with open_memory() as memory:
            session = memory.user("ada").session("s")
            messages = await session.messages()
            texts = [message.text for message in messages]
            assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
            assert texts.count(f"message {acknowledged}") == rounds + 1
            assert texts.count(f"answer {acknowledged}") == rounds + 1
            assert await memory.settled(PATIENCE)
            episodes = await memory.user("ada").episodes()
            assert sorted(e.message_id for e in episodes) == sorted(m.id for m in messages)
            assert (await session.window()).last_seq == len(messages)


@LOCAL_ONLY
async def test_a_connection_that_was_dropped_while_idle_is_made_again(
    open_memory: Open, redis_url: str, chroma_url: str, neo4j_url: str
) -> None:
    async with AsyncExitStack() as stack:
        through = {}
        proxies = []
        for name, url in (
            ("redis_url", redis_url),
            ("chroma_url", chroma_url),
            ("neo4j_url", neo4j_url),
        ):
            parts = urlsplit(url)
            proxy = await stack.enter_async_context(proxied(parts.hostname or "", parts.port or 0))
            proxies.append(proxy)
            there = f"{parts.hostname}:{parts.port}"
            through[name] = url.replace(there, f"127.0.0.1:{proxy.port}")
        memory = await stack.enter_async_context(open_memory(**through))
        session = memory.user("ada").session("s")
        await session.record(user="I live in Lyon.", assistant="A fine city.")
        assert (await session.build_context("Where do I live?")).unavailable == ()
        for proxy in proxies:
            proxy.drop()
        await session.record(user="Still there?", assistant="Yes.")
        context = await session.build_context("Where do I live?")
        assert context.unavailable == ()
        assert await memory.settled(PATIENCE)
        assert len(await memory.user("ada").episodes()) == 4


async def test_the_settings_never_show_a_password() -> None:
    settings = Settings.model_validate({"redis_url": "redis://ada:hunter2@localhost:1"})
    assert "hunter2" not in repr(settings)
    assert settings.redis_url is not None
    assert "hunter2" in settings.redis_url.get_secret_value()
