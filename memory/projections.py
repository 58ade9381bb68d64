"""The four projections: what each does with the events it is fed. All are idempotent.

working    messages → the session's window in Redis, folded into a summary when it is full
episodic   messages → episodes: split, embedded once, indexed
extract    messages → facts that they state, back into the journal as events
semantic   facts    → the graph
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import NamedTuple, Protocol

from memory import summary as summaries
from memory import window as windows
from memory.codec import content_id
from memory.episodic import EpisodicMemory
from memory.errors import Corrupt
from memory.journal import Event, Journal, NewEvent
from memory.models import Assertion, RecordedMessage, Scope, Summary, Value, Window
from memory.redact import only_masks
from memory.semantic import SemanticMemory
from memory.semantic.extract import facts as facts_in
from memory.semantic.predicates import Registry
from memory.summary import Summariser
from memory.tokens import TokenCounter
from memory.working import WorkingMemory

MESSAGE, SUMMARY, FACT, FACT_PINNED = "message", "summary", "fact", "fact_pinned"
ARCHIVED, PINNED = "archived", "pinned"
"""Kinds of event in the journal."""

TOGETHER = 16
"""Facts that are applied in one transaction. A whole batch can take a graph longer than it has for
one, and would come again and fail again, for ever."""

OLDEST = 512
"""Messages that are looked at for one summary. A window may hold those of a whole day when a model
was away, and reading them all for each summary would hold up everything else."""

SEEN = 1_024
"""Sessions of which it is remembered where their windows ended."""
ENOUGH = 64
"""Messages that are read beside a window, at most: it has got most of what is newer by then."""

Clock = Callable[[], datetime]

_log = logging.getLogger(__name__)


class Later(Protocol):
    """Somebody who summarises in the background what a window has no room for."""

    def request(self, scope: Scope, session: str) -> None:
        """The session's window is over its limit."""
        ...

    async def problem(self, scope: Scope, session: str) -> str:
        """Why it could not be summarised yet, for people; '' when nothing went wrong."""
        ...


class _Beside(NamedTuple):
    """All messages of a session with seq > `last`; none are known where that is None."""

    last: int | None
    messages: Sequence[RecordedMessage]

    def after(self, seq: int) -> list[RecordedMessage] | None:
        """Those after this place; None where some of them may not be among these."""
        if self.last is None or seq < self.last:
            return None
        return [message for message in self.messages if message.seq > seq]


