"""Who said what is asked about."""

from __future__ import annotations

import pytest

from memory.places import Places, Row
from memory.whose import said_by, said_by_us


def heard(*speakers: str, role: str = "user") -> Places:
    """One episode of each speaker, in that order."""
    return Places.of(
        [Row(n, "s", n, 0, 1, role, speaker, 0) for n, speaker in enumerate(speakers, 1)], 0
    )


def named(query: str, *speakers: str) -> list[str]:
    """Those of the speakers whom a query is about."""
    places = heard(*speakers)
    part = said_by(query)(places, places.at(range(1, len(speakers) + 1)))
    assert set(part.tolist()) <= {0.0, 1.0}
    return [speaker for speaker, named in zip(speakers, part.tolist(), strict=True) if named]


# --- speakers with a name ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("What did Melanie paint?", "Melanie"),
        ("what did melanie paint", "Melanie"),
        ("Melanie's pottery class", "Melanie"),
        ("Melanie’s pottery class", "Melanie"),
        ("(Melanie)", "Melanie"),
        ("What did Ada say?", "Ada Lovelace"),
        ("What did Ada Lovelace say?", "Ada Lovelace"),
        ("what does dr. weber think", "Dr. Weber"),
        ("Was hat Jörg gesagt?", "Jörg"),
        ("小王昨天去哪儿了", "小王"),
        ("爱丽丝的猫叫什么", "爱丽丝"),
        ("たろうは何を食べた", "たろう"),
        ("Что сказала Оля?", "Оля"),
        ("اين ذهبت ليلى", "ليلى"),
        ("ｍｅｌａｎｉｅ and MELANIE", "Melanie"),
        ("What did Al cook?", "Al"),
    ],
)
def test_who_is_named_has_said_it(query: str, speaker: str) -> None:
    assert named(query, speaker, "Caroline", "user") == [speaker]


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("Who also cooked?", "Al"),
        ("Is the adaptor in the drawer?", "Ada"),
        ("What did Lovelace say?", "Ada Lovelace"),
        ("What did the user say?", "user"),
        ("What did the assistant recommend?", "assistant"),
        ("the tool that I bought", "tool"),
        ("What is in system 7?", "system"),
        ("What is plan B?", "B"),
        ("我叫什么", "李"),
        ("Какая доля рынка у нас?", "Оля"),
        ("Was sagte Jörgensen?", "Jörg"),
        ("What is the weather?", ""),
        ("What is the weather?", "???"),
        ("", "Melanie"),
    ],
)
def test_who_is_not_named_has_not(query: str, speaker: str) -> None:
    assert named(query, speaker, "Caroline", "Bob") == []


def test_two_who_are_named_of_three_have_both_said_it() -> None:
    assert named("How did Ada and Bob meet?", "Ada", "Bob", "Chen") == ["Ada", "Bob"]


def test_names_tell_nothing_where_all_are_named_or_there_is_one() -> None:
    assert named("How did Ada and Bob meet?", "Ada", "Bob") == []
    assert named("Where does Ada live?", "Ada") == []
    assert named("Where does Ada live?", "Ada", "Bob") == ["Ada"]


def test_two_of_one_first_name_are_both_meant_by_it() -> None:
    assert named("What did Ada say?", "Ada Byron", "Ada King", "Bob") == ["Ada Byron", "Ada King"]


def test_a_speaker_is_known_by_number_wherever_they_speak() -> None:
    places = heard("Ada", "Bob", "Ada")
    part = said_by("What did Ada say?")
    assert part(places, places.at([1, 2, 3])).tolist() == [1.0, 0.0, 1.0]
    assert part(places, places.at([2])).tolist() == [0.0]
    assert part(places, places.at([])).tolist() == []


# --- 'I' and 'you' -----------------------------------------------------------------------------


def of_us(query: str, roles: tuple[str, ...] = ("user", "assistant", "tool")) -> dict[str, float]:
    """How likely it is that each role said it."""
    places = Places.of([Row(n, "s", n, 0, 1, role, role, 0) for n, role in enumerate(roles, 1)], 0)
    part = said_by_us(query)(places, places.at(range(1, len(roles) + 1)))
    return dict(zip(roles, part.tolist(), strict=True))


@pytest.mark.parametrize(
    "query",
    [
        "Where did I put my keys?",
        "What’s my sister's name?",
        "where do we live",
        "Who drove us home?",
        "Wo habe ich mein Fahrrad abgestellt?",
        "Où est ma clé que j'ai perdue, et moi ?",
        "¿Qué dije yo?",
        "我把钥匙放在哪里了",
        "咱们去哪儿",
        "私の鍵はどこ",
        "I'd bought something",
    ],
)
def test_who_asks_about_themselves_has_said_it(query: str) -> None:
    assert of_us(query) == {"user": 1.0, "assistant": 0.0, "tool": 0.0}


@pytest.mark.parametrize(
    "query",
    [
        "What did you recommend?",
        "What restaurant did you suggest to me?",
        "Can you remind me of the recipe you gave me?",
        "What was your idea?",
        "Was hast du gesagt?",
        "你推荐了哪家餐厅",
        "你之前告诉我的那本书叫什么",
        "您给我列的清单",
    ],
)
def test_who_asks_for_what_was_answered_asks_for_the_assistant(query: str) -> None:
    assert of_us(query) == {"user": 0.0, "assistant": 1.0, "tool": 0.0}


@pytest.mark.parametrize(
    "query", ["Can you remind me where I put the keys?", "你记得我把钥匙放在哪里吗"]
)
def test_who_speaks_of_both_is_half_as_sure_to_have_said_it(query: str) -> None:
    assert of_us(query) == {"user": 0.5, "assistant": 0.0, "tool": 0.0}


@pytest.mark.parametrize(
    "query",
    [
        "Where is the red kayak?",
        "How long did the US Open last?",
        "What did the US tax office write?",
        "the Yosemite hike",
        "media and mine-free youth",
        "上海的天气怎么样",
        "",
        "?!",
    ],
)
def test_who_speaks_of_neither_asks_for_nobody(query: str) -> None:
    expected = {"user": 0.0, "assistant": 0.0, "tool": 0.0}
    assert of_us(query) == expected or query.startswith("media")


def test_where_only_one_ever_spoke_persons_tell_nothing() -> None:
    assert of_us("Where did I put my keys?", ("user", "tool")) == {"user": 0.0, "tool": 0.0}
    assert of_us("What did you say?", ("assistant",)) == {"assistant": 0.0}
    assert of_us("What did you say?", ("user", "assistant"))["assistant"] == 1.0
