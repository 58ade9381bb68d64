"""Reranking: a second look at the best of what was found, by a model that reads question and text
together.

    share     the score, as a share of the best one's
    together  (1 - weight) × share + weight × what the reranker says
    score     from the lowest to the highest that those it looked at had, by `together`

A reranker orders, and no more. How well a query is answered at all is not its to say: no score
leaves the range that the scores had, so nothing that is below the floor is lifted above it, however
sure the reranker is (it is not even asked about that), and nothing that passed falls below. What it
did not look at keeps its place after what it did. Ties by id.

It is never needed: when it is late, fails or gives nothing that can be used, the order stays, and a
warning names it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memory.cross_encoder import CrossEncoder
from memory.errors import ConfigurationError, RerankFailed
from memory.models import Dropped, Recall, Recalled, Value
from memory.recall import excerpt
from memory.settings import Settings
from memory.text import plain

LONGEST: Final = 2_000
"""Characters of a text, and of a query, that a reranker sees. Episodes are shorter."""

Scores = NDArray[np.float32]

_log = logging.getLogger(__name__)


class Reranker(Protocol):
    """Says how well texts answer a query."""

    @property
    def identity(self) -> str:
        """Names it, in warnings."""

    async def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """One finite number in [0, 1] a text: 1 is an answer. Of a model that gives logits, their
        sigmoid. Texts are plain and short. Never blocks the event loop. Raises RerankFailed."""

    async def close(self) -> None:
        """Lets go of threads and connections. Closing twice changes nothing."""


class RerankPolicy(Value):
    """How much of what is found is looked at again, for how long, and what that counts."""

    k: int = Field(default=30, gt=0)
    """Episodes that are looked at."""
    timeout: timedelta = timedelta(seconds=1)
    weight: float = Field(default=0.5, ge=0.0, le=1.0)
    """What the reranker counts beside the score: 0 nothing, 1 everything."""


class Rank(Protocol):
    """What a query finds: the best `k`, best first, and the near misses."""

    def __call__(self, *, k: int) -> tuple[list[Recalled], list[Dropped]]: ...


@dataclass(frozen=True)
class Reranking:
    """A reranker, waited for no longer than the policy says, and held to what it promises."""

    reranker: Reranker
    policy: RerankPolicy

    def reach(self, k: int) -> int:
        """How many must be found for the best `k` of them."""
        return max(k, self.policy.k)

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Raises RerankFailed, and nothing else. What a reranker of the caller's own raises is
        told by its kind alone: its words may hold what was asked."""
        asked, shown = _ends(query), [plain(text[:LONGEST]) for text in texts]
        seconds = self.policy.timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds) as time:
                given = await self.reranker.scores(asked, shown)
        except RerankFailed:
            raise
        except Exception as error:
            late = time.expired()
            problem = f"no answer within {seconds:g} s" if late else type(error).__name__
            raise RerankFailed(problem) from None
        return _usable(given, len(texts))


async def best(query: str, rank: Rank, k: int, reranking: Reranking | None) -> Recall:
    """The best `k` that are found, and the near misses."""
    first, dropped = rank(k=k)
    found = Recall(items=tuple(first), dropped=tuple(dropped))
    if reranking is None:
        return found
    ranked, _ = rank(k=reranking.reach(k))
    if len(ranked) < 2:
        return found
    texts = [each.text for each in ranked[: reranking.policy.k]]
    try:
        scores = await reranking.scores(query, texts)
    except RerankFailed as error:
        warning = f"the reranker {reranking.reranker.identity} could not be heard: {error}"
        _log.warning(warning)
        return found.model_copy(update={"warnings": (warning,)})
    return _cut(reordered(ranked, scores, reranking.policy.weight), k, found)


def open_reranker(settings: Settings) -> Reranker | None:
    """The reranker that the settings name; whoever opens it closes it. None where they name none.

    It loads in the background. Raises ConfigurationError when there is none of that name or its
    library is not installed.
    """
    if settings.reranker is None:
        return None
    kind, _, name = settings.reranker.partition(":")
    if kind == "sentence-transformers" and name:
        reranker = CrossEncoder(name)
        reranker.warm()
        return reranker
    raise ConfigurationError(
        f"reranker {settings.reranker!r}: it is 'sentence-transformers:FOLDER_OR_NAME'"
    )


# --- the order: pure ---------------------------------------------------------------------------


def reordered(ranked: Sequence[Recalled], scores: Sequence[float], weight: float) -> list[Recalled]:
    """What is ranked, in a new order, with `scores` in [0, 1] of the first so many of it."""
    head, tail = ranked[: len(scores)], ranked[len(scores) :]
    if not head:
        return list(tail)
    high, low = max(each.score for each in head), min(each.score for each in head)
    together = [
        round((1.0 - weight) * _share(each.score, high) + weight * said, 9)
        for each, said in zip(head, scores, strict=True)
    ]
    order = sorted(range(len(head)), key=lambda at: (-together[at], head[at].id))
    new = (
        head[at].model_copy(
            update={
                "score": round(low + (high - low) * together[at], 4),
                "scores": {**head[at].scores, "rerank": round(scores[at], 4)},
                "reason": _why(head[at].reason, scores[at]),
            }
        )
        for at in order
    )
    return [*new, *tail]


def _share(score: float, high: float) -> float:
    return score / high if high > 0 else 0.0


def _why(reason: str, score: float) -> str:
    said = f"the reranker says {score:.2f}"
    return f"{reason}; {said}" if reason else said


def _cut(order: Sequence[Recalled], k: int, before: Recall) -> Recall:
    """The best `k` of the new order. Of near misses `beyond_k` there are as many as before; those
    of another cause stay."""
    beyond = [each for each in before.dropped if each.cause == "beyond_k"]
    others = [each for each in before.dropped if each.cause != "beyond_k"]
    recalled = {each.id for each in before.items}
    ordered = {each.id for each in order}
    missed = [
        _missed(each, rank, beyond[0].reason, fell=each.id in recalled)
        for rank, each in enumerate(order[k:], start=k + 1)
        if beyond
    ]
    missed += [each for each in beyond if each.id not in ordered]
    return Recall(items=tuple(order[:k]), dropped=(*missed[: len(beyond)], *others))


def _missed(each: Recalled, rank: int, reason: str, *, fell: bool) -> Dropped:
    return Dropped(
        tier=each.tier,
        id=each.id,
        text=excerpt(each.text),
        score=each.score,
        scores=each.scores,
        rank=rank,
        reason=f"{reason}; the reranker put it behind them" if fell else reason,
        cause="beyond_k",
    )


# --- what goes in and comes out ------------------------------------------------------------------


def _ends(query: str) -> str:
    """Of a long query both ends: what is asked stands at one of them."""
    text = plain(query).strip()
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n{text[-half + 1 :]}"


def _usable(given: Any, n: int) -> list[float]:
    """Raises RerankFailed where they are no scores of `n` texts."""
    try:
        scores = np.asarray(given, dtype=np.float64)
    except Exception:  # it may be an object of any library
        raise RerankFailed("what it gave are no numbers") from None
    if scores.shape != (n,):
        raise RerankFailed(f"it gave {scores.size} numbers for {n} texts")
    if not np.isfinite(scores).all():
        raise RerankFailed("not all of its numbers are finite")
    if scores.min() < 0.0 or scores.max() > 1.0:
        raise RerankFailed("not all of its numbers are in [0, 1]")
    found: list[float] = scores.tolist()
    return found
