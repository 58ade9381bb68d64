"""The turns of a context: which messages of the window are sent, and where the conversation is cut.

When not all fit, the oldest whole groups are left out. Where that cut falls decides what a
provider's prompt cache can use again, so in a conversation that goes on it stays as long as it can:

- The turn that came first in the context before stays first while everything from it on fits, and
  fills at least `1 - 2 × slack` of the room that turns have for sure.
- When it cannot stay, the new cut leaves `slack` of that room free, so that the next need none.
- Older turns come back when all fit into that room: what memory does not need for one message, and
  will for the next, is no reason to move.

Turns begin with the user, because providers refuse another: where they would begin with the
assistant and nothing of the user's stands before, a mark in a fence does, or a cut further on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from memory import window as windows
from memory.errors import BudgetError, EmptyInput, InvalidInput
from memory.fence import fence
from memory.models import Message, RecordedMessage, Role, Window
from memory.providers.parts import is_blank, says_nothing

Count = Callable[[Message], int]
M = TypeVar("M", bound=Message)

INSTRUCTIONS: Final = (Role.SYSTEM, Role.DEVELOPER)
OPENING: Final = Message(
    role=Role.USER,
    content=fence("The conversation from here on; earlier messages, if any, are not shown."),
)
"""What stands before turns that the assistant begins."""
_NO_OUTPUT: Final = "[The tool gave no output.]"


class History(NamedTuple):
    """The window's messages as a provider accepts them, and what was done for that.

    `newest` is what the model is to answer in the middle of a turn; None when it is a new message.
    """

    messages: list[Message]
    newest: Message | None
    left_out: tuple[windows.Note, ...]
    warnings: tuple[str, ...]

    @property
    def asked(self) -> Message | None:
        """The newest message of the user."""
        return next((m for m in reversed(self.messages) if m.role is Role.USER), None)


class Cut(NamedTuple):
    """A message that was cut off: why, and the tokens that were missing for it and all after it."""

    message: Message
    reason: str
    missing: int


class Turns(NamedTuple):
    """What is shown: `opening` (or None), then `kept`, together `tokens`."""

    kept: tuple[Message, ...] = ()
    opening: Message | None = None
    tokens: int = 0
    cut: tuple[Cut, ...] = ()
    shortened: tuple[windows.Note, ...] = ()


class Before(NamedTuple):
    """The context before this one, as far as the cut depends on it: its first turn's id."""

    first_turn: str | None
    slack: float


def is_mid_turn(message: Message | None) -> bool:
    """Whether the model is to answer a tool's result and not a new message."""
    return message is None or message.role is Role.TOOL


def history(window: Window, message: Message | None) -> History:
    """What was said before the message (in the middle of a turn: with it), fit for a provider.

    Raises InvalidInput for a result without its call, EmptyInput when nothing is there to answer.
    """
    blank: list[windows.Note] = []
    said: list[Message] = []
    for each in window.messages:
        if each.role in INSTRUCTIONS:
            continue
        spoken = ready(each)
        if spoken is None:
            blank.append(windows.Note(each, "left out: it is empty"))
        else:
            said.append(spoken)
    mid_turn = is_mid_turn(message)
    if mid_turn and message is not None:
        said.append(message)
    sound = windows.sound(said)
    sent = {key(each) for each in sound.messages}
    newest = None
    if mid_turn:
        if message is not None and key(message) not in sent:
            raise InvalidInput(f"this session has no call {message.tool_call_id!r}")
        if not sound.messages:
            raise EmptyInput("no message was given, and the session has none to answer")
        newest = said[-1] if key(said[-1]) in sent else sound.messages[-1]
    return History(
        sound.messages,
        newest,
        (*blank, *(note for note in sound.notes if key(note.message) not in sent)),
        tuple(
            f"{note.message.role.value} message {name(note.message)}: {note.reason}"
            for note in sound.notes
            if key(note.message) in sent
        ),
    )


def ready(message: M) -> M | None:
    """The message without content that providers refuse as empty; None when nothing is left.

    A result that is empty says so; a message that only calls has no content.
    """
    content = message.content
    if isinstance(content, str) and not is_blank(content):
        return message
    if isinstance(content, tuple):
        parts = tuple(part for part in content if not says_nothing(part))
        if parts:
            changed: M = message.model_copy(update={"content": parts})
            return message if len(parts) == len(content) else changed
    if message.role is Role.TOOL:
        return message.model_copy(update={"content": _NO_OUTPUT})
    if message.tool_calls:
        return message if content is None else message.model_copy(update={"content": None})
    return None


def key(message: Message) -> str | int:
    """Tells messages apart: by id, or by identity where there is none."""
    return message.id if isinstance(message, RecordedMessage) else id(message)


def name(message: Message) -> str:
    return message.id if isinstance(message, RecordedMessage) else "without an id"


# --- the cut -----------------------------------------------------------------------------------


def cut(
    past: History, room: int, count: Count, *, sure: int, opens: bool, before: Before | None
) -> Turns:
    """The turns to show, in at most `room` tokens; `sure` is what turns have of it for sure.

    `opens`: whether something of the user's stands before them. Without a context `before`, the
    newest that fit. Raises BudgetError when a turn's own messages do not fit.
    """
    messages = past.messages
    whole = _tokens_from(messages, 0, count, opens)
    if whole <= min(room, sure):
        return _from(messages, 0, room, count, opens)
    place = None if before is None else _place_of(before.first_turn, past)
    if before is not None and place is not None:
        least = (1.0 - 2.0 * before.slack) * sure
        if least <= _tokens_from(messages, place, count, opens) <= room:
            return _from(messages, place, room, count, opens)
    elif whole <= room:
        return _from(messages, 0, room, count, opens)
    if before is not None and (roomy := _roomy(past, min(room, sure), count, opens, before.slack)):
        return roomy
    return _fitted(past, room, room, count, opens)


