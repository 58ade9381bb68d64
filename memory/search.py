"""What a question finds among the facts: those about whom it is about.

What is asked of the store, how much and in which order is decided here; what the answers are worth
is decided by `recall`, `former` and `semantic.entities`, which are pure. A store that does not
answer is named in what comes back; only the journal has to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from memory import former, recall
from memory.errors import EmbeddingFailed, TierUnavailable
from memory.former import Former, Replaced
from memory.models import Fact, Recall, Recalled, Scope
from memory.parts import Parts
from memory.semantic import SELF, entities
from memory.semantic import names as entity_names
from memory.semantic.entities import Asked, Whom

T = TypeVar("T")

KNOWN = 200
"""Facts that are looked at for one context, at most."""
OF_A_KIND = 20
"""Facts of one kind that are looked at beside those."""
OF_KINDS = 100
"""Facts of all kinds that are asked for that are looked at beside those."""
OF_OTHERS = 50
"""Facts about whom a question turns out to be about, for each time that is found."""
NEXT_READS = 2
"""How often facts are read again for whom the facts before led to."""
NAME_READS = 3
"""How often the other names of a name are followed."""
PINNED_FACTS = 100
"""Facts that are in every context of a user, at most."""
SHOWN = 30
"""Facts that are offered to a context, at most."""


class _FactsFound(NamedTuple):
    """Facts for a question, those among them that are in every context, whom it is about, and the
    keys of those whose facts were read."""

    facts: list[Fact]
    pinned: list[Fact]
    about: Whom
    read: frozenset[str]


@dataclass(frozen=True)
class Known:
    """Facts for a question: those that are in every context, and the ranked ones beside them; and
    what is no longer so of what was said."""

    pinned: tuple[Recalled, ...] = ()
    facts: Recall = field(default_factory=Recall)
    outdated: Mapping[str, str] = field(default_factory=dict)
    """By the id of a message what of it no longer holds."""

    @property
    def together(self) -> Recall:
        """All of them, best first."""
        items = sorted((*self.pinned, *self.facts.items), key=lambda item: -item.score)
        return self.facts.model_copy(update={"items": tuple(items)})


class Search:
    """The questions of one user."""

    def __init__(self, parts: Parts, scope: Scope) -> None:
        self._parts = parts
        self.scope = scope

    async def facts(
        self, query: str, *, now: datetime, before: Awaitable[Sequence[str]] | None = None
    ) -> Known:
        """Facts for the query: those that are in every context, those about whom it is about, and
        those about the user. What held once, and bears on it, is among the near misses.

        `before` gives what was said before the query, the newest first: whom it named may be
        meant.
        """
        parts = self._parts
        asked = Asked.of(query, await before if before else ())
        (found, missing), (past, _) = await asyncio.gather(
            or_named(self._facts_of(query, asked, now)),
            or_named(self._former(query, asked.keys, now)),
        )
        if found is None:
            return Known(facts=Recall(unavailable=all_named(missing)))
        facts, about = found.facts, found.about
        always = recall.always_known(
            found.pinned, query, now=now, registry=parts.registry, about=about
        )
        if others := former.led_to(about, asked.keys):
            more, _ = await or_named(self._former("", others, now))
            past = [*(past or ()), *(more or ())]
        held = former.asked(past or (), query, now=now, about=about)
        shown = {fact.id for fact in always}
        ranked = recall.rank_facts(
            (fact for fact in facts if fact.id not in shown),
            query,
            now=now,
            limit=SHOWN + parts.policy.near_misses,
            render=parts.registry.render,
            about=about,
        )
        replaced = await self._replaced(held, facts, found.read, now)
        render = parts.registry.render
        return Known(
            pinned=tuple(always),
            facts=Recall(
                items=tuple(ranked[:SHOWN]),
                dropped=(
                    *recall.facts_beyond(ranked, SHOWN),
                    *former.near_misses(replaced, now=now, render=render),
                ),
            ),
            outdated=former.remarks(replaced, now=now, render=render),
        )

    async def names_of(self, name: str) -> list[str]:
        """The keys of every name, as of today, of what is called by this one."""
        parts, own = self._parts, entity_names.key(name)
        naming: dict[str, Fact] = {}
        read: set[str] = set()
        called = frozenset((own,))
        for _ in range(NAME_READS):
            if not (unread := sorted(called - read)):
                break
            found = await parts.semantic.mentioned(
                self.scope,
                unread,
                OF_OTHERS,
                as_of=parts.clock(),
                predicates=sorted(parts.registry.naming),
            )
            naming |= {fact.id: fact for fact in found}
            read.update(unread)
            called = entities.same_as(own, naming.values())
        return sorted(called)

    async def _former(self, query: str, named: Sequence[str], now: datetime) -> list[Fact]:
        """What held once: of those named, and of the user what the query asks for."""
        parts = self._parts
        kinds = recall.asked_for(query, [each.name for each in parts.registry.predicates])
        if not named and not kinds:
            return []
        return await parts.semantic.former(self.scope, named, kinds, former.LOOKED_AT, as_of=now)

    async def _replaced(
        self, past: Sequence[Former], known: Sequence[Fact], keys: Iterable[str], now: datetime
    ) -> list[Replaced]:
        """What held once, with what stands in its place now."""
        parts = self._parts
        slots = former.open_slots(past, known, frozenset(keys), parts.registry)
        elsewhere, _ = await or_named(
            asyncio.gather(
                *(
                    parts.semantic.facts(
                        self.scope, about=subject, predicate=predicate, as_of=now, limit=OF_A_KIND
                    )
                    for subject, predicate in slots
                )
            )
        )
        current = [fact for facts in (known, *(elsewhere or ())) for fact in facts]
        return former.replaced(past, current, now=now, registry=parts.registry)

    async def _facts_of(self, query: str, asked: Asked, now: datetime) -> _FactsFound:
        """The newest facts about the user and whom the query is about. Whom it is about is seen
        from the facts, so that theirs are read next: 'my sister' is somebody."""
        parts = self._parts
        keys, forms = asked.looked_up, asked.looked_up_forms
        found, pinned = await asyncio.gather(
            parts.semantic.mentioned(self.scope, keys, KNOWN, as_of=now, forms=forms),
            parts.semantic.pinned(self.scope, PINNED_FACTS, as_of=now, own=parts.registry.profile),
        )
        if len(found) == KNOWN:
            found += await self._crowded_out(query, asked, now)
        facts = {fact.id: fact for fact in (*pinned, *found)}
        read = set(keys)
        about = entities.whom(asked, facts.values(), parts.registry)
        for _ in range(NEXT_READS):
            unread = [key for key in about.keys if key not in read]
            if not unread:
                break
            more = await parts.semantic.mentioned(self.scope, unread, OF_OTHERS, as_of=now)
            read.update(unread)
            if facts.keys() >= {fact.id for fact in more}:
                break
            facts |= {fact.id: fact for fact in more}
            about = entities.whom(asked, facts.values(), parts.registry)
        return _FactsFound(list(facts.values()), pinned, about, frozenset(read))

    async def _crowded_out(self, query: str, asked: Asked, now: datetime) -> list[Fact]:
        """Where there are too many facts to look at all: those of whom the query names, and the
        user's own of the kinds that it asks for and by which it may speak of somebody."""
        parts = self._parts
        mentioned = parts.semantic.mentioned
        known = [each.name for each in parts.registry.predicates]
        kinds = sorted({*recall.asked_for(query, known), *asked.kin})
        reads = []
        if asked.forms:  # nothing else is written as a name
            named = mentioned(self.scope, asked.named, OF_OTHERS, as_of=now, forms=asked.forms)
            reads.append(named)
        if kinds:
            own = [entity_names.key(SELF)]
            reads.append(mentioned(self.scope, own, OF_KINDS, as_of=now, predicates=kinds))
        return [fact for facts in await asyncio.gather(*reads) for fact in facts]


# --- what did not answer -----------------------------------------------------------------------


async def or_named(work: Awaitable[T]) -> tuple[T | None, str | None]:
    """The result, or None and the name of the tier that did not answer. The journal must."""
    try:
        return await work, None
    except TierUnavailable as error:
        if error.tier == "journal":
            raise
        return None, error.tier
    except EmbeddingFailed:
        return None, "episodic"


async def nothing_known() -> Known:
    return Known()


def all_named(*names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))
