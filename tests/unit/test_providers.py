"""Requests that OpenAI and Anthropic accept, from histories of any shape."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import MessageParam, TextBlockParam, ToolParam
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import TypeAdapter

from memory.context import fence, provider
from memory.errors import EmptyInput, InvalidInput
from memory.models import Context, Message, TokenCount
from memory.providers import RAW_ARGUMENTS, anthropic_request, openai_request
from memory.window import sound
from tests.conversations import check_anthropic, check_openai, histories, hostile_text
from tests.llm_endpoint import LLMEndpoint

Json = dict[str, Any]

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0" + b"\0" * 20).decode()
PDF = base64.b64encode(b"%PDF-1.7 nothing in it").decode()
PNG_URL = f"data:image/png;base64,{PNG}"


def user(content: Any = "hi", **more: Any) -> Json:
    return {"role": "user", "content": content, **more}


def assistant(content: Any = None, *calls: tuple[str, str, str], **more: Any) -> Json:
    """Calls are (id, name, arguments)."""
    made = [
        {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call, name, arguments in calls
    ]
    return {
        "role": "assistant",
        "content": content,
        **({"tool_calls": made} if made else {}),
        **more,
    }


def result(call: str, content: Any = "done") -> Json:
    return {"role": "tool", "tool_call_id": call, "content": content}


def text(said: str, **more: Any) -> Json:
    return {"type": "text", "text": said, **more}


def for_anthropic(*messages: Json, **more: Any) -> list[Json]:
    """The request's messages, which Anthropic accepts."""
    request = anthropic_request(messages, **more)
    assert check_anthropic(request) == []
    return request["messages"]


def for_openai(*messages: Json, **more: Any) -> list[Json]:
    """The request's messages, which OpenAI accepts."""
    request = openai_request(messages, **more)
    assert check_openai(request) == []
    return request["messages"]


def blocks_of(messages: list[Json], kind: str) -> list[Json]:
    return [block for message in messages for block in message["content"] if block["type"] == kind]


# --- any history, both providers ---------------------------------------------------------------

_parts = st.one_of(
    st.builds(text, hostile_text),
    st.builds(lambda said: {"type": "output_text", "text": said, "annotations": []}, hostile_text),
    st.builds(lambda said: text(said, cache_control={"type": "ephemeral"}), hostile_text),
    st.sampled_from(
        [
            {"type": "refusal", "refusal": "No."},
            {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}},
            {"type": "image_url", "image_url": PNG_URL},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            {"type": "image_url", "image_url": {"url": "http://example.com/a.png", "detail": "?"}},
            {"type": "image_url", "image_url": {"url": "data:image/svg+xml;utf8,<svg/>"}},
            {"type": "image_url", "image_url": None},
            {"type": "image_url"},
            {"type": "input_image", "image_url": f"data:image/jpeg;base64,{PNG}"},
            {"type": "input_image", "file_id": "file-1"},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/bmp", "data": "Qk"},
            },
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.gif"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "image", "source": {}},
            {"type": "image", "base64": JPEG[:-2], "mime_type": "image/png"},
            {"type": "image", "base64": "?!", "mime_type": "image/png"},
            {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}"}},
            {"type": "file", "file": {"file_id": "file-1", "filename": "a.pdf"}},
            {"type": "file", "base64": "aGk=", "mime_type": "text/plain"},
            {"type": "input_file", "file_url": "https://example.com/a.pdf?x=1"},
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "x"},
            },
            {"type": "document", "source": {"type": "content", "content": [text(" "), text("in")]}},
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a"}},
            {"type": "document", "source": {"type": "base64", "data": "aGk="}},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "ogg"}},
            {"type": "audio", "base64": "aGk=", "mime_type": "audio/mpeg"},
            {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "thinking", "thinking": "Hm."},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}},
            {"type": "search_result", "source": "s", "title": "t", "content": [text("x")]},
            {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "茶"}},
            {"type": "tool_use", "id": "c9", "name": "search", "input": {RAW_ARGUMENTS: "[1"}},
            {"type": "tool_result", "tool_use_id": "c1", "content": "from a block"},
            {
                "type": "tool_result",
                "tool_use_id": "c9",
                "is_error": True,
                "content": [text(" "), {"type": "tool_result"}, {"type": "image", "base64": PNG}],
            },
            {"type": "something_new", "data": {"deep": [1]}},
            {},
        ]
    ),
)
_contents = st.none() | hostile_text | st.lists(_parts, max_size=4)
_ids = st.sampled_from(["c1", "c2", "functions.search:0", "", "x" * 50, "\ud800", "\ud801", "c 1"])
_arguments = (
    st.sampled_from(
        ["{}", "", "[1]", '{"a":NaN}', '{"a":1,"a":2}', '{"a":1e999}', '{"a', '{"q":"\\ud800"}']
    )
    | hostile_text
    | st.just('{"a":' * 500 + "1" + "}" * 500)
)
_names = st.none() | st.sampled_from(["ada", "bob <3", "\ud800", "李"])


