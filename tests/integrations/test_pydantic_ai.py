"""pydantic-ai: histories, and the context of every request, with its own Agent."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    BinaryImage,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from memory import Memory
from memory.errors import BudgetError
from memory.integrations.pydantic_ai import History, MemoryContext
from tests.behaviour.conftest import Open
from tests.conversations import hostile_text

PNG = b"\x89PNG\xff\xfe\x00" * 200
RETRY: Any = RetryInfo(cause="no_output")
WHEN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

TALK: list[ModelMessage] = [
    ModelRequest(
        parts=[
            SystemPromptPart("Be brief.", timestamp=WHEN),
            UserPromptPart(
                [
                    "The weather in Oslo and in 北京?",
                    ImageUrl("https://example.org/x.png"),
                    BinaryImage(PNG, media_type="image/png"),
                    BinaryContent(b"%PDF", media_type="application/pdf"),
                ],
                timestamp=WHEN,
            ),
        ],
        instructions="Answer in English.",
        run_id="r1",
        metadata={"trace": 1},
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm " * 40, signature="sig"),
            TextPart("I shall look out of the window for you, and then tell you what I saw."),
            ToolCallPart("weather", {"city": "Oslo"}, tool_call_id="c1"),
            ToolCallPart("weather", '{"city": ', tool_call_id="c2"),
        ],
        model_name="m",
        timestamp=WHEN,
        run_id="r1",
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("weather", {"mm": [1.5, None]}, tool_call_id="c1", timestamp=WHEN),
            ToolReturnPart(
                "weather", "cut off", tool_call_id="c2", outcome="retried", timestamp=WHEN
            ),
        ]
    ),
    ModelResponse(parts=[ThinkingPart("only thinking")], timestamp=WHEN),
    ModelRequest(parts=[RetryFeedbackPart("Say something.", retry=RETRY, timestamp=WHEN)]),
    ModelResponse(parts=[TextPart("Rain.")], timestamp=WHEN),
]


@pytest.fixture
async def history(memory: Memory) -> History:
    return History("monday", memory.user("ada"))


def dumped(messages: Any) -> Any:
    return ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")


async def test_messages_of_every_kind_come_back(history: History, memory: Memory) -> None:
    await history.save(TALK)
    assert await history.load() == TALK
    assert await History("monday", memory.user("ada")).load() == TALK


async def test_saving_again_changes_nothing(history: History) -> None:
    for n in range(1, len(TALK) + 1):
        await history.save(TALK[:n])
    await history.save(await history.load())
    assert await history.load() == TALK


async def test_what_was_said_is_remembered_as_a_conversation(
    history: History, memory: Memory
) -> None:
    await history.save(TALK)
    messages = await (await history.current()).messages()
    assert [message.role.value for message in messages] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "assistant", "assistant",
    ]  # fmt: skip
    assert [call.id for call in messages[2].tool_calls] == ["c1", "c2"]
    stored = str([message.to_json() for message in messages])
    assert stored.count("iVBORw") <= 1
    assert stored.count("I shall look out of the window") == 1
    found = await memory.user("ada").recall("look out of the window")
    assert found.items[0].text.startswith("I shall look")


async def test_a_cleared_history_is_empty_and_takes_the_same_messages_anew(
    history: History,
) -> None:
    await history.save(TALK)
    await history.clear()
    assert await history.load() == []
    await history.save(TALK[:1])
    assert await history.load() == TALK[:1]


async def test_what_another_door_recorded_is_in_the_history(
    history: History, memory: Memory
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
    loaded = await history.load()
    assert [type(message.parts[0]) for message in loaded] == [
        UserPromptPart,
        ToolCallPart,
        ToolReturnPart,
    ]
    assert loaded[2].parts[0].tool_name == "f"  # type: ignore[union-attr]
    await history.save(loaded)
    assert len(await history.load()) == 6  # what others recorded has no identity here


async def test_it_works_from_another_event_loop(history: History) -> None:
    def elsewhere() -> Any:
        async def talk() -> Any:
            await history.save(TALK)
            return await history.load()

        return asyncio.run(talk())

    assert await asyncio.to_thread(elsewhere) == TALK


# --- the context of a request --------------------------------------------------------------------


class Scripted:
    """A model that keeps what it was asked, and answers in turn."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[list[ModelMessage]] = []
        self.instructions: list[str | None] = []
        self._answers = iter(answers)

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append(messages)
        self.instructions.append(info.instructions)
        answer = next(self._answers)
        return ModelResponse(parts=[TextPart(answer)] if isinstance(answer, str) else answer)


def said(messages: list[ModelMessage]) -> list[Any]:
    """What the messages say, without what memory lent them."""
    parts = [part for message in messages for part in message.parts]
    contents = [getattr(part, "content", getattr(part, "tool_name", None)) for part in parts]
    return [content for content in contents if "<memory-" not in str(content)]


