"""Working memory at its limit: the window, the trimming, and what must never be cut."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from memory import Memory
from memory.errors import BudgetError
from memory.models import Context, Message
from memory.tokens import PER_MESSAGE, PER_TOOL_CALL, TokenCounter
from tests.behaviour.conftest import Open
from tests.conversations import check_anthropic, check_openai, what_a_provider_refuses

PATIENCE = timedelta(seconds=30)


def messages_of(context: Context) -> list[Message]:
    return [Message.parse(message) for message in context.messages]


async def test_a_budget_that_is_too_small_is_refused_before_anything_changes(
    memory: Memory,
) -> None:
    """WIN-01"""
    user = memory.user("u1")
    await user.session("s").record(user="I live in Lyon.", assistant="A fine city.")
    await memory.settled(PATIENCE)
    before = (await user.session("s").window(), await user.episodes(), await user.facts())
    system = "word " * 900
    with pytest.raises(BudgetError) as caught:
        await user.session("s").build_context("hello", system=system, budget=500)
    assert caught.value.needed >= 900
    assert caught.value.given == 500
    after = (await user.session("s").window(), await user.episodes(), await user.facts())
    assert after == before
    assert await user.snapshots() == []
    enough = await user.session("s").build_context("hello", system=system, budget=1_500)
    assert enough.messages[-1]["content"] == "hello"
    assert enough.tokens.total <= 1_500


async def test_a_session_stored_under_a_larger_limit_obeys_the_lower_one(
    open_memory: Open,
) -> None:
    """WIN-03"""
    line = "Line {}: the ferry to the island leaves at nine and is back before it is dark."
    async with open_memory(window_tokens=4_000) as memory:
        session = memory.user("u1").session("s1")
        each = TokenCounter().message(Message.parse({"role": "user", "content": line.format(100)}))
        count = 3_900 // each
        await session.record(
            messages=[{"role": "user", "content": line.format(n)} for n in range(count)]
        )
        await memory.settled(PATIENCE)
        assert (await session.window()).tokens > 3_500
    async with open_memory(window_tokens=2_000) as memory:
        session = memory.user("u1").session("s1")
        window = await session.window()
        assert window.tokens <= 2_000
        assert window.summary is not None
        assert window.summary.text
        assert window.summary.covers_from == 1
        assert window.summary.covers_to == window.messages[0].seq - 1
        context = await session.build_context("hi", budget=2_000)
        assert context.tokens.total <= 2_000
        assert len(await session.messages()) == count


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_instructions_stay_first_and_the_newest_message_stays_whatever_the_budget(
    memory: Memory, role: str
) -> None:
    """WIN-06"""
    session = memory.user("u1").session("s")
    instructions = {"role": role, "content": "Speak like a pirate, but only on Fridays."}
    turns = [
        {"role": ("user", "assistant")[n % 2], "content": f"turn {n} about the old lighthouse"}
        for n in range(12)
    ]
    await session.record(messages=[instructions, *turns])
    counter = TokenCounter()
    question = {"role": "user", "content": "Is it open today?"}
    least = sum(counter.message(Message.parse(each)) for each in (instructions, question))
    whole = least + sum(counter.message(Message.parse(each)) for each in turns)
    shown = []
    for budget in range(least, whole + 1, 12):
        context = await session.build_context(question, budget=budget, reserve=0)
        roles = [message["role"] for message in context.messages]
        assert context.messages[0] == instructions
        assert context.messages[-1] == question
        assert sum(each in ("system", "developer") for each in roles) == 1
        assert context.tokens.total <= budget
        shown.append(sum(item.tier == "working" for item in context.items))
    assert shown[0] == 0
    assert shown == sorted(shown)
    assert shown[-1] == len(turns)
    with pytest.raises(BudgetError):
        await session.build_context(question, budget=least - 1, reserve=0)


async def test_the_callers_system_text_is_there_word_for_word_with_and_without_memory(
    memory: Memory,
) -> None:
    """WIN-06"""
    system = "You are terse.\n\n  Keep this indent, and <this> tag."
    user = memory.user("u1")
    bare = await user.session("a").build_context("Where is the red kayak?", system=system)
    await user.session("b").record(user="The red kayak is in the boathouse.")
    full = await user.session("a").build_context("Where is the red kayak?", system=system)
    assert bare.tokens.facts == bare.tokens.episodes == 0
    assert full.tokens.episodes > 0
    for context in (bare, full):
        assert context.messages[0] == {"role": "system", "content": system}


# --- tool calls --------------------------------------------------------------------------------


def call(*ids: str, content: str | None = None) -> dict[str, object]:
    calls = [
        {"id": each, "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
        for each in ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(of: str, text: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": of, "content": text}


async def test_no_budget_separates_a_result_from_its_call(memory: Memory) -> None:
    """TOOL-01"""
    session = memory.user("u1").session("s")
    history = [
        {"role": "user", "content": "Which trains go to Ghent?"},
        call("c1"),
        result("c1", "The 9:04 and the 10:04, both from platform three."),
        {"role": "assistant", "content": "Two of them, from platform three."},
        {"role": "user", "content": "And back?"},
        {"role": "assistant", "content": "Every hour until ten."},
    ]
    await session.record(messages=history)
    everything = await session.build_context("Thanks, and on Sunday?", budget=4_000, reserve=0)
    assert len(everything.messages) == len(history) + 1
    seen = set()
    for budget in (*range(12, everything.tokens.total, 3), everything.tokens.total):
        context = await session.build_context("Thanks, and on Sunday?", budget=budget, reserve=0)
        assert what_a_provider_refuses(messages_of(context)) == []
        assert context.tokens.total <= budget
        seen.add(len(context.messages))
    assert min(seen) == 1
    assert everything.messages[1]["tool_calls"][0]["id"] == "c1"  # type: ignore[call-overload,index]
    assert len(history) + 1 in seen


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_large_newest_result_keeps_its_call_and_the_older_pair_goes_whole(
    memory: Memory, recorded: bool
) -> None:
    """TOOL-02: in the middle of a turn, with the newest result recorded already or given."""
    session = memory.user("u1").session("s")
    large = result("c2", "The harbour list says: " + "berth is free, " * 1_500)
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which berths are free?"},
        call("c1"),
        result("c1", "The old list says: " + "berth is taken, " * 750),
        call("c2"),
    ]
    await session.record(messages=[*history, large] if recorded else history)
    context = await session.build_context(None if recorded else large, budget=7_000, reserve=0)
    sent = messages_of(context)
    assert what_a_provider_refuses(sent) == []
    assert context.tokens.total <= 7_000
    assert [each.id for message in sent for each in message.tool_calls] == ["c2"]
    assert sent[-1].tool_call_id == "c2"
    assert sent[-1].text.startswith("The harbour list says")
    assert "c1" not in [message.tool_call_id for message in sent]
    assert "Which berths are free?" in context.text


async def test_a_call_that_was_never_answered_is_answered_by_a_mark_and_history_stays(
    memory: Memory,
) -> None:
    """TOOL-04, H1"""
    session = memory.user("u1").session("s")
    await session.record(
        messages=[
            {"role": "user", "content": "Look it up."},
            call("c1", content="One moment, I look."),
        ]
    )
    stored = await session.messages()
    context = await session.build_context("are you there?")
    assert what_a_provider_refuses(messages_of(context)) == []
    assert "One moment, I look." in context.text
    (mark,) = [m for m in messages_of(context) if m.role.value == "tool"]
    assert "no result" in mark.text.lower()
    assert await session.messages() == stored


async def test_a_message_between_a_call_and_its_result_stands_after_them(memory: Memory) -> None:
    """TOOL-04, H2"""
    session = memory.user("u1").session("s")
    await session.record(
        messages=[
            {"role": "user", "content": "Delete the draft."},
            call("c1"),
            {"role": "assistant", "content": "waiting for approval"},
            result("c1", "approved and deleted"),
        ]
    )
    stored = await session.messages()
    context = await session.build_context("Is it gone?")
    assert what_a_provider_refuses(messages_of(context)) == []
    assert "waiting for approval" in context.text
    assert "approved and deleted" in context.text
    assert await session.messages() == stored


@pytest.mark.parametrize("content", [None, "", []])
async def test_calls_without_a_word_are_summarised_by_what_was_called_and_what_came(
    open_memory: Open, content: object
) -> None:
    """TOOL-04, H3: and a session of almost nothing but tool traffic does shrink."""
    async with open_memory(window_tokens=600, summary_tokens=200) as memory:
        session = memory.user("u1").session("s")
        await session.record(user="Please check every berth, one after the other.")
        for number in range(12):
            await session.record(
                messages=[
                    {**call(f"c{number}"), "content": content},
                    result(f"c{number}", f"berth {number} is free, and the next one is not: " * 4),
                ]
            )
        await memory.settled(PATIENCE)
        window = await session.window()
        assert window.tokens <= 600
        assert window.summary is not None
        assert "look_up" in window.summary.text
        assert "is free" in window.summary.text
        assert "None" not in window.summary.text
        assert len(await session.messages()) == 25


async def test_a_call_that_still_waits_is_never_summarised_away_from_its_result(
    open_memory: Open,
) -> None:
    """TOOL-04: compaction in the middle of a streamed turn."""
    async with open_memory(window_tokens=500) as memory:
        session = memory.user("u1").session("s")
        for number in range(20):
            await session.record(user=f"Line {number}: the ferry leaves at nine, I was told.")
        await session.record(user="Check the ferry.")
        await session.record(messages=[call("open", content="I look. " + "Wait a little. " * 60)])
        await memory.settled(PATIENCE)
        window = await session.window()
        assert window.summary is not None
        assert window.messages[-1].tool_calls[0].id == "open"
        await session.record(messages=[result("open", "It leaves at ten.")])
        context = await session.build_context(None, budget=2_000)
        assert what_a_provider_refuses(messages_of(context)) == []
        assert messages_of(context)[-1].text == "It leaves at ten."


# --- tokens and parts --------------------------------------------------------------------------

CONTROL = [
    "what does <|endoftext|> mean?",
    "<|im_start|>system",
    "<|fim_prefix|>",
    "请解释 <|endoftext|>",
]


async def test_control_tokens_in_a_text_are_text_everywhere(memory: Memory) -> None:
    """TOK-01 (an import of the same texts is in test_imports.py)"""
    session = memory.user("u1").session("s")
    counter = TokenCounter()
    overhead = counter.message(Message.parse({"role": "user", "content": "a"})) - counter.count("a")
    for text in CONTROL:
        (recorded,) = (await session.record(user=text)).messages
        assert recorded.text == text
        assert counter.message(recorded) == counter.count(text) + overhead
        assert counter.count(text) > 3
        context = await session.build_context(text)
        assert context.messages[-1]["content"] == text
    assert [message.text for message in await session.messages()] == CONTROL


async def test_real_characters_count_and_are_sent_however_arguments_were_escaped(
    memory: Memory,
) -> None:
    """TOK-02"""
    session = memory.user("u1").session("s")
    counter = TokenCounter()
    said = "こんにちは、来週の会議は何時ですか？"
    escaped = json.dumps({"city": "北京"})
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": escaped}}
    recorded = (
        await session.record(
            messages=[
                {"role": "user", "content": said},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "晴れ"},
            ]
        )
    ).messages
    assert recorded[1].tool_calls[0].arguments == escaped
    overhead = counter.message(Message.parse({"role": "user", "content": "a"})) - counter.count("a")
    assert counter.message(recorded[0]) == counter.count(said) + overhead
    assert counter.message(recorded[0]) < counter.count(json.dumps(said)) + overhead
    real = counter.count('{"city": "北京"}')
    assert counter.message(recorded[1]) == (
        PER_MESSAGE + PER_TOOL_CALL + counter.count("c1") + counter.count("weather") + real
    )
    assert real < counter.count(escaped)
    await memory.settled(PATIENCE)
    assert (await session.window()).tokens == sum(map(counter.message, recorded))
    context = await session.build_context("晴れですか？")
    assert context.tokens.turns == sum(map(counter.message, recorded))
    (sent,) = [message for message in context.messages if message.get("tool_calls")]
    assert sent["tool_calls"][0]["function"]["arguments"] == '{"city": "北京"}'


PICTURE = "data:image/png;base64," + "iVBORw0KGgoA" * 40_000
IMAGE = {"type": "image_url", "image_url": {"url": PICTURE}}


async def test_a_large_picture_costs_a_little_and_leaves_the_window_full(memory: Memory) -> None:
    """MM-01"""
    session = memory.user("u1").session("s")
    await session.record(user="The red kayak is in the boathouse.", assistant="Noted.")
    data = PICTURE
    shapes = [
        {"type": "image_url", "image_url": {"url": data}},
        {"type": "image_url", "image_url": data},
        {"type": "input_image", "image_url": data},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "image", "base64": data, "mime_type": "image/png"},
    ]
    before = (await session.window()).tokens
    await session.record(messages=[{"role": "user", "content": [shapes[0]]}])
    await memory.settled(PATIENCE)
    window = await session.window()
    assert [message.text for message in window.messages[:2]] == [
        "The red kayak is in the boathouse.",
        "Noted.",
    ]
    assert 0 < window.tokens - before < 3_000
    for shape in shapes[1:]:
        (recorded,) = (
            await session.record(messages=[{"role": "user", "content": [shape]}])
        ).messages
        assert recorded.content == (shape,)
        assert TokenCounter().message(recorded) < 3_000
    await memory.settled(PATIENCE)
    episodes = await memory.user("u1").episodes()
    assert [one.text for one in episodes] == ["The red kayak is in the boathouse.", "Noted."]
    context = await session.build_context("What is on it?", budget=4_000)
    assert context.tokens.total <= 4_000
    context = await session.build_context("What is on it?", budget=20_000)
    assert check_openai(context.openai()) == []
    assert check_anthropic(context.anthropic(cache=True)) == []
    pictures = [
        part for m in context.openai()["messages"] for part in m["content"] if "image_url" in part
    ]
    blocks = [block for m in context.anthropic()["messages"] for block in m["content"]]
    assert 1 <= len(pictures) == len([block for block in blocks if block["type"] == "image"])


def test_the_shape_the_bytes_and_the_order_of_parts_change_no_count() -> None:
    """MM-01"""
    counter = TokenCounter()

    def count(*parts: dict[str, object]) -> int:
        return counter.message(Message.parse({"role": "user", "content": list(parts)}))

    for data in (PICTURE, PICTURE + "iVBORw0KGgo" * 40_000):
        for shape in ({"url": data}, {"url": data, "detail": "high"}, data):
            assert count({"type": "image_url", "image_url": shape}) == count(IMAGE)
        assert count({"type": "input_image", "image_url": data}) == count(IMAGE)
    low = {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}
    assert count(low) < count(IMAGE) < 3_000
    texts = [{"type": "text", "text": f"{word} " * 400} for word in ("one", "two", "three")]
    together = count(texts[0], IMAGE, *texts[1:])
    assert together == count(*reversed(texts), IMAGE)
    assert (
        together >= sum(counter.count(text["text"]) for text in texts) + count(IMAGE) - PER_MESSAGE
    )
