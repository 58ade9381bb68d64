"""Claude's export: conversations with `chat_messages` from `human` and `assistant`.

The flat `text` may be empty while the content blocks have everything, so blocks come first. An
edited message starts another branch (`parent_message_uuid`); only the branch that ends in the
newest message is read. What an attached file says is left out: the user did not say it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory.importers.drafts import LeftOut, text_or_none
from memory.importers.tree import branch
from memory.models import JsonObject

_NOISE = {"token_budget", "flag"}


def is_conversation(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("chat_messages"), list)


def entries(conversation: Mapping[str, Any]) -> tuple[list[JsonObject], list[LeftOut]]:
    """The messages of the branch that was on the screen, and what is not in it."""
    messages = [entry for entry in conversation["chat_messages"] if isinstance(entry, dict)]
    parents = {
        uuid: text_or_none(entry.get("parent_message_uuid"))
        for entry in messages
        if (uuid := text_or_none(entry.get("uuid")))
    }
    shown = messages
    siblings = [parent for parent in parents.values() if parent]
    if len(siblings) > len(set(siblings)):
        leaf = text_or_none(conversation.get("current_leaf_message_uuid"))
        walked = set(branch(parents, leaf if leaf in parents else list(parents)[-1]))
        shown = [entry for entry in messages if entry.get("uuid") in walked]
    left_out = [LeftOut("another branch")] * (len(messages) - len(shown))
    for entry in shown:
        left_out += [LeftOut("text of an attached file")] * len(_attachments(entry))
    return shown, left_out


def as_chat(entry: JsonObject) -> JsonObject:
    """An entry with `sender` as one with `role`."""
    content = entry.get("content")
    blocks = content if isinstance(content, list) else [content]
    kept: list[Any] = [
        b for b in blocks if not (isinstance(b, Mapping) and b.get("type") in _NOISE)
    ]
    if not any(_says_something(block) for block in kept):
        kept += [{"type": "text", "text": entry.get("text") or ""}]
    kept += [{"type": "text", "text": f"[attached: {name}]"} for name in _attachments(entry)]
    return {**entry, "role": entry["sender"], "content": kept}


def _says_something(block: Any) -> bool:
    if not isinstance(block, Mapping):
        return isinstance(block, str) and bool(block)
    return bool(block.get("text")) or block.get("type") not in (None, "text", "thinking")


def _attachments(entry: JsonObject) -> list[str]:
    given = [*_list(entry.get("attachments")), *_list(entry.get("files"))]
    names = [file.get("file_name") for file in given if isinstance(file, Mapping)]
    return [str(name) for name in names if name]


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
