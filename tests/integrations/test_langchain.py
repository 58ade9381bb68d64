"""LangChain's chat history, alone and under RunnableWithMessageHistory."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from memory import Memory
from memory import sync as blocking
from memory.errors import ConfigurationError, InvalidInput
from memory.integrations.langchain import TrimemChatMessageHistory, model_input
from memory.settings import Settings
from tests.conversations import hostile_text

pytestmark = pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")

IMAGE = "data:image/png;base64," + "iVBORw0KGgo" * 200
INVALID = "invalid_tool_call"
LONG = "The lighthouse keeper went down to the harbour. " * 10

TALK: list[BaseMessage] = [
    SystemMessage("Be brief."),
    SystemMessage("As the developer says.", additional_kwargs={"__openai_role__": "developer"}),
    HumanMessage("The weather in Oslo and in 北京?", id="h1", name="Ada Lovelace"),
    AIMessage(
        [
            {"type": "thinking", "thinking": "hm " * 40, "signature": "sig"},
            {"type": "text", "text": LONG},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
        ],
        tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}],
        invalid_tool_calls=[
            {"name": "weather", "args": '{"city": ', "id": "c2", "error": "", "type": INVALID}
        ],
        usage_metadata={"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
        response_metadata={"model": "m", "finish_reason": "tool_calls"},
        id="run--1",
    ),
    ToolMessage("rain", tool_call_id="c1", artifact={"mm": [1.5, 2]}, status="success"),
    ToolMessage(["cut", {"type": "text", "text": "short"}], tool_call_id="c2", status="error"),
    AIMessage("", id="empty"),
    AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": None}]),
    HumanMessage(
        [
            "And this?",
            {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
            {"type": "image", "base64": "iVBO", "mime_type": "image/png"},
        ]
    ),
    AIMessageChunk("A lighthouse", id="run--2"),
    ChatMessage("I disagree.", role="critic"),
    FunctionMessage("42", name="answer"),
]  # fmt: skip


@pytest.fixture
async def history(memory: Memory) -> TrimemChatMessageHistory:
    return TrimemChatMessageHistory("monday", memory.user("ada"))


async def test_messages_of_every_kind_come_back_with_every_field(
    history: TrimemChatMessageHistory, memory: Memory
) -> None:
    await history.aadd_messages(TALK)
    assert await history.aget_messages() == TALK
    again = TrimemChatMessageHistory("monday", memory.user("ada"))
    assert await again.aget_messages() == TALK


async def test_what_was_said_is_remembered_as_a_conversation(
    history: TrimemChatMessageHistory, memory: Memory
) -> None:
    await history.aadd_messages(TALK)
    messages = await (await history.current()).messages()
    assert [message.role.value for message in messages] == [
        "system", "developer", "user", "assistant", "tool", "tool", "assistant", "assistant",
        "user", "assistant", "user", "tool",
    ]  # fmt: skip
    said = messages[3]
    assert said.text == LONG
    assert [(call.id, call.arguments) for call in said.tool_calls] == [
        ("c1", '{"city":"Oslo"}'),
        ("c2", '{"city": '),
    ]
    assert str(said.to_json()).count(LONG) == 1
    assert (await memory.user("ada").recall("lighthouse keeper")).items[0].text == LONG


async def test_a_message_with_an_id_is_added_once(history: TrimemChatMessageHistory) -> None:
    await history.aadd_messages([HumanMessage("Hello", id="1"), AIMessage("Hi", id="2")])
    await history.aadd_messages([AIMessage("Hi", id="2"), HumanMessage("Bye", id="3")])
    await history.aadd_messages([HumanMessage("ok"), HumanMessage("ok")])
    texts = [message.content for message in await history.aget_messages()]
    assert texts == ["Hello", "Hi", "Bye", "ok", "ok"]


async def test_a_cleared_history_is_empty_and_takes_the_same_ids_anew(
    history: TrimemChatMessageHistory, memory: Memory
) -> None:
    await history.aadd_messages([HumanMessage("My canary is called Pippin.", id="1")])
    await history.aclear()
    assert await history.aget_messages() == []
    await history.aadd_messages([HumanMessage("Hello", id="1")])
    assert [message.content for message in await history.aget_messages()] == ["Hello"]
    assert "Pippin" in (await memory.user("ada").recall("canary called Pippin")).items[0].text


async def test_a_removal_is_no_message(history: TrimemChatMessageHistory) -> None:
    with pytest.raises(InvalidInput, match="RemoveMessage"):
        await history.aadd_messages([HumanMessage("Hello"), RemoveMessage(id="1")])
    assert await history.aget_messages() == []


async def test_what_json_cannot_hold_is_refused_by_name(history: TrimemChatMessageHistory) -> None:
    odd = ToolMessage("ok", tool_call_id="c", artifact=object())
    with pytest.raises(InvalidInput, match=r"data\.artifact"):
        await history.aadd_messages([odd])
    assert await history.aget_messages() == []


async def test_what_another_door_recorded_is_in_the_history(
    history: TrimemChatMessageHistory, memory: Memory
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    await (
        memory.user("ada")
        .session("monday")
        .record(
            messages=[
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": "1", "tool_call_id": "c"},
            ]
        )
    )
    assert await history.aget_messages() == [
        HumanMessage("Hello"),
        AIMessage("", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "c"}]),
        ToolMessage("1", tool_call_id="c"),
    ]


async def test_a_context_goes_into_a_chat_model(history: TrimemChatMessageHistory) -> None:
    await history.aadd_messages(TALK)
    context = await (await history.current()).build_context("So?", system="Be kind.", budget=3_000)
    messages = model_input(context)
    assert messages[0] == SystemMessage("Be kind.")
    assert messages[-1] == HumanMessage("So?")
    assert len(messages) == len(context.messages)


async def test_threads_may_block_but_not_the_memorys_own_loop(
    history: TrimemChatMessageHistory,
) -> None:
    await asyncio.to_thread(history.add_messages, TALK)
    assert await asyncio.to_thread(lambda: history.messages) == TALK
    with pytest.raises(ConfigurationError, match="await the async method"):
        history.add_user_message("Hello")
    await asyncio.to_thread(history.clear)
    assert await history.aget_messages() == []


async def test_a_chain_has_its_history(memory: Memory) -> None:
    chain = _chain(["Hello Ada.", "You are Ada."], memory.user("ada"))
    config: Any = {"configurable": {"session_id": "monday"}}
    await chain.ainvoke({"input": "I am Ada."}, config)
    await chain.ainvoke({"input": "Who am I?"}, config)
    history = TrimemChatMessageHistory("monday", memory.user("ada"))
    assert [message.content for message in await history.aget_messages()] == [
        "I am Ada.",
        "Hello Ada.",
        "Who am I?",
        "You are Ada.",
    ]


def test_a_chain_has_its_history_without_an_event_loop(urls: dict[str, str], scope: Any) -> None:
    settings = Settings.model_validate({**urls, "tenant": scope.tenant})
    with blocking.open(settings=settings) as memory:
        chain = _chain(["Hello Ada.", "You are Ada."], memory.user("ada"))
        config: Any = {"configurable": {"session_id": "monday"}}
        chain.invoke({"input": "I am Ada."}, config)
        assert chain.invoke({"input": "Who am I?"}, config).content == "You are Ada."
        history = TrimemChatMessageHistory("monday", memory.user("ada"))
        assert len(history.messages) == 4
        assert asyncio.run(history.aget_messages()) == history.messages


def _chain(answers: list[str], user: Any) -> Any:
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("history"), ("human", "{input}")]
    )
    model = FakeMessagesListChatModel(responses=[AIMessage(answer) for answer in answers])
    return RunnableWithMessageHistory(
        prompt | model,
        lambda session_id: TrimemChatMessageHistory(session_id, user),
        input_messages_key="input",
        history_messages_key="history",
    )


texts = hostile_text.filter(lambda text: "<memory-" not in text)
extras = st.dictionaries(
    st.sampled_from(["$said", "$kept", "x"]), st.integers() | texts, max_size=2
)
blocks = texts | st.builds(lambda text: {"type": "text", "text": text}, texts) | extras
contents = texts | st.lists(blocks, max_size=3)
calls = st.lists(
    st.builds(
        lambda call, args: {"name": "f", "args": args, "id": call, "type": "tool_call"},
        st.none() | st.sampled_from(["a", "b"]),
        extras,
    ),
    max_size=2,
)
any_messages = st.one_of(
    st.builds(HumanMessage, contents, additional_kwargs=extras, name=st.none() | texts),
    st.builds(AIMessage, contents, tool_calls=calls, response_metadata=extras),
    st.builds(SystemMessage, contents),
    st.builds(ToolMessage, contents, tool_call_id=st.sampled_from(["a", "b", ""]), artifact=extras),
)
numbers = itertools.count()


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(batches=st.lists(st.lists(any_messages, max_size=4), max_size=4))
async def test_any_messages_in_any_batches_come_back(
    memory: Memory, batches: list[list[BaseMessage]]
) -> None:
    history = TrimemChatMessageHistory(f"session {next(numbers)}", memory.user("ada"))
    for batch in batches:
        await history.aadd_messages(batch)
    assert await history.aget_messages() == [message for batch in batches for message in batch]
