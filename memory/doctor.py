"""The doctor: asks every part that the settings name, and says in one line what is wrong with it.

Each part is asked alone and for itself, so that one that is ill never hides another. What is asked
is what the tiers themselves would ask; nothing that was remembered is changed.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from memory import episode_store as store
from memory.embedding import open_embedder
from memory.errors import AgentMemoryError, LLMError, LLMUnavailable, TierUnavailable
from memory.journal import Journal
from memory.journal.retries import Retries
from memory.llm import LanguageModel, open_llm
from memory.local import default_folder, local_stack, stack_status
from memory.models import Health
from memory.redis_url import open_redis
from memory.semantic import open_semantic
from memory.settings import Settings
from memory.tokens import TokenCounter
from memory.unread import state as reading_state
from memory.working import WorkingMemory

LOW_ON_DISK = 1_000_000_000
"""Bytes of free space in the data folder below which the doctor says so."""


class _Urls(NamedTuple):
    """Where to look for each store. None: in the local stack, which does not run."""

    journal: str | None
    redis: str | None
    chroma: str | None


async def doctor(settings: Settings) -> list[Health]:
    """How each part is, in a fixed order: the local stack's parts (when any is used), journal,
    working, episodic, semantic, embedder, tokenizer; and when the settings name a language model,
    whether it answers, and what waits because it did not.

    Parts of the local stack are started, as opening a Memory would. Never raises for a part that
    does not answer, and never shows a password.
    """
    async with AsyncExitStack() as stack:
        local, urls = await _find_stores(stack, settings)
        checks: tuple[tuple[str, Callable[[], Awaitable[Health]]], ...] = (
            ("journal", lambda: _journal(urls.journal, settings)),
            ("working", lambda: _working(urls.redis, settings)),
            ("episodic", lambda: _episodic(urls.chroma, settings)),
            ("semantic", lambda: _semantic(urls.journal, settings)),
            ("embedder", lambda: _embedder(settings)),
            ("tokenizer", lambda: _tokenizer(settings)),
        )
        if settings.llm is not None:
            checks += (
                ("language model", lambda: _llm(settings)),
                ("summaries", lambda: _failed("compaction", urls.journal, settings)),
                ("facts", lambda: _unread(urls.journal, settings)),
            )
        asked = (_examined(part, check, settings) for part, check in checks)
        return [*local, *await asyncio.gather(*asked)]


async def _examined(
    part: str, check: Callable[[], Awaitable[Health]], settings: Settings
) -> Health:
    """The check's result; its failure or silence as one line."""
    limit = 3 * settings.timeout.total_seconds()
    if part == "language model":
        limit = max(limit, settings.llm_timeout.total_seconds() + 1)
    try:
        async with asyncio.timeout(limit):
            found = await check()
    except AgentMemoryError as error:
        return Health(part=part, ok=False, problem=_one_line(str(error)))
    except TimeoutError:
        return Health(part=part, ok=False, problem=f"no answer within {limit:g} s")
    return found.model_copy(update={"part": part, "problem": _one_line(found.problem)})


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- the local stack ---------------------------------------------------------------------------


async def _find_stores(stack: AsyncExitStack, settings: Settings) -> tuple[list[Health], _Urls]:
    """How the local stack is, where it is used, and where every store lives."""
    given = _Urls(_url(settings.journal_url), _url(settings.redis_url), _url(settings.chroma_url))
    if all(given):
        return [], given
    folder = default_folder(settings.home)
    parts = frozenset(part for part in ("redis", "chroma") if not getattr(given, part))
    try:
        local = await stack.enter_async_context(
            local_stack(folder, idle=settings.idle, timeout=settings.timeout, parts=parts)
        )
    except AgentMemoryError as error:
        problem = _one_line(str(error))
        return [Health(part="local stack", ok=False, where=str(folder), problem=problem)], given
    found = [health for health in await stack_status(folder) if health.part in {"keeper", *parts}]
    urls = _Urls(
        given.journal or local.journal_url,
        given.redis or local.redis_url,
        given.chroma or local.chroma_url,
    )
    return [_folder(local.folder), *(found if parts else [])], urls


def _folder(folder: Path) -> Health:
    free = shutil.disk_usage(folder).free
    gigabytes = f"{free / 1e9:.1f} GB free"
    problem = "" if free >= LOW_ON_DISK else f"only {gigabytes}"
    return Health(
        part="data folder", ok=not problem, where=str(folder), version=gigabytes, problem=problem
    )


