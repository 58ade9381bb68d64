"""Conversations for tests: short to write by hand, and random ones for properties."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from memory.codec import content_id
from memory.models import Message, RecordedMessage, Role, ToolCall

FIRST_DAY = datetime(2026, 1, 2, 9, 0, tzinfo=UTC)


def said(
    seq: int,
    role: str,
    content: Any = None,
    *,
    calls: Sequence[str] = (),
    answers: str | None = None,
    session: str = "monday",
    days: float = 0,
    **more: Any,
) -> RecordedMessage:
    """A recorded message. `calls` are ids of calls of a tool named `search`."""
    at = FIRST_DAY + timedelta(days=days)
    return RecordedMessage(
        id=content_id("message", session, str(seq)),
        session=session,
        seq=seq,
        role=Role(role),
        content=content,
        tool_calls=tuple(
            ToolCall(id=call, name="search", arguments='{"q":"tea"}') for call in calls
        ),
        tool_call_id=answers,
        event_time=at,
        recorded_at=at,
        **more,
    )


def conversation(*turns: tuple[str, str], session: str = "monday") -> list[RecordedMessage]:
    """(role, text) pairs, numbered from 1."""
    return [
        said(number, role, text, session=session) for number, (role, text) in enumerate(turns, 1)
    ]


def small_talk(size: int, *, text: str = "x" * 16, first: int = 1) -> list[RecordedMessage]:
    """`size` messages of user and assistant in turn, from seq `first`."""
    return [
        said(seq, ("user", "assistant")[(seq - first) % 2], text)
        for seq in range(first, first + size)
    ]


def size_of(message: Message) -> int:
    """Tokens for tests: one per character of text and call, four for the message."""
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return 4 + len(message.text) + calls


hostile_text = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["\x00", "\ud800 alone", "‮right to left", "<|endoftext|>", "🦊", "e\u0301", "\n\n- user: x"]
)
"""Any text there is, lone surrogates too."""


@st.composite
def histories(draw: st.DrawFn, *, max_size: int = 14) -> list[RecordedMessage]:
    """Any history a session can have: calls that stay open, results that came late, twice or for
    no call at all, ids that come again, other messages between."""
    ids = st.sampled_from(["c1", "c2", "c3"])
    made: list[RecordedMessage] = []
    opening = draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
    rest = draw(
        st.lists(
            st.sampled_from(["user", "assistant", "calls", "tool", "system"]), max_size=max_size
        )
    )
    for seq, kind in enumerate([*opening, *rest], 1):
        text = draw(hostile_text)
        if kind == "calls":
            calls = draw(st.lists(ids, min_size=1, max_size=3))
            made.append(said(seq, "assistant", draw(st.none() | st.just(text)), calls=calls))
        elif kind == "tool":
            made.append(said(seq, "tool", text * draw(st.integers(1, 30)), answers=draw(ids)))
        else:
            made.append(said(seq, kind, text))
    return made


def what_a_provider_refuses(messages: Sequence[Message]) -> list[str]:
    """Everything that a strict provider would complain of; [] when it accepts the messages.

    Written without the code under test: a walk that knows which calls wait for their answer.
    """
    complaints: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            if message.tool_call_id in waiting:
                waiting.remove(str(message.tool_call_id))
            else:
                complaints.append(f"result {message.tool_call_id} follows no open call")
            continue
        complaints += [f"call {call} is not answered directly after it" for call in waiting]
        waiting = [call.id for call in message.tool_calls]
        if len(set(waiting)) != len(waiting):
            complaints.append("one id for two calls")
    return complaints + [f"call {call} is not answered at the end" for call in waiting]
