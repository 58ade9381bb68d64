"""Parts of a score, their sum, and how sure it is that anything answers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.models import Episode
from memory.places import NOWHERE, Floats, Numbers, Places, Row
from memory.recall import RecallPolicy
from memory.scoring import (
    LONG,
    PARTS,
    SURE,
    Calibration,
    Looked,
    Scored,
    Weights,
    cosines,
    scored,
)
from memory.shelf import Passages
from memory.when import BESIDE
from tests.ranking import POLICY, conversation, episode, looked, names, score, vectors_for

FEW = settings(max_examples=40)
TEXTS = ("kayak", "lamp kayak", "the tax", "", "fig fig fig", "番茄")


def constant(value: float) -> Callable[[Places, Numbers], Floats]:
    return lambda _, at: np.full(len(at), value)


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[Episode], dict[str, float], dict[str, Any]]:
    """Episodes, the cosines of some of them, and other parts."""
    episodes = []
    for session in "ab":
        for seq in range(draw(st.integers(0, 5))):
            name = f"{session}{seq}"
            text = draw(st.sampled_from(TEXTS))
            episodes.append(episode(name, text, session=session, seq=seq))
    known = [each.id for each in episodes if draw(st.booleans())]
    unit = st.floats(0.0, 1.0)
    return (
        episodes,
        {name: draw(st.floats(-1.0, 1.0)) for name in known},
        {
            "speaker": constant(draw(unit)),
            "person": constant(draw(unit)),
            "time": constant(draw(unit)),
            "facts": {name: draw(unit) for name in known if draw(st.booleans())},
        },
    )


def part(order: Scored, name: str, found: Looked, episodes: Sequence[Episode]) -> dict[str, float]:
    """A part of each candidate, by name."""
    return dict(zip(names(order, found, episodes), order.parts[name].tolist(), strict=True))


# --- on the scale ------------------------------------------------------------------------------


@FEW
@given(asked(), st.sampled_from(["kayak", "kayak and fig", "番茄", "", "unheard"]))
def test_every_number_is_on_its_scale_and_the_order_is_that_of_the_sum(
    given_: tuple[list[Episode], dict[str, float], dict[str, Any]], query: str
) -> None:
    episodes, known, parts = given_
    found = looked(episodes, query, known, **parts)
    order = score(found)
    assert sorted(order.at.tolist()) == found.at.tolist()
    assert 0.0 <= order.confidence <= 1.0
    assert 0.0 <= order.evidence <= 1.0
    if not len(order.at):
        return
    assert set(order.parts) == set(PARTS)
    for name, values in order.parts.items():
        assert np.all((values >= 0.0) & (values <= 1.0 + 1e-9)), name
    assert np.all((order.relative >= 0.0) & (order.relative <= 1.0))
    assert np.all(np.diff(order.relative) <= 1e-6)
    total = sum(getattr(POLICY.weights, name) * order.parts[name] for name in PARTS)
    if total[0] > 0:
        assert order.relative[0] == 1.0
        assert (total / total[0]).tolist() == pytest.approx(order.relative.tolist())


@FEW
@given(asked(), st.randoms(use_true_random=False))
def test_the_order_does_not_know_in_which_order_episodes_arrived(
    given_: tuple[list[Episode], dict[str, float], dict[str, Any]], chance: random.Random
) -> None:
    """Of one session: which session is first is that of the first number."""
    episodes, known, parts = given_
    here = [each for each in episodes if each.session == "a"]
    known = {name: cosine for name, cosine in known.items() if name.startswith("a")}
    parts["facts"] = {n: s for n, s in parts["facts"].items() if n.startswith("a")}
    found = looked(here, "kayak fig", known, **parts)
    expected = names(score(found), found, here)
    turned = list(here)
    chance.shuffle(turned)
    found = looked(turned, "kayak fig", dict(reversed(known.items())), **parts)
    assert names(score(found), found, turned) == expected


def test_without_candidates_there_is_no_order_and_nothing_is_sure() -> None:
    order = score(looked([], "kayak"))
    assert (len(order.at), order.confidence, order.evidence) == (0, 0.0, 0.0)
    nothing = looked(conversation("at the lake"), "kayak")
    assert len(score(nothing, alone="time").at) == 0


def test_candidates_that_have_nothing_are_all_alike() -> None:
    talk = conversation("one", "two", "three")
    order = score(looked(talk, "kayak", {"e1": 0.0, "e2": 0.0, "e3": 0.0}))
    assert order.at.tolist() == [0, 1, 2]
    assert order.confidence == order.evidence == 0.0
    assert not np.isnan(order.relative).any()


# --- the parts ---------------------------------------------------------------------------------


def test_words_are_a_share_of_the_best() -> None:
    talk = [episode("a", "kayak kayak"), episode("b", "kayak"), episode("c", "tax")]
    found = looked(talk, "kayak", {"c": 0.3})
    words = part(score(found), "words", found, talk)
    assert words["a"] == 1.0
    assert 0.0 < words["b"] < 1.0
    assert words["c"] == 0.0


def test_meaning_is_a_share_of_the_best_and_that_of_its_words_without_a_vector() -> None:
    talk = [episode(name, "kayak") for name in "abcd"]
    found = looked(talk, "kayak", {"a": 0.6, "b": 0.4, "c": 0.2})
    meaning = part(score(found), "meaning", found, talk)
    assert meaning["a"] == pytest.approx(1.0)
    assert meaning["a"] > meaning["b"] > meaning["c"]
    assert meaning["d"] == 1.0


def test_meaning_counts_less_where_all_of_it_is_noise() -> None:
    talk = [episode(name, "lamp") for name in "ab"]
    found = looked(talk, "kayak", {"a": 0.1, "b": 0.05})
    meaning = part(score(found), "meaning", found, talk)
    assert meaning["a"] == pytest.approx(0.5)  # of 0.2, where what is related begins
    assert meaning["b"] < meaning["a"]


def test_a_vector_that_is_no_number_is_none() -> None:
    talk = conversation("kayak", "lamp", "fig")
    broken = looked(talk, "kayak", {"e1": 0.5, "e2": float("nan"), "e3": 0.3})
    assert np.isnan(broken.cosines[1])
    order = score(broken)
    assert not any(np.isnan(values).any() for values in order.parts.values())
    assert not np.isnan(order.relative).any()
    assert names(order, broken, talk)[0] == "e1"
    assert part(order, "meaning", broken, talk)["e2"] == 0.0


def test_of_a_session_the_best_place_counts_for_all_of_it() -> None:
    talk = [
        *conversation("kayak", "one", "two", "three", "four", "five"),
        episode("x", "six", session="other", seq=1),
    ]
    found = looked(talk, "kayak", {each.id: 0.2 for each in talk} | {"e1": 0.7})
    order = score(found)
    session = part(order, "session", found, talk)
    assert session["e1"] == session["e6"] > session["x"]
    near = part(order, "words_near", found, talk), part(order, "meaning_near", found, talk)
    best = [max(each[name] for name in session if name != "x") for each in near]
    assert session["e6"] == pytest.approx(sum(best) / 2)


def test_words_and_meaning_of_a_session_may_come_from_two_places() -> None:
    talk = conversation("kayak", *["fine"] * 8, "boat")
    found = looked(talk, "kayak", {"e1": 0.1, "e10": 0.8})
    session = part(score(found), "session", found, talk)
    assert session["e1"] == session["e10"] == pytest.approx(1.0, abs=0.01)


def test_each_part_is_worth_its_weight_and_nothing_without_one() -> None:
    talk = [episode("said", "kayak"), episode("meant", "boat"), episode("learnt", "fig")]
    only_words = POLICY.model_copy(
        update={"weights": Weights(**{name: float(name == "words") for name in PARTS})}
    )
    found = looked(talk, "kayak", {"meant": 0.9, "learnt": 0.1}, facts={"learnt": 1.0})
    order = score(found, only_words)
    assert names(order, found, talk)[0] == "said"
    assert order.relative.tolist() == [1.0, 0.0, 0.0]
    only_facts = POLICY.model_copy(
        update={"weights": Weights(**{name: float(name == "facts") for name in PARTS})}
    )
    assert names(score(found, only_facts), found, talk)[0] == "learnt"


def test_of_equals_comes_first_what_has_more_by_itself_then_what_was_said_first() -> None:
    weights = Weights(words=0, meaning=0, words_near=0, meaning_near=0, session=0, speaker=1)
    policy = POLICY.model_copy(update={"weights": weights})
    talk = conversation("fine", "kayak", "fine")
    found = looked(talk, "kayak", speaker=constant(1.0))
    order = score(found, policy)
    assert names(order, found, talk) == ["e2", "e1", "e3"]
    assert order.relative.tolist() == [1.0] * 3


# --- how sure ----------------------------------------------------------------------------------


def test_a_close_meaning_or_the_whole_of_the_words_is_sure_and_a_remote_one_is_not() -> None:
    talk = [episode("a", "kayak lake"), episode("b", "tax")]

    def sure(query: str, **given_: float) -> tuple[float, float]:
        order = score(looked(talk, query, given_))
        return order.confidence, order.evidence

    assert sure("soil", a=0.6, b=0.1) == pytest.approx((0.5, 0.5))
    assert sure("soil", a=0.1, b=0.0) == pytest.approx((0.0, 0.0))
    confidence, evidence = sure("kayak lake")
    assert confidence == pytest.approx(1.0)
    assert evidence == pytest.approx(0.5)
    confidence, evidence = sure("kayak lake", a=0.6)
    assert (confidence, evidence) == pytest.approx((1.0, 1.0))


def test_one_word_of_many_is_no_evidence() -> None:
    talk = [episode("a", "kayak"), episode("b", "tax")]
    order = score(looked(talk, "violin concerto orchestra vienna winter kayak", {"a": 0.1}))
    assert order.evidence == 0.0
    assert order.confidence > 0.0


@pytest.mark.parametrize(
    ("time", "alone", "expected"),
    [(1.0, "time", SURE), (BESIDE, "time", SURE), (BESIDE - 0.01, "time", 0.0)],
)
def test_what_is_nearly_all_of_what_is_asked_for_alone_answers_it(
    time: float, alone: str, expected: float
) -> None:
    talk = [episode("a", "at the lake")]
    found = looked(talk, "yesterday", {"a": 0.0}, time=constant(time))
    order = score(found, alone=alone)
    assert (order.confidence, order.evidence) == (expected, expected)
    assert score(found).confidence == 0.0


def test_being_alone_never_makes_less_sure() -> None:
    talk = [episode("a", "kayak")]
    found = looked(talk, "kayak", {"a": 0.6}, time=constant(1.0))
    assert score(found, alone="time").confidence == score(found).confidence == 1.0


def test_the_calibration_says_what_is_unrelated_and_what_is_the_same() -> None:
    calibrated = Calibration(low=0.2, high=0.6)
    given_ = np.array([-1.0, 0.2, 0.4, 0.6, 1.0])
    assert calibrated(given_).tolist() == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])


def test_a_scale_without_negatives_orders_as_well_as_one_with() -> None:
    """Of some embedders all cosines are above 0.7."""
    talk = [episode(name, "x") for name in "abc"]
    found = looked(talk, "y", {"a": 0.78, "b": 0.92, "c": 0.85})
    policy = RecallPolicy.of_embedder("e5")
    order = scored(found, policy.weights, policy.latin)
    assert names(order, found, talk) == ["b", "c", "a"]
    assert order.relative[0] - order.relative[-1] > 0.3


# --- only some ---------------------------------------------------------------------------------


def test_the_chosen_candidates_keep_what_they_have() -> None:
    talk = conversation("kayak", "lamp", "kayak fig")
    found = looked(talk, "kayak", {"e1": 0.5, "e2": 0.4, "e3": 0.3}, facts={"e3": 0.7})
    some = found.only(np.array([True, False, True]))
    assert some.at.tolist() == [0, 2]
    assert some.cosines.tolist() == found.cosines[[0, 2]].tolist()
    assert some.said.own.tolist() == found.said.own[[0, 2]].tolist()
    assert some.facts.tolist() == [0.0, 0.7]
    assert set(names(score(some), some, talk)) == {"e1", "e3"}
    assert len(score(found.only(np.zeros(3, dtype=bool))).at) == 0


# --- cosines -----------------------------------------------------------------------------------


@FEW
@given(st.data())
def test_cosines_are_those_of_the_vectors_and_of_the_mean_of_three(data: st.DataObject) -> None:
    spots = data.draw(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 20)), unique=True, max_size=10)
    )
    sizes = data.draw(st.lists(st.sampled_from([20, LONG, LONG + 1]), min_size=10, max_size=10))
    places = Places.of(
        [
            Row(n, session, seq, 0, 1, "user", "user", 0, sizes[n - 1])
            for n, (session, seq) in enumerate(spots, 1)
        ],
        0,
    )
    chance = np.random.default_rng(data.draw(st.integers(0, 1_000)))
    every = range(len(places))
    known = sorted(data.draw(st.sets(st.sampled_from(list(every)) if spots else st.nothing())))
    raw = chance.standard_normal((len(known), 4))
    vectors = (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)
    query = vectors[0] if len(known) else np.ones(4, dtype=np.float32)
    at = sorted(data.draw(st.sets(st.sampled_from(list(every)) if spots else st.nothing())))
    own, near = cosines(
        query, vectors, np.array(known, dtype=np.int64), np.array(at, dtype=np.int64), places
    )
    row = dict(zip(known, vectors, strict=True))
    for here, one, three in zip(at, own.tolist(), near.tolist(), strict=True):
        around = [here, int(places.before[here]), int(places.after[here])]
        found = [row[each] for each in around if each != NOWHERE and each in row]
        expected = float(row[here] @ query) if here in row else np.nan
        assert one == pytest.approx(expected, abs=1e-5, nan_ok=True)
        if places.size[here] <= LONG:
            mean = np.sum(found, axis=0) if found else None
            expected = np.nan if mean is None else float(mean @ query / np.linalg.norm(mean))
        assert three == pytest.approx(expected, abs=1e-4, nan_ok=True)


def test_a_place_is_as_close_as_the_closest_of_its_passages_and_its_window_as_the_wholes() -> None:
    sizes = (20, 250, LONG + 1, LONG + 1)
    places = Places.of(
        [Row(n, "s", n, 0, 1, "user", "user", 0, size) for n, size in enumerate(sizes, 1)], 0
    )
    every = np.arange(4)
    query, vectors = vectors_for([0.1, 0.2, 0.3, 0.4])
    passages = np.stack([each * query for each in (0.1, 0.7, 0.6, 0.2, 0.5, 0.2)])
    without = cosines(query, vectors, every, every, places)
    own, near = cosines(
        *(query, vectors, every, every, places),
        Passages(np.array([1, 2, 3]), np.array([0, 2, 5]), passages),
    )
    assert own.tolist() == pytest.approx([0.1, 0.7, 0.6, 0.4])
    assert near.tolist() == pytest.approx([*without[1].tolist()[:2], 0.6, 0.4])


def test_without_a_query_or_without_vectors_nothing_is_close() -> None:
    places = Places.of([Row(1, "s", 1, 0, 1, "user", "user", 0)], 0)
    at, none = np.array([0]), np.zeros(0, dtype=np.int64)
    some = np.ones((1, 2), dtype=np.float32)
    for query, vectors, known in (
        (None, some, at),
        (some[0], np.zeros((0, 0), dtype=np.float32), none),
    ):
        own, near = cosines(query, vectors, known, at, places)
        assert np.isnan(own).all()
        assert np.isnan(near).all()


def test_opposites_beside_each_other_have_no_direction_in_common() -> None:
    places = Places.of([Row(n, "s", n, 0, 1, "user", "user", 0) for n in (1, 2)], 0)
    vectors = np.array([[1.0, 0.0], [-1.0, 0.0]], dtype=np.float32)
    own, near = cosines(vectors[0], vectors, np.array([0, 1]), np.array([0, 1]), places)
    assert own.tolist() == [1.0, -1.0]
    assert np.isnan(near).all()


def test_every_order_of_three_candidates_gives_the_same() -> None:
    talk = [episode(name, text) for name, text in zip("abc", ("kayak", "boat", "fig"), strict=True)]
    given_ = {"a": 0.2, "b": 0.6, "c": 0.1}
    orders = set()
    for turned in itertools.permutations(talk):
        found = looked(turned, "kayak", given_)
        orders.add(tuple(names(score(found), found, turned)))
    assert len(orders) == 1
