"""pydantic-ai: an agent whose requests carry a context within a budget, and whose runs are kept.

    history = History("monday", memory.user("ada"))
    agent = Agent(model, capabilities=[MemoryContext(history, budget=4_000)])
    await agent.run("Where shall we eat tonight?")        # no message_history: the memory has it

`MemoryContext` processes the history before each request, as a history processor does, and records
the run when it ends. Without it, `History` alone keeps runs: `save(result.new_messages())`, and
`message_history=await history.load()`.

Messages come back as pydantic-ai's own ModelMessagesTypeAdapter gives them back, except for memory
blocks that a context lent (they are taken out again) and secrets (they are masked). Saving the same
messages again changes nothing. What is said, called and answered is remembered; thinking, a
provider's own tools and requests to try again are only kept. Images are remembered; of other files
only what they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

try:
    from pydantic_ai import AgentRunResult, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        BinaryContent,
        ImageUrl,
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition
except ImportError as error:
    raise ImportError(
        "memory.integrations.pydantic_ai needs its extra: pip install 'trimem[pydantic-ai]'"
    ) from error

from memory.codec import digest, encode
from memory.errors import InvalidInput
from memory.integrations.conversation import Conversation
from memory.integrations.door import Door, Owner
from memory.integrations.packing import Piece, Told, gathered, without_fences
from memory.memory import Session
from memory.models import Context, JsonObject, Message, Role, ToolCall
from memory.times import iso

_OF = "pydantic_ai"
_SAID = frozenset(
    {"system-prompt", "user-prompt", "text", "tool-call", "tool-return", "retry-prompt"}
)
"""Kinds of parts that say something."""
_URLSAFE = str.maketrans("-_", "+/")


class History:
    """The messages of one conversation of a user. Raises InvalidScope, and ConfigurationError
    outside of the event loop in which the memory is open."""

    def __init__(self, session_id: str, user: Owner, *, agent: str | None = None) -> None:
        self._door = Door(user)
        self._user = self._door.user
        self._conversation = Conversation(
            self._user, session_id, of=_OF, derive=_items_of, agent=agent
        )

    async def current(self) -> Session:
        """The session as the memory has it: to build a context, or to look at."""
        return await self._door.do(self._conversation.session())

    async def load(self) -> list[ModelMessage]:
        """Every message, for `message_history=`."""
        return _messages(await self._door.do(self._conversation.items()))

    async def save(self, messages: Sequence[ModelMessage]) -> None:
        """Keep the messages, all or none; those that are there are there. Durable when it returns.
        Raises InvalidInput for what JSON cannot hold."""
        await self._door.do(self._conversation.add(self._told(messages)))

    async def clear(self) -> None:
        """Begin anew, with an empty history. What was said stays remembered."""
        await self._door.do(self._conversation.clear())

    def _told(self, messages: Sequence[ModelMessage]) -> list[Told]:
        """The messages, to be told: each by what it says and when, and how often that came."""
        seen: Counter[str] = Counter()
        found: list[Told] = []
        for dumped in _dumped(messages):
            message = self._user.masked(without_fences(dumped))
            key = _identity(message)
            for number, told in enumerate(gathered(_pieces(message))):
                told.key = f"{key}:{seen[key]}:{number}"
                found.append(told)
            seen[key] += 1
        return found


@dataclass
class MemoryContext(AbstractCapability[Any]):
    """Gives every request the context of its conversation, within `budget` tokens, and records the
    run when it ends. The run's own messages stay as they are: only what is sent is changed.

    Instructions, system prompts and tools count towards the budget. What a request to try again
    says does not; it is sent as it is. Raises as `Session.build_context` does.
    """

    history: History
    budget: int | None = None
    reserve: int | None = None
    k: int | None = None

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        messages = list(request_context.messages)
        at = _asking(messages)
        if at is None:
            return request_context
        parameters = request_context.model_request_parameters
        prompts = [part for message in messages[:at] for part in _system_prompts(message)]
        own = [*prompts, *_system_prompts(messages[at])]
        instructions = parameters.instruction_parts or ()
        system = [*(part.content for part in own), *(part.content for part in instructions)]
        tools = [_tool(each) for each in (*parameters.function_tools, *parameters.output_tools)]
        context = await self._context(messages[: at + 1], "\n\n".join(system) or None, tools)
        sent = _sent(context, messages[at], stated=bool(system))
        opening = [ModelRequest(parts=prompts)] if prompts else []
        request_context.messages = [*opening, *sent, *messages[at:]]
        return request_context

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        await self.history.save(result.new_messages())
        return result

    async def _context(
        self, messages: Sequence[ModelMessage], system: str | None, tools: Sequence[JsonObject]
    ) -> Context:
        """The context for the last of the messages; those before it are recorded."""
        asked = _question(messages[-1])
        await self.history.save(messages[:-1] if asked else messages)
        session = await self.history.current()
        return await self.history._door.do(
            session.build_context(
                asked,
                budget=self.budget,
                reserve=self.reserve,
                k=self.k,
                system=system,
                tools=tools,
            )
        )


# --- a request's context -----------------------------------------------------------------------


def _asking(messages: Sequence[ModelMessage]) -> int | None:
    """Where the newest request is that says something: a prompt, or a tool's result."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, ModelRequest) and any(
            isinstance(part, UserPromptPart) or _answered(part) for part in message.parts
        ):
            return at
    return None