@st.composite
def chats(draw: st.DrawFn) -> list[Json]:
    """Messages as careless applications keep them."""
    made: list[Json] = []
    for role in draw(
        st.lists(
            st.sampled_from(["system", "user", "user", "assistant", "calls", "tool"]), max_size=10
        )
    ):
        name = draw(_names)
        named = {"name": name} if name is not None else {}
        if role == "calls":
            calls = draw(
                st.lists(
                    st.tuples(_ids, st.sampled_from(["search", "a.b 茶", ""]), _arguments),
                    min_size=1,
                    max_size=3,
                )
            )
            made.append(assistant(draw(_contents), *calls, **named))
            for call, _, _ in calls:
                if draw(st.booleans()):
                    made.append(result(call, draw(_contents)))
        elif role == "tool":
            made.append(result(draw(_ids), draw(_contents)))
        else:
            made.append({"role": role, "content": draw(_contents), **named})
    return made


@given(chats(), st.booleans(), st.integers(0, 10))
@example([assistant("hi \n")], True, 0)
@example([user([text("\ud83d"), text("\ude00")])], False, 0)
def test_whatever_the_history_anthropic_accepts_the_request(
    chat: list[Json], cache: bool, stable: int
) -> None:
    before = json.dumps(chat)
    try:
        request = anthropic_request(chat, TOOLS, cache=cache, stable=stable)
    except EmptyInput:
        return
    assert check_anthropic(request) == []
    exhausted(ANTHROPIC_MESSAGES.validate_python(request["messages"]))
    exhausted(ANTHROPIC_SYSTEM.validate_python(request.get("system", [])))
    exhausted(ANTHROPIC_TOOLS.validate_python(request["tools"]))
    assert json.dumps(chat) == before
    assert anthropic_request(chat, TOOLS, cache=cache, stable=stable) == request
    if not cache:
        assert "cache_control" not in json.dumps(request)


@given(chats())
def test_whatever_the_history_openai_accepts_the_request(chat: list[Json]) -> None:
    before = json.dumps(chat)
    try:
        request = openai_request(chat, TOOLS)
    except EmptyInput:
        return
    assert check_openai(request) == []
    exhausted(OPENAI_MESSAGES.validate_python(request["messages"]))
    exhausted(OPENAI_TOOLS.validate_python(request["tools"]))
    assert json.dumps(chat) == before
    assert openai_request(request["messages"], request["tools"]) == request


@given(histories())
def test_a_sound_history_keeps_every_text_for_both_providers(history: list[Message]) -> None:
    messages = [provider(message) for message in sound(history).messages]
    said = [message for message in messages if is_seen(message["content"] or "")]
    if all(message["role"] in ("system", "developer") for message in said):
        return
    for request, check in (
        (openai_request(messages), check_openai),
        (anthropic_request(messages), check_anthropic),
    ):
        assert check(request) == []
        whole = json.dumps(request, ensure_ascii=False)
        for message in said:
            both = message["content"].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            assert json.dumps(both.rstrip(), ensure_ascii=False)[1:-1] in whole


def is_seen(said: str) -> bool:
    return any(not c.isspace() and unicodedata.category(c) != "Cf" for c in said)


