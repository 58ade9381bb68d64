"""Recall: what is found, what is not, and that a memory does not feed on itself."""

from __future__ import annotations

import json
import random
import re
import string
import textwrap
from collections.abc import Callable, Sequence
from datetime import timedelta
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from memory import Memory
from memory.embedding import Embedder
from memory.embedding.base import Role as EmbeddingRole
from memory.errors import EmptyInput
from memory.memory import UserMemory
from memory.models import JsonObject, Recall, Scope
from memory.recall import RecallPolicy
from memory.scoring import Calibration, Weights
from memory.settings import Settings
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


# --- the nearest, and what is meant to the letter ------------------------------------------------


class Drawn:
    """An embedder of drawn vectors: a text is near nothing but what its name begins with.

    'oak 3' is the direction of 'oak' and a little of its own, so that words tell nothing.
    """

    identity, dims = "drawn/24", 24

    async def embed(self, texts: Sequence[str], *, role: EmbeddingRole) -> NDArray[np.float32]:
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> NDArray[np.float32]:
        own = np.random.default_rng(crc32(text.encode())).standard_normal(self.dims)
        kind = np.random.default_rng(crc32(text[:2].encode())).standard_normal(self.dims)
        vector = kind + own
        unit: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit

    async def close(self) -> None:
        """Nothing is open."""


BY_VECTOR_ALONE = RecallPolicy(
    latin=Calibration(low=-1.0, high=1.0),
    other=Calibration(low=-1.0, high=1.0),
    weights=Weights(**dict.fromkeys(Weights.model_fields, 0.0) | {"meaning": 1.0}),
    floor=0.0,
    least_share=0.0,
    recency=0.0,
)


async def test_the_exact_nearest_is_found_for_any_k_among_many_users(
    urls: dict[str, str], scope: Scope
) -> None:
    """REC-03: one collection, with the user's filter on, and brute force beside it."""
    letters, drawn, embedder = string.ascii_lowercase, random.Random(1), Drawn()
    settings = Settings.model_validate({**urls, "tenant": scope.tenant})
    async with Memory.open(settings=settings, embedder=embedder, recall=BY_VECTOR_ALONE) as memory:
        said: dict[str, list[str]] = {}
        for name in ("much", *(f"u{number}" for number in range(10))):
            count = 1_000 if name == "much" else 100
            said[name] = ["".join(drawn.choices(letters, k=12)) for _ in range(count)]
            await say(memory.user(name), *said[name])
        assert await memory.settled(PATIENCE)
        exact_in_five = same_first = 0
        for number in range(100):
            name = "much" if number % 2 else drawn.choice([*said])
            query = "".join(drawn.choices(letters, k=11))
            asked = embedder.vector(query)
            exact = max(said[name], key=lambda text: float(embedder.vector(text) @ asked))
            user = memory.user(name)
            one, five, fifty = [texts(await user.recall(query, k=k)) for k in (1, 5, 50)]
            assert (len(one), len(five), len(fifty)) == (1, 5, 50)
            exact_in_five += exact in five
            same_first += one[0] == five[0] == fifty[0]
            assert set(fifty) <= set(said[name])
        assert exact_in_five >= 99
        assert same_first >= 99


TO_THE_LETTER = {
    "7300418826": "refund for order 7300418826 was approved",
    "PLAN.md": "config lives in PLAN.md",
    "src/net/retry.py": "the bug was in src/net/retry.py after all",
    "E11000": "the import died with E11000 at night",
    "v2.14.3": "we pinned it to v2.14.3 for the customer",
    "ada.k@example.org": "write to ada.k@example.org about the keys",
    "DE-4471-XQ": "the part number of the seal is DE-4471-XQ",
    "9f8c2e1": "the commit that broke it is 9f8c2e1",
    "https://example.org/wiki/Kiln": "the firing table is at https://example.org/wiki/Kiln",
    "std::unique_lock": "he holds a std::unique_lock while he calls back",
    "订单8841207": "订单8841207的退款已经批准了。",
    "报告-终稿.docx": "最后的版本叫报告-终稿.docx，在共享盘里。",
}
"""What is asked for to the letter, and who says it."""


