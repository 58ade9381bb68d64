"""What is compared: one protocol, the product through its front door, and plain baselines.

A baseline is a ranking of turns. Its context is that ranking's lines, packed greedily into what the
question leaves of the budget; a line that does not fit is left out and the next one is tried. All
token counts are of the product's counter.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import chromadb
import numpy as np
from chromadb.config import Settings as ChromaSettings
from numpy.typing import NDArray

import memory as product
from benchmarks.recall.metrics import distinct
from benchmarks.recall.results import Packed
from benchmarks.recall.sets import ROLES, Conversation, Question, Turn
from memory import Memory, Message, Settings, UserMemory
from memory.embedding import Embedder
from memory.embedding.base import Role
from memory.errors import BudgetError
from memory.local import stop_stack
from memory.tokens import TokenCounter

BATCH = 100
"""Turns that one `record` takes."""
PATIENCE = timedelta(hours=2)
"""The longest that the tiers are waited for after a conversation was recorded."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
TO_PACK = 200
"""Turns of a baseline's ranking that are tried for a context."""
PER_MESSAGE = 4
"""Tokens around each of the two messages of a baseline's context, as the product counts them."""
RRF_K = 60
"""Cormack, Clarke and Büttcher 2009."""


class Ranked(NamedTuple):
    """Ids of turns, best first, and whether nothing at all came back."""

    turns: list[str]
    nothing: bool


class System(Protocol):
    """Something that remembers one conversation at a time and is asked about it."""

    name: str
    version: str

    async def learn(self, conversation: Conversation) -> None:
        """Remember the conversation, and be ready to be asked. What was before may be forgotten."""

    async def ranked(self, question: Question, k: int) -> Ranked:
        """The turns that answer best, at most `k` of what the system ranks."""

    async def context(self, question: Question, budget: int) -> Packed:
        """What a context of `budget` tokens with the question in it holds."""


class Remembering:
    """An embedder that embeds each document once, however many systems ask. Questions are embedded
    each time, so that latencies are real."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.identity, self.dims = embedder.identity, embedder.dims
        self._known: dict[str, NDArray[np.float32]] = {}

    async def embed(self, texts: Sequence[str], *, role: Role) -> NDArray[np.float32]:
        if role == "query":
            return await self._embedder.embed(texts, role=role)
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            rows = await self._embedder.embed(new, role=role)
            self._known |= dict(zip(new, rows, strict=True))
        known = [self._known[text] for text in texts]
        return np.array(known, dtype=np.float32).reshape(len(texts), self.dims)

    def forget(self) -> None:
        """Nobody asks for these documents any more."""
        self._known.clear()

    async def close(self) -> None:
        """The embedder is whoever's who opened it."""


# --- the product -------------------------------------------------------------------------------


class Product:
    """trimem: `record`, `recall`, and `build_context` in a session of its own for each context."""

    name = "trimem"

    def __init__(self, memory: Memory, clock: Clock, *, k: int | None) -> None:
        self._memory, self._clock, self._k = memory, clock, k
        self.version = f"{version('trimem')}, source {_digest(Path(product.__file__).parent)}"
        self._user: UserMemory
        self._conversation: Conversation
        self._turn: dict[str, str] = {}
        self._said_by: dict[str, tuple[str, ...]] = {}

    async def learn(self, conversation: Conversation) -> None:
        self._user = self._memory.user(conversation.user)
        self._turn.clear()
        self._conversation = conversation
        self._clock.background = conversation.ends_at
        self._clock.asking(conversation.ends_at)
        for name, turns in conversation.sessions.items():
            session = self._user.session(name.strip() or "undated")
            kept = [(turn, _message(conversation, turn)) for turn in turns]
            kept = [(turn, message) for turn, message in kept if not message.is_empty]
            for start in range(0, len(kept), BATCH):
                batch = kept[start : start + BATCH]
                recorded = await session.record(
                    messages=[message for _, message in batch],
                    keys=[turn.id for turn, _ in batch],  # ids of the same turns are the same
                )
                for (turn, _), message in zip(batch, recorded.messages, strict=True):
                    self._turn[message.id] = turn.id
        if not await self._memory.settled(PATIENCE):
            raise RuntimeError(f"the tiers did not get all of {conversation.id}")
        episodes = {each.id: (each.message_id,) for each in await self._user.episodes()}
        facts = {each.id: each.sources for each in await self._user.facts(history=True)}
        self._said_by = episodes | facts
        self._clock.background = LONG_AGO
        if conversation.questions:  # the first answer of all loads models and opens collections
            await self._user.recall(conversation.questions[0].text, k=1)

    async def ranked(self, question: Question, k: int) -> Ranked:
        self._clock.asking(self._conversation.now(question))
        found = await self._user.recall(question.text, k=k)
        if found.unavailable:
            raise RuntimeError(f"{found.unavailable[0]} memory did not answer")
        return Ranked(
            self._turns(source for item in found.items for source in item.sources),
            nothing=not found.items,
        )

    async def context(self, question: Question, budget: int) -> Packed:
        self._clock.asking(self._conversation.now(question))
        session = self._user.session(f"asked {question.id} within {budget}")
        began = time.perf_counter()
        try:
            built = await session.build_context(question.text, budget=budget, reserve=0, k=self._k)
        except BudgetError:
            return Packed(turns=(), tokens=0, ms=_ms_since(began), empty=True)
        took = _ms_since(began)
        if built.unavailable:
            raise RuntimeError(f"{built.unavailable[0]} memory did not answer")
        said = [each for item in built.items for each in self._said_by.get(item.id, (item.id,))]
        return Packed(
            turns=tuple(self._turns(said)),
            tokens=built.tokens.total,
            ms=took,
            empty=not built.items,
        )

    def _turns(self, messages: Any) -> list[str]:
        return distinct(self._turn[each] for each in messages if each in self._turn)


