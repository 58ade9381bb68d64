"""What an assertion changes in what is believed: pure, and in two times.

Facts that exclude each other (the objects of a single-valued predicate; a predicate and its
opposite about one object) share a slot. A slot's timeline is a fold over marks, in the order of
the time that they are about:

    claim  x @ t    x holds from t, whatever excludes it ends at t
    denial x @ t    x ends at t

Believed facts carry their own marks (`attested`, `denied`), so that the fold can be done again
with one mark more whenever an assertion comes in, also one about the past. Learning the same
things in another order gives the same timeline. A version is believed until a different one takes
its place; none is ever changed but for its sources and marks.

What people say also comes with bounds and with authority:

- `valid_to` paints a closed span over whatever was believed in it; around it all stays as it was,
  and what held at its end goes on.
- A caller's own word (`origin="stated"`) ends the whole version that holds at its start, although
  somebody said later that it held. What was read out of a message (or promoted) ends it only up to
  the next moment at which it was said to hold.
- What is asserted later wins where two marks are about the same moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from memory.codec import content_id
from memory.models import Assertion, Fact, Moment, Origin, Value
from memory.semantic import names
from memory.semantic.predicates import key as predicate_key
from memory.times import iso

MARKS_LIMIT = 128
"""The most moments that a version keeps of each kind; beyond it those in the middle go."""


class Change(Value):
    """What to do to the store, together or not at all.

    Versions in `close` are no longer believed from `at` on; those in `add` are; those in `touch`
    stay what they are (same id, same times) and have more sources and marks.
    """

    at: Moment
    close: tuple[str, ...] = ()
    add: tuple[Fact, ...] = ()
    touch: tuple[Fact, ...] = ()


class Slot(NamedTuple):
    """What a store has to read before it applies an assertion.

    `object` is None when all objects of the subject and these predicates are needed. Keys.
    """

    subject: str
    predicates: tuple[str, ...]
    object: str | None


def slot(assertion: Assertion) -> Slot:
    """Where the facts lie that the assertion can change."""
    predicates = [predicate_key(assertion.predicate)]
    if assertion.opposite is not None:
        predicates.append(predicate_key(assertion.opposite))
    wanted = None if assertion.single else names.key(assertion.object)
    return Slot(names.key(assertion.subject), tuple(predicates), wanted)


def fact_id(subject: str, predicate: str, object: str) -> str:
    """What all versions of a fact share, however its names are spelled."""
    return content_id("fact", names.key(subject), predicate_key(predicate), names.key(object))


def change(believed: Iterable[Fact], assertion: Assertion) -> Change:
    """What the assertion changes in the facts that are believed.

    `believed` may hold more than the assertion is about; whatever is not in its slot, or no longer
    believed, is left alone.
    """
    about = slot(assertion)
    versions = _Versions(fact for fact in believed if _lies_in(fact, about))
    at = max(chain([assertion.learnt_at], (fact.learnt_at for fact in versions.all)))
    board = _Board(assertion, versions)
    board.put(assertion)
    return _difference(versions, board, assertion, at)


def _lies_in(fact: Fact, about: Slot) -> bool:
    return (
        fact.unlearnt_at is None
        and names.key(fact.subject) == about.subject
        and predicate_key(fact.predicate) in about.predicates
        and about.object in (None, names.key(fact.object))
    )


class _Versions:
    """The believed versions of a slot, by the fact that they are versions of."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.all = sorted(facts, key=lambda fact: (fact.valid_from, fact.id))
        self.of: dict[str, list[Fact]] = {}
        for fact in self.all:
            self.of.setdefault(fact.fact_id, []).append(fact)


class _Span(NamedTuple):
    """[start, end) of one fact; `end` None: it goes on."""

    start: datetime
    end: datetime | None

    def covers(self, moment: datetime) -> bool:
        return self.start <= moment and (self.end is None or moment < self.end)

    def meets(self, fact: Fact) -> bool:
        """They have a moment in common."""
        if fact.valid_from == fact.valid_to:
            return False
        ends_before = self.end is not None and self.end <= fact.valid_from
        return not ends_before and (fact.valid_to is None or self.start < fact.valid_to)

    @property
    def is_empty(self) -> bool:
        return self.start == self.end


