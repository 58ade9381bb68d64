"""A night of reading: a language model reads what users and tools said since the last one.

Portion by portion: claimed, asked about, judged, and kept together with the note that it was read,
so that a killed night goes on where it was. Every failure is of one of three kinds:

- The answer is no use (declined, empty, no list, nothing where something is stated): its messages
  have failed once more, and are read again on another night, in smaller company each time.
- The answer did not fit: what came whole is kept, the rest is asked for in smaller portions.
- There is no answer: the model is asked whether anybody is there. When not, the night ends and
  nothing is held against the messages; else they have failed. A budget that is used up ends the
  night too; what alone needs more than that has failed, lest every night end with it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pydantic import Field

from consolidation.extract import (
    FRAME,
    LEAST,
    MESSAGES,
    Judged,
    Request,
    Stated,
    answer_room,
    fitting,
    instructions,
    judged,
    requests,
    room,
    stated_without_model,
)
from memory.errors import LLMError, LLMMalformed, LLMSpent, LLMTooLong, LLMTruncated, LLMUnavailable
from memory.llm import LanguageModel, Spend
from memory.models import Assertion, JsonObject, RecordedMessage, Scope, Value
from memory.semantic.predicates import Registry
from memory.unread import Outcome, Portion, Unread

TOGETHER: Final = (8, 2, 1)
"""Messages that are read together after they have failed once, twice, more often."""
DEATHS: Final = 2
"""Processes that may die over a portion before it counts as failed."""
_PAGE: Final = 2 * MESSAGES

_WHY: Final = {
    "unavailable": "the language model did not answer",
    "refused": "the language model declined to read it",
    "malformed": "the language model's answer was no list of facts",
    "truncated": "the language model's answer was cut off",
    "too_long": "the language model cannot take so much at once",
    "spent": "the night's budget of calls or tokens is used up",
}
NOTHING_FOUND: Final = "the language model found nothing, though something is stated"
DIED: Final = "the process ended while it was read"
TOO_SMALL: Final = "the language model's window is too small to read facts in"
TOO_LITTLE: Final = "a night's budget of tokens is too small to read facts with"
TOO_DEAR: Final = "it needs more than a night's budget of calls or tokens"

_log = logging.getLogger(__name__)


class Used(Value):
    """What a night's reading has used; `failures` are counted by kind of `LLMError`."""

    calls: int = 0
    tokens: int = 0
    failures: dict[str, int] = Field(default_factory=dict)


class Reading(Value):
    """What was read. `facts` are those that were found by the model alone, `rejected` what it
    listed and was not believed.

    `failed` messages could not be read this time, `given_up` of them for good; `waiting` ones were
    not tried. `ended` says why it ended before all were tried, '' when it did not.
    """

    read: int = 0
    facts: int = 0
    rejected: int = 0
    failed: int = 0
    given_up: int = 0
    waiting: int = 0
    usage: Used = Used()
    ended: str = ""


class Reader(NamedTuple):
    """Who reads, where it is kept, and what it may use."""

    llm: LanguageModel
    registry: Registry
    unread: Unread
    spend: Spend


class _Ended(Exception):
    """No more is read this night."""


class _Answer(NamedTuple):
    """What came of asking about a portion; `cut` says that there would have been more."""

    facts: tuple[Assertion, ...]
    new: int
    rejected: Counter[str]
    last: int | None
    cut: bool


