"""Working memory keeps one contract on every kind of Redis, whatever happens to it."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from memory.errors import ConfigurationError, Corrupt, InvalidInput, InvalidScope, TierUnavailable
from memory.local import LocalStack
from memory.models import RecordedMessage, Scope, Summary, Window
from memory.redis_url import Client
from memory.summary import extend
from memory.window import fold, gather, plan, summary_limit
from memory.working import WorkingMemory, open_redis
from tests import redis_modes
from tests.contracts.working_process import append_all, written
from tests.conversations import said, size_of, small_talk
from tests.proxy import Proxy, proxy

SESSION = "monday"
PATIENCE = timedelta(seconds=10)
HOUR = timedelta(hours=1)

STORES = {
    "local": "local",
    "server": "redis_url",
    "tls": "redis_tls_url",
    "sentinel": "redis_sentinel_url",
    "cluster": "redis_cluster_url",
}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> str:
    store = request.getfixturevalue(STORES[request.param])
    return store if isinstance(store, str) else store.redis_url


@pytest.fixture
async def redis(url: str) -> AsyncIterator[Client]:
    async with open_redis(url, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def working(redis: Client) -> WorkingMemory:
    return WorkingMemory(redis, ttl=None)


def sizes(messages: Sequence[RecordedMessage]) -> list[int]:
    return [size_of(message) for message in messages]


def summary_to(seq: int, *, first: int = 1, text: str = "what was said") -> Summary:
    return Summary(text=text, covers_from=first, covers_to=seq, tokens=3)


def keys(scope: Scope, session: str = SESSION) -> tuple[str, str]:
    tag = f"{{{scope.tenant}:{scope.user}:{session}}}"
    return f"{tag}:window", f"{tag}:meta"


async def filled(working: WorkingMemory, scope: Scope, messages: list[RecordedMessage]) -> Window:
    assert await working.append(scope, SESSION, messages, sizes(messages))
    return await the_window(working, scope)


async def the_window(working: WorkingMemory, scope: Scope, session: str = SESSION) -> Window:
    window = await working.read(scope, session)
    assert window is not None
    return window


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while not await condition():  # noqa: ASYNC110 - the event is in another process
            await asyncio.sleep(0.005)


# --- append and read ---------------------------------------------------------------------------


async def test_what_was_appended_is_read_in_order_with_its_tokens(
    working: WorkingMemory, scope: Scope
):
    history = small_talk(5)
    assert await working.append(scope, SESSION, history[:2], sizes(history[:2]))
    assert await working.append(scope, SESSION, history[2:], sizes(history[2:]))
    assert await the_window(working, scope) == Window(
        messages=tuple(history), last_seq=5, tokens=sum(sizes(history))
    )


async def test_of_a_large_window_the_newest_part_can_be_read_alone(
    working: WorkingMemory, scope: Scope
):
    history = [said(1, "system", "Be brief."), *small_talk(300, first=2)]
    whole = await filled(working, scope, history)
    part = await working.read(scope, SESSION, enough=500)
    assert part is not None
    assert part.messages[0] == history[0]
    assert part.messages[1:] == whole.messages[-(len(part.messages) - 1) :]
    assert part.unsummarised == len(whole.messages) - len(part.messages) > 200
    assert sum(sizes(part.messages[1:])) >= 500
    assert part.model_copy(update={"messages": whole.messages, "unsummarised": 0}) == whole
    assert await working.read(scope, SESSION, enough=whole.tokens) == whole
    assert await working.read(scope, SESSION, enough=0) != whole


async def test_of_a_large_window_the_oldest_part_can_be_read_alone(
    working: WorkingMemory, scope: Scope
):
    history = [said(1, "system", "Be brief."), *small_talk(300, first=2)]
    whole = await filled(working, scope, history)
    part = await working.read(scope, SESSION, oldest=3)
    assert part == whole.model_copy(update={"messages": whole.messages[:4]})
    assert await working.read(scope, SESSION, oldest=300) == whole


async def test_where_nothing_was_appended_there_is_no_window(working: WorkingMemory, scope: Scope):
    assert await working.read(scope, SESSION) is None
    assert await working.append(scope, SESSION, [], [])
    assert await working.read(scope, SESSION) is None


async def test_appending_again_changes_nothing(working: WorkingMemory, scope: Scope):
    history = small_talk(6)
    once = await filled(working, scope, history[:4])
    assert await working.append(scope, SESSION, history[:4], sizes(history[:4]))
    assert await working.append(scope, SESSION, history[1:2], [999])
    assert await the_window(working, scope) == once
    assert await working.append(scope, SESSION, history[2:], sizes(history[2:]))
    assert (await the_window(working, scope)).messages == tuple(history)


async def test_a_gap_is_refused_and_nothing_is_put(working: WorkingMemory, scope: Scope):
    history = small_talk(6)
    assert not await working.append(scope, SESSION, history[1:], sizes(history[1:]))
    assert await working.read(scope, SESSION) is None
    before = await filled(working, scope, history[:2])
    assert not await working.append(scope, SESSION, history[3:], sizes(history[3:]))
    holed = [history[2], history[4]]
    assert not await working.append(scope, SESSION, holed, sizes(holed))
    assert await the_window(working, scope) == before


@pytest.mark.parametrize(
    "text",
    [
        "\x00 nul",
        "\ud800 alone",
        "\u202eright to left",
        "<|endoftext|>",
        "🦊",
        "],[",
        "a" * 1_000_000,
    ],
    ids=["nul", "surrogate", "rtl", "control-token", "emoji", "json", "a-million"],
)
async def test_hostile_text_comes_back_unharmed(working: WorkingMemory, scope: Scope, text: str):
    part = {"type": "text", "text": text, text[:9]: [None, 1.5, {"x": [True]}]}
    history = [
        said(1, "user", text, name=text[:20], metadata={text[:20]: text[:20]}),
        said(2, "assistant", None, calls=[text[:20]]),
        said(3, "tool", (part,), answers=text[:20], agent=None),
    ]
    window = await filled(working, scope, history)
    assert window.messages == tuple(history)
    summary = summary_to(1, text=text[:2_000])
    assert await working.fold(scope, SESSION, read=window, summary=summary)
    after = await the_window(working, scope)
    assert (after.messages, after.summary) == (tuple(history[1:]), summary)


async def test_malformed_appends_are_refused(working: WorkingMemory, scope: Scope):
    history = small_talk(2)
    with pytest.raises(InvalidInput, match="2 messages have 1 token counts"):
        await working.append(scope, SESSION, history, [1])
    with pytest.raises(InvalidInput, match="another session"):
        await working.append(scope, "tuesday", history, sizes(history))
    with pytest.raises(InvalidScope):
        await working.read(scope, " ")


# --- whose it is -------------------------------------------------------------------------------


async def test_names_that_look_alike_when_joined_share_nothing(
    working: WorkingMemory, scope: Scope
):
    t, u = scope.tenant, scope.user
    places = [
        (f"{t}:{u}", "a", "b"),
        (t, f"{u}:a", "b"),
        (t, u, "a:b"),
        (t, f"{u}%3Aa", "b"),
        (f"{t}}}", u, "{a"),
        (t, u, "长安🦊"),
    ]
    for number, (tenant, user, session) in enumerate(places):
        own = [said(1, "user", f"number {number}", session=session)]
        assert await working.append(Scope.of(tenant, user), session, own, [1])
    for number, (tenant, user, session) in enumerate(places):
        window = await the_window(working, Scope.of(tenant, user), session)
        assert [message.text for message in window.messages] == [f"number {number}"]


async def test_another_user_and_another_tenant_see_nothing(working: WorkingMemory, scope: Scope):
    await filled(working, scope, [said(1, "user", "my PIN is blue")])
    bob = Scope.of(scope.tenant, f"{scope.user}-bob")
    elsewhere = Scope.of(f"{scope.tenant}-2", scope.user)
    for other in (bob, elsewhere):
        assert await working.read(other, SESSION) is None
        await working.clear(other, SESSION)
    assert (await the_window(working, scope)).messages[0].text == "my PIN is blue"


async def test_keys_that_hold_another_session_are_never_shown(
    working: WorkingMemory, redis: Client, scope: Scope
):
    await filled(working, scope, small_talk(2))
    window, meta = keys(scope)
    assert await redis.hset(meta, "owner", b'["t","mallory","monday"]') == 0
    with pytest.raises(Corrupt, match="another session's"):
        await working.read(scope, SESSION)
    with pytest.raises(Corrupt):
        await working.append(scope, SESSION, small_talk(1, first=3), [1])
    await working.clear(scope, SESSION)
    assert await redis.exists(window, meta) == 0
    await filled(working, scope, small_talk(2))


# --- fold --------------------------------------------------------------------------------------


async def test_a_fold_takes_exactly_what_the_summary_covers_and_leaves_what_came_meanwhile(
    working: WorkingMemory, scope: Scope
):
    history = small_talk(8)
    read = await filled(working, scope, history[:6])
    await filled(working, scope, history[6:])
    assert await working.fold(scope, SESSION, read=read, summary=summary_to(4))
    assert await the_window(working, scope) == Window(
        messages=tuple(history[4:]),
        summary=summary_to(4),
        last_seq=8,
        tokens=sum(sizes(history[4:])) + 3,
    )


async def test_of_two_folds_of_the_same_window_one_wins(working: WorkingMemory, scope: Scope):
    read = await filled(working, scope, small_talk(8))
    results = await asyncio.gather(
        *(
            working.fold(scope, SESSION, read=read, summary=summary_to(seq, text=f"up to {seq}"))
            for seq in (3, 4, 4, 5)
        )
    )
    assert sorted(results) == [False, False, False, True]
    after = await the_window(working, scope)
    assert after.summary is not None
    assert after.messages[0].seq == after.summary.covers_to + 1
    assert not await working.fold(scope, SESSION, read=read, summary=summary_to(6))
    assert await the_window(working, scope) == after


async def test_a_fold_of_another_summary_than_was_read_is_refused(
    working: WorkingMemory, scope: Scope
):
    read = await filled(working, scope, small_talk(8))
    assert await working.fold(scope, SESSION, read=read, summary=summary_to(2))
    read = await the_window(working, scope)
    retold = read.model_copy(update={"summary": summary_to(2, text="retold")})
    assert not await working.fold(scope, SESSION, read=retold, summary=summary_to(4))
    assert await working.fold(scope, SESSION, read=read, summary=summary_to(4))


async def test_a_session_that_was_made_anew_is_not_folded_as_the_old_one(
    working: WorkingMemory, scope: Scope
):
    read = await filled(working, scope, small_talk(6, text="old"))
    await working.clear(scope, SESSION)
    anew = await filled(working, scope, small_talk(6, text="new"))
    assert not await working.fold(scope, SESSION, read=read, summary=summary_to(3))
    assert await the_window(working, scope) == anew
    assert await working.fold(scope, SESSION, read=anew, summary=summary_to(3))


async def test_everything_can_be_folded_and_the_session_goes_on(
    working: WorkingMemory, scope: Scope
):
    read = await filled(working, scope, small_talk(4))
    assert await working.fold(scope, SESSION, read=read, summary=summary_to(4))
    assert await the_window(working, scope) == Window(summary=summary_to(4), last_seq=4, tokens=3)
    after = await filled(working, scope, small_talk(2, first=5))
    assert [message.seq for message in after.messages] == [5, 6]


async def test_a_summary_of_other_messages_than_were_read_is_refused(
    working: WorkingMemory, scope: Scope
):
    read = await filled(working, scope, small_talk(4))
    with pytest.raises(InvalidInput, match="up to 5"):
        await working.fold(scope, SESSION, read=read, summary=summary_to(5))
    with pytest.raises(InvalidInput, match="leaves a gap"):
        await working.fold(scope, SESSION, read=read, summary=summary_to(3, first=2))


@pytest.mark.parametrize("opening", [1, 3])
@pytest.mark.parametrize("together", [True, False])
async def test_instructions_that_opened_the_session_stay_through_every_fold(
    working: WorkingMemory, scope: Scope, opening: int, together: bool
):
    roles = ("system", "developer", "system")[:opening]
    instructions = [said(seq, role, f"rule {seq}") for seq, role in enumerate(roles, 1)]
    later = said(opening + 4, "system", "a later one")
    history = [*instructions, *small_talk(3, first=opening + 1), later]
    history += small_talk(3, first=opening + 5)
    for part in [history] if together else [[message] for message in history]:
        await filled(working, scope, part)
    for seq in (opening + 1, opening + 4, opening + 7):
        read = await the_window(working, scope)
        summary = summary_to(seq, first=opening + 1)
        assert await working.fold(scope, SESSION, read=read, summary=summary)
        after = await the_window(working, scope)
        assert after == fold(read, summary, size_of)
        assert after.messages == (*instructions, *history[seq:])


# --- rebuild and clear -------------------------------------------------------------------------


async def test_a_rebuilt_window_reads_as_it_was_given(working: WorkingMemory, scope: Scope):
    messages = small_talk(4, first=5)
    window = gather(messages, size_of, summary=summary_to(4))
    window = window.model_copy(update={"expired_at": messages[0].event_time})
    await working.rebuild(scope, SESSION, window, sizes(messages))
    assert await the_window(working, scope) == window
    after = await filled(working, scope, small_talk(2, first=9))
    assert (after.last_seq, after.expired_at) == (10, window.expired_at)
    assert await working.fold(scope, SESSION, read=after, summary=summary_to(6))


async def test_a_rebuild_never_takes_back_what_is_newer(working: WorkingMemory, scope: Scope):
    history = small_talk(8)
    read = await filled(working, scope, history)
    assert await working.fold(scope, SESSION, read=read, summary=summary_to(4))
    now = await the_window(working, scope)
    for older in (
        gather(history[:7], size_of),
        gather(history, size_of),
        gather(history[2:], size_of, summary=summary_to(2)),
    ):
        await working.rebuild(scope, SESSION, older, sizes(older.messages))
        assert await the_window(working, scope) == now
    for newer in (
        gather(history[6:], size_of, summary=summary_to(6)),
        gather(small_talk(9), size_of),
    ):
        await working.rebuild(scope, SESSION, newer, sizes(newer.messages))
        assert await the_window(working, scope) == newer


async def test_a_window_with_holes_cannot_be_put(working: WorkingMemory, scope: Scope):
    whole = small_talk(4)
    for messages, summary in [
        ([whole[0], whole[2]], None),
        (whole[2:], summary_to(1)),
    ]:
        holed = gather(messages, size_of, summary=summary)
        with pytest.raises(InvalidInput):
            await working.rebuild(scope, SESSION, holed, sizes(messages))
    assert await working.read(scope, SESSION) is None
    await working.rebuild(scope, SESSION, gather(whole, size_of), sizes(whole))
    assert await working.read(scope, SESSION) is not None


async def test_an_empty_window_is_not_put(working: WorkingMemory, scope: Scope):
    await working.rebuild(scope, SESSION, Window(), [])
    assert await working.read(scope, SESSION) is None


async def test_a_cleared_session_is_gone_and_others_remain(
    working: WorkingMemory, redis: Client, scope: Scope
):
    await filled(working, scope, small_talk(2))
    other = [said(1, "user", "other", session="tuesday")]
    assert await working.append(scope, "tuesday", other, [1])
    await working.clear(scope, SESSION)
    await working.clear(scope, SESSION)
    assert await redis.exists(*keys(scope)) == 0
    assert await working.read(scope, SESSION) is None
    assert await working.read(scope, "tuesday") is not None


# --- how long it lives -------------------------------------------------------------------------


async def expiries(redis: Client, scope: Scope) -> list[int]:
    """The moment in ms at which each key of the session expires; -1: never."""
    return [int(await redis.execute_command("PEXPIRETIME", key)) for key in keys(scope)]


async def test_all_keys_of_a_session_expire_at_one_moment_after_every_write(
    redis: Client, scope: Scope
):
    working = WorkingMemory(redis, ttl=HOUR)
    history = small_talk(8)
    seen = []
    read = await filled(working, scope, history[:6])
    seen.append(await expiries(redis, scope))
    assert await working.fold(scope, SESSION, read=read, summary=summary_to(4))
    seen.append(await expiries(redis, scope))
    newer = gather(history[4:], size_of, summary=summary_to(4))
    await working.rebuild(scope, SESSION, newer, sizes(newer.messages))
    seen.append(await expiries(redis, scope))
    read = await the_window(working, scope)
    assert await working.fold(scope, SESSION, read=read, summary=summary_to(8))
    await filled(working, scope, small_talk(1, first=9))
    seen.append(await expiries(redis, scope))
    for window, meta in seen:
        assert window == meta > 0
    ttl = await redis.pttl(keys(scope)[0])
    assert 0 < ttl <= 3_600_000


async def test_only_a_new_message_prolongs_the_life_of_a_session(redis: Client, scope: Scope):
    history = small_talk(4)
    read = await filled(WorkingMemory(redis, ttl=HOUR), scope, history)
    before = await expiries(redis, scope)
    patient = WorkingMemory(redis, ttl=2 * HOUR)
    await the_window(patient, scope)
    assert await patient.append(scope, SESSION, history, sizes(history))
    assert await patient.fold(scope, SESSION, read=read, summary=summary_to(2))
    await patient.health()
    assert await expiries(redis, scope) == before
    await filled(patient, scope, small_talk(1, first=5))
    assert min(await expiries(redis, scope)) >= before[0] + 3_000_000


async def test_without_a_time_to_live_no_key_expires(redis: Client, scope: Scope):
    await filled(WorkingMemory(redis, ttl=HOUR), scope, small_talk(2))
    assert min(await expiries(redis, scope)) > 0
    await filled(WorkingMemory(redis, ttl=None), scope, small_talk(2, first=3))
    assert await expiries(redis, scope) == [-1, -1]


async def test_an_expired_session_is_gone_whole_and_does_not_begin_again_in_the_middle(
    redis: Client, scope: Scope
):
    working = WorkingMemory(redis, ttl=timedelta(milliseconds=40))
    read = await filled(working, scope, small_talk(4))
    await working.fold(scope, SESSION, read=read, summary=summary_to(2))

    async def gone() -> bool:
        return await working.read(scope, SESSION) is None

    await until(gone)
    assert await redis.exists(*keys(scope)) == 0
    assert not await working.append(scope, SESSION, small_talk(1, first=5), [1])


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1), timedelta(microseconds=1)])
async def test_no_time_to_live_at_all_is_refused(redis: Client, ttl: timedelta):
    with pytest.raises(ConfigurationError):
        WorkingMemory(redis, ttl=ttl)


# --- what can go wrong with the store ----------------------------------------------------------


@pytest.mark.parametrize("evicted", [0, 1])
async def test_a_session_of_which_a_key_was_evicted_is_rebuilt_not_shown_in_part(
    working: WorkingMemory, redis: Client, scope: Scope, evicted: int
):
    history = small_talk(6)
    read = await filled(working, scope, history)
    await redis.delete(keys(scope)[evicted])
    assert await working.read(scope, SESSION) is None
    assert not await working.append(scope, SESSION, small_talk(1, first=7), [1])
    assert not await working.fold(scope, SESSION, read=read, summary=summary_to(2))
    await working.rebuild(scope, SESSION, read, sizes(history))
    assert await the_window(working, scope) == read


async def test_what_cannot_be_read_is_an_error_until_it_is_rebuilt(
    working: WorkingMemory, redis: Client, scope: Scope
):
    history = small_talk(2)
    before = await filled(working, scope, history)
    for garbage in (b'[1,{"role":"user"}]', b"[1,{", b"\xff\xfe", b"[]"):
        await redis.lset(keys(scope)[0], 0, garbage)
        with pytest.raises(Corrupt):
            await working.read(scope, SESSION)
        assert not await working.fold(scope, SESSION, read=before, summary=summary_to(1))
        await working.rebuild(scope, SESSION, before, sizes(history))
        assert await the_window(working, scope) == before


async def test_a_server_that_forgot_the_scripts_is_told_them_again(
    working: WorkingMemory, redis: Client, scope: Scope
):
    await filled(working, scope, small_talk(2))
    await redis.script_flush()
    await filled(working, scope, small_talk(2, first=3))


async def test_health_names_the_server_and_never_the_password(working: WorkingMemory):
    health = await working.health()
    assert (health.part, health.ok, health.problem) == ("working", True, "")
    assert health.version.split()[0] in ("redis", "valkey")
    assert redis_modes.PASSWORD not in health.model_dump_json()


@pytest.mark.parametrize(
    "nowhere",
    [
        "unix:///nowhere/at/all",
        "redis://user:hunter2@127.0.0.1:1/0",
        "redis+sentinel://:hunter2@127.0.0.1:1/primary",
        "redis+cluster://:hunter2@127.0.0.1:1",
    ],
)
async def test_a_server_that_is_not_there_is_a_tier_that_is_unavailable(nowhere: str, scope: Scope):
    async with open_redis(nowhere, timeout=timedelta(seconds=1)) as client:
        working = WorkingMemory(client, ttl=None)
        with pytest.raises(TierUnavailable) as caught:
            await working.read(scope, SESSION)
        assert caught.value.tier == "working"
        assert caught.value.__cause__ is not None
        health = await working.health()
    assert not health.ok
    assert health.problem
    assert "hunter2" not in str(caught.value) + health.model_dump_json()


async def test_a_wrong_password_is_a_tier_that_is_unavailable(redis_tls_url: str, scope: Scope):
    wrong = redis_tls_url.replace(redis_modes.PASSWORD, "hunter2")
    async with open_redis(wrong, timeout=PATIENCE) as client:
        with pytest.raises(TierUnavailable):
            await WorkingMemory(client, ttl=None).read(scope, SESSION)
    async with open_redis(redis_tls_url, timeout=PATIENCE) as client:
        assert await WorkingMemory(client, ttl=None).read(scope, SESSION) is None


# --- networks ----------------------------------------------------------------------------------


@pytest.fixture
async def proxied(redis_url: str) -> AsyncIterator[Proxy]:
    server = urlsplit(redis_url)
    async with proxy(server.hostname or "localhost", server.port or 6379) as through:
        yield through


def behind(through: Proxy, redis_url: str, query: str = "") -> str:
    server = urlsplit(redis_url)
    login = server.netloc.rpartition("@")[0]
    at = f"{login}@" if login else ""
    return f"redis://{at}127.0.0.1:{through.port}{server.path}?{query}"


async def test_a_cancelled_read_never_gives_its_answer_to_somebody_else(
    redis_url: str, proxied: Proxy, scope: Scope
):
    dice = random.Random(5)
    alice, bob = scope, Scope.of(scope.tenant, f"{scope.user}-bob")
    two = behind(proxied, redis_url, "max_connections=2")
    async with open_redis(two, timeout=PATIENCE) as client:
        working = WorkingMemory(client, ttl=None)
        for owner in (alice, bob):
            await filled(working, owner, small_talk(6, text=owner.user))
        hers, his = await the_window(working, alice), await the_window(working, bob)
        proxied.delay = timedelta(milliseconds=10)
        cancelled = 0
        for round_ in range(150):
            given_up = asyncio.create_task(
                working.read(alice, SESSION)
                if round_ % 2
                else working.fold(alice, SESSION, read=hers, summary=summary_to(2))
            )
            await asyncio.wait([given_up], timeout=dice.uniform(0, 0.02))
            cancelled += given_up.cancel()
            assert await the_window(working, bob) == his
        assert 20 < cancelled < 150
        proxied.delay = timedelta(0)
        assert await the_window(working, alice) == fold(hers, summary_to(2), size_of)
        together = await asyncio.gather(*(working.read(bob, SESSION) for _ in range(8)))
        assert together == [his] * 8
        assert proxied.open <= 2


async def test_a_cancelled_append_is_applied_wholly_or_not_at_all(
    redis_url: str, proxied: Proxy, scope: Scope
):
    dice = random.Random(6)
    async with open_redis(behind(proxied, redis_url), timeout=PATIENCE) as client:
        working = WorkingMemory(client, ttl=None)
        await filled(working, scope, small_talk(1))
        proxied.delay = timedelta(milliseconds=4)
        for start in range(2, 80, 2):
            pair = small_talk(2, first=start)
            given_up = asyncio.create_task(working.append(scope, SESSION, pair, sizes(pair)))
            await asyncio.wait([given_up], timeout=dice.uniform(0, 0.008))
            given_up.cancel()
            seen = await the_window(working, scope)
            assert seen.last_seq in (start - 1, start + 1)
            assert seen.tokens == sum(sizes(seen.messages))
            assert await working.append(scope, SESSION, pair, sizes(pair))
        assert [m.seq for m in (await the_window(working, scope)).messages] == [*range(1, 80)]


async def test_connections_that_were_cut_while_idle_are_made_again_and_nothing_is_applied_twice(
    redis_url: str, proxied: Proxy, scope: Scope
):
    async with open_redis(behind(proxied, redis_url), timeout=PATIENCE) as client:
        working = WorkingMemory(client, ttl=None)
        history = small_talk(8)
        for start in range(0, 8, 2):
            await filled(working, scope, history[start : start + 2])
            proxied.drop()
        assert (await the_window(working, scope)).messages == tuple(history)
        assert proxied.accepted > 1


async def test_an_answer_that_never_comes_leaves_the_fold_done_or_not_done(
    redis_url: str, proxied: Proxy, scope: Scope
):
    async with open_redis(redis_url, timeout=PATIENCE) as direct:
        read = await filled(WorkingMemory(direct, ttl=None), scope, small_talk(8))
        through = behind(proxied, redis_url)
        async with open_redis(through, timeout=timedelta(milliseconds=150)) as client:
            working = WorkingMemory(client, ttl=None)
            assert await working.read(scope, SESSION) == read
            proxied.freeze()
            with pytest.raises(TierUnavailable):
                await working.fold(scope, SESSION, read=read, summary=summary_to(4))
            proxied.thaw()
            assert await the_window(working, scope) == fold(read, summary_to(4), size_of)
            assert not await working.fold(scope, SESSION, read=read, summary=summary_to(4))


async def test_every_change_is_one_command_so_there_is_nothing_to_be_killed_between(
    redis_url: str, scope: Scope
):
    async with open_redis(redis_url, timeout=PATIENCE) as client:
        working = WorkingMemory(client, ttl=HOUR)
        history = small_talk(6)
        read = await filled(working, scope, history)
        newer = gather(history[4:], size_of, summary=summary_to(4))
        await working.fold(scope, SESSION, read=read, summary=summary_to(2))
        await working.rebuild(scope, SESSION, newer, sizes(newer.messages))
        changes: list[Callable[[], Awaitable[Any]]] = [
            lambda: working.append(scope, SESSION, small_talk(2, first=7), [1, 1]),
            lambda: working.rebuild(scope, SESSION, gather(small_talk(9), size_of), [20] * 9),
            lambda: working.read(scope, SESSION),
            lambda: working.clear(scope, SESSION),
        ]
        async with client.monitor() as monitor:
            for change in changes:
                await change()
            await client.echo(f"the end of {scope.user}")
            sent = []
            async for command in monitor.listen():
                if scope.user not in command["command"] or command["client_type"] == "lua":
                    continue
                name = command["command"].split()[0]
                if name == "ECHO":
                    break
                sent.append(name)
        assert sent == ["EVALSHA", "EVALSHA", "EVALSHA", "UNLINK"]


# --- processes ---------------------------------------------------------------------------------


@contextmanager
def a_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Redis of the test's own, that may be killed; started again on the same data."""
    reason = redis_modes.missing()
    if reason is not None:
        pytest.skip(reason)
    socket = folder / "socket"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    command += ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"unix://{socket}", server
    finally:
        server.kill()
        server.wait()


