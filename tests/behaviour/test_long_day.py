"""A day on which somebody talks for 24 hours: whatever is said, what is kept stays within bounds,
every context can be sent, and nothing is lost."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from memory import Memory
from memory.compaction import LONGEST_PAUSE
from memory.errors import LLMError, LLMMalformed, LLMRefused, LLMUnavailable
from memory.models import Context, Scope, Summary
from memory.projections import SUMMARY
from memory.settings import Settings
from tests.behaviour.conftest import Clock
from tests.conversations import check_anthropic, check_openai
from tests.scripted_llm import Asked, ScriptedLLM
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(minutes=2)
LOCAL_ONLY = pytest.mark.parametrize("urls", ["local"], indirect=True)
LIMIT, SUMMARY_LIMIT, BUDGET = 4_000, 400, 3_000
SYSTEM = "You are the harbour master's assistant.\n\n  Keep this indent."

Turn = list[dict[str, Any]]
OpenWith = Callable[..., AbstractAsyncContextManager[Memory]]

PEOPLE = ["Ada", "Bert", "Chidi", "Dana", "小明", "Олег"]
THINGS = ["ferry", "crane", "red kayak", "night shift", "berth list", "lighthouse", "fuel order"]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@pytest.fixture
def open_with(urls: dict[str, str], clock: Clock, scope: Scope) -> OpenWith:
    @asynccontextmanager
    async def open_it(llm: ScriptedLLM | None = None) -> AsyncIterator[Memory]:
        sizes = {"window_tokens": LIMIT, "summary_tokens": SUMMARY_LIMIT}
        settings = Settings.model_validate({**urls, "tenant": scope.tenant, **sizes})
        async with Memory.open(
            settings=settings, embedder=StubEmbedder(), llm=llm, clock=clock
        ) as memory:
            yield memory

    return open_it


def turn(number: int, chance: random.Random) -> Turn:
    """One turn of such a day; the user's message carries its number."""
    who, what = chance.choice(PEOPLE), chance.choice(THINGS)
    asked = f"Turn {number}: {who} asks about the {what}, is it ready by {number % 24}:00?"
    answer = f"Yes, the {what} is ready; {who} was told at {number % 12 + 1} o'clock."
    kind = chance.choices(
        ["chat", "tools", "picture", "chinese", "paste", "open call"], [60, 14, 6, 14, 4, 2]
    )[0]
    if kind == "chat":
        return [user(asked), assistant(answer)]
    if kind == "picture":
        parts = [{"type": "text", "text": asked}, PICTURE]
        return [user(parts), assistant(answer)]
    if kind == "chinese":
        said = f"第{number}轮:{who}问渡轮几点离开码头,需要带多少现金? Turn {number}:"
        return [user(said), assistant("渡轮九点离开,天黑之前回来,带两百就够了。")]
    if kind == "paste":
        lines = "".join(
            f"berth {n}: {chance.choice(THINGS)}, {chance.choice(PEOPLE)}; " for n in range(90)
        )
        return [user(f"{asked}\n{lines}"), assistant("Thank you, I have the list.")]
    calls = [f"call_{n}" for n in range(chance.randint(1, 3))]  # the same ids come again
    made = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": each,
                "type": "function",
                "function": {"name": "look_up", "arguments": f'{{"thing": "{what}"}}'},
            }
            for each in calls
        ],
    }
    rows = f'{{"rows": [{{"{what}": "ready", "by": "{who}"}}]}} ' * chance.randint(1, 12)
    results = [{"role": "tool", "tool_call_id": each, "content": rows} for each in calls]
    if kind == "open call":
        return [user(asked), made, *results[1:]]
    return [user(asked), made, *results, assistant(answer)]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def require_sendable(context: Context, question: str) -> None:
    assert context.tokens.total <= BUDGET
    assert context.messages[0] == {"role": "system", "content": SYSTEM}
    assert context.messages[-1]["content"] == question
    assert check_openai(context.openai()) == []
    assert check_anthropic(context.anthropic(cache=True)) == []


