from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from memory.errors import LLMMalformed, LLMRefused, LLMUnavailable
from memory.llm import Answered, Guarded
from memory.models import Value
from tests.scripted_llm import ScriptedLLM, fails, says

SOON = timedelta(milliseconds=50)
LONG = timedelta(seconds=30)


class Named(Value):
    name: str


class Lists(ScriptedLLM):
    """Gives back whatever the test wants as a list, and as a text."""

    def __init__(self, answer: Any) -> None:
        super().__init__(says(""))
        self.answer = answer

    async def text(self, *_: Any, **__: Any) -> Any:
        return self.answer

    async def listed(self, *_: Any, **__: Any) -> Any:
        return self.answer


async def test_what_a_model_of_ones_own_answers_comes_through() -> None:
    llm = Guarded(ScriptedLLM(says("They spoke.")), LONG)
    assert await llm.text("Summarise.", "…", limit=20) == "They spoke."
    assert (llm.identity, llm.window, llm.usage.calls) == ("scripted:1", 16_000, 1)
    answer = Answered([Named(name="Ada")])
    assert await Guarded(Lists(answer), LONG).listed("List.", "…", Named, limit=20) == answer


async def test_a_model_that_never_answers_is_waited_for_no_longer_than_that() -> None:
    model = ScriptedLLM(says("They spoke."))
    model.open.clear()
    with pytest.raises(LLMUnavailable, match="TimeoutError"):
        await Guarded(model, SOON).text("Summarise.", "…", limit=20)


async def test_what_a_model_raises_is_told_by_its_kind_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def script(_: Any) -> str:
        raise RuntimeError("sk-secret")

    with pytest.raises(LLMUnavailable) as caught:
        await Guarded(ScriptedLLM(script), LONG).text("Summarise.", "…", limit=20)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "RuntimeError" in str(caught.value)
    assert "RuntimeError" in caplog.text
    assert "sk-secret" not in f"{caught.value}{caplog.text}"
    with pytest.raises(LLMRefused, match="no"):
        await Guarded(ScriptedLLM(fails(LLMRefused("no"))), LONG).text("…", "…", limit=20)


@pytest.mark.parametrize("answer", [None, [Named(name="Ada")], Answered(["Ada"])])
async def test_an_answer_of_another_shape_is_malformed(answer: Any) -> None:
    llm = Guarded(Lists(answer), LONG)
    with pytest.raises(LLMMalformed):
        await llm.text("Summarise.", "…", limit=20)
    with pytest.raises(LLMMalformed):
        await llm.listed("List.", "…", Named, limit=20)


async def test_whoever_gives_up_waiting_is_no_failure_of_the_model() -> None:
    model = ScriptedLLM(says("They spoke."))
    model.open.clear()
    asked = asyncio.create_task(Guarded(model, LONG).text("Summarise.", "…", limit=20))
    while not model.asked:  # noqa: ASYNC110
        await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
