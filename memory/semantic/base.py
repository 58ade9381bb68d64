"""What a store of facts promises, and what the stores share.

A store keeps every version of every fact, and decides nothing: it reads the slot that an assertion
is about, asks `timeline.change`, and writes the answer, all in one transaction. Assertions that
were applied are remembered by id, so that applying one again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, Protocol

from memory.codec import decode, encode
from memory.errors import Corrupt, EmptyInput, InvalidInput
from memory.models import Assertion, Fact, Health, JsonObject, Scope
from memory.semantic import names
from memory.semantic.predicates import key as predicate_key
from memory.semantic.predicates import valid as valid_predicate
from memory.times import from_micros, to_micros


class SemanticMemory(Protocol):
    """Facts of every user, each reachable through its scope alone.

    Every method raises TierUnavailable("semantic", …) when the store does not answer, and Corrupt
    when something comes back that cannot be read or belongs to somebody else.
    """

    async def apply(self, scope: Scope, *assertions: Assertion) -> None:
        """Take the assertions in, in order and all or none; each one only once, by its id.

        Raises EmptyInput or InvalidInput for one that cannot be kept.
        """
        ...

    async def facts(
        self,
        scope: Scope,
        *,
        about: str | Sequence[str] | None = None,
        predicate: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        history: bool = False,
        limit: int | None = None,
    ) -> list[Fact]:
        """The facts that match, newest `valid_from` first, ties by id.

        - `about`: a name (or one of several) that is the subject or the object, in any spelling
        - `as_of`: true at this moment; None: no end is known
        - `known_at`: believed at this moment; None: believed still
        - `history`: every version that there ever was, true or not, believed or not, except where
          `as_of` or `known_at` says otherwise
        - `limit`: of those that match, at most so many. Raises InvalidInput for a limit that is
          not a whole number from 0.
        """
        ...

    async def mentioned(
        self,
        scope: Scope,
        keys: Sequence[str],
        limit: int,
        *,
        as_of: datetime | None = None,
        forms: Sequence[str] = (),
        predicates: Sequence[str] = (),
    ) -> list[Fact]:
        """Believed facts true at `as_of` whose subject or object has one of these `names.key`s, or
        can be asked for by one of these `names.forms`; with `predicates`, only those of such.

        Order and `as_of` as in `facts`.
        """
        ...

    async def pin(
        self, scope: Scope, subject: str, predicate: str, object: str | None, pinned: bool
    ) -> None:
        """Pin what is known of a subject and predicate, or only that of one object; or no longer.

        It is the slot that is pinned: whatever holds in it, now or later. Pinning again changes
        nothing. To unpin a slot leaves pins of single objects of it, and the other way round.
        Raises EmptyInput or InvalidInput for names that no fact can have.
        """
        ...

    async def pinned(
        self, scope: Scope, limit: int, *, as_of: datetime, own: Sequence[str] = ()
    ) -> list[Fact]:
        """Believed facts true at `as_of` that are pinned, and the user's own of the predicates
        `own`. Order and `limit` as in `facts`."""
        ...

    async def former(
        self,
        scope: Scope,
        keys: Sequence[str],
        predicates: Sequence[str],
        limit: int,
        *,
        as_of: datetime,
    ) -> list[Fact]:
        """Believed facts that do not hold at `as_of`: those whose subject or object has one of
        these `names.key`s, and the user's own with one of these predicates.

        Those with the keys come first; for the rest, order and `limit` are as in `facts`.
        """
        ...

    async def clear(self, scope: Scope | None) -> None:
        """Drop everything of this user, pins too; None, for rebuilds only: of everybody."""
        ...

    async def health(self) -> Health: ...


# --- a version as stores keep it ---------------------------------------------------------------


class Row(NamedTuple):
    """A version beside its scope: what is searched, in plain types, and the fact itself, in bytes.

    Times are microseconds since 1970. `body` says everything but whether it is believed still.
    """

    id: str
    fact_id: str
    subject_key: str
    predicate_key: str
    object_key: str
    valid_from: int
    valid_to: int | None
    learnt_at: int
    body: bytes


def row_of(fact: Fact) -> Row:
    return Row(
        id=fact.id,
        fact_id=fact.fact_id,
        subject_key=names.key(fact.subject),
        predicate_key=predicate_key(fact.predicate),
        object_key=names.key(fact.object),
        valid_from=to_micros(fact.valid_from),
        valid_to=None if fact.valid_to is None else to_micros(fact.valid_to),
        learnt_at=to_micros(fact.learnt_at),
        body=encode(fact.model_copy(update={"unlearnt_at": None}).to_json()),
    )


class Pin(NamedTuple):
    """What is pinned, in keys; `object_key` is '' where the slot is pinned whole."""

    subject_key: str
    predicate_key: str
    object_key: str


def pin_of(subject: str, predicate: str, object: str | None) -> Pin:
    """The pin, checked. Raises EmptyInput for a blank name, InvalidInput as `predicates.valid`."""
    for what, name in (("subject", subject), ("object", object)):
        if name is not None and names.is_blank(name):
            raise EmptyInput(f"the {what} of a pin must not be empty")
    return Pin(
        subject_key=names.key(subject),
        predicate_key=predicate_key(valid_predicate(predicate)),
        object_key="" if object is None else names.key(object),
    )


def forms_of(facts: Iterable[Fact]) -> set[tuple[str, str]]:
    """Every other form of the facts' names, beside the key of the name."""
    named = {name for fact in facts for name in (fact.subject, fact.object)}
    return {(form, names.key(name)) for name in named for form in names.forms(name)}


