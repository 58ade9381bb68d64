"""What is read of a model's answer, however it is wrapped."""

from __future__ import annotations

import json
import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from memory.errors import LLMError, LLMMalformed, LLMRefused, LLMTruncated
from memory.llm.answers import _TYPE_WORDS, described, read_list, read_text
from memory.llm.base import Answered
from memory.models import Value


class Fact(Value):
    subject: str
    predicate: str
    object: str = Field(description="what is said of the subject")
    message: int | None = None


class Line(Value):
    text: str


TEA = Fact(subject="user", predicate="likes", object="Ada's tea")
OSLO = Fact(subject="user", predicate="lives in", object="Oslo", message=3)
CLEAN = json.dumps({"items": [TEA.to_json(), OSLO.to_json()]})
ECHO = {
    "type": "object",
    "properties": {
        "subject": {"type": "string"},
        "predicate": {"type": "string", "description": "likes"},
        "object": {"title": "Object", "type": "string"},
    },
    "required": ["subject", "predicate", "object"],
}


def read(text: str, *, cut: bool = False) -> Answered[Fact]:
    return read_list(text, Fact, cut=cut)


def lines(text: str, *, cut: bool = False) -> list[str]:
    return [line.text for line in read_list(text, Line, cut=cut).items]


@pytest.mark.parametrize(
    "text",
    [
        CLEAN,
        f"```json\n{CLEAN}\n```",
        f"```\n{CLEAN}\n```",
        f"Sure! Here is what I found [in short]:\n\n{CLEAN}\n\nLet me know {{anything}} else?",
        CLEAN.replace("Ada's", "Ada\\'s"),
        CLEAN.replace("}]}", "},]}"),
        CLEAN.replace("}]}", "},],}"),
        json.dumps([TEA.to_json(), OSLO.to_json()]),
        json.dumps({"facts": [TEA.to_json(), OSLO.to_json()]}),
        json.dumps({"response": {"data": {"items": [TEA.to_json(), OSLO.to_json()]}}}),
        json.dumps({"items": {"1": TEA.to_json(), "2": OSLO.to_json()}}),
        json.dumps({"properties": {"items": [TEA.to_json(), OSLO.to_json()]}}),
        json.dumps(
            [{"type": "object", "properties": TEA.to_json()}, {"properties": OSLO.to_json()}]
        ),
        json.dumps({"object": "list", "data": [TEA.to_json(), OSLO.to_json()]}),
        json.dumps({"items": [json.dumps(TEA.to_json()), json.dumps(OSLO.to_json())]}),
        f"{json.dumps({'items': [TEA.to_json()]})}\n{json.dumps({'items': [OSLO.to_json()]})}",
        f"{json.dumps(TEA.to_json())}\n{json.dumps(OSLO.to_json())}",
        f"{json.dumps(ECHO)}\n{CLEAN}",
        f"<think>They want {{a list}} of [things].</think>{CLEAN}",
        f"reasoning that lost its beginning</think>{CLEAN}",
        f"{CLEAN}\n{CLEAN}",
        "{'items': [{'subject': 'user', 'predicate': 'likes', 'object': \"Ada's tea\"}, "
        "{'subject': 'user', 'predicate': 'lives in', 'object': 'Oslo', 'message': 3}]}",
        CLEAN.replace('"message": 3', '"Message": "3", "confidence": 0.9'),
    ],
)
def test_the_usual_wrappings_are_seen_through(text: str) -> None:
    assert read(text) == Answered([TEA, OSLO], unread=0, truncated=False)


@pytest.mark.parametrize("text", ['{"items": []}', "[]", "{facts:null}", '{"facts": null}', "{}"])
def test_an_empty_list_is_an_answer(text: str) -> None:
    assert read(text) == Answered([], 0, False)


def test_what_is_no_item_is_counted_and_the_others_are_kept() -> None:
    half = {"subject": "user", "predicate": "likes"}
    found = read(json.dumps({"items": [half, TEA.to_json(), "user likes tea", 7, None]}))

    assert found.items == [TEA]
    assert found.unread == 3


def test_texts_are_items_of_a_shape_with_one_field() -> None:
    assert lines('{"facts": ["a", "b"]}') == ["a", "b"]
    assert lines('{"facts": ["a"]}\n{"facts": ["b"]}') == ["a", "b"]
    assert lines('{"facts": [{"text": "a"}, {"text": "b"}]}') == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ECHO),
        json.dumps({"items": [ECHO]}),
        json.dumps({"type": "array", "items": ECHO}),
        json.dumps({"$defs": {"Fact": ECHO}, "properties": {"items": {"type": "array"}}}),
        json.dumps({"items": [{"subject": "text", "predicate": "string", "object": "string"}]}),
        json.dumps(
            {
                "items": [
                    {
                        "subject": "text",
                        "predicate": "text",
                        "object": "What is said of the subject",
                    }
                ]
            }
        ),
    ],
)
def test_a_description_of_the_shape_is_no_item(text: str) -> None:
    with pytest.raises(LLMMalformed):
        read(text)


