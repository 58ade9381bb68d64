"""Contexts through the front door: their beginning stays, whoever built the one before."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from memory import Context, Memory
from memory.budget import ContextPolicy, Share
from memory.errors import BudgetError, InvalidInput
from memory.journal.schema import snapshots
from tests.behaviour.conftest import Open

PATIENCE = timedelta(seconds=30)
TOOL = {"name": "look_up", "description": "Looks it up.", "input_schema": {"type": "object"}}


async def test_a_context_begins_as_the_one_before_whichever_process_built_it(
    open_memory: Open,
) -> None:
    async with open_memory() as one, open_memory() as other:
        previous = None
        for turn, memory in enumerate([one, one, other, one, other]):
            session = memory.user("u1").session("s")
            said = f"I paddled {turn} miles."
            context = await session.build_context(said, system="Be kind.", tools=[TOOL])
            await session.record(user=said, assistant="Well done.")
            if previous is None:
                assert context.prefix is None
            else:
                assert context.prefix is not None
                assert context.prefix.previous == previous.snapshot_id
                same = context.prefix.messages
                assert same >= 2 * turn - 1
                assert context.messages[:same] == previous.messages[:same]
                assert context.prefix.tokens > context.tokens.tools > 0
            previous = context
        assert await memory.user("u1").snapshot(context.snapshot_id or "") == context


async def test_a_conversation_that_outgrows_its_budget_is_cut_once_in_many_turns(
    memory: Memory,
) -> None:
    session = memory.user("u1").session("s")
    first, moved = "", 0
    for turn in range(30):
        said = f"Turn {turn}: the river was high and the weather fine all day long."
        context = await session.build_context(said, budget=700, reserve=100)
        await session.record(user=said, assistant="I see.")
        assert context.tokens.total <= 700
        turns = [item.id for item in context.items if item.tier == "working"]
        if turns and turns[0] != first:
            first, moved = turns[0], moved + 1
    assert 2 <= moved <= 8


async def test_a_dialogue_is_offered_more_than_a_question_and_k_is_what_the_caller_says(
    open_memory: Open,
) -> None:
    def of(context: Context) -> int:
        return sum(item.tier == "episodic" for item in context.items)

    async with open_memory(context_k=9) as memory:
        user = memory.user("ada")
        days = [f"The red kayak went down river number {n}." for n in range(30)]
        await user.session("past").record(messages=[{"role": "user", "content": d} for d in days])
        assert await memory.settled(PATIENCE)
        session = user.session("now")
        question = "Where did the red kayak go?"
        dialogue = f"Ada: {question}\nBo: Down a river.\nAda: I like that red kayak."
        assert of(await session.build_context(question)) == 9
        assert of(await session.build_context(dialogue)) == 12
        assert of(await session.build_context("Go on.", query=dialogue)) == 12
        assert of(await session.build_context(dialogue, k=5)) == 5


async def test_a_context_before_that_cannot_be_read_is_no_reason_to_fail_a_turn(
    open_memory: Open, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_memory() as memory:
        session = memory.user("u1").session("s")
        await session.build_context("I went to Porto.")
        journal = memory._parts.journal
        await journal.write(lambda c: c.execute(update(snapshots).values(digest="broken")) and None)
    with caplog.at_level(logging.WARNING):
        async with open_memory() as memory:
            context = await memory.user("u1").session("s").build_context("And to Lisbon.")
            assert context.prefix is None
            assert "cannot be read" in caplog.text
            again = await memory.user("u1").session("s").build_context("And to Faro.")
            assert again.prefix is not None


async def test_tools_count_and_a_policy_is_of_a_call_or_of_the_memory(open_memory: Open) -> None:
    no_turns = ContextPolicy(turns=Share(floor=0.0, ceiling=0.0))
    async with open_memory() as memory:
        session = memory.user("u1").session("s")
        await session.record(user="I went to Porto.", assistant="Nice.")
        plain = await session.build_context("And to Lisbon.")
        assert (plain.tokens.tools, plain.tools) == (0, ())
        assert plain.tokens.turns > 0
        armed = await session.build_context("And to Lisbon.", tools=[TOOL], policy=no_turns)
        assert armed.tools == (TOOL,)
        assert armed.tokens.turns == 0
        with pytest.raises(BudgetError, match=r"tools \(\d+\)"):
            await session.build_context("x", tools=[TOOL] * 20, budget=100, reserve=0)
        wrong: list[Any] = [TOOL, "abc", [3], 7]
        for tools in wrong:
            with pytest.raises(InvalidInput, match=r"tool"):
                await session.build_context("x", tools=tools)


async def test_what_nothing_is_known_of_is_told_from_what_could_not_be_asked(
    memory: Memory,
) -> None:
    user = memory.user("u1")
    context = await user.session("a").build_context("What is my dentist called?")
    assert "Nothing in memory answers this." in context.text
    await user.session("b").record(user="My dentist is called Dr. Varga.")
    await memory.settled(PATIENCE)
    context = await user.session("a").build_context("What is my dentist called?")
    assert "Varga" in context.text
    assert "Nothing in memory" not in context.text
    greeting = await user.session("a").build_context("Hello there!")
    assert "Nothing in memory" not in greeting.text