_KEPT = 2_000
"""Bytes of a fact that is remembered as it was read: the same ones come with every question."""


def fact_of(body: bytes, unlearnt_at: int | None) -> Fact:
    """The fact that `row_of` was given. Raises Corrupt."""
    return _remembered(body, unlearnt_at) if len(body) <= _KEPT else _read(body, unlearnt_at)


def _read(body: bytes, unlearnt_at: int | None) -> Fact:
    data: JsonObject = decode(body)
    try:
        fact = Fact.from_json(data)
    except InvalidInput as error:
        raise Corrupt(f"a stored fact cannot be read: {error}") from error
    if unlearnt_at is None:
        return fact
    return fact.model_copy(update={"unlearnt_at": from_micros(unlearnt_at)})


_remembered = lru_cache(maxsize=4_096)(_read)


class Wanted(NamedTuple):
    """A question as stores take it: keys and microseconds, None where it does not matter."""

    keys: tuple[str, ...] | None
    predicate: str | None
    true_at: int | None
    no_end: bool
    believed_at: int | None
    believed_still: bool
    limit: int | None
    untrue_at: int | None = None
    own: tuple[str, ...] | None = None
    """Predicates whose facts about the user are wanted beside those with the keys."""
    predicates: tuple[str, ...] | None = None
    """Only facts of these."""


def wanted(
    *,
    keys: Sequence[str] | None,
    predicate: str | None = None,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    history: bool = False,
    limit: int | None = None,
    predicates: Sequence[str] = (),
) -> Wanted:
    """The question, checked. Raises InvalidInput for a limit that is not a whole number from 0."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidInput(f"limit must be a whole number from 0, not {limit!r}")
    return Wanted(
        keys=None if keys is None else tuple(dict.fromkeys(keys)),
        predicate=None if predicate is None else predicate_key(predicate),
        true_at=None if as_of is None else to_micros(as_of),
        no_end=as_of is None and not history,
        believed_at=None if known_at is None else to_micros(known_at),
        believed_still=known_at is None and not history,
        limit=limit,
        predicates=tuple(dict.fromkeys(predicate_key(each) for each in predicates)) or None,
    )


def keys_of(about: str | Sequence[str] | None) -> list[str] | None:
    """The keys of a name, or of several."""
    if about is None:
        return None
    return [names.key(name) for name in ([about] if isinstance(about, str) else about)]


def wanted_former(
    keys: Sequence[str], predicates: Sequence[str], limit: int, as_of: datetime
) -> Wanted:
    """The question for what is believed and does not hold at `as_of`, checked as `wanted` is."""
    question = wanted(keys=keys, history=True, limit=limit)
    return question._replace(
        believed_still=True,
        untrue_at=to_micros(as_of),
        own=tuple(dict.fromkeys(predicate_key(each) for each in predicates)),
    )