class Windows:
    """Working memory kept true to the journal: appended to, folded, and rebuilt when it is lost.

    Without `later`, what a window has no room for is folded into excerpts at once. With it, that
    waits in the window until it has been summarised, and reading leaves it out.
    """

    def __init__(
        self,
        journal: Journal,
        working: WorkingMemory,
        counter: TokenCounter,
        *,
        limit: int,
        summary_limit: int,
        ttl: timedelta | None,
        clock: Clock,
        later: Later | None = None,
    ) -> None:
        self._journal = journal
        self._working = working
        self._counter = counter
        self._limit = limit
        self._summary_limit = windows.summary_limit(limit, summary_limit)
        self._ttl = ttl
        self._clock = clock
        self._later = later
        self._excerpts = summaries.Excerpts(counter.count)
        self._ends: OrderedDict[tuple[Scope, str], int] = OrderedDict()
        """The last message of the windows that were read last."""

    async def append(self, scope: Scope, session: str, messages: Sequence[RecordedMessage]) -> None:
        """Bring messages into the window, and have what then does not fit summarised."""
        if not await self._working.append(scope, session, messages, self._sizes(messages)):
            await self._rebuild(scope, session)
        if self._later is None:
            while await self.compact(scope, session, self._excerpts):
                continue
            return
        window = await self._read(scope, session, enough=self._limit)
        if window is not None and window.tokens > self._limit:
            self._later.request(scope, session)

    async def read(self, scope: Scope, session: str) -> Window:
        """The window as of now: what Redis holds, and what it has not been told of yet.

        Obeys the limit at the first read, also when the limit was lowered meanwhile.
        """
        enough = None if self._later is None else self._limit
        reading = self._read(scope, session, enough=enough)
        window, beside = await asyncio.gather(reading, self._beside(scope, session))
        if window is None:
            return await self.from_journal(scope, session)
        newer = beside.after(window.last_seq)
        if newer is None:
            newer = await self._journal.messages(scope, session, after_seq=window.last_seq)
        self._ends[scope, session] = window.last_seq
        self._ends.move_to_end((scope, session))
        if len(self._ends) > SEEN:
            self._ends.popitem(last=False)
        return await self._within_limit(scope, session, self._extended(window, newer))

    async def _beside(self, scope: Scope, session: str) -> _Beside:
        """What has come since the window was read before, asked for while it is read again."""
        after = self._ends.get((scope, session))
        if after is None:
            return _Beside(None, ())
        found = await self._journal.messages(scope, session, after_seq=after, newest=ENOUGH)
        return _Beside(after if len(found) < ENOUGH else found[0].seq - 1, found)

    async def from_journal(self, scope: Scope, session: str) -> Window:
        """The window as the journal alone tells it: the newest summary and what came after it.

        What was before a silence longer than the time to live is not in it.
        """
        return await self._within_limit(scope, session, await self._told(scope, session))

    async def compact(self, scope: Scope, session: str, summariser: Summariser) -> bool:
        """Fold the oldest whole groups into the summary; False when there was nothing to do.

        The summary is in the journal before anything leaves the window, under a key that is made
        of what it extends: of several that extend the same, the first one counts, whoever wrote
        it. One that is in the journal already, and not yet in the window, is not made again.
        """
        window, away = await self._to_fold(scope, session)
        if window is None or not away:
            return False
        stored = await self._newest_summary(scope, session)
        if stored is None or not _goes_on(stored, window):
            made = await summariser.extend(window.summary, away, limit=self._summary_limit)
            event = _summary_event(session, window.summary, made, now=self._clock())
            written = await self._journal.append(scope, [event], now=event.event_time)
            stored = Summary.from_json(written[0].body)
        if stored.covers_to > window.messages[-1].seq:  # of somebody who has read more
            await self._rebuild(scope, session)
            return True
        return await self._working.fold(scope, session, read=window, summary=stored)

    async def _to_fold(
        self, scope: Scope, session: str
    ) -> tuple[Window | None, tuple[RecordedMessage, ...]]:
        """The window, or as much of it as is enough to say what is to be folded, and that."""
        part = await self._read(scope, session, oldest=OLDEST)
        if part is None:
            await self._rebuild(scope, session)
            part = await self._read(scope, session, oldest=OLDEST)
        if part is None or not part.messages or part.messages[-1].seq == part.last_seq:
            return part, () if part is None else self._plan(part)
        away = windows.plan_of_oldest(
            part, self._limit, self._counter.message, summary_tokens=self._summary_limit
        )
        if away:
            return part, away
        window = await self._read(scope, session)
        return window, () if window is None else self._plan(window)

    async def _within_limit(self, scope: Scope, session: str, window: Window) -> Window:
        if self._later is None:
            return self._folded(window)
        shown = windows.shown(self._with_room(window), self._limit, self._counter.message)
        if not shown.unsummarised:
            return shown
        self._later.request(scope, session)
        problem = await self._later.problem(scope, session)
        return shown.model_copy(update={"problem": problem})

    async def _told(self, scope: Scope, session: str) -> Window:
        """What the journal tells of the window, whatever its size."""
        summary = await self._newest_summary(scope, session)
        if summary is None:
            return self._alive((), None, await self._journal.messages(scope, session))
        before = await self._journal.messages(scope, session, before_seq=summary.covers_from)
        last_covered = summary.covers_to - 1
        after = await self._journal.messages(scope, session, after_seq=last_covered)
        return self._alive(before, summary, after)

    async def _newest_summary(self, scope: Scope, session: str) -> Summary | None:
        stored = await self._journal.events_of(scope, kinds=[SUMMARY], session=session, newest=1)
        return Summary.from_json(stored[0].body) if stored else None

    async def _read(
        self,
        scope: Scope,
        session: str,
        *,
        enough: int | None = None,
        oldest: int | None = None,
    ) -> Window | None:
        """What Redis holds; None when it holds nothing that can be read."""
        try:
            window = await self._working.read(scope, session, enough=enough, oldest=oldest)
        except Corrupt as error:
            _log.warning("a window is rebuilt from the journal: %s", error)
            await self._working.clear(scope, session)
            return None
        if window is not None and window.unsummarised and windows.is_torn(window):
            return await self._read(scope, session)
        return window

    async def _rebuild(self, scope: Scope, session: str) -> None:
        window = await self._told(scope, session)
        await self._working.rebuild(scope, session, window, self._sizes(window.messages))

    def _plan(self, window: Window) -> tuple[RecordedMessage, ...]:
        return windows.plan(
            window, self._limit, self._counter.message, summary_tokens=self._summary_limit
        )

    def _folded(self, window: Window) -> Window:
        """The window within its limit: what does not fit is in the summary."""
        away = self._plan(window)
        if not away:
            return window
        summary = summaries.extend(
            window.summary, away, limit=self._summary_limit, count=self._counter.count
        )
        return windows.fold(window, summary, self._counter.message)

    def _with_room(self, window: Window) -> Window:
        """With its summary shortened for this once, when that was made for a larger window."""
        before = window.summary
        if before is None or before.tokens <= self._summary_limit:
            return window
        shorter = summaries.extend(before, (), limit=self._summary_limit, count=self._counter.count)
        tokens = window.tokens - before.tokens + shorter.tokens
        return window.model_copy(update={"summary": shorter, "tokens": tokens})

    def _extended(self, window: Window, newer: Sequence[RecordedMessage]) -> Window:
        if not newer:
            return window
        return window.model_copy(
            update={
                "messages": (*window.messages, *newer),
                "last_seq": newer[-1].seq,
                "tokens": window.tokens + sum(self._sizes(newer)),
            }
        )

    def _alive(
        self,
        before: Sequence[RecordedMessage],
        summary: Summary | None,
        messages: Sequence[RecordedMessage],
    ) -> Window:
        """The window without what its session's time to live has ended.

        `before` are all messages that are older than what the summary covers, and the first of
        `messages` is the newest that it does cover. Where `before` is no lead, the session had
        ended in between.
        """
        count = self._counter.message
        last_seq = messages[-1].seq if messages else 0
        if ended := self._ended(messages):
            kept = windows.gather(messages[ended:], count, last_seq=last_seq)
            return self._since(kept, messages[ended - 1])
        rest = messages if summary is None else messages[1:]
        if windows.instructions(before) < len(before):
            kept = windows.gather(rest, count, summary=summary, last_seq=last_seq)
            return self._since(kept, before[-1])
        return windows.gather((*before, *rest), count, summary=summary, last_seq=last_seq)

    def _ended(self, messages: Sequence[RecordedMessage]) -> int:
        """How many of the messages are before the newest silence that ended their session."""
        if self._ttl is None or not messages:
            return 0
        moments = [*(message.recorded_at for message in messages), self._clock()]
        silences = [i for i, (a, b) in enumerate(pairwise(moments), 1) if b - a > self._ttl]
        return silences[-1] if silences else 0

    def _since(self, window: Window, last: RecordedMessage) -> Window:
        """The window of a session that ended some time after `last`, and then went on."""
        if self._ttl is None:
            return window
        return window.model_copy(update={"expired_at": last.recorded_at + self._ttl})

    def _sizes(self, messages: Sequence[RecordedMessage]) -> list[int]:
        return [self._counter.message(message) for message in messages]


