"""A language model asked over real HTTP: what is sent, what is read, what goes wrong and how."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memory.errors import (
    ConfigurationError,
    LLMError,
    LLMMalformed,
    LLMRefused,
    LLMSpent,
    LLMTooLong,
    LLMTruncated,
    LLMUnavailable,
)
from memory.llm import LanguageModel, Spend, open_llm
from memory.llm.base import Answered
from memory.llm.endpoint import FRAMING
from memory.models import Value
from memory.settings import Settings
from tests.llm_endpoint import (
    Answer,
    LLMEndpoint,
    as_json,
    cut,
    dropped,
    failing,
    filtered,
    raw,
    refused,
    serving,
)

DOORS = ["chat", "responses", "anthropic"]
KEY = "sk-planted-4f9d1b7a20c84e66"


class Line(Value):
    text: str


@asynccontextmanager
async def opened(settings: dict[str, Any], **changes: Any) -> AsyncIterator[LanguageModel]:
    model = await open_llm(Settings(**{**settings, **changes}))
    assert model is not None
    try:
        yield model
    finally:
        await model.close()


@pytest.fixture(params=DOORS)
def settings(request: pytest.FixtureRequest, llm_endpoint: LLMEndpoint) -> dict[str, Any]:
    """The endpoint by each of its doors."""
    if request.param == "anthropic":
        return llm_endpoint.anthropic_settings()
    vendor = {"chat": "openai", "responses": "openai-responses"}[request.param]
    return llm_endpoint.settings(llm=f"{vendor}:scripted")


async def ask(model: LanguageModel, data: str = "Ada likes tea.", **how: Any) -> str:
    return await model.text("Say it shorter.", data, limit=how.pop("limit", 100), **how)


# --- asking ------------------------------------------------------------------------------------


async def test_a_question_arrives_and_its_answer_comes_back(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    llm_endpoint.then(Answer(" Tea. \n", tokens=(12, 3)), as_json({"items": [{"text": "tea"}]}))
    async with opened(settings) as model:
        assert await ask(model) == "Tea."
        found = await model.listed("List it.", "Ada likes tea.", Line, limit=70)

    assert found == Answered([Line(text="tea")])
    first, second = llm_endpoint.requests
    assert (first.instructions, first.data, first.limit) == (
        "Say it shorter.",
        "Ada likes tea.",
        100,
    )
    assert second.instructions.startswith("List it.\n\n")
    assert '"text": text' in second.instructions
    assert second.limit == 70
    assert f"{settings['llm'].split(':')[0]}:" in model.identity
    assert model.usage.calls == 2
    assert model.usage.input_tokens > 12
    assert model.usage.output_tokens > 3


async def test_any_text_can_be_asked_about(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    hostile = (
        "a\ud800b\x00c\u202e\u2066 <|im_start|>system <|endoftext|> 你好 \U0001f469\u200d\U0001f680"
    )
    llm_endpoint.always("Noted.")
    async with opened(settings, llm_window=2_000_000) as model:
        assert await ask(model, hostile, limit=50) == "Noted."
        assert await ask(model, "ш" * 1_000_000, limit=50) == "Noted."

    assert "你好 \U0001f469\u200d\U0001f680" in llm_endpoint.requests[0].data


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(""), LLMMalformed),
        (Answer(" \n "), LLMMalformed),
        (Answer("I can't help with that."), LLMRefused),
        (Answer("抱歉，我无法处理这个请求。"), LLMRefused),
        (Answer("Could you share the conversation?"), LLMRefused),
        (refused(), LLMRefused),
        (filtered("Ada li"), LLMRefused),
        (cut("Ada likes"), LLMTruncated),
        (cut(""), LLMTruncated),
        (Answer("tea " * 200), LLMTooLong),
        (failing(400), LLMUnavailable),
        (failing(401), LLMUnavailable),
        (failing(404), LLMUnavailable),
        (failing(413), LLMTooLong),
        (failing(429), LLMUnavailable),
        (failing(500), LLMUnavailable),
        (failing(529), LLMUnavailable),
        (dropped(), LLMUnavailable),
        (raw("<html>Bad gateway</html>"), LLMUnavailable),
        (raw("{}"), LLMUnavailable),
        (raw(""), LLMUnavailable),
    ],
)
async def test_whatever_goes_wrong_is_an_error_of_ours_by_kind_and_is_counted(
    llm_endpoint: LLMEndpoint,
    settings: dict[str, Any],
    answer: Answer,
    error: type[LLMError],
) -> None:
    llm_endpoint.then(answer, "Tea.")
    async with opened(settings, llm_retries=0) as model:
        with pytest.raises(error):
            await ask(model)
        assert model.usage.failures == {error.kind: 1}
        assert await ask(model) == "Tea."
        assert model.usage.calls == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer("none"), LLMMalformed),
        (Answer("I'm sorry, but I can't help with that."), LLMRefused),
        (Answer("What would you like me to list?"), LLMRefused),
        (refused(), LLMRefused),
        (filtered('{"items": [{"text": "te'), LLMRefused),
        (cut('{"items": [{"text": "te'), LLMTruncated),
    ],
)
async def test_a_list_that_is_none_is_an_error_and_not_an_empty_list(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any], answer: Answer, error: type[LLMError]
) -> None:
    llm_endpoint.then(answer, '{"items": []}')
    async with opened(settings) as model:
        with pytest.raises(error):
            await model.listed("List it.", "Ada likes tea.", Line, limit=70)
        assert await model.listed("List it.", "Hm.", Line, limit=70) == Answered([])


async def test_a_list_that_was_cut_off_gives_what_is_whole(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    llm_endpoint.then(cut('{"items": [{"text": "tea"}, {"text": "lives in Tam'))
    async with opened(settings) as model:
        found = await model.listed("List it.", "Ada likes tea.", Line, limit=70)

    assert found == Answered([Line(text="tea")], 0, True)


async def test_a_question_that_does_not_fit_is_not_asked(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    async with opened(settings, llm_window=1_000) as model:
        with pytest.raises(LLMTooLong, match="1000"):
            await ask(model, "tea " * 1_000)
        assert llm_endpoint.requests == []
        assert await ask(model, "tea " * 700) == "Noted."
    assert len(llm_endpoint.requests) == 1


# --- trying again ------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [failing(503), failing(429, retry_after="0"), dropped()])
async def test_what_may_be_different_in_a_moment_is_tried_again(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any], failure: Answer
) -> None:
    llm_endpoint.then(failure, "Tea.")
    async with opened(settings, llm_retries=1) as model:
        assert await ask(model) == "Tea."

    assert len(llm_endpoint.requests) == 2
    assert model.usage.failures == {}


async def test_it_is_tried_as_often_as_the_settings_say_and_no_more(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    llm_endpoint.always(failing(503, retry_after="0"))
    async with opened(settings, llm_retries=2) as model:
        with pytest.raises(LLMUnavailable, match="503"):
            await ask(model)

    assert len(llm_endpoint.requests) == 3


@pytest.mark.parametrize("failure", [failing(400), failing(401), Answer(""), cut("x"), refused()])
async def test_what_would_be_the_same_again_is_not_tried_again(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any], failure: Answer
) -> None:
    llm_endpoint.always(failure)
    async with opened(settings, llm_retries=5) as model:
        with pytest.raises(LLMError):
            await ask(model)

    assert len(llm_endpoint.requests) == 1


async def test_a_pause_that_is_longer_than_the_call_may_take_is_not_begun(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    llm_endpoint.always(failing(429, retry_after="3600"))
    async with opened(settings, llm_retries=5) as model:
        with pytest.raises(LLMUnavailable, match="429"):
            await ask(model)

    assert len(llm_endpoint.requests) == 1


async def test_an_answer_that_does_not_come_in_time_is_given_up(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    async with opened(settings, llm_timeout="PT0.4S", llm_retries=3) as model:
        llm_endpoint.hold()
        with pytest.raises(LLMUnavailable, match=r"no answer within 0\.4 s"):
            await ask(model)
        llm_endpoint.release()
        assert len(llm_endpoint.requests) == 1
        assert await ask(model) == "Noted."


async def test_a_call_can_be_abandoned(llm_endpoint: LLMEndpoint, settings: dict[str, Any]) -> None:
    async with opened(settings) as model:
        llm_endpoint.hold()
        call = asyncio.create_task(ask(model))
        await llm_endpoint.asked(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        llm_endpoint.release()
        assert await ask(model) == "Noted."


async def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    async with serving() as gone:
        settings = gone.settings(llm_retries=0)
    async with opened(settings) as model:
        with pytest.raises(LLMUnavailable):
            await ask(model)


async def test_a_setting_that_the_endpoint_refuses_is_left_out_from_then_on(
    llm_endpoint: LLMEndpoint,
) -> None:
    def picky(asked: Any) -> Answer:
        if "temperature" in asked.body:
            return failing(400, says="Unsupported value: 'temperature'")
        if "max_tokens" in asked.body:
            return failing(400, says="'max_tokens' is not supported: use 'max_completion_tokens'")
        return Answer("Tea.")

    llm_endpoint.always(picky)
    async with opened(llm_endpoint.settings(), llm_retries=0) as model:
        assert await ask(model) == "Tea."
        assert await ask(model) == "Tea."

    assert len(llm_endpoint.requests) == 4
    assert llm_endpoint.requests[-1].body["max_completion_tokens"] == 100


async def test_a_setting_that_is_refused_to_several_at_once_fails_none_of_them(
    llm_endpoint: LLMEndpoint,
) -> None:
    def picky(asked: Any) -> Answer:
        if "temperature" in asked.body:
            return failing(400, says="Unsupported value: 'temperature'")
        if "max_tokens" in asked.body:
            return failing(400, says="'max_tokens' is not supported: use 'max_completion_tokens'")
        return Answer("Tea.")

    llm_endpoint.always(picky)
    llm_endpoint.hold()
    async with opened(llm_endpoint.settings(), llm_retries=0) as model:
        calls = asyncio.gather(*(ask(model) for _ in range(4)))
        await llm_endpoint.asked(4)
        llm_endpoint.release()
        assert await calls == ["Tea."] * 4


async def test_room_to_think_is_taken_from_what_the_window_has_left(
    llm_endpoint: LLMEndpoint,
) -> None:
    llm_endpoint.then(cut("<think>Well, Ada likes"), "<think>Well.</think>\nTea.")
    async with opened(llm_endpoint.settings(), llm_window=1_000) as model:
        with pytest.raises(LLMTruncated):
            await ask(model)
        assert await ask(model) == "Tea."
        question = model.count("Say it shorter.") + model.count("Ada likes tea.")

    limit = llm_endpoint.requests[1].limit
    assert limit is not None
    assert 900 < limit <= 1_000 - question


async def test_a_model_that_thinks_aloud_is_given_room_for_it(llm_endpoint: LLMEndpoint) -> None:
    llm_endpoint.then(cut("<think>Well, Ada likes"), "<think>Well.</think>\nTea.")
    async with opened(llm_endpoint.settings()) as model:
        with pytest.raises(LLMTruncated):
            await ask(model)
        assert await ask(model) == "Tea."

    first, second = llm_endpoint.requests
    assert first.limit == 100
    assert second.limit is not None
    assert second.limit > 1_000


# --- what it costs -----------------------------------------------------------------------------


async def test_a_job_pays_what_was_used_and_stops_when_nothing_is_left(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    llm_endpoint.then(Answer("Tea.", tokens=(40, 10)))
    spend = Spend(calls=2, tokens=1_000)
    async with opened(settings) as model:
        await ask(model, spend=spend)
        assert (spend.calls, spend.tokens) == (1, 950)

        with pytest.raises(LLMSpent):
            await ask(model, "tea " * 900, spend=spend)
        assert (spend.calls, spend.tokens) == (1, 950)
        assert len(llm_endpoint.requests) == 1

        llm_endpoint.then(failing(400))
        with pytest.raises(LLMUnavailable):
            await ask(model, spend=spend)
        assert (spend.calls, spend.tokens) == (0, 950)
        with pytest.raises(LLMSpent):
            await ask(model, spend=spend)
    assert len(llm_endpoint.requests) == 2


async def test_each_attempt_that_may_have_cost_something_is_paid_for(
    llm_endpoint: LLMEndpoint,
) -> None:
    llm_endpoint.then(raw("no answer"), failing(503), Answer("Tea.", tokens=(40, 10)))
    spend = Spend(calls=2, tokens=1_000)
    async with opened(llm_endpoint.settings(), llm_retries=2) as model:
        await ask(model, spend=spend)
        question = model.count("Say it shorter.") + model.count("Ada likes tea.") + FRAMING

    assert spend.tokens == 1_000 - (question + 100) - 50


async def test_a_refusal_costs_what_it_used(llm_endpoint: LLMEndpoint) -> None:
    llm_endpoint.then(Answer("I can't help with that.", tokens=(40, 10)))
    spend = Spend(calls=2, tokens=1_000)
    async with opened(llm_endpoint.settings()) as model:
        with pytest.raises(LLMRefused):
            await ask(model, spend=spend)

    assert spend.tokens == 950
    assert (model.usage.input_tokens, model.usage.output_tokens) == (40, 10)


# --- where it goes, and what is told -------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        failing(401, says=f"Incorrect API key provided: {KEY}"),
        failing(500, says=f"Authorization: Bearer {KEY} / the secret of Ada"),
        dropped(),
        raw(f'{{"the secret of Ada": "{KEY}"}}'),
        raw(f"{KEY} the secret of Ada"),
        Answer("I can't help with that. the secret of Ada"),
        cut("the secret of Ada"),
        Answer("the secret of Ada " * 90),
        Answer("Noted."),
    ],
)
async def test_no_key_and_no_text_is_in_what_is_logged_or_raised(
    llm_endpoint: LLMEndpoint,
    settings: dict[str, Any],
    answer: Answer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With every logger at DEBUG, the drivers' and those of HTTP included. What Anthropic's driver
    itself writes down of a request at DEBUG is its text, and never the key."""
    caplog.set_level(logging.DEBUG)
    llm_endpoint.then(answer)
    told, data = [], "the secret of Ada"
    async with opened(settings, llm_api_key=KEY, llm_retries=0) as model:
        told += [repr(model), str(model)]
        try:
            await ask(model, data, limit=60)
        except LLMError as error:
            told += [*traceback.format_exception(error), repr((error.__cause__, error.__context__))]
        told.append(repr(model.usage))
    for record in caplog.records:
        logged = f"{record.name} {record.getMessage()} {record.args} {record.exc_text}"
        assert KEY not in logged
        if not record.name.startswith("anthropic"):
            told.append(logged)

    assert KEY in str(llm_endpoint.requests[0].headers)
    assert data in llm_endpoint.requests[0].data
    assert any(record.name.startswith("http") for record in caplog.records)
    assert any(record.name.startswith("memory.llm") for record in caplog.records) == (
        answer.text != "Noted."
    )
    for text in told:
        assert KEY not in text
        assert data not in text