def _url(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None


# --- the tiers ---------------------------------------------------------------------------------


async def _journal(url: str | None, settings: Settings) -> Health:
    """How the journal is, and what a repair will bring from former rules to today's."""
    async with Journal.open(_reachable("journal", url), timeout=settings.timeout) as journal:
        found = await journal.health()
        users, vectors = await journal.query(
            lambda c: (len(store.owners_with_other_lexicon(c)), store.count_outdated(c))
        )
    if not (users or vectors):
        return found
    waits = f"of former rules: the postings of {users} users, {vectors} vectors"
    return found.model_copy(update={"version": f"{found.version}; {waits}"})


async def _working(url: str | None, settings: Settings) -> Health:
    async with open_redis(_reachable("working", url), timeout=settings.timeout) as redis:
        return await WorkingMemory(redis, ttl=settings.session_ttl).health()


async def _episodic(url: str | None, settings: Settings) -> Health:
    base = _reachable("episodic", url)
    where = _without_login(base)
    try:
        async with httpx.AsyncClient(timeout=settings.timeout.total_seconds()) as client:
            await _fetched(client, f"{base.rstrip('/')}/api/v2/heartbeat")
            version = (await _fetched(client, f"{base.rstrip('/')}/api/v2/version")).json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        problem = str(error) or type(error).__name__
        return Health(part="episodic", ok=False, where=where, problem=f"Chroma: {problem}")
    return Health(part="episodic", ok=True, where=where, version=f"Chroma API {version}")


async def _fetched(client: httpx.AsyncClient, url: str) -> httpx.Response:
    answer = await client.get(url)
    if answer.status_code != httpx.codes.OK:
        raise ValueError(f"answers with status {answer.status_code}; is this a Chroma server?")
    return answer


async def _semantic(journal_url: str | None, settings: Settings) -> Health:
    url = _url(settings.neo4j_url)
    if url is not None:
        from memory.semantic.neo4j import open_neo4j  # as in open_semantic: the driver is slow

        async with open_neo4j(url, timeout=settings.timeout) as semantic:
            return await semantic.health()
    reachable = _reachable("semantic", journal_url)
    async with (
        Journal.open(reachable, timeout=settings.timeout) as journal,
        open_semantic(None, journal, timeout=settings.timeout) as semantic,
    ):
        return await semantic.health()


def _reachable(tier: str, url: str | None) -> str:
    if url is None:
        raise TierUnavailable(tier, "is part of the local stack, which does not run")
    return url


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


# --- the models --------------------------------------------------------------------------------


async def _embedder(settings: Settings) -> Health:
    embedder = await open_embedder(settings)
    try:
        await embedder.embed(["How are you?"], role="query")
        return Health(part="embedder", ok=True, version=embedder.identity)
    finally:
        await embedder.close()


async def _tokenizer(settings: Settings) -> Health:
    counter = await asyncio.to_thread(
        TokenCounter, settings.model, tokenizer_dir=settings.tokenizer_dir
    )
    await asyncio.to_thread(counter.count, "How are you?")
    return Health(
        part="tokenizer",
        ok=counter.exact,
        version=counter.name,
        where=settings.model,
        problem="; ".join(counter.warnings),
    )


async def _llm(settings: Settings) -> Health:
    """Whether it answers at all; what it says does not matter."""
    model = await open_llm(settings)
    if model is None:
        return Health(part="language model", ok=True)
    try:
        await model.text("Answer with one word.", "Is anybody there?", limit=64)
    except LLMUnavailable as error:
        return _named(model, settings, problem=str(error))
    except LLMError:
        pass  # an answer, if none that could be used
    finally:
        await model.close()
    return _named(model, settings)


def _named(model: LanguageModel, settings: Settings, problem: str = "") -> Health:
    where = _without_login(settings.llm_url) if settings.llm_url else ""
    return Health(
        part="language model", ok=not problem, version=model.identity, where=where, problem=problem
    )


async def llm_named(settings: Settings) -> list[Health]:
    """The language model that the settings name, which is not asked anything; [] for none."""
    try:
        model = await open_llm(settings)
    except AgentMemoryError as error:
        return [Health(part="language model", ok=False, problem=_one_line(str(error)))]
    if model is None:
        return []
    await model.close()
    return [_named(model, settings)]


async def _failed(job: str, journal_url: str | None, settings: Settings) -> Health:
    """What the language model could not do yet."""
    async with Journal.open(_reachable(job, journal_url), timeout=settings.timeout) as journal:
        standing = await Retries(journal, job).standing()
    last = standing.newest
    return Health(
        part=job,
        ok=not standing.waiting,
        version=f"{standing.waiting} wait, {standing.given_up} given up",
        problem=f"the last one failed {last.times}: {last.reason}" if last else "",
    )


async def _unread(journal_url: str | None, settings: Settings) -> Health:
    """What the language model has not read for facts, and why. What was said since the newest
    night is no problem: the next one reads it."""
    async with Journal.open(_reachable("read", journal_url), timeout=settings.timeout) as journal:
        reading = await reading_state(journal)
    failed, night = reading.failed, reading.newest
    ended = night.problem if night else ""
    why = [f"the newest night ended early: {ended}"] if ended else []
    if failed.newest:
        last = failed.newest
        why.append(f"the last one failed {last.times}: {last.reason}")
    return Health(
        part="facts",
        ok=not (failed.waiting or (reading.untried and ended)),
        version=f"{reading.untried} unread, {failed.waiting} failed, {failed.given_up} given up",
        problem="; ".join(why),
    )