class Night:
    """One night of reading, user after user."""

    def __init__(self, reader: Reader, now: datetime) -> None:
        self._llm, self._registry, self._unread, self._spend = reader
        self._now = now
        self._asked = instructions(self._registry)
        self._limit = answer_room(self._llm.window)
        self._room = room(self._llm.window, self._asked, self._llm.count)
        self._at_first = (self._spend.calls, self._spend.tokens)
        self._counts: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._fixed = self._llm.count(self._asked) + FRAME + self._limit
        self.ended = self._cannot_begin()

    def _cannot_begin(self) -> str:
        if self._room < LEAST:
            return TOO_SMALL
        return "" if self._spend.tokens >= self._fixed + LEAST else TOO_LITTLE

    async def read(self, scope: Scope) -> None:
        """Read what is unread of a user. Once a night has ended, this does nothing."""
        if self.ended:
            return
        try:
            await self._unread.tidy(scope)
            due = await self._unread.due(scope, self._now, TOGETHER)
            for session, after in (await self._unread.behind(scope)).items():
                await self._session(scope, session, after)
            for portion in due:
                await self._whole(scope, portion)
        except _Ended as ended:
            self.ended = str(ended)

    @property
    def failed(self) -> bool:
        """Whether it ended early for another reason than its budget."""
        return self.ended not in ("", _WHY["spent"])

    def reading(self, waiting: int) -> Reading:
        """What has been done so far; `waiting` messages were not tried."""
        calls, tokens = self._at_first
        used = Used(
            calls=calls - self._spend.calls,
            tokens=tokens - self._spend.tokens,
            failures=dict(self._failures),
        )
        return Reading(**self._counts, waiting=waiting, usage=used, ended=self.ended)

    # --- portion by portion ----------------------------------------------------------------------

    async def _session(self, scope: Scope, session: str, after: int) -> None:
        failed = False
        while True:
            page = await self._unread.page(scope, session, after=after, size=_PAGE)
            if not page.messages:
                return
            if failed:  # what could not be read must not spoil what comes after it
                page = page.model_copy(update={"before": ()})
            before = self._counts["failed"]
            done = await self._portion(scope, fitting(page, self._room, self._llm.count))
            failed = self._counts["failed"] > before
            after = page.messages[done - 1].seq

    async def _whole(self, scope: Scope, portion: Portion) -> None:
        while portion.messages:
            part = fitting(portion, self._room, self._llm.count)
            portion = portion.without_first(await self._portion(scope, part))

    async def _portion(self, scope: Scope, portion: Portion) -> int:
        """Read the portion or its beginning; how many of its messages are dealt with."""
        asked = requests(portion, self._room, self._llm.count)
        if self._is_too_dear(asked):
            return await self._smaller(scope, portion, TOO_DEAR)
        if await self._unread.begin(scope, portion) > DEATHS:
            await self._fail(scope, portion, DIED)
            return len(portion.messages)
        try:
            answer = await self._answer(portion, asked)
        except LLMSpent as error:
            await self._unread.put_back(scope, portion)
            raise _Ended(_WHY[error.kind]) from error
        except (LLMTruncated, LLMTooLong) as error:
            self._failures[error.kind] += 1
            return await self._smaller(scope, portion, _WHY[error.kind])
        except LLMError as error:
            self._failures[error.kind] += 1
            if isinstance(error, LLMUnavailable) and not await self._is_there():
                await self._unread.put_back(scope, portion)
                raise _Ended(_WHY[error.kind]) from error
            await self._fail(scope, portion, _WHY.get(error.kind, _WHY["malformed"]))
            return len(portion.messages)
        return await self._kept(scope, portion, answer)

    def _is_too_dear(self, asked: Sequence[Request]) -> bool:
        """Whether a whole night's budget may not suffice for these requests."""
        calls, tokens = self._at_first
        needed = sum(self._fixed + self._llm.count(request.data) for request in asked)
        return len(asked) > calls or needed > tokens

    async def _smaller(self, scope: Scope, portion: Portion, reason: str) -> int:
        """Half of a portion that is too large; one message that is has failed."""
        half = len(portion.messages) // 2
        if not half:
            await self._fail(scope, portion, reason)
            return 1
        await self._unread.put_back(scope, portion)
        return await self._portion(scope, portion.first(half))

    async def _kept(self, scope: Scope, portion: Portion, answer: _Answer) -> int:
        """Keep what was found; of an answer that was cut off, what is about the messages before
        the one at which it was."""
        if answer.cut and (len(portion.messages) > 1):
            done = answer.last or 0
            if not done:
                return await self._smaller(scope, portion, _WHY["truncated"])
            await self._unread.put_back(scope, portion)
            portion = portion.first(done)
            of_these = {message.id for message in portion.messages}
            facts = tuple(fact for fact in answer.facts if of_these.issuperset(fact.sources))
            answer = answer._replace(facts=facts, new=min(answer.new, len(facts)), cut=False)
        missed = self._missed(portion, answer)
        if missed:
            reason = _WHY["truncated"] if answer.cut else NOTHING_FOUND
            given_up = await self._unread.failed(scope, missed, reason, now=self._now)
            self._counts.update(failed=len(missed), given_up=given_up)
        about: JsonObject = {
            "model": self._llm.identity,
            "facts": len(answer.facts),
            "rejected": {**answer.rejected},
        }
        ids = tuple(message.id for message in missed)
        await self._unread.finish(
            scope, portion, Outcome(facts=answer.facts, missed=ids, about=about)
        )
        self._counts.update(
            read=len(portion.messages) - len(missed),
            facts=answer.new,
            rejected=answer.rejected.total(),
        )
        return len(portion.messages)

    def _missed(self, portion: Portion, answer: _Answer) -> Sequence[RecordedMessage]:
        """The messages that are to be read once more, although there was an answer."""
        if answer.cut:
            return portion.messages
        if answer.last is not None:
            return ()
        return [each for each in portion.messages if stated_without_model(each, self._registry)]

    async def _fail(self, scope: Scope, portion: Portion, reason: str) -> None:
        _log.warning("messages could not be read for facts: %s", reason)
        given_up = await self._unread.fail(scope, portion, reason, now=self._now)
        self._counts.update(failed=len(portion.messages), given_up=given_up)

    # --- asking ----------------------------------------------------------------------------------

    async def _is_there(self) -> bool:
        """Whether the model answers at all; what it says does not matter."""
        question = "Is anybody there? Answer with one word."
        try:
            await self._llm.text(question, "Hello!", limit=64, spend=self._spend)
        except (LLMUnavailable, LLMSpent):
            return False
        except LLMError:
            pass
        return True

    async def _answer(self, portion: Portion, asked: Sequence[Request]) -> _Answer:
        """What the model lists of a portion, as far as it is believed. Raises LLMError."""
        found: list[Judged] = []
        cut = False
        unread = 0
        for request in asked:
            answer = await self._llm.listed(
                self._asked, request.data, Stated, limit=self._limit, spend=self._spend
            )
            if answer.unread and not answer.items:
                raise LLMMalformed("nothing in the answer is an item")
            cut = cut or answer.truncated
            unread += answer.unread
            found.append(
                judged(answer.items, request, portion, registry=self._registry, now=self._now)
            )
        rejected = sum((Counter(each.rejected) for each in found), Counter[str]())
        if unread:
            rejected["it is no item"] += unread
        facts = {fact.id: fact for each in found for fact in each.facts}
        return _Answer(
            facts=tuple(facts.values()),
            new=sum(each.new for each in found),
            rejected=rejected,
            last=found[-1].last if found else -1,
            cut=cut,
        )