def _answered(part: Any) -> str | None:
    """The id of the call that a part answers."""
    answers = part.part_kind == "tool-return" or (
        part.part_kind == "retry-prompt" and part.tool_name
    )
    return part.tool_call_id if answers else None


def _question(message: ModelMessage) -> Message | None:
    """What the user asks in it; None when a tool answers in it, or there is nothing to ask."""
    if any(_answered(part) for part in message.parts):
        return None
    asked = [piece.message for piece in _pieces(_dumped([message])[0]) if piece.message]
    asked = [said for said in asked if said.role is Role.USER]
    if len(asked) <= 1:
        return asked[0] if asked else None
    parts = [part for said in asked for part in _as_parts(said)]
    return Message(role=Role.USER, content=tuple(parts))


def _as_parts(message: Message) -> list[JsonObject]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}]
    return list(message.content or ())


def _tool(tool: ToolDefinition) -> JsonObject:
    """The tool's definition as OpenAI has it."""
    function: JsonObject = {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.parameters_json_schema,
    }
    return {"type": "function", "function": function}


def _system_prompts(message: ModelMessage) -> list[SystemPromptPart]:
    return [part for part in message.parts if isinstance(part, SystemPromptPart)]


def _sent(context: Context, newest: ModelMessage, *, stated: bool) -> list[ModelMessage]:
    """The context's messages before the newest request, which is sent as it is. Instructions that
    were `stated` to the context go with the request by themselves."""
    answered = {call for part in newest.parts if (call := _answered(part))}
    messages: list[Any] = list(context.messages)
    if not answered:
        messages = messages[:-1]
    if stated:
        messages = messages[1:]
    names = {
        call["id"]: call["function"]["name"]
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    kept = (message for message in messages if message.get("tool_call_id") not in answered)
    return [_model_message(message, names) for message in kept]


def _model_message(message: Any, names: Mapping[str, str]) -> ModelMessage:
    """A message in OpenAI's chat shape as pydantic-ai has it."""
    content = message.get("content") or ""
    match message["role"]:
        case "assistant":
            calls = [
                ToolCallPart(
                    call["function"]["name"], call["function"]["arguments"], tool_call_id=call["id"]
                )
                for call in message.get("tool_calls") or ()
            ]
            text = _text_of(content)
            return ModelResponse(parts=[*([TextPart(text)] if text else []), *calls])
        case "tool":
            call_id = message["tool_call_id"]
            name = names.get(call_id, "unknown")
            return ModelRequest(parts=[ToolReturnPart(name, _text_of(content), call_id)])
        case "system" | "developer":
            return ModelRequest(parts=[SystemPromptPart(_text_of(content))])
        case _:
            return ModelRequest(parts=[UserPromptPart(_user_content(content))])


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in content)


def _user_content(content: Any) -> str | list[UserContent]:
    return content if isinstance(content, str) else [_user_part(part) for part in content]


def _user_part(part: Any) -> UserContent:
    image, source = part.get("image_url"), part.get("source")
    url = image.get("url") if isinstance(image, dict) else image
    if isinstance(source, dict) and source.get("type") == "base64":
        url = f"data:{source.get('media_type')};base64,{source.get('data')}"
    if isinstance(url, str):
        return BinaryContent.from_data_uri(url) if url.startswith("data:") else ImageUrl(url)
    return str(part.get("text", f"[{part.get('type')}]"))


# --- from model messages to ours ---------------------------------------------------------------


def _dumped(messages: Sequence[ModelMessage]) -> list[JsonObject]:
    try:
        dumped = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    except ValueError as error:
        raise InvalidInput(f"messages that cannot be kept as JSON: {error}") from error
    return [_with_plain_base64(message) for message in dumped]


def _with_plain_base64(value: Any) -> Any:
    """Bytes in the alphabet that data URLs have, which pydantic reads as well."""
    if isinstance(value, dict):
        inner = {name: _with_plain_base64(each) for name, each in value.items()}
        if inner.get("kind") == "binary" and isinstance(inner.get("data"), str):
            inner["data"] = inner["data"].translate(_URLSAFE)
        return inner
    return [_with_plain_base64(each) for each in value] if isinstance(value, list) else value


def _identity(message: JsonObject) -> str:
    """What makes it the same message; the rest is filled in while a run goes on."""
    parts: Any = message["parts"]
    when = message.get("timestamp") if message["kind"] == "response" else None
    said = [part for part in parts if part["part_kind"] in _SAID] or parts
    return digest(encode([message["kind"], said, when]))


