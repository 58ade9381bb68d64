"""Secrets that pass through chat, tools and imported files are in no store, log or request."""

from __future__ import annotations

import json
import logging
import sqlite3
import traceback
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import asyncpg
import pytest
from neo4j import AsyncGraphDatabase
from redis.asyncio import Redis

from consolidation import Policy, consolidate
from memory import Memory
from memory.errors import InvalidInput, RedactionFailed
from memory.importers.importing import import_file
from memory.memory import Session, UserMemory
from memory.models import Context, Scope
from memory.redact import Pattern, Redact, Redactor
from memory.settings import Settings
from tests.behaviour.conftest import STORES, Clock, urls_of
from tests.llm_endpoint import Asked, LLMEndpoint
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(seconds=60)

HARMLESS = "quillonberry"
"""A word that is planted beside the secrets: a scan that does not find it does not look."""
PEM_LINE = "MIIEpAIBAAKCAQEA04up8hoqzS1APIB0RhjXyObwHQnOzhAk5Bd7mhkSbPkyhP1"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SECRETS = {
    "hunter2-XyZ": f"My {HARMLESS} password is hunter2-XyZ, please remember it for me.",
    "AAAABBBBCCCCDDDD1111": f"{HARMLESS}, api key: sk-test-AAAABBBBCCCCDDDD1111",
    "wJalrXUtnFEMI": "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    PEM_LINE: f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_LINE}\n-----END RSA PRIVATE KEY-----",
    "dozjgNryP4J3jVmNHl0w5N": f"Authorization: Bearer {JWT}",
    "p4ss-w0rd": "postgresql://app:p4ss-w0rd@db.example.org/prod",
    "4111 1111 1111 1111": "Pay with 4111 1111 1111 1111, as always.",
    "tigre99": "我的密码是tigre99，请记住。",
}

OpenWith = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture(params=STORES)
def urls(request: pytest.FixtureRequest) -> dict[str, str]:
    return urls_of(request, request.param)


@pytest.fixture
def open_with(urls: dict[str, str], clock: Clock, scope: Scope) -> OpenWith:
    """Opens the test's memory, its own redact function or a language model with it."""

    @asynccontextmanager
    async def open_it(own: Redact | None = None, **changes: Any) -> AsyncIterator[Memory]:
        settings = Settings.model_validate({**urls, "tenant": scope.tenant, **changes})
        async with Memory.open(
            settings=settings, embedder=StubEmbedder(), redact=own, clock=clock
        ) as memory:
            yield memory

    return open_it


# --- everything that is stored -------------------------------------------------------------------


async def rows_of(journal_url: str) -> str:
    """Every value of every table, what is packed unpacked."""
    rows: list[Any] = []
    if journal_url.startswith("sqlite"):
        with closing(sqlite3.connect(journal_url.removeprefix("sqlite:///"))) as file:
            tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                rows += file.execute(f'SELECT * FROM "{table}"').fetchall()
    else:
        connection = await asyncpg.connect(journal_url)
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname='public'")
        for (table,) in tables:
            rows += await connection.fetch(f'SELECT * FROM "{table}"')
        await connection.close()
    return "\n".join(readable(value) for row in rows for value in row)


def readable(value: object) -> str:
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(value, bytes):
        with suppress(zlib.error):
            value = zlib.decompress(value)
        return value.decode("utf-8", "replace")
    return str(value)


async def keys_of(redis_url: str, tenant: str) -> str:
    async with Redis.from_url(redis_url) as redis:
        found = []
        async for key in redis.scan_iter(match=f"*{tenant}*"):
            whole = (
                await redis.hgetall(key)
                if await redis.type(key) == b"hash"
                else await redis.lrange(key, 0, -1)
            )
            found.append(f"{key!r} {whole!r}")
        return "\n".join(found)


async def records_of(chroma_url: str, ids: list[str]) -> str:
    """What Chroma keeps beside these vectors, in whatever collection."""
    root = f"{chroma_url}/api/v2/tenants/default_tenant/databases/default_database/collections"
    wanted = {"ids": ids, "include": ["documents", "metadatas", "uris"]}
    found = []
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{root}?limit=1000") as answer:
            collections = await answer.json()
        for each in collections:
            async with http.post(f"{root}/{each['id']}/get", json=wanted) as answer:
                if answer.status == 200:
                    found.append(await answer.text())
    return "\n".join(found)


async def nodes_of(neo4j_url: str, tenant: str) -> str:
    url = urlsplit(neo4j_url)
    bolt = f"{url.scheme}://{url.hostname}:{url.port}"
    async with AsyncGraphDatabase.driver(bolt, auth=(url.username, url.password)) as driver:
        nodes, _, _ = await driver.execute_query(
            "MATCH (n) WHERE any(k IN keys(n) WHERE toString(n[k]) CONTAINS $tenant) "
            "OPTIONAL MATCH (n)-[r]-() RETURN properties(n) AS n, properties(r) AS r",
            tenant=tenant,
        )
        return "\n".join(repr(node.data()) for node in nodes)