async def test_only_what_the_settings_name_is_sent_to_their_url(
    llm_endpoint: LLMEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID"):
        monkeypatch.setenv(name, "of-somebody-else")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "of-somebody-else")
    for given in (llm_endpoint.settings(), llm_endpoint.anthropic_settings()):
        for key in ("test-key", None):
            async with opened(given, llm_api_key=key) as model:
                await ask(model)

    assert len(llm_endpoint.requests) == 4
    assert "test-key" in str(llm_endpoint.requests[0].headers)
    assert not any("of-somebody-else" in str(asked.headers) for asked in llm_endpoint.requests)


async def test_a_redirect_is_not_followed(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    async with serving() as elsewhere:
        there = f"{elsewhere.url}/chat/completions"
        llm_endpoint.then(Answer(status=307, headers={"Location": there}))
        async with opened(settings, llm_retries=0) as model:
            with pytest.raises(LLMUnavailable):
                await ask(model)

        assert len(llm_endpoint.requests) == 1
        assert elsewhere.requests == []


async def test_a_turn_that_comes_after_the_call_has_to_end_is_not_waited_for(
    llm_endpoint: LLMEndpoint,
) -> None:
    llm_endpoint.always(failing(503))
    changes = {"llm_requests_per_minute": 1, "llm_timeout": 20, "llm_retries": 2}
    async with opened(llm_endpoint.settings(), **changes) as model:
        with pytest.raises(LLMUnavailable, match="503"):
            await ask(model)

    assert len(llm_endpoint.requests) == model.usage.calls == 1


async def test_requests_are_spread_over_the_minute(
    llm_endpoint: LLMEndpoint, settings: dict[str, Any]
) -> None:
    now = asyncio.get_running_loop().time
    began = now()
    async with opened(settings, llm_requests_per_minute=300) as model:
        await asyncio.gather(*(ask(model) for _ in range(4)))

    assert now() - began >= 3 * 60 / 300 - 0.01


# --- opening -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"llm": "gpt-4o"}, "VENDOR:MODEL"),
        ({"llm": "openai:"}, "VENDOR:MODEL"),
        ({"llm": ":gpt-4o"}, "VENDOR:MODEL"),
        ({"llm": "nobody:model", "llm_api_key": "k"}, "nobody"),
        ({"llm": "openai:gpt-4o"}, "OPENAI_API_KEY"),
        ({"llm": "openai:gpt-4o", "llm_api_key": "  "}, "OPENAI_API_KEY"),
        ({"llm": "anthropic:claude-haiku-4-5"}, "ANTHROPIC_API_KEY"),
        ({"llm": "google:gemini-2.5-flash", "llm_api_key": "k"}, "pydantic-ai-slim"),
        ({"llm": "openai:gpt-4o", "llm_api_key": "k\n\u2028y"}, "TRIMEM_LLM_API_KEY"),
        ({"llm": "openai:m", "llm_url": "localhost:8000"}, "TRIMEM_LLM_URL"),
        ({"llm": "openai:m", "llm_url": "http://"}, "TRIMEM_LLM_URL"),
        ({"llm": "openai:m", "llm_url": "http://host:port"}, "TRIMEM_LLM_URL"),
        ({"llm": "openai:m", "llm_url": "http://ada:hush@host/v1"}, "TRIMEM_LLM_API_KEY"),
        ({"llm": "openai:m", "llm_url": "http://host/v1?key=hush"}, "TRIMEM_LLM_URL"),
    ],
)
async def test_settings_that_name_no_model_are_refused_when_it_is_opened(
    given: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(ConfigurationError, match=says):
        await open_llm(Settings(**given))


async def test_no_model_is_named_and_none_is_opened() -> None:
    assert await open_llm(Settings()) is None


def test_no_driver_is_imported_before_a_model_is_named() -> None:
    drivers = ("pydantic_ai", "openai", "anthropic", "json_repair", "httpx2")
    program = (
        "import asyncio, sys, memory\n"
        "from memory.llm import open_llm\n"
        "from memory.settings import Settings\n"
        "asyncio.run(open_llm(Settings()))\n"
        f"print([name for name in {drivers} if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_a_missing_extra_is_named() -> None:
    program = (
        "import asyncio, sys\n"
        "sys.modules['pydantic_ai'] = None\n"
        "from memory.llm import open_llm\n"
        "from memory.settings import Settings\n"
        "from memory.errors import ConfigurationError\n"
        "try:\n"
        "    asyncio.run(open_llm(Settings(llm='openai:gpt-4o', llm_api_key='k')))\n"
        "except ConfigurationError as error:\n"
        "    print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'trimem[llm]'" in ran.stdout
