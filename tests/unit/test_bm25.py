"""BM25 of episodes and of their windows, against the formula written down once more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.bm25 import B_WINDOW, K1, B, Said, Wanted
from memory.models import Episode
from memory.places import APART
from memory.text import terms
from tests.ranking import Journal, conversation, episode, key_of, wanted

FEW = settings(max_examples=30)
WORDS = ("kayak", "lamp", "garden", "tax", "fig")


@st.composite
def talks(draw: st.DrawFn) -> list[Episode]:
    """A few sessions of a few words each, some with gaps."""
    said = st.lists(st.sampled_from(WORDS), max_size=6)
    made = []
    for session in "abc"[: draw(st.integers(1, 3))]:
        seq = 0
        for number in range(draw(st.integers(1, 6))):
            seq += draw(st.sampled_from([1, 1, 1, APART, APART + 1]))
            name = f"{session}{number}"
            made.append(episode(name, " ".join(draw(said)), session=session, seq=seq))
    return draw(st.permutations(made))


def in_order(episodes: Sequence[Episode]) -> list[Episode]:
    """As places are: sessions as they were first heard of."""
    heard = list(dict.fromkeys(each.session for each in episodes))
    return sorted(episodes, key=lambda each: (heard.index(each.session), each.seq))


def window(ordered: Sequence[Episode], at: int) -> list[Episode]:
    """An episode with what stands at most two steps beside it."""
    found = [ordered[at]]
    for way in (-1, 1):
        here = at
        for _ in range(2):
            there = here + way
            if not 0 <= there < len(ordered):
                break
            if ordered[there].session != ordered[here].session:
                break
            if abs(ordered[there].seq - ordered[here].seq) > APART:
                break
            here = there
            found.append(ordered[here])
    return found


def naive(
    asked: Sequence[Wanted], episodes: Sequence[Episode], *, windows: bool = False
) -> dict[str, float]:
    """The formula over whole texts, joined for windows; rarity is always that of single ones."""
    ordered = in_order(episodes)
    texts = [each.text for each in ordered]
    b = B_WINDOW if windows else B
    if windows:
        texts = [" ".join(each.text for each in window(ordered, at)) for at in range(len(ordered))]
    counts = [Counter(key_of(word) for word in text.split()) for text in texts]
    average = max(1.0, sum(each.total() for each in counts) / len(counts))
    scores = {}
    for one, said in zip(ordered, counts, strict=True):
        best: dict[int, float] = {}
        for each in asked:
            df = sum(each.key in map(key_of, other.text.split()) for other in ordered)
            rarity = math.log(1 + (len(ordered) - df + 0.5) / (df + 0.5))
            norm = said[each.key] + K1 * (1 - b + b * said.total() / average)
            score = each.factor * rarity * said[each.key] * (K1 + 1) / norm
            best[each.group] = max(best.get(each.group, 0.0), score)
        scores[one.id] = sum(best.values())
    return scores


def scored(found: Said, episodes: Sequence[Episode], which: str) -> dict[str, float]:
    """The scores of all episodes, by name."""
    every = found.scores(np.arange(len(found.places)))
    return {
        episodes[n - 1].id: score
        for n, score in zip(found.places.n.tolist(), getattr(every, which).tolist(), strict=True)
    }


# --- scores ------------------------------------------------------------------------------------


@FEW
@given(talks(), st.lists(st.sampled_from([*WORDS, "unheard"]), unique=True, max_size=4))
def test_scores_of_episodes_and_windows_are_those_of_the_formula(
    episodes: list[Episode], words: list[str]
) -> None:
    asked = wanted(*words)
    found = Journal(episodes).said(asked)
    for which, windows in (("own", False), ("window", True)):
        expected = naive(asked, episodes, windows=windows)
        assert scored(found, episodes, which) == pytest.approx(expected)


@FEW
@given(talks(), st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_of_a_group_the_best_counts_and_not_the_sum(
    episodes: list[Episode], one: float, two: float
) -> None:
    asked = wanted("kayak", "tax", near={"lamp": ("kayak", one), "fig": ("tax", two)})
    found = Journal(episodes).said(asked)
    for which, windows in (("own", False), ("window", True)):
        expected = naive(asked, episodes, windows=windows)
        assert scored(found, episodes, which) == pytest.approx(expected)


@FEW
@given(talks(), st.data())
def test_scores_of_some_places_are_those_that_they_have_among_all(
    episodes: list[Episode], data: st.DataObject
) -> None:
    found = Journal(episodes).said(wanted("kayak", "tax"))
    every = found.scores(np.arange(len(episodes)))
    some = sorted(data.draw(st.sets(st.integers(0, len(episodes) - 1))))
    part = found.scores(np.array(some, dtype=np.int64))
    assert part.at.tolist() == some
    for which in ("own", "window", "covered"):
        assert getattr(part, which).tolist() == pytest.approx(getattr(every, which)[some].tolist())


def test_an_answer_that_says_no_word_of_it_has_the_words_beside_it() -> None:
    talk = conversation("where is the kayak", "at the lake", "good", "fine", "no rain today")
    found = Journal(talk).said("kayak")
    own, near = (scored(found, talk, which) for which in ("own", "window"))
    assert [name for name, score in own.items() if score > 0] == ["e1"]
    assert [name for name, score in near.items() if score > 0] == ["e1", "e2", "e3"]


def test_what_is_near_counts_less_than_what_is_said() -> None:
    talk = [episode("said", "kayak"), episode("near", "canoe"), episode("none", "tax")]
    found = Journal(talk).said(wanted("kayak", near={"canoe": ("kayak", 0.5)}))
    own = scored(found, talk, "own")
    assert own["near"] == pytest.approx(0.5 * own["said"])
    assert own["none"] == 0.0


# --- how much is covered -----------------------------------------------------------------------


@FEW
@given(talks(), st.lists(st.sampled_from([*WORDS, "unheard"]), unique=True, max_size=4))
def test_what_is_covered_is_a_share(episodes: list[Episode], words: list[str]) -> None:
    covered = scored(Journal(episodes).said(wanted(*words)), episodes, "covered")
    for each in episodes:
        said = set(words) & set(each.text.split())
        assert 0 <= covered[each.id] <= 1
        assert (covered[each.id] > 0) == bool(said)
        assert (covered[each.id] == pytest.approx(1.0)) == (bool(words) and said == set(words))


def test_rare_words_are_more_of_a_query_than_common_ones_and_unheard_ones_are_the_most() -> None:
    talk = [
        episode("rare", "fig"),
        *(episode(f"common{n}", "tax") for n in range(6)),
        episode("both", "fig tax"),
    ]
    covered = scored(Journal(talk).said(wanted("fig", "tax")), talk, "covered")
    assert covered["rare"] > covered["common1"] > 0
    assert covered["both"] == pytest.approx(1.0)
    unheard = scored(Journal(talk).said(wanted("fig", "unheard")), talk, "covered")
    assert unheard["rare"] < 0.5


def test_an_answer_need_not_say_what_only_asks() -> None:
    talk = [episode("answer", "备份在成都"), episode("question", "备份做什么"), episode("c", "税")]
    covered = scored(Journal(talk).said("备份 为什么"), talk, "covered")
    assert covered["answer"] == pytest.approx(1.0)
    only_asking = scored(Journal(talk).said("做什么"), talk, "covered")
    assert only_asking["question"] > only_asking["answer"]


def test_what_is_near_covers_its_part_of_the_query_and_does_not_make_it_longer() -> None:
    talk = [episode("said", "kayak"), episode("near", "canoe"), episode("none", "tax")]
    covered = scored(
        Journal(talk).said(wanted("kayak", near={"canoe": ("kayak", 0.5)})), talk, "covered"
    )
    assert covered == {"said": 1.0, "near": pytest.approx(0.5), "none": 0.0}


# --- the best ----------------------------------------------------------------------------------


@FEW
@given(talks(), st.integers(1, 20), st.data())
def test_the_best_are_in_order_of_their_scores_and_equals_in_order_of_their_places(
    episodes: list[Episode], k: int, data: st.DataObject
) -> None:
    found = Journal(episodes).said(wanted("kayak", "fig"))
    every = found.scores(np.arange(len(episodes))).own
    order = [at for at in np.lexsort((np.arange(len(every)), -every)) if every[at] > 0]
    assert found.best(k).tolist() == order[:k]
    among = sorted(data.draw(st.sets(st.integers(0, len(episodes) - 1))))
    some = found.best(k, among=np.array(among, dtype=np.int64)).tolist()
    assert some == [at for at in order if at in among][:k]


def test_nothing_is_best_where_nothing_is_said() -> None:
    nothing = Journal(conversation("at the lake", "fine")).said("kayak")
    assert nothing.best(5).tolist() == []
    assert nothing.own[0].tolist() == []
    assert nothing.scores(np.arange(2)).own.tolist() == [0.0, 0.0]
    assert nothing.scores(np.zeros(0, dtype=np.int64)).covered.tolist() == []
    blank = Journal(conversation("at the lake")).said("")
    assert blank.scores(np.arange(1)).covered.tolist() == [0.0]


def test_a_word_that_everybody_says_counts_a_little() -> None:
    talk = [episode(f"e{n}", "kayak") for n in range(5)]
    own = scored(Journal(talk).said("kayak"), talk, "own")
    assert all(score > 0 for score in own.values())


# --- read in parts -----------------------------------------------------------------------------


@FEW
@given(talks(), st.data())
def test_terms_read_for_some_places_are_there_what_reading_all_of_them_gives(
    episodes: list[Episode], data: st.DataObject
) -> None:
    journal = Journal(episodes)
    whole = journal.said(wanted(*WORDS))
    read = whole.kept.postings(
        whole.places, {term.key: term.episodes for term in whole.terms}, journal.read_terms
    )
    first, later = whole.terms[:2], whole.terms[2:]
    at = np.array(sorted(data.draw(st.sets(st.integers(0, len(episodes) - 1)))), dtype=np.int64)
    left = Said(1, whole.kept, whole.places, terms=whole.terms).with_more(first, read)
    around = whole.places.with_neighbours(at, 2)
    completed = left.with_more(later, read, among=around)
    for which in ("own", "window", "covered"):
        some, all_ = (getattr(each.scores(at), which) for each in (completed, whole))
        assert some.tolist() == pytest.approx(all_.tolist())
    assert left.with_more((), {}) is left


def test_every_term_of_episodes_is_one_of_the_index() -> None:
    """The helpers of these tests count as the index does."""
    assert len({key_of(word) for word in WORDS}) == len(WORDS)
    assert all(len(terms(word)) == 1 for word in WORDS)
