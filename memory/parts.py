"""What an open memory is made of: how its parts are opened, looked after, and closed.

Which store a part lives in is decided here and nowhere else: where the settings' URL says, else in
the local stack.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from memory.budget import ContextPolicy
from memory.chroma import open_chroma
from memory.compaction import Compactor
from memory.embedding import Embedder, open_embedder
from memory.episodic import EpisodicMemory, Repaired
from memory.errors import AgentMemoryError, AlreadyRunning
from memory.ids import ENTROPY_BYTES, ulid
from memory.journal import Journal, SnapshotStore
from memory.lexical import LexicalIndex
from memory.llm import Guarded, LanguageModel, open_llm
from memory.local import default_folder, local_stack
from memory.models import Scope
from memory.prefix import Recent
from memory.projections import (
    EpisodicProjection,
    ExtractProjection,
    SemanticProjection,
    Windows,
    WorkingProjection,
)
from memory.recall import RecallPolicy
from memory.redact import Redact, Redactor
from memory.rerank import Reranker, Reranking, RerankPolicy, open_reranker
from memory.retelling import Retelling
from memory.semantic import SemanticMemory, open_semantic
from memory.semantic.predicates import Registry
from memory.settings import Settings
from memory.snapshots import Snapshots
from memory.tokens import TokenCounter
from memory.window import summary_limit
from memory.worker import Worker
from memory.working import WorkingMemory, open_redis

Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
"""Told (done, in all)."""

LOOK_AFTER = timedelta(seconds=30)
"""How often what was used is written down."""

_FED_BY_MESSAGES = ("working", "episodic", "extract")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Own:
    """What a caller brings along: None where the settings decide. It is left open at the end."""

    clock: Clock
    registry: Registry
    embedder: Embedder | None = None
    llm: LanguageModel | None = None
    redact: Redact | None = None
    context: ContextPolicy | None = None
    recall: RecallPolicy | None = None
    reranker: Reranker | None = None


@dataclass(frozen=True)
class Parts:
    """Everything that an open memory is made of."""

    settings: Settings
    clock: Clock
    redact: Redactor
    llm: LanguageModel | None
    journal: Journal
    counter: TokenCounter
    registry: Registry
    embedder: Embedder
    working: WorkingMemory
    windows: Windows
    policy: RecallPolicy
    episodic: EpisodicMemory
    lexical: LexicalIndex
    semantic: SemanticMemory
    snapshots: Snapshots
    context: ContextPolicy
    """How contexts are shared out, where a call does not say."""
    reranking: Reranking | None = None
    """Looks again at the best of what was found; None without a reranker."""
    recent: Recent = field(default_factory=Recent)
    """Contexts that were built here, for the next ones of their sessions."""
    compactor: Compactor | None = None
    """Summarises with the language model; None without one."""
    workers: dict[str, Worker] = field(default_factory=dict)
    in_one_space: set[Scope] = field(default_factory=set)
    """Users whose every vector is known to be the current embedder's."""
    mending: set[asyncio.Task[None]] = field(default_factory=set)
    """The repair of the index that is under way, if one is."""
    used: dict[Scope, set[str]] = field(default_factory=dict)
    """Episodes that contexts have shown, not yet noted as used."""

    def written(self) -> None:
        """Messages were written: have them brought to the tiers."""
        for name in _FED_BY_MESSAGES:
            self.workers[name].request()

    async def lagging(self, timeout: timedelta) -> list[str]:
        """The tiers that have not got what this process wrote, after waiting for them."""
        first = [self.workers[name] for name in _FED_BY_MESSAGES]
        extracting = self.workers["extract"].is_behind
        done = await asyncio.gather(*(worker.reached(worker.ticket, timeout) for worker in first))
        late = [name for name, ok in zip(_FED_BY_MESSAGES, done, strict=True) if not ok]
        semantic = self.workers["semantic"]  # after `extract`, here or in another process
        ticket = semantic.request() if extracting else semantic.ticket
        knows = await semantic.reached(ticket, timeout)
        if "extract" in late or not knows:
            late = [*(name for name in late if name != "extract"), "semantic"]
        return late

    async def repair(self) -> Repaired:
        async with self.journal.lease("repair"):
            return await self.episodic.repair()

    def mend(self) -> None:
        """Have the index repaired in the background, unless that is under way."""
        if not self.mending:
            task = asyncio.create_task(_mend(self))
            self.mending.add(task)
            task.add_done_callback(self.mending.discard)

    async def note_used(self) -> None:
        """Write down which episodes were used: what is used fades more slowly."""
        used = dict(self.used)
        self.used.clear()
        for scope, ids in used.items():
            await self.episodic.touch(scope, sorted(ids), now=self.clock())

    def new_id(self) -> str:
        return ulid(self.clock(), secrets.token_bytes(ENTROPY_BYTES))


