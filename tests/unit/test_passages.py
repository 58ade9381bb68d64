"""Passages: what is embedded of a long text beside the whole."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.passages import LONG, MOST, WHOLE, passages
from memory.text import is_blank

LETTER = (
    "Dear Mia, the garden is doing well and the beans are up. We had rain on most days of this "
    "week, so I stayed in and read all day. The new kettle came on Thursday! Our neighbour Tom has "
    "bought a red kayak, and keeps it in a shed behind the mill. Will you come in August? Love, Ada"
)


def visible(text: str) -> str:
    """The text without what shows nothing."""
    return "".join(each for each in text if not is_blank(each))


def test_a_long_text_has_passages_of_whole_sentences() -> None:
    assert passages(LETTER) == [
        "Dear Mia, the garden is doing well and the beans are up. We had rain on most days of this "
        "week, so I stayed in and read all day. The new kettle came on Thursday!",
        "Our neighbour Tom has bought a red kayak, and keeps it in a shed behind the mill. Will "
        "you come in August? Love, Ada",
    ]


def test_a_text_that_is_short_has_none() -> None:
    assert passages("") == []
    assert passages("x" * WHOLE) == []
    assert passages(LETTER[:WHOLE]) == []
    assert len(passages("x" * (WHOLE + 1))) == 2


@pytest.mark.parametrize(
    "text",
    [
        "我昨天去了湖边。天气很好！你想看看照片吗？" * 15,
        "- milk\n- bread\n- eggs, a dozen of them\n" * 10,
        "👩‍👩‍👧‍👦👍🏽" * 60,
        "x" * 900,
        "\ud800 and \udfff " * 40,
        "one two three " * 70,
    ],
)
def test_nothing_that_shows_is_lost_and_all_are_about_as_long(text: str) -> None:
    found = passages(text)
    assert visible("".join(found)) == visible(text)
    assert len(found) > 1
    assert all(len(each) <= 1.6 * LONG for each in found)
    assert passages(text) == found


def test_chinese_is_cut_at_the_ends_of_its_sentences() -> None:
    assert all(each[-1] in "。！？" for each in passages("今天天气很好，我们去了湖边。" * 20))


def test_lines_end_passages() -> None:
    found = passages("the first of the lines has no full stop\n" * 8)
    assert all(line == found[0].splitlines()[0] for each in found for line in each.splitlines())


@pytest.mark.parametrize("text", ["\n" * 500, " \u200b" * 300, "\x00" * 400])
def test_what_shows_nothing_has_none(text: str) -> None:
    assert passages(text) == []


@given(st.text(st.one_of(st.characters(), st.sampled_from(" \n.。!")), max_size=1_500))
def test_whatever_it_is_nothing_that_shows_is_lost(text: str) -> None:
    found = passages(text)
    assert not found or visible("".join(found)) == visible(text)
    assert all(each == each.strip() and not is_blank(each) for each in found)


@pytest.mark.parametrize("unit", ["x", ".", "好", "a b", "\n", "x. ", "\ud800"])
def test_however_long_it_is_they_are_few_and_soon_there(unit: str) -> None:
    before = time.process_time()
    assert len(passages(unit * (1_000_000 // len(unit)))) <= 2 * MOST
    assert time.process_time() - before < 10