ANTHROPIC_MESSAGES, ANTHROPIC_SYSTEM, ANTHROPIC_TOOLS = map(
    TypeAdapter, (list[MessageParam], list[TextBlockParam], list[ToolParam])
)
OPENAI_MESSAGES, OPENAI_TOOLS = map(
    TypeAdapter, (list[ChatCompletionMessageParam], list[ChatCompletionToolParam])
)


def exhausted(value: Any) -> None:
    """Looks at everything: what the SDKs' types call Iterable is checked when it is walked."""
    if isinstance(value, dict):
        exhausted(list(value.values()))
    elif isinstance(value, list | tuple | Iterator):
        for each in value:
            exhausted(each)


SCHEMA = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}}
OPENAI_TOOL = {
    "type": "function",
    "function": {"name": "search", "description": "Finds.", "parameters": SCHEMA},
}
ANTHROPIC_TOOL = {"name": "search", "description": "Finds.", "input_schema": SCHEMA}
TOOLS = [OPENAI_TOOL]


# --- Anthropic ---------------------------------------------------------------------------------


def test_system_texts_go_word_for_word_to_the_system() -> None:
    request = anthropic_request(
        [
            {"role": "system", "content": "  Be brief.\n"},
            user(),
            {"role": "developer", "content": [text("Be kind."), text("")]},
        ]
    )
    assert request["system"] == [text("  Be brief.\n"), text("Be kind.")]
    assert request["messages"] == [{"role": "user", "content": [text("hi")]}]
    assert "system" not in anthropic_request([user()])


def test_results_come_first_in_one_message_in_the_order_of_the_calls() -> None:
    messages = for_anthropic(
        user(),
        assistant("Let me look.", ("c1", "search", '{"q":"北京"}'), ("c2", "search", "{}")),
        result("c2", "second"),
        result("c1", "first"),
        user("And?"),
    )
    assert messages[1]["content"] == [
        text("Let me look."),
        {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "北京"}},
        {"type": "tool_use", "id": "c2", "name": "search", "input": {}},
    ]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text("first")]},
        {"type": "tool_result", "tool_use_id": "c2", "content": [text("second")]},
        text("And?"),
    ]


NO_OBJECTS = {
    "a list": "[1, 2]",
    "no JSON": "not json",
    "blank": " ",
    "no number": '{"a":NaN}',
    "too large": '{"a":1e999}',
    "a key twice": '{"a":1,"a":2}',
    "the key itself": '{"_arguments":"x"}',
    "deep": '{"a":' * 100 + "1" + "}" * 100,
}


@pytest.mark.parametrize("arguments", NO_OBJECTS.values(), ids=NO_OBJECTS.keys())
def test_arguments_that_are_no_object_stand_whole_under_one_key(arguments: str) -> None:
    messages = for_anthropic(user(), assistant(None, ("c1", "search", arguments)), result("c1"))
    (use,) = blocks_of(messages, "tool_use")
    assert use["input"] == {RAW_ARGUMENTS: arguments}
    (_, call, _) = for_openai(*messages)
    assert call["tool_calls"][0]["function"]["arguments"] == arguments


def test_an_id_that_anthropic_refuses_or_has_seen_is_another_one_the_same_in_call_and_result() -> (
    None
):
    turns = []
    for _ in range(3):
        ids = ("call_0", "functions.search:0", "functions/search:0")
        calls = [(call, "search", "{}") for call in ids]
        turns += [user(), assistant(None, *calls), *(result(call, call) for call in ids)]
    messages = for_anthropic(*turns)
    uses, results = blocks_of(messages, "tool_use"), blocks_of(messages, "tool_result")
    sent = [use["id"] for use in uses]
    assert sent[0] == "call_0"
    assert len(set(sent)) == 9
    assert [one["tool_use_id"] for one in results] == sent
    assert [one["content"][0]["text"] for one in results[:3]] == [
        "call_0",
        "functions.search:0",
        "functions/search:0",
    ]
    assert blocks_of(for_anthropic(*turns, user("more")), "tool_use") == uses


def test_one_id_for_very_many_calls_is_no_burden() -> None:
    turns = [[assistant(None, ("c1", "search", "{}")), result("c1")] for _ in range(3_000)]
    messages = for_anthropic(user(), *(message for turn in turns for message in turn))
    assert len({use["id"] for use in blocks_of(messages, "tool_use")}) == 3_000


