"""Whom a question is about, decided from facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Fact
from memory.semantic import Registry, names
from memory.semantic.entities import NAMED_BEFORE, Asked, same_as, whom
from memory.semantic.timeline import fact_id

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REGISTRY = Registry.default()


def fact(subject: str, predicate: str, thing: str, **attributes: str) -> Fact:
    name = fact_id(subject, predicate, thing)
    return Fact(
        id=name,
        fact_id=name,
        subject=subject,
        predicate=predicate,
        object=thing,
        valid_from=NOW,
        learnt_at=NOW,
        attributes=dict(attributes),
    )


def meant(question: str, facts: Sequence[Fact], *before: str) -> set[str]:
    """Whom a question asks for, without those that were only named before."""
    found = whom(Asked.of(question, before), facts, REGISTRY)
    return {key for key, bears in found.bearing.items() if bears.score > NAMED_BEFORE}


FACTS = (
    fact("user", "name", "Ada"),
    fact("user", "sister", "Mei"),
    fact("Mei", "husband", "Tom"),
    fact("Tom", "aka", "Tommy"),
    fact("Anna Weber", "lives_in", "Ulm"),
    fact("Anna Schmidt", "lives_in", "Bonn"),
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How is Mei?", {"mei"}),
        ("How is my sister?", {"mei"}),
        ("How is my sister's husband?", {"mei", "tom", "tommy"}),
        ("How is Tommy?", {"tom", "tommy"}),
        ("How is Anna?", {"anna weber", "anna schmidt"}),
        ("How is Anna Weber?", {"anna weber"}),
        ("How is Ada?", {"ada"}),
        ("What is new in Bonn?", {"bonn"}),
        ("How is it going?", set()),
        ("Is the sister ship of the Titanic still afloat?", set()),
        ("妹妹最近好吗？", {"mei"}),
    ],
)
def test_whom_a_question_is_about(question: str, expected: set[str]) -> None:
    assert meant(question, FACTS) == expected


def test_a_pronoun_means_people_of_the_messages_before_the_latest_first() -> None:
    before = ("Then Tom called.", "I met Mei in Bonn.")
    assert meant("What did she say?", FACTS, *before) == {"tom", "mei"}
    found = whom(Asked.of("What did she say?", before), FACTS, REGISTRY)
    assert found.bearing["tom"].score > found.bearing["mei"].score
    assert found.bearing["bonn"].score == NAMED_BEFORE
    assert meant("What did I say?", FACTS, *before) == set()
    assert meant("What did she say?", FACTS) == set()


@pytest.mark.parametrize(
    ("question", "of_others"),
    [
        ("Where does Zelda live?", True),
        ("Where is she?", True),
        ("Tell me about Kubernetes?", False),  # "me"
        ("Where do I live?", False),
        ("What is the weather in Lisbon?", False),
        ("Call Zelda.", False),
        ("What shall we cook?", False),
        ("今天天气怎么样？", False),
        ("推荐一家餐厅好吗？", False),
        ("王伟喜欢什么？", True),
        ("我妹妹喜欢什么？", False),
        ("Is it cold on Monday?", False),
        ("", False),
    ],
)
def test_a_question_about_others_is_told_from_all_else(question: str, of_others: bool) -> None:
    assert Asked.of(question).of_others is of_others


def test_names_of_one_thing_are_followed_up_and_then_down() -> None:
    naming = [
        fact("Robert", "nickname", "Bob"),
        fact("Bob", "nickname", "Bobby"),
        fact("Roberta", "nickname", "Bobby"),
        fact("Robert", "nickname", "Robert"),  # a circle of one
        fact("Bobby", "nickname", "Robert"),  # and a circle of three
    ]
    assert same_as("x", naming) == {"x"}
    assert same_as("roberta", naming[:3]) == {"roberta", "bobby"}
    assert same_as("robert", naming[:3]) == {"robert", "bob", "bobby"}
    assert same_as("bobby", naming[:3]) == {"robert", "roberta", "bob", "bobby"}
    assert same_as("bob", naming) >= {"robert", "bob", "bobby"}


ANY_TEXT = st.text(st.characters(), max_size=60)


@given(
    ANY_TEXT, st.lists(ANY_TEXT, max_size=5), st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=6)
)
def test_any_text_can_be_asked_of_anything(
    question: str, before: list[str], ends: list[tuple[str, str]]
) -> None:
    facts = [
        fact(subject, predicate, thing)
        for subject, thing in ends
        for predicate in ("nickname", "sister", "likes")
        if not names.is_blank(subject) and not names.is_blank(thing)
    ]
    asked = Asked.of(question, before)
    found = whom(asked, facts, REGISTRY)
    assert found == whom(asked, list(reversed(facts)), REGISTRY)
    assert names.SELF not in found.bearing
    for key in (*asked.looked_up, *asked.looked_up_forms, *found.keys):
        key.encode("utf-8")
        assert "\x00" not in key


def test_a_megabyte_is_read_no_further_than_its_beginning() -> None:
    for text in ("A" * 1_000_000, "我" * 1_000_000, "Anna " * 200_000, "안나는 " * 200_000):
        asked = Asked.of(text, [text] * 9)
        assert len(asked.looked_up) < 2_000
        assert len(asked.recent) == 4
