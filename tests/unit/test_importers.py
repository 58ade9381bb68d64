"""Importers: files of every known shape become the conversation that was had, and nothing else."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory.errors import ImportRefused
from memory.importers import Conversation, Problem, read, to_anthropic, to_openai
from memory.models import Message, Role

NINE = datetime(2025, 3, 4, 9, 0, tzinfo=UTC)


def test_a_chatgpt_export_gives_each_conversation_its_session_roles_and_old_times(
    tmp_path: Path,
) -> None:
    export = [
        _chatgpt("trip", _turns("Where to in May?", "Try Ghent."), title="A trip"),
        _chatgpt("soup", _turns("How long do lentils take?", "Twenty minutes.")),
    ]
    trip, soup = _conversations(_file(tmp_path, export))
    assert (trip.session, soup.session) == ("trip", "soup")
    assert trip.title == "A trip"
    assert _said(trip) == [("user", "Where to in May?"), ("assistant", "Try Ghent.")]
    assert [message.event_time for _, message in trip.messages] == [
        NINE,
        datetime(2025, 3, 4, 9, 1, tzinfo=UTC),
    ]
    assert not any('"mapping"' in text for _, text in _said(trip) + _said(soup))


def test_reading_a_file_again_gives_the_same_keys(tmp_path: Path) -> None:
    path = _file(tmp_path, [_chatgpt("trip", _turns("Where to?", "Ghent.", "Where to?"))])
    keys = [key for key, _ in _conversations(path)[0].messages]
    assert len(set(keys)) == 3
    assert [key for key, _ in _conversations(path)[0].messages] == keys


def test_a_file_that_has_grown_gives_its_old_part_the_old_keys(tmp_path: Path) -> None:
    said = [{"role": "user", "content": text} for text in ("ok", "ok", "really?")]
    before = _conversations(_file(tmp_path, said))[0]
    after = _conversations(_file(tmp_path, [*said, {"role": "user", "content": "ok"}]))[0]
    assert [key for key, _ in after.messages[:3]] == [key for key, _ in before.messages]
    assert after.messages[3][0] not in [key for key, _ in before.messages]


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1},
        [{"a": 1}, {"b": 2}],
        [],
        [1, 2],
        "text",
        {"type": "entity", "name": "Ana", "entityType": "person", "observations": []},
        [{"id": "x", "question": [[{"role": "user", "content": "hi"}]]}],
    ],
)
def test_a_shape_that_nothing_knows_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ImportRefused, match=r"export\.json"):
        read(_file(tmp_path, value))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"just words", b"\xff\xfe\xfa", b"[1, 2"])
def test_a_file_that_holds_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(content)
    with pytest.raises(ImportRefused, match=r"export\.json"):
        list(read(path).found)


# --- ChatGPT's tree ----------------------------------------------------------------------------


def _branched() -> dict[str, Any]:
    """An edited answer: B1 and B2 are two answers to A; the screen showed A, B2, C2, D2."""
    return {
        "root": _node("root", None, None, ["sys"]),
        "sys": _node("sys", "root", _message("system", "be brief", hidden=True), ["A"]),
        "A": _node("A", "sys", _message("user", "A", 1), ["B1", "B2", "gone"]),
        "B1": _node("B1", "A", _message("assistant", "B1", 2), ["C1"]),
        "C1": _node("C1", "B1", _message("user", "C1", 3), []),
        "B2": _node("B2", "A", _message("assistant", "B2", 4), ["py"]),
        "py": _node("py", "B2", _message("assistant", "print(1)", 5, to="python"), ["C2"]),
        "C2": _node("C2", "py", _message("user", "C2", 6), ["D2"]),
        "D2": _node("D2", "C2", _message("assistant", "D2", 7), []),
    }


@pytest.mark.parametrize("current", ["D2", None, "not there"])
def test_only_the_branch_that_was_on_the_screen_is_read(
    tmp_path: Path, current: str | None
) -> None:
    tree = {"id": "t", "mapping": _branched(), "current_node": current}
    found = _conversations(_file(tmp_path, [tree]))[0]
    assert [text for _, text in _said(found)] == ["A", "B2", "C2", "D2"]
    assert sorted(found.left_out) == [
        "another branch",
        "another branch",
        "hidden message",
        "tool traffic",
    ]


def test_another_current_node_reads_the_other_branch(tmp_path: Path) -> None:
    tree = {"id": "t", "mapping": _branched(), "current_node": "C1"}
    found = _conversations(_file(tmp_path, [tree]))[0]
    assert [text for _, text in _said(found)] == ["A", "B1", "C1"]


def test_a_cycle_ends_the_walk(tmp_path: Path) -> None:
    mapping = {
        "a": _node("a", "b", _message("user", "a", 1), ["b"]),
        "b": _node("b", "a", _message("assistant", "b", 2), ["a"]),
    }
    found = _conversations(_file(tmp_path, [{"id": "t", "mapping": mapping}]))[0]
    assert sorted(text for _, text in _said(found)) == ["a", "b"]


def test_custom_instructions_are_not_what_the_user_said(tmp_path: Path) -> None:
    profile = {
        "author": {"role": "user"},
        "create_time": None,
        "content": {"content_type": "user_editable_context", "user_profile": "Name: Jo. 1 March"},
        "metadata": {"is_visually_hidden_from_conversation": True},
    }
    mapping = {
        "p": _node("p", None, profile, ["q"]),
        "q": _node("q", "p", _message("user", "Hello there", None), ["r"]),
        "r": _node("r", "q", _message("assistant", "Hello", 9), []),
    }
    tree = {"id": "t", "create_time": NINE.timestamp(), "mapping": mapping, "current_node": "r"}
    found = _conversations(_file(tmp_path, [tree]))[0]
    assert _said(found) == [("user", "Hello there"), ("assistant", "Hello")]
    assert found.messages[0][1].event_time == NINE
    assert found.left_out == ("custom instructions",)


def test_pictures_of_a_message_are_marked_and_thoughts_left_out(tmp_path: Path) -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1"}
    shown = _message("user", "What is this?", 1)
    shown["content"] = {"content_type": "multimodal_text", "parts": [picture, "What is this?"]}
    thought = _message("assistant", "", 2)
    thought["content"] = {"content_type": "thoughts", "thoughts": [{"content": "a cat?"}]}
    mapping = {
        "a": _node("a", None, shown, ["b"]),
        "b": _node("b", "a", thought, ["c"]),
        "c": _node("c", "b", _message("assistant", "A cat.", 3), []),
    }
    found = _conversations(_file(tmp_path, [{"id": "t", "mapping": mapping}]))[0]
    assert _said(found) == [
        ("user", "[image: file-service://f1]\nWhat is this?"),
        ("assistant", "A cat."),
    ]
    assert found.left_out == ("thinking",)


def test_nodes_without_links_are_read_as_they_stand(tmp_path: Path) -> None:
    mapping = {k: {"id": k, "message": _message("user", k, n)} for n, k in enumerate("abc", 1)}
    found = _conversations(_file(tmp_path, [{"id": "t", "mapping": mapping}]))[0]
    assert [text for _, text in _said(found)] == ["a", "b", "c"]


# --- Claude and Anthropic ----------------------------------------------------------------------


def _claude_export() -> list[dict[str, Any]]:
    said = [
        _claude("m1", "human", "", [{"type": "text", "text": "hi"}]),
        _claude(
            "m2",
            "assistant",
            "",
            [
                {"type": "thinking", "thinking": "they greet me"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "tu1", "name": "search", "input": {"q": "tea"}},
            ],
        ),
        _claude(
            "m3",
            "human",
            "",
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "tu1",
                    "content": [{"type": "text", "text": "three shops"}],
                }
            ],
        ),
        _claude("m4", "assistant", "", []),
        _claude("m5", "assistant", "There are three shops.", None),
    ]
    return [
        {"uuid": "c1", "name": "Tea", "created_at": "2025-03-04T09:00:00Z", "chat_messages": said}
    ]


def test_a_claude_export_keeps_text_calls_and_results_and_leaves_out_thinking(
    tmp_path: Path,
) -> None:
    found = _conversations(_file(tmp_path, _claude_export()))[0]
    assert _said(found) == [
        ("user", "hi"),
        ("assistant", "Let me look."),
        ("tool", "three shops"),
        ("assistant", "There are three shops."),
    ]
    call = found.messages[1][1].tool_calls[0]
    assert (call.id, call.name, json.loads(call.arguments)) == ("tu1", "search", {"q": "tea"})
    assert found.messages[2][1].tool_call_id == "tu1"
    assert sorted(found.left_out) == ["empty message", "thinking"]
    assert "greet" not in repr(found.messages)


def test_an_edited_message_of_claude_leaves_the_old_branch_out(tmp_path: Path) -> None:
    said = [
        _claude("a", "human", "first try", None) | {"parent_message_uuid": "root"},
        _claude("b", "assistant", "to the first", None) | {"parent_message_uuid": "a"},
        _claude("c", "human", "second try", None) | {"parent_message_uuid": "root"},
        _claude("d", "assistant", "to the second", None) | {"parent_message_uuid": "c"},
    ]
    found = _conversations(
        _file(tmp_path, {"conversations": [{"uuid": "x", "chat_messages": said}]})
    )
    assert [text for _, text in _said(found[0])] == ["second try", "to the second"]
    assert found[0].left_out == ("another branch", "another branch")


def test_an_attached_file_is_named_but_its_text_is_not_what_the_user_said(tmp_path: Path) -> None:
    entry = _claude("a", "human", "Shorten this", None)
    entry["attachments"] = [{"file_name": "cv.txt", "extracted_content": "I live in Rome."}]
    found = _conversations(_file(tmp_path, [{"uuid": "x", "chat_messages": [entry]}]))[0]
    assert found.messages[0][1].text == "Shorten this\n[attached: cv.txt]"
    assert found.left_out == ("text of an attached file",)


def test_results_inside_one_assistant_message_split_it_in_the_order_of_events(
    tmp_path: Path,
) -> None:
    blocks = [
        {"type": "text", "text": "First I look."},
        {"type": "tool_use", "name": "search", "input": {}},
        {"type": "tool_result", "name": "search", "content": "found"},
        {"type": "text", "text": "Found it."},
    ]
    found = _conversations(
        _file(tmp_path, [{"uuid": "x", "chat_messages": [_claude("m", "assistant", "", blocks)]}])
    )[0]
    assert [role for role, _ in _said(found)] == ["assistant", "tool", "assistant"]
    assert found.messages[0][1].tool_calls[0].id == found.messages[1][1].tool_call_id


# --- LangChain and OpenAI ----------------------------------------------------------------------


def _langchain() -> list[dict[str, Any]]:
    path = ["langchain", "schema", "messages"]
    return [
        {"role": "developer", "content": "Answer in one line."},
        {"type": "human", "data": {"content": "Weather in Ghent?", "id": "h1"}},
        {
            "type": "ai",
            "data": {
                "content": "",
                "id": "a1",
                "tool_calls": [{"name": "weather", "args": {"city": "Ghent"}, "id": "call_1"}],
            },
        },
        {"type": "tool", "data": {"content": "rain", "tool_call_id": "call_1", "id": "t1"}},
        {"type": "AIMessageChunk", "content": "It ra", "id": "a2"},
        {"type": "AIMessageChunk", "content": "ins.", "id": "a2"},
        {
            "lc": 1,
            "type": "constructor",
            "id": [*path, "HumanMessage"],
            "kwargs": {"content": "And in Bruges?", "id": "h2"},
        },
        {
            "lc": 1,
            "type": "constructor",
            "id": ["os", "system", "AIMessage"],
            "kwargs": {
                "content": "",
                "additional_kwargs": {
                    "function_call": {"name": "weather", "arguments": '{"city": "Bruges"}'}
                },
            },
        },
        {"type": "function", "data": {"content": "sun", "name": "weather"}},
        {"type": "remove", "id": "h1"},
    ]


def test_langchain_messages_of_every_kind_have_their_role_and_their_calls(tmp_path: Path) -> None:
    found = _conversations(_file(tmp_path, _langchain()))[0]
    assert _said(found) == [
        ("developer", "Answer in one line."),
        ("user", "Weather in Ghent?"),
        ("assistant", ""),
        ("tool", "rain"),
        ("assistant", "It rains."),
        ("user", "And in Bruges?"),
        ("assistant", ""),
        ("tool", "sun"),
    ]
    messages = [message for _, message in found.messages]
    assert [json.loads(m.tool_calls[0].arguments) for m in (messages[2], messages[6])] == [
        {"city": "Ghent"},
        {"city": "Bruges"},
    ]
    assert messages[3].tool_call_id == messages[2].tool_calls[0].id == "call_1"
    assert messages[7].tool_call_id == messages[6].tool_calls[0].id
    assert found.left_out == ("removal of a message",)


def test_a_role_that_nobody_knows_is_left_out_and_said(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "critic", "content": "bad"}]
    found = _conversations(_file(tmp_path, said))[0]
    assert _said(found) == [("user", "hi")]
    assert found.left_out == ("unknown role 'critic'",)


@pytest.mark.parametrize("history", ["chatgpt", "claude", "langchain"])
@pytest.mark.parametrize("way", ["openai", "anthropic", "both"])
def test_a_history_survives_the_way_out_and_in_again(
    tmp_path: Path, history: str, way: str
) -> None:
    original = {
        "chatgpt": [_chatgpt("t", _turns("one", "two", "three"))],
        "claude": _claude_export(),
        "langchain": _langchain(),
    }[history]
    first = _history(_conversations(_file(tmp_path, original))[0])
    again = first
    if way in ("openai", "both"):
        again = _history(_conversations(_file(tmp_path, to_openai(again)))[0])
    if way in ("anthropic", "both"):
        again = _history(_conversations(_file(tmp_path, to_anthropic(again)))[0])
    assert [_canonical(message) for message in again] == [_canonical(message) for message in first]
    assert len(first) >= 3


def test_content_parts_of_openai_stay_as_they_came(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        {"type": "something_new", "value": 7},
    ]
    found = _conversations(_file(tmp_path, [{"role": "user", "content": parts}]))[0]
    assert found.messages[0][1].content == tuple(parts)


def test_a_request_with_its_messages_is_one_conversation(tmp_path: Path) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    found = _conversations(_file(tmp_path, request, name="monday.json"))[0]
    assert (found.session, _said(found)) == ("monday", [("user", "hi")])


def test_a_list_of_conversations_reports_the_entry_that_is_none(tmp_path: Path) -> None:
    good = {"messages": [{"role": "user", "content": "hi"}]}
    items = list(read(_file(tmp_path, [good, {"what": 1}, good | {"id": "two"}])).found)
    assert [item.where for item in items if isinstance(item, Problem)] == ["conversation 2"]
    sessions = [item.session for item in items if isinstance(item, Conversation)]
    assert sessions[0].startswith("export-")
    assert sessions[1] == "two"


def test_a_zip_archive_is_read_by_its_conversations(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", json.dumps([_chatgpt("t", _turns("hi"))]))
    assert [c.session for c in _conversations(path)] == ["t"]


# --- lines -------------------------------------------------------------------------------------


def test_good_lines_are_read_and_bad_ones_reported_by_number(tmp_path: Path) -> None:
    good = b'{"role":"user","content":"%s","session":"s"}'
    path = tmp_path / "chat.jsonl"
    content = b"\r\n".join(
        [
            b"\xef\xbb\xbf" + good % b"one",
            b"garbage",
            b"",
            good % b"two",
            b'{"other": 1}',
            b'{"role":"user","content":"\xff"}',
            b'{"role":"user","content":NaN}',
            b'{"role":"user","content":"cut of',
        ]
    )
    path.write_bytes(content)
    items = list(read(path).found)
    texts = [text for c in items if isinstance(c, Conversation) for _, text in _said(c)]
    assert texts == ["one", "two"]
    problems = {item.where: item.reason for item in items if isinstance(item, Problem)}
    assert list(problems) == ["line 2", "line 5", "line 6", "line 7", "line 8"]
    assert problems["line 6"] == "not UTF-8"
    assert path.read_bytes() == content


def test_lines_of_two_sessions_in_turn_keep_their_order_and_their_keys_apart(
    tmp_path: Path,
) -> None:
    said = [("a", "ok"), ("b", "ok"), ("a", "ok"), ("a", "bye")]
    path = _lines(tmp_path, [{"role": "user", "content": t, "session": s} for s, t in said])
    found = _conversations(path)
    assert [(c.session, text) for c in found for _, text in _said(c)] == said
    keys = [(c.session, key) for c in found for key, _ in c.messages]
    assert len(set(keys)) == 4


def test_a_file_of_one_line_keeps_its_key_when_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"session": "tea", "role": "user", "content": "one"}')
    (before,) = _conversations(path)
    assert (before.session, _said(before)) == ("tea", [("user", "one")])
    with path.open("a") as file:
        file.write('\n{"session": "tea", "role": "user", "content": "two"}')
    (after,) = _conversations(path)
    assert after.messages[0][0] == before.messages[0][0]
    assert len(after.messages) == 2


def test_a_line_ends_at_a_line_feed_only(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three\x0bfour"
    path = _lines(tmp_path, [{"role": "user", "content": text}, {"role": "user", "content": "x"}])
    assert _said(_conversations(path)[0])[0] == ("user", text)


def test_a_garbage_first_line_does_not_cost_the_others(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('garbage\n{"role":"user","content":"hi"}\n')
    items = list(read(path).found)
    assert [type(item) for item in items] == [Problem, Conversation]


def test_lines_may_be_whole_conversations(tmp_path: Path) -> None:
    path = _lines(tmp_path, [_chatgpt("a", _turns("hi")), _chatgpt("b", _turns("ho"))])
    assert [(c.session, c.format) for c in _conversations(path)] == [
        ("a", "chatgpt"),
        ("b", "chatgpt"),
    ]


def test_what_trimem_writes_as_json_is_read_as_it_was(tmp_path: Path) -> None:
    message = Message(
        role=Role.ASSISTANT,
        content="naïve 🐈 \ud83e",
        event_time=NINE,
        metadata={"mood": "good"},
    )
    path = _lines(tmp_path, [message.to_json(), message.to_json()])
    assert [m for _, m in _conversations(path)[0].messages] == [message, message]


@pytest.mark.parametrize(
    "text", ["\x00", "\ud83e", "<|endoftext|>", "مرحبا\u202e", "用户喜欢乌龙茶", "x" * 1_000_000]
)
def test_hostile_text_comes_through_unharmed(tmp_path: Path, text: str) -> None:
    path = _lines(tmp_path, [{"role": "user", "content": text}, {"role": "user", "content": "x"}])
    assert _conversations(path)[0].messages[0][1].text == text


# --- times and names ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "time",
    [
        NINE.timestamp(),
        NINE.timestamp() * 1e3,
        str(NINE.timestamp()),
        "2025-03-04T09:00:00Z",
        "2025-03-04T10:00:00+01:00",
        "2025-03-04 09:00",
    ],
)
def test_a_time_is_read_however_it_is_written(tmp_path: Path, time: Any) -> None:
    found = _conversations(_file(tmp_path, [{"role": "user", "content": "x", "timestamp": time}]))
    assert found[0].messages[0][1].event_time == NINE


@pytest.mark.parametrize("time", [None, 0, "", "soon", 1e300, True, {}])
def test_a_missing_time_is_that_of_the_message_before_and_never_1970(
    tmp_path: Path, time: Any
) -> None:
    said = [
        {"role": "user", "content": "a", "timestamp": NINE.isoformat()},
        {"role": "assistant", "content": "b", "timestamp": time},
    ]
    found = _conversations(_file(tmp_path, said))[0]
    assert found.messages[1][1].event_time == NINE
    assert found.undated == 0


def test_messages_without_any_time_are_counted_as_undated(tmp_path: Path) -> None:
    found = _conversations(_file(tmp_path, [{"role": "user", "content": "a"}]))[0]
    assert (found.messages[0][1].event_time, found.undated) == (None, 1)


def test_an_id_that_cannot_name_a_session_is_replaced_by_one_that_follows_from_it(
    tmp_path: Path,
) -> None:
    path = _file(tmp_path, [_chatgpt("bad\nid", _turns("hi")), _chatgpt("*", _turns("hi"))])
    first, second = (c.session for c in _conversations(path))
    assert first.startswith("imported-")
    assert second.startswith("imported-")
    assert first != second


# --- making files ------------------------------------------------------------------------------


def _file(folder: Path, value: Any, *, name: str = "export.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(value, indent=1))
    return path


def _lines(folder: Path, values: Sequence[Any]) -> Path:
    path = folder / "chat.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def _conversations(path: Path) -> list[Conversation]:
    items = list(read(path).found)
    assert not [item for item in items if isinstance(item, Problem)]
    return [item for item in items if isinstance(item, Conversation)]


def _said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for _, message in conversation.messages]


def _history(conversation: Conversation) -> list[Message]:
    return [message for _, message in conversation.messages]


def _canonical(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "text": message.text,
        "calls": [(c.id, c.name, json.loads(c.arguments)) for c in message.tool_calls],
        "answers": message.tool_call_id,
        "name": message.name,
        "time": message.event_time,
        "id": message.metadata.get("source_id"),
    }


def _chatgpt(id: str, mapping: dict[str, Any], *, title: str = "") -> dict[str, Any]:
    return {
        "id": id,
        "title": title,
        "create_time": NINE.timestamp(),
        "mapping": mapping,
        "current_node": list(mapping)[-1],
    }


def _turns(*texts: str) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        before = f"n{number - 1}" if number else None
        mapping[f"n{number}"] = _node(f"n{number}", before, _message(role, text, number), [])
    return mapping


def _node(
    id: str, parent: str | None, message: dict[str, Any] | None, children: list[str]
) -> dict[str, Any]:
    return {"id": id, "parent": parent, "message": message, "children": children}


def _message(
    role: str, text: str, minute: int | None = 0, *, hidden: bool = False, to: str = "all"
) -> dict[str, Any]:
    return {
        "author": {"role": role},
        "create_time": None if minute is None else NINE.timestamp() + 60 * minute,
        "content": {"content_type": "text", "parts": [text]},
        "recipient": to,
        "metadata": {"is_visually_hidden_from_conversation": hidden},
    }


def _claude(uuid: str, sender: str, text: str, content: Any) -> dict[str, Any]:
    entry = {"uuid": uuid, "sender": sender, "text": text, "created_at": "2025-03-04T09:00:00Z"}
    return entry if content is None else {**entry, "content": content}