@pytest.mark.parametrize("reported", [True, False])
def test_an_answer_that_was_cut_off_gives_its_whole_items_only(reported: bool) -> None:
    """Wherever it is cut, and also when the endpoint did not say so."""
    first_ends, second_ends = CLEAN.index("}") + 1, CLEAN.index("}]}") + 1

    for end in range(len(CLEAN)):
        wanted = [TEA, OSLO] if end >= second_ends else [TEA] if end >= first_ends else []
        try:
            found = read(CLEAN[:end], cut=reported)
        except LLMTruncated:
            assert wanted == []
        except LLMMalformed:
            assert wanted == []
            assert not reported
        else:
            assert found == Answered(wanted, 0, True)


def test_a_value_that_was_cut_off_inside_an_item_is_no_item() -> None:
    with pytest.raises(LLMTruncated):
        read('{"items": [{"subject": "user", "predicate": "lives in", "object": "Tam', cut=True)
    assert lines('{"items": ["whole", "hal', cut=True) == ["whole"]
    assert lines('["one", "two"]', cut=True) == ["one", "two"]


@pytest.mark.parametrize(
    "text",
    [
        "I can't help with that.",
        "抱歉，我无法处理这个请求。",
        "Could you share the conversation?",
        '{"error": "I\'m sorry, but I can\'t help with that."}',
        '{"items": [], "note": "I cannot assist with this."}',
    ],
)
def test_a_refusal_or_a_question_back_is_told_from_an_empty_list(text: str) -> None:
    with pytest.raises(LLMRefused):
        read(text)


@pytest.mark.parametrize("text", ["The user likes tea.", "none", "See [1] and [below].", "<think>"])
def test_prose_is_no_list(text: str) -> None:
    with pytest.raises(LLMMalformed):
        read(text)


def test_a_broken_escape_or_quote_costs_nothing_else() -> None:
    assert lines('{"items": ["caf\\u00 au lait", "tea"]}')[1] == "tea"
    assert lines('{"items": [{"text": "He said "hi" to her"}, {"text": "tea"}]}')[-1] == "tea"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{" * 100_000,
        "[" * 50_000 + "]" * 50_000,
        '{"' * 50_000,
        "['" * 50_000,
        "'" * 200_000 + "[",
        "[" + "','" * 100_000,
        "[]" * 100_000,
        "a" * 1_000_000,
        '["\ud800\x00"]',
    ],
)
def test_a_hostile_answer_ends_in_an_answer_or_an_error_of_ours(text: str) -> None:
    with suppress(LLMError):
        read(text)


_JSONISH = st.text(alphabet="{}[]\",:'\\ abn\n`" + string.digits, max_size=60)


@given(text=st.one_of(st.text(max_size=80), _JSONISH), cut=st.booleans())
def test_whatever_is_answered_gives_items_or_an_error_of_ours(text: str, cut: bool) -> None:
    try:
        found = read_list(text, Line, cut=cut)
    except LLMError:
        return
    assert all(isinstance(item, Line) for item in found.items)


def _is_said(text: str) -> bool:
    """Neither blank nor the name of a type, which is what an echo of the request has."""
    return text.strip().casefold() not in {"", *_TYPE_WORDS}


@given(st.lists(st.text(min_size=1).filter(_is_said), max_size=6, unique=True), st.booleans())
def test_what_was_written_as_json_is_read_as_it_was(texts: list[str], ascii_only: bool) -> None:
    answer = json.dumps({"items": [{"text": text} for text in texts]}, ensure_ascii=ascii_only)

    assert lines(answer) == texts
    assert lines(f"Here you are:\n```json\n{answer}\n```\n") == texts


def test_what_is_asked_for_names_every_field_and_holds_no_item() -> None:
    said = described(Fact)

    assert '"subject": text' in said
    assert '"message": whole number or null (may be left out)' in said
    assert "what is said of the subject" in said
    with pytest.raises(LLMMalformed):
        read(said)


# --- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "The user likes tea.",
        "  The user likes tea.\n",
        "<think>Hm {a} `b`.</think>\nThe user likes tea.",
        "```\nThe user likes tea.\n```",
        "```markdown\nThe user likes tea.\n```",
        '{"summary": "The user likes tea."}',
        '{"summary": "The user likes tea.", "language": "en"}',
    ],
)
def test_a_text_comes_without_what_is_wrapped_around_it(text: str) -> None:
    assert read_text(text) == "The user likes tea."


@pytest.mark.parametrize("text", ['{"error": "slow down"}', '{"detail": "no such model"}'])
def test_an_error_is_not_unwrapped(text: str) -> None:
    assert read_text(text) == text


def test_thoughts_alone_are_no_text() -> None:
    assert read_text("<think>I should say that") == ""
    assert read_text("<thinking>So.</thinking>") == ""


def test_thoughts_are_taken_out_whole_and_what_is_never_ended_is_looked_for_once():
    text = "a<think>b<think>c</think>d<Reasoning>e</THINK>f</reasoning>g"
    assert read_text(text) == "adg"
    assert read_text("Tea." + "<think>" * 200_000) == "Tea." + "<think>" * 200_000