async def test_an_agent_goes_on_where_it_was_and_knows_other_conversations(
    open_memory: Open,
) -> None:
    model = Scripted("Noted.", "Yes.", "Pippin.")
    async with open_memory() as memory:
        agent = _agent(model, History("monday", memory.user("ada")))
        first = await agent.run("My canary is called Pippin.")
        assert len(first.all_messages()) == 2
    async with open_memory() as memory:
        await _agent(model, History("monday", memory.user("ada"))).run("Are you there?")
        assert said(model.asked[1]) == [
            "My canary is called Pippin.",
            "Noted.",
            "Are you there?",
        ]
        assert model.instructions == ["Be kind.", "Be kind."]
        other = await _agent(model, History("tuesday", memory.user("ada"))).run("canary called?")
        assert "Pippin" in str(model.asked[2][0].parts[0])
        assert said(model.asked[2]) == ["canary called?"]
        assert dumped(other.all_messages())[0]["parts"][0]["content"] == "canary called?"
        loaded = await History("monday", memory.user("ada")).load()
        assert said(loaded) == ["My canary is called Pippin.", "Noted.", "Are you there?", "Yes."]


async def test_tools_are_called_in_the_middle_of_a_run_and_count(
    history: History, memory: Memory
) -> None:
    model = Scripted(
        [
            ToolCallPart("weather", {"city": "Oslo"}, tool_call_id="c1"),
            ToolCallPart("weather", {"city": "Rome"}, tool_call_id="c2"),
        ],
        "Rain in both.",
    )
    agent = _agent(model, history)

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"rain in {city}"

    result = await agent.run("The weather in Oslo and Rome?")
    newest = (await memory.user("ada").snapshots("monday"))[0]
    assert (await memory.user("ada").snapshot(newest.id)).tokens.tools > 0
    assert said(model.asked[1]) == [
        "The weather in Oslo and Rome?",
        "weather",
        "weather",
        "rain in Oslo",
        "rain in Rome",
    ]
    assert dumped(await history.load()) == dumped(result.all_messages())
    messages = await (await history.current()).messages()
    assert [m.role.value for m in messages] == ["user", "assistant", "tool", "tool", "assistant"]


async def test_system_prompts_are_sent_once_on_every_turn(history: History) -> None:
    model = Scripted("one", "two")
    agent: Agent[None, str] = Agent(
        FunctionModel(model),
        system_prompt="You are a guide.",
        capabilities=[MemoryContext(history, budget=2_000)],
    )
    await agent.run("first")
    await agent.run("second", message_history=await history.load())
    assert said(model.asked[0]) == ["You are a guide.", "first"]
    assert said(model.asked[1]) == ["You are a guide.", "first", "one", "second"]
    assert len(await history.load()) == 4


async def test_a_long_history_is_sent_within_the_budget(history: History) -> None:
    model = Scripted(*(f"answer {n} " + "word " * 60 for n in range(20)))
    agent = _agent(model, history, budget=900)
    for n in range(20):
        await agent.run(f"question {n} " + "word " * 60)
    assert len(str(said(model.asked[0]))) < len(str(said(model.asked[19]))) < 900 * 5
    assert said(model.asked[19])[-1].startswith("question 19")
    assert len(await history.load()) == 40


async def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers(history: History) -> None:
    model = Scripted("never")
    with pytest.raises(BudgetError, match="500"):
        await _agent(model, history, budget=500).run("word " * 1_000)
    assert model.asked == []


def _agent(model: Scripted, history: History, budget: int = 2_000) -> Agent[None, str]:
    return Agent(
        FunctionModel(model),
        instructions="Be kind.",
        capabilities=[MemoryContext(history, budget=budget)],
    )


texts = hostile_text.filter(lambda text: "<memory-" not in text)
calls = st.sampled_from(["a", "b"])
request_parts = st.one_of(
    st.builds(lambda text: UserPromptPart(text, timestamp=WHEN), texts),
    st.builds(
        lambda items: UserPromptPart(items, timestamp=WHEN),
        st.lists(texts | st.just(BinaryImage(PNG, media_type="image/png")), max_size=3),
    ),
    st.builds(lambda text: SystemPromptPart(text, timestamp=WHEN), texts),
    st.builds(lambda text, call: ToolReturnPart("f", text, call, timestamp=WHEN), texts, calls),
)
response_parts = st.one_of(
    st.builds(TextPart, texts),
    st.builds(ThinkingPart, texts),
    st.builds(lambda args, call: ToolCallPart("f", args, tool_call_id=call), texts, calls),
)
any_messages = st.one_of(
    st.builds(lambda parts: ModelRequest(parts=parts), st.lists(request_parts, max_size=3)),
    st.builds(
        lambda parts: ModelResponse(parts=parts, timestamp=WHEN),
        st.lists(response_parts, max_size=3),
    ),
)
numbers = itertools.count()


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(messages=st.lists(any_messages, max_size=6))
async def test_any_messages_come_back(memory: Memory, messages: list[ModelMessage]) -> None:
    history = History(f"session {next(numbers)}", memory.user("ada"))
    await history.save(messages)
    assert dumped(await history.load()) == dumped(messages)
    await history.save(messages)
    assert dumped(await history.load()) == dumped(messages)
