"""A Session of the OpenAI Agents SDK whose history is a trimem session.

    session = TrimemSession("monday", memory.user("ada"))
    await Runner.run(agent, "Where shall we eat tonight?", session=session)

Items come back as they were added: messages, function calls and their outputs, reasoning, a
provider's own tools; equal as JSON, except for memory blocks that a context lent (they are taken
out again) and secrets (they are masked). What is said and what tools answer is remembered; other
items are only kept. `clear_session` begins anew and `pop_item` shortens the history; the memory
still knows what was said (see `memory.integrations.conversation`).
"""

from __future__ import annotations

from typing import Any, cast

try:
    from agents import SessionSettings, TResponseInputItem
    from agents.memory import SessionABC
    from agents.memory.session_settings import resolve_session_limit
except ImportError as error:
    raise ImportError(
        "memory.integrations.openai_agents needs its extra: pip install 'trimem[openai-agents]'"
    ) from error

from memory.codec import encode
from memory.integrations.conversation import Conversation
from memory.integrations.door import Door, Owner
from memory.integrations.packing import Piece, gathered, without_fences
from memory.memory import Session
from memory.models import JsonObject, Message, Role, ToolCall

_OF = "openai_agents"
_TEXTS = ("input_text", "output_text", "text")
_ROLES = {role.value: role for role in Role if role is not Role.TOOL}


class TrimemSession(SessionABC):
    """The history of one conversation of a user, for `Runner.run(…, session=…)`.

    Any number of them, in any processes, may have the same `session_id`. Raises InvalidScope, and
    ConfigurationError outside of the event loop in which the memory is open.
    """

    def __init__(
        self,
        session_id: str,
        user: Owner,
        *,
        agent: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._door = Door(user)
        self._conversation = Conversation(
            self._door.user, session_id, of=_OF, derive=_items_of, agent=agent
        )

    async def current(self) -> Session:
        """The session as the memory has it: to build a context, or to look at."""
        return await self._door.do(self._conversation.session())

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, or the newest `limit` of them, oldest first."""
        newest = resolve_session_limit(limit, self.session_settings)
        found = await self._door.do(self._conversation.items(newest))
        return cast("list[TResponseInputItem]", found)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep the items, all or none. Durable when it returns. Raises InvalidInput."""
        pieces = [_piece(without_fences(cast("JsonObject", dict(item)))) for item in items]
        await self._door.do(self._conversation.add(gathered(pieces)))

    async def pop_item(self) -> TResponseInputItem | None:
        """The newest item, which is then in the history no longer; None when there is none."""
        taken = await self._door.do(self._conversation.take_last())
        return cast("TResponseInputItem | None", taken)

    async def clear_session(self) -> None:
        """Begin anew, with an empty history. What was said stays remembered."""
        await self._door.do(self._conversation.clear())


# --- from items to messages --------------------------------------------------------------------


def _piece(item: JsonObject) -> Piece:
    message = _message_of(item)
    if message is not None and message.is_empty:
        message = None
    return Piece(
        item,
        message,
        kind=str(item.get("type", "message")),
        joins=message is not None and bool(message.tool_calls),
    )


def _message_of(item: JsonObject) -> Message | None:
    """What is said in the item; None when that is nothing."""
    kind = item.get("type", "message")
    call_id = item.get("call_id")
    if kind == "message" and item.get("role") in _ROLES:
        return Message(role=_ROLES[str(item["role"])], content=_content(item.get("content")))
    if kind in ("function_call", "custom_tool_call") and isinstance(call_id, str):
        return Message(role=Role.ASSISTANT, tool_calls=(_call(call_id, item),))
    if kind in ("function_call_output", "custom_tool_call_output") and call_id:
        content = _content(item.get("output"))
        return Message(role=Role.TOOL, content=content, tool_call_id=str(call_id))
    return None


def _call(call_id: str, item: JsonObject) -> ToolCall:
    arguments = item.get("arguments")
    if not isinstance(arguments, str):  # a custom tool takes any text
        arguments = encode({"input": item.get("input", "")}).decode("utf-8", "surrogatepass")
    return ToolCall(id=call_id, name=str(item.get("name", "")), arguments=arguments)


def _content(given: Any) -> str | tuple[JsonObject, ...] | None:
    """Text where it is nothing else; otherwise the parts, in the shapes of chat messages."""
    if given is None or isinstance(given, str):
        return given
    parts = [_part(part) for part in given if isinstance(part, dict)]
    if len(parts) == 1 and parts[0].get("type") == "text":
        return str(parts[0]["text"])
    return tuple(parts)


def _part(part: JsonObject) -> JsonObject:
    kind = part.get("type")
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        return {"type": "text", "text": part.get("refusal", "")}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        image: JsonObject = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    return part


# --- and back, where another door recorded the message -----------------------------------------


def _items_of(message: Message) -> list[JsonObject]:
    if message.role is Role.TOOL:
        return [
            {
                "type": "function_call_output",
                "call_id": message.tool_call_id,
                "output": _input(message),
            }
        ]
    calls: list[JsonObject] = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for call in message.tool_calls
    ]
    if message.tool_calls and not message.content:
        return calls
    return [{"role": message.role.value, "content": _input(message)}, *calls]


def _input(message: Message) -> Any:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    if message.role is Role.ASSISTANT:  # what it said is text, in this interface
        return message.text
    return [_input_part(part) for part in message.content]


def _input_part(part: JsonObject) -> JsonObject:
    if part.get("type") == "text":
        return {"type": "input_text", "text": part.get("text", "")}
    image = part.get("image_url")
    if isinstance(image, dict):
        return {
            "type": "input_image",
            "image_url": image.get("url"),
            "detail": image.get("detail", "auto"),
        }
    return part