class Clock:
    """The time of the conversation, so that "last week" is what it was for its speakers.

    Who asks sees `asking`, the rest `background`. What a context shows is noted as used now and
    then, in the background, and counts as fresher from then on. That is good for an application,
    but here each question must be answered as if it were the only one: so it is noted as used
    long ago.
    """

    def __init__(self) -> None:
        self.background = datetime.now(UTC)
        self._asking: ContextVar[datetime | None] = ContextVar("asking", default=None)

    def __call__(self) -> datetime:
        return self._asking.get() or self.background

    def asking(self, now: datetime) -> None:
        """For this task and those that it starts, it is `now`."""
        self._asking.set(now)


@asynccontextmanager
async def open_product(
    folder: Path, embedder: Embedder, *, k: int | None
) -> AsyncIterator[Product]:
    """The product on a local stack of its own in `folder`, whatever the environment names."""
    clock = Clock()
    local = Settings(
        home=folder,
        tenant="recall-benchmark",
        journal_url=None,
        redis_url=None,
        chroma_url=None,
        neo4j_url=None,
        llm=None,
    )
    try:
        async with Memory.open(folder, settings=local, embedder=embedder, clock=clock) as memory:
            yield Product(memory, clock, k=k)
    finally:
        await stop_stack(folder)


def _message(conversation: Conversation, turn: Turn) -> Message:
    role = turn.speaker if turn.speaker in ("user", "assistant") else "user"
    return Message.parse(
        {
            "role": role,
            "content": turn.text,
            "name": conversation.speaker(turn),
            "event_time": turn.said_at,
        }
    )


def _digest(folder: Path) -> str:
    """Names the source, so that figures of two states of it are never mixed."""
    state = sha256()
    for path in sorted(folder.rglob("*.py")):
        state.update(path.read_bytes())
    return state.hexdigest()[:8]


def _ms_since(began: float) -> float:
    return 1000 * (time.perf_counter() - began)


# --- baselines ---------------------------------------------------------------------------------


class Baseline:
    """A system that only ranks; its contexts are its ranking, packed."""

    name: str
    version = ""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._lines: dict[str, str] = {}

    async def learn(self, conversation: Conversation) -> None:
        self._lines = {turn.id: _line(conversation, turn) for turn in conversation.turns}
        await self._index(conversation)

    async def ranked(self, question: Question, k: int) -> Ranked:
        turns = distinct(await self._search(question.text, k))
        return Ranked(turns, nothing=not turns)

    async def context(self, question: Question, budget: int) -> Packed:
        began = time.perf_counter()
        used = 2 * PER_MESSAGE + self._counter.count(question.text)
        turns: list[str] = []
        for turn in (await self.ranked(question, TO_PACK)).turns:
            cost = self._counter.count(self._lines[turn])
            if used + cost <= budget:
                turns.append(turn)
                used += cost
        return Packed(
            turns=tuple(turns), tokens=min(used, budget), ms=_ms_since(began), empty=not turns
        )

    async def _index(self, conversation: Conversation) -> None:
        raise NotImplementedError

    async def _search(self, query: str, k: int) -> list[str]:
        """Ids of turns, best first."""
        raise NotImplementedError


def _line(conversation: Conversation, turn: Turn) -> str:
    day = f"[{turn.said_at:%Y-%m-%d}] " if turn.said_at else ""
    role = f"{turn.speaker}: " if turn.speaker in ROLES else ""
    return f"{day}{role}{conversation.shown(turn)}\n"


class Recency(Baseline):
    """The newest turns, whatever is asked."""

    name = "recency"

    async def _index(self, conversation: Conversation) -> None:
        self._newest = [turn.id for turn in reversed(conversation.turns)]

    async def _search(self, query: str, k: int) -> list[str]:
        return self._newest[:k]


