"""The front door: Memory, a user's memory, and a session. It decides when I/O happens.

    async with Memory.open() as memory:
        session = memory.user("ada").session("monday")
        context = await session.build_context("Where shall we eat tonight?")
        await session.record(user="Where shall we eat tonight?", assistant="At Luigi's.")

A write is in the journal when it returns; workers bring it to the tiers. A read first waits, for a
bounded time, until the tiers have what this process wrote. A tier that does not answer is named in
the result's `unavailable`; what lags is said in its `warnings`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from memory import filters
from memory.budget import ContextPolicy
from memory.candidates import Shown
from memory.codec import content_id, culprit, decode, encode
from memory.context import ContextParts, assemble
from memory.embedding import Embedder
from memory.episode_search import EpisodeSearch, Wish
from memory.episodic import Repaired
from memory.errors import (
    AgentMemoryError,
    EmptyInput,
    InvalidInput,
)
from memory.fence import strip_fences
from memory.given import (
    Given,
    as_message,
    as_recorded,
    at_least_one,
    definitions_of,
    narrowed,
    turn_of,
    whole,
    without_secrets,
)
from memory.journal import Event, NewEvent, SessionInfo, SnapshotInfo
from memory.journal.events import message_id
from memory.llm import LanguageModel
from memory.models import (
    Assertion,
    Context,
    Episode,
    Fact,
    Health,
    JsonObject,
    Message,
    Moment,
    Recall,
    Recalled,
    RecordedMessage,
    Role,
    Scope,
    Value,
    Window,
    valid_name,
)
from memory.parts import Clock, Own, Parts, Progress, open_parts, rebuild
from memory.prefix import Previous
from memory.projections import (
    ARCHIVED,
    PINNED,
    FactPinned,
    fact_events,
    pin_event,
)
from memory.recall import RecallPolicy
from memory.redact import Redact
from memory.rerank import Reranker
from memory.search import Known, Search, all_named, nothing_known, or_named
from memory.semantic.base import pin_of
from memory.semantic.entities import REMEMBERED
from memory.semantic.predicates import Registry
from memory.settings import Settings
from memory.snapshots import Diff, Replay
from memory.unread import Unread
from memory.worker import Lag

READ_WAIT = timedelta(seconds=2)
"""The longest that a read waits for this process's own writes to reach the tiers."""
REMEMBERED_USERS = 10_000
"""Users of whom it is remembered that all their vectors are the current embedder's."""

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    return datetime.now(UTC)


class Recorded(Value):
    """What `record` has made durable."""

    messages: tuple[RecordedMessage, ...]


class Note(Value):
    """Something of an application's own in a user's journal. `position` orders all of them."""

    labels: tuple[str, ...] = ()
    body: JsonObject
    position: int
    noted_at: Moment