def _tokens_from(messages: Sequence[Message], place: int, count: Count, opens: bool) -> int:
    opening = count(OPENING) if _wants_opening(messages[place:], opens) else 0
    return opening + _size(messages[place:], count)


def _wants_opening(kept: Sequence[Message], opens: bool) -> bool:
    return not opens and bool(kept) and kept[0].role is not Role.USER


def _place_of(first_turn: str | None, past: History) -> int | None:
    """Where the turn stands that came first before; None when the cut cannot be there."""
    place = next((n for n, m in enumerate(past.messages) if key(m) == first_turn), None)
    if place is None or past.messages[place].role is Role.TOOL:
        return None
    if past.newest is not None:
        asked = past.asked
        if asked is not None and not any(asked is m for m in past.messages[place:]):
            return None
    return place


def _from(messages: Sequence[Message], place: int, room: int, count: Count, opens: bool) -> Turns:
    """Everything from a place on."""
    kept = tuple(messages[place:])
    tokens = _tokens_from(messages, place, count, opens)
    return Turns(
        kept,
        OPENING if _wants_opening(kept, opens) else None,
        tokens,
        _cut_off(messages, kept, room - tokens, room, count),
    )


def _roomy(past: History, room: int, count: Count, opens: bool, slack: float) -> Turns | None:
    """The newest that fit with some room to spare; None when a turn of today needs that room."""
    try:
        turns = _fitted(past, int((1.0 - slack) * room), room, count, opens)
    except BudgetError:
        return None
    return turns if turns.kept and not turns.shortened else None


def _fitted(past: History, limit: int, room: int, count: Count, opens: bool) -> Turns:
    """The newest whole groups that fit into `limit`, of the `room` that there is.

    Where the assistant would begin, either the mark goes before, or the turns begin with the next
    message of the user: whichever shows more.
    """
    fit = _fit(past, limit, count)
    kept, opening, shortened = fit.kept, None, fit.shortened
    if _wants_opening(kept, opens):
        users = [place for place, message in enumerate(kept) if message.role is Role.USER]
        kept = kept[users[0] :] if users else ()
        marked = _fit_beside_a_mark(past, limit - count(OPENING), count)
        if marked is not None and (
            not _has_newest(kept, past) or _size(marked.kept, count) > _size(kept, count)
        ):
            kept, shortened = marked.kept, marked.shortened
            opening = OPENING if _wants_opening(kept, opens) else None
        if not _has_newest(kept, past):
            raise _too_small(fit.tokens + count(OPENING), limit)
    tokens = _size(kept, count) + (count(OPENING) if opening else 0)
    cut = _cut_off(past.messages, kept, room - tokens, room, count)
    return Turns(kept, opening, tokens, cut, shortened if kept else ())


def _fit_beside_a_mark(past: History, room: int, count: Count) -> windows.Fit[Message] | None:
    try:
        return _fit(past, room, count) if room > 0 else None
    except BudgetError:
        return None


def _size(messages: Sequence[Message], count: Count) -> int:
    return sum(map(count, messages))


def _fit(past: History, room: int, count: Count) -> windows.Fit[Message]:
    fit = windows.fit(past.messages, room, count, keep_latest_user=past.newest is not None)
    if not _has_newest(fit.kept, past) and past.newest is not None:
        conversation = windows.groups(past.messages)
        group = next(group for group in conversation if key(past.newest) in map(key, group))
        both = {key(message): message for message in (*fit.kept, *group)}
        raise _too_small(_size(tuple(both.values()), count), room)
    return fit


def _has_newest(kept: Sequence[Message], past: History) -> bool:
    """Whether what the model is to answer in the middle of a turn is there."""
    return past.newest is None or any(_is_same(past.newest, each) for each in kept)


def _too_small(needed: int, room: int) -> BudgetError:
    return BudgetError(
        f"this turn's own messages need {needed} tokens; there are {room}",
        needed=needed,
        given=room,
    )


def _is_same(message: Message, kept: Message) -> bool:
    """Whether `kept` is the message, perhaps shortened."""
    if isinstance(message, RecordedMessage) or isinstance(kept, RecordedMessage):
        return key(message) == key(kept)
    return message.tool_call_id == kept.tool_call_id


def _cut_off(
    messages: Sequence[Message], kept: Sequence[Message], left: int, room: int, count: Count
) -> tuple[Cut, ...]:
    """What is not kept, oldest first, with what was missing for it."""
    if len(kept) == len(messages):
        return ()
    shown = {key(message) for message in kept}
    found: list[Cut] = []
    needed = 0
    for group in reversed(windows.groups(messages)):
        if key(group[0]) in shown:
            continue
        cost = sum(map(count, group))
        needed += cost
        reason = "older than what fits"
        if not found:
            reason = f"its group needs {cost} tokens, {left} of {room} are left"
            if needed <= left:
                reason = f"cut here, so that the next turns need no cut: {left} of {room} are free"
        found += [Cut(message, reason, max(0, needed - left)) for message in reversed(group)]
    found.reverse()
    return tuple(found)
