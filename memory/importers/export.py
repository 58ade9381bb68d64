"""The way back: a history as OpenAI or Anthropic messages, which `read` reads to the same history.

`id` and `created_at` stand beside what the providers know, so that identity and time survive.
Anthropic has no system messages in the middle: those at the head become `system` blocks, later
ones stay in the list. Calls keep their ids; arguments that are no JSON object stay as text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from memory.context import provider
from memory.models import JsonObject, Message, RecordedMessage, Role, ToolCall
from memory.providers import RAW_ARGUMENTS
from memory.times import iso

_SYSTEM = (Role.SYSTEM, Role.DEVELOPER)


def to_openai(messages: Sequence[Message]) -> list[JsonObject]:
    """The history as OpenAI chat messages."""
    return [_openai(message) for message in messages]


def to_anthropic(messages: Sequence[Message]) -> JsonObject:
    """The history as an Anthropic request's `system` and `messages`."""
    head = list(takewhile(lambda message: message.role in _SYSTEM, messages))
    exported: JsonObject = {"messages": [_anthropic(m) for m in messages[len(head) :]]}
    if head:
        exported["system"] = [
            {"type": "text", "text": message.text, "role": message.role.value, **_identity(message)}
            for message in head
        ]
    return exported


def _openai(message: Message) -> JsonObject:
    exported = provider(message)
    if message.content is None:  # it comes back as it was, not as an empty text
        exported["content"] = None
    return exported | _identity(message)


def _anthropic(message: Message) -> JsonObject:
    blocks = _blocks(message)
    if message.role is Role.TOOL:
        result: JsonObject = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id,
            "content": list(blocks),
        }
        if message.name is not None:
            result["name"] = message.name
        return {"role": "user", "content": [result], **_identity(message)}
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)}
        for call in message.tool_calls
    ]
    exported: JsonObject = {"role": message.role.value, "content": list(blocks)}
    if message.name is not None:
        exported["name"] = message.name
    return exported | _identity(message)


def _blocks(message: Message) -> list[JsonObject]:
    if isinstance(message.content, tuple):
        return list(message.content)
    return [{"type": "text", "text": message.content}] if message.content else []


def _input(call: ToolCall) -> JsonObject:
    try:
        value: Any = json.loads(call.arguments)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: call.arguments}


def _identity(message: Message) -> JsonObject:
    identity: JsonObject = {}
    source_id = message.metadata.get("source_id")
    if source_id is None and isinstance(message, RecordedMessage):
        source_id = message.id
    if source_id is not None:
        identity["id"] = source_id
    if message.event_time is not None:
        identity["created_at"] = iso(message.event_time)
    return identity