class Bm25(Baseline):
    """BM25 (Robertson and Zaragoza 2009; k1 = 1.2, b = 0.75) over words with their English endings
    taken off, common ones left out, and pairs of Chinese characters."""

    name = "BM25"
    version = "k1 1.2, b 0.75"

    async def _index(self, conversation: Conversation) -> None:
        turns = conversation.turns
        counts = [Counter(words(conversation.shown(turn))) for turn in turns]
        self._ids = [turn.id for turn in turns]
        mean = sum(each.total() for each in counts) / max(1, len(counts)) or 1.0
        self._norms = [1.2 * (0.25 + 0.75 * each.total() / mean) for each in counts]
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, each in enumerate(counts):
            for word, often in each.items():
                self._postings[word].append((place, often))

    async def _search(self, query: str, k: int) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for word in sorted(set(words(query))):
            found = self._postings.get(word, [])
            rarity = math.log(1 + (len(self._ids) - len(found) + 0.5) / (len(found) + 0.5))
            for place, often in found:
                scores[place] += rarity * often * 2.2 / (often + self._norms[place])
        best = sorted(scores, key=lambda place: (-scores[place], place))
        return [self._ids[place] for place in best[:k]]


_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[\u4e00-\u9fff]+")
_ENDINGS = ("ing", "ed", "es", "s")
_COMMON = frozenset(
    """a about an and are as at be been but by can could did do does for from had has have he her
    him his how i if in is it me my no not of on or our she should so that the their them there
    they this to was we were what when where which who whom why will with would you your""".split()  # noqa: SIM905
)


def words(text: str) -> list[str]:
    """What BM25 compares."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word[0] >= "\u4e00":
            found += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        elif word not in _COMMON:
            found.append(_without_ending(word.split("'")[0]))
    return found


def _without_ending(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + 3:
            return word[: -len(ending)]
    return word


class Chroma(Baseline):
    """A collection of real Chroma (in this process) for each conversation, with the product's
    embedder: the turns' text alone, or with the speaker's name before it."""

    def __init__(self, counter: TokenCounter, embedder: Embedder, *, named: bool) -> None:
        super().__init__(counter)
        self.name = "Chroma, speaker in text" if named else "Chroma"
        self.version = f"{chromadb.__version__}, {embedder.identity}"
        self._embedder, self._named = embedder, named
        self._client = chromadb.EphemeralClient(ChromaSettings(anonymized_telemetry=False))
        self._collection: Any = None

    async def _index(self, conversation: Conversation) -> None:
        if self._collection is not None:
            await asyncio.to_thread(self._client.delete_collection, self._collection.name)
        kept = [turn for turn in conversation.turns if turn.text.strip()]
        texts = [conversation.shown(turn) if self._named else turn.text for turn in kept]
        self._ids = [turn.id for turn in kept]
        self._collection = await asyncio.to_thread(
            self._client.create_collection,
            uuid4().hex,  # all clients of a process share one store
            embedding_function=None,
            metadata={"hnsw:space": "cosine"},
        )
        for start in range(0, len(kept), BATCH):
            batch = texts[start : start + BATCH]
            rows = await self._embedder.embed(batch, role="document")
            await asyncio.to_thread(
                self._collection.add,
                ids=[str(start + place) for place in range(len(batch))],
                embeddings=rows,
                documents=batch,
            )

    async def _search(self, query: str, k: int) -> list[str]:
        row = await self._embedder.embed([query], role="query")
        k = min(k, len(self._ids))
        found = await asyncio.to_thread(
            self._collection.query, query_embeddings=row, n_results=k, include=[]
        )
        return [self._ids[int(place)] for place in found["ids"][0]]


class Fused(Baseline):
    """Reciprocal ranks of two others, added up."""

    def __init__(self, counter: TokenCounter, first: Baseline, second: Baseline) -> None:
        super().__init__(counter)
        self.name = "RRF"
        self.version = f"of {first.name} and {second.name}, k = {RRF_K}"
        self._both = (first, second)

    async def _index(self, conversation: Conversation) -> None:
        for each in self._both:
            await each.learn(conversation)

    async def _search(self, query: str, k: int) -> list[str]:
        scores: dict[str, float] = defaultdict(float)
        for each in self._both:
            for rank, turn in enumerate(await each._search(query, TO_PACK), start=1):
                scores[turn] += 1 / (RRF_K + rank)
        return sorted(scores, key=lambda turn: (-scores[turn], turn))[:k]


def baselines(counter: TokenCounter, embedder: Embedder) -> Mapping[str, Baseline]:
    """By the name under which they can be asked for."""
    return {
        "recency": Recency(counter),
        "bm25": Bm25(counter),
        "chroma": Chroma(counter, embedder, named=False),
        "chroma-named": Chroma(counter, embedder, named=True),
        "rrf": Fused(counter, Bm25(counter), Chroma(counter, embedder, named=True)),
    }
