"""One model behind one endpoint, asked through pydantic-ai.

What this module keeps to itself:
- Everything about trying again is here and switched off below: an attempt is one request, and a
  call with all its attempts and pauses ends within `timeout`. Only what may be different in a
  moment is tried again (a connection, a timeout, 408, 409, 425, 429, 5xx); when the server asks
  for a longer pause than the call has left, the call fails at once.
- Errors of the drivers are never chained, for their texts quote requests, answers and headers.
- Endpoints that only resemble OpenAI refuse some settings. What was refused by name is left out of
  the request from then on, and a model that thinks aloud is given room for it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple, TypeVar

from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelRequest, ModelResponse, ThinkingPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from memory.errors import (
    LLMError,
    LLMMalformed,
    LLMRefused,
    LLMTooLong,
    LLMTruncated,
    LLMUnavailable,
)
from memory.llm.answers import described, read_list, read_text
from memory.llm.base import Answered, Spend, Usage
from memory.llm.pace import Pace, pause
from memory.llm.refusals import asks_back, declines
from memory.models import Value
from memory.text import plain

V = TypeVar("V", bound=Value)
T = TypeVar("T")

FRAMING = 32
"""Tokens of a request besides its two texts."""

THINKING_ROOM = 4_096
"""Tokens that a model which thinks before it answers may use for that, beside the answer."""

_AGAIN = frozenset({408, 409, 425, 429})
_TOO_LARGE = 413

_log = logging.getLogger(__name__)


class Asking(NamedTuple):
    """How an endpoint is asked. `old_limit`: by the field that OpenAI itself has replaced, and
    that most of those who resemble it know."""

    identity: str
    window: int
    timeout: timedelta
    retries: int
    per_minute: int | None
    old_limit: bool


class Endpoint:
    """A LanguageModel over HTTP. Opened by `open_llm`."""

    def __init__(
        self,
        model: Model,
        asking: Asking,
        count: Callable[[str], int],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.identity = asking.identity
        self.window = asking.window
        self.count = count
        self._model = model
        self._asking = asking
        self._close = close
        self._pace = Pace(asking.per_minute)
        self._request = _Request(model, old_limit=asking.old_limit)
        self._calls = self._input = self._output = 0
        self._failures: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity}>"

    @property
    def usage(self) -> Usage:
        return Usage(
            calls=self._calls,
            input_tokens=self._input,
            output_tokens=self._output,
            failures=dict(self._failures),
        )

    async def text(
        self, instructions: str, data: str, *, limit: int, spend: Spend | None = None
    ) -> str:
        async def ask() -> str:
            response = await self._answer(instructions, data, limit, spend)
            return self._prose(response, limit)

        return await self._counted(ask)

    async def listed(
        self,
        instructions: str,
        data: str,
        shape: type[V],
        *,
        limit: int,
        spend: Spend | None = None,
    ) -> Answered[V]:
        async def ask() -> Answered[V]:
            whole = f"{instructions.rstrip()}\n\n{described(shape)}"
            response = await self._answer(whole, data, limit, spend)
            said = response.text or ""
            cut = response.finish_reason == "length"
            _must_say_something(said, cut=cut)
            return read_list(said, shape, cut=cut)

        return await self._counted(ask)

    async def close(self) -> None:
        await self._close()

    async def _counted(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await ask()
        except LLMError as error:
            self._failures[error.kind] += 1
            _log.debug("%s gave nothing that can be used: %s", self.identity, error.kind)
            raise

    def _prose(self, response: ModelResponse, limit: int) -> str:
        said = read_text(response.text or "")
        cut = response.finish_reason == "length"
        _must_say_something(said, cut=cut)
        if declines(said) or asks_back(said):
            raise LLMRefused(f"{self.identity} declined or asked back")
        if cut:
            raise LLMTruncated(f"the answer of {self.identity} was cut off at {limit} tokens")
        length = self.count(said)
        if length > limit:
            raise LLMTooLong(f"the answer has {length} tokens, and {limit} were allowed")
        return said

    async def _answer(
        self, instructions: str, data: str, limit: int, spend: Spend | None
    ) -> ModelResponse:
        """An answer of any shape, paid for; a refusal that the provider marks is raised."""
        asked = plain(instructions), plain(data)
        question = sum(map(self.count, asked)) + FRAMING
        if question + limit > self.window:
            raise LLMTooLong(
                f"a question of {question} tokens and an answer of {limit} are more than the "
                f"{self.window} of {self.identity}"
            )
        if spend is not None:
            spend.take(question + limit)
        spare = self.window - question - limit
        tried = await self._tried(*asked, limit, spare)
        used = self._used(tried, question, limit)
        if spend is not None:
            spend.settle(question + limit, used)
        if tried.response is None:
            raise tried.failure or LLMUnavailable(f"{self.identity} gave no answer")
        self._request.learn(tried.response)
        if tried.response.finish_reason == "content_filter":
            raise LLMRefused(f"{self.identity} declined")
        if tried.response.finish_reason == "error":
            raise LLMUnavailable(f"{self.identity} ended with an error")
        return tried.response

    def _used(self, tried: _Tried, question: int, limit: int) -> int:
        """Tokens that the call cost. An answer that never came may have cost all of them."""
        lost = tried.lost * (question + limit)
        if tried.response is None:
            return lost
        usage = tried.response.usage
        asked = usage.input_tokens or question
        answered = usage.output_tokens or self.count(tried.response.text or "")
        self._input += asked
        self._output += answered
        return lost + asked + answered

    async def _tried(self, instructions: str, data: str, limit: int, spare: int) -> _Tried:
        """Asked until there is an answer, or no more sense in asking."""
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(self._pace.turn(clock()))
        ends = clock() + self._asking.timeout.total_seconds()
        attempt = lost = 0
        while True:
            self._calls += 1
            settings = self._request.settings(limit, spare)
            tried = await self._once(instructions, data, settings, ends)
            lost += tried.response is None and not tried.free
            tried = tried._replace(lost=lost)
            if not tried.refused_setting:  # that was no failure of the endpoint
                if tried.again is None or attempt >= self._asking.retries:
                    return tried
                rest = pause(attempt, tried.again.wanted, random.random())
                if not await _slept(rest.total_seconds(), ends):
                    return tried
                attempt += 1
            if not await _slept(self._pace.turn(clock()), ends):
                return tried

    async def _once(
        self, instructions: str, data: str, settings: ModelSettings, ends: float
    ) -> _Tried:
        """One request; what it came to, without what the drivers said about it."""
        try:
            async with asyncio.timeout_at(ends):
                return _Tried(await self._request.send(instructions, data, settings))
        except TimeoutError:
            seconds = self._asking.timeout.total_seconds()
            why = f"no answer within {seconds:g} s"
            return _Tried(failure=LLMUnavailable(f"{self.identity}: {why}"))
        except ModelHTTPError as error:
            if self._request.does_without(error, settings):
                return _refused_request(self.identity, error)._replace(refused_setting=True)
            return _refused_request(self.identity, error)
        except ContentFilterError:
            return _Tried(failure=LLMRefused(f"{self.identity} declined"))
        except ModelConnectionError as error:
            why = type(error.__cause__ or error).__name__
            return _Tried(
                failure=LLMUnavailable(f"{self.identity}: no connection ({why})"), again=_Again()
            )
        except (UnexpectedModelBehavior, ModelAPIError, ValueError) as error:
            why = f"an answer that cannot be read ({type(error).__name__})"
            return _Tried(failure=LLMUnavailable(f"{self.identity}: {why}"), again=_Again())
        except Exception as error:  # each vendor's driver has errors of its own
            why = type(error).__name__
            return _Tried(failure=LLMUnavailable(f"{self.identity} could not be asked ({why})"))


class _Again(NamedTuple):
    """It may be different in a moment: after this long, when the server says so."""

    wanted: timedelta | None = None


async def _slept(seconds: float, ends: float) -> bool:
    """Wait so long; False, at once, where that would be beyond the end."""
    if asyncio.get_running_loop().time() + seconds >= ends:
        return False
    await asyncio.sleep(seconds)
    return True


class _Tried(NamedTuple):
    """What an attempt came to. `free`: it certainly cost no tokens; `lost` are the attempts of the
    call, this one included, that may have cost all of theirs for nothing."""

    response: ModelResponse | None = None
    failure: LLMError | None = None
    again: _Again | None = None
    free: bool = False
    lost: int = 0
    refused_setting: bool = False


def _refused_request(identity: str, error: ModelHTTPError) -> _Tried:
    status = error.status_code
    if isinstance(error, ModelContextWindowExceededError) or status == _TOO_LARGE:
        return _Tried(failure=LLMTooLong(f"{identity} cannot take so long a question"), free=True)
    if error.provider_error_code == "content_filter":
        return _Tried(failure=LLMRefused(f"{identity} declined"), free=True)
    failure = LLMUnavailable(f"{identity} answered with status {status}")
    lasting = isinstance(error, ModelQuotaExceededError)
    if lasting or not (status in _AGAIN or status >= 500):
        return _Tried(failure=failure, free=True)
    wanted = None if error.retry_after is None else timedelta(seconds=max(0.0, error.retry_after))
    return _Tried(failure=failure, again=_Again(wanted), free=True)


def _must_say_something(said: str, *, cut: bool) -> None:
    if said.strip():
        return
    if cut:
        raise LLMTruncated("the answer was cut off before it began")
    raise LLMMalformed("the answer is empty")


# --- what goes into a request --------------------------------------------------------------------


class _Request:
    """Sends requests to one model, as the endpoint was found to take them."""

    def __init__(self, model: Model, *, old_limit: bool) -> None:
        self._model = model
        self._old_limit = old_limit
        self._temperature = True
        self._room = THINKING_ROOM if model.profile.get("thinking_always_enabled") else 0

    async def send(self, instructions: str, data: str, settings: ModelSettings) -> ModelResponse:
        question = ModelRequest(parts=[UserPromptPart(data)], instructions=instructions)
        return await model_request(
            self._model, [question], model_settings=settings, instrument=False
        )

    def does_without(self, error: ModelHTTPError, sent: ModelSettings) -> bool:
        """Whether the endpoint refused one setting by name that was sent to it. It will be left out
        from now on; other requests may have learnt that already, and not this one."""
        if error.status_code not in (400, 422):
            return False
        said = str(error.body)
        if "temperature" in sent and "temperature" in said:
            self._temperature = False
            return True
        if "extra_body" in sent and "max_tokens" in said and "max_completion_tokens" in said:
            self._old_limit = False
            return True
        return False

    def learn(self, response: ModelResponse) -> None:
        """Give room to a model that turns out to think before it answers."""
        if response.finish_reason == "length" and (
            any(isinstance(part, ThinkingPart) for part in response.parts)
            or not (response.text or "").strip()
            or (response.text or "").lstrip().startswith("<think")
        ):
            self._room = THINKING_ROOM

    def settings(self, limit: int, spare: int) -> ModelSettings:
        """For an answer of `limit` tokens, with `spare` more at most to think before it."""
        most = limit + min(self._room, spare)
        settings = ModelSettings(max_retries=0, thinking=False)
        if self._old_limit:
            settings["extra_body"] = {"max_tokens": most}
        else:
            settings["max_tokens"] = most
        if self._temperature and not self._room:
            settings["temperature"] = 0.0
        return settings