class Memory:
    """An open memory. `Memory.open()` makes one; it closes what it opened."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        folder: Path | str | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        registry: Registry | None = None,
        llm: LanguageModel | None = None,
        redact: Redact | None = None,
        context: ContextPolicy | None = None,
        recall: RecallPolicy | None = None,
        reranker: Reranker | None = None,
        clock: Clock = utc_now,
    ) -> AsyncIterator[Memory]:
        """Open the memory in `folder` (else TRIMEM_HOME, else the user's data folder), or at the
        URLs that the settings give. An `embedder`, `llm` or `reranker` of your own is left open
        when this closes; they are waited for as long as `llm_timeout` and `rerank_timeout` say.
        `context` says how contexts are shared out, where `build_context` is not told; `recall` how
        what is found is scored, in the place of what the embedder's name says.

        `redact` is asked about every text before it is stored, after the usual secrets are
        masked (unless the settings say not to); a Redactor stands in the place of both.

        Stores that do not answer are no error until they are asked; the journal must answer.
        Raises ConfigurationError, TierUnavailable.
        """
        own = Own(
            clock=clock,
            registry=registry or Registry.default(),
            embedder=embedder,
            llm=llm,
            redact=redact,
            context=context,
            recall=recall,
            reranker=reranker,
        )
        async with open_parts(folder, settings or Settings(), own) as parts:
            yield cls(parts)

    def user(self, name: str, *, tenant: str | None = None) -> UserMemory:
        """The memory of one user. Raises InvalidScope."""
        tenant = self._parts.settings.tenant if tenant is None else tenant
        return UserMemory(self._parts, Scope.of(tenant, name))

    async def settled(self, timeout: timedelta | None = None) -> bool:
        """Wait until the tiers have everything written so far, and what a language model has to
        summarise of it has been tried. False when a tier cannot have it, or the time is up."""
        longest = timeout or timedelta(days=1)
        late = await self._parts.lagging(longest)
        compactor = self._parts.compactor
        return (compactor is None or await compactor.idle(longest)) and not late

    async def lags(self) -> list[Lag]:
        """How far each projection is."""
        return [await worker.lag() for worker in self._parts.workers.values()]

    async def health(self) -> list[Health]:
        """Each part: whether it answers, its version, and what is wrong."""
        parts = self._parts
        return list(
            await asyncio.gather(
                parts.journal.health(),
                parts.working.health(),
                parts.episodic.health(),
                parts.semantic.health(),
            )
        )

    # --- for operators and nightly jobs -----------------------------------------------------------

    @property
    def settings(self) -> Settings:
        return self._parts.settings

    @property
    def llm(self) -> LanguageModel | None:
        """The language model, for background work; None without one."""
        return self._parts.llm

    @property
    def registry(self) -> Registry:
        return self._parts.registry

    @property
    def unread(self) -> Unread:
        """What a nightly reader has still to read, and where it keeps what it found."""
        parts = self._parts
        return Unread(parts.journal, parts.clock, lambda: parts.workers["semantic"].request())

    async def repair(self) -> Repaired:
        """Make up for what the index of vectors has lost, or never got. Changes nothing when all
        is well. Raises AlreadyRunning when another process is at it."""
        return await self._parts.repair()

    async def scopes(self) -> list[Scope]:
        """Everybody who has a memory here."""
        return await self._parts.journal.scopes()

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold `name` for this process alone. Raises AlreadyRunning at once if another has it."""
        return self._parts.journal.lease(name)

    async def note(self, name: str, value: JsonObject) -> None:
        """Keep a small value about the store itself, such as when a job last ran."""
        await self._parts.journal.set_meta(name, value)

    async def reembed(self, progress: Progress | None = None) -> Repaired:
        """Embed again what another embedder embedded, or none. Can be stopped and run again.

        `progress` is told episodes done and to do. Raises AlreadyRunning when another process is
        at it.
        """
        async with self.exclusive("reembed"):
            return await self._parts.episodic.reembed(progress)

    async def prepare(self, embedder: Embedder, progress: Progress | None = None) -> Repaired:
        """Embed everything for another embedder as well, while this one serves: a memory that is
        opened with it afterwards finds everything at once. Can be stopped and run again, also for
        what came meanwhile. Its `reembed` then drops what this one has embedded.

        Raises AlreadyRunning when another process is at it.
        """
        async with self.exclusive("reembed"):
            return await self._parts.episodic.of_embedder(embedder).prepare(progress)

    async def relayout(self, shards: int, progress: Progress | None = None) -> int:
        """Share users out among so many collections of vectors, while others read and write; how
        many vectors were copied. Can be stopped and run again, until when nobody else may.

        `progress` is told vectors done and in all. Raises AlreadyRunning when a repair, a rebuild
        or an embedding of everything is under way, InvalidInput for an impossible number.
        """
        async with self.exclusive("repair"), self.exclusive("rebuild"), self.exclusive("reembed"):
            return await self._parts.episodic.relayout(shards, progress)

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Make the tiers again from the journal: windows, the index of vectors, postings, facts.

        Embeds nothing and asks nobody. Can be stopped and run again; until it is done, reads may
        find less than there is. `progress` is told users done and users in all. Raises
        AlreadyRunning when another process is at it, TierUnavailable.
        """
        async with self.exclusive("rebuild"):
            await rebuild(self._parts, progress)

    async def noted(self, name: str) -> JsonValue | None:
        """What was noted under `name`; None when nothing was."""
        return await self._parts.journal.get_meta(name)


class UserMemory:
    """What is remembered of one user in one tenant."""

    def __init__(self, parts: Parts, scope: Scope) -> None:
        self._parts = parts
        self._search = Search(parts, scope)
        self._episodes = EpisodeSearch(parts, scope)
        self.scope = scope

    def session(self, name: str, *, agent: str | None = None) -> Session:
        """One conversation. It need not exist yet. Raises InvalidScope."""
        valid_name("session", name)
        if agent is not None:
            valid_name("agent", agent)
        return Session(self, name, agent)

    async def sessions(self) -> list[SessionInfo]:
        """The user's conversations, the newest first."""
        return await self._parts.journal.sessions(self.scope)

    async def recall(
        self,
        query: str,
        *,
        k: int | None = None,
        where: Mapping[str, JsonValue] | None = None,
        session: str | None = None,
        agent: str | None = None,
    ) -> Recall:
        """The episodes and facts that answer `query` best, at most `k` episodes.

        `where` filters by metadata, session, agent, role and event_time (see memory.filters); it
        can only narrow. A blank query finds nothing. Raises InvalidFilter.
        """
        parts = self._parts
        query = parts.redact(query)
        condition = narrowed(where, session, agent)
        accepts = filters.compile(condition) if condition else None
        k = parts.settings.recall_k if k is None else at_least_one(k)
        warnings = await self._await_own_writes()
        now = parts.clock()
        knowing = asyncio.ensure_future(
            self._search.facts(query, now=now) if accepts is None else nothing_known()
        )
        wish = Wish(k, now, accepts, facts=partial(_ranked_facts, knowing))
        episodes, facts = await asyncio.gather(self._episodes(query, wish), knowing)
        warnings = (*warnings, *episodes.warnings, *await self._other_spaces())
        return _merged(episodes, facts.together, warnings)

    async def facts(
        self,
        about: str | None = None,
        *,
        predicate: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        history: bool = False,
    ) -> list[Fact]:
        """What is known (about one name, or whatever else it is called): true at `as_of`, by
        default now; as believed at `known_at`, by default now. `history=True` gives every version
        ever. Raises TierUnavailable.
        """
        await self._await_own_writes()
        moment = None if history else (as_of or self._parts.clock())
        return await self._parts.semantic.facts(
            self.scope,
            about=None if about is None else await self._search.names_of(about),
            predicate=predicate and self._parts.registry.spelling(predicate),
            as_of=moment,
            known_at=known_at,
            history=history,
        )

    async def assert_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        holds: bool = True,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        sources: Sequence[str] = (),
        attributes: Mapping[str, JsonValue] | None = None,
    ) -> Assertion:
        """State a fact (or, with `holds=False`, that it holds no longer). Durable when it returns.

        `sources` are message ids. Whether a newer fact supersedes comes from the registry of
        predicates. Secrets are masked; that something is a secret and nothing else is refused.
        Raises InvalidInput, EmptyInput, RedactionFailed.
        """
        parts = self._parts
        now = parts.clock()
        masked = without_secrets(subject, predicate, object, parts.redact)
        assertion = parts.registry.assertion(
            id=parts.new_id(),
            subject=masked[0],
            predicate=predicate,
            object=masked[1],
            holds=holds,
            valid_from=valid_from or now,
            valid_to=valid_to,
            learnt_at=now,
            sources=tuple(sources),
            origin="stated",
            attributes=parts.redact.json(dict(attributes or {})),
        )
        await parts.journal.append(self.scope, fact_events([assertion]), now=now)
        parts.workers["semantic"].request()
        return assertion

    async def snapshots(
        self, session: str | None = None, *, limit: int = 50, before: str | None = None
    ) -> list[SnapshotInfo]:
        """The contexts that were built, the newest first."""
        return await self._parts.snapshots.log(self.scope, session, limit=limit, before=before)

    async def snapshot(self, snapshot_id: str) -> Context:
        """The context as it was built. Raises NotFound, Corrupt, SchemaTooNew."""
        return await self._parts.snapshots.show(self.scope, snapshot_id)

    async def replay(self, snapshot_id: str) -> Replay:
        """The recorded bytes and their proof, from the journal alone. Raises as `snapshot` does."""
        return await self._parts.snapshots.replay(self.scope, snapshot_id)

    async def diff(self, before: str, after: str) -> Diff:
        """What changed from one context to another. Raises as `snapshot` does."""
        return await self._parts.snapshots.diff(self.scope, before, after)

    async def episodes(self, *, archived: bool = False) -> list[Episode]:
        """Everything that happened, oldest first; with `archived`, also what has faded."""
        await self._await_own_writes()
        return await self._parts.episodic.all(self.scope, archived=archived)

    async def vectors(self, episodes: Sequence[Episode]) -> NDArray[np.float32]:
        """The embeddings of episodes: (len(episodes), dims), a zero row where there is none."""
        parts = self._parts
        found = await parts.episodic.vectors(self.scope, [episode.id for episode in episodes])
        rows = np.zeros((len(episodes), parts.embedder.dims), dtype=np.float32)
        for row, episode in enumerate(episodes):
            if (vector := found.get(episode.id)) is not None:
                rows[row] = vector
        return rows

    async def archive(self, episode_ids: Sequence[str], *, run_id: str) -> None:
        """Take episodes out of recall. They stay in the journal, which also says which run did it.

        Archiving what is archived changes nothing.
        """
        if not episode_ids:
            return
        now = self._parts.clock()
        body: JsonObject = {"run": run_id, "episodes": list(episode_ids)}
        key = content_id("archived", run_id, *episode_ids)
        event = NewEvent(kind=ARCHIVED, key=key, body=body, event_time=now)
        await self._parts.journal.append(self.scope, [event], now=now)
        await self._parts.episodic.archive(self.scope, episode_ids, True)

    async def pin(self, episode_ids: Sequence[str], pinned: bool = True) -> None:
        """Keep episodes from fading, or with `pinned=False` no longer. Twice is as once."""
        if not episode_ids:
            return
        now = self._parts.clock()
        body: JsonObject = {"pinned": pinned, "episodes": list(episode_ids)}
        event = NewEvent(kind=PINNED, key=self._parts.new_id(), body=body, event_time=now)
        await self._parts.journal.append(self.scope, [event], now=now)
        await self._parts.episodic.pin(self.scope, episode_ids, pinned)

    async def pin_fact(
        self, subject: str, predicate: str, object: str | None = None, pinned: bool = True
    ) -> None:
        """Have a fact in every context of this user, whatever is asked; or no longer. It does not
        say that the fact holds: `assert_fact` does, before or afterwards.

        It is the slot that is pinned: of a predicate with one object at a time, or without an
        `object`, what holds in it, now or later. Pinning twice is as once. Durable when it
        returns. Raises InvalidInput, EmptyInput.
        """
        parts = self._parts
        known = parts.registry.find(predicate) if isinstance(predicate, str) else None
        whole = object is None or (known is not None and known.single)
        pin_of(subject, predicate, object)  # refused before it is in the journal
        whom, what = subject, object
        if object is not None:
            whom, what = without_secrets(subject, predicate, object, parts.redact)
        pin = FactPinned(
            subject=whom,
            predicate=parts.registry.spelling(predicate),
            object=None if whole else what,
            pinned=pinned,
        )
        now = parts.clock()
        await parts.journal.append(self.scope, [pin_event(pin, parts.new_id(), now)], now=now)
        parts.workers["semantic"].request()

    async def promote(self, assertions: Sequence[Assertion]) -> None:
        """Make facts of what recurred. Promoting the same again changes nothing."""
        if assertions:
            now = self._parts.clock()
            await self._parts.journal.append(self.scope, fact_events(assertions), now=now)
            self._parts.workers["semantic"].request()

    # --- what applications keep here --------------------------------------------------------------

    @property
    def embedder(self) -> Embedder:
        """What gives this memory its vectors."""
        return self._parts.embedder

    async def note(
        self,
        kind: str,
        body: JsonObject,
        *,
        labels: Sequence[str] = (),
        key: str | None = None,
        session: str | None = None,
    ) -> Note:
        """Keep something of your own beside what is remembered: no tier and no recall sees it.

        Durable when it returns. Notes of a `kind` are never changed; with a `key`, noting it again
        gives back what was noted first. `labels` are names, kept word for word; in the body,
        secrets are masked. Raises InvalidInput for what JSON cannot hold.
        """
        parts = self._parts
        now = parts.clock()
        event = NewEvent(
            kind=_note_kind(kind),
            key=content_id("note", kind, key if key is not None else parts.new_id()),
            body={"labels": list(labels), "body": self.masked(body)},
            session=session,
            event_time=now,
        )
        stored = await parts.journal.append(self.scope, [event], now=now)
        return _note(stored[0])

    def masked(self, value: JsonObject) -> JsonObject:
        """The JSON object as it would be kept, without its secrets. Raises InvalidInput for what
        JSON cannot hold."""
        if problem := culprit(value):  # JSON itself would make texts of other keys
            raise InvalidInput(f"cannot be kept as JSON: {problem}")
        kept: JsonObject = decode(encode(self._parts.redact.json(value)))
        return kept

    async def notes(self, kind: str, *, session: str | None = None, after: int = 0) -> list[Note]:
        """What was noted of this kind (in this session) at a position > `after`, oldest first."""
        found = await self._parts.journal.events_of(
            self.scope, kinds=[_note_kind(kind)], session=session, after=after
        )
        return [_note(event) for event in found]

    async def _await_own_writes(self) -> tuple[str, ...]:
        return _not_caught_up(await self._parts.lagging(READ_WAIT))

    async def _other_spaces(self) -> tuple[str, ...]:
        """A warning when some of the user's vectors are another embedder's."""
        parts = self._parts
        if self.scope in parts.in_one_space:
            return ()
        warning = await parts.episodic.mismatch(self.scope)
        if warning is None:
            if len(parts.in_one_space) >= REMEMBERED_USERS:
                parts.in_one_space.clear()
            parts.in_one_space.add(self.scope)
            return ()
        return (warning,)


