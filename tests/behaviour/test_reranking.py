"""A reranker of the caller's own, through the front door: what it may change, and what not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import numpy as np
import pytest

from memory import Memory
from memory.embedding import Embedder
from memory.errors import ConfigurationError
from memory.models import Recall, Recalled, Scope
from memory.settings import Settings
from memory.text import terms
from tests.behaviour.conftest import Clock

Open = Callable[..., AbstractAsyncContextManager[Memory]]

QUESTION = "Which harbour restaurant has the best noodles?"
NOTES = (
    "The noodles at the harbour restaurant were the best of this week.",
    "My harbour walk ended in a restaurant where the noodles were cold.",
    "The restaurant at the station has noodles too.",
    "We ate noodles in the harbour, in the rain.",
    "A restaurant of noodles only: the best idea of the harbour.",
)


class Overlap:
    """How much of the query's terms a text has; of the texts in `loved`, all."""

    identity = "overlap"

    def __init__(self, *loved: str) -> None:
        self.loved = loved
        self.seen: list[tuple[str, list[str]]] = []
        self.closed = 0

    async def scores(self, query: str, texts: Sequence[str]) -> Any:
        self.seen.append((query, list(texts)))
        asked = set(terms(query))
        return [
            1.0 if text in self.loved else 0.5 * len(asked & set(terms(text))) / (len(asked) or 1)
            for text in texts
        ]

    async def close(self) -> None:
        self.closed += 1


class Gives(Overlap):
    """Gives what the test wants, whatever it is asked."""

    identity = "contrary"

    def __init__(self, answer: Callable[[int], Any]) -> None:
        super().__init__()
        self.answer = answer

    async def scores(self, query: str, texts: Sequence[str]) -> Any:
        answer = self.answer(len(texts))
        return await answer if asyncio.iscoroutine(answer) else answer