def _summary_event(
    session: str, before: Summary | None, summary: Summary, *, now: datetime
) -> NewEvent:
    """Keyed by what it extends, so that the journal takes one of all that extend the same."""
    first, last = summary.covers_from, before.covers_to if before else summary.covers_from - 1
    key = content_id("summary", session, f"{first}-{last}")
    return NewEvent(kind=SUMMARY, key=key, session=session, body=summary.to_json(), event_time=now)


def _goes_on(stored: Summary, window: Window) -> bool:
    """Whether the summary is of this window, and covers more than its own."""
    if window.summary is not None:
        first, last = window.summary.covers_from, window.summary.covers_to
    else:
        first = window.messages[windows.lead(window.messages)].seq
        last = first - 1
    return stored.covers_from == first and stored.covers_to > last


class WorkingProjection:
    name = "working"
    kinds = (MESSAGE,)

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    async def apply(self, events: Sequence[Event]) -> None:
        for (scope, session), messages in _by_session(events):
            await self._windows.append(scope, session, messages)


class EpisodicProjection:
    name = "episodic"
    kinds = (MESSAGE,)

    def __init__(self, episodic: EpisodicMemory) -> None:
        self._episodic = episodic

    async def apply(self, events: Sequence[Event]) -> None:
        for scope, group in _by_scope(events):
            await self._episodic.remember(scope, _messages(group))


