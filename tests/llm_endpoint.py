"""A language model for tests: answers over real HTTP what a test has scripted, and keeps what it
was asked.

    POST {url}/chat/completions            OpenAI's, and of whatever is compatible with it
    POST {url}/responses                   OpenAI's newer one
    POST {anthropic_url}/v1/messages       Anthropic's

One script serves all of them: an `Answer` is written out in the shape of the door it was asked at.
Take the fixture `llm_endpoint`; `Settings(**llm_endpoint.settings())` points a Memory at it.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

Json = dict[str, Any]

_ANTHROPIC_STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
_RESPONSES_CUTS = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True)
class Answer:
    """What the endpoint does with one request.

    `finish` is OpenAI's word ("stop", "length", "content_filter"). `refusal` is what a provider
    says in its own field for it. `raw` is sent as the whole body, whatever it is. `tokens` are
    (asked, answered); None: as many as the texts have words.
    """

    text: str = ""
    finish: str = "stop"
    refusal: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drops: bool = False
    tokens: tuple[int, int] | None = None


@dataclass(frozen=True)
class Asked:
    """One request, as it arrived. `door` is "chat", "responses" or "anthropic"."""

    door: str
    body: Json
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def instructions(self) -> str:
        """What stands in the place of the system."""
        if self.door == "anthropic":
            return _text(self.body.get("system", ""))
        if self.door == "responses" and self.body.get("instructions"):
            return str(self.body["instructions"])
        return "\n".join(_text(m["content"]) for m in self._messages() if m["role"] in _SYSTEM)

    @property
    def data(self) -> str:
        """What the user says in it."""
        return "\n".join(_text(m["content"]) for m in self._messages() if m["role"] == "user")

    @property
    def limit(self) -> int | None:
        """The most tokens that the answer may have."""
        names = ("max_completion_tokens", "max_tokens", "max_output_tokens")
        return next((self.body[name] for name in names if name in self.body), None)

    def _messages(self) -> list[Json]:
        given = self.body["input" if self.door == "responses" else "messages"]
        if isinstance(given, str):
            return [{"role": "user", "content": given}]
        return [message for message in given if "role" in message]


_SYSTEM = ("system", "developer")

Script = Callable[[Asked], "Answer | str"]


# --- what a test can script --------------------------------------------------------------------


def cut(text: str) -> Answer:
    """An answer that ran into its limit."""
    return Answer(text, finish="length")


def refused(text: str = "", *, reason: str = "I can't help with that.") -> Answer:
    """A refusal in the provider's own field. One in plain words is just a text."""
    return Answer(text, refusal=reason)


def filtered(text: str = "") -> Answer:
    """What a content filter stopped."""
    return Answer(text, finish="content_filter")


def failing(status: int, *, retry_after: str | None = None, says: str = "out of order") -> Answer:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Answer(says, status=status, headers=headers)


def raw(body: bytes | str, *, status: int = 200) -> Answer:
    """This body instead of the provider's shape."""
    return Answer(raw=body.encode() if isinstance(body, str) else body, status=status)


def dropped() -> Answer:
    """The connection is cut instead of an answer."""
    return Answer(drops=True)


def as_json(value: object) -> Answer:
    return Answer(json.dumps(value))


# --- the endpoint ------------------------------------------------------------------------------


