"""The order that scores and a reranker make together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Dropped, Recalled
from memory.rerank import best, reordered

SHARES = st.integers(0, 10_000).map(lambda n: n / 10_000)


def found(*scores: float) -> list[Recalled]:
    """Episodes a, b, c …, best first."""
    return [
        Recalled(tier="episodic", id=f"{at:03}", text=f"text {at}", score=score, reason="why")
        for at, score in enumerate(sorted(scores, reverse=True))
    ]


def ids(ranked: list[Recalled]) -> list[str]:
    return [each.id for each in ranked]


ranked = st.lists(SHARES, max_size=12).map(lambda scores: found(*scores))


@given(ranked, st.data(), SHARES)
def test_nothing_is_lost_and_every_score_stays_in_its_range(
    before: list[Recalled], data: st.DataObject, weight: float
) -> None:
    looked_at = data.draw(st.integers(0, len(before)))
    said = data.draw(st.lists(SHARES, min_size=looked_at, max_size=looked_at))
    after = reordered(before, said, weight)
    assert sorted(ids(after)) == sorted(ids(before))
    assert ids(after)[looked_at:] == ids(before)[looked_at:]
    scores = [each.score for each in after]
    assert scores == sorted(scores, reverse=True)
    if before:
        assert before[-1].score <= scores[-1]
        assert scores[0] <= before[0].score


@given(ranked, st.data(), SHARES)
def test_the_order_does_not_depend_on_how_equals_arrived(
    before: list[Recalled], data: st.DataObject, weight: float
) -> None:
    said = {each.id: data.draw(SHARES) for each in before}
    shuffled = data.draw(st.permutations(before))

    def again(items: list[Recalled]) -> list[Recalled]:
        return reordered(items, [said[each.id] for each in items], weight)

    assert again(before) == again(shuffled)


@given(ranked, SHARES, SHARES)
def test_what_the_reranker_finds_all_alike_keeps_its_order(
    before: list[Recalled], said: float, weight: float
) -> None:
    after = reordered(before, [said] * len(before), weight)
    if weight < 1:
        assert ids(after) == ids(before)


def test_the_mean_of_both_decides() -> None:
    first, second, third = reordered(found(0.8, 0.4, 0.2), [0.0, 0.9, 0.1], 0.5)
    assert ids([first, second, third]) == ["001", "000", "002"]  # 0.7, 0.5 and 0.175
    assert [each.score for each in (first, second, third)] == [0.62, 0.5, 0.305]
    assert first.scores == {"rerank": 0.9}
    assert first.reason == "why; the reranker says 0.90"


@pytest.mark.parametrize(("weight", "order"), [(0.0, ["000", "001"]), (1.0, ["001", "000"])])
def test_the_weight_says_who_decides(weight: float, order: list[str]) -> None:
    assert ids(reordered(found(0.9, 0.2), [0.5, 0.6], weight)) == order


def test_equals_come_in_the_order_of_their_ids() -> None:
    assert ids(reordered(found(0.5, 0.5, 0.5)[::-1], [0.3, 0.3, 0.3], 0.5)) == ["000", "001", "002"]


async def test_without_a_reranker_it_is_ranked_once() -> None:
    asked: list[int] = []

    def rank(*, k: int) -> tuple[list[Recalled], list[Dropped]]:
        asked.append(k)
        return found(0.5, 0.4), []

    plain = await best("noodles", rank, 2, None)
    assert list(plain.items) == found(0.5, 0.4)
    assert asked == [2]