def test_blank_texts_are_left_out_and_messages_that_hold_nothing_then() -> None:
    messages = for_anthropic(
        user("one"),
        assistant(" \n"),
        user([text(""), text("two"), text("\u200b")]),
        assistant("", ("c1", "search", "{}")),
        result("c1", " "),
        assistant("Done. \n"),
    )
    assert messages[0]["content"] == [text("one"), text("two")]
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "c1"}]
    assert messages[-1]["content"] == [text("Done.")]
    assert for_anthropic(user(" kept \n"))[0]["content"] == [text(" kept \n")]
    with pytest.raises(EmptyInput):
        anthropic_request([{"role": "system", "content": "x"}, user(" ")])
    with pytest.raises(EmptyInput):
        openai_request([user("")])


def test_the_user_speaks_first() -> None:
    first, second = for_anthropic(assistant("Good morning."))
    assert first["role"] == "user"
    assert second["content"] == [text("Good morning.")]
    assert len(for_anthropic(user(), assistant("Good morning."))) == 2


def test_speakers_are_named_and_another_one_changes_nothing_that_was_said_before() -> None:
    before = [user("hi", name="ada"), assistant("Hello.", name="robot")]
    several = for_anthropic(
        *before,
        user([{"type": "image_url", "image_url": PNG_URL}], name="bob"),
        user("from nobody"),
    )
    assert several[:2] == for_anthropic(*before)
    assert several[0]["content"] == [text("ada: hi")]
    assert several[1]["content"] == [text("Hello.")]
    assert [block.get("text") for block in several[2]["content"]] == ["bob:", None, "from nobody"]
    assert for_openai(user("hi", name="ada l"))[0] == user("hi", name="ada_l")


def test_thinking_stays_with_the_provider_that_thought_it() -> None:
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    chat = [user(), assistant([signed, text("Yes.")]), user([signed, text("ok")])]
    messages = for_anthropic(*chat)
    assert messages[1]["content"] == [signed, text("Yes.")]
    assert messages[2]["content"] == [text("ok")]
    assert "Hm." not in json.dumps(for_openai(*chat))
    unsigned = assistant([{"type": "thinking", "thinking": "Hm."}, text("Yes.")])
    assert for_anthropic(user(), unsigned)[1]["content"] == [text("Yes.")]


def test_a_call_without_a_result_is_answered_and_a_result_without_its_call_is_told() -> None:
    chat = [user(), assistant(None, ("c1", "search", "{}")), user("Well?"), result("gone", "42")]
    (_, _, answers) = for_anthropic(*chat)
    assert answers["content"][0]["content"] == [
        text("[No result was recorded for this call of search.]")
    ]
    assert [block["text"] for block in answers["content"][1:]] == [
        "Well?",
        "[The result of a call that is not shown:]",
        "42",
    ]
    assert "42" in json.dumps(for_openai(*chat)[-1])


def test_a_second_result_of_a_call_is_told_and_a_tool_is_no_speaker() -> None:
    call = assistant(None, ("c1", "search", "{}"))
    again = {**result("c1", "second"), "name": "search"}
    (_, _, answers) = for_anthropic(user("hi", name="ada"), call, result("c1", "first"), again)
    assert answers["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text("first")]},
        text("[The result of a call that is not shown:]"),
        text("second"),
    ]


# --- pictures, files, sounds -------------------------------------------------------------------


def base64_source(data: str) -> Json:
    return {"type": "base64", "media_type": "image/png", "data": data}


PICTURES = {
    "chat": {"type": "image_url", "image_url": {"url": PNG_URL}},
    "chat, a text": {"type": "image_url", "image_url": PNG_URL},
    "responses": {"type": "input_image", "image_url": PNG_URL},
    "anthropic": {"type": "image", "source": base64_source(PNG)},
    "anthropic, a data URL": {"type": "image", "source": base64_source(PNG_URL)},
    "langchain": {"type": "image", "base64": PNG, "mime_type": "image/png"},
    "langchain, a data URL": {"type": "image", "base64": PNG_URL, "mime_type": "image/png"},
    "langchain, older": {"type": "image", "source_type": "base64", "data": PNG},
    "the wrong type": {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PNG}"}},
    "no type": {"type": "image", "base64": PNG},
    "no padding": {"type": "image", "base64": PNG.rstrip("="), "mime_type": "image/png"},
    "line ends": {"type": "image", "base64": f"{PNG[:20]}\n{PNG[20:]}", "mime_type": "image/png"},
    "bare": {"type": "image_url", "image_url": PNG},
}