class LLMEndpoint:
    """Answers in the order of the script, then as `always` says, and keeps every request.

    `requests` has what was asked, oldest first, also what was answered with a failure.
    """

    def __init__(self) -> None:
        self.url = ""
        self.anthropic_url = ""
        self.requests: list[Asked] = []
        self._script: deque[Answer | Script] = deque()
        self._otherwise: Answer | Script = Answer("Noted.")
        self._came = asyncio.Condition()
        self._open = asyncio.Event()
        self._open.set()

    def settings(self, **changes: object) -> dict[str, Any]:
        """What points the settings at this endpoint, by its OpenAI door."""
        return {
            "llm": "openai:scripted",
            "llm_url": self.url,
            "llm_api_key": "test-key",
            **changes,
        }

    def anthropic_settings(self, **changes: object) -> dict[str, Any]:
        return self.settings(
            llm="anthropic:claude-haiku-4-5", llm_url=self.anthropic_url, **changes
        )

    def then(self, *answers: Answer | str | Script) -> None:
        """Answer the next requests like this, one after the other."""
        self._script.extend(_answer(answer) for answer in answers)

    def always(self, answer: Answer | str | Script) -> None:
        """Answer like this when nothing else is scripted. A function is given the request."""
        self._script.clear()
        self._otherwise = _answer(answer)

    def hold(self) -> None:
        """From now on requests are taken and not answered, until `release`."""
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    async def asked(self, times: int = 1) -> None:
        """Wait until there were so many requests in all."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.requests) >= times)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("chat", request, _chat_body)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("responses", request, _responses_body)

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("anthropic", request, _anthropic_body)

    async def _serve(
        self, door: str, request: web.Request, shaped: Callable[[Asked, Answer], Json]
    ) -> web.StreamResponse:
        asked = Asked(door, await request.json(), dict(request.headers))
        async with self._came:
            self.requests.append(asked)
            scripted = self._script.popleft() if self._script else self._otherwise
            self._came.notify_all()
        await self._open.wait()
        answer = _answer(scripted if isinstance(scripted, Answer) else scripted(asked))
        assert isinstance(answer, Answer)
        if answer.drops and request.transport is not None:
            request.transport.abort()
        if answer.raw is not None:
            return web.Response(
                body=answer.raw, status=answer.status, content_type="application/json"
            )
        if answer.status != 200:
            said = {"type": "error", "error": {"type": "api_error", "message": answer.text}}
            return web.json_response(said, status=answer.status, headers=answer.headers)
        if asked.body.get("stream"):
            return web.json_response({"error": {"message": "no streams here"}}, status=400)
        return web.json_response(shaped(asked, _counted(asked, answer)), headers=answer.headers)


@asynccontextmanager
async def serving() -> AsyncIterator[LLMEndpoint]:
    """An endpoint on a free port for as long as the block runs."""
    endpoint = LLMEndpoint()
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", endpoint._chat)
    app.router.add_post("/v1/responses", endpoint._responses)
    app.router.add_post("/v1/messages", endpoint._anthropic)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        endpoint.anthropic_url = f"http://{host}:{port}"
        endpoint.url = f"{endpoint.anthropic_url}/v1"
        yield endpoint
    finally:
        endpoint.release()
        await runner.cleanup()


def _answer(given: Answer | str | Script) -> Any:
    return Answer(given) if isinstance(given, str) else given


def _counted(asked: Asked, answer: Answer) -> Answer:
    if answer.tokens is not None:
        return answer
    words = len(f"{asked.instructions} {asked.data}".split())
    return replace(answer, tokens=(words, len(answer.text.split())))


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


# --- one answer in the shape of each door --------------------------------------------------------


def _chat_body(asked: Asked, answer: Answer) -> Json:
    prompt, completion = answer.tokens or (0, 0)
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_772_000_000,
        "model": asked.model,
        "choices": [
            {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        },
    }


def _responses_body(asked: Asked, answer: Answer) -> Json:
    prompt, completion = answer.tokens or (0, 0)
    content: list[Json] = []
    if answer.text or answer.refusal is None:
        content.append({"type": "output_text", "text": answer.text, "annotations": []})
    if answer.refusal is not None:
        content.append({"type": "refusal", "refusal": answer.refusal})
    cut_off = _RESPONSES_CUTS.get(answer.finish)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_772_000_000,
        "model": asked.model,
        "status": "incomplete" if cut_off else "completed",
        "incomplete_details": {"reason": cut_off} if cut_off else None,
        "error": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "incomplete" if cut_off else "completed",
                "content": content,
            }
        ],
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + completion,
        },
    }


def _anthropic_body(asked: Asked, answer: Answer) -> Json:
    prompt, completion = answer.tokens or (0, 0)
    text = answer.text if answer.refusal is None else answer.text or answer.refusal
    stop = "refusal" if answer.refusal is not None else _ANTHROPIC_STOPS[answer.finish]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": prompt, "output_tokens": completion},
    }
