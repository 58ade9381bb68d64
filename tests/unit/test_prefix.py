"""The beginning of a context stays as it was, as far as it can; what broke it is said."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.budget import ContextPolicy, Share
from memory.context import ContextParts, assemble
from memory.models import (
    Context,
    JsonObject,
    Message,
    Recalled,
    RecordedMessage,
    Role,
    Scope,
    Summary,
    ToolCall,
    Window,
)
from memory.prefix import Previous, Recent
from memory.tokens import TokenCounter
from tests.conversations import check_anthropic, check_openai

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
COUNTER = TokenCounter()
TOOL: JsonObject = {"name": "look_up", "input_schema": {"type": "object"}}


def said(seq: int, role: Role, content: Any, **fields: Any) -> RecordedMessage:
    return RecordedMessage(
        role=role,
        content=content,
        id=f"m{seq}",
        session="monday",
        seq=seq,
        event_time=NOW,
        recorded_at=NOW,
        **fields,
    )


def fact(name: str, text: str) -> Recalled:
    return Recalled(tier="semantic", id=name, text=text, score=0.5, valid_from=NOW)


def episode(name: str, text: str) -> Recalled:
    return Recalled(tier="episodic", id=name, text=text, score=0.5, event_time=NOW, role=Role.USER)


def kept(context: Context, name: str = "s1") -> Previous:
    return Previous.of(context.model_copy(update={"snapshot_id": name}))


FIRST = ContextParts(
    window=Window(
        messages=(said(9, Role.USER, "hi"), said(10, Role.ASSISTANT, "hello")),
        summary=Summary(text="They met.", covers_from=1, covers_to=8),
    ),
    message=Message(role=Role.USER, content="I went to Porto."),
    budget=2_000,
    reserve=200,
    now=NOW,
    system="Be kind.",
    tools=[TOOL],
    pinned=[fact("p1", "user is allergic to penicillin")],
    episodes=[episode("e1", "I like rice")],
)
TURN = (said(11, Role.USER, "I went to Porto."), said(12, Role.ASSISTANT, "Nice."))


def after(first: ContextParts, *messages: RecordedMessage, **changes: Any) -> Context:
    """The context of the next turn, with the first as the one before it."""
    window = first.window.model_copy(update={"messages": (*first.window.messages, *messages)})
    following = replace(
        first,
        **{
            "window": window,
            "message": Message(role=Role.USER, content="And tomorrow I fly."),
            "previous": kept(assemble(first, counter=COUNTER)),
            **changes,
        },
    )
    return assemble(following, counter=COUNTER)


def test_another_question_where_nothing_was_recorded_is_named() -> None:
    context = after(FIRST)
    assert context.prefix is not None
    assert context.prefix.messages == len(context.messages) - 1
    assert context.prefix.broken_by == "the new message is another one"


def test_in_the_normal_case_everything_up_to_the_memory_block_is_the_same() -> None:
    context = after(FIRST, *TURN)
    assert context.prefix is not None
    assert context.prefix.previous == "s1"
    assert context.prefix.messages == 5  # system, pinned, summary, two turns
    before = assemble(FIRST, counter=COUNTER).tokens
    assert context.prefix.tokens == (
        before.tools + before.system + before.pinned + before.summary + before.turns
    )
    assert "what is recalled" in context.prefix.broken_by


def test_without_a_memory_block_all_of_the_context_before_is_the_beginning() -> None:
    bare = replace(FIRST, episodes=())
    context = after(bare, *TURN)
    assert context.prefix is not None
    assert context.prefix.messages == len(assemble(bare, counter=COUNTER).messages)
    assert context.prefix.broken_by == ""
    assert assemble(bare, counter=COUNTER).prefix is None


@pytest.mark.parametrize(
    ("changes", "messages", "because"),
    [
        ({"tools": []}, 0, "tools"),
        ({"system": "Be brief."}, 0, "system"),
        ({"pinned": [fact("p1", "user is allergic to nuts")]}, 1, "pinned"),
        ({"pinned": []}, 1, "pinned"),
        (
            {
                "window": Window(
                    messages=TURN, summary=Summary(text="They met.", covers_from=1, covers_to=10)
                )
            },
            2,
            "the summary was extended",
        ),
        (
            {
                "window": Window(
                    messages=(*FIRST.window.messages, *TURN),
                    summary=Summary(text="They met once.", covers_from=1, covers_to=8),
                )
            },
            2,
            "the summary of the same messages",
        ),
        (
            {"window": Window(messages=(*FIRST.window.messages, *TURN))},
            2,
            "the summary is not there",
        ),
        (
            {"window": FIRST.window.model_copy(update={"messages": TURN})},
            3,
            "older turns were cut",
        ),
    ],
)
def test_what_breaks_the_beginning_is_named(
    changes: dict[str, Any], messages: int, because: str
) -> None:
    bare = replace(FIRST, episodes=())
    context = after(bare, *TURN, **changes)
    assert context.prefix is not None
    assert because in context.prefix.broken_by
    assert context.prefix.messages == messages


def test_tools_whose_fields_stand_in_another_order_are_no_beginning() -> None:
    turned: JsonObject = dict(reversed(TOOL.items()))
    assert turned == TOOL
    prefix = after(FIRST, *TURN, tools=[turned]).prefix
    assert prefix is not None
    assert (prefix.messages, prefix.tokens) == (0, 0)
    assert "another order" in prefix.broken_by
    stored = replace(kept(assemble(FIRST, counter=COUNTER)), in_order=False)
    again = after(FIRST, *TURN, tools=[turned], previous=stored).prefix
    assert again is not None
    assert again.messages == 5


def test_a_first_summary_takes_the_place_of_turns() -> None:
    bare = replace(FIRST, episodes=(), window=Window(messages=FIRST.window.messages))
    summed = Window(messages=TURN, summary=Summary(text="They met.", covers_from=1, covers_to=10))
    prefix = after(bare, window=summed).prefix
    assert prefix is not None
    assert prefix.broken_by == "a summary took the place of older turns"


def test_older_turns_that_come_back_are_told_from_turns_that_were_cut() -> None:
    bare = replace(FIRST, episodes=(), window=Window(messages=TURN))
    prefix = after(bare, window=Window(messages=(*FIRST.window.messages, *TURN))).prefix
    assert prefix is not None
    assert prefix.broken_by == "older turns are shown again"


# --- the cut -----------------------------------------------------------------------------------


def talk(turns: int, words: int = 12) -> Window:
    roles = (Role.ASSISTANT, Role.USER)
    return Window(
        messages=tuple(
            said(n, roles[n % 2], f"turn {n}" + " word" * words) for n in range(1, turns + 1)
        )
    )


def parts(window: Window, **changes: Any) -> ContextParts:
    return replace(
        FIRST, **{"window": window, "tools": (), "pinned": (), "episodes": (), **changes}
    )


def first_turn(context: Context) -> str | None:
    return kept(context).first_turn


def test_the_cut_stays_until_what_follows_it_does_not_fit_and_then_leaves_room() -> None:
    cuts = []
    previous = None
    for turns in range(2, 120, 2):
        context = assemble(parts(talk(turns), budget=700, previous=previous), counter=COUNTER)
        previous = kept(context)
        cuts.append((previous.first_turn, context.tokens.turns))
    moves = [now for was, now in pairwise(cuts) if was[0] != now[0]]
    assert 2 <= len(moves) <= 15
    room = 700 - 200 - COUNTER.message(Message(role=Role.USER, content="I went to Porto."))
    assert all(tokens <= 0.76 * room for _, tokens in moves[1:])
    assert max(tokens for _, tokens in cuts) > 0.9 * room


def test_another_budget_does_not_keep_the_cut() -> None:
    small = assemble(parts(talk(60), budget=400), counter=COUNTER)
    large = parts(talk(60), budget=3_000)
    assert first_turn(small) != "m1"
    assert assemble(replace(large, previous=kept(small)), counter=COUNTER).messages == (
        assemble(large, counter=COUNTER).messages
    )


def test_a_cut_that_shows_much_too_little_is_made_anew() -> None:
    """As when the system text was large for one turn."""
    short = assemble(parts(talk(60), budget=900, system="word " * 500), counter=COUNTER)
    again = assemble(parts(talk(60), budget=900, previous=kept(short)), counter=COUNTER)
    assert again.tokens.turns > 2 * short.tokens.turns


def cuts_of(policy: ContextPolicy, *, long: int = 0) -> list[int]:
    """The seq of the first turn, turn by turn, while what is recalled comes and goes; every tenth
    message has `long` words more."""
    rng = random.Random(1)
    held: list[RecordedMessage] = []
    previous: Previous | None = None
    firsts = []
    for turn in range(120):
        found = [episode(f"e{n}", "I said something " * 15) for n in range(rng.choice([0, 0, 6]))]
        given_parts = parts(
            Window(messages=tuple(held)),
            budget=1_500,
            episodes=found,
            previous=previous,
            policy=policy,
        )
        previous = kept(assemble(given_parts, counter=COUNTER), f"s{turn}")
        firsts.append(int((previous.first_turn or "m1")[1:]))
        for role in (Role.USER, Role.ASSISTANT):
            words = rng.randint(3, 30) + long * (len(held) % 10 == 9)
            held.append(said(len(held) + 1, role, "word " * words))
    return firsts


@pytest.mark.parametrize("slack", [0.1, 0.25, 0.45])
def test_older_turns_do_not_come_and_go_with_what_is_recalled(slack: float) -> None:
    firsts = cuts_of(ContextPolicy(slack=slack), long=400)
    assert firsts[-1] > 100
    assert firsts == sorted(firsts)


def test_the_cut_stays_also_where_turns_may_have_little() -> None:
    little = Share(floor=0.1, ceiling=0.1)
    policy = ContextPolicy(turns=Share(floor=0.1, ceiling=0.3), facts=little, episodes=little)
    firsts = cuts_of(policy)
    assert 10 < len(set(firsts)) < 60


def test_what_fits_for_sure_is_shown_whatever_was_cut_before() -> None:
    short = assemble(parts(talk(8), budget=900, system="word " * 600), counter=COUNTER)
    assert first_turn(short) != "m1"
    again = assemble(parts(talk(8), budget=900, previous=kept(short)), counter=COUNTER)
    assert first_turn(again) == "m1"
    assert again.dropped == ()


def test_a_shortened_summary_stays_as_it_was_while_it_fits() -> None:
    summary = Summary(text="They talked about this and that. " * 100, covers_from=1, covers_to=80)
    window = Window(messages=(said(81, Role.USER, "hi"),), summary=summary)
    asked = Message(role=Role.USER, content="word " * 60)
    first = assemble(parts(window, budget=800, message=asked), counter=COUNTER)
    shorter = Message(role=Role.USER, content="Ok.")
    second = parts(window, budget=800, message=shorter)
    assert assemble(second, counter=COUNTER).messages[1] != first.messages[1]
    steady = assemble(replace(second, previous=kept(first)), counter=COUNTER)
    assert steady.messages[1] == first.messages[1]
    longer = Message(role=Role.USER, content="word " * 300)
    pressed = parts(window, budget=800, message=longer, previous=kept(first))
    assert assemble(pressed, counter=COUNTER).messages[1] != first.messages[1]


# --- a conversation of two hundred turns -------------------------------------------------------


def conversation(seed: int, turns: int = 200) -> Iterator[tuple[Message, list[RecordedMessage]]]:
    """The new message and what was said before it, turn by turn: talk, calls, long pastes."""
    rng = random.Random(seed)
    words = [
        "kayak",
        "boathouse",
        "river",
        "tea",
        "天气",
        "很好",
        "paddle",
        "Oslo",
        "dinner",
        "Anna",
    ]
    held: list[RecordedMessage] = []

    def add(role: Role, text: str | None, **fields: Any) -> None:
        held.append(said(len(held) + 1, role, text, **fields))

    def text(least: int, most: int) -> str:
        return " ".join(rng.choices(words, k=rng.randint(least, most)))

    for turn in range(turns):
        message = Message(role=Role.USER, content=text(3, 40))
        yield message, list(held)
        add(Role.USER, message.text)
        if rng.random() < 0.2:
            call = ToolCall(id=f"c{turn}", name="look_up", arguments='{"q": "tea"}')
            add(Role.ASSISTANT, None, tool_calls=(call,))
            add(Role.TOOL, text(5, 90), tool_call_id=f"c{turn}")
        add(Role.ASSISTANT, text(5, 60))


def recalled(rng: random.Random) -> dict[str, Any]:
    """What is recalled for one message: now nothing, now a lot."""
    found = rng.choice([0, 0, 2, 5, 8])
    return {
        "episodes": [
            episode(f"e{n}", "I said something " * rng.randint(1, 6)) for n in range(found)
        ],
        "facts": [fact(f"f{n}", f"user likes tea number {n}") for n in range(rng.randint(0, 6))],
    }


def reused(seed: int, budget: int, *, steady: bool) -> float:
    """The share of tokens sent, from the second turn on, that a prompt cache could use again."""
    rng = random.Random(seed)
    sent = again = 0
    previous: Previous | None = None
    for turn, (message, held) in enumerate(conversation(seed)):
        given_parts = ContextParts(
            window=Window(messages=tuple(held)),
            message=message,
            budget=budget,
            reserve=100,
            now=NOW + timedelta(minutes=turn),
            system="You help with boats.",
            pinned=[fact("p1", "user is allergic to penicillin")],
            previous=previous,
            policy=ContextPolicy() if steady else ContextPolicy(slack=0.0),
            **recalled(rng),
        )
        context = assemble(given_parts, counter=COUNTER)
        assert context.tokens.total <= budget
        assert check_openai(context.openai()) == []
        assert check_anthropic(context.anthropic()) == []
        if context.prefix is not None:
            sent += context.tokens.total - context.tokens.reserve
            again += context.prefix.tokens
        cut = kept(context, f"s{turn}")
        # Without a first turn to keep, and without slack, the cut is made anew at every turn.
        previous = cut if steady else replace(cut, first_turn=None)
    return again / sent


@settings(max_examples=3)
@given(seed=st.integers(0, 1_000), budget=st.sampled_from([900, 1_500, 3_000]))
def test_a_steady_cut_reuses_far_more_than_one_that_moves_at_every_turn(
    seed: int, budget: int
) -> None:
    steady, moving = reused(seed, budget, steady=True), reused(seed, budget, steady=False)
    assert steady > 0.3
    assert steady > 2 * moving


# --- what a process keeps ----------------------------------------------------------------------


def test_only_so_many_sessions_are_remembered_the_newest_of_them() -> None:
    recent = Recent(limit=2)
    scope, other = Scope.of("acme", "ada"), Scope.of("acme", "bob")
    context = kept(assemble(FIRST, counter=COUNTER))
    for who, session in ((scope, "a"), (other, "a"), (scope, "a"), (scope, "b")):
        recent.put(who, session, context)
    assert len(recent) == 2
    assert recent.get(scope, "a") is recent.get(scope, "b") is context
    assert recent.get(other, "a") is None
