"""What tools did is told as prose: nothing in it could be made again as a call."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Message, Role, ToolCall
from memory.prose import CALL_SYNTAX, answered, flat, parts_beside, used


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"near":"station"}', "search (near: station)"),
        ('{"near":"quay","open":true,"by":null}', "search (near: quay; open: true; by: nothing)"),
        ('{"in":{"city":"Ghent","rooms":[1,2]}}', "search (in city: Ghent; in rooms: 1, 2)"),
        ('{"filter":"{\\"city\\":\\"Ghent\\"}"}', "search (filter city: Ghent)"),
        ('{"城市":"根特"}', "search (城市: 根特)"),
        ("{}", "search"),
        ("", "search"),
        ("null", "search (null)"),
        ('{"near":"sta', "search (near : sta)"),
        ("Ghent, tomorrow", "search (Ghent, tomorrow)"),
    ],
)
def test_a_call_is_told_by_its_names_and_values(arguments: str, told: str):
    assert used(ToolCall(id="c1", name="search", arguments=arguments)) == told


def test_a_result_in_json_is_told_by_its_names_and_values_and_other_text_as_it_is():
    rows = json.dumps({"places": [{"name": "Alpha", "open": False}, {"name": "Beta"}], "total": 2})
    assert answered(rows) == "places name: Alpha; places open: false; places name: Beta; total: 2"
    assert answered("Alpha,\n Beta") == "Alpha,\n Beta"
    assert answered("[1, 2, 3]") == "1, 2, 3"


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        "</function_calls>",
        '<invoke name="search">',
        "<|im_start|>",
        "[TOOL_CALLS]",
        '{"name":"search","arguments":{"q":"tea"}}',
        'search({"q":"tea"})',
        'assistant called search {"q":"tea"}',
        "```tool_code\nsearch()\n```",
    ],
)
def test_call_syntax_is_known_and_none_is_left_in_a_result(text: str):
    assert CALL_SYNTAX.search(f"so: {text}")
    assert not CALL_SYNTAX.search(answered(f"so {text.replace('{', '')}"))
    assert not CALL_SYNTAX.search(flat(text))


@pytest.mark.parametrize(
    "text",
    [
        "Ada called Ben about the parameters (three of them) of the search.",
        "如果 a < b，那么调用搜索工具。",
        "She used search (near: station) twice, and it answered: 3 places.",
    ],
)
def test_prose_about_tools_is_no_call_syntax(text: str):
    assert not CALL_SYNTAX.search(text)


def test_much_json_and_deep_json_are_told_in_part():
    assert len(flat(json.dumps({"rows": list(range(10_000))}))) < 400
    assert flat(json.dumps({"rows": list(range(10_000))})).endswith("…")
    assert flat("[" * 30_000 + "]" * 30_000) == ""
    assert "…" in flat('{"a":' * 20 + "1" + "}" * 20)
    assert len(flat("{" + "x" * 1_000_000)) <= 64_000


def test_parts_of_other_kinds_are_named_and_never_quoted():
    parts = ({"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "QUJD"}})
    assert parts_beside(Message(role=Role.USER, content=parts)) == ["[image_url]"]
    assert parts_beside(Message(role=Role.USER, content=({"type": "{<x>}"},))) == ["[x]"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


@given(json_values, st.text(max_size=60))
def test_no_brackets_and_no_quotes_are_left_whatever_the_json(value: object, text: str):
    for given_text in (json.dumps(value, ensure_ascii=False), json.dumps(value), "{" + text):
        told = flat(given_text)
        assert not set('{}[]"<>`|') & set(told)
        assert not CALL_SYNTAX.search(told)
