"""What a query finds among the episodes of one user.

    embed the query ─ ask the index of vectors ─┐
    read what the episodes say of its words ────┼─ look at the candidates, score them, read the best
    facts about whom it is about ───────────────┘

The first three go at the same time. Which store is asked, and for how much, is decided here; what
the answers are worth is decided by `scoring` and `recall`, which are pure. Where there is a
reranker, it looks at the best of them again (`rerank`). A store that does not answer is named in
what comes back; only the journal has to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory import candidates, lexical, recall, rerank
from memory.asking import Query, last_line
from memory.bm25 import Said
from memory.candidates import Asked, Found, Shown
from memory.embedding import Embedder, usable
from memory.embedding.base import embedded
from memory.embedding.script import is_latin
from memory.errors import EmbeddingFailed, IndexLost
from memory.filters import Accepts
from memory.journal.schema import owner_of
from memory.models import Recall, Recalled, Scope
from memory.parts import Parts
from memory.search import all_named, or_named
from memory.text import is_blank, plain
from memory.when import When
from memory.whose import said_by, said_by_us

CANDIDATES = 50
"""Episodes that each arm offers, at least."""
SOURCES = 20
"""Messages that facts were learnt from that are candidates, at most."""


@dataclass(frozen=True)
class Wish:
    """What is wanted of a search: the `k` best that the filter accepts, as of `now`.

    `facts` gives what is known about whom the query is about, and `shown` the end of a session that
    a context shows anyway: what is among it comes beside the `k`.
    """

    k: int
    now: datetime
    accepts: Accepts | None = None
    facts: Callable[[], Awaitable[Sequence[Recalled]]] | None = None
    shown: Callable[[], Awaitable[Shown | None]] | None = None


class EpisodeSearch:
    """The questions of one user to episodic memory."""

    def __init__(self, parts: Parts, scope: Scope) -> None:
        self._parts = parts
        self._scope = scope

    async def __call__(self, query: str, wish: Wish) -> Recall:
        """The best episodes, and the near misses. A blank query finds nothing.

        With a filter it looks on until `k` are accepted or all are seen.
        """
        if is_blank(query):
            return Recall()
        parts = self._parts
        each = max(CANDIDATES, wish.k)
        when = When.of(query, wish.now)
        rest = when.rest if when and not when.alone else None
        reading = asyncio.ensure_future(self._said(Query.of(query, rest)))
        try:
            vector, missing = await or_named(_embed_query(parts.embedder, query))
            asked = Asked(
                k=parts.reranking.reach(wish.k) if parts.reranking else wish.k,
                each=each,
                policy=parts.policy.asked(query),
                calibrated=parts.policy.meaning(query),
                space=await parts.episodic.space(),
                vector=vector,
                speaker=said_by(query),
                person=said_by_us(query),
                when=when,
                accepts=wish.accepts,
                by_passage=last_line(query) is None,  # a dialogue is about the whole
            )
            nearest, silent = await self._nearest(vector, each)
        except BaseException:
            reading.cancel()
            raise
        said = await reading
        if said is None:
            return Recall(unavailable=all_named(missing, silent))
        asked = replace(
            asked,
            nearest=nearest,
            sources=_sources(await wish.facts() if wish.facts else ()),
            shown=await wish.shown() if wish.shown else None,
        )
        found = await self._find(said, asked)
        while wish.accepts and len(found.episodes) < wish.k and not found.all_seen:
            each = 4 * asked.each
            if vector is not None and silent is None:
                nearest, silent = await self._nearest(vector, each)
            asked = replace(asked, each=each, nearest=nearest)
            found = await self._find(said, asked)
        ranked = partial(
            recall.ranked,
            found.scored,
            found.episodes,
            query=query,
            now=wish.now,
            policy=asked.policy,
        )
        best = await rerank.best(query, ranked, found.k - asked.k + wish.k, parts.reranking)
        return best.model_copy(update={"unavailable": all_named(missing, silent)})

    async def _said(self, query: Query) -> Said | None:
        parts = self._parts
        return await parts.journal.query(
            partial(
                lexical.said,
                shelf=parts.lexical.shelf,
                scope=self._scope,
                query=query,
            )
        )

    async def _find(self, said: Said, asked: Asked) -> Found:
        owner = owner_of(self._scope)
        return await self._parts.journal.query(
            partial(candidates.find, owner=owner, said=said, asked=asked)
        )

    async def _nearest(
        self, vector: NDArray[np.float32] | None, k: int
    ) -> tuple[list[str], str | None]:
        """Ids of the nearest episodes, and the tier that did not answer."""
        if vector is None:
            return [], None
        hits, silent = await or_named(self._hits(vector, k))
        return hits or [], silent

    async def _hits(self, vector: NDArray[np.float32], k: int) -> list[str]:
        """The nearest episodes; an index that is lost is also made again, for the next question."""
        try:
            return [hit.id for hit in await self._parts.episodic.nearest(self._scope, vector, k)]
        except IndexLost:
            self._parts.mend()
            raise


def _sources(facts: Sequence[Recalled]) -> Mapping[str, float]:
    """The messages that facts which bear on the query were learnt from, by how much they do."""
    bearing = [fact for fact in facts if any(score > 0 for score in fact.scores.values())]
    best = max((fact.score for fact in bearing), default=0.0)
    found: dict[str, float] = {}
    for fact in sorted(bearing, key=lambda each: -each.score):
        for source in fact.sources:
            if len(found) < SOURCES:
                found.setdefault(source, fact.score / best if best else 0.0)
    return found


LAST_LINE: Final = 0.2
"""What the last line of a dialogue counts in the vector of the whole."""


async def _embed_query(embedder: Embedder, query: str) -> NDArray[np.float32]:
    """The direction of the query; of a dialogue, drawn towards what was said last."""
    last = last_line(query)
    texts = [query] if last is None or is_latin(last) != is_latin(query) else [query, last]
    vectors = await embedded(embedder, [plain(text) for text in texts], role="query")
    problem, *of_last = usable(vectors, len(texts), embedder.dims)
    if problem:
        raise EmbeddingFailed(f"the question has no vector: {problem}")
    vector = _direction(vectors[0])
    if of_last == [None]:
        vector = _direction((1 - LAST_LINE) * vector + LAST_LINE * _direction(vectors[1]))
    return vector


def _direction(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return (vector / np.linalg.norm(vector)).astype(np.float32)
