"""Names, predicates, and how a fact reads."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import EmptyInput, InvalidInput
from memory.models import Assertion
from memory.semantic import SELF, Predicate, Registry, names, predicates, render

NOW = datetime(2024, 1, 1, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(), max_size=80)


def states(subject: str, predicate: str, object: str, **more: object) -> Assertion:
    return Registry.default().assertion(
        id="a",
        subject=subject,
        predicate=predicate,
        object=object,
        valid_from=NOW,
        learnt_at=NOW,
        **more,  # type: ignore[arg-type]
    )


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A.I.", "AI"),
        ("U.S.", "us"),
        ("Ann  Lee\t", "ann lee"),
        ("Straße", "STRASSE"),
        ("ＡＤＡ", "Ada"),
        ("e\u0301t\u00e9", "été"),
        ("a\u200bb", "ab"),
        ("O’Neil", "O'Neil"),
        ("Initech Inc.", "Initech Inc"),
        ("\u202aAnn\u202c", "Ann"),
        ("❤\ufe0f", "❤"),
    ],
)
def test_two_spellings_of_a_name_are_the_same(one: str, other: str) -> None:
    assert names.same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Los Angeles", "Angeles"),
        ("Otto Brandt", "Otto Brandt, Jr."),
        ("José", "Jose"),
        ("C", "C++"),
        ("C#", "C"),
        ("Node.js", "Nodejs"),
        ("3.14", "314"),
        ("李雷", "李磊"),
        ("Anna", "Ann"),
        ("x" * 300 + "a", "x" * 300 + "b"),
        ("\ud800", "\ud801"),
    ],
)
def test_names_that_only_resemble_each_other_stay_apart(one: str, other: str) -> None:
    assert not names.same(one, other)
    assert names.same(one, one)


@given(ANY_TEXT)
def test_a_key_can_be_kept_by_every_store_and_is_its_own_key(name: str) -> None:
    made = names.key(name)
    made.encode("utf-8")
    assert "\x00" not in made
    assert len(made) <= names.KEY_LIMIT
    assert names.key(made) == made


@pytest.mark.parametrize("name", ["", " \n\t", "\u200b\u200d", "\x00", "\ufe0f"])
def test_a_name_that_nobody_can_see_is_blank(name: str) -> None:
    assert names.is_blank(name)
    assert not names.is_blank(name + ".")


def test_names_in_a_question_are_among_what_it_mentions() -> None:
    found = names.mentions("Where does Anna's sister, who knows Otto Brandt, live? 我妹妹小红住哪")
    assert {"anna", "otto brandt", "小红", "sister"} <= set(found)
    assert "live otto" not in found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Where does Will live?", "will"),
        ("where does will live", "will"),
        ("Will lives where?", "will"),
        ("I met May. So?", "may"),
        ("I asked An about it", "an"),
    ],
)
def test_a_name_that_is_an_everyday_word_too_is_found_where_it_is_written_as_one(
    text: str, name: str
) -> None:
    assert name in names.mentions(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Will it rain tomorrow?", "will"),
        ("will it rain tomorrow?", "will"),
        ("Thanks. May I ask something?", "may"),
        ("I will go there, as we may.", "will"),
        ("I will go there, as we may.", "may"),
        ("This is an apple", "an"),
    ],
)
def test_an_everyday_word_names_nobody(text: str, name: str) -> None:
    assert name not in names.mentions(text)


def test_mentions_of_a_very_long_text_are_bounded() -> None:
    assert 0 < len(names.mentions("一二三四五六七八九十" * 10_000)) <= 400


# --- predicates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["lives_in", "LIVES_IN", "Lives In", "lives-in", "lives  in "])
def test_a_predicate_is_found_in_any_spelling_and_kept_as_it_was_written(spelling: str) -> None:
    stated = states("ann", spelling, "Oslo")
    assert stated.predicate == spelling
    assert stated.single


def test_an_alias_becomes_the_predicate_that_it_stands_for() -> None:
    assert states("ann", "employed by", "Initech").predicate == "works_at"
    assert states("ann", "loves", "jazz").opposite == "dislikes"


def test_an_unknown_predicate_has_many_objects_and_is_kept_exactly() -> None:
    stated = states("ann", "喜欢", "乌龙茶")
    assert (stated.predicate, stated.single, stated.opposite) == ("喜欢", False, None)


@pytest.mark.parametrize("predicate", ["", "  ", "\u200b", "a\tb", "\x7f", "\ud800", "p" * 201])
def test_what_cannot_be_a_predicate_is_refused(predicate: str) -> None:
    with pytest.raises(InvalidInput):
        predicates.valid(predicate)
    assert predicates.valid("p" * 200) == "p" * 200


@pytest.mark.parametrize(("subject", "object"), [("", "x"), ("x", ""), ("x", "\u200b"), (" ", "x")])
def test_a_fact_about_nothing_is_refused(subject: str, object: str) -> None:
    with pytest.raises(EmptyInput):
        states(subject, "likes", object)


def test_times_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidInput, match="later"):
        states("ann", "likes", "tea", valid_to=NOW)
    with pytest.raises(InvalidInput, match="earlier"):
        states("ann", "likes", "tea", said_at=datetime(2023, 1, 1, tzinfo=UTC))


def test_a_registry_is_extended_and_the_default_stays_as_it_was() -> None:
    extended = Registry.default().extended(
        Predicate(name="reports_to", single=True, en="{s} reports to {o}"),
        Predicate(name="studies", single=True),
    )
    known = extended.find("Reports To")
    assert known is not None
    assert known.single
    studies, before = extended.find("studies"), Registry.default().find("studies")
    assert studies is not None
    assert before is not None
    assert (studies.single, before.single) == (True, False)
    assert Registry.default().find("reports_to") is None


@pytest.mark.parametrize(
    "predicate",
    [
        Predicate(name="adores", aliases=("likes",)),
        Predicate(name="wants", opposite="shuns"),
        Predicate(name="tab\there"),
    ],
)
def test_a_registry_that_contradicts_itself_is_refused(predicate: Predicate) -> None:
    with pytest.raises(InvalidInput):
        Registry.default().extended(predicate)
    assert Registry.default().extended(Predicate(name="wants")).find("wants")


# --- how a fact reads ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "predicate", "object", "line"),
    [
        (SELF, "lives_in", "Lyon", "user lives in Lyon"),
        ("Anna", "works_at", "Fiat", "Anna works at Fiat"),
        (SELF, "likes", "乌龙茶", "用户喜欢乌龙茶"),
        ("小红", "lives_in", "Rome", "小红住在Rome"),
        ("ann", "reports_to", "bob", "ann reports to bob"),
        ("ann", "likes", "a\nb\u2028{o} {s}", "ann likes a b {o} {s}"),
    ],
)
def test_a_fact_reads_as_one_line_in_its_own_language(
    subject: str, predicate: str, object: str, line: str
) -> None:
    assert render(states(subject, predicate, object)) == line


def test_long_names_are_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        keys = {names.key(f"{number} " + "x" * 50_000) for number in range(200)}
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(keys) == 200
    assert kept < 1_000_000


# --- other forms of a name -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("José", "Is Jose here?"),
        ("Łukasz", "is lukasz here"),
        ("Anna Schmidt", "Is Anna here?"),
        ("Anna Schmidt", "Is Mrs Schmidt here?"),
        ("Анна", "Ты видел Анну?"),
        ("Сергей", "Ты говорил с Сергеем?"),
        ("Иван Петров", "Ты говорил с Иваном?"),
        ("مُحَمَّد", "أين محمد؟"),
        ("王小明", "小明在哪里"),
        ("김수진", "수진이는 어디 있어?"),
    ],
)
def test_a_name_can_be_asked_for_in_another_form(name: str, question: str) -> None:
    assert set(names.forms(name)) & set(names.asked_forms(question))


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("New York City", "Any new ideas for the city?"),
        ("Green tea", "Is the Green party in favour of Tea?"),
        ("Anna Schmidt", "Is Hanna here? Is Annabel?"),
        ("Anna Schmidt", "The annals of Schmidthausen"),
        ("Rose Garden", "Prices rose again."),
        ("Марина", "Где Мария?"),
        ("a name of far too many words to be one", "A One"),
    ],
)
def test_what_only_resembles_a_name_does_not_ask_for_it(name: str, question: str) -> None:
    assert not set(names.forms(name)) & set(names.asked_forms(question))


@given(ANY_TEXT)
def test_forms_can_be_kept_by_every_store_and_are_no_keys_of_their_own(name: str) -> None:
    for form in names.forms(name):
        form.encode("utf-8")
        assert form
        assert "\x00" not in form
        assert form != names.key(name)
    assert names.forms("x" * 1_000_000) == ()