async def test_numbers_and_names_of_things_are_found_to_the_letter(memory: Memory) -> None:
    """REC-04: among 200 others, many of which are all but the same."""
    user, drawn = memory.user("u1"), random.Random(2)
    others = [
        *(f"refund for order 73004188{n} was refused" for n in range(27, 60)),
        *(f"config of the {n}. machine lives in PLAN{n}.md" for n in range(33)),
        *(f"the bug was in src/net/retry{n}.py after all" for n in range(33)),
        *(f"the import died with E1{n:04} at night" for n in range(1_001, 1_034)),
        *(f"we pinned it to v2.14.{n} for customer {n}" for n in range(10, 43)),
        *(f"订单88412{n}的退款没有批准。" for n in range(10, 45)),
    ]
    assert len(others) == 200
    every = [*others, *TO_THE_LETTER.values()]
    drawn.shuffle(every)
    for number, text in enumerate(every):
        await say(user, text, session=f"s{number % 40}")
    assert await memory.settled(PATIENCE)
    for wanted, text in TO_THE_LETTER.items():
        for query in (wanted, f"What about {wanted}?", f"{wanted} 是怎么回事？"):
            assert text in texts(await user.recall(query, k=5)), query
    for absent in ("7300418899", "E19999", "src/net/retry77.py"):
        found = await user.recall(absent, k=5)
        assert all(item.scores["literal"] == 0.0 for item in found.items)


# --- who said it, and what stands beside it ------------------------------------------------------


async def test_whoever_is_named_has_said_it(memory: Memory) -> None:
    """REC-03, of conversations of several: a name in a question is who spoke."""
    talk = {
        "Ada": ["The concert was far too loud for me.", "I would rather take the train."],
        "Bob": ["The concert was the best night in years.", "I want to go by car."],
        "小红": ["我觉得那部电影太长了。"],
        "小明": ["我觉得那部电影很好看。"],
    }
    user = memory.user("u1")
    for turn in range(2):
        await user.session(f"talk {turn}").record(
            messages=[
                {"role": "user", "name": name, "content": lines[turn]}
                for name, lines in talk.items()
                if turn < len(lines)
            ]
        )
    assert await memory.settled(PATIENCE)
    for about, turn, names in (
        ("What did {} think of the concert?", 0, ("Ada", "Bob")),
        ("How does {} want to travel, by train or by car?", 1, ("Ada", "Bob")),
        ("{}觉得那部电影怎么样？", 0, ("小红", "小明")),
    ):
        for name in names:
            found = await user.recall(about.format(name))
            assert found.items[0].text == talk[name][turn], (about, name)
            assert found.items[0].speaker == name


async def test_i_am_the_user_and_you_are_the_assistant(memory: Memory) -> None:
    """REC-03, of questions that say I and you."""
    user = memory.user("u1")
    mine, yours = "My knee hurts when I run downhill.", "For a knee that hurts, try shorter steps."
    me, you = "我跑步以后膝盖疼。", "膝盖疼的话，建议你跑步时步子小一点。"
    for number, (said, answered) in enumerate(((mine, yours), (me, you))):
        await user.session(f"s{number}").record(user=said, assistant=answered)
        await user.session(f"t{number}").record(user="It rains.", assistant="Take a coat.")
    assert await memory.settled(PATIENCE)
    for query, first in {
        "What did I say about my knee?": mine,
        "What did you recommend for my knee?": yours,
        "我的膝盖怎么了？": me,
        "关于膝盖你建议过什么？": you,
    }.items():
        assert texts(await user.recall(query))[0] == first, query


