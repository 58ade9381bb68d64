"""Recall: one order, one floor, the same words once, and nothing for a greeting."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embedding import open_embedder
from memory.models import Dropped, Episode, Fact, Recalled, Role
from memory.recall import (
    Calibration,
    RecallPolicy,
    fuse,
    is_small_talk,
    literals,
    rank_facts,
    same_words,
)
from memory.settings import Settings
from memory.text import terms

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
POLICY = RecallPolicy(latin=Calibration(low=0.2, high=0.6), recency=0.0)


class Hit(NamedTuple):
    id: str
    score: float


def episode(name: str, text: str, **fields: Any) -> Episode:
    return Episode(
        **{
            "id": name,
            "session": f"session of {name}",
            "message_id": f"message of {name}",
            "seq": 1,
            "role": Role.USER,
            "speaker": "user",
            "text": text,
            "event_time": NOW - timedelta(days=2),
            "recorded_at": NOW,
            **fields,
        }
    )


def of(*episodes: Episode) -> dict[str, Episode]:
    return {each.id: each for each in episodes}


def hits(**scores: float) -> list[Hit]:
    return [Hit(*each) for each in scores.items()]


def found(
    query: str,
    episodes: Mapping[str, Episode],
    *,
    dense: Iterable[Hit] = (),
    lexical: Iterable[Hit] = (),
    k: int = 8,
    policy: RecallPolicy = POLICY,
) -> tuple[list[Recalled], list[Dropped]]:
    return fuse(list(dense), list(lexical), episodes, query=query, k=k, now=NOW, policy=policy)


def ids(recalled: Iterable[Recalled | Dropped]) -> list[str]:
    return [each.id for each in recalled]


TALK = of(
    episode("a", "I planted tomatoes"), episode("b", "my tax is due"), episode("c", "a fine day")
)


# --- order and floor ---------------------------------------------------------------------------


def test_meaning_and_words_are_put_into_one_order_best_first() -> None:
    items, _ = found(
        "tomatoes and tax",
        TALK,
        dense=hits(a=0.45, b=0.5, c=0.21),
        lexical=hits(a=4.0, b=1.0),
    )
    assert ids(items) == ["a", "b"]
    assert [item.score for item in items] == sorted((i.score for i in items), reverse=True)
    assert items[0].scores["meaning"] == pytest.approx(0.625)
    assert 0 < items[1].scores["words"] < items[0].scores["words"] <= 1


def test_either_arm_alone_is_enough() -> None:
    assert ids(found("soil", TALK, dense=hits(a=0.5))[0]) == ["a"]
    assert ids(found("planted tomatoes", TALK, lexical=hits(a=3.0))[0]) == ["a"]
    assert found("soil", TALK) == ([], [])


def test_what_is_below_the_floor_is_reported_with_the_numbers() -> None:
    items, dropped = found("soil", TALK, dense=hits(a=0.5, b=0.28, c=0.25))
    assert ids(items) == ["a"]
    assert ids(dropped) == ["b", "c"]
    assert dropped[0].score == pytest.approx(0.09)
    assert "0.09" in dropped[0].reason
    assert "0.15" in dropped[0].reason
    assert "2 were" in dropped[0].reason
    lower = POLICY.model_copy(update={"floor": 0.05})
    assert ids(found("soil", TALK, dense=hits(a=0.5, b=0.28, c=0.25), policy=lower)[0]) == [
        *("a", "b", "c")
    ]


def test_every_score_recalled_is_at_least_the_floor() -> None:
    items, _ = found("soil", TALK, dense=hits(a=0.9, b=0.4, c=0.34))
    assert ids(items) == ["a", "b", "c"]
    assert all(POLICY.floor <= item.score <= 1 for item in items)


def test_one_everyday_word_out_of_a_long_question_answers_nothing() -> None:
    question = "Which fine violin concerto did the orchestra of Vienna perform in winter?"
    items, dropped = found(question, TALK, dense=hits(c=0.1), lexical=hits(c=2.0))
    assert items == []
    assert ids(dropped) == ["c"]
    assert ids(found("a fine day", TALK, dense=hits(c=0.1), lexical=hits(c=2.0))[0]) == ["c"]


def test_more_than_k_are_cut_and_the_next_ones_reported() -> None:
    items, dropped = found("soil", TALK, dense=hits(a=0.5, b=0.48, c=0.46), k=2)
    assert ids(items) == ["a", "b"]
    assert ids(dropped) == ["c"]
    assert "3 were found; the best 2" in dropped[0].reason


def test_every_near_miss_has_its_cause_the_place_its_score_gives_it_and_each_arms_score() -> None:
    some = of(
        episode("a", "I like tea"),
        episode("b", "i like TEA"),
        episode("c", "I like rye", archived=True),
        episode("d", "I like figs"),
        episode("e", "I like rice"),
        episode("f", "the roof leaks"),
    )
    cosines = hits(a=0.5, b=0.5, c=0.48, d=0.46, e=0.44, f=0.25)
    items, dropped = found("drinks", some, dense=cosines, lexical=hits(e=1.0), k=1)
    assert ids(items) == ["a"]
    assert {each.id: (each.cause, each.rank, each.by) for each in dropped} == {
        "b": ("duplicate", 2, "a"),
        "c": ("archived", 2, None),
        "d": ("beyond_k", 2, None),
        "e": ("beyond_k", 3, None),
        "f": ("below_floor", 4, None),
    }
    assert all(each.scores.keys() == items[0].scores.keys() for each in dropped)
    assert {each.id: each.scores["meaning"] for each in dropped}["d"] == pytest.approx(0.65)


def test_that_only_remote_hits_were_found_is_said_with_their_number() -> None:
    items, dropped = found("soil", TALK, dense=hits(a=0.1, b=0.05, c=-0.2))
    assert items == []
    (one,) = dropped
    assert (one.cause, one.score) == ("below_floor", 0.0)
    assert "3 were" in one.reason
    assert found("soil", {}, dense=hits(a=0.1)) == ([], [])


def test_near_misses_are_a_few_and_keep_only_the_beginning_of_a_long_text() -> None:
    many = of(*(episode(f"e{n:02}", f"{n} " + "word " * 500) for n in range(40)))
    _, dropped = found("soil", many, dense=[Hit(key, 0.3) for key in many])
    assert ids(dropped) == [f"e{n:02}" for n in range(5)]
    assert all(len(each.text) <= 160 for each in dropped)
    assert "40 were" in dropped[0].reason


def test_equal_scores_are_ordered_by_id_whatever_the_order_of_arrival() -> None:
    same = hits(c=0.5, a=0.5, b=0.5)
    backwards = dict(reversed(TALK.items()))
    assert ids(found("soil", TALK, dense=same)[0]) == ["a", "b", "c"]
    assert ids(found("soil", backwards, dense=reversed(same))[0]) == ["a", "b", "c"]


def test_the_same_words_are_recalled_once() -> None:
    twice = of(episode("a", "I like tea"), episode("b", "i like  TEA"), episode("c", "I like rice"))
    items, dropped = found("drinks", twice, dense=hits(a=0.5, b=0.5, c=0.4))
    assert ids(items) == ["a", "c"]
    assert ids(dropped) == ["b"]
    assert "same" in dropped[0].reason
    assert (dropped[0].cause, dropped[0].by, dropped[0].rank) == ("duplicate", "a", 2)


def test_archived_episodes_are_not_recalled() -> None:
    some = of(episode("a", "I like tea", archived=True), episode("b", "I like rice"))
    items, dropped = found("drinks", some, dense=hits(a=0.5, b=0.5))
    assert ids(items) == ["b"]
    assert [(each.id, each.reason, each.cause) for each in dropped] == [
        ("a", "archived", "archived")
    ]


def test_hits_that_are_not_among_the_episodes_do_not_count() -> None:
    items, dropped = found("tax due", TALK, dense=hits(z=0.9), lexical=hits(z=9.0, b=2.0))
    assert ids(items) == ["b"]
    assert ids(dropped) == []


def test_the_newer_of_two_that_are_alike_comes_first() -> None:
    policy = POLICY.model_copy(update={"recency": 0.05})
    old = episode("a", "I like tea", event_time=NOW - timedelta(days=900))
    items, _ = found(
        "drinks",
        of(old, episode("b", "I like mate")),
        dense=hits(a=0.5, b=0.5),
        policy=policy,
    )
    assert ids(items) == ["b", "a"]
    assert items[0].scores["recency"] > items[1].scores["recency"]


def test_what_was_asked_for_word_for_word_comes_before_what_stands_beside_it() -> None:
    texts = ("Tom says 7", "Tim says 7", "Tim says 8", "fine, 8")
    talk = of(
        *(
            episode(name, text, session="s", seq=seq)
            for seq, (name, text) in enumerate(zip("dcba", texts, strict=True), start=1)
        )
    )
    items, _ = found(
        "Tim says 7",
        talk,
        dense=hits(a=0.4, b=0.7, c=0.7, d=0.7),
        lexical=hits(b=1.0, c=5.0, d=4.0),
    )
    assert [item.score for item in items[:3]] == [0.9] * 3  # neighbours lift them to the top
    assert ids(items) == ["c", "d", "b", "a"]


def test_an_answer_is_found_beside_the_question_that_was_hit() -> None:
    talk = of(
        *(
            episode(f"e{n}", text, session="monday", seq=n)
            for n, text in enumerate(["What do you drink?", "Mate.", "Nice.", "It rains."])
        ),
        episode("other", "Mate!", session="tuesday", seq=1),
    )
    items, _ = found("drinks", talk, dense=hits(e0=0.6))
    assert ids(items) == ["e0", "e1"]
    assert items[1].reason == "beside what was found"
    assert items[1].scores["neighbours"] > 0
    assert ids(found("drinks", talk, dense=hits(e0=0.3))[0]) == []  # noise is no signal


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=12),
    st.lists(st.floats(0, 50), min_size=1, max_size=12),
    st.sampled_from(["tomatoes", "my tax is due", "番茄", "", "order A-7731 in PLAN.md", "\ud800"]),
)
def test_scores_stay_on_their_scale_and_the_order_is_total(
    cosines: list[float], weights: list[float], query: str
) -> None:
    some = of(*(episode(f"e{n:02}", f"tomato tax {n}", session="s", seq=n) for n in range(12)))
    dense = [Hit(f"e{n:02}", score) for n, score in enumerate(cosines)]
    lexical = [Hit(f"e{n:02}", score) for n, score in enumerate(weights)]
    items, dropped = found(query, some, dense=dense, lexical=lexical)
    assert all(POLICY.floor <= item.score <= 1 for item in items)
    assert all(0 <= score <= 1 for item in items for score in item.scores.values())
    scores = [item.score for item in items]
    assert scores == sorted(scores, reverse=True)
    turned = dict(reversed(some.items()))
    assert found(query, turned, dense=dense[::-1], lexical=lexical[::-1])[0] == items
    assert not set(ids(items)) & set(ids(dropped))
    again, _ = found(query, dict(reversed(some.items())), dense=dense[::-1], lexical=lexical[::-1])
    assert again == items


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
    some = of(
        episode("a", "refund for order 7300418826 was approved"),
        episode("b", "refund for order 73004188261 was refused"),
        episode("c", "the order of things"),
    )
    items, _ = found("order 7300418826", some, dense=hits(a=0.1, b=0.6, c=0.6))
    assert ids(items)[0] == "a"
    assert items[0].score >= 0.9
    assert items[0].reason == "has '7300418826'"
    assert all(item.score < 0.9 + 1e-9 for item in items[1:])


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
    some = of(episode("a", "hello and thanks, 你好"))
    items, dropped = found(text, some, dense=hits(a=0.5))
    assert items == []
    assert [(each.id, each.cause) for each in dropped] == [("a", "not_asked")]
    assert ids(found(f"{text} fountain pen", some, dense=hits(a=0.5))[0]) == ["a"]


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
async def test_short_questions_are_answered_and_nonsense_is_not(
    query: str, answer: int | None
) -> None:
    some = of(*(episode(f"e{n:02}", text) for n, text in enumerate(GARDEN_AND_TAX)))
    embedder = await open_embedder(Settings())
    try:
        vectors = await embedder.embed(GARDEN_AND_TAX, role="document")
        asked = await embedder.embed([query], role="query")
    finally:
        await embedder.close()
    dense = [Hit(key, float(cosine)) for key, cosine in zip(some, vectors @ asked[0], strict=True)]
    wanted = set(terms(query))
    shared = {key: len(wanted & set(terms(each.text))) for key, each in some.items()}
    lexical = [Hit(key, float(often)) for key, often in shared.items() if often]
    items, dropped = found(
        query,
        some,
        dense=dense,
        lexical=lexical,
        policy=RecallPolicy.of_embedder(embedder.identity),
    )
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
    facts = [fact(f"f{n}", "notes", f"{n} " + "word " * 10_000) for n in range(100)]
    tracemalloc.start()
    try:
        shown = len(rank_facts(facts, "What was the word?", now=NOW))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shown
    assert kept < 1_000_000
