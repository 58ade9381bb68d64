"""Text: renderings, sentences, pieces and terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text import is_blank, pieces, plain, sentences, terms

ANY_TEXT = st.text(st.characters(), max_size=400)
"""Any Unicode, lone surrogates too."""


# --- plain and blank ---------------------------------------------------------------------------


def test_a_plain_text_has_no_surrogates_and_no_nul_and_is_else_the_same() -> None:
    assert plain("a\ud800b\x00c") == "a\ufffdb c"
    assert plain("Grüße, 你好 👩‍👩‍👧") == "Grüße, 你好 👩‍👩‍👧"


@given(ANY_TEXT)
def test_a_plain_text_can_always_be_encoded(text: str) -> None:
    plain(text).encode("utf-8")


@pytest.mark.parametrize(
    "text", ["", "   ", "\u200b", "\n\t\u00a0", "\ufeff\u200d", "\x00", "\ud800"]
)
def test_what_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["👍", ".", "0", "你", " a "])
def test_what_shows_something_is_not_blank(text: str) -> None:
    assert not is_blank(text)


# --- sentences and pieces ----------------------------------------------------------------------


def test_sentences_end_at_marks_and_new_lines_but_not_at_abbreviations_and_numbers() -> None:
    text = 'Dr. Smith came at 3.14. "Really?" he said, e.g. twice!\nNew line。再见！好'
    assert sentences(text) == [
        "Dr. Smith came at 3.14. ",
        '"Really?" ',
        "he said, e.g. twice!\n",
        "New line。",
        "再见！",
        "好",
    ]


@given(ANY_TEXT)
def test_joined_sentences_are_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


@given(ANY_TEXT, st.integers(1, 60))
def test_joined_pieces_are_the_text_and_none_is_too_long(text: str, limit: int) -> None:
    found = pieces(text, limit)
    assert "".join(found) == text
    assert all(0 < len(piece) <= limit for piece in found)


def test_pieces_end_where_sentences_end() -> None:
    text = "One is here. Two is here. Three is here. Four is here."
    assert pieces(text, 28) == ["One is here. Two is here. ", "Three is here. Four is here."]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    assert pieces("alpha beta gamma delta", 12) == ["alpha beta ", "gamma delta"]


def test_a_word_that_is_too_long_is_cut_but_not_between_a_letter_and_its_accent() -> None:
    assert pieces("abcde\u0301fgh", 5) == ["abcd", "e\u0301fgh"]


def test_a_piece_has_at_least_one_character() -> None:
    with pytest.raises(ValueError, match="at least one"):
        pieces("text", 0)


@pytest.mark.parametrize(
    "text",
    ["a", ".", "' ", "\n", "中", "\u0301", "a.b", "aB", "a'", "a. ", '."', "\u200d", "+", "1,"],
)
def test_a_megabyte_of_the_same_is_taken_apart_and_whole_again(text: str) -> None:
    long = text * (1_000_000 // len(text))
    assert "".join(pieces(long, 1_000)) == long
    assert len(terms(long)) <= 2 * len(long)


# --- terms -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("running", "run"),
        ("ran", "runs"),
        ("moved", "moving"),
        ("tries", "tried"),
        ("studying", "studies"),
        ("boxes", "box"),
        ("making", "made"),
        ("Café", "cafe"),
        ("２０２６", "2026"),
        ("Anna's", "anna"),
        ("don’t", "dont"),
        ("STRASSE", "straße"),
        ("мёд", "МЕД"),
        ("zero\u200bwidth", "zerowidth"),
    ],
)
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert terms(one) == terms(other)


@pytest.mark.parametrize(
    ("one", "other"), [("ring", "red"), ("bus", "bu"), ("king", "kin"), ("9", "90")]
)
def test_other_words_are_other_terms(one: str, other: str) -> None:
    assert terms(one)
    assert set(terms(one)).isdisjoint(terms(other))


def test_stop_words_are_no_terms() -> None:
    assert terms("What is it that you would have done?") == []
    assert terms("What is the budget?") == ["budget"]


@pytest.mark.parametrize(
    ("text", "whole", "part"),
    [
        ("it is in PLAN.md", "plan.md", "plan"),
        ("see memory/journal/schema_v2.py", "memory/journal/schema_v2.py", "schema_v2.py"),
        ("mail ada.king@example.com", "ada.king@example.com", "example.com"),
        ("due 2026-01-05", "2026-01-05", "2026"),
        ("call getUserName()", "getusername", "user"),
        ("ticket ABC-1234", "abc-1234", "1234"),
        ("order7300418826", "order7300418826", "7300418826"),
        ("1,250 euros", "1,250", "1250"),
        ("in C++ and C#", "c++", "c#"),
    ],
)
def test_names_and_numbers_are_kept_whole_and_in_parts(text: str, whole: str, part: str) -> None:
    assert {whole, part} <= set(terms(text))


def test_chinese_gives_characters_and_pairs_without_function_words() -> None:
    assert terms("备份") == ["备", "份", "备份"]
    assert terms("我的") == []


def test_scripts_can_be_mixed() -> None:
    assert {"cron", "备份"} <= set(terms("用cron做备份"))


def test_words_with_vowel_signs_stay_whole() -> None:
    assert terms("हिन्दी में") == ["हिन्दी", "में"]


@given(ANY_TEXT)
def test_terms_are_never_empty_and_can_be_encoded(text: str) -> None:
    assert all(term and term.encode("utf-8") for term in terms(text))


@given(ANY_TEXT)
def test_case_makes_no_difference_to_words(text: str) -> None:
    ascii_words = "".join(c for c in text if c.isascii() and (c.islower() or c == " "))
    assert terms(ascii_words) == terms(ascii_words.upper())
