"""The values at every boundary: what they accept, refuse, and give back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory.codec import decode, encode
from memory.errors import EmptyInput, InvalidInput, InvalidScope
from memory.models import Message, Role, Scope, ToolCall


@given(st.text(st.characters(), min_size=1, max_size=200))
def test_any_text_survives_the_way_to_bytes_and_back(text: str) -> None:
    message = Message(role=Role.USER, content=text, metadata={"note": text})
    assert Message.from_json(decode(encode(message.to_json()))) == message


def test_values_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Message(role=Role.USER, content="a").content = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", ["", "   ", "*", "a\nb", "\ud800", " padded ", "x" * 513, None, 7, ["a"]]
)
def test_what_cannot_be_a_user_is_refused(name: object) -> None:
    with pytest.raises(InvalidScope):
        Scope.of("default", name)
    with pytest.raises(InvalidScope):
        Scope.of(name, "ada")


@pytest.mark.parametrize("name", ["ada", "李雷", "a:b/c{d}", "ada@example.org", "🐈", "a b"])
def test_names_of_any_script_can_be_users(name: str) -> None:
    assert Scope.of("default", name).user == name


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": ""},
        {"role": "user", "content": " \n\t"},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "text", "text": " "}]},
        {"role": "assistant", "content": None},
    ],
)
def test_a_message_with_nothing_in_it_is_empty(message: dict[str, object]) -> None:
    with pytest.raises(EmptyInput):
        Message.parse(message).require_content()


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hello"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f"}]},
        {"role": "tool", "content": "", "tool_call_id": "c"},
    ],
)
def test_a_message_with_something_in_it_is_not_empty(message: dict[str, object]) -> None:
    assert Message.parse(message).require_content()


def test_openai_tool_calls_are_understood() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"q":"北京"}'}}
    message = Message.parse({"role": "assistant", "content": None, "tool_calls": [call]})
    assert message.tool_calls == (ToolCall(id="c1", name="f", arguments='{"q":"北京"}'),)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "unknown", "content": "a"},
        {"role": "user"} | {"surprise": 1},
        {"role": "tool", "content": "result of nothing"},
        {"role": "user", "content": "a", "tool_calls": [{"id": "c", "name": "f"}]},
        {"role": "user", "content": 7},
        {"role": "user", "content": "a", "event_time": "some day"},
    ],
)
def test_messages_of_another_shape_are_refused_by_name(message: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="not a Message"):
        Message.parse(message)


def test_a_trusted_value_is_the_value_itself() -> None:
    checked = Message(role=Role.USER, content="hello", metadata={"a": 1})
    trusted = Message.trusted(**{name: getattr(checked, name) for name in Message.model_fields})
    assert trusted == checked
    assert trusted.to_json() == checked.to_json()
    assert trusted.model_copy(update={"content": "bye"}).text == "bye"
    assert hash(Scope.trusted(tenant="a", user="b")) == hash(Scope.of("a", "b"))