ANSWERED = {
    "Where did you leave the rowing boat?": "In Harlow, behind the mill.",
    "Which colour shall the front door get?": "Something dark. Say, Prussian blue.",
    "划船比赛是哪一天？": "下个月十八号。",
}


async def test_an_answer_is_found_beside_its_question(memory: Memory) -> None:
    """REC-03, of answers that say no word of what is asked."""
    user = memory.user("u1")
    for number, (asked, answered) in enumerate(ANSWERED.items()):
        await user.session(f"s{number}").record(user=asked, assistant=answered)
    for number in range(60):
        await say(user, f"Note {number}: tea, mild weather, nothing new.", session=f"n{number}")
    assert await memory.settled(PATIENCE)
    for query, answer in zip(
        ("Where is the rowing boat?", "What colour does the front door get?", "划船比赛在哪天？"),
        ANSWERED.values(),
        strict=True,
    ):
        assert answer in texts(await user.recall(query, k=3)), query
        assert answer not in texts(await user.recall("Was there mild weather?", k=8))


NEAR = {
    "Which vehicle did I sell?": "I sold my old car to a student.",
    "When do I see the physician?": "The doctor can see me on Thursday at nine.",
    "What is wrong with the sofa?": "The couch has lost a leg.",
    "Which movie did we watch?": "We watched a film about lighthouse keepers.",
    "How many kids does Nora have?": "Nora has three children by now.",
    "Who is my attorney?": "My lawyer is called Petra Lindqvist.",
    "我什么时候看大夫？": "医生让我星期四九点去。",
    "我卖掉了哪辆轿车？": "我把旧汽车卖给了一个学生。",
}
"""Questions, and what answers them in other words."""


async def test_words_near_in_meaning_find_what_is_said_in_others(memory: Memory) -> None:
    """REC-03, of other words for the same."""
    user = memory.user("u1")
    for number, text in enumerate((*NEAR.values(), *GARDEN_AND_TAX)):
        await say(user, text, session=f"s{number}")
    assert await memory.settled(PATIENCE)
    for query, text in NEAR.items():
        assert text in texts(await user.recall(query))[:3], query
    others = memory.user("u2")
    await say(others, *GARDEN_AND_TAX)
    for query in NEAR:
        assert not set(texts(await others.recall(query))) & set(NEAR.values())


# --- nothing, where there is nothing -------------------------------------------------------------

SUBJECTS = [
    (
        "the {} for the harvest supper",
        "baker butcher florist printer caterer singer drummer waiter",
    ),
    ("the {} in the upper hall", "lamp curtain radiator carpet window piano cupboard socket"),
    ("the {} on the allotment", "pump shed gate hedge pear-tree beehive frame ladder"),
    ("the {} of the swimming club", "treasurer coach minibus newsletter banner locker roster fee"),
    ("the {} in the attic", "trunk rocking-horse skylight beam mattress suitcase mirror fan"),
    ("the {} at the workshop", "lathe vice grinder extractor bench drill saw apron"),
    ("the {} for the ferry", "ticket timetable cabin queue kiosk ramp purser delay"),
    ("the {} of the school play", "costume curtain script understudy spotlight poster aisle ghost"),
]
DONE = [
    "Ruth has finally paid for {}.",
    "Tom wants a second opinion on {}.",
    "Nobody has thought of {} yet.",
    "I forgot to ask about {}.",
    "We argued over {} again.",
    "Someone has to measure {}.",
    "It was Lena who found {}.",
    "I took a photograph of {}.",
]
THINGS = [about.format(thing) for about, things in SUBJECTS for thing in things.split()]
ENGLISH = [
    "My sister keeps her violin under the bed.",
    *(d.format(t) for t in THINGS for d in DONE),
]
主题 = [
    ("丰收晚会的{}", "面包 鲜花 海报 乐队 厨师 灯光 座位 请帖"),
    ("二楼大厅的{}", "窗帘 暖气 地毯 钢琴 柜子 插座 吊灯 门锁"),
    ("菜地的{}", "水泵 工具房 篱笆 梨树 蜂箱 梯子 肥料 大棚"),
    ("游泳俱乐部的{}", "会计 教练 面包车 通讯 横幅 储物柜 名单 会费"),
    ("阁楼里的{}", "箱子 木马 天窗 横梁 床垫 镜子 电扇 旧书"),
    ("车间的{}", "车床 台钳 砂轮 吸尘器 电钻 锯子 围裙 手套"),
    ("轮渡的{}", "船票 时刻表 舱位 队伍 码头 跳板 晚点 行李"),
    ("学校话剧的{}", "服装 幕布 剧本 替补 聚光灯 节目单 过道 掌声"),
]
做了 = [
    "老王终于付清了{}的钱。",
    "小陈想再问问别人对{}的看法。",
    "还没有人想到{}。",
    "我忘了打听{}的情况。",
    "我们又为{}吵了一架。",
    "得有人去量一下{}。",
    "是丽娜找到了{}。",
    "我给{}拍了一张照片。",
]
东西 = [about.format(thing) for about, things in 主题 for thing in things.split()]
CHINESE = ["我妹妹把小提琴放在床底下。", *(d.format(t) for t in 东西 for d in 做了)]

