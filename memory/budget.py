"""The budget: how the room in a context is shared among what would like to be in it. Pure.

What cannot be cut (the tools' schema, the system text, the new message, the reserve) is taken off
first; the rest is the *room*. Five sections share it:

    pinned     facts that are always there
    summary    of what left the window
    turns      the window itself, newest first
    facts      what is known that bears on the message
    episodes   what was said before that bears on it

Each has a floor that it gets for sure, as far as it wants it, and a ceiling that it does not pass
(but for LEAST_MEMORY and LEAST_PINNED, where the room is so small that a share is no line).
Facts and episodes stand in one block: what one leaves of its floor, the other has before all else.
What is spare after that goes to the sections in the policy's order, each up to what it wants and
may have. Nothing is left over while somebody may still use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Self, get_args

from pydantic import Field, model_validator

from memory.models import Value

Section = Literal["pinned", "summary", "turns", "facts", "episodes"]
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)

LEAST_MEMORY: Final = 120
"""Tokens of floor that facts and episodes have together however small the room, a line or two;
but never more than half of it."""
LEAST_PINNED: Final = 80
"""Tokens of floor that pinned facts have however small the room; never more than a quarter."""


class Share(Value):
    """A part of the room, as fractions of it: `floor` for sure, `ceiling` at the most."""

    floor: float = Field(default=0.0, ge=0.0, le=1.0)
    ceiling: float = Field(default=1.0, ge=0.0, le=1.0)

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.floor > self.ceiling:
            raise ValueError(f"the floor {self.floor} is above the ceiling {self.ceiling}")
        return self


class ContextPolicy(Value):
    """How a context is shared out, and what is done to keep its beginning as it was.

    By default pinned facts and the summary come first, up to their ceilings: they stand before the
    turns, and what changes there spoils a provider's cache of all the rest. Then the turns take
    what memory's floors (three tenths of the room) leave, and all of it that memory does not need;
    then episodes, then facts.
    """

    pinned: Share = Share(floor=0.15, ceiling=0.3)
    summary: Share = Share(floor=0.25, ceiling=0.25)
    """A summary that is larger is shortened to what it may have."""
    turns: Share = Share(floor=0.3)
    facts: Share = Share(floor=0.06)
    episodes: Share = Share(floor=0.24)
    order: tuple[Section, ...] = ("pinned", "summary", "turns", "episodes", "facts")
    """Who gets spare room first."""
    slack: float = Field(default=0.25, ge=0.0, le=0.45)
    """The part of the turns' room that is left free where a conversation that goes on has to be
    cut, so that the cut stays where it is for many turns and the beginning with it. 0: it moves at
    every turn."""
    says_nothing_known: bool = True
    """Whether memory says in a line of its own that it has nothing on a question."""

    @model_validator(mode="after")
    def _shares_one_room(self) -> Self:
        if sorted(self.order) != sorted(SECTIONS):
            raise ValueError(f"the order must name each of {', '.join(SECTIONS)} once")
        floors = sum(self.share(section).floor for section in SECTIONS)
        if floors > 1.0 + 1e-9:
            raise ValueError(f"the floors add up to {floors:.3f}, which is more than the room")
        return self

    def share(self, section: Section) -> Share:
        share: Share = getattr(self, section)
        return share

    def most(self, section: Section, room: int) -> int:
        """Tokens that a section may have at the most."""
        return int(self.share(section).ceiling * room)

    def floors(self, room: int) -> dict[Section, int]:
        """The floors in tokens, those of memory and of pinned facts not below what a line needs."""
        floors: dict[Section, int] = {s: int(self.share(s).floor * room) for s in SECTIONS}
        sure = self.facts.floor + self.episodes.floor
        least = min(LEAST_MEMORY, room // 2)
        if 0 < sure * room < least:
            floors["facts"] = int(least * self.facts.floor / sure)
            floors["episodes"] = least - floors["facts"]
        if self.pinned.floor:
            floors["pinned"] = max(floors["pinned"], min(LEAST_PINNED, room // 4))
        return floors

    def turns_first(self) -> ContextPolicy:
        """The policy for a turn whose own messages do not fit otherwise: all that is needed to
        answer a call goes before all else, and the others have what is left."""
        return self.model_copy(
            update={
                **{s: Share(ceiling=self.share(s).ceiling) for s in SECTIONS},
                "summary": Share(ceiling=0.0),
                "turns": Share(floor=1.0),
            }
        )


def allot(wanted: Mapping[Section, int], room: int, policy: ContextPolicy) -> dict[Section, int]:
    """Tokens for each section, of the tokens that each wants; together at most `room`.

    A section gets no less when another wants less.
    """
    floors = policy.floors(room)
    given: dict[Section, int] = dict.fromkeys(SECTIONS, 0)
    left = max(0, room)
    for section in _BY_NEED:
        given[section] = min(wanted.get(section, 0), floors[section], left)
        left -= given[section]
    for section, other in _IN_ONE_BLOCK:
        spare = min(left, max(0, floors[other] - given[other]))
        more = min(spare, max(0, _may_have(section, wanted, room, policy) - given[section]))
        given[section] += more
        left -= more
    for section in policy.order:
        more = min(left, max(0, _may_have(section, wanted, room, policy) - given[section]))
        given[section] += more
        left -= more
    return given


_IN_ONE_BLOCK: Final[tuple[tuple[Section, Section], ...]] = (
    ("facts", "episodes"),
    ("episodes", "facts"),
)


def _may_have(
    section: Section, wanted: Mapping[Section, int], room: int, policy: ContextPolicy
) -> int:
    return min(wanted.get(section, 0), policy.most(section, room))


_BY_NEED: Final[tuple[Section, ...]] = ("pinned", "facts", "episodes", "summary", "turns")
"""Whose floor is kept where a small room cannot keep all: a line of memory is worth more there
than a turn that is cut short."""