class _Board:
    """The marks of a slot, and the fold over them."""

    def __init__(self, assertion: Assertion, versions: _Versions) -> None:
        self.this = fact_id(assertion.subject, assertion.predicate, assertion.object)
        self.claims: dict[str, set[datetime]] = {self.this: set()}
        self.denials: dict[str, set[datetime]] = {self.this: set()}
        self._kinds = {self.this: _kind(assertion)}
        self._single = assertion.single
        for version in versions.all:
            self._kinds[version.fact_id] = _kind(version)
            claims = self.claims.setdefault(version.fact_id, set())
            denials = self.denials.setdefault(version.fact_id, set())
            claims.update(_claimed(version))
            denials.update(_denied(version))

    def excludes(self, one: str, other: str) -> bool:
        """Whether two facts of the slot cannot hold at once."""
        if one == other:
            return False
        first, second = self._kinds[one], self._kinds[other]
        if first.predicate == second.predicate:
            return self._single
        return first.object == second.object

    def put(self, assertion: Assertion) -> None:
        """The assertion's own marks, and out with those that it overrules."""
        spans = self.fold()
        start, end = assertion.valid_from, assertion.valid_to
        others = [other for other in self.claims if self.excludes(self.this, other)]
        ended = others if assertion.holds else [self.this]
        if end is None:
            if assertion.origin == "stated":
                for fact in ended:
                    self._end_whole(fact, spans[fact], start)
        else:
            self._paint(assertion, ended, spans, start, end)
        for moment in filter(None, (start, assertion.said_at)):
            mine, against = self.claims, self.denials
            if not assertion.holds:
                mine, against = against, mine
            mine[self.this].add(moment)
            against[self.this].discard(moment)
            if assertion.holds:
                for other in others:
                    self.claims[other].discard(moment)

    def _end_whole(self, fact: str, spans: Sequence[_Span], start: datetime) -> None:
        """Forget that it was said to hold later, in the version that holds up to `start`."""
        for span in spans:
            if span.covers(start):
                self.claims[fact] = {
                    moment
                    for moment in self.claims[fact]
                    if moment < start or not span.covers(moment)
                }

    def _paint(
        self,
        assertion: Assertion,
        ended: Sequence[str],
        spans: dict[str, list[_Span]],
        start: datetime,
        end: datetime,
    ) -> None:
        """Clear [start, end) for the assertion; what held at `end` holds again from there."""
        at_end = {fact for fact, held in spans.items() if any(span.covers(end) for span in held)}
        for fact in ended:
            self.claims[fact] = {m for m in self.claims[fact] if not start <= m < end}
            self.denials[fact] = {m for m in self.denials[fact] if not start <= m <= end}
            if fact in at_end:
                self.claims[fact].add(end)
        if assertion.holds:
            self.denials[self.this] = {m for m in self.denials[self.this] if not start <= m < end}
            if self.this not in at_end:
                self.denials[self.this].add(end)

    def fold(self) -> dict[str, list[_Span]]:
        """When each fact of the slot holds, oldest first."""
        spans: dict[str, list[_Span]] = {fact: [] for fact in self.claims}
        since: dict[str, datetime] = {}

        def end(fact: str, moment: datetime) -> None:
            start = since.pop(fact, None)
            if start is not None and start < moment:
                spans[fact].append(_Span(start, moment))

        for moment, claims, fact in self._in_order():
            if not claims:
                end(fact, moment)
                continue
            for other in [held for held in since if self.excludes(fact, held)]:
                end(other, moment)
            since.setdefault(fact, moment)
        for fact, start in since.items():
            spans[fact].append(_Span(start, None))
        return spans

    def _in_order(self) -> list[tuple[datetime, bool, str]]:
        """Every mark by its time; at the same time denials come first, then by fact."""
        claims = ((m, True, fact) for fact, moments in self.claims.items() for m in moments)
        denials = ((m, False, fact) for fact, moments in self.denials.items() for m in moments)
        return sorted(chain(claims, denials))


class _Kind(NamedTuple):
    """What decides whether two facts of a slot exclude each other. Keys."""

    predicate: str
    object: str


def _kind(statement: Fact | Assertion) -> _Kind:
    return _Kind(predicate_key(statement.predicate), names.key(statement.object))


def _claimed(version: Fact) -> tuple[datetime, ...]:
    if version.attested or version.valid_from == version.valid_to:
        return version.attested
    return (version.valid_from,)


def _denied(version: Fact) -> tuple[datetime, ...]:
    if version.attested or version.denied or version.valid_to is None:
        return version.denied
    return (version.valid_to,)


# --- from the timeline back to versions ----------------------------------------------------------


