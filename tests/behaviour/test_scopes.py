"""Nobody reads anybody else's memory: every public way of reading, with its positive control."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

import pytest

from memory import Memory
from memory.errors import NotFound
from memory.memory import Session, UserMemory
from memory.models import Value

Read = Callable[[UserMemory], Awaitable[object]]

READS: dict[str, Read] = {
    "recall": lambda user: user.recall("Where do I live?"),
    "facts": lambda user: user.facts(),
    "facts about": lambda user: user.facts(about="user"),
    "facts, history": lambda user: user.facts(history=True),
    "episodes": lambda user: user.episodes(archived=True),
    "sessions": lambda user: user.sessions(),
    "window": lambda user: user.session("default").window(),
    "messages": lambda user: user.session("default").messages(),
    "build_context": lambda user: user.session("fresh").build_context("Where do I live?"),
    "snapshots": lambda user: user.snapshots(),
}
OTHER = {"same tenant": ("bob", None), "same name, other tenant": ("alice", "elsewhere")}


def shown(answer: object) -> str:
    items = answer if isinstance(answer, list) else [answer]
    return " ".join(
        item.model_dump_json() if isinstance(item, Value) else repr(item) for item in items
    )


@pytest.fixture
async def alice(memory: Memory) -> UserMemory:
    user = memory.user("alice")
    session = user.session("default")
    await session.record(user="I live in Lyon and my PIN is blue.", assistant="Lyon, noted.")
    await session.build_context("Where do I live?")
    await memory.settled()
    return user


@pytest.mark.parametrize("other", OTHER)
@pytest.mark.parametrize("read", READS)
async def test_no_read_shows_another_users_memory(
    memory: Memory, alice: UserMemory, read: str, other: str
) -> None:
    name, tenant = OTHER[other]
    if tenant is not None:
        tenant = f"{alice.scope.tenant}-{tenant}"
    stranger = memory.user(name, tenant=tenant)
    await stranger.session("mine").record(user="I live in Osaka.", assistant="Osaka, noted.")
    seen = shown(await READS[read](stranger))
    assert "Lyon" not in seen
    assert "PIN" not in seen
    own = shown(await READS[read](alice))
    wanted = {"sessions": "default", "snapshots": "default"}.get(read, "Lyon")
    assert wanted in own


@pytest.mark.parametrize("other", OTHER)
async def test_a_snapshot_of_another_user_does_not_exist(
    memory: Memory, alice: UserMemory, other: str
) -> None:
    (info,) = await alice.snapshots()
    name, tenant = OTHER[other]
    stranger = memory.user(name, tenant=f"{alice.scope.tenant}-{tenant}" if tenant else None)
    for call in (stranger.snapshot, stranger.replay):
        with pytest.raises(NotFound):
            await call(info.id)
        assert await getattr(alice, call.__name__)(info.id)
    with pytest.raises(NotFound):
        await stranger.diff(info.id, info.id)
    assert (await alice.diff(info.id, info.id)).is_empty


async def test_writing_to_ones_own_session_leaves_the_others_of_that_name_alone(
    memory: Memory, alice: UserMemory
) -> None:
    bob = memory.user("bob")
    before = await alice.session("default").messages()
    await bob.session("default").record(user="Mine alone.")
    await bob.archive([episode.id for episode in await alice.episodes()], run_id="by hand")
    assert await alice.session("default").messages() == before
    assert len(await alice.episodes()) == len(before)
    assert [message.text for message in await bob.session("default").messages()] == ["Mine alone."]


def test_no_read_or_write_can_be_spelt_without_a_scope() -> None:
    """What Memory itself offers is about the store as a whole; memories are behind `user(…)`."""
    operators = {
        "open", "user", "settled", "lags", "health", "settings", "scopes", "exclusive", "note",
        "noted", "prepare", "rebuild", "reembed", "relayout", "repair", "llm", "registry", "unread",
    }  # fmt: skip
    public = {name for name in vars(Memory) if not name.startswith("_")}
    assert public == operators
    required = inspect.signature(Memory.user).parameters["name"]
    assert required.default is inspect.Parameter.empty
    for kind in (UserMemory, Session):
        for name, method in inspect.getmembers(kind, inspect.iscoroutinefunction):
            widening = {"user_id", "scope", "tenant"}
            assert not widening & set(inspect.signature(method).parameters), name