class Session:
    """One conversation of one user."""

    def __init__(self, user: UserMemory, name: str, agent: str | None) -> None:
        self._user = user
        self._parts = user._parts
        self.scope = user.scope
        self.name = name
        self.agent = agent

    async def record(
        self,
        user: str | None = None,
        assistant: str | None = None,
        *,
        messages: Sequence[Given] | None = None,
        event_time: datetime | None = None,
        key: str | None = None,
        keys: Sequence[str] | None = None,
    ) -> Recorded:
        """Remember a turn, or any messages in order. Durable when it returns.

        With `key` (or one of `keys` per message) recording the same again changes nothing, so a
        call whose outcome is unknown can be repeated. `event_time` is when it was said, for
        messages that do not say so themselves; None means now. Memory blocks that a context put
        into a text are taken out again, messages that are nothing else are left out, and secrets
        are masked. Raises EmptyInput, InvalidInput, RedactionFailed; nothing is stored then.
        """
        given = turn_of(user, assistant, messages)
        if not given:
            raise EmptyInput("nothing to record: give user, assistant or messages")
        if keys is None:
            base = key if key is not None else self._parts.new_id()
            keys = [f"{base}:{index}" for index in range(len(given))]
        if len(keys) != len(given):
            raise InvalidInput(f"{len(given)} messages with {len(keys)} keys")
        if len(set(keys)) != len(keys):  # the second would be taken for the first, and be lost
            raise InvalidInput("two messages of one turn have the same key")
        now = self._parts.clock()
        ready = [
            (key, own)
            for key, message in zip(keys, given, strict=True)
            if (own := as_recorded(message, event_time, self._parts.redact)) is not None
        ]
        if not ready:
            raise EmptyInput("nothing to record: all of it was lent from memory")
        stored = await self._parts.journal.append_messages(
            self.scope,
            self.name,
            ready,
            agent=self.agent,
            now=now,
        )
        self._parts.written()
        return Recorded(messages=tuple(stored))

    async def has(self, keys: Sequence[str]) -> set[str]:
        """Those of the keys under which a message of this conversation is recorded already."""
        ids = {message_id(self.scope, self.name, key): key for key in keys}
        found = await self._parts.journal.messages_by_id(self.scope, list(ids))
        return {ids[each] for each in found}

    async def build_context(
        self,
        message: Given | None,
        *,
        budget: int | None = None,
        system: str | None = None,
        reserve: int | None = None,
        k: int | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        query: str | None = None,
        policy: ContextPolicy | None = None,
    ) -> Context:
        """Everything the model should see for `message`, within `budget` tokens, and why.

        `budget` covers all messages, the definitions of `tools` (in any provider's shape) and
        `reserve`, the room left for the answer (by default the settings', but no more than a
        quarter of the budget). `k` is the most episodes recalled. `query` is what memory is asked,
        where the message says more than the user did, such as a prompt with documents in it.
        `policy` says how the room is shared out. The context is kept as a snapshot before it is
        returned; the next one of the session keeps its beginning as far as it can.

        In the middle of a turn, `message` is the tool's result, or None when the result is
        recorded already; what is recalled then answers what the user asked last. Raises
        BudgetError when tools, system, message and reserve alone do not fit; EmptyInput,
        InvalidInput.
        """
        parts, user = self._parts, self._user
        new = None if message is None else as_message(message, Role.USER).require_content()
        new = new and parts.redact.message(new)
        settings = parts.settings
        budget = settings.budget if budget is None else whole("budget", budget)
        reserve = (
            max(0, min(settings.reserve, budget // 4))
            if reserve is None
            else whole("reserve", reserve)
        )
        k = None if k is None else at_least_one(k)
        definitions = definitions_of(tools)
        behind = await parts.lagging(READ_WAIT)
        now = parts.clock()
        reading = asyncio.ensure_future(self._window())
        if query is None:
            asked = strip_fences(new.text) if _is_asking(new) else _asked_last((await reading)[0])
        else:
            asked = query = parts.redact(query)
        k = parts.policy.offered(settings.context_k, asked) if k is None else k
        knowing = asyncio.ensure_future(
            user._search.facts(asked, now=now, before=_said_before(reading, asked))
        )
        wish = Wish(
            k, now, facts=partial(_ranked_facts, knowing), shown=partial(self._shown, reading)
        )
        (window, no_window), episodes, facts, previous = await asyncio.gather(
            reading, user._episodes(asked, wish), knowing, self._previous()
        )
        warnings = (*_not_caught_up(behind), *episodes.warnings, *await user._other_spaces())
        context = assemble(
            ContextParts(
                system=system,
                tools=definitions,
                window=window,
                message=new,
                pinned=facts.pinned,
                facts=facts.facts.items,
                episodes=episodes.items,
                k=k,
                outdated=facts.outdated,
                dropped=(*episodes.dropped, *facts.facts.dropped),
                unavailable=all_named(no_window, *episodes.unavailable, *facts.facts.unavailable),
                behind=behind,
                warnings=warnings,
                previous=previous,
                query=query,
                policy=policy or parts.context,
                budget=budget,
                reserve=reserve,
                now=now,
            ),
            counter=parts.counter,
        )
        snapshot_id = parts.new_id()
        await parts.snapshots.record(
            self.scope, self.name, context, snapshot_id=snapshot_id, now=now
        )
        shown = {item.id for item in context.items if item.tier == "episodic"}
        parts.used.setdefault(self.scope, set()).update(shown)
        kept = context.model_copy(update={"snapshot_id": snapshot_id})
        parts.recent.put(self.scope, self.name, Previous.of(kept))
        return kept

    async def _shown(self, reading: Awaitable[tuple[Window, Any]]) -> Shown | None:
        """What of this session the window shows."""
        messages = (await reading)[0].messages
        return Shown(self.name, messages[0].seq) if messages else None

    async def _previous(self) -> Previous | None:
        """The newest context of this session, whichever process built it; None for the first, and
        where it cannot be read: a turn does not wait for what only saves tokens."""
        parts = self._parts
        try:
            newest = await parts.snapshots.newest(self.scope, self.name)
            if newest is None:
                return None
            kept = parts.recent.get(self.scope, self.name)
            if kept is not None and kept.snapshot_id == newest:
                return kept
            return Previous.of(await parts.snapshots.show(self.scope, newest), in_order=False)
        except AgentMemoryError as error:
            _log.warning("the context before this one cannot be read: %s", error)
            return None

    async def window(self) -> Window:
        """Working memory of this session, as the next context would see it."""
        return (await self._window())[0]

    async def messages(
        self, *, after_seq: int = 0, newest: int | None = None
    ) -> list[RecordedMessage]:
        """Every message that was ever recorded here, or the `newest` so many; oldest first."""
        return await self._parts.journal.messages(
            self.scope, self.name, after_seq=after_seq, newest=newest
        )

    async def _window(self) -> tuple[Window, str | None]:
        """The window; from the journal, and naming the tier, when Redis does not answer."""
        windows = self._parts.windows
        window, missing = await or_named(windows.read(self.scope, self.name))
        if window is None:
            window = await windows.from_journal(self.scope, self.name)
        return window, missing


def _not_caught_up(tiers: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name} memory has not caught up with what was recorded" for name in tiers)


def _is_asking(message: Message | None) -> TypeGuard[Message]:
    """Whether it says itself what memory is to answer; in the middle of a turn it does not."""
    return message is not None and message.role is not Role.TOOL


def _asked_last(window: Window) -> str:
    """What the user said last; '' when that is not in the window."""
    users = (message.text for message in reversed(window.messages) if message.role is Role.USER)
    return next(users, "")


async def _said_before(reading: Awaitable[tuple[Window, Any]], query: str) -> list[str]:
    """What was said before the query, the newest first, when the window has been read."""
    window, _ = await reading
    said = (
        message.text
        for message in reversed(window.messages)
        if message.role in (Role.USER, Role.ASSISTANT)
    )
    return [text for text in islice(said, REMEMBERED + 1) if text and text != query][:REMEMBERED]


async def _ranked_facts(knowing: Awaitable[Known]) -> Sequence[Recalled]:
    return (await knowing).together.items


def _note_kind(kind: str) -> str:
    """The kind of its events, which no projection has."""
    return f"note.{valid_name('kind', kind)}"


def _note(event: Event) -> Note:
    return Note.from_json({**event.body, "position": event.position, "noted_at": event.recorded_at})


def _merged(episodes: Recall, facts: Recall, warnings: tuple[str, ...]) -> Recall:
    return Recall(
        items=(*episodes.items, *facts.items),
        dropped=(*episodes.dropped, *facts.dropped),
        unavailable=all_named(*episodes.unavailable, *facts.unavailable),
        warnings=warnings,
    )