class _Draft(NamedTuple):
    """A version as the timeline wants it.

    `named` has the spelling that came first. `parents` are the believed versions that it replaces
    or goes on from; `told` is the assertion where it speaks of this version.
    """

    fact: str
    span: _Span
    attested: tuple[datetime, ...]
    denied: tuple[datetime, ...]
    named: Fact | Assertion
    parents: tuple[Fact, ...]
    told: Assertion | None


def _difference(versions: _Versions, board: _Board, assertion: Assertion, at: datetime) -> Change:
    close: list[str] = []
    add: list[Fact] = []
    touch: list[Fact] = []
    for fact, spans in sorted(board.fold().items()):
        before = {version.id: version for version in versions.of.get(fact, ())}
        kept: set[str] = set()
        for draft in _drafts(fact, spans, board, tuple(before.values()), assertion):
            version = _version(draft, assertion, at)
            kept.add(version.id)
            if version.id not in before:
                add.append(version)
            elif version != before[version.id]:
                touch.append(version)
        close.extend(version for version in before if version not in kept)
    return Change(at=at, close=tuple(close), add=tuple(add), touch=tuple(touch))


def _drafts(
    fact: str,
    spans: Sequence[_Span],
    board: _Board,
    before: tuple[Fact, ...],
    assertion: Assertion,
) -> list[_Draft]:
    claims, denials = sorted(board.claims[fact]), sorted(board.denials[fact])
    if not spans and denials:
        spans = [_Span(denials[0], denials[0])]
    drafts = []
    for number, span in enumerate(spans):
        speaks = board.this == fact and _speaks_of(assertion, number, spans)
        drafts.append(
            _Draft(
                fact=fact,
                span=span,
                attested=_thinned(m for m in claims if span.covers(m)),
                denied=_thinned(m for m in denials if _home(spans, m) == number),
                named=before[0] if before else assertion,
                parents=tuple(v for v in before if _is_parent(v, number, spans)),
                told=assertion if speaks else None,
            )
        )
    return drafts


def _speaks_of(assertion: Assertion, number: int, spans: Sequence[_Span]) -> bool:
    if not assertion.holds:
        return _home(spans, assertion.valid_from) == number
    said = (assertion.valid_from, assertion.said_at)
    return any(moment is not None and spans[number].covers(moment) for moment in said)


def _is_parent(version: Fact, number: int, spans: Sequence[_Span]) -> bool:
    if version.valid_from == version.valid_to:
        return _home(spans, version.valid_from) == number
    return spans[number].meets(version) or spans[number].is_empty


def _home(spans: Sequence[_Span], denial: datetime) -> int:
    """The version that remembers a denial: the last that begins before it, else the first."""
    earlier = [number for number, span in enumerate(spans) if span.start <= denial]
    return earlier[-1] if earlier else 0


def _thinned(moments: Iterable[datetime]) -> tuple[datetime, ...]:
    ordered = tuple(moments)
    if len(ordered) <= MARKS_LIMIT:
        return ordered
    half = MARKS_LIMIT // 2
    return (*ordered[:half], *ordered[-half:])


_STRENGTH: dict[Origin, int] = {"stated": 2, "extracted": 1, "promoted": 0}


def _version(draft: _Draft, assertion: Assertion, at: datetime) -> Fact:
    """The draft as a fact: the version that already says this, or a new one."""
    supports: list[Fact | Assertion] = [*draft.parents]
    if draft.told is not None and (draft.told.holds or not draft.parents):
        supports.append(draft.told)
    supports = supports or [draft.named]
    sources = [*draft.parents, *([draft.told] if draft.told else ())]
    attributes = {name: value for each in supports for name, value in each.attributes.items()}
    same = next(
        (
            parent
            for parent in draft.parents
            if (parent.valid_from, parent.valid_to) == draft.span
            and parent.attributes == attributes
        ),
        None,
    )
    return Fact(
        id=same.id if same else _version_id(draft, assertion),
        fact_id=draft.fact,
        subject=draft.named.subject,
        predicate=draft.named.predicate,
        object=draft.named.object,
        valid_from=draft.span.start,
        valid_to=draft.span.end,
        learnt_at=same.learnt_at if same else at,
        sources=tuple(dict.fromkeys(chain.from_iterable(each.sources for each in sources))),
        origin=max((each.origin for each in supports), key=_STRENGTH.__getitem__),
        confidence=max(each.confidence for each in supports),
        attributes=attributes,
        attested=draft.attested,
        denied=draft.denied,
    )


def _version_id(draft: _Draft, assertion: Assertion) -> str:
    return content_id("version", draft.fact, assertion.id, iso(draft.span.start))