STORES = {"en": ENGLISH, "zh": CHINESE}
SMALL_TALK = {
    "en": ["hello", "Hi there!", "Good morning", "thanks a lot!", "ok", "bye"],
    "zh": ["你好", "早上好！", "谢谢你", "好的", "嗯", "再见", "收到", "明白了", "哈哈哈"],
}
IN_OTHER_LANGUAGES = [
    *("Hallo!", "Guten Morgen", "vielen Dank", "bonjour", "merci beaucoup", "¡Hola!", "gracias"),
    *("ciao", "olá", "привет!", "спасибо", "السلام عليكم", "שלום", "こんにちは", "안녕하세요"),
]
NONSENSE = {
    "en": ["flurb qwzx vantic", "asdf jkl", "xyzzy plugh frobozz"],
    "zh": ["囧囧 囫囵", "嘤嘤怪咕咕", "龘靐齉"],
}
ELSEWHERE = {
    "en": [
        "Who discovered the electron?",
        "What is the capital of Mongolia?",
        "How do volcanoes form?",
        "Explain the rules of cricket to me",
        "What does a neutrino weigh?",
    ],
    "zh": [
        "谁发现了电子？",
        "蒙古的首都叫什么？",
        "火山是怎样形成的？",
        "请解释一下板球的规则",
        "中微子有多重？",
    ],
}
ASKED = {
    "en": ["Where is my sister's violin?", "violin", "the violin under the bed"],
    "zh": ["我妹妹的小提琴在哪里？", "小提琴", "床底下的小提琴"],
}


@pytest.mark.parametrize("language", STORES)
@pytest.mark.parametrize("count", [1, 50, 200])
async def test_of_other_things_nothing_is_recalled_however_much_there_is(
    memory: Memory, language: str, count: int
) -> None:
    """REC-07, in stores of any size, beside what is asked and known."""
    user = memory.user("u1")
    step = max(1, (len(STORES[language]) - 1) // count)
    for part in range(0, count, 10):
        said = STORES[language][::step][:count][part : part + 10]
        await say(user, *said, session=f"s{part}")
    assert await memory.settled(PATIENCE)
    assert len(await user.episodes()) == count
    for queries in (SMALL_TALK, NONSENSE, ELSEWHERE):
        for query in queries[language]:
            assert texts(await user.recall(query)) == [], query
        context = await user.session("empty").build_context(queries[language][0])
        assert context.tokens.episodes == 0
    for query in IN_OTHER_LANGUAGES:
        assert texts(await user.recall(query)) == [], query
    for query in ASKED[language]:
        assert texts(await user.recall(query))[:1] == STORES[language][:1], query
