"""The running summary by a language model: what happens when it fails, grows, or is asked much."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from memory import Memory
from memory.compaction import AT_ONCE, LONGEST_PAUSE
from memory.errors import BudgetError, ConfigurationError, LLMError, LLMTooLong, LLMUnavailable
from memory.llm import LanguageModel
from memory.models import Scope
from memory.settings import Settings
from memory.tokens import TokenCounter
from tests.behaviour.conftest import Clock
from tests.llm_endpoint import Answer, LLMEndpoint, failing, raw, refused
from tests.scripted_llm import TIMEOUT, Asked, ScriptedLLM, fails, says
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(seconds=60)
COUNT = TokenCounter().count

OpenWith = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def open_with(urls: dict[str, str], clock: Clock, scope: Scope) -> OpenWith:
    """Opens the test's memory with a language model of the test's own, or of the settings."""

    @asynccontextmanager
    async def open_it(model: LanguageModel | None = None, **changes: Any) -> AsyncIterator[Memory]:
        settings = Settings.model_validate({**urls, "tenant": scope.tenant, **changes})
        async with Memory.open(
            settings=settings, embedder=StubEmbedder(), llm=model, clock=clock
        ) as memory:
            yield memory

    return open_it


def line(number: int) -> str:
    return f"Line {number}: the ferry to the island leaves at nine and is back before dark."


async def filled(memory: Memory, *, first: int, size: int, name: str = "s") -> None:
    session = memory.user("u1").session(name)
    for number in range(first, first + size, 2):
        await session.record(user=line(number), assistant=line(number + 1))
    assert await memory.settled(PATIENCE)


async def test_a_failed_summary_leaves_everything_and_is_made_up_for_once(
    open_with: OpenWith, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """SUM-01"""
    llm = ScriptedLLM(says("They spoke of the ferry at nine."))
    async with open_with(llm, window_tokens=400, summary_tokens=100) as memory:
        session = memory.user("u1").session("s")
        await filled(memory, first=1, size=24)
        before = await session.window()
        assert before.summary is not None
        assert before.unsummarised == 0
        assert before.problem == ""
        llm.script = fails(TIMEOUT)
        await filled(memory, first=25, size=24)

        window = await session.window()
        assert window.summary == before.summary
        assert window.unsummarised > 0
        assert window.tokens <= 400
        assert window.problem == "the language model did not answer, tried once"
        assert [message.seq for message in await session.messages()] == list(range(1, 49))
        context = await session.build_context("When does the ferry leave?", budget=2_000)
        assert context.tokens.total <= 2_000
        assert before.summary.text in context.text
        (reported,) = [warning for warning in context.warnings if "summarised" in warning]
        assert reported.startswith(f"{window.unsummarised} messages do not fit")
        assert window.problem in reported
        assert "sk-secret" not in context.to_json().__repr__() + caplog.text
        assert "unavailable" in caplog.text

        llm.script = says("They spoke of the ferry, at nine and back before dark.")
        clock.now += LONGEST_PAUSE
        calls = len(llm.asked)
        await filled(memory, first=49, size=2)
        after = await session.window()
        assert (after.unsummarised, after.problem) == (0, "")
        assert after.summary is not None
        assert after.summary.text.startswith("They spoke of the ferry, at nine")
        assert after.messages[0].seq == after.summary.covers_to + 1
        told = [
            int(n) for asked in llm.asked[calls:] for n in re.findall(r"Line (\d+)", asked.data)
        ]
        assert told == list(range(before.summary.covers_to + 1, after.summary.covers_to + 1))


async def test_a_failed_summary_over_http_leaves_everything_and_is_made_up_for(
    open_with: OpenWith, clock: Clock, llm_endpoint: LLMEndpoint
) -> None:
    """SUM-01, behind a real endpoint"""
    llm_endpoint.always("They spoke of the ferry at nine.")
    settings = llm_endpoint.settings() | {"llm_retries": 0}
    async with open_with(**settings, window_tokens=400, summary_tokens=100) as memory:
        session = memory.user("u1").session("s")
        await filled(memory, first=1, size=24)
        before = await session.window()
        assert before.summary is not None
        assert before.summary.method == "llm"
        llm_endpoint.always(failing(503, says="overloaded, sk-secret"))
        await filled(memory, first=25, size=24)
        window = await session.window()
        assert (window.summary, window.unsummarised > 0) == (before.summary, True)
        assert window.problem.startswith("the language model did not answer")
        llm_endpoint.always("They spoke of the ferry, and of the way back.")
        clock.now += LONGEST_PAUSE
        await filled(memory, first=49, size=2)
        after = await session.window()
        assert (after.unsummarised, after.problem) == (0, "")
        assert after.summary is not None
        assert after.summary.text == "They spoke of the ferry, and of the way back."


async def test_a_budget_that_is_too_small_is_refused_before_a_model_is_asked(
    open_with: OpenWith, llm_endpoint: LLMEndpoint
) -> None:
    """WIN-01, with a language model"""
    llm_endpoint.always("They spoke of the ferry.")
    async with open_with(
        **llm_endpoint.settings(), window_tokens=400, summary_tokens=100
    ) as memory:
        session = memory.user("u1").session("s")
        with pytest.raises(BudgetError) as caught:
            await session.build_context("hello", system="word " * 900, budget=500)
        assert (caught.value.needed >= 900, caught.value.given) == (True, 500)
        assert await memory.settled(PATIENCE)
        assert llm_endpoint.requests == []
        assert await memory.user("u1").snapshots() == []
        await filled(memory, first=1, size=30)
        assert llm_endpoint.requests


STANDS_IN = {
    "error": "Error: upstream connect error or disconnect/reset before headers",
    "json": json.dumps({"error": {"message": "context_length_exceeded", "code": 400}}),
    "unwrapped": json.dumps({"error": "Rate limit reached for requests"}),
    "body": raw(json.dumps({"error": {"message": "slow down", "code": 429}})),
    "page": raw("<html><title>Sign in</title></html>"),
    "choices": raw(json.dumps({"id": "c", "object": "chat.completion", "choices": []})),
    "traceback": "Traceback (most recent call last):\nTimeoutError: read timed out",
    "none": "N/A",
    "done": "Done!",
}
"""What comes with a status of 200 and is no summary."""


@pytest.mark.parametrize("answer", STANDS_IN.values(), ids=STANDS_IN)
async def test_an_error_that_comes_as_an_answer_is_no_summary(
    open_with: OpenWith, clock: Clock, llm_endpoint: LLMEndpoint, answer: Answer | str
) -> None:
    """SUM-01 and LLM-04: proxies and servers say what went wrong in the place of the answer."""
    llm_endpoint.always(answer)
    settings = llm_endpoint.settings(llm_retries=0)
    async with open_with(**settings, window_tokens=400, summary_tokens=100) as memory:
        session = memory.user("u1").session("s")
        await filled(memory, first=1, size=30)
        window = await session.window()
        assert window.summary is None
        assert window.unsummarised > 0
        assert window.problem.startswith("the language model")
        context = await session.build_context("And now?", budget=2_000)
        assert any(window.problem in warning for warning in context.warnings)
        llm_endpoint.always("Summary: They spoke of the ferry.")
        clock.now += LONGEST_PAUSE
        await filled(memory, first=31, size=2)
        after = await session.window()
        assert after.summary is not None
        assert after.summary.text == "They spoke of the ferry."


@pytest.mark.parametrize("window", [4_096, 2_000])
async def test_a_message_larger_than_the_summarisers_window_is_summarised_in_parts(
    open_with: OpenWith, window: int
) -> None:
    """SUM-03"""
    llm = ScriptedLLM(says("A harbour list was pasted; berth 77 is free."), window=window)
    pasted = "".join(f"Berth {n} is taken until noon, and the crane is out. " for n in range(650))
    assert COUNT(pasted) > 9_000
    async with open_with(llm, window_tokens=min(window, 2_000), summary_tokens=300) as memory:
        session = memory.user("u1").session("s")
        await session.record(user=pasted, assistant="Thank you.")
        await filled(memory, first=3, size=10)
        compacted = await session.window()
        assert compacted.summary is not None
        assert compacted.summary.text == "A harbour list was pasted; berth 77 is free."
        assert compacted.tokens <= 2_000
        assert len(llm.asked) > 2
        assert all(asked.tokens <= window for asked in llm.asked)
        parts = re.findall(r"\(part (\d+) of", "".join(asked.data for asked in llm.asked))
        assert list(map(int, parts)) == list(range(1, len(parts) + 1))
        assert (await session.messages())[0].text == pasted
        context = await session.build_context("Which berth is free?", budget=2_000)
        assert "berth 77 is free" in context.text


async def test_a_cap_below_instructions_and_a_message_is_refused_at_the_start(
    open_with: OpenWith,
) -> None:
    """SUM-03, the cap"""
    with pytest.raises(ConfigurationError, match=r"window of 600 tokens is too small.*need \d+"):
        async with open_with(ScriptedLLM(says("x"), window=600)):
            pass


async def test_a_model_that_never_shortens_is_asked_three_times_and_then_left_alone(
    open_with: OpenWith, clock: Clock
) -> None:
    """SUM-05, stub A: an answer as long as what it was asked"""
    llm = ScriptedLLM(lambda asked: asked.data)
    async with open_with(llm, window_tokens=1_200, summary_tokens=300) as memory:
        session = memory.user("u1").session("s")
        for number in range(1, 120, 2):
            calls = len(llm.asked)
            await session.record(user=line(number), assistant=line(number + 1))
            assert await memory.settled(PATIENCE)
            assert len(llm.asked) - calls <= 3
            assert (await session.window()).tokens <= 1_200
            clock.forward(seconds=3)
        assert 3 <= len(llm.asked) <= 12
        window = await session.window()
        assert window.summary is None
        assert "too long" in window.problem
        assert len(await session.messages()) == 120


async def test_a_summary_that_grows_is_kept_within_its_limit_and_is_there_once(
    open_with: OpenWith, clock: Clock
) -> None:
    """SUM-05, stub B: two hundred tokens more each time, and shorter only when told to"""
    news = " ".join(f"word{n}" for n in range(100))

    def script(asked: Asked) -> str | LLMError:
        if "too long" in asked.instructions:
            return "They spoke of the ferry."
        so_far = re.search(r"<summary-\w+>\n(.*?)\n</summary", asked.data, re.DOTALL)
        said = f"{so_far[1] if so_far else ''} {news}".strip()
        return said if COUNT(said) <= asked.limit else LLMTooLong("the answer is too long")

    llm = ScriptedLLM(script)
    summaries = set()
    async with open_with(llm, window_tokens=1_200, summary_tokens=300) as memory:
        session = memory.user("u1").session("s")
        number = 1
        while len(summaries) < 200:
            calls = len(llm.asked)
            await session.record(user=line(number) * 9, assistant=line(number + 1) * 9)
            number += 2
            assert await memory.settled(PATIENCE)
            window = await session.window()
            assert window.tokens <= 1_200
            assert len(llm.asked) - calls <= 3
            if window.summary is not None:
                assert window.summary.tokens == COUNT(window.summary.text) <= 300
                summaries.add(window.summary.covers_to)
            clock.forward(hours=2)
    async with open_with(llm, window_tokens=1_200, summary_tokens=300) as memory:
        session = memory.user("u1").session("s")
        window = await session.window()
        assert window.summary is not None
        context = await session.build_context("And now?", budget=2_000)
        places = [
            place
            for place, message in enumerate(context.messages)
            if window.summary.text in str(message["content"])
        ]
        assert len(places) == 1
        first = window.messages[0].text
        texts = [message["content"] for message in context.messages]
        assert first not in texts or places[0] < texts.index(first)


@pytest.mark.parametrize(
    "answer",
    ["I can't help with that.", "", "   ", "What would you like me to summarise?"],
)
async def test_a_refusal_is_no_summary_and_the_next_answer_recovers(
    open_with: OpenWith, clock: Clock, llm_endpoint: LLMEndpoint, answer: str
) -> None:
    """LLM-04"""
    llm_endpoint.always(answer)
    async with open_with(
        **llm_endpoint.settings(), window_tokens=400, summary_tokens=100
    ) as memory:
        session = memory.user("u1").session("s")
        await filled(memory, first=1, size=30)
        window = await session.window()
        assert window.summary is None
        assert window.unsummarised > 0
        assert window.problem
        assert len(await session.messages()) == 30
        llm_endpoint.always("They spoke of the ferry.")
        clock.now += LONGEST_PAUSE
        await filled(memory, first=31, size=2)
        after = await session.window()
        assert after.summary is not None
        assert after.summary.text == "They spoke of the ferry."
        assert (after.unsummarised, after.problem) == (0, "")


async def test_a_refusal_in_the_providers_own_field_is_no_summary(
    open_with: OpenWith, llm_endpoint: LLMEndpoint
) -> None:
    """LLM-04"""
    llm_endpoint.always(refused())
    async with open_with(
        **llm_endpoint.settings(), window_tokens=400, summary_tokens=100
    ) as memory:
        await filled(memory, first=1, size=30)
        window = await memory.user("u1").session("s").window()
        assert window.summary is None
        assert window.problem == "the language model declined to summarise, tried once"


async def test_a_turn_never_waits_for_a_summary(open_with: OpenWith) -> None:
    llm = ScriptedLLM(says("They spoke of the ferry."))
    llm.open.clear()
    async with open_with(llm, window_tokens=400, summary_tokens=100) as memory:
        session = memory.user("u1").session("s")
        for number in range(1, 60, 2):
            await session.record(user=line(number), assistant=line(number + 1))
            context = await session.build_context("And now?", budget=2_000)
            assert line(number + 1) in context.text
        window = await session.window()
        assert window.summary is None
        assert (window.unsummarised > 0, window.problem) == (True, "")
        assert len(llm.asked) == 1
        llm.open.set()
        assert await memory.settled(PATIENCE)
        window = await session.window()
        assert window.summary is not None
        assert window.unsummarised == 0


async def test_an_error_of_a_models_own_making_is_no_end(
    open_with: OpenWith, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def script(asked: Asked) -> str:
        raise RuntimeError("sk-secret")

    llm = ScriptedLLM(script)
    async with open_with(llm, window_tokens=400, summary_tokens=100) as memory:
        session = memory.user("u1").session("s")
        await filled(memory, first=1, size=30)
        problem = "the language model did not answer, tried once"
        assert (await session.window()).problem == problem
        assert "sk-secret" not in caplog.text
        llm.script = says("They spoke of the ferry.")
        clock.now += LONGEST_PAUSE
        await filled(memory, first=31, size=2)
        assert (await session.window()).summary is not None


async def test_a_model_that_hangs_over_some_sessions_holds_up_no_others(
    open_with: OpenWith,
) -> None:
    class Hangs(ScriptedLLM):
        async def text(self, instructions: str, data: str, **more: Any) -> str:
            if "POISON" in data:
                await asyncio.Event().wait()
            return await super().text(instructions, data, **more)

    llm = Hangs(says("They spoke of the ferry."))
    async with open_with(llm, window_tokens=400, summary_tokens=100, llm_timeout=2) as memory:
        hanging = [memory.user("u1").session(f"hangs {n}") for n in range(AT_ONCE + 1)]
        for session in hanging:
            await session.record(user="POISON " * 400, assistant="Yes.")
            await session.record(user=line(1), assistant=line(2))
        await filled(memory, first=1, size=30, name="good")
        assert await memory.settled(PATIENCE)
        assert (await memory.user("u1").session("good").window()).summary is not None
        for session in hanging:
            problem = "the language model did not answer, tried once"
            assert (await session.window()).problem == problem


async def test_what_failed_is_tried_again_also_when_nobody_says_anything_more(
    open_with: OpenWith, clock: Clock
) -> None:
    llm = ScriptedLLM(fails(LLMUnavailable("away")))
    async with open_with(llm, window_tokens=400, summary_tokens=100) as memory:
        await filled(memory, first=1, size=30)
        assert (await memory.user("u1").session("s").window()).summary is None
    llm.script = says("They spoke of the ferry.")
    clock.now += LONGEST_PAUSE
    async with open_with(llm, window_tokens=400, summary_tokens=100) as memory:
        compactor = memory._parts.compactor
        assert compactor is not None
        # The first look at what is due is at once; the window is read only when it is done.
        while await compactor.retries.count():
            assert await memory.settled(PATIENCE)
        assert (await memory.user("u1").session("s").window()).summary is not None