@pytest.mark.parametrize("shape", PICTURES.values(), ids=PICTURES.keys())
def test_a_picture_of_any_shape_is_a_picture_for_both_providers(shape: Json) -> None:
    """MM-01"""
    (message,) = for_anthropic(user([text("What is it?"), shape]))
    assert message["content"] == [
        text("What is it?"),
        {"type": "image", "source": base64_source(PNG)},
    ]
    (message,) = for_openai(user([text("What is it?"), shape]))
    asked, picture = message["content"]
    assert asked == text("What is it?")
    assert re.sub(r"\s|=", "", picture["image_url"]["url"]).endswith(PNG.rstrip("="))


def test_a_picture_by_its_address_and_its_detail_stay() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
    assert for_openai(user([part]))[0]["content"] == [part]
    assert for_anthropic(user([part]))[0]["content"] == [
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    ]


def test_files_are_documents_and_documents_are_files() -> None:
    pdf_url = f"data:application/pdf;base64,{PDF}"
    file = {"type": "file", "file": {"filename": "plan.pdf", "file_data": pdf_url}}
    document = {
        "type": "document",
        "title": "plan.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
    }
    for part in (file, document):
        assert for_anthropic(user([part]))[0]["content"] == [document]
        assert for_openai(user([part]))[0]["content"] == [file]
    notes = {"type": "file", "base64": "5YyX5Lqs", "mime_type": "text/plain"}
    assert for_anthropic(user([notes]))[0]["content"][0]["source"]["data"] == "北京"
    assert for_openai(user([notes]))[0]["content"] == [text("北京")]


def test_what_a_provider_has_no_shape_for_is_named() -> None:
    sound_part = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    assert for_openai(user([sound_part]))[0]["content"] == [sound_part]
    parts = [
        sound_part,
        {"type": "image_url", "image_url": {"url": "http://example.com/a.png"}},
        {"type": "file", "file": {"file_id": "file-1", "filename": "a b.pdf"}},
        {"type": "something_new", "payload": "x"},
    ]
    assert [block["text"] for block in for_anthropic(user(parts))[0]["content"]] == [
        "[audio: not shown]",
        "[image at http://example.com/a.png: not shown]",
        "[file 'a b.pdf': not shown]",
        "[something_new: not shown]",
    ]
    drawn = assistant([{"type": "image_url", "image_url": PNG_URL}])
    assert for_anthropic(user(), drawn)[1]["content"] == [text("[image (image/png): not shown]")]
    assert for_openai(user(), drawn)[1]["content"] == [text("[image (image/png): not shown]")]


def test_a_picture_that_a_tool_gave_is_shown() -> None:
    chat = [
        user("Look."),
        assistant(None, ("c1", "camera", "{}"), ("c2", "clock", "{}")),
        result("c1", [text("Here:"), {"type": "image_url", "image_url": PNG_URL}]),
        result("c2", "noon"),
    ]
    (first, _) = blocks_of(for_anthropic(*chat), "tool_result")
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    roles = [message["role"] for message in for_openai(*chat)]
    assert roles == ["user", "assistant", "tool", "tool", "user"]
    assert for_openai(*chat)[-1]["content"] == [
        text("[From the result of camera:]"),
        {"type": "image_url", "image_url": {"url": PNG_URL}},
    ]


# --- OpenAI ------------------------------------------------------------------------------------


def test_what_openai_accepts_stays_as_it_is() -> None:
    chat = [
        {"role": "developer", "content": "Be brief.", "name": "ops"},
        user([text("one"), text("two")], name="ada"),
        assistant(None, ("call_0", "search", '{ "q": "北\\n" }')),
        result("call_0", ""),
        assistant("Done. \n"),
        user("  spaces stay  "),
        assistant(None, ("call_0", "search", "not json")),
        result("call_0", [text("a"), text("b")]),
    ]
    assert for_openai(*chat) == chat