class Unreadable:
    """An array of a library that gives its numbers to nobody."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("on another device")


@pytest.fixture
def open_with(urls: dict[str, str], embedder: Embedder, clock: Clock, scope: Scope) -> Open:
    def open_it(own: Any = None, **changes: Any) -> AbstractAsyncContextManager[Memory]:
        changes.setdefault("rerank_timeout", 30)
        settings = Settings.model_validate({**urls, "tenant": scope.tenant, **changes})
        return Memory.open(settings=settings, embedder=embedder, clock=clock, reranker=own)

    return open_it


async def noted(memory: Memory, *texts: str) -> None:
    session = memory.user("ada").session("notes")
    for text in texts:
        await session.record(user=text)
    assert await memory.settled()


def texts(found: Recall) -> list[str]:
    return [item.text for item in found.items if item.tier == "episodic"]


def scores(items: Sequence[Recalled]) -> list[float]:
    return [item.score for item in items if item.tier == "episodic"]


async def without(open_with: Open, k: int = 8) -> Recall:
    async with open_with() as memory:
        await noted(memory, *NOTES)
        return await memory.user("ada").recall(QUESTION, k=k)


async def test_what_the_reranker_is_sure_of_comes_first(open_with: Open) -> None:
    before = await without(open_with)
    last = texts(before)[-1]
    async with open_with(Overlap(last)) as memory:
        after = await memory.user("ada").recall(QUESTION)
    assert texts(after)[0] == last
    assert sorted(texts(after)) == sorted(texts(before))
    assert after.items[0].scores["rerank"] == 1.0
    assert after.items[0].reason.endswith("the reranker says 1.00")
    assert min(scores(before.items)) <= min(scores(after.items))
    assert max(scores(after.items)) <= max(scores(before.items))
    assert after.warnings == ()


async def test_what_came_after_the_best_k_is_lifted_and_what_falls_out_is_a_near_miss(
    open_with: Open,
) -> None:
    every = texts(await without(open_with))
    before = await without(open_with, k=2)
    async with open_with(Overlap(*every[2:4])) as memory:
        after = await memory.user("ada").recall(QUESTION, k=2)
    assert sorted(texts(after)) == sorted(every[2:4])
    beyond = [each for each in after.dropped if each.cause == "beyond_k"]
    assert len(beyond) == len([each for each in before.dropped if each.cause == "beyond_k"])
    fell = {each.text: each.reason for each in beyond}
    assert all("the reranker put it behind them" in fell[text] for text in texts(before))
    assert all(f"{len(every)} were found; the best 2 are recalled" in why for why in fell.values())
    assert [each.rank for each in beyond] == list(range(3, 3 + len(beyond)))


async def test_a_context_shows_what_the_reranker_put_first(open_with: Open) -> None:
    last = texts(await without(open_with))[-1]
    async with open_with(Overlap(last)) as memory:
        context = await memory.user("ada").session("another").build_context(QUESTION, k=1)
        plain = [item.text for item in context.items if item.tier == "episodic"]
    assert plain == [last]
    assert "rerank 1.00" in context.explain()


async def test_only_the_first_of_them_are_looked_at(open_with: Open) -> None:
    every = texts(await without(open_with))
    reranker = Overlap(every[-1])
    async with open_with(reranker, rerank_k=2) as memory:
        after = await memory.user("ada").recall(QUESTION)
    assert [len(seen) for _, seen in reranker.seen] == [2]
    assert texts(after)[2:] == every[2:]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda n: [0.5] * (n - 1) + [float("nan")], "not all of its numbers are finite"),
        (lambda n: [0.5] * (n - 1), "numbers for"),
        (lambda n: [[0.5]] * n, "numbers for"),
        (lambda n: [9.0] * n, r"in [0, 1]"),
        (lambda n: None, "no"),
        (lambda n: ["much"] * n, "no numbers"),
        (lambda n: Unreadable(), "no numbers"),
        (lambda n: 1 / 0, "ZeroDivisionError"),
        (lambda n: asyncio.Event().wait(), "no answer within 0.05 s"),
    ],
    ids=["nan", "short", "matrix", "logits", "none", "words", "unreadable", "raises", "hangs"],
)
async def test_without_usable_scores_the_order_stays_and_a_warning_says_so(
    open_with: Open, answer: Callable[[int], Any], problem: str
) -> None:
    before = await without(open_with, k=3)
    seconds = 0.05 if "within" in problem else 30
    async with open_with(Gives(answer), rerank_timeout=seconds) as memory:
        user = memory.user("ada")
        after = await user.recall(QUESTION, k=3)
        context = await user.session("another").build_context(QUESTION)
    assert (after.items, after.dropped) == (before.items, before.dropped)
    (warning,) = after.warnings
    assert "contrary" in warning
    assert problem in warning
    assert warning in context.warnings


async def test_a_reranker_sees_plain_text_however_hostile_what_was_said(open_with: Open) -> None:
    reranker = Overlap()
    hostile = ("noodles\x00 in the harbour", "noodles \ud800 harbour", "noodles " * 2_000)
    async with open_with(reranker) as memory:
        await noted(memory, *hostile)
        for query in (QUESTION, "noodles\x00harbour\udfff", "n" * 1_000_000 + " noodles harbour"):
            assert (await memory.user("ada").recall(query)).warnings == ()
    seen = [text for query, shown in reranker.seen for text in (query, *shown)]
    assert len(reranker.seen) == 3
    assert max(map(len, seen)) <= 2_000
    for text in seen:
        assert "\x00" not in text
        text.encode()


async def test_where_there_is_nothing_to_order_it_is_not_asked(open_with: Open) -> None:
    reranker = Overlap()
    async with open_with(reranker) as memory:
        user = memory.user("ada")
        await user.recall(QUESTION)
        await noted(memory, NOTES[0])
        await user.recall(QUESTION)
        await user.recall("hello")
        await user.recall(" ")
        assert reranker.seen == []
        await noted(memory, NOTES[1])
        await user.recall(QUESTION)
        assert len(reranker.seen) == 1
    assert reranker.closed == 0  # it is the caller's


@pytest.mark.parametrize("name", ["", "magic", "sentence-transformers", "sentence-transformers:"])
async def test_a_reranker_that_does_not_exist_is_refused_at_once(
    open_with: Open, name: str
) -> None:
    with pytest.raises(ConfigurationError, match="sentence-transformers:FOLDER_OR_NAME"):
        async with open_with(None, reranker=name):
            pass


async def test_scores_of_numpy_are_scores(open_with: Open) -> None:
    async with open_with(Gives(lambda n: np.linspace(0, 1, n, dtype=np.float32))) as memory:
        await noted(memory, *NOTES)
        found = await memory.user("ada").recall(QUESTION)
    assert found.warnings == ()
    assert [item.scores["rerank"] for item in found.items if item.tier == "episodic"]
