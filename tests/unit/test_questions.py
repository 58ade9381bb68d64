"""Whether somebody wants to know something, in any script."""

from __future__ import annotations

import pytest

from memory.questions import asks


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "where do i live",
        "Hi, what's my sister called",
        "And do you remember the name of my dentist",
        "remind me when the train leaves",
        "You know it, right?!",
        '"Really?" she said',
        "我住在哪里",
        "我妹妹叫什么名字？",
        "你记得吗",
        "أين أسكن؟",
        "Πού μένω;",
        "Где я живу?",
        "どこに住んでいますか？",
        "내 이름이 뭐야?",
        "Ո՞ւր եմ ապրում",
        "¿Dónde vivo?",
        "x" * 100_000 + "\nwhere did I put it?",
        "\ud800 what is that?",
    ],
)
def test_questions_are_told_with_and_without_their_mark(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I live in Oslo.",
        "See https://x.org/a?q=1&r=2 for more.",
        "const a = b?.c; let d;",
        "That is what I said.",
        "Somewhat later, whoever came was welcome.",
        "我住在奥斯陆。",
        "Μένω στο Όσλο.",
        "???".replace("?", "!"),
        "a" * 1_000_000,
    ],
)
def test_what_asks_for_nothing_is_no_question(text: str) -> None:
    assert not asks(text)
