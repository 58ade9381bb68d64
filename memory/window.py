"""What a conversation keeps, and in which order a provider accepts it: pure functions of messages.

A *group* is what must stay together: an assistant message with tool calls and the results that
answer it, or one message alone. Everything here keeps or drops whole groups.

A result belongs to the newest message before it that made a call of that id, because some
providers use the same ids (`call_0`) in every turn.

The system and developer messages that open a session (seq 1, 2, …) are its *lead*: they stay at
the front of its window for ever and are never folded into a summary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from memory.errors import BudgetError
from memory.models import Message, RecordedMessage, Role, Summary, Window

M = TypeVar("M", bound=Message)
Count = Callable[[Message], int]
"""Tokens of one message, with the provider's overhead."""

_INSTRUCTIONS = (Role.SYSTEM, Role.DEVELOPER)
_NO_RESULT = "[No result was recorded for this call of {name}.]"


class Note(NamedTuple):
    """Something that was done to one message, and why, for people to read."""

    message: Message
    reason: str


class Sound(NamedTuple):
    """Messages that a provider accepts, and what had to be done for that."""

    messages: list[Message]
    notes: tuple[Note, ...]


class Fit(NamedTuple, Generic[M]):
    """What fits: `kept` in the order of the conversation, `tokens` their sum.

    `dropped` and `shortened` hold the messages as they were before.
    """

    kept: tuple[M, ...]
    dropped: tuple[Note, ...]
    shortened: tuple[Note, ...]
    tokens: int


# --- what belongs together ---------------------------------------------------------------------


def groups(messages: Sequence[M]) -> list[tuple[M, ...]]:
    """The groups of a conversation, ordered by their first message; every message is in one.

    A result is in the group of its call also when other messages sit between the two. A result
    whose call is not there is alone.
    """
    return [tuple(messages[place] for place in group) for group in _places(messages)]


def _places(messages: Sequence[Message]) -> list[list[int]]:
    found: list[list[int]] = []
    group_of_call: dict[str, list[int]] = {}
    for place, message in enumerate(messages):
        if message.role is Role.TOOL and message.tool_call_id in group_of_call:
            group_of_call[message.tool_call_id].append(place)
            continue
        found.append([place])
        for call in message.tool_calls:
            group_of_call[call.id] = found[-1]
    return found


def instructions(messages: Sequence[Message]) -> int:
    """How many of the first messages are of the system or the developer."""
    for place, message in enumerate(messages):
        if message.role not in _INSTRUCTIONS:
            return place
    return len(messages)


def lead(messages: Sequence[RecordedMessage]) -> int:
    """How many of the first messages are the session's lead: instructions with seq 1, 2, …"""
    opening = instructions(messages)
    for place, message in enumerate(messages[:opening]):
        if message.seq != place + 1:
            return place
    return opening


# --- what a provider accepts -------------------------------------------------------------------


def sound(messages: Sequence[Message]) -> Sound:
    """The conversation in the shape that every provider accepts.

    Every call is answered directly after it, once, in the order of the calls; every result is
    preceded by its call. A call without a result gets a synthetic one that says so (its metadata
    has `synthetic`: true); a result without its call is left out. The messages given are not
    changed, and a conversation that is sound already comes back as it is.
    """
    accepted: list[Message] = []
    notes: list[Note] = []
    for first, *rest in groups(messages):
        if first.role is Role.TOOL:
            notes.append(Note(first, f"left out: its call {first.tool_call_id!r} is not there"))
            continue
        caller = _answerable(first, notes)
        if caller is None:
            continue
        accepted.append(caller)
        if caller.tool_calls:
            accepted.extend(_answers(caller, rest, notes))
    return Sound(accepted, tuple(notes))


def _answerable(message: Message, notes: list[Note]) -> Message | None:
    """The message without calls that no result could ever answer; None when nothing is left."""
    calls = {call.id: call for call in reversed(message.tool_calls) if call.id}
    if len(calls) == len(message.tool_calls):
        return message
    notes.append(Note(message, "calls without an id, or with an id twice, were left out"))
    kept = message.model_copy(update={"tool_calls": tuple(reversed(calls.values()))})
    return None if kept.is_empty else kept


