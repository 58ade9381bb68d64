"""Recall: one order, one floor, the same words once, and nothing for a greeting."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.embedding import Embedder, open_embedder
from memory.models import Fact
from memory.recall import (
    EXCERPT,
    LITERAL_BAND,
    RecallPolicy,
    is_small_talk,
    literals,
    rank_facts,
    ranked,
    same_words,
    strengths,
)
from memory.scoring import Scored
from memory.settings import Settings
from memory.when import When
from tests.ranking import (
    NOW,
    POLICY,
    conversation,
    episode,
    ids,
    looked,
    names,
    recalled,
    score,
)

TALK = [
    episode("a", "I planted tomatoes"),
    episode("b", "my tax is due"),
    episode("c", "a fine day"),
]


# --- order and floor ---------------------------------------------------------------------------


def test_meaning_and_words_are_put_into_one_order_best_first() -> None:
    items, _ = recalled("tomatoes and tax", TALK, {"a": 0.45, "b": 0.3, "c": 0.21})
    assert ids(items) == ["a", "b"]
    assert [item.score for item in items] == sorted((i.score for i in items), reverse=True)
    assert items[0].scores["meaning"] == 1.0
    assert items[0].scores["words"] == 1.0
    assert 0 < items[1].scores["meaning"] < 1


def test_either_arm_alone_is_enough() -> None:
    assert ids(recalled("soil", TALK, {"a": 0.5})[0]) == ["a"]
    assert ids(recalled("planted tomatoes", TALK)[0]) == ["a"]
    assert recalled("soil", TALK) == ([], [])


def test_what_is_below_the_floor_is_reported_with_the_numbers() -> None:
    given_ = {"a": 0.5, "b": 0.12, "c": 0.11, "d": 0.1}
    talk = [*TALK, episode("d", "the roof leaks")]
    items, dropped = recalled("soil", talk, given_)
    assert ids(items) == ["a"]
    assert ids(dropped) == ["b", "c"]  # and `d` has nothing at all
    assert [each.rank for each in dropped] == [2, 3]
    for each in dropped:
        assert 0 < each.score < POLICY.floor
        assert f"{each.score:.2f}" in each.reason
        assert "0.15" in each.reason
        assert "3 were" in each.reason
    lower = POLICY.model_copy(update={"floor": 0.0001, "least_share": 0.0})
    assert ids(recalled("soil", talk, given_, policy=lower)[0])[:3] == ["a", "b", "c"]


def test_every_score_recalled_is_at_least_the_floor() -> None:
    items, dropped = recalled("soil", TALK, {"a": 0.9, "b": 0.6, "c": 0.1})
    assert ids(items) == ["a", "b"]
    assert ids(dropped) == ["c"]
    assert all(POLICY.floor <= item.score <= 1 for item in items)


def test_one_everyday_word_out_of_a_long_question_answers_nothing() -> None:
    question = "Which fine violin concerto did the orchestra of Vienna perform in winter?"
    items, dropped = recalled(question, TALK, {"c": 0.1})
    assert items == []
    assert ids(dropped) == ["c"]
    assert dropped[0].score > 0
    assert ids(recalled("a fine day", TALK, {"c": 0.1})[0]) == ["c"]


def test_without_evidence_everything_is_below_the_floor_and_keeps_its_order() -> None:
    question = "Which fine violin concerto did the orchestra of Vienna perform on its tax day?"
    unsure = score(looked(TALK, question, {"a": 0.21, "b": 0.22, "c": 0.23}))
    assert 0 < unsure.evidence < POLICY.own_floor < unsure.confidence
    strength = strengths(unsure, POLICY)
    assert strength.max() < POLICY.floor
    assert np.all(np.diff(strength) < 0)
    sure = Scored(unsure.at, unsure.relative, unsure.parts, unsure.confidence, 1.0)
    assert POLICY.floor < strengths(sure, POLICY)[0] <= 1 - LITERAL_BAND


def test_beside_an_answer_what_has_a_small_share_of_it_is_none() -> None:
    talk = [*TALK, episode("d", "the roof leaks")]
    given_ = {"a": 0.6, "b": 0.55, "c": 0.21, "d": 0.1}
    strict = POLICY.model_copy(update={"least_share": 0.3})
    items, dropped = recalled("soil", talk, given_, policy=strict)
    assert ids(items) == ["a", "b"]
    (miss,) = dropped
    assert (miss.id, miss.cause) == ("c", "below_floor")
    assert 0 < miss.score < POLICY.floor
    every = POLICY.model_copy(update={"least_share": 0.0, "floor": 0.001})
    assert ids(recalled("soil", talk, given_, policy=every)[0]) == ["a", "b", "c"]


def test_more_than_k_are_cut_and_the_next_ones_reported() -> None:
    items, dropped = recalled("soil", TALK, {"a": 0.5, "b": 0.48, "c": 0.46}, k=2)
    assert ids(items) == ["a", "b"]
    assert ids(dropped) == ["c"]
    assert "3 were found; the best 2" in dropped[0].reason
    items, dropped = recalled("soil", TALK, {"a": 0.5, "b": 0.48, "c": 0.46}, k=0)
    assert items == []
    assert ids(dropped) == ["a", "b", "c"]


def test_every_near_miss_has_its_cause_the_place_its_score_gives_it_and_each_part_of_it() -> None:
    some = [
        episode("a", "I like tea"),
        episode("b", "i like TEA"),
        episode("c", "I like rye", archived=True),
        episode("d", "I like figs"),
        episode("e", "I like rice"),
        episode("f", "the roof leaks"),
    ]
    cosines = {"a": 0.5, "b": 0.5, "c": 0.48, "d": 0.46, "e": 0.44, "f": 0.0}
    items, dropped = recalled("drinks", some, cosines, k=1)
    assert ids(items) == ["a"]
    assert {each.id: (each.cause, each.rank, each.by) for each in dropped} == {
        "b": ("duplicate", 2, "a"),
        "c": ("archived", 2, None),
        "d": ("beyond_k", 2, None),
        "e": ("beyond_k", 3, None),
        "f": ("below_floor", 4, None),
    }
    assert all(each.scores.keys() == items[0].scores.keys() for each in dropped)
    assert items[0].scores.keys() >= {"words", "meaning", "session", "recency", "literal"}


def test_candidates_that_were_not_read_count_and_are_not_named() -> None:
    talk = [episode(f"e{n}", f"text {n}") for n in range(6)]
    found = looked(
        talk, "soil", dict(zip(ids(talk), (0.6, 0.5, 0.45, 0.44, 0.0, 0.0), strict=True))
    )
    order = score(found)
    by_name = {each.id: each for each in talk}
    read = {at: by_name[name] for at, name in enumerate(names(order, found, talk)) if at in (0, 1)}
    items, dropped = ranked(order, read, query="soil", k=1, now=NOW, policy=POLICY)
    assert ids(items) == ["e0"]
    (beyond,) = dropped
    assert (beyond.id, beyond.cause) == ("e1", "beyond_k")
    assert "4 were found" in beyond.reason
    read = {at: by_name[name] for at, name in enumerate(names(order, found, talk)) if at in (0, 4)}
    _, dropped = ranked(order, read, query="soil", k=1, now=NOW, policy=POLICY)
    assert [(each.cause, each.rank) for each in dropped] == [("below_floor", 5)]
    assert "2 were" in dropped[0].reason


def test_that_only_remote_hits_were_found_is_said_with_their_number() -> None:
    items, dropped = recalled("soil", TALK, {"a": 0.1, "b": 0.05, "c": -0.2})
    assert items == []
    assert {each.cause for each in dropped} == {"below_floor"}
    assert all(each.score == 0.0 for each in dropped)
    assert "3 were" in dropped[0].reason
    assert recalled("soil", []) == ([], [])


def test_near_misses_are_a_few_and_keep_only_the_beginning_of_a_long_text() -> None:
    many = [episode(f"e{n:02}", f"{n} " + "word " * 500) for n in range(40)]
    _, dropped = recalled("soil", many, {each.id: 0.25 for each in many})
    assert ids(dropped) == [f"e{n:02}" for n in range(5)]
    assert all(len(each.text) <= EXCERPT for each in dropped)
    assert "40 were" in dropped[0].reason
    none = POLICY.model_copy(update={"near_misses": 0})
    assert recalled("soil", many, {each.id: 0.25 for each in many}, policy=none) == ([], [])


def test_equal_scores_are_in_the_order_of_what_was_said_whatever_the_order_of_arrival() -> None:
    talk = conversation("one", "two", "three")
    same = {"e3": 0.5, "e1": 0.5, "e2": 0.5}
    apart = [episode(each.id, each.text, session="s", seq=20 * each.seq) for each in talk]
    assert ids(recalled("soil", apart, same)[0]) == ["e1", "e2", "e3"]
    assert ids(recalled("soil", apart[::-1], dict(reversed(same.items())))[0]) == [
        *("e1", "e2", "e3")
    ]


def test_the_same_words_are_recalled_once() -> None:
    twice = [episode("a", "I like tea"), episode("b", "i like  TEA"), episode("c", "I like rice")]
    items, dropped = recalled("drinks", twice, {"a": 0.5, "b": 0.5, "c": 0.45})
    assert ids(items) == ["a", "c"]
    assert ids(dropped) == ["b"]
    assert "same" in dropped[0].reason
    assert (dropped[0].cause, dropped[0].by, dropped[0].rank) == ("duplicate", "a", 2)


def test_what_says_the_same_takes_no_place_among_the_k() -> None:
    talk = [*(episode(f"t{n}", "I like tea") for n in range(4)), episode("rice", "I like rice")]
    items, dropped = recalled("drinks", talk, dict.fromkeys(ids(talk), 0.5) | {"rice": 0.45}, k=2)
    assert ids(items) == ["t0", "rice"]
    assert [each.cause for each in dropped] == ["duplicate"] * 3
    assert "3 were" in dropped[0].reason


def test_archived_episodes_are_not_recalled() -> None:
    some = [episode("a", "I like tea", archived=True), episode("b", "I like rice")]
    items, dropped = recalled("drinks", some, {"a": 0.5, "b": 0.5})
    assert ids(items) == ["b"]
    assert [(each.id, each.reason, each.cause) for each in dropped] == [
        ("a", "archived", "archived")
    ]


def test_the_newer_of_two_that_are_alike_comes_first() -> None:
    policy = POLICY.model_copy(update={"recency": 0.05})
    old = episode("a", "I like tea", event_time=NOW - timedelta(days=900))
    items, _ = recalled(
        "drinks", [old, episode("b", "I like mate")], {"a": 0.5, "b": 0.5}, policy=policy
    )
    assert ids(items) == ["b", "a"]
    assert items[0].scores["recency"] > items[1].scores["recency"]


def test_age_takes_no_more_than_its_part_and_what_is_of_tomorrow_is_new() -> None:
    policy = POLICY.model_copy(update={"recency": 0.2})
    talk = [
        episode("old", "tea", event_time=NOW - timedelta(days=36_500)),
        episode("tomorrow", "mate", event_time=NOW + timedelta(days=900)),
    ]
    items, _ = recalled("drinks", talk, {"old": 0.6, "tomorrow": 0.6}, policy=policy)
    assert ids(items) == ["tomorrow", "old"]
    plain, _ = recalled("drinks", talk, {"old": 0.6, "tomorrow": 0.6})
    assert items[0].score == plain[0].score == plain[1].score
    assert items[1].score == pytest.approx(0.8 * items[0].score, abs=0.001)


def test_a_touch_of_age_orders_what_is_found_and_does_not_take_it_away() -> None:
    sure = Scored(np.arange(2), np.array([1.0, 0.21]), {}, 0.1, 1.0)
    touch = RecallPolicy()
    assert touch.recency > 0
    least = strengths(sure, touch)[1]
    assert least * (1.0 - touch.recency) >= touch.floor - 1e-9
    much = RecallPolicy(recency=1.0)
    assert strengths(sure, much)[1] * (1.0 - much.recency) < much.floor
    far = Scored(np.arange(2), np.array([1.0, 0.19]), {}, 0.1, 1.0)
    assert strengths(far, touch)[1] < touch.floor


def test_beside_a_dialogue_more_counts_as_found_and_words_count_less() -> None:
    policy = RecallPolicy()
    told = policy.asked("<Ada>: I am ill.\n<Assistant>: Oh no!\n<Ada>: What shall I do?")
    assert policy.asked("What shall I do when I am ill?") == policy
    assert told.least_share == policy.least_share / 2
    assert told.weights.words == policy.weights.words / 2
    assert told.weights.words_near == policy.weights.words_near / 2
    assert told.weights.meaning == policy.weights.meaning
    assert told.floor == policy.floor
    assert policy.offered(60, "What shall I do when I am ill?") == 60
    assert policy.offered(60, "I am ill.\nOh no!\nWhat shall I do?") == 80
    with pytest.raises(ValueError, match="dialogue_offers"):
        RecallPolicy(dialogue_offers=float("inf"))
    assert RecallPolicy(dialogue_offers=0.0).offered(60, "I am ill.\nOh no!\nWhat now?") == 1
    scored = Scored(np.arange(2), np.array([1.0, 0.15]), {}, 0.5, 1.0)
    assert strengths(scored, told)[1] >= policy.floor > strengths(scored, policy)[1]
    little = policy.own_floor * policy.dialogue_evidence
    for evidence, answered in ((little + 0.001, True), (little - 0.001, False)):
        order = Scored(np.arange(2), np.array([1.0, 0.15]), {}, 0.5, evidence)
        assert bool(strengths(order, told).max() >= policy.floor) is answered
        assert strengths(order, policy).max() < policy.floor


def test_use_and_importance_count_where_a_policy_says_so() -> None:
    talk = [
        episode("a", "tea", importance=0.0),
        episode("used", "mate", last_access=NOW, importance=0.5),
        episode("great", "rye", importance=1.0),
    ]
    given_ = dict.fromkeys(ids(talk), 0.5)
    by_use = POLICY.model_copy(update={"access": 0.1})
    by_importance = POLICY.model_copy(update={"importance": 0.1})
    assert ids(recalled("drinks", talk, given_)[0]) == ["a", "used", "great"]
    assert ids(recalled("drinks", talk, given_, policy=by_use)[0])[0] == "used"
    assert ids(recalled("drinks", talk, given_, policy=by_importance)[0]) == ["great", "used", "a"]


def test_an_answer_is_found_beside_the_question_that_was_hit() -> None:
    talk = [
        *conversation("What do you drink?", "Mate.", "Nice.", session="monday"),
        episode("other", "Mate!", session="tuesday", seq=1),
    ]
    items, _ = recalled("beverages", talk, {"e1": 0.6})
    assert ids(items)[:2] == ["e1", "e2"]
    assert "other" not in ids(items)
    assert items[1].reason == "beside what is close in meaning"
    assert items[1].scores["meaning"] == 0.0
    assert items[1].scores["meaning_near"] > 0
    assert ids(recalled("beverages", talk, {"e1": 0.25})[0]) == []  # noise is no signal


def test_each_item_says_why_it_is_here() -> None:
    lonely = [episode("said", "kayak"), episode("meant", "boat"), episode("learnt", "lake")]
    every = POLICY.model_copy(update={"least_share": 0.0, "floor": 0.01})
    given_ = {"meant": 0.6, "learnt": 0.2}
    items, _ = recalled("kayak", lonely, given_, facts={"learnt": 1.0}, policy=every)
    assert {item.id: item.reason for item in items} == {
        "said": "shares words",
        "meant": "close in meaning",
        "learnt": "where a fact was learnt",
    }
    when = When.of("yesterday", NOW)
    there = episode("there", "at the lake", event_time=NOW - timedelta(days=1))
    (item,), _ = recalled("yesterday", [there], {"there": -0.5}, time=when, alone="time")
    assert item.reason == "of the time that is asked for"


def test_what_was_of_a_day_is_recalled_when_nothing_else_is_asked_for() -> None:
    talk = [
        episode("yesterday", "at the lake", event_time=NOW - timedelta(days=1)),
        episode("before", "in the garden", event_time=NOW - timedelta(days=30)),
    ]
    given_ = {"yesterday": 0.1, "before": 0.1}
    when = When.of("What happened yesterday?", NOW)
    items, _ = recalled("What happened yesterday?", talk, given_, time=when, alone="time")
    assert ids(items) == ["yesterday"]
    assert recalled("What was cooked yesterday?", talk, given_, time=when)[0] == []


@settings(max_examples=40)
@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=12),
    st.sampled_from(["tomatoes", "my tax is due", "番茄", "", "order A-7731 in PLAN.md", "\ud800"]),
    st.integers(0, 12),
    st.randoms(use_true_random=False),
)
def test_scores_stay_on_their_scale_and_the_order_is_total(
    cosines: list[float], query: str, k: int, chance: random.Random
) -> None:
    some = [
        episode(f"e{n:02}", f"tomato tax {n} {'A-7731' if n % 5 == 4 else ''}", session="s", seq=n)
        for n in range(12)
    ]
    given_ = {f"e{n:02}": cosine for n, cosine in enumerate(cosines)}
    items, dropped = recalled(query, some, given_, k=k)
    assert len(items) <= k
    assert all(POLICY.floor <= item.score <= 1 for item in items)
    for parts in (each.scores for found in (items, dropped) for each in found):
        assert all(0 <= part <= 1 for part in parts.values())
    scores = [item.score for item in items]
    assert scores == sorted(scores, reverse=True)
    assert not set(ids(items)) & set(ids(dropped))
    assert all(each.score >= POLICY.floor or each.cause != "beyond_k" for each in dropped)
    turned = list(some)
    chance.shuffle(turned)
    assert recalled(query, turned, dict(reversed(given_.items())), k=k) == (items, dropped)


# --- to the letter -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("7300418826", ("7300418826",)),
        ("where is PLAN.md kept?", ("plan.md",)),
        ("order A-7731.", ("a-7731",)),
        ("did Ada say “see you in Porto”?", ("see you in porto",)),
        ("他说的「老地方」在哪里", ("老地方",)),
        ("mail ada@example.org about src/main.rs", ("ada@example.org", "src/main.rs")),
        ("what did I do in 2024, on the 3rd at 10:30, on 2024-05-01?", ()),
        ("my mother-in-law's house", ()),
        ("tomatoes and tax", ()),
    ],
)
def test_identifiers_files_and_quotations_are_meant_to_the_letter(
    query: str, expected: tuple[str, ...]
) -> None:
    assert literals(query) == expected


def test_a_literal_hit_comes_first_whatever_else_is_close() -> None:
    some = [
        episode("a", "refund for order 7300418826 was approved"),
        episode("b", "refund for order 73004188261 was refused"),
        episode("c", "the order of things"),
    ]
    items, _ = recalled("order 7300418826", some, {"a": 0.1, "b": 0.6, "c": 0.6})
    assert ids(items)[0] == "a"
    assert items[0].score >= 1 - LITERAL_BAND
    assert items[0].reason == "has '7300418826'"
    assert all(item.score < 1 - LITERAL_BAND + 1e-9 for item in items[1:])


def test_of_two_literals_both_are_better_than_one() -> None:
    some = [episode("one", "PLAN.md is old"), episode("both", "order A-7731 is in PLAN.md")]
    items, _ = recalled("is order A-7731 in PLAN.md?", some, {"one": 0.6, "both": 0.5})
    assert ids(items) == ["both", "one"]
    assert items[1].score >= 1 - LITERAL_BAND


def test_a_literal_hit_is_recalled_where_nothing_else_answers() -> None:
    question = "Which violin concerto did the orchestra of Vienna play, says the file PLAN.md?"
    items, _ = recalled(question, [episode("a", "plan.md"), episode("b", "tax")], {"a": 0.0})
    assert ids(items) == ["a"]


# --- greetings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "Hi there!",
        "thanks a lot",
        "how are you?",
        "ok",
        "你好",
        "谢谢你！",
        "早上好",
        "好的",
    ],
)
def test_a_greeting_recalls_nothing(text: str) -> None:
    assert is_small_talk(text)
    some = [episode("a", "hello and thanks, 你好, writes the fountain pen")]
    items, dropped = recalled(text, some, {"a": 0.5})
    assert items == []
    assert [(each.id, each.cause) for each in dropped] == [("a", "not_asked")]
    assert ids(recalled(f"{text} fountain pen", some, {"a": 0.5})[0]) == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        "hello world program",
        "good bakery",
        "what day",
        "a fine day",
        "tax",
        "银行",
        "你好世界",
        "",
        "7",
        "👋",
        "?" * 99,
    ],
)
def test_what_says_more_than_a_greeting_is_none(text: str) -> None:
    assert not is_small_talk(text)


def test_very_long_runs_are_looked_at_once() -> None:
    assert not is_small_talk("嗯" * 100_000 + "x")
    assert is_small_talk("嗯嗯嗯嗯嗯")
    assert literals("a." * 50_000)
    assert same_words(" A\n b ") == "a b"


# --- with the embedder that comes with the install -----------------------------------------------

GARDEN_AND_TAX = [
    "The roses have black spot again, I cut off all the lower leaves.",
    "I sowed carrots between the onions to keep the fly away.",
    "The greenhouse thermometer showed forty degrees on Sunday.",
    "We covered the strawberries with straw before the frost.",
    "The compost heap is finally warm enough to kill weed seeds.",
    "I pruned the apple tree in February as grandfather did.",
    "Slugs ate every single lettuce in one night.",
    "The new hose leaks at the tap, I need a washer.",
    "My income tax return is due at the end of July.",
    "The accountant found a mistake in the depreciation of the van.",
    "I paid the property tax in four instalments this year.",
    "The tax office refunded three hundred and twelve euros.",
    "Receipts for business meals must name the guests.",
    "I keep the mileage log in the glove compartment.",
    "月季又得了黑斑病，我把下面的叶子都剪掉了。",
    "鼻涕虫一个晚上吃光了所有的生菜。",
    "我在二月份给苹果树剪了枝。",
    "个人所得税要在六月底以前申报。",
    "会计发现货车折旧算错了。",
    "税务局退给我三百一十二块钱。",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[Embedder]:
    opened = await open_embedder(Settings())
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("flurb zandwick oop", None),
        ("hello", None),
        ("你好", None),
        ("quantum entanglement", None),
        ("property tax", 10),
        ("lettuce slugs", 6),
        ("frost protection", 3),
        ("苹果树 剪枝", 16),
        ("货车折旧", 18),
        ("税务 退款", 19),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_short_questions_are_answered_and_nonsense_is_not(
    embedder: Embedder, query: str, answer: int | None
) -> None:
    some = [episode(f"e{n:02}", text) for n, text in enumerate(GARDEN_AND_TAX)]
    vectors = await embedder.embed(GARDEN_AND_TAX, role="document")
    asked = await embedder.embed([query], role="query")
    cosines = dict(zip(ids(some), (vectors @ asked[0]).tolist(), strict=True))
    policy = RecallPolicy.of_embedder(embedder.identity)
    items, dropped = recalled(query, some, cosines, policy=policy)
    if answer is None:
        assert items == []
    else:
        assert f"e{answer:02}" in ids(items)[:3]
    assert all("floor" in each.reason or "asks for nothing" in each.reason for each in dropped)


def test_an_embedder_is_calibrated_by_its_name_and_the_script_of_the_query() -> None:
    both = RecallPolicy.of_embedder("routed-1(minilm-l6-v2-int8|e5-small-q4)/384")
    assert both == RecallPolicy()
    assert both.meaning("tomatoes") == both.latin != both.other == both.meaning("番茄")
    one = RecallPolicy.of_embedder("st:multilingual-e5-large/1024")
    assert one.latin == one.other == both.other
    unknown = RecallPolicy.of_embedder("st:something/12")
    assert unknown.latin == unknown.other == both.latin


# --- facts -------------------------------------------------------------------------------------


def fact(name: str, predicate: str, object: str, **fields: Any) -> Fact:
    return Fact(
        **{
            "id": name,
            "fact_id": name,
            "subject": "user",
            "predicate": predicate,
            "object": object,
            "valid_from": NOW - timedelta(days=90),
            "learnt_at": NOW - timedelta(days=90),
            **fields,
        }
    )


KNOWN = [
    fact("home", "lives_in", "Lisbon"),
    fact("job", "works_at", "Northwind"),
    fact("nuts", "allergic_to", "peanuts"),
    fact("tea", "likes", "乌龙茶"),
    fact("mia", "works_at", "Harlow", subject="Mia"),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("where do I work?", "job"),
        ("我在哪里工作？", "job"),
        ("Where shall we eat tonight?", "nuts"),
        ("我喜欢喝什么？", "tea"),
        ("How is the weather in Lisbon?", "home"),
        ("我住在哪个城市", "home"),
        ("What is Mia doing?", "mia"),
    ],
)
def test_the_fact_that_is_asked_for_comes_first(query: str, first: str) -> None:
    ranked = rank_facts(KNOWN, query, now=NOW)
    assert ranked[0].id == first or (first == "tea" and "tea" in ids(ranked[:2]))
    assert ranked[0].reason != "about the user"


def test_what_is_known_of_the_user_is_always_offered_and_of_others_only_when_asked() -> None:
    assert ids(rank_facts(KNOWN, "tell me a joke", now=NOW)) == ["home", "job", "nuts", "tea"]
    assert "mia" in ids(rank_facts(KNOWN, "call Mia", now=NOW))
    assert rank_facts(KNOWN, "tell me a joke", now=NOW)[0].reason == "about the user"


def test_facts_that_do_not_hold_are_left_out_before_the_limit_is_counted() -> None:
    ended = [
        fact(f"old{n}", "works_at", f"Firm {n}", valid_to=NOW - timedelta(days=1))
        for n in range(30)
    ]
    corrected = fact("wrong", "works_at", "Wrong", unlearnt_at=NOW)
    later = fact("later", "works_at", "Later", valid_from=NOW + timedelta(days=1))
    current = fact("now", "works_at", "Northwind")
    ranked = rank_facts([*ended, corrected, later, current], "where do I work?", now=NOW, limit=1)
    assert ids(ranked) == ["now"]
    until_now = current.model_copy(update={"valid_to": NOW})
    assert rank_facts([until_now], "where do I work?", now=NOW) == []


def test_facts_are_shown_as_they_are_rendered() -> None:
    (one,) = rank_facts([fact("home", "lives_in", "Lisbon")], "", now=NOW)
    assert one.text == "user lives in Lisbon"
    (other,) = rank_facts([fact("home", "lives_in", "x")], "", now=NOW, render=lambda f: f.object)
    assert other.text == "x"


def test_equal_facts_are_ordered_by_time_and_id_whatever_the_order_of_arrival() -> None:
    some = [
        fact("b", "likes", "tea"),
        fact("a", "likes", "rice"),
        fact("c", "likes", "figs", valid_from=NOW),
    ]
    expected = ["c", "a", "b"]
    assert ids(rank_facts(some, "hm", now=NOW)) == expected
    assert ids(rank_facts(reversed(some), "hm", now=NOW)) == expected


def test_long_facts_are_not_kept_in_memory() -> None:
    facts = [fact(f"f{n}", "notes", f"{n} " + "word " * 2_000) for n in range(40)]
    tracemalloc.start()
    try:
        shown = len(rank_facts(facts, "What was the word?", now=NOW))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shown
    assert kept < 100_000
