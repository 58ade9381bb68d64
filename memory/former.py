"""Former facts: what was true once and bears on a question, and what stands in its place. Pure.

They are never part of a context: they explain why it does not say what somebody remembers, and what
was said of them is shown with a remark that it is no longer so. Which fact took another's place is
read off the registry: of a single-valued predicate it is the object that holds now, of a predicate
with an opposite the opposite of the same object. Where nothing that holds now excludes it, the fact
has only ended (or not begun), and no more than that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Final, NamedTuple

from memory.models import Cause, Dropped, Fact
from memory.recall import bearing, excerpt
from memory.semantic import names
from memory.semantic.entities import NAMED_BEFORE, Whom
from memory.semantic.predicates import Registry
from memory.semantic.predicates import key as predicate_key

LOOKED_AT: Final = 12
"""Former facts that are read for one question, at most."""
NEAR_MISSES: Final = 5
"""Former facts that are reported for one question, at most."""

Slot = tuple[str, str]
"""Subject and predicate."""


class Former(NamedTuple):
    """A fact that does not hold, and how it bears on the question."""

    fact: Fact
    score: float
    scores: dict[str, float]


def asked(
    facts: Iterable[Fact],
    query: str,
    *,
    now: datetime,
    about: Whom | None = None,
    limit: int = NEAR_MISSES,
) -> list[Former]:
    """Those that do not hold at `now` and bear on `query`, best first, the newest version of each.

    Scores are on the scale of `recall.rank_facts`; `about` is as there.
    """
    bears = bearing(query, about)
    best: dict[str, Former] = {}
    for fact in sorted(facts, key=lambda each: (-each.valid_from.timestamp(), each.id)):
        if fact.holds_at(now) or fact.unlearnt_at is not None or fact.fact_id in best:
            continue
        score, scores = bears(fact)
        if max(scores.values()) > 0:
            best[fact.fact_id] = Former(fact, score, scores)
    return sorted(best.values(), key=lambda each: -each.score)[:limit]


def led_to(about: Whom, read: Collection[str]) -> list[str]:
    """Keys of those whom the question is about without naming them, whose facts are not in `read`:
    'my sister' is somebody. Not those who were only named before it."""
    return sorted(
        key
        for key, bears in about.bearing.items()
        if bears.score > NAMED_BEFORE and key not in read and key not in about.selves
    )


def open_slots(
    former: Iterable[Former], current: Iterable[Fact], read: Set[str], registry: Registry
) -> list[Slot]:
    """Where to look for what stands in their place, where `current` does not say it already.

    `read` are the keys of those of whom everything current is known.
    """
    elsewhere = [each for each in former if names.key(each.fact.subject) not in read]
    known = _by_slot(current) if elsewhere else {}
    wanted: dict[Slot, None] = {}
    for fact in (each.fact for each in elsewhere):
        rule = registry.find(fact.predicate)
        excluding = rule and (rule.name if rule.single else rule.opposite)
        if excluding and not _successor(fact, known, registry):
            wanted[fact.subject, excluding] = None
    return list(wanted)


class Replaced(NamedTuple):
    """A former fact, and what holds now in its place; None where it has only ended or not begun."""

    former: Former
    by: Fact | None


def replaced(
    former: Sequence[Former],
    current: Iterable[Fact],
    *,
    now: datetime,
    registry: Registry,
) -> list[Replaced]:
    """Each with the version that holds now in its place. A fact that holds again is none."""
    if not former:
        return []
    holding = {fact.fact_id: fact for fact in current if fact.holds_at(now)}
    known = _by_slot(holding.values())
    return [
        Replaced(
            each, _successor(each.fact, known, registry) if each.fact.valid_from <= now else None
        )
        for each in former
        if each.fact.fact_id not in holding
    ]


def near_misses(
    found: Iterable[Replaced], *, now: datetime, render: Callable[[Fact], str]
) -> list[Dropped]:
    """Why they are not shown. They have no rank: what does not hold is not ranked."""
    missed = []
    for (fact, score, scores), by in found:
        cause: Cause = "superseded" if by is not None else "out_of_time"
        missed.append(
            Dropped(
                tier="semantic",
                id=fact.id,
                text=excerpt(render(fact)),
                score=round(score, 4),
                scores={arm: round(each, 4) for arm, each in scores.items()},
                reason=_reason(fact, by, now, render),
                cause=cause,
                by=by.id if by is not None else None,
            )
        )
    return missed


def remarks(
    found: Iterable[Replaced], *, now: datetime, render: Callable[[Fact], str]
) -> dict[str, str]:
    """By the id of the message that said it, that something is no longer so, and since when.

    Not of a message that also says what holds now: "I moved from Oslo to Lyon".
    """
    said: dict[str, dict[str, None]] = {}
    for (fact, _, _), by in found:
        if fact.valid_from > now:
            continue
        if by is not None:
            remark = f"since {_day(by.valid_from)} {_short(render(by))}"
        else:
            remark = f"{_short(render(fact))}, until {_day(fact.valid_to or now)}"
        for message in fact.sources:
            if by is None or message not in by.sources:
                said.setdefault(message, {})[remark] = None
    return {message: f"no longer so: {'; '.join(each)}" for message, each in said.items()}


def _short(text: str) -> str:
    """The text as a part of a line."""
    line = " ".join(text.split())
    return line if len(line) <= _REMARK else f"{line[: _REMARK - 1]}…"


_REMARK: Final = 80
"""Characters of a fact in a remark, at most."""


def _successor(fact: Fact, current: Mapping[Slot, list[Fact]], registry: Registry) -> Fact | None:
    """What holds now and excludes the fact; the newest, where there are several."""
    rule = registry.find(fact.predicate)
    if rule is None:
        return None
    excluding = rule.name if rule.single else rule.opposite
    if excluding is None:
        return None
    about = names.key(fact.object)
    found = [
        other
        for other in current.get((names.key(fact.subject), predicate_key(excluding)), ())
        if other.fact_id != fact.fact_id and (rule.single or names.key(other.object) == about)
    ]
    return min(found, key=lambda each: (-each.valid_from.timestamp(), each.id), default=None)


def _by_slot(facts: Iterable[Fact]) -> dict[Slot, list[Fact]]:
    """Facts by the keys of their subject and predicate."""
    found: dict[Slot, list[Fact]] = {}
    for fact in facts:
        slot = names.key(fact.subject), predicate_key(fact.predicate)
        found.setdefault(slot, []).append(fact)
    return found


def _reason(fact: Fact, by: Fact | None, now: datetime, render: Callable[[Fact], str]) -> str:
    if fact.valid_from > now:
        return f"not true before {_day(fact.valid_from)}"
    ended = fact.valid_to or now
    if by is None:
        if fact.valid_from == ended:
            return f"said to hold no longer on {_day(ended)}"
        return f"true only from {_day(fact.valid_from)} to {_day(ended)}"
    new = excerpt(render(by))
    if by.valid_from <= ended:
        return f"superseded by {new!r} on {_day(ended)}"
    return f"ended on {_day(ended)}; superseded by {new!r} on {_day(by.valid_from)}"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