# --- opening -----------------------------------------------------------------------------------


@asynccontextmanager
async def open_parts(
    folder: Path | str | None, settings: Settings, own: Own
) -> AsyncIterator[Parts]:
    """All parts, with their workers at work; closed in the opposite order.

    Raises ConfigurationError, TierUnavailable.
    """
    async with AsyncExitStack() as stack:
        parts = await _opened(stack, folder, settings, own)
        clock = parts.clock
        for projection in (
            WorkingProjection(parts.windows),
            EpisodicProjection(parts.episodic),
            ExtractProjection(
                parts.journal, parts.registry, clock, lambda: parts.workers["semantic"].request()
            ),
            SemanticProjection(parts.semantic),
        ):
            parts.workers[projection.name] = Worker(parts.journal, projection, clock)
        stack.push_async_callback(_note_used, parts)
        tasks = [asyncio.create_task(worker.run()) for worker in parts.workers.values()]
        tasks.append(asyncio.create_task(_look_after(parts)))
        if parts.compactor is not None:
            tasks.append(asyncio.create_task(parts.compactor.run(parts.windows)))
        stack.push_async_callback(_cancel, tasks)
        stack.push_async_callback(_cancel, parts.mending)
        yield parts


async def _opened(
    stack: AsyncExitStack, folder: Path | str | None, settings: Settings, own: Own
) -> Parts:
    opening = asyncio.create_task(_embedder(stack, settings, own.embedder))
    speaking = asyncio.create_task(_llm(stack, settings, own.llm))
    stack.push_async_callback(_cancel, [opening, speaking])
    reranking = _reranking(stack, settings, own.reranker)
    urls = await _store_urls(stack, folder, settings)
    counter = TokenCounter(settings.model, tokenizer_dir=settings.tokenizer_dir)
    stack.push_async_callback(_cancel, [asyncio.create_task(asyncio.to_thread(counter.count, ""))])
    journal = await stack.enter_async_context(Journal.open(urls.journal, timeout=settings.timeout))
    redis = await stack.enter_async_context(open_redis(urls.redis, timeout=settings.timeout))
    chroma = await stack.enter_async_context(open_chroma(urls.chroma, timeout=settings.timeout))
    semantic = await stack.enter_async_context(
        open_semantic(urls.neo4j, journal, timeout=settings.timeout)
    )
    working = WorkingMemory(redis, ttl=settings.session_ttl)
    llm = await speaking
    compactor = _compactor(settings, llm, journal, counter, own.clock)
    embedder = await opening
    return Parts(
        settings=settings,
        clock=own.clock,
        redact=Redactor.of(own.redact, builtin=settings.redact),
        llm=llm,
        journal=journal,
        counter=counter,
        registry=own.registry,
        embedder=embedder,
        working=working,
        windows=Windows(
            journal,
            working,
            counter,
            limit=settings.window_tokens,
            summary_limit=settings.summary_tokens,
            ttl=settings.session_ttl,
            clock=own.clock,
            later=compactor,
        ),
        compactor=compactor,
        policy=own.recall or RecallPolicy.of_embedder(embedder.identity),
        episodic=EpisodicMemory(journal, chroma, embedder),
        lexical=LexicalIndex(journal),
        semantic=semantic,
        snapshots=Snapshots(SnapshotStore(journal)),
        context=own.context or ContextPolicy(),
        reranking=reranking,
    )


