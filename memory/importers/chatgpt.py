"""ChatGPT's export: each conversation is a tree, because messages are edited and made again.

What was on the screen is the branch from the root to `current_node`; without that, to the newest
leaf. Following first children instead would give a conversation that nobody had. Not speech, and
left out: hidden nodes, custom instructions (they carry role 'user'), what the assistant sent to a
tool and what came back, and thoughts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memory.importers.drafts import EMPTY, THINKING, Draft, LeftOut, moment, text_or_none
from memory.importers.tree import branch
from memory.models import JsonObject, Role

_Nodes = Mapping[str, Mapping[str, Any]]
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_INSTRUCTIONS = {"user_editable_context", "model_editable_context"}
_THOUGHTS = {"thoughts", "reasoning_recap"}


def is_conversation(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("mapping"), Mapping)


def drafts(conversation: Mapping[str, Any]) -> Iterator[Draft | LeftOut]:
    """What was said on the branch that was on the screen, in order."""
    nodes = {
        key: node for key, node in conversation["mapping"].items() if isinstance(node, Mapping)
    }
    shown = _shown(nodes, text_or_none(conversation.get("current_node")))
    for key, node in nodes.items():
        if key not in shown and isinstance(node.get("message"), Mapping):
            yield LeftOut("another branch")
    for key in shown:
        message = nodes[key].get("message")
        if isinstance(message, Mapping):
            yield _draft(message, text_or_none(message.get("id")) or key)


def _shown(nodes: _Nodes, current: str | None) -> dict[str, None]:
    """The keys of the nodes that were on the screen, in order."""
    parents = _parents(nodes)
    if not any(parents.values()):  # a list in a tree's clothes: every node stands alone
        return dict.fromkeys(nodes)
    if current not in nodes:
        current = _newest_leaf(nodes, parents)
    return dict.fromkeys(branch(parents, current) if current is not None else ())


def _parents(nodes: _Nodes) -> dict[str, str | None]:
    """Each node's parent, as it says itself or as the parent says of it."""
    said: dict[str, str] = {}
    for key, node in nodes.items():
        for child in node.get("children") or ():
            if child in nodes:
                said.setdefault(child, key)
    return {key: text_or_none(node.get("parent")) or said.get(key) for key, node in nodes.items()}


def _newest_leaf(nodes: _Nodes, parents: Mapping[str, str | None]) -> str | None:
    """The leaf whose branch ends last; of equals, the one that stands last in the file."""
    inner = set(parents.values())
    leaves = [key for key in nodes if key not in inner] or list(nodes)
    place = {key: number for number, key in enumerate(nodes)}
    return max(leaves, key=lambda key: (_ended(nodes, parents, key), place[key]), default=None)


def _ended(nodes: _Nodes, parents: Mapping[str, str | None], leaf: str) -> float:
    for key in reversed(branch(parents, leaf)):
        message = nodes[key].get("message")
        time = moment(message.get("create_time")) if isinstance(message, Mapping) else None
        if time is not None:
            return time.timestamp()
    return 0.0


def _draft(message: Mapping[str, Any], id: str) -> Draft | LeftOut:
    author = message.get("author")
    author = author if isinstance(author, Mapping) else {}
    content = message.get("content")
    content = content if isinstance(content, Mapping) else {}
    reason = _no_speech(message, author, content)
    if reason is not None:
        return LeftOut(reason)
    role = _ROLES.get(str(author.get("role")))
    if role is None:
        return LeftOut(f"unknown role {author.get('role')!r}")
    return Draft(
        role=role,
        content=_said(content),
        name=text_or_none(author.get("name")),
        time=moment(message.get("create_time")),
        source_id=id,
    )


def _no_speech(
    message: Mapping[str, Any], author: Mapping[str, Any], content: Mapping[str, Any]
) -> str | None:
    metadata = message.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    if content.get("content_type") in _INSTRUCTIONS or metadata.get("is_user_system_message"):
        return "custom instructions"
    if metadata.get("is_visually_hidden_from_conversation"):
        return "hidden message"
    if author.get("role") == "tool" or message.get("recipient") not in (None, "", "all"):
        return "tool traffic"
    if content.get("content_type") in _THOUGHTS:
        return THINKING
    return None if _said(content) else EMPTY


def _said(content: Mapping[str, Any]) -> str | tuple[JsonObject, ...] | None:
    """The text; a picture or a file, which the export only points to, is marked in it."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return text_or_none(content.get("text"))
    texts = [text for part in parts if (text := _part(part))]
    return "\n".join(texts) or None


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    kind = str(part.get("content_type", "part")).removesuffix("_asset_pointer")
    return f"[{kind}: {part.get('asset_pointer', 'not in the export')}]"