def test_openai_is_given_no_empty_content_and_no_long_id() -> None:
    messages = for_openai(
        user([text(""), text("x")]),
        assistant(""),
        assistant("", ("x" * 41, "a.b", "")),
        {**result("x" * 41), "name": "a.b"},
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[0]["content"] == [text("x")]
    assert messages[1]["content"] is None
    (call,) = messages[1]["tool_calls"]
    assert call["function"] == {"name": "a_b", "arguments": "{}"}
    assert call["id"] == messages[2]["tool_call_id"] != "x" * 41


def test_blocks_of_anthropic_become_calls_and_results_for_openai() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "茶"}}
    chat = [
        user(),
        assistant([text("Hm."), use]),
        user([{"type": "tool_result", "tool_use_id": "t1", "content": [text("tea")]}, text("So?")]),
    ]
    assert for_openai(*chat) == [
        user(),
        assistant([text("Hm.")], ("t1", "search", '{"q": "茶"}')),
        result("t1", "tea"),
        user([text("So?")]),
    ]
    assert for_anthropic(*chat)[1:] == chat[1:]


# --- tools, roles, characters ------------------------------------------------------------------


@pytest.mark.parametrize(
    "tool",
    [
        OPENAI_TOOL,
        ANTHROPIC_TOOL,
        {"type": "function", "name": "search", "description": "Finds.", "parameters": SCHEMA},
        {"name": "search", "description": "Finds.", "inputSchema": SCHEMA},
        {"type": "custom", **ANTHROPIC_TOOL},
    ],
)
def test_a_tool_of_any_shape_is_a_tool_for_both_providers(tool: Json) -> None:
    for_both = openai_request([user()], [tool]), anthropic_request([user()], [tool])
    assert check_openai(for_both[0]) == check_anthropic(for_both[1]) == []
    assert for_both[0]["tools"] == [OPENAI_TOOL]
    (made,) = for_both[1]["tools"]
    assert {k: v for k, v in made.items() if k != "type"} == ANTHROPIC_TOOL
    assert json.dumps(made["input_schema"]) == json.dumps(SCHEMA)