def _pieces(message: Any) -> list[Piece]:
    """The message's head, and its parts one by one."""
    head = {name: value for name, value in message.items() if name != "parts"}
    return [
        Piece(head, None, kind=message["kind"]),
        *(_piece(part) for part in message["parts"]),
    ]


def _piece(part: Any) -> Piece:
    said = _said(part)
    if said is not None and said.is_empty:
        said = None
    joins = said is not None and bool(said.tool_calls)
    return Piece({"part": part}, said, kind=part["part_kind"], joins=joins)


def _said(part: Any) -> Message | None:
    content = part.get("content")
    match part["part_kind"]:
        case "system-prompt":
            return Message(role=Role.SYSTEM, content=content)
        case "user-prompt":
            return Message(role=Role.USER, content=_content(content))
        case "text":
            return Message(role=Role.ASSISTANT, content=content)
        case "tool-call":
            return Message(role=Role.ASSISTANT, tool_calls=(_call(part),))
        case "tool-return":
            answer = content if isinstance(content, str) else _json(content)
            return Message(role=Role.TOOL, content=answer, tool_call_id=part["tool_call_id"])
        case "retry-prompt" if part.get("tool_name"):
            answer = content if isinstance(content, str) else _json(content)
            return Message(role=Role.TOOL, content=answer, tool_call_id=part["tool_call_id"])
    return None


def _call(part: Any) -> ToolCall:
    given = part.get("args")
    arguments = given if isinstance(given, str) and given else _json(given or {})
    return ToolCall(id=part["tool_call_id"], name=part["tool_name"], arguments=arguments)


def _json(value: Any) -> str:
    return encode(value).decode("utf-8", "surrogatepass")


def _content(given: Any) -> str | tuple[JsonObject, ...]:
    if isinstance(given, str):
        return given
    return tuple(_part(each) for each in given if not _is_mark(each))


def _is_mark(given: Any) -> bool:
    return isinstance(given, dict) and given.get("kind") == "cache-point"


def _part(given: Any) -> JsonObject:
    """Text and images as chat messages have them; of another file, what it is."""
    if isinstance(given, str):
        return {"type": "text", "text": given}
    media = str(given.get("media_type"))
    match given.get("kind"):
        case "image-url":
            return {"type": "image_url", "image_url": {"url": given["url"]}}
        case "binary" if media.startswith("image/"):
            source = {"type": "base64", "media_type": media, "data": given["data"]}
            return {"type": "image", "source": source}
    text = given.get("content", given.get("url", media))
    return {"type": "text", "text": text if isinstance(text, str) else _json(text)}


# --- and back ----------------------------------------------------------------------------------


def _messages(items: Iterable[JsonObject]) -> list[ModelMessage]:
    gathered: list[Any] = []
    names: dict[str, str] = {}
    for item in items:
        part: Any = item.get("part")
        if part is None:
            gathered.append({**item, "parts": []})
            continue
        if part["part_kind"] == "tool-call":
            names[part["tool_call_id"]] = part["tool_name"]
        elif part["part_kind"] == "tool-return" and "tool_name" not in part:
            part = {**part, "tool_name": names.get(part["tool_call_id"], "unknown")}
        gathered[-1]["parts"].append(part)
    return ModelMessagesTypeAdapter.validate_python(gathered)


def _items_of(message: Message) -> list[JsonObject]:
    """A message that another door recorded, as pydantic-ai has it. A result's tool has its name
    from the call."""
    when = iso(message.event_time or datetime.fromtimestamp(0, UTC))
    if message.role is Role.ASSISTANT:
        calls: list[JsonObject] = [
            _part_item("tool-call", tool_name=call.name, args=call.arguments, tool_call_id=call.id)
            for call in message.tool_calls
        ]
        text = [_part_item("text", content=message.text)] if message.text else []
        return [{"kind": "response", "timestamp": when}, *text, *calls]
    if message.role is Role.TOOL:
        answer = _part_item(
            "tool-return",
            content=message.text,
            tool_call_id=message.tool_call_id,
            timestamp=when,
        )
        return [{"kind": "request"}, answer]
    if message.role is Role.USER:
        content: Any = ModelMessagesTypeAdapter.dump_python(
            [ModelRequest(parts=[UserPromptPart(_user_content(_chat_content(message)))])],
            mode="json",
        )[0]["parts"][0]["content"]
        return [{"kind": "request"}, _part_item("user-prompt", content=content, timestamp=when)]
    prompt = _part_item("system-prompt", content=message.text, timestamp=when)
    return [{"kind": "request"}, prompt]


def _part_item(kind: str, **fields: Any) -> JsonObject:
    return {"part": {"part_kind": kind, **fields}}


def _chat_content(message: Message) -> Any:
    return message.content if isinstance(message.content, str) else list(message.content or ())