async def answers(working: WorkingMemory) -> bool:
    return (await working.health()).ok


async def test_a_server_that_is_killed_in_the_middle_of_folding_keeps_a_whole_window(
    tmp_path: Path, scope: Scope
):
    acknowledged = 0
    for life in range(3):
        with a_server(tmp_path) as (url, server):
            async with open_redis(url, timeout=timedelta(seconds=2)) as client:
                working = WorkingMemory(client, ttl=HOUR)
                await until(lambda working=working: answers(working))
                window = await working.read(scope, SESSION)
                if window is not None:
                    whole(window)
                    assert window.last_seq >= acknowledged
                last = window.last_seq if window else 0
                assert (window is None) == (life == 0)

                async def work(first: int = last, working: WorkingMemory = working) -> None:
                    nonlocal acknowledged
                    for seq in range(first + 1, 100_000):
                        assert await working.append(scope, SESSION, small_talk(1, first=seq), [20])
                        acknowledged = seq
                        read = await the_window(working, scope)
                        if away := plan(read, 200, size_of):
                            told = extend(read.summary, away, limit=50, count=len)
                            assert await working.fold(scope, SESSION, read=read, summary=told)

                working_on = asyncio.create_task(work())
                enough = acknowledged + 40

                async def has_worked(enough: int = enough) -> bool:
                    return acknowledged >= enough

                await until(has_worked)
                server.send_signal(signal.SIGKILL)
                with pytest.raises(TierUnavailable):
                    await working_on


