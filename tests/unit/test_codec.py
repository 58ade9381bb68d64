"""Canonical bytes keep every string exactly, and refuse what cannot be kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.codec import content_id, decode, digest, encode, unescaped
from memory.errors import Corrupt, InvalidInput

ANY_TEXT = st.text(st.characters(), max_size=50)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(ANY_JSON)
def test_whatever_goes_in_comes_back_the_same(value: object) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    "text", ["\x00", "\ud800", "\udc00\ud800", "\u202eRTL", "🐈", "\ud83d" + "\ude00"]
)
def test_hostile_text_comes_back_unharmed(text: str) -> None:
    assert decode(encode({"t": text}))["t"] == text


def test_text_is_written_as_itself_and_not_as_escapes() -> None:
    assert "乌龙茶" in encode({"likes": "乌龙茶"}).decode()


def test_the_order_of_keys_does_not_matter() -> None:
    assert encode({"a": 1, "b": 2}) == encode({"b": 2, "a": 1})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"bytes", {1, 2}])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        encode({"field": value})


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", json.dumps([1]).encode()[:-1]])
def test_damaged_bytes_are_told_apart(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode(data)


def test_ids_are_functions_of_all_their_parts() -> None:
    assert content_id("k", "a", "b") == content_id("k", "a", "b")
    assert len({content_id("k", "a", "b"), content_id("k", "ab"), content_id("j", "a", "b")}) == 3
    assert len(digest(b"")) == 32


@given(ANY_JSON, st.sampled_from([None, 2]))
def test_json_text_without_its_escapes_is_the_same_value_and_mostly_itself(
    value: object, indent: int | None
) -> None:
    text = json.dumps(value, indent=indent)
    shorter = unescaped(text)
    assert json.loads(shorter) == value
    assert shorter.encode("utf-8")
    assert unescaped(shorter) == shorter
    assert unescaped(json.dumps(value, ensure_ascii=False)) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'{ "a" : "\u5317\u4EAC" }', '{ "a" : "北京" }'),
        (r'["\ud83e\udd8a", "\ud83e", "\udd8a"]', r'["🦊", "\ud83e", "\udd8a"]'),
        (r'["\\u5317", "\\\u5317", "\u0022\u005c\u0000\n\""]',) * 2,
        (r"print('\u5317')",) * 2,
        ("[" * 5_000 + r'"\u5317"',) * 2,
    ],
)
def test_only_what_is_no_ascii_loses_its_escape(text: str, expected: str) -> None:
    assert unescaped(text) == expected.replace(r"\\\u5317", r"\\北")
