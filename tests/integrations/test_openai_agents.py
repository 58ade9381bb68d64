"""The Session of the OpenAI Agents SDK, with the SDK's own Runner and its scripted model."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
from typing import Any

import pytest
from agents import Agent, Runner, SessionSettings, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import Memory
from memory.errors import ConfigurationError, InvalidInput
from memory.integrations.openai_agents import TrimemSession
from tests.behaviour.conftest import Open
from tests.conversations import hostile_text

set_tracing_disabled(True)

LONG = "I would like to hear a long story about the lighthouse keeper. " * 5
IMAGE = "data:image/png;base64," + "iVBORw0KGgo" * 200

TURN: list[Any] = [
    {"role": "user", "content": "What is the weather in Oslo and in 北京?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA" * 30},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": LONG, "annotations": [], "logprobs": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "weather",
        "arguments": '{"city": "Oslo", "note": "' + "x" * 50 + '"}',
        "status": "completed",
    },
    {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": '{"city":"北京"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    {
        "type": "function_call_output",
        "call_id": "c2",
        "output": [
            {"type": "input_text", "text": "sun"},
            {"type": "input_image", "image_url": IMAGE},
        ],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "oslo"}},
    {"type": "custom_tool_call", "call_id": "c3", "name": "sh", "input": "ls -l", "id": "ct"},
    {"type": "custom_tool_call_output", "call_id": "c3", "output": "total 0"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "And this?", "$said": 1},
            {"type": "input_image", "image_url": IMAGE, "detail": "low"},
            {"type": "input_file", "file_id": "file_1"},
        ],
    },
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I would rather not."}]},
    {"role": "developer", "content": "Be brief."},
    {"type": "item_reference", "id": "msg_0"},
    {"type": "reasoning", "id": "rs_2", "summary": [{"$said": 0}], "content": {"$kept": {"a": 1}}},
]


@pytest.fixture
async def session(memory: Memory) -> TrimemSession:
    return TrimemSession("monday", memory.user("ada"))


async def test_it_is_a_session_of_the_sdk(session: TrimemSession) -> None:
    assert isinstance(session, Session)


async def test_items_of_every_kind_come_back_word_for_word(
    session: TrimemSession, memory: Memory
) -> None:
    await session.add_items(TURN)
    assert await session.get_items() == TURN
    assert await TrimemSession("monday", memory.user("ada")).get_items() == TURN


async def test_items_of_every_kind_come_back_when_each_is_added_alone(
    session: TrimemSession,
) -> None:
    for item in TURN:
        await session.add_items([item])
    assert await session.get_items() == TURN


async def test_a_long_text_or_an_image_is_kept_once(session: TrimemSession) -> None:
    await session.add_items(TURN)
    stored = [m.to_json() for m in await (await session.current()).messages()]
    assert json.dumps(stored).count(LONG) == 1
    assert json.dumps(stored).count(IMAGE) == 2  # the tool's, and the user's


async def test_what_was_said_is_remembered_as_a_conversation(session: TrimemSession) -> None:
    await session.add_items(TURN)
    messages = await (await session.current()).messages()
    assert [message.role.value for message in messages] == [
        "user", "assistant", "tool", "tool", "assistant", "tool", "user", "assistant", "developer",
    ]  # fmt: skip
    assert [call.id for call in messages[1].tool_calls] == ["c1", "c2"]
    context = await (await session.current()).build_context("so?", budget=3_000)
    assert "framework" not in json.dumps(context.messages)
    found = await session._door.user.recall("story about the lighthouse keeper")
    assert found.items[0].role == "assistant"
    assert found.items[0].metadata == {}


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 7, 14, 100])
async def test_a_limit_gives_the_newest_items(session: TrimemSession, limit: int) -> None:
    await session.add_items(TURN)
    assert await session.get_items(limit) == (TURN[-limit:] if limit else [])


async def test_the_sessions_own_limit_holds_unless_another_is_given(memory: Memory) -> None:
    session = TrimemSession("monday", memory.user("ada"), session_settings=SessionSettings(limit=2))
    await session.add_items(TURN)
    assert await session.get_items() == TURN[-2:]
    assert await session.get_items(3) == TURN[-3:]


async def test_popping_gives_the_newest_until_nothing_is_left(session: TrimemSession) -> None:
    await session.add_items(TURN)
    for n in range(len(TURN), 0, -1):
        assert await session.pop_item() == TURN[n - 1]
        assert await session.get_items() == TURN[: n - 1]
        assert await session.get_items(2) == TURN[: n - 1][-2:]
    assert await session.pop_item() is None
    await session.add_items(TURN[:1])
    assert await session.get_items() == TURN[:1]


async def test_two_that_pop_at_once_get_different_items(memory: Memory) -> None:
    sessions = [TrimemSession("monday", memory.user("ada")) for _ in range(4)]
    items: list[Any] = [{"role": "user", "content": f"number {n}"} for n in range(8)]
    await sessions[0].add_items(items)
    popped = await asyncio.gather(*(session.pop_item() for session in sessions))
    assert sorted(map(str, popped)) == sorted(map(str, items[4:]))
    assert await sessions[0].get_items() == items[:4]


async def test_a_cleared_session_is_empty_and_goes_on_but_what_was_said_is_remembered(
    session: TrimemSession, memory: Memory
) -> None:
    await session.clear_session()
    await session.add_items([{"role": "user", "content": "My canary is called Pippin."}])
    before = await session.current()
    await session.clear_session()
    other = TrimemSession("monday", memory.user("ada"))
    assert await session.get_items() == await other.get_items() == []
    assert (await (await session.current()).window()).messages == ()
    await other.add_items([{"role": "user", "content": "Hello again."}])
    assert await session.get_items() == [{"role": "user", "content": "Hello again."}]
    assert len(await before.messages()) == 1
    found = await memory.user("ada").recall("canary called Pippin")
    assert "Pippin" in found.items[0].text


async def test_clearing_at_once_clears_once(memory: Memory) -> None:
    sessions = [TrimemSession("monday", memory.user("ada")) for _ in range(3)]
    await sessions[0].add_items([{"role": "user", "content": "hello"}])
    await asyncio.gather(*(session.clear_session() for session in sessions))
    names = {(await session.current()).name for session in sessions}
    assert len(names) == 1
    assert next(iter(names)).startswith("monday#2-")


async def test_sessions_are_of_one_user(memory: Memory) -> None:
    await TrimemSession("monday", memory.user("ada")).add_items(TURN)
    assert await TrimemSession("monday", memory.user("ben")).get_items() == []
    assert await TrimemSession("monday", memory.user("ada")).get_items() == TURN


async def test_what_another_door_recorded_is_in_the_history(
    session: TrimemSession, memory: Memory
) -> None:
    await memory.user("ada").session("monday").record(user="Hello", assistant="Good morning")
    assert await session.get_items() == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Good morning"},
    ]


async def test_a_block_that_a_context_lent_is_not_taken_for_speech(session: TrimemSession) -> None:
    await session.add_items([{"role": "user", "content": "My canary is called Pippin."}])
    context = await (await session.current()).build_context("What is my canary called?")
    lent = next(m for m in context.messages if "<memory-" in str(m["content"]))
    said = f"{lent['content']}\n\nWhat is my canary called?"
    await session.add_items([{"role": "user", "content": [{"type": "input_text", "text": said}]}])
    assert (await session.get_items())[-1] == {
        "role": "user",
        "content": [{"type": "input_text", "text": "What is my canary called?"}],
    }


async def test_secrets_are_masked_in_the_history_and_what_is_encrypted_is_kept(
    session: TrimemSession,
) -> None:
    key = "sk-ant-api03-" + "Zx9Q7r" * 12
    sealed = base64.b64encode(hashlib.sha512(b"reasoning").digest() * 8).decode()
    await session.add_items(
        [
            {"role": "user", "content": f"My key is {key}, and this is a long enough sentence."},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed},
            {"type": "function_call_output", "call_id": "c", "output": [{"note": f"key: {key}"}]},  # type: ignore[list-item, typeddict-item]
        ]
    )
    items: Any = await session.get_items()
    assert key not in str(items)
    assert "[redacted: " in items[0]["content"]
    assert items[1]["encrypted_content"] == sealed


async def test_an_item_that_json_cannot_hold_is_refused_and_nothing_is_kept(
    session: TrimemSession,
) -> None:
    bad: Any = {"role": "user", "content": "hi", "score": float("nan")}
    with pytest.raises(InvalidInput, match="score"):
        await session.add_items([{"role": "user", "content": "hello"}, bad])
    assert await session.get_items() == []


async def test_it_works_from_another_event_loop(session: TrimemSession) -> None:
    def elsewhere() -> Any:
        async def talk() -> Any:
            await session.add_items(TURN)
            return await session.get_items()

        return asyncio.run(talk())

    assert await asyncio.to_thread(elsewhere) == TURN


async def test_it_is_made_where_the_memory_is_open(memory: Memory) -> None:
    with pytest.raises(ConfigurationError, match=r"memory\.sync"):
        await asyncio.to_thread(TrimemSession, "monday", memory.user("ada"))


async def test_the_runner_keeps_a_tool_using_conversation_over_processes(
    open_memory: Open,
) -> None:
    @function_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"rain in {city}"

    model = ScriptedModel(
        [
            [
                function_call("weather", {"city": "Oslo"}, call_id="c1"),
                function_call("weather", {"city": "Rome"}, call_id="c2"),
            ],
            [assistant_message("Rain in both.")],
            [assistant_message("You asked about Oslo and Rome.")],
        ]
    )
    agent = Agent(name="guide", model=model, tools=[weather])
    async with open_memory() as memory:
        session = TrimemSession("monday", memory.user("ada"))
        first = await Runner.run(agent, "The weather in Oslo and Rome?", session=session)
        assert first.final_output == "Rain in both."
    async with open_memory() as memory:
        session = TrimemSession("monday", memory.user("ada"))
        second = await Runner.run(agent, "What did I ask about?", session=session)
        sent = model.calls[-1].input
        assert isinstance(sent, list)
        assert sent[:-1] == first.to_input_list()
        assert await session.get_items() == second.to_input_list()
        messages = await (await session.current()).messages()
        assert [message.role.value for message in messages[:5]] == [
            "user", "assistant", "tool", "tool", "assistant",
        ]  # fmt: skip


texts = hostile_text.filter(lambda text: "<memory-" not in text)
parts = st.one_of(
    st.builds(lambda text: {"type": "input_text", "text": text}, texts),
    st.just({"type": "input_image", "image_url": IMAGE, "detail": "auto"}),
    st.dictionaries(st.sampled_from(["$said", "$kept", "type", "x"]), st.integers(), max_size=2),
)
items_of_any_kind = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant", "system", "developer", "critic"]),
        texts | st.lists(parts, max_size=3),
    ),
    st.builds(
        lambda call, text, extra: {
            "type": "function_call", "call_id": call, "name": "f", "arguments": text, **extra,
        },
        st.sampled_from(["a", "b", ""]),
        texts,
        st.sampled_from([{}, {"id": "x"}, {"status": None}]),
    ),
    st.builds(
        lambda call, out: {"type": "function_call_output", "call_id": call, "output": out},
        st.sampled_from(["a", "b", ""]),
        texts | st.lists(parts, max_size=3),
    ),
    st.builds(
        lambda kind, text: {"type": kind, "id": text, "n": [1, 2.5, None, {"$said": text}]},
        st.sampled_from(["reasoning", "computer_call", "unknown"]),
        texts,
    ),
)  # fmt: skip


numbers = itertools.count()


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(batches=st.lists(st.lists(items_of_any_kind, max_size=5), max_size=4))
async def test_any_items_in_any_batches_come_back(memory: Memory, batches: list[list[Any]]) -> None:
    session = TrimemSession(f"session {next(numbers)}", memory.user("ada"))
    for batch in batches:
        await session.add_items(batch)
    added = [item for batch in batches for item in batch]
    assert await session.get_items() == added
    if added:
        assert await session.pop_item() == added[-1]
        assert await session.get_items() == added[:-1]
