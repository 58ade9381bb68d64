"""A conversation as frameworks have them, which can be cleared and cut short, over a journal in
which nothing is ever deleted.

Clearing begins a session anew: the conversation `monday` goes on as `monday#2-HASH`, with an empty
window. What was said stays remembered, as what was said in an earlier conversation. Taking the last
item away leaves a note, and the item is in the history no longer; the memory still knows that it
was said. Both are notes of the kind `conversation` in the user's journal, seen by every process.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory.codec import content_id
from memory.integrations.packing import Derive, Told, packed, unpacked
from memory.memory import Note, Session, UserMemory
from memory.models import JsonObject, RecordedMessage, valid_name

_KIND = "conversation"
_NAME_KEPT = 480
"""Characters of a conversation's name in the names of its later sessions."""


class _Place(NamedTuple):
    """Where an item is: the message that holds it, and which of its items it is."""

    message: str
    number: int


@dataclass(frozen=True, slots=True)
class _State:
    """What the notes say: how often it was cleared, and which items were taken away."""

    cleared: int
    taken: frozenset[_Place]

    @classmethod
    def of(cls, notes: Sequence[Note]) -> _State:
        return cls(
            cleared=sum(note.labels[0] == "cleared" for note in notes),
            taken=frozenset(
                _Place(note.labels[1], int(note.labels[2]))
                for note in notes
                if note.labels[0] == "taken"
            ),
        )


class Conversation:
    """One conversation of a user, for the framework `of`. Raises InvalidScope for a name."""

    def __init__(
        self, user: UserMemory, name: str, *, of: str, derive: Derive, agent: str | None = None
    ) -> None:
        self.name = valid_name("session", name)
        self._user = user
        self._of = of
        self._derive = derive
        self._agent = agent

    async def session(self) -> Session:
        """The session that it is in now: what to build a context from."""
        return self._session(await self._state())

    async def add(self, told: Sequence[Told]) -> None:
        """Record messages with their items, all or none. Those whose key is there are there."""
        once: dict[str, Told] = {}
        for each in told:
            once.setdefault(f"{self._of}:{each.key or secrets.token_hex(16)}", each)
        if once:
            session = await self.session()
            messages = [packed(each, of=self._of, derive=self._derive) for each in once.values()]
            await session.record(messages=messages, keys=list(once))

    async def items(self, newest: int | None = None) -> list[JsonObject]:
        """Its items, or the `newest` so many of them, oldest first."""
        state = await self._state()
        if newest is None:
            return [item for _, item in await self._placed(state)]
        if newest <= 0:
            return []
        placed = await self._placed(state, newest=newest + len(state.taken))
        return [item for _, item in placed][-newest:]

    async def take_last(self) -> JsonObject | None:
        """The newest item, which is then in the history no longer; None when there is none.

        Of several that take at once, each gets another one.
        """
        while placed := await self._placed(
            state := await self._state(), newest=1 + len(state.taken)
        ):
            place, item = placed[-1]
            if await self._noted("taken", place.message, str(place.number)):
                return item
        return None

    async def clear(self) -> None:
        """Begin anew. Clearing what is empty changes nothing."""
        state = await self._state()
        if await self._session(state).messages(newest=1):
            await self._noted("cleared", key=str(state.cleared))

    async def _state(self) -> _State:
        return _State.of(await self._user.notes(_KIND, session=self.name))

    def _session(self, state: _State) -> Session:
        name = self.name
        if state.cleared:
            mark = content_id(_KIND, self.name, str(state.cleared))[:8]
            name = f"{self.name[:_NAME_KEPT].rstrip()}#{state.cleared + 1}-{mark}"
        return self._user.session(name, agent=self._agent)

    async def _placed(
        self, state: _State, *, newest: int | None = None
    ) -> list[tuple[_Place, JsonObject]]:
        """The items of the `newest` messages, of which each has at least one, without the taken."""
        messages = await self._session(state).messages(newest=newest)
        return [
            (place, item)
            for message in messages
            for place, item in self._items_of(message)
            if place not in state.taken
        ]

    def _items_of(self, message: RecordedMessage) -> list[tuple[_Place, JsonObject]]:
        items = unpacked(message, of=self._of, derive=self._derive)
        return [(_Place(message.id, number), item) for number, item in enumerate(items)]

    async def _noted(self, *labels: str, key: str | None = None) -> bool:
        """Leave a note; False when somebody else has left it before."""
        by = secrets.token_hex(8)
        note = await self._user.note(
            _KIND,
            {},
            labels=[*labels, by],
            key=content_id(_KIND, self.name, *labels, *([key] if key else [])),
            session=self.name,
        )
        return note.labels[-1] == by