def _answers(caller: Message, results: Sequence[Message], notes: list[Note]) -> list[Message]:
    answers: dict[str | None, Message] = {}
    for result in results:
        earlier = answers.get(result.tool_call_id)
        if earlier is not None:
            notes.append(Note(earlier, "left out: a newer result of the same call is there"))
        answers[result.tool_call_id] = result
    complete: list[Message] = []
    for call in caller.tool_calls:
        answer = answers.get(call.id)
        if answer is None:
            notes.append(Note(caller, f"no result of {call.id!r} is there: a synthetic one is"))
            answer = Message(
                role=Role.TOOL,
                tool_call_id=call.id,
                content=_NO_RESULT.format(name=call.name or "a tool"),
                metadata={"synthetic": True},
            )
        complete.append(answer)
    return complete


# --- what fits ---------------------------------------------------------------------------------


def fit(
    messages: Sequence[M], budget: int, count: Count, *, keep_latest_user: bool = True
) -> Fit[M]:
    """The newest whole groups that fit in `budget` tokens, counted by `count`.

    Kept before all else: the system and developer messages at the front and, unless
    `keep_latest_user` is false, the newest user message. Then groups from the newest back, up to
    the first that does not fit, so that no hole is left in the conversation. When the first of
    these is too large by itself because of tool results, those are shortened, with a mark that
    says so. Everything fits: the same messages come back.

    What `sound` gave stays sound, and what it added is counted: call `sound` first.

    Raises BudgetError when what is kept before all else does not fit.
    """
    costs = [count(message) for message in messages]
    if sum(costs) <= budget:
        return Fit(tuple(messages), (), (), sum(costs))

    must = _kept_first(messages, keep_latest_user)
    needed = sum(costs[place] for place in must)
    if needed > budget:
        raise BudgetError(
            f"the messages that must stay need {needed} tokens; there are {budget}",
            needed=needed,
            given=budget,
        )
    kept = {place: messages[place] for place in must}
    left = budget - needed
    optional = [group for group in _places(messages) if group[0] not in must]
    optional.sort(key=lambda group: group[-1], reverse=True)
    taken = 0
    for group in optional:
        cost = sum(costs[place] for place in group)
        if cost > left:
            break
        kept |= {place: messages[place] for place in group}
        left -= cost
        taken += 1

    too_large = optional[taken]
    shortened: list[Note] = []
    if taken == 0:
        shorter = _shortened({place: messages[place] for place in too_large}, left, count)
        kept |= shorter
        shortened = [
            Note(messages[place], f"shortened from {costs[place]} to {count(message)} tokens")
            for place, message in sorted(shorter.items())
            if message is not messages[place]
        ]
    return Fit(
        kept=tuple(kept[place] for place in sorted(kept)),
        dropped=tuple(
            Note(
                messages[place],
                f"its group needs {cost} tokens, {left} of {budget} are left"
                if place in too_large
                else "older than what fits",
            )
            for place in range(len(messages))
            if place not in kept
        ),
        shortened=tuple(shortened),
        tokens=sum(
            costs[place] if message is messages[place] else count(message)
            for place, message in kept.items()
        ),
    )


def _kept_first(messages: Sequence[Message], keep_latest_user: bool) -> set[int]:
    must = set(range(instructions(messages)))
    if keep_latest_user and (newest := _newest_user(messages)) is not None:
        must.add(newest)
    return must


def _newest_user(messages: Sequence[Message]) -> int | None:
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role is Role.USER:
            return place
    return None


def _shortened(group: dict[int, M], room: int, count: Count) -> dict[int, M]:
    """The group with its results cut so that it needs at most `room` tokens; {} if it cannot be.

    Every result has the same room; what a small one leaves over goes to the larger ones.
    """
    whole = {place: m for place, m in group.items() if m.role is not Role.TOOL}
    room -= sum(count(message) for message in whole.values())
    results = sorted(
        ((count(m), place, m) for place, m in group.items() if m.role is Role.TOOL),
        key=lambda result: result[:2],
    )
    for done, (cost, place, message) in enumerate(results):
        share = room // (len(results) - done)
        shorter = message if cost <= share else _excerpt(message, share, count)
        if shorter is None:
            return {}
        whole[place] = shorter
        room -= count(shorter)
    return whole if results else {}