def whole(window: Window) -> None:
    """Summary and messages follow on each other and end at the newest."""
    covered = window.summary.covers_to if window.summary else 0
    assert [m.seq for m in window.messages] == list(range(covered + 1, window.last_seq + 1))
    told = window.summary.tokens if window.summary else 0
    assert window.tokens == sum(sizes(window.messages)) + told


async def test_eight_processes_that_append_while_others_fold_lose_and_double_nothing(
    local: LocalStack, scope: Scope, tmp_path: Path
):
    log = tmp_path / "log.jsonl"
    spawn = multiprocessing.get_context("spawn")
    processes = [
        spawn.Process(
            target=append_all, args=(local.redis_url, scope.tenant, scope.user, log, number, 50)
        )
        for number in range(8)
    ]
    for process in processes:
        process.start()
    await asyncio.gather(*(asyncio.to_thread(process.join) for process in processes))
    assert [process.exitcode for process in processes] == [0] * 8
    history = written(log)
    assert len(history) == 400
    async with open_redis(local.redis_url, timeout=PATIENCE) as client:
        window = await the_window(WorkingMemory(client, ttl=None), scope)
    whole(window)
    assert window.last_seq == 400
    assert window.summary is not None
    assert window.messages == tuple(history[window.summary.covers_to :])
    assert window.tokens <= 1_000
    for number in range(8):
        own = [m.text for m in history if m.text.startswith(f"{number}:")]
        assert own == [f"{number}:{count}" for count in range(50)]


# --- limits ------------------------------------------------------------------------------------


async def test_a_window_stays_within_its_limit_and_the_key_holds_only_what_is_kept(
    working: WorkingMemory, redis: Client, url: str, scope: Scope
):
    for message in small_talk(50):
        read = await filled(working, scope, [message])
        if away := plan(read, 200, size_of):
            told = extend(read.summary, away, limit=summary_limit(200, 400), count=len)
            assert await working.fold(scope, SESSION, read=read, summary=told)
            read = await the_window(working, scope)
        assert read.tokens <= 200
    async with open_redis(url, timeout=PATIENCE) as other_client:
        other = await the_window(WorkingMemory(other_client, ttl=None), scope)
    assert other == read
    assert await redis.llen(keys(scope)[0]) == len(read.messages)
    whole(read)


async def test_a_driver_error_keeps_its_cause(scope: Scope):
    async with open_redis("redis://127.0.0.1:1", timeout=timedelta(seconds=1)) as client:
        with pytest.raises(TierUnavailable) as caught:
            await WorkingMemory(client, ttl=None).clear(scope, SESSION)
    assert isinstance(caught.value.__cause__, RedisConnectionError)
