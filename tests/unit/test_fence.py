"""What a context lent is told from what was said, wherever in a message it stands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory.errors import InvalidInput
from memory.fence import fence, strip_fences
from memory.given import as_recorded
from memory.models import Message
from memory.providers import anthropic_request, openai_request
from memory.redact import Redactor

LENT = fence("From memory, the kayak is red.")


def recorded(**given: Any) -> Message:
    kept = as_recorded(Message.parse({"role": "assistant", **given}), None, Redactor())
    assert kept is not None
    return kept


@pytest.mark.parametrize("body", ["half \ud83d of one", "\ud83e\udd8a apart", "\udc00"])
def test_a_fence_is_known_again_from_a_request_that_holds_no_lone_surrogates(body: str) -> None:
    message = {"role": "user", "content": fence(body)}
    (sent,) = openai_request([message])["messages"]
    assert strip_fences(sent["content"]) == ""
    (sent,) = anthropic_request([message])["messages"]
    assert strip_fences(sent["content"][0]["text"]) == ""


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_result", "tool_use_id": "t1", "content": f"{LENT}\nfound"},
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"text": f"{LENT}\nfound"}]},
        {"type": "thinking", "thinking": f"{LENT}\nfound"},
        {"type": "tool_use", "id": "t1", "name": "ask", "input": {"prompt": f"{LENT}\nfound"}},
    ],
)
def test_what_was_lent_is_not_kept_in_any_part(part: dict[str, Any]) -> None:
    kept = json.dumps(recorded(content=[part, {"type": "text", "text": "Yes."}]).to_json())
    assert "kayak" not in kept
    assert "found" in kept


def test_what_was_lent_is_not_kept_in_what_a_tool_is_called_with() -> None:
    arguments = json.dumps({"prompt": f"{LENT}\nWhere is it?", "kept": "a <memory-x>"})
    call = {"id": "c1", "type": "function", "function": {"name": "ask", "arguments": arguments}}
    message = recorded(tool_calls=[call], metadata={"prompt": f"before\n{LENT}"})
    kept = json.loads(message.tool_calls[0].arguments)
    assert kept["prompt"].strip() == "Where is it?"
    assert kept["kept"] == "a <memory-x>"
    assert message.metadata == {"prompt": "before"}


def test_a_message_that_was_lent_nothing_is_kept_as_it_is() -> None:
    parts = [{"type": "text", "text": ""}, {"type": "text", "text": "a <memory-0a1b2c3d>"}]
    assert recorded(content=parts).content == tuple(parts)


def test_what_is_nested_too_deep_is_refused_by_name() -> None:
    deep: dict[str, Any] = {"type": "x"}
    for _ in range(100_000):
        deep = {"type": "x", "inner": deep}
    message = Message.model_construct(role="user", content=(deep,), tool_calls=(), metadata={})
    with pytest.raises(InvalidInput, match="too deep"):
        as_recorded(message, None, Redactor())