def _excerpt(message: M, room: int, count: Count) -> M | None:
    """The largest excerpt of a result that needs at most `room` tokens; None if even none does.

    Found by doubling, then halving the step, so that a huge text is never counted whole.
    """
    length = len(message.text)
    if count(_marked(message, 0)) > room:
        return None
    best, too_long = 0, min(length, 64)
    while too_long < length and count(_marked(message, too_long)) <= room:
        best, too_long = too_long, min(length, 2 * too_long)
    while too_long - best > 8:
        middle = (best + too_long) // 2
        if count(_marked(message, middle)) <= room:
            best = middle
        else:
            too_long = middle
    return _marked(message, best)


def _marked(message: M, characters: int) -> M:
    """The message with its text cut to `characters`, three quarters of them from the front."""
    text = message.text
    tail = characters // 4
    mark = f"[… shortened: {len(text) - characters} of {len(text)} characters left out …]"
    others = 0 if isinstance(message.content, str) else len(_other_parts(message))
    if others:
        mark = f"{mark[:-1]} and {others} parts that are not text …]"
    content = f"{text[: characters - tail]}\n{mark}\n{text[len(text) - tail :]}".strip("\n")
    return message.model_copy(update={"content": content})


def _other_parts(message: Message) -> list[object]:
    parts = message.content if isinstance(message.content, tuple) else ()
    return [part for part in parts if not isinstance(part.get("text"), str)]


# --- what leaves the window --------------------------------------------------------------------

_LOW_WATER = 0.75
"""A fold goes on down to this part of the room, so that not every turn needs one."""