def _compactor(
    settings: Settings,
    llm: LanguageModel | None,
    journal: Journal,
    counter: TokenCounter,
    clock: Clock,
) -> Compactor | None:
    """Raises ConfigurationError when the model's window is too small for the summaries."""
    if llm is None:
        return None
    limit = summary_limit(settings.window_tokens, settings.summary_tokens)
    return Compactor(journal, Retelling(llm, counter.count, limit=limit), clock)


async def _embedder(stack: AsyncExitStack, settings: Settings, given: Embedder | None) -> Embedder:
    if given is not None:
        return given
    opened = await open_embedder(settings)
    stack.push_async_callback(opened.close)
    return opened


def _reranking(
    stack: AsyncExitStack, settings: Settings, given: Reranker | None
) -> Reranking | None:
    reranker = given
    if reranker is None and (reranker := open_reranker(settings)) is not None:
        stack.push_async_callback(reranker.close)
    if reranker is None:
        return None
    policy = RerankPolicy(
        k=settings.rerank_k, timeout=settings.rerank_timeout, weight=settings.rerank_weight
    )
    return Reranking(reranker, policy)


async def _llm(
    stack: AsyncExitStack, settings: Settings, given: LanguageModel | None
) -> LanguageModel | None:
    if given is not None:
        return Guarded(given, settings.llm_timeout)
    opened = await open_llm(settings)
    if opened is not None:
        stack.push_async_callback(opened.close)
    return opened


@dataclass(frozen=True)
class _Urls:
    journal: str
    redis: str
    chroma: str
    neo4j: str | None


async def _store_urls(
    stack: AsyncExitStack, folder: Path | str | None, settings: Settings
) -> _Urls:
    """Where each store lives: as the settings say, the rest in the local stack."""
    given = {
        name: url.get_secret_value() if url else None
        for name, url in (
            ("journal", settings.journal_url),
            ("redis", settings.redis_url),
            ("chroma", settings.chroma_url),
            ("neo4j", settings.neo4j_url),
        )
    }
    if given["journal"] and given["redis"] and given["chroma"]:
        return _Urls(given["journal"], given["redis"], given["chroma"], given["neo4j"])
    local = await stack.enter_async_context(
        local_stack(
            default_folder(Path(folder) if folder is not None else settings.home),
            idle=settings.idle,
            timeout=settings.timeout,
            parts=frozenset(name for name in ("redis", "chroma") if not given[name]),
        )
    )
    return _Urls(
        given["journal"] or local.journal_url,
        given["redis"] or local.redis_url,
        given["chroma"] or local.chroma_url,
        given["neo4j"],
    )


async def _mend(parts: Parts) -> None:
    try:
        repaired = await parts.repair()
        _log.warning("the index of vectors was lost: %d were put back", repaired.put_back)
    except AlreadyRunning:
        return
    except AgentMemoryError as error:  # the next search that misses the index tries again
        _log.warning("the index of vectors is lost and could not be repaired: %s", error)


async def _look_after(parts: Parts) -> None:
    """What is done now and then while the memory is open."""
    while True:
        await asyncio.sleep(LOOK_AFTER.total_seconds())
        await _note_used(parts)


async def _note_used(parts: Parts) -> None:
    try:
        await parts.note_used()
    except AgentMemoryError as error:  # it only makes what was used fade a little later
        _log.warning("what was used could not be noted: %s", error)


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    ended = list(tasks)
    for task in ended:
        task.cancel()
    await asyncio.gather(*ended, return_exceptions=True)


# --- rebuilding --------------------------------------------------------------------------------


async def rebuild(parts: Parts, progress: Progress | None) -> None:
    """The tiers made again from the journal."""
    everybody = await parts.journal.scopes()
    await parts.episodic.rebuild()
    semantic = parts.workers["semantic"]
    async with semantic.stopped():
        await parts.journal.reset(semantic.projection.name)  # first, lest a kill lose facts
        for done, scope in enumerate(everybody, start=1):
            for info in await parts.journal.sessions(scope):
                await parts.working.clear(scope, info.session)
            await parts.semantic.clear(scope)
            if progress:
                progress(done, len(everybody))
    semantic.request()