async def everything(urls: Mapping[str, str], user: UserMemory) -> dict[str, str]:
    """All that the stores hold of a user, by store."""
    tenant = user.scope.tenant
    held = {
        "journal": await rows_of(urls["journal_url"]),
        "redis": await keys_of(urls["redis_url"], tenant),
        "chroma": await records_of(
            urls["chroma_url"], [episode.id for episode in await user.episodes()]
        ),
    }
    if "neo4j_url" in urls:
        held["neo4j"] = await nodes_of(urls["neo4j_url"], tenant)
    if urls["journal_url"].startswith("sqlite"):
        file = Path(urls["journal_url"].removeprefix("sqlite:///"))
        parts = [each.read_bytes() for each in file.parent.glob(f"{file.name}*")]
        held["file"] = b"".join(parts).decode("utf-8", "replace")
    return held


def leaked(held: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(where, secret) for where, said in held.items() for secret in SECRETS if secret in said]


# --- what goes in --------------------------------------------------------------------------------


async def conversation(session: Session) -> list[Context]:
    """Every secret by the user, the assistant and a tool, in texts, arguments and metadata."""
    contexts = []
    for secret, said in SECRETS.items():
        contexts.append(await session.build_context(said, system="Be kind."))
        call = {
            "id": "c1",
            "function": {"name": "look_up", "arguments": json.dumps({"query": said})},
        }
        result = json.dumps({"stdout": said, "env": {"DB_PASSWORD": secret, "note": HARMLESS}})
        await session.record(
            messages=[
                {"role": "user", "content": said, "metadata": {"raw": [said], "password": secret}},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": result},
                {"role": "assistant", "content": [{"type": "text", "text": f"Noted: {said}"}]},
            ]
        )
        contexts.append(await session.build_context(f"What did I say of this: {said}?"))
    return contexts


