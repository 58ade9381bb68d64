"""Entities: whom a question is about, under any name and in any language; and what is pinned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory import Memory
from memory.memory import Session, UserMemory
from memory.models import Context
from tests.behaviour.conftest import Clock, Open
from tests.cases.test_facts import triples

BEFORE = datetime(2025, 1, 1, tzinfo=UTC)


async def given(user: UserMemory, *facts: tuple[str, str, str]) -> None:
    for subject, predicate, thing in facts:
        await user.assert_fact(subject, predicate, thing, valid_from=BEFORE)


def known(context: Context) -> list[str]:
    return [item.text for item in context.items if item.tier == "semantic"]


async def asked(session: Session, question: str) -> list[str]:
    """The facts that are in the context of a question, the best first."""
    return known(await session.build_context(question, budget=4_000))


OF_THE_USER = (
    ("user", "likes", "chess"),
    ("user", "works_at", "Northwind"),
    ("user", "plans", "a trip to Kyoto"),
)


# --- other names -------------------------------------------------------------------------------


@pytest.mark.parametrize("urls", ["local", "servers"], indirect=True)
async def test_two_names_of_one_thing_give_the_same_facts_and_nothing_is_merged(
    memory: Memory, clock: Clock
) -> None:
    """ENT-03"""
    user = memory.user("u1")
    await given(
        user,
        ("NYC", "HOSTS", "Marathon"),
        ("ann", "LIVES_IN", "New York City"),
        ("New York City", "also called", "NYC"),
        ("New York City", "also called", "The Big Apple"),
        ("Big Apple Circus", "PLAYS_IN", "Boston"),
        ("Otto Brandt", "IS", "the father"),
        ("Otto Brandt, Jr.", "IS", "the son"),
        ("Los Angeles", "IS", "a city"),
        ("Angeles", "IS", "another city"),
        ("A.I.", "IS", "a film"),
    )
    before = await user.facts(history=True)
    sets = [triples(await user.facts(name)) for name in ("NYC", "new york city", "The Big Apple")]
    assert sets[0] == sets[1] == sets[2]
    assert {("NYC", "HOSTS", "Marathon"), ("ann", "LIVES_IN", "New York City")} <= sets[0]
    assert not any("Circus" in subject for subject, _, _ in sets[0])
    assert [f.object for f in await user.facts("NYC", predicate="HOSTS")] == ["Marathon"]
    assert [f.object for f in await user.facts("New York City", predicate="HOSTS")] == ["Marathon"]
    for name, thing in (
        ("Otto Brandt", "the father"),
        ("Otto Brandt, Jr.", "the son"),
        ("Los Angeles", "a city"),
        ("Angeles", "another city"),
        ("AI", "a film"),
    ):
        assert [fact.object for fact in await user.facts(name)] == [thing]
    assert await user.facts(history=True) == before  # edges, dates and provenance as they were
    assert all(fact.subject != fact.object for fact in before)
    shown = await asked(user.session("s"), "Who lives in NYC?")
    assert any("ann" in text and "New York City" in text for text in shown)


async def test_a_nickname_of_two_people_gives_both_and_neither_gives_the_other(
    memory: Memory,
) -> None:
    user = memory.user("u1")
    await given(
        user,
        ("Mei Lin", "nickname", "Meimei"),
        ("Mei Hua", "nickname", "Meimei"),
        ("Mei Lin", "lives_in", "Oslo"),
        ("Mei Hua", "lives_in", "Lyon"),
    )
    homes = {
        name: {fact.object for fact in await user.facts(name, predicate="lives_in")}
        for name in ("Meimei", "Mei Lin", "Mei Hua")
    }
    assert homes == {"Meimei": {"Oslo", "Lyon"}, "Mei Lin": {"Oslo"}, "Mei Hua": {"Lyon"}}
    shown = await asked(user.session("s"), "Where does Meimei live?")
    assert {"Mei Lin lives in Oslo", "Mei Hua lives in Lyon"} <= set(shown)
    shown = await asked(user.session("t"), "Where does Mei Hua live?")
    assert "Mei Hua lives in Lyon" in shown
    assert "Mei Lin lives in Oslo" not in shown


async def test_the_user_is_known_by_name(memory: Memory) -> None:
    user = memory.user("u1")
    await given(
        user,
        ("user", "name", "Ada Byron"),
        ("user", "lives_in", "Turin"),
        ("Ada Byron", "collects", "stamps"),
        ("Zoe", "lives_in", "Rome"),
    )
    shown = await asked(user.session("s"), "Where does Ada live?")
    assert any("Turin" in text for text in shown)
    assert not any("Rome" in text for text in shown)
    assert any("Rome" in text for text in await asked(user.session("s"), "Where does Zoe live?"))
    assert any("stamps" in text for text in await asked(user.session("s"), "What do I collect?"))
    assert ("user", "lives_in", "Turin") in triples(await user.facts("ada byron"))


# --- relatives, in every language ----------------------------------------------------------------

SISTERS: Mapping[str, tuple[str, str]] = {
    "english": ("Mei", "What does my sister do for a living?"),
    "english, plural": ("Mei", "what are my sisters up to"),
    "chinese": ("小红", "我妹妹是做什么的？"),
    "chinese, of": ("小红", "我的妹妹住在哪里"),
    "russian": ("Аня", "Что нового у моей сестры?"),
    "arabic": ("ليلى", "أين تعمل أختي؟"),
    "korean": ("수진", "내 여동생은 무슨 일을 해?"),
    "japanese": ("花子", "私の妹は何をしていますか"),
    "spanish": ("Lucía", "¿En qué trabaja mi hermana?"),
    "german": ("Lena", "Was macht meine Schwester?"),
}


@pytest.mark.parametrize("language", SISTERS)
async def test_a_relative_is_who_the_facts_say(memory: Memory, language: str) -> None:
    name, question = SISTERS[language]
    user = memory.user("u1")
    await given(
        user,
        ("user", "sister", name),
        ("user", "brother", "Tom"),
        (name, "works_as", "glassblower"),
        ("Tom", "works_as", "beekeeper"),
    )
    shown = await asked(user.session("s"), question)
    assert any("glassblower" in text for text in shown), shown
    assert not any("beekeeper" in text for text in shown)


async def test_relatives_of_relatives_pets_and_whoever_a_predicate_names(memory: Memory) -> None:
    user = memory.user("u1")
    await given(
        user,
        ("user", "sister", "Mei"),
        ("Mei", "husband", "Tom"),
        ("Tom", "works_as", "beekeeper"),
        ("user", "boss", "Greta"),
        ("Greta", "allergic_to", "lilies"),
    )
    await user.assert_fact("user", "has_pet", "Rex", attributes={"kind": "dog"}, valid_from=BEFORE)
    await user.assert_fact("user", "has_pet", "Kit", attributes={"kind": "cat"}, valid_from=BEFORE)
    await given(user, ("Rex", "fears", "thunder"), ("Kit", "fears", "water"))
    session = user.session("s")
    for question, there, elsewhere in (
        ("What is my sister's husband's job?", "beekeeper", "lilies"),
        ("Is my boss fine with flowers?", "lilies", "beekeeper"),
        ("What is my dog afraid of?", "thunder", "water"),
        ("What is my cat afraid of?", "water", "thunder"),
    ):
        shown = await asked(session, question)
        assert any(there in text for text in shown), question
        assert not any(elsewhere in text for text in shown), question


# --- names in any script -------------------------------------------------------------------------

NAMES: Mapping[str, tuple[str, str]] = {
    "in a sentence": ("Anna", "Do you remember where Anna lives?"),
    "possessive": ("Anna", "What is Anna's address?"),
    "small letters": ("Anna", "where does anna live"),
    "first name": ("Anna Schmidt", "Where does Anna live?"),
    "first name, small letters": ("Anna Schmidt", "where does anna live"),
    "last name": ("Anna Schmidt", "Where does Ms Schmidt live?"),
    "full name of a first name": ("Anna", "Where does Anna Schmidt live?"),
    "without accents": ("José", "Where does Jose live?"),
    "with accents": ("Jose", "Where does José live?"),
    "full name without accents": ("José García", "Where does Jose Garcia live?"),
    "stroked": ("Łukasz", "Where does Lukasz live?"),
    "german possessive": ("Anna", "Wo ist Annas Wohnung?"),
    "turkish": ("Ayşe", "Ayşe'nin adresi nedir?"),
    "russian": ("Анна", "Где живёт Анна?"),
    "russian, another case": ("Анна", "Ты помнишь адрес Анны?"),
    "russian, full name": ("Сергей Петров", "Что ты знаешь о Сергее?"),
    "ukrainian": ("Олена", "Де живе Олена?"),
    "arabic": ("خالد", "أين يسكن خالد؟"),
    "arabic with a preposition": ("خالد", "ما هو عنوان لخالد"),
    "arabic with vowel marks": ("مُحَمَّد", "أين يسكن محمد؟"),
    "arabic, full name": ("خالد منصور", "أين يسكن خالد؟"),
    "hebrew": ("דוד", "איפה דוד גר?"),
    "thai": ("สมชาย", "สมชายอยู่ที่ไหน"),
    "hindi": ("अनिता", "अनिता कहाँ रहती है?"),
    "korean": ("안나", "안나는 어디에 살아?"),
    "korean, polite": ("수진", "수진씨는 어디 살아요?"),
    "korean, given name": ("김수진", "수진이는 어디 살아?"),
    "japanese": ("佐々木", "佐々木さんはどこに住んでいますか"),
    "japanese, katakana": ("アレクサンドラ", "アレクサンドラはどこに住んでる？"),
    "chinese": ("王小明", "王小明住在哪里？"),
    "chinese, given name": ("王小明", "小明住在哪里？"),
    "latin in chinese": ("Anna", "Anna住在哪里？"),
    "latin in japanese": ("Anna", "Annaさんはどこに住んでいますか"),
    "emoji beside it": ("Anna", "where is Anna🙂 these days?"),
}


@pytest.mark.parametrize("kind", NAMES)
async def test_whom_a_question_names_is_known_in_any_script(memory: Memory, kind: str) -> None:
    name, question = NAMES[kind]
    user = memory.user("u1")
    await given(
        user, *OF_THE_USER, (name, "lives_in", "Porto"), ("Zebulon Pike", "lives_in", "Denver")
    )
    shown = await asked(user.session("s"), question)
    assert any("Porto" in text for text in shown), shown
    assert not any("Denver" in text for text in shown)


async def test_a_first_name_of_two_people_gives_both(memory: Memory) -> None:
    user = memory.user("u1")
    await given(
        user,
        ("Anna Schmidt", "lives_in", "Bonn"),
        ("Anna Weber", "lives_in", "Ulm"),
        ("Annabel Lee", "lives_in", "Baltimore"),
    )
    session = user.session("s")
    shown = await asked(session, "Where does Anna live?")
    assert {"Anna Schmidt lives in Bonn", "Anna Weber lives in Ulm"} <= set(shown)
    assert not any("Baltimore" in text for text in shown)
    shown = await asked(session, "Where does Anna Weber live?")
    assert shown[0] == "Anna Weber lives in Ulm"


# --- the turns before ----------------------------------------------------------------------------

PRONOUNS: Mapping[str, tuple[str, str, str]] = {
    "english": ("Lena", "I had lunch with Lena today.", "What does she like?"),
    "chinese": ("王小明", "我今天和王小明吃饭了。", "他喜欢什么？"),
    "russian": ("Лена", "Сегодня обедал с Леной.", "Что она любит?"),
    "arabic": ("خالد", "تغديت اليوم مع خالد.", "ماذا يحب هو؟"),
    "korean": ("수진", "오늘 수진이랑 점심 먹었어.", "그녀는 뭘 좋아해?"),
}


@pytest.mark.parametrize("language", PRONOUNS)
async def test_a_pronoun_is_whom_the_last_turns_named(memory: Memory, language: str) -> None:
    name, said, question = PRONOUNS[language]
    user, other = memory.user("u1"), memory.user("u2")
    for each in (user, other):
        await given(each, (name, "likes", "origami"), ("Zebulon", "likes", "curling"))
    session = user.session("s")
    await session.record(user=said, assistant="😀")
    shown = await asked(session, question)
    assert any("origami" in text for text in shown), shown
    assert not any("curling" in text for text in shown)
    nobody = await asked(other.session("s"), question)  # where nobody was named
    assert not any("origami" in text for text in nobody)


async def test_whom_the_last_turns_named_comes_after_what_is_asked_for(memory: Memory) -> None:
    user = memory.user("u1")
    await given(
        user,
        ("user", "works_at", "Northwind"),
        ("Lena", "works_at", "Initech"),
        ("Lena", "plays", "the cello"),
        ("Bruno", "works_at", "Hooli"),
    )
    session = user.session("s")
    await session.record(user="Lena called.", assistant="How is Lena?")
    shown = await asked(session, "Where do I work?")
    assert "Northwind" in shown[0]
    assert {"Lena works at Initech", "Lena plays the cello"} <= set(shown)
    shown = await asked(session, "Where does Bruno work?")
    assert "Hooli" in shown[0]
    for number in range(4):
        await session.record(user=f"It rains {number}.", assistant="Yes.")
    assert not any("Lena" in text for text in await asked(session, "Where do I work?"))


# --- of whom nothing is known --------------------------------------------------------------------

STRANGERS = [
    "Where does Zelda live?",
    "where does zelda live?",
    "What is Zelda's favourite colour?",
    "王伟今年几岁？",
    "Где работает Зельда?",
    "أين تسكن زيلدا؟",
    "젤다씨는 누구예요?",
    "ゼルダさんは誰ですか",
]


@pytest.mark.parametrize("question", STRANGERS)
async def test_of_somebody_unknown_nothing_that_does_not_bear_on_it_is_told(
    memory: Memory, question: str
) -> None:
    user = memory.user("u1")
    await given(
        user,
        ("user", "collects", "stamps"),
        ("user", "plays", "the tuba"),
        ("Bruno", "collects", "coins"),
    )
    session = user.session("s")
    assert await asked(session, question) == []
    assert len(await asked(session, "What do you know of me?")) == 2
    assert len(await asked(session, "Hello!")) == 2


async def test_what_bears_on_it_by_topic_is_told_all_the_same(memory: Memory) -> None:
    user = memory.user("u1")
    await given(user, ("user", "works_at", "Northwind"), ("user", "collects", "stamps"))
    shown = await asked(user.session("s"), "Where does Zelda work?")
    assert [text for text in shown if "Northwind" in text]
    assert not [text for text in shown if "stamps" in text]


# --- pinned and profile --------------------------------------------------------------------------


def pinned(context: Context) -> list[str]:
    return [item.text for item in context.items if item.tier == "semantic" and item.rank == 0]


@pytest.mark.parametrize("urls", ["local", "servers"], indirect=True)
async def test_a_pinned_slot_is_in_every_context_with_what_holds_now(
    open_memory: Open, clock: Clock
) -> None:
    """CONS-06, of facts."""
    async with open_memory() as memory:
        user = memory.user("u1")
        await given(user, ("user", "lives_in", "Oslo"), ("Greta", "rule", "no calls before nine"))
        await given(user, *(("user", "has_read", f"book number {n}") for n in range(60)))
        session = user.session("s")
        assert pinned(await session.build_context("Zzz?")) == []
        await user.pin_fact("user", "resides in", "Oslo")
        await user.pin_fact("Greta", "rule", "no calls before nine")
        await user.pin_fact("Greta", "rule", "no calls before nine")
        shown = await asked(session, "qwertz")
        assert "user lives in Oslo" in shown
        assert "Greta rule no calls before nine" in shown
        assert len(shown) == len(set(shown))
        clock.forward(days=1)
        await user.assert_fact("user", "lives_in", "Lyon")
        shown = await asked(session, "qwertz")
        assert "user lives in Lyon" in shown
        assert "user lives in Oslo" not in shown
        await memory.rebuild()
        assert await memory.settled(timedelta(seconds=30))
    async with open_memory() as memory:
        user = memory.user("u1")
        session = user.session("s")
        context = await session.build_context("Where does Zelda live?", budget=4_000)
        assert {"user lives in Lyon", "Greta rule no calls before nine"} <= set(known(context))
        other = memory.user("u2")
        await given(other, ("Greta", "rule", "no calls before nine"))
        assert known(await other.session("s").build_context("Where does Zelda live?")) == []
        await user.pin_fact("Greta", "rule", "no calls before nine", pinned=False)
        assert not any("rule" in text for text in await asked(session, "Where does Zelda live?"))


async def test_what_harms_when_it_is_forgotten_is_always_there(memory: Memory) -> None:
    user = memory.user("u1")
    await user.session("r").record(user="My name is Ada Byron. I'm allergic to penicillin.")
    await given(user, *(("user", "has_read", f"book number {n}") for n in range(250)))
    session = user.session("s")
    for question in ("Where does Zelda live?", "qwertz", "你好"):
        shown = await asked(session, question)
        assert any("penicillin" in text for text in shown), question
        assert any("Ada Byron" in text for text in shown), question
    recalled = await user.recall("medicine")
    (fact,) = [
        item for item in recalled.items if "penicillin" in item.text and item.tier != "episodic"
    ]
    assert fact.reason == "of the user's profile"
    first = pinned(await session.build_context("Where does Zelda live?"))
    assert first == pinned(await session.build_context("Do I take any medicine?"))


async def test_a_pinned_fact_outlives_half_a_year_of_nights(memory: Memory, clock: Clock) -> None:
    """CONS-06: nothing happens to it but what is said of it."""
    user = memory.user("u1")
    await given(user, ("user", "allergic_to", "penicillin"))
    await user.pin_fact("user", "allergic_to", "penicillin")
    before = await user.facts()
    clock.forward(days=180)
    assert await user.facts() == before
    shown = await asked(user.session("s"), "qwertz")
    assert any("penicillin" in text for text in shown)


HOSTILE: Iterable[Any] = ["\ud800 who", "a\x00b", "\u202eאבא", "<|endoftext|>", "w" * 2_000]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_names_and_questions_harm_nothing(memory: Memory, text: str) -> None:
    user = memory.user("u1")
    await given(user, (text, "knows", "Ann"), ("Ann", "also called", text))
    await user.pin_fact(text, "knows")
    assert any(
        "Ann" in shown for shown in await asked(user.session("s"), f"Who knows Ann, {text[:50]}?")
    )
    assert len(await user.facts("Ann")) == 2