def summary_limit(limit: int, wanted: int) -> int:
    """Tokens that a summary may take in a window of `limit`: at most a quarter of it."""
    return min(wanted, limit // 4)


def gather(
    messages: Sequence[RecordedMessage],
    count: Count,
    *,
    summary: Summary | None = None,
    last_seq: int = 0,
) -> Window:
    """The window of these messages, with its tokens counted (`summary.tokens` is taken as it is).

    `last_seq` tells of a newer message than these and than what the summary covers.
    """
    covered = summary.covers_to if summary else 0
    return Window(
        messages=tuple(messages),
        summary=summary,
        last_seq=max(last_seq, covered, messages[-1].seq if messages else 0),
        tokens=sum(map(count, messages)) + (summary.tokens if summary else 0),
    )


def plan(
    window: Window, limit: int, count: Count, *, summary_tokens: int | None = None
) -> tuple[RecordedMessage, ...]:
    """The oldest messages after the lead, to be folded into the summary; () when there is no need.

    When `window.tokens` is over `limit`, enough whole groups for the rest to fit beside a summary
    of `summary_tokens` (None: the largest that `summary_limit` allows), with some room to grow.
    They are consecutive in seq and start right after what the summary covers.

    Stays in the window whatever it costs: the lead and the newest group. Stays while it can: the
    newest user message and what follows it. An open call, and what follows it, stay until the
    window cannot hold them and a whole turn has passed since: then no answer is expected.
    """
    if window.tokens <= limit:
        return ()
    body = window.messages[lead(window.messages) :]
    room = _room(window, limit, count, limit if summary_tokens is None else summary_tokens)
    return body[: _cut(body, room, _LOW_WATER * room, count)]


def plan_of_oldest(
    part: Window, limit: int, count: Count, *, summary_tokens: int
) -> tuple[RecordedMessage, ...]:
    """What `plan` would fold first of a window of which only the oldest messages were read.

    All that was read, where what was not has more tokens than the window has room for; () where
    that is not so, or where a result that was not read may belong to a call: then only the whole
    window tells.
    """
    front = lead(part.messages)
    body = part.messages[front:]
    read = sum(map(count, part.messages)) + (part.summary.tokens if part.summary else 0)
    room = _room(part, limit, count, summary_tokens)
    return () if part.tokens - read <= room or _open_calls(body) else body


def _room(window: Window, limit: int, count: Count, summary_tokens: int) -> int:
    """Tokens that a window has for messages beside its lead and a summary."""
    opening = window.messages[: lead(window.messages)]
    return limit - summary_limit(limit, summary_tokens) - sum(map(count, opening))


def shown(window: Window, limit: int, count: Count) -> Window:
    """The window within `limit` for one turn: its oldest whole groups are left out, not folded.

    They are counted in `unsummarised`; `window.tokens` may speak of more messages than are in it,
    which are counted there already. The beginning of what is shown stays where it is until a
    quarter of the room has come in, so that it does not move at every turn. The lead and the
    newest group are always there.
    """
    if window.tokens <= limit:
        return window
    front = lead(window.messages)
    opening, body = window.messages[:front], window.messages[front:]
    fixed = sum(map(count, opening)) + (window.summary.tokens if window.summary else 0)
    room, waiting = limit - fixed, window.tokens - fixed
    step = max(1, room // 4)
    away = _cut(body, room, waiting - step * -(-(waiting - room) // step), count)
    while away < len(body) - 1 and body[away].role is Role.TOOL:  # its call is not there
        away += 1
    kept = opening + body[away:]
    return window.model_copy(
        update={
            "messages": kept,
            "unsummarised": window.unsummarised + away,
            "tokens": fixed + sum(map(count, body[away:])),
        }
    )


def is_torn(window: Window) -> bool:
    """Whether it was read in part, and the newest group with it."""
    body = window.messages[lead(window.messages) :]
    return bool(body) and not _cuts(body) and body[0].role is Role.TOOL


def _cut(body: Sequence[RecordedMessage], room: int, target: float, count: Count) -> int:
    """How many of the first messages go, so that the rest needs at most `target` tokens; or, where
    no whole groups do that, as few as they can be made, but `room` before what must stay."""
    cuts = _cuts(body)
    if not cuts:
        return 0
    rest = [0]
    for message in reversed(body):
        rest.append(rest[-1] + count(message))
    rest.reverse()

    def within(cuts: Sequence[int], tokens: float) -> Sequence[int]:
        return [cut for cut in cuts if rest[cut] <= tokens]

    for open_call in [*_open_calls(body), len(body)]:
        allowed = [cut for cut in cuts if cut <= open_call]
        if within(allowed, room) or not _has_gone_on(body, open_call):
            break
    if not allowed:
        return 0
    best = next(iter(within(allowed, target)), allowed[-1])
    newest_user = _newest_user(body)
    if newest_user is not None and best > newest_user:
        best = max((c for c in within(allowed, room) if c <= newest_user), default=best)
    return best


def boundaries(messages: Sequence[Message]) -> list[int]:
    """The places, ascending, where the messages can be parted without tearing a group; the end
    is the last of them."""
    found = _places(messages)
    torn = {place for group in found for place in range(group[0] + 1, group[-1] + 1)}
    return [place for place in range(1, len(messages) + 1) if place not in torn]


def _cuts(messages: Sequence[Message]) -> list[int]:
    """The places, ascending, before which the messages can be cut off without tearing a group.

    The newest group is never cut off.
    """
    newest = max(_places(messages), key=lambda group: group[-1], default=[0])
    return [place for place in boundaries(messages) if place <= newest[0]]


def _open_calls(messages: Sequence[Message]) -> list[int]:
    """The places of messages with a call that no result has answered."""
    waiting: list[int] = []
    for group in _places(messages):
        answered = {messages[place].tool_call_id for place in group[1:]}
        if any(call.id not in answered for call in messages[group[0]].tool_calls):
            waiting.append(group[0])
    return waiting


def _has_gone_on(messages: Sequence[Message], place: int) -> bool:
    """Whether a whole turn, of the user and then the assistant, came after this place."""
    roles = [message.role for message in messages[place + 1 :]]
    return Role.USER in roles and Role.ASSISTANT in roles[roles.index(Role.USER) :]


def fold(window: Window, summary: Summary, count: Count) -> Window:
    """The window after the messages that `summary` covers have left it.

    The rest, with its tokens counted again.
    """
    front = lead(window.messages)
    kept = window.messages[:front] + tuple(
        message for message in window.messages[front:] if message.seq > summary.covers_to
    )
    after = gather(kept, count, summary=summary, last_seq=window.last_seq)
    return after.model_copy(update={"expired_at": window.expired_at})