async def test_no_secret_is_in_any_store_log_or_context(
    open_with: OpenWith,
    urls: dict[str, str],
    clock: Clock,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SEC-03"""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "sqlalchemy")  # which keeps quiet otherwise, and knows all
    chat = tmp_path / "chat.jsonl"
    chat.write_text(
        "\n".join(json.dumps({"role": "user", "content": said}) for said in SECRETS.values()),
        "utf-8",
    )
    async with open_with(window_tokens=600, summary_tokens=200) as memory:
        user = memory.user("ada")
        await user.session("start").record(user=f"My name is Ada and I live in {HARMLESS.title()}.")
        contexts = []
        for day in range(4):  # what recurs is promoted
            contexts += await conversation(user.session(f"day {day}"))
            clock.forward(days=1)
        report = await import_file(memory, chat, "ada", session="imported")
        assert report.added == len(SECRETS)
        with pytest.raises(InvalidInput, match="secret"):
            await user.assert_fact("user", "wifi password", "hunter2-XyZ")
        await user.assert_fact("user", "keeps", f"{HARMLESS}: {SECRETS['p4ss-w0rd']}")
        await user.recall(SECRETS["AAAABBBBCCCCDDDD1111"])
        assert await memory.settled(PATIENCE)
        night = await consolidate(memory, now=clock.now, policy=Policy(episodes=2))
        assert night.promoted
        assert await memory.settled(PATIENCE)
        summary = (await user.session("day 0").window()).summary
        assert summary is not None
        snapshots = [await user.snapshot(info.id) for info in await user.snapshots(limit=8)]
        facts = await user.facts()
        held = await everything(urls, user)
        episode = (await user.episodes())[0]
    held["contexts"] = "\n".join(json.dumps(c.messages, ensure_ascii=False) for c in contexts)
    held["snapshots"] = "\n".join(snapshot.text for snapshot in snapshots)
    held["facts"] = "\n".join(repr(fact) for fact in facts)
    held["logs"] = "\n".join(record.getMessage() for record in caplog.records)
    held["summary"] = summary.text
    assert leaked(held) == []
    assert episode.id in held.pop("chroma")
    looked_at = {where for where, said in held.items() if HARMLESS in said.casefold()}
    assert looked_at >= held.keys() - {"summary"}
    assert "[redacted: password]" in held["journal"]
    assert "[redacted: api key]" in held["contexts"]
    assert not [fact for fact in facts if fact.object.startswith("[redacted")]


async def test_a_language_model_is_shown_no_secret(
    open_with: OpenWith, urls: dict[str, str], clock: Clock, llm_endpoint: LLMEndpoint
) -> None:
    """SEC-03, with a language model that summarises and reads facts."""

    def answer(asked: Asked) -> str:
        return f"They spoke of {HARMLESS}."

    llm_endpoint.always(answer)
    async with open_with(
        **llm_endpoint.settings(), window_tokens=600, summary_tokens=200
    ) as memory:
        user = memory.user("ada")
        await conversation(user.session("today"))
        assert await memory.settled(PATIENCE)
        await llm_endpoint.asked()
        await consolidate(memory, now=clock.now)
        held = await everything(urls, user)
    held["model"] = json.dumps([each.body for each in llm_endpoint.requests], ensure_ascii=False)
    assert leaked(held) == []
    assert HARMLESS in held["model"]
    assert "[redacted: " in held["model"]


async def test_without_redaction_everything_is_kept_as_it_was_said(
    open_with: OpenWith, urls: dict[str, str]
) -> None:
    """SEC-03, the other way round: what the scan above would have found."""
    async with open_with(redact=False) as memory:
        user = memory.user("careless")
        await conversation(user.session("s"))
        assert await memory.settled(PATIENCE)
        held = await everything(urls, user)
    assert {secret for where, secret in leaked(held) if where == "journal"} == SECRETS.keys()
    assert "redis" in {where for where, _ in leaked(held)}


async def test_the_working_window_holds_masks_as_well(open_with: OpenWith) -> None:
    """SEC-03: a key is of use in the turn it is given in; nothing that is remembered has it."""
    async with open_with() as memory:
        session = memory.user("ada").session("s")
        context = await session.build_context(SECRETS["AAAABBBBCCCCDDDD1111"])
        await session.record(user=SECRETS["AAAABBBBCCCCDDDD1111"], assistant="Thanks.")
        window = await session.window()
    assert context.messages[-1]["content"] == f"{HARMLESS}, api key: [redacted: api key]"
    assert window.messages[0].text == context.messages[-1]["content"]


async def test_system_text_and_tools_go_to_the_model_word_for_word(open_with: OpenWith) -> None:
    tool = {
        "type": "function",
        "function": {"name": "log_in", "description": "password: swordfish9", "parameters": {}},
    }
    async with open_with() as memory:
        context = (
            await memory.user("ada")
            .session("s")
            .build_context("Log me in", system="The password is swordfish9.", tools=[tool])
        )
    assert context.messages[0] == {"role": "system", "content": "The password is swordfish9."}
    assert context.tools == (tool,)


async def test_a_redact_function_that_fails_stores_nothing(open_with: OpenWith) -> None:
    def broken(text: str) -> str:
        if "plan" in text:
            raise ValueError(text)
        return text

    async with open_with(broken) as memory:
        session = memory.user("ada").session("s")
        with pytest.raises(RedactionFailed) as raised:
            await session.record(messages=[{"role": "user", "content": t} for t in ("hi", "plan")])
        with pytest.raises(RedactionFailed):
            await session.build_context("my plan")
        with pytest.raises(RedactionFailed):
            await memory.user("ada").assert_fact("user", "likes", "a plan")
        assert "plan" not in str(raised.value)
        assert await session.messages() == []
        assert await memory.user("ada").snapshots() == []
        await session.record(user="hi")
        assert [message.text for message in await session.messages()] == ["hi"]


async def test_a_redactor_of_ones_own_stands_in_the_place_of_the_usual_one(
    open_with: OpenWith,
) -> None:
    badge = Redactor().extended(Pattern("badge", r"B-\d{4}", needs=("B-",)))
    async with open_with(badge) as memory:
        session = memory.user("ada").session("s")
        await session.record(user="My badge is B-1234, my password is hunter2-XyZ.")
        said = (await session.messages())[0].text
    assert said == "My badge is [redacted: badge], my password is [redacted: password]."


async def test_a_message_that_is_refused_is_not_shown_in_the_traceback(
    open_with: OpenWith,
) -> None:
    async with open_with() as memory:
        wrong = {"role": "user", "content": {"password": "hunter2-XyZ"}}
        with pytest.raises(InvalidInput) as raised:
            await memory.user("ada").session("s").record(messages=[wrong])
    told = "".join(traceback.format_exception(raised.value))
    assert "hunter2" not in told.replace(__file__, "")
    assert "content" in told


async def test_what_recurs_and_is_only_a_mask_is_promoted_to_nothing(open_with: OpenWith) -> None:
    async with open_with() as memory:
        user = memory.user("ada")
        made = await user.assert_fact("user", "likes", "tea")
        await user.promote([made.model_copy(update={"id": "x", "object": "[redacted: token]"})])
        assert await memory.settled(PATIENCE)
        assert [fact.object for fact in await user.facts()] == ["tea"]


async def test_recording_again_under_a_key_is_still_as_once(open_with: OpenWith) -> None:
    async with open_with() as memory:
        session = memory.user("ada").session("s")
        for _ in range(2):
            await session.record(user=SECRETS["hunter2-XyZ"], key="turn-1")
        assert len(await session.messages()) == 1