async def require_bounded(memory: Memory, session: str) -> None:
    window = await memory.user("ada").session(session).window()
    assert window.tokens <= LIMIT
    if window.summary is not None:
        assert window.summary.tokens <= SUMMARY_LIMIT
        first = window.messages[0].seq
        assert window.summary.covers_to + window.unsummarised == first - 1


async def require_complete(memory: Memory, session: str, turns: int, messages: int) -> None:
    """Every message is in the journal, and each summary goes on where the one before ended."""
    recorded = await memory.user("ada").session(session).messages()
    assert [message.seq for message in recorded] == list(range(1, messages + 1))
    users = [message.text for message in recorded if message.role.value == "user"]
    assert len(users) == turns
    assert all(f"Turn {number}:" in text for number, text in enumerate(users, 1))
    parts = memory._parts
    scope = memory.user("ada").scope
    events = await parts.journal.events_of(scope, kinds=[SUMMARY], session=session)
    told = [Summary.from_json(event.body) for event in events]
    assert {summary.covers_from for summary in told} == {1}
    ends = [summary.covers_to for summary in told]
    assert ends == sorted(set(ends))
    assert len(ends) > turns / 100


@LOCAL_ONLY
async def test_a_day_of_five_thousand_turns_stays_within_its_bounds(
    open_with: OpenWith, clock: Clock
) -> None:
    turns, chance, messages = 5_000, random.Random(5), 0
    async with open_with() as memory:
        session = memory.user("ada").session("day")
        for number in range(1, turns + 1):
            said = turn(number, chance)
            messages += len(said)
            await session.record(messages=said)
            clock.forward(seconds=24 * 3_600 / turns)
            if number % 100 == 0:
                question = f"What about the {chance.choice(THINGS)}, who asked for it?"
                require_sendable(
                    await session.build_context(question, system=SYSTEM, budget=BUDGET), question
                )
                await require_bounded(memory, "day")
        assert await memory.settled(PATIENCE)
        await require_complete(memory, "day", turns, messages)
        held = await memory._parts.working.read(session.scope, "day")
        assert held is not None
        assert held.tokens <= LIMIT


@LOCAL_ONLY
async def test_a_day_with_a_language_model_that_fails_now_and_then_stays_within_its_bounds(
    open_with: OpenWith, clock: Clock
) -> None:
    wrong: list[str | LLMError] = [
        LLMUnavailable("sk-secret"),
        'search({"q": "ferry"})',
        LLMRefused("no"),
        "far too long " * 1_000,
        LLMMalformed("no"),
    ]

    def script(asked: Asked) -> str | LLMError:
        if asked.number % 3 == 0:
            return wrong[asked.number // 3 % len(wrong)]
        return f"People asked about ferries and cranes; told {asked.number} times."

    llm = ScriptedLLM(script, window=3_000)
    turns, chance, messages = 500, random.Random(6), 0
    async with open_with(llm) as memory:
        session = memory.user("ada").session("day")
        for number in range(1, turns + 1):
            said = turn(number, chance)
            messages += len(said)
            await session.record(messages=said)
            clock.forward(seconds=24 * 3_600 / turns)
            if number % 20 == 0:
                question = f"What about the {chance.choice(THINGS)}, who asked for it?"
                context = await session.build_context(question, system=SYSTEM, budget=BUDGET)
                require_sendable(context, question)
                assert "sk-secret" not in context.text
                assert "search({" not in context.text
                await require_bounded(memory, "day")
        llm.script = lambda asked: "People asked about ferries and cranes."
        clock.now += LONGEST_PAUSE
        await session.record(messages=turn(turns + 1, chance)[:1])
        assert await memory.settled(PATIENCE)
        window = await session.window()
        assert (window.unsummarised, window.problem) == (0, "")
        assert window.summary is not None
        assert window.summary.method == "llm"
        await require_complete(memory, "day", turns + 1, messages + 1)
        assert all(asked.tokens <= llm.window for asked in llm.asked)