class ExtractProjection:
    name = "extract"
    kinds = (MESSAGE,)

    def __init__(
        self, journal: Journal, registry: Registry, clock: Clock, written: Callable[[], object]
    ) -> None:
        self._journal = journal
        self._registry = registry
        self._clock = clock
        self._written = written

    async def apply(self, events: Sequence[Event]) -> None:
        for scope, group in _by_scope(events):
            found = [
                fact
                for message in _messages(group)
                for fact in facts_in(message, registry=self._registry)
            ]
            if found:
                await self._journal.append(scope, fact_events(found), now=self._clock())
                self._written()


class SemanticProjection:
    name = "semantic"
    kinds = (FACT, FACT_PINNED)

    def __init__(self, semantic: SemanticMemory) -> None:
        self._semantic = semantic

    async def apply(self, events: Sequence[Event]) -> None:
        for scope, of_user in _by_scope(events):
            for kind, group in groupby(of_user, key=lambda event: event.kind):
                if kind == FACT_PINNED:
                    await self._pin(scope, [FactPinned.from_json(each.body) for each in group])
                else:
                    await self._assert(scope, [Assertion.from_json(each.body) for each in group])

    async def _assert(self, scope: Scope, facts: Sequence[Assertion]) -> None:
        for start in range(0, len(facts), TOGETHER):
            await self._semantic.apply(scope, *facts[start : start + TOGETHER])

    async def _pin(self, scope: Scope, pins: Sequence[FactPinned]) -> None:
        for pin in pins:
            await self._semantic.pin(scope, pin.subject, pin.predicate, pin.object, pin.pinned)


class FactPinned(Value):
    """That a slot of facts (or of one object in it) is in every context, or no longer."""

    subject: str
    predicate: str
    object: str | None = None
    pinned: bool


def pin_event(pin: FactPinned, key: str, now: datetime) -> NewEvent:
    return NewEvent(kind=FACT_PINNED, key=f"pin:{key}", body=pin.to_json(), event_time=now)


def fact_events(assertions: Iterable[Assertion]) -> list[NewEvent]:
    """Facts as events for the journal, keyed by the assertion: asserting again changes nothing.

    That there was a secret, masked, is no fact about anything.
    """
    return [
        NewEvent(
            kind=FACT,
            key=f"fact:{assertion.id}",
            body=assertion.to_json(),
            event_time=assertion.valid_from,
        )
        for assertion in assertions
        if not (only_masks(assertion.subject) or only_masks(assertion.object))
    ]


def _by_scope(events: Sequence[Event]) -> Iterable[tuple[Scope, list[Event]]]:
    """The events of each user, in order. Users do not depend on one another."""
    ordered = sorted(events, key=lambda e: (e.scope.tenant, e.scope.user, e.position))
    for scope, group in groupby(ordered, key=lambda e: e.scope):
        yield scope, list(group)


def _messages(events: Iterable[Event]) -> list[RecordedMessage]:
    return [RecordedMessage.from_json(event.body) for event in events]


def _by_session(
    events: Sequence[Event],
) -> Iterable[tuple[tuple[Scope, str], list[RecordedMessage]]]:
    for scope, of_user in _by_scope(events):
        ordered = sorted(_messages(of_user), key=lambda message: (message.session, message.seq))
        for session, group in groupby(ordered, key=lambda message: message.session):
            yield (scope, session), list(group)
