"""LangChain's messages: as memory has them and back, and a chat history of them.

    history = TrimemChatMessageHistory("monday", memory.user("ada"))
    await history.aadd_messages([HumanMessage("Hello"), AIMessage("Good morning")])

Every field of a message comes back, except for memory blocks that a context lent (they are taken
out again) and secrets (they are masked). A message with an id is added once. `clear` begins anew:
the history is empty, what was said stays remembered (see `memory.integrations.conversation`).

The blocking methods are for threads; on the event loop in which the memory is open, await the
others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        InvalidToolCall,
        SystemMessage,
        ToolCall,
        ToolMessage,
        message_to_dict,
        messages_from_dict,
    )
    from langchain_core.messages.tool import invalid_tool_call, tool_call
except ImportError as error:
    raise ImportError(
        "memory.integrations.langchain needs its extra: pip install 'trimem[langchain]'"
    ) from error

from memory import models
from memory.codec import encode
from memory.context import provider
from memory.errors import InvalidInput
from memory.integrations.conversation import Conversation
from memory.integrations.door import Door, Owner
from memory.integrations.packing import Piece, Told, gathered, without_fences
from memory.memory import Session, UserMemory
from memory.models import Context, JsonObject, Message, Role

_OF = "langchain"
_ROLES = {
    "human": Role.USER,
    "ai": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_NOT_SPEECH = frozenset(
    {"reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "function_call"}
    | {"tool_call_chunk", "invalid_tool_call", "input_json_delta", "non_standard"}
)
"""Kinds of content blocks that say nothing, or what the message's calls say as well."""


class TrimemChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation of a user, for RunnableWithMessageHistory and others.

    Raises InvalidScope, and ConfigurationError outside of the event loop in which the memory is
    open.
    """

    def __init__(self, session_id: str, user: Owner, *, agent: str | None = None) -> None:
        self.session_id = session_id
        self._door = Door(user)
        self._conversation = conversation_of(self._door.user, session_id, agent=agent)

    async def current(self) -> Session:
        """The session as the memory has it: to build a context, or to look at."""
        return await self._door.do(self._conversation.session())

    async def aget_messages(self) -> list[BaseMessage]:
        return _messages(await self._door.do(self._conversation.items()))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add the messages, all or none. Durable when it returns. Raises InvalidInput."""
        await self._door.do(self._conversation.add(told(messages)))

    async def aclear(self) -> None:
        """Begin anew, with an empty history. What was said stays remembered."""
        await self._door.do(self._conversation.clear())

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        return _messages(self._door.wait(self._conversation.items()))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """As `aadd_messages`, for a thread."""
        self._door.wait(self._conversation.add(told(messages)))

    def clear(self) -> None:
        """As `aclear`, for a thread."""
        self._door.wait(self._conversation.clear())


def conversation_of(user: UserMemory, name: str, *, agent: str | None = None) -> Conversation:
    """A conversation of LangChain's messages."""
    return Conversation(user, name, of=_OF, derive=_items_of, agent=agent)


def model_input(context: Context) -> list[BaseMessage]:
    """A context's messages, to be given to a chat model."""
    return [_from_chat(message) for message in context.messages]


# --- from LangChain's messages to ours ---------------------------------------------------------


def told(messages: Sequence[BaseMessage]) -> list[Told]:
    """The messages, to be remembered. Raises InvalidInput for a removal, and for what JSON cannot
    hold."""
    return gathered([_piece(message) for message in messages])


def as_message(message: BaseMessage) -> Message:
    """The message as memory has it."""
    return _said(without_fences(_plain(message_to_dict(message))))


def _piece(message: BaseMessage) -> Piece:
    if not isinstance(message, BaseMessage) or message.type == "remove":
        raise InvalidInput(f"a history holds messages, not {type(message).__name__}")
    item = without_fences(_plain(message_to_dict(message)))
    made = _said(item)
    return Piece(item, None if made.is_empty else made, key=message.id, kind=message.type)


def _plain(value: Any) -> Any:
    """The value without tuples, and enumerations as their values, as `model_dump` leaves them."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _said(item: JsonObject) -> Message:
    """What a message, as `message_to_dict` gives it, says."""
    data: Any = item["data"]
    role = _role(str(item["type"]), data)
    return Message(
        role=role,
        content=_content(data.get("content")),
        name=data.get("name") if role is not Role.TOOL else None,
        tool_calls=tuple(_calls(data)) if role is Role.ASSISTANT else (),
        tool_call_id=_answered(data) if role is Role.TOOL else None,
    )


def _role(kind: str, data: Mapping[str, Any]) -> Role:
    """Roles of a ChatMessage are any text; who is neither of the known ones is a speaker."""
    kind = kind.removesuffix("MessageChunk").lower()
    if kind == "system" and (data.get("additional_kwargs") or {}).get("__openai_role__"):
        return Role.DEVELOPER
    if kind == "chat":
        role = str(data.get("role"))
        return Role(role) if role in ("user", "assistant", "system", "developer") else Role.USER
    return _ROLES.get(kind, Role.USER)


def _answered(data: Mapping[str, Any]) -> str:
    return str(data.get("tool_call_id") or data.get("name") or "unknown")


def _calls(data: Mapping[str, Any]) -> list[models.ToolCall]:
    """The calls, those too whose arguments are no JSON; one without an id gets its number."""
    given = [*(data.get("tool_calls") or ()), *(data.get("invalid_tool_calls") or ())]
    return [
        models.ToolCall(
            id=str(call.get("id") or f"call_{number}"),
            name=str(call.get("name") or ""),
            arguments=_arguments(call.get("args")),
        )
        for number, call in enumerate(given)
    ]


def _arguments(given: Any) -> str:
    if isinstance(given, str):
        return given
    return encode(given or {}).decode("utf-8", "surrogatepass")


def _content(given: Any) -> str | tuple[JsonObject, ...] | None:
    if given is None or isinstance(given, str):
        return given
    blocks: list[Any] = [
        {"type": "text", "text": each} if isinstance(each, str) else each for each in given
    ]
    return tuple(block for block in blocks if block.get("type") not in _NOT_SPEECH)


# --- and back ----------------------------------------------------------------------------------


def _messages(items: Sequence[JsonObject]) -> list[BaseMessage]:
    return list(messages_from_dict([dict(item) for item in items]))


def _items_of(message: Message) -> list[JsonObject]:
    """A message that another door recorded, as LangChain has it."""
    return [_plain(message_to_dict(_from_chat(provider(message))))]


def _from_chat(message: Any) -> BaseMessage:
    """OpenAI's chat shape as LangChain has it. Arguments that are no object make an invalid call,
    which `convert_to_messages` would not take."""
    content, name = message.get("content") or "", message.get("name")
    match message["role"]:
        case "assistant":
            valid, invalid = _sorted_calls(message.get("tool_calls") or ())
            return AIMessage(content, tool_calls=valid, invalid_tool_calls=invalid, name=name)
        case "tool":
            return ToolMessage(content, tool_call_id=message["tool_call_id"])
        case "system":
            return SystemMessage(content, name=name)
        case "developer":
            marked = {"__openai_role__": "developer"}
            return SystemMessage(content, name=name, additional_kwargs=marked)
        case _:
            return HumanMessage(content, name=name)


def _sorted_calls(calls: Sequence[Any]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    valid, invalid = [], []
    for call in calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        try:
            parsed = json.loads(arguments)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict):
            valid.append(tool_call(name=name, args=parsed, id=call["id"]))
        else:
            invalid.append(invalid_tool_call(name=name, args=arguments, id=call["id"], error=None))
    return valid, invalid