def test_a_tool_without_parameters_has_an_empty_schema() -> None:
    bare = {"type": "function", "function": {"name": "now"}}
    assert check_openai(openai_request([user()], [bare])) == []
    assert anthropic_request([user()], [bare])["tools"] == [
        {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    ]
    assert "tools" not in openai_request([user()])
    assert "tools" not in anthropic_request([user()])


def test_a_tool_that_a_provider_does_not_have_is_refused_by_name() -> None:
    web = {"type": "web_search_20250305", "name": "web_search"}
    assert anthropic_request([user()], [web])["tools"] == [web]
    with pytest.raises(InvalidInput, match="web_search_20250305"):
        openai_request([user()], [web])
    with pytest.raises(InvalidInput, match="code_interpreter"):
        anthropic_request([user()], [{"type": "code_interpreter"}])


@pytest.mark.parametrize("request_of", [openai_request, anthropic_request])
def test_what_is_no_message_is_refused_by_its_place(request_of: Callable[..., Json]) -> None:
    with pytest.raises(InvalidInput, match="message 1 has the role 'robot'"):
        request_of([user(), {"role": "robot", "content": "x"}])


@pytest.mark.parametrize("request_of", [openai_request, anthropic_request])
def test_halves_of_a_character_are_joined_and_lone_ones_replaced(
    request_of: Callable[..., Json],
) -> None:
    request = request_of([user('\ud83d\ude00 "\ud83d" \udc00\\ ok\x00')], [OPENAI_TOOL])
    whole = json.dumps(request, ensure_ascii=False)
    assert '\U0001f600 \\"\ufffd\\" \ufffd\\\\ ok\\u0000' in whole
    assert whole.encode()


# --- the prompt cache --------------------------------------------------------------------------


def marked(messages: list[Json]) -> list[Json]:
    return [
        block for message in messages for block in message["content"] if "cache_control" in block
    ]


def context(*messages: Json, memory: int = 10, tools: list[Json] | None = None) -> Context:
    tokens = TokenCount(memory=memory)
    return Context(messages=tuple(messages), tools=tuple(tools or ()), tokens=tokens)


BLOCK = user(fence("From memory, as of 2026-01-02."))


def test_the_marks_end_tools_system_and_what_stands_before_the_memory() -> None:
    made = context(
        {"role": "system", "content": "Be brief."},
        user(fence("Summary of earlier messages.")),
        user("one"),
        assistant("two"),
        BLOCK,
        user("three"),
        tools=[{**ANTHROPIC_TOOL, "name": "other", "cache_control": {"type": "x"}}, OPENAI_TOOL],
    )
    request = made.anthropic(cache=True)
    assert check_anthropic(request) == []
    assert ["cache_control" in tool for tool in request["tools"]] == [False, True]
    assert "cache_control" in request["system"][0]
    assert [block["text"] for block in marked(request["messages"])] == ["two"]
    assert marked(made.anthropic()["messages"]) == []
    assert check_openai(made.openai()) == []


def test_without_a_memory_block_the_mark_ends_the_whole_request() -> None:
    made = context(user("one"), assistant("two"), user("three"), memory=0)
    assert [block["text"] for block in marked(made.anthropic(cache=True)["messages"])] == ["three"]


def test_in_the_middle_of_a_turn_the_end_of_the_request_has_a_mark_too() -> None:
    made = context(
        {"role": "system", "content": "Be brief."},
        user("one"),
        assistant("two"),
        BLOCK,
        user("three"),
        assistant(None, ("c1", "search", "{}")),
        result("c1", "found"),
        tools=TOOLS,
    )
    request = made.anthropic(cache=True)
    assert check_anthropic(request) == []
    assert [block["type"] for block in marked(request["messages"])] == ["text", "tool_result"]
    first = marked(request["messages"])[0]
    assert first["text"] == "two"


FOUND = {"type": "search_result", "source": "s", "title": "t", "content": [text("x")]}


def test_a_mark_is_never_on_thinking_and_stored_marks_are_taken_out() -> None:
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    old = [user([{**found, "cache_control": {"type": "ephemeral"}}]) for found in [FOUND] * 6]
    made = context(*old, user("one"), assistant([text("two"), signed]), BLOCK, user("three"))
    request = made.anthropic(cache=True)
    assert check_anthropic(request) == []
    assert [block["text"] for block in marked(request["messages"])] == ["two"]
    assert blocks_of(request["messages"], "search_result") == [FOUND] * 6


# --- the providers' own clients ----------------------------------------------------------------

CHAT = [
    {"role": "system", "content": "Be brief."},
    user([text("What is it? \ud83d"), PICTURES["langchain"]], name="ada"),
    assistant("", ("functions.look:0", "search", '{"q":"北京"}'), ("c2", "search", "[1]")),
    result("functions.look:0", "你好"),
    result("c2", [text("x"), PICTURES["chat"]]),
    user("And? \x00 <|endoftext|>", name="bob"),
]


async def test_anthropics_client_sends_the_request_unchanged(llm_endpoint: LLMEndpoint) -> None:
    request: Any = anthropic_request(CHAT, TOOLS, cache=True)
    async with anthropic.AsyncAnthropic(
        api_key="test-key", base_url=llm_endpoint.anthropic_url, max_retries=0
    ) as client:
        await client.messages.create(model="claude-haiku-4-5", max_tokens=100, **request)
    (asked,) = llm_endpoint.requests
    assert {key: asked.body[key] for key in request} == request


async def test_openais_client_sends_the_request_unchanged(llm_endpoint: LLMEndpoint) -> None:
    request: Any = openai_request(CHAT, TOOLS)
    async with openai.AsyncOpenAI(
        api_key="test-key", base_url=llm_endpoint.url, max_retries=0
    ) as client:
        await client.chat.completions.create(model="gpt-4o", **request)
    (asked,) = llm_endpoint.requests
    assert {key: asked.body[key] for key in request} == request
