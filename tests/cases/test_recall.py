"""Recall: what is found, what is not, and that a memory does not feed on itself."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from memory import Memory
from memory.embedding import Embedder
from memory.errors import EmptyInput
from memory.memory import UserMemory
from memory.models import JsonObject, Recall
from memory.recall import RecallPolicy
from tests.behaviour.conftest import Open

PATIENCE = timedelta(seconds=30)


def texts(recalled: Recall) -> list[str]:
    return [item.text for item in recalled.items if item.tier == "episodic"]


async def say(user: UserMemory, *said: str, session: str = "notes") -> None:
    await user.session(session).record(
        messages=[{"role": "user", "content": text} for text in said]
    )


async def test_asking_for_more_than_is_stored_gives_what_is_stored(memory: Memory) -> None:
    """REC-01"""
    newcomer, u2 = memory.user("u1"), memory.user("u2")
    said = [f"The kayak trip number {n} went round the island." for n in range(3)]
    await say(u2, *said)
    assert (await newcomer.recall("kayak trip", k=10)).items == ()
    assert set(texts(await u2.recall("kayak trip", k=10))) == set(said)
    context = await newcomer.session("first").build_context("x")
    assert [message["content"] for message in context.messages] == ["x"]


GARDEN_AND_TAX = [
    "The tomatoes need water every second day in July.",
    "The roses by the fence have black spots.",
    "Slugs ate all the lettuce last week.",
    "I sowed carrots in the raised bed in April.",
    "The apple tree was pruned in February.",
    "Compost goes on the beds before the first frost.",
    "The hedge must not be cut while birds are nesting.",
    "Lavender wants sun and very little water.",
    "The greenhouse window sticks when it is hot.",
    "Aphids are back on the broad beans.",
    "My tax return is due at the end of May.",
    "The accountant wants the receipts in one folder.",
    "The commuter allowance was refused last year.",
    "I paid 412 euros of back taxes in March.",
    "The home office counts for twelve hundred euros.",
    "Donations go into the second annex of the form.",
    "The tax office moved to Mill Street.",
    "无花果树今年结了很多果子。",
    "我把税务发票放在蓝色文件夹里。",
    "菜园的水管漏水了，要换一根。",
]


async def test_nothing_unrelated_is_injected_and_short_questions_are_answered(
    memory: Memory,
) -> None:
    """REC-07"""
    user = memory.user("u1")
    await say(user, *GARDEN_AND_TAX)
    assert await memory.settled(PATIENCE)
    floor = RecallPolicy().floor
    for query in ("flurb qwzx vantic", "hello", "你好"):
        recalled = await user.recall(query)
        assert recalled.items == ()
        context = await user.session("empty").build_context(query)
        assert context.tokens.episodes == 0
        assert [message["content"] for message in context.messages] == [query]
    for query, wanted in {
        "black spots": "The roses by the fence have black spots.",
        "commuter allowance": "The commuter allowance was refused last year.",
        "税务发票": "我把税务发票放在蓝色文件夹里。",
        "水管 漏水": "菜园的水管漏水了，要换一根。",
    }.items():
        recalled = await user.recall(query)
        assert wanted in texts(recalled)[:3]
        assert all(item.score >= floor for item in recalled.items if item.tier == "episodic")
        context = await user.session("empty").build_context(query)
        assert wanted in context.text
        for dropped in (recalled.dropped, context.dropped):
            below = [miss for miss in dropped if miss.cause == "below_floor"]
            assert all(miss.score < floor for miss in below)
            assert all(f"{floor:.2f}" in miss.reason for miss in below)
    for query in (
        "Which of my many neighbours borrowed the long ladder in autumn?",
        "flurb qwzx vantic",
        "囧囧 囫囵",
    ):
        unsure = await user.recall(query)
        shown = {item.id for item in unsure.items}
        context = await user.session("empty").build_context(query)
        for dropped in (unsure.dropped, context.dropped):
            below = [miss for miss in dropped if miss.cause == "below_floor"]
            assert below, query
            (number,) = {int(miss.reason.split()[-2]) for miss in below}  # "…, as 20 were"
            assert len(below) <= number <= len(GARDEN_AND_TAX) - len(shown)
            assert not shown & {miss.id for miss in below}
    greeted = await user.recall("hello")
    assert {miss.cause for miss in greeted.dropped} <= {"not_asked"}


async def test_chinese_words_are_found_inside_their_sentence(memory: Memory) -> None:
    """UNI-01"""
    user = memory.user("u1")
    wanted = "我们每周巡检用 cron 做备份，机房在成都"
    topics = ["会议", "预算", "午饭", "电影", "天气", "航班", "图书馆", "篮球", "牙医", "快递"]
    others = [f"第{n}天的{topic}记录一切正常，没有别的。" for n in range(10) for topic in topics]
    await say(user, *others[:50], wanted, *others[50:])
    await say(user, "The backup of the mail server runs at noon.")
    assert await memory.settled(PATIENCE)
    for query in ("备份", "每周巡检 cron", "成都"):
        assert wanted in texts(await user.recall(query, k=5))[:3]
    assert wanted not in texts(await user.recall("蓉", k=5))
    english = await user.recall("mail server backup", k=5)
    assert texts(english)[0] == "The backup of the mail server runs at noon."


QUESTION = "Where is the red kayak, and who has its key?"
LOOPS: dict[str, Callable[[Sequence[JsonObject]], list[JsonObject]]] = {
    "careful": lambda lent: [lent[-1]],
    "careless": lambda lent: [
        {"role": "user", "content": "\n\n".join(str(message["content"]) for message in lent)}
    ],
    "in their own messages": list,
    "in blocks": lambda lent: [
        {
            "role": "user",
            "content": [{"type": "text", "text": str(message["content"])} for message in lent],
        }
    ],
}
"""What an agent records of the memory block and the question that it was sent."""


async def test_an_agent_that_records_its_whole_prompt_does_not_grow_its_memory(
    memory: Memory,
) -> None:
    """REC-06, the careful and the careless loops."""
    question = QUESTION
    for loop, of in LOOPS.items():
        user = memory.user(loop)
        await say(user, "The red kayak is in the boathouse by the lake.", session="earlier")
        session = user.session("loop")
        sizes = []
        for turn in range(20):
            context = await session.build_context(question, budget=6_000)
            answer = f"In the boathouse; the keeper has the key. ({turn})"
            await session.record(
                messages=[
                    *of(context.messages[-2 if context.tokens.memory else -1 :]),
                    {"role": "assistant", "content": answer},
                ]
            )
            sizes.append(context.tokens)
        await memory.settled(PATIENCE)
        episodes = [episode.text for episode in await user.episodes()]
        assert not any("<memory-" in text or "From memory" in text for text in episodes)
        assert question in episodes
        turns = sizes[19].turns - sizes[4].turns
        assert sizes[19].total <= sizes[4].total + turns
        shown = [item.text for item in context.items if item.tier == "episodic"]
        assert len(shown) == len(set(shown))
        assert "The red kayak is in the boathouse by the lake." in shown


async def test_a_prompt_that_quotes_memory_is_recalled_and_kept_as_what_the_user_said(
    memory: Memory,
) -> None:
    """REC-06: only the fence is taken out, not what the user wrote around it."""
    user = memory.user("u1")
    await say(user, *(f"The red kayak note number {n} is long. " * 12 for n in range(8)))
    assert await memory.settled(PATIENCE)
    context = await user.session("s").build_context("Where is the red kayak?", budget=5_000)
    lent = str(context.messages[-2]["content"])
    assert context.tokens.memory > 500
    await user.session("s").record(user=f"{lent}\n\nWhere is the red kayak?")
    (kept,) = await user.session("s").messages()
    assert kept.text == "Where is the red kayak?"


REWRITTEN: dict[str, Callable[[str], str]] = {
    "line ends of a form": lambda lent: lent.replace("\n", "\r\n"),
    "indented": lambda lent: textwrap.indent(lent, "    "),
    "without blank lines": lambda lent: re.sub(r"\n\n+", "\n", lent),
    "on one line": lambda lent: " ".join(lent.split()),
    "in JSON": lambda lent: json.dumps({"prompt": lent, "tries": 1}),
    "in JSON as it is": lambda lent: json.dumps({"prompt": lent}, ensure_ascii=False, indent=2),
}


@pytest.mark.parametrize("rewrite", REWRITTEN.values(), ids=REWRITTEN)
async def test_a_memory_block_that_was_rewritten_on_its_way_is_not_kept_either(
    memory: Memory, rewrite: Callable[[str], str]
) -> None:
    """REC-06: forms, editors and agents change white space, and write texts into JSON."""
    user = memory.user("u1")
    await say(user, 'The red kayak is in the boathouse.\nAda "has" the key, 钥匙在她那里.')
    context = await user.session("s").build_context("Where is the red kayak?")
    lent = str(context.messages[-2]["content"])
    assert "boathouse" in lent
    call = {"id": "c1", "type": "function", "function": {"name": "ask", "arguments": "{}"}}
    await user.session("s").record(
        messages=[
            {"role": "user", "content": f"{rewrite(lent)}\n\nWhere is the red kayak?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": f"asked: {rewrite(lent)}"},
        ]
    )
    asked, _, told = await user.session("s").messages()
    assert asked.text.endswith("Where is the red kayak?")
    assert told.text.startswith("asked: ")
    assert not [text for text in (asked.text, told.text) if "memory" in text or "kayak is" in text]


async def test_memory_is_asked_what_the_user_said_and_not_the_prompt_around_it(
    memory: Memory,
) -> None:
    """REC-06: an augmented prompt together with the plain message."""
    user = memory.user("u1")
    kayak, manual = "The red kayak is in the boathouse.", "The tram manual has many pages."
    for number, text in enumerate((kayak, manual)):
        await say(user, text, session=f"s{number}")
    assert await memory.settled(PATIENCE)
    plain = "Where is the red kayak?"
    prompt = f"{'The tram manual says: many pages on trams. ' * 200}\n\nQuestion: {plain}"
    session = user.session("s")
    unsaid = await session.build_context(prompt, reserve=0)
    assert manual in [item.text for item in unsaid.items if item.tier == "episodic"]
    context = await session.build_context(prompt, query=plain, reserve=0)
    alone = await session.build_context(plain)
    shown = [item.text for item in context.items if item.tier == "episodic"]
    assert shown == [item.text for item in alone.items if item.tier == "episodic"] == [kayak]
    assert context.messages[-1]["content"] == prompt
    assert context.tokens.message > 1_500
    await session.record(user=plain, assistant="In the boathouse.")
    assert prompt not in [episode.text for episode in await user.episodes()]
    again = await session.build_context(prompt, query=plain, reserve=0)
    assert plain not in [item.text for item in again.items if item.tier == "episodic"]
    papers = prompt.partition("\n\n")[0]
    unknown = await user.session("t").build_context(papers, query="Who mends the organ?")
    assert "Nothing in memory answers this." in unknown.text
    quoted = f"{context.messages[-2]['content']}\n\nWho mends the organ?"
    assert "Nothing in memory answers this." in (await session.build_context(quoted)).text


async def test_a_prompt_of_nothing_but_memory_is_nothing_to_record(memory: Memory) -> None:
    """REC-06"""
    user = memory.user("u1")
    await say(user, "The red kayak is in the boathouse.")
    session = user.session("s")
    context = await session.build_context("Where is the red kayak?")
    with pytest.raises(EmptyInput, match="lent from memory"):
        await session.record(user=str(context.messages[-2]["content"]))
    keys = ["block", "question"]
    for _ in range(2):
        await session.record(messages=context.messages[-2:], keys=keys)
    assert [message.text for message in await session.messages()] == ["Where is the red kayak?"]


async def test_every_way_of_writing_embeds_documents_and_every_recall_a_query(
    open_memory: Open, embedder: Embedder
) -> None:
    """EMB-05 (import and the nightly job are in test_imports.py and test_nights.py)"""

    class Recorded:
        """The real embedder, with what it was asked for."""

        identity, dims = embedder.identity, embedder.dims

        def __init__(self) -> None:
            self.asked: list[tuple[str, str]] = []

        async def embed(self, texts, *, role):  # type: ignore[no-untyped-def]
            self.asked += [(role, text) for text in texts]
            return await embedder.embed(texts, role=role)

        async def close(self) -> None:
            """Nothing of its own is open."""

    heard = Recorded()
    async with open_memory(embedder=heard) as memory:
        user = memory.user("u1")
        topics = ["会议", "预算", "午饭", "电影", "航班"]
        wanted = "下周三上午要去医院做体检，记得空腹。"
        await say(user, *(f"第{n}次{t}的记录。" for n in range(10) for t in topics), wanted)
        await memory.settled(PATIENCE)
        assert {role for role, _ in heard.asked} == {"document"}
        heard.asked.clear()
        assert wanted in texts(await user.recall("体检"))[:3]
        await user.session("t").build_context("体检")
        assert heard.asked == [("query", "体检"), ("query", "体检")]
        vectors = await user.vectors(await user.episodes())
        assert len(vectors) == 51
        assert (abs((vectors**2).sum(axis=1) - 1) < 1e-3).all()


@pytest.mark.parametrize("spelling", ["{}", "{} ", "  {}\n"])
async def test_the_same_again_is_kept_and_recalled_once(memory: Memory, spelling: str) -> None:
    """DUP-02, of episodes."""
    user = memory.user("u1")
    text = "The spare key hangs behind the barometer."
    for number in range(3):
        await say(user, text if number < 2 else spelling.format(text), session=f"s{number}")
    recalled = await user.recall("spare key")
    assert [shown.strip() for shown in texts(recalled)] == [text]
    assert sum("the same" in miss.reason for miss in recalled.dropped) == 2
    assert len(await user.episodes()) == 3
