"""Questions about a time: the days that they name, from when they are asked, in whose zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from pydantic import JsonValue

from memory import Memory
from memory.errors import InvalidInput
from memory.memory import UserMemory
from memory.models import Recall
from tests.behaviour.conftest import Clock

PATIENCE = timedelta(seconds=30)


def texts(recalled: Recall) -> list[str]:
    return [item.text for item in recalled.items if item.tier == "episodic"]


async def keep(user: UserMemory, diary: dict[str, str]) -> None:
    """Each entry in a session of its own, at noon of its day."""
    for day, text in diary.items():
        noon = datetime.fromisoformat(f"{day}T12:00:00+00:00")
        await user.session(f"diary of {day}").record(user=text, event_time=noon)


ENGLISH = {
    "2023-05-08": "The boiler burst and the cellar was under water.",
    "2023-05-19": "A stork landed on the neighbour's chimney.",
    "2024-04-14": "I cooked nettle dumplings with brown butter.",
    "2024-08-03": "I repaired the bicycle, the back wheel was bent.",
    "2025-04-20": "I cooked asparagus with ham and new potatoes.",
    "2025-07-11": "I cooked cold cucumber soup.",
    "2025-10-10": "I cooked a pumpkin stew.",
    "2025-12-24": "I gave my sister a telescope.",
    "2026-01-20": "I painted the fence green.",
    "2026-02-14": "I repaired the radio, it was the fuse.",
    "2026-02-25": "I called the plumber about the tap.",
    "2026-03-01": "I called the dentist about a filling.",
    "2026-03-11": "I painted the shed blue.",
    "2026-04-05": "I painted the kitchen door yellow.",
}
"""What was said on which day: several things alike, of other times."""

ASKED_IN_ENGLISH = {
    "What did I cook last spring?": "2025-04-20",
    "What did I cook in spring 2024?": "2024-04-14",
    "What did I cook last summer?": "2025-07-11",
    "What did I cook in October?": "2025-10-10",
    "what happened on 8 May 2023": "2023-05-08",
    "what happened on May 19th, 2023?": "2023-05-19",
    "What was there on 2023-05-08?": "2023-05-08",
    "What did I give my sister at Christmas?": "2025-12-24",
    "What did I repair in August 2024?": "2024-08-03",
    "What did I repair three weeks ago?": "2026-02-14",
    "Who did I call yesterday?": "2026-03-01",
    "Who did I call last Wednesday?": "2026-02-25",
    "What did I paint in January?": "2026-01-20",
}
ASKED_LATER = {
    "What have I painted since the start of April?": ["2026-04-05"],
    "What have I painted since March?": ["2026-03-11", "2026-04-05"],
    "What did I paint before February 2026?": ["2026-01-20"],
}


@pytest.mark.parametrize("said_in", ["its own session", "one session"])
async def test_a_question_that_names_a_time_is_answered_with_what_was_said_then(
    memory: Memory, clock: Clock, said_in: str
) -> None:
    """TIME-06, of questions: they name a day as seen from when they are asked."""
    user = memory.user("u1")
    if said_in == "one session":
        await user.session("diary").record(
            messages=[
                {"role": "user", "content": text, "event_time": f"{day}T12:00:00Z"}
                for day, text in ENGLISH.items()
            ]
        )
    else:
        await keep(user, ENGLISH)
    assert await memory.settled(PATIENCE)
    for question, day in ASKED_IN_ENGLISH.items():
        assert texts(await user.recall(question))[:1] == [ENGLISH[day]], question
        context = await user.session("asking").build_context(question)
        assert ENGLISH[day] in context.text, question
    clock.now = datetime(2026, 5, 2, 9, tzinfo=UTC)
    for question, days in ASKED_LATER.items():
        found = texts(await user.recall(question))[: len(days)]
        assert set(found) == {ENGLISH[day] for day in days}, question
    clock.now = datetime(2025, 3, 2, 9, tzinfo=UTC)
    assert texts(await user.recall("What did I cook last spring?"))[0] == ENGLISH["2024-04-14"]


CHINESE = {
    "2023-05-08": "锅炉坏了，地下室全是水。",
    "2024-04-14": "我做了荠菜饺子。",
    "2025-04-20": "我做了春笋烧肉。",
    "2025-10-10": "我做了南瓜粥。",
    "2025-12-05": "我去了苏州，看了园林。",
    "2026-01-20": "我去了西安，爬了城墙。",
    "2026-02-16": "我去了青岛，看了大海。",
    "2026-03-01": "我去了医院，看了牙。",
    "2025-10-02": "我把自行车修好了。",
    "2026-02-27": "我把收音机修好了。",
}
ASKED_IN_CHINESE = {
    "两周前我去了哪里": "2026-02-16",
    "昨天我去了哪里？": "2026-03-01",
    "一月份我去了哪里？": "2026-01-20",
    "去年十二月我去了哪里？": "2025-12-05",
    "去年春天我做了什么菜？": "2025-04-20",
    "2024年春天我做了什么菜？": "2024-04-14",
    "2023年5月8日发生了什么？": "2023-05-08",
    "二〇二三年五月八号发生了什么事": "2023-05-08",
    "去年国庆节我修了什么？": "2025-10-02",
    "上周五我修了什么？": "2026-02-27",
}


async def test_a_time_is_understood_in_chinese_as_well(memory: Memory, clock: Clock) -> None:
    """TIME-06, of questions in Chinese."""
    user = memory.user("u1")
    await keep(user, CHINESE)
    assert await memory.settled(PATIENCE)
    for question, day in ASKED_IN_CHINESE.items():
        assert texts(await user.recall(question))[:1] == [CHINESE[day]], question
    clock.now = datetime(2026, 2, 3, 9, tzinfo=UTC)
    assert texts(await user.recall("两周前我去了哪里"))[0] == CHINESE["2026-01-20"]


async def test_a_time_alone_asks_for_whatever_was_said_then(memory: Memory) -> None:
    """TIME-04: nothing was said on other days, and that is what is found of them."""
    user = memory.user("u1")
    await keep(user, {**ENGLISH, "2023-06-01": "锅炉修好了。"})
    assert await memory.settled(PATIENCE)
    for question, wanted in {
        "What happened on 8 May 2023?": ENGLISH["2023-05-08"],
        "2023年6月1日发生了什么？": "锅炉修好了。",
        "What did I say on 14 February 2026?": ENGLISH["2026-02-14"],
        "what did we talk about at Christmas": ENGLISH["2025-12-24"],
        "anything from christmas?": ENGLISH["2025-12-24"],
        "What was I up to two weeks ago?": ENGLISH["2026-02-14"],
        "Did anything happen around Easter last year?": ENGLISH["2025-04-20"],
        "Show me everything from May 8th, 2023": ENGLISH["2023-05-08"],
        "How was my day on 24 December?": ENGLISH["2025-12-24"],
        "总结一下2023年6月1日的情况": "锅炉修好了。",
        "2023年6月1日有什么新鲜事？": "锅炉修好了。",
    }.items():
        assert texts(await user.recall(question))[0] == wanted
    for question in ("What happened on 8 May 2019?", "2019年6月1日发生了什么？"):
        assert texts(await user.recall(question)) == []


async def test_days_are_those_of_the_zone_in_which_is_asked(memory: Memory, clock: Clock) -> None:
    """TIME-04: one instant is of two days, in two zones."""
    user = memory.user("u1")
    late = datetime(2026, 2, 28, 20, tzinfo=UTC)  # 1 March in Tokyo, 28 February in Hawaii
    await user.session("s").record(user="I called the glazier.", event_time=late)
    assert await memory.settled(PATIENCE)
    asked_at = datetime(2026, 3, 2, 11, tzinfo=UTC)
    for zone, day, is_then in (
        (ZoneInfo("Asia/Tokyo"), "yesterday", True),
        (ZoneInfo("Asia/Tokyo"), "the day before yesterday", False),
        (UTC, "yesterday", False),
        (UTC, "the day before yesterday", True),
        (timezone(timedelta(hours=-10)), "the day before yesterday", True),
        (timezone(timedelta(hours=-10)), "on 1 March", False),
        (ZoneInfo("Asia/Tokyo"), "on 1 March", True),
    ):
        clock.now = asked_at.astimezone(zone)
        (called,) = (await user.recall(f"Who did I call {day}?")).items
        assert (called.scores["time"] == 1.0) is is_then, (zone, day)


STAMP = datetime(2026, 1, 10, 8, 30, tzinfo=UTC)
SPELLINGS: list[JsonValue] = [
    "2026-01-10T08:30",
    "2026-01-10T08:30:00",
    "2026-01-10 08:30:00",
    "2026-01-10T08:30:00.000000Z",
    "2026-01-10T08:30:00+00:00",
    "2026-01-10T17:30:00+09:00",
    "2026-01-09T22:30:00-10:00",
    "2026-01-10T14:15:00+05:45",
    STAMP.timestamp(),
    int(STAMP.timestamp()),
]


async def test_a_range_of_time_holds_the_same_instants_however_both_are_written(
    memory: Memory,
) -> None:
    """TIME-04, of filters: an instant is inside or outside, in any zone; none is UTC."""
    user, microsecond = memory.user("u1"), timedelta(microseconds=1)
    await user.session("s").record(
        messages=[
            {"role": "user", "content": f"The kayak trip, told {n}", "event_time": spelling}
            for n, spelling in enumerate(SPELLINGS)
        ]
    )
    for days in (-1, 1):
        moment = (STAMP + timedelta(days=days)).replace(tzinfo=None)
        await user.session("t").record(user=f"The kayak trip, {days} day", event_time=moment)
    assert await memory.settled(PATIENCE)

    async def found(**bounds: object) -> int:
        where = {"event_time": {f"${name}": bound for name, bound in bounds.items()}}
        return len(texts(await user.recall("kayak trip", k=50, where=where)))  # type: ignore[arg-type]

    every = len(SPELLINGS)
    for zone in (UTC, ZoneInfo("Asia/Kathmandu"), timezone(timedelta(hours=-10))):
        at, later = STAMP.astimezone(zone), (STAMP + microsecond).astimezone(zone)
        for low, high in ((at, later), (at.isoformat(), later.isoformat())):
            assert await found(gte=low, lt=high) == every
            assert await found(gt=low, lte=high) == 0
            assert await found(lt=low) == await found(gte=high) == 1
            assert await found(lte=low) == every + 1
            assert await found(eq=low) == every
            assert await found(ne=low) == 2
    assert await found(gte="2026-01-10", lt="2026-01-11") == every
    for hours in (6, 24, 48, 24 * 365):
        within = STAMP + timedelta(hours=1)
        inside = every + (hours > 24)
        assert await found(gte=within - timedelta(hours=hours), lt=within) == inside, hours


@pytest.mark.parametrize("wrong", ["yesterday", "2026-13-01T00:00:00Z", "", float("nan"), 1e40])
async def test_a_time_that_is_none_is_refused_and_nothing_is_stored(
    memory: Memory, wrong: JsonValue
) -> None:
    """TIME-04"""
    session = memory.user("u1").session("s")
    with pytest.raises(InvalidInput, match="event_time"):
        await session.record(messages=[{"role": "user", "content": "x", "event_time": wrong}])
    assert await session.messages() == []
    await session.record(messages=[{"role": "user", "content": "x", "event_time": 1e9}])
    assert len(await session.messages()) == 1


async def test_what_was_told_soon_after_a_day_answers_for_it_and_later_things_do_not(
    memory: Memory,
) -> None:
    user = memory.user("u1")
    await keep(user, {"2026-02-14": "The boiler burst.", "2025-11-16": "A stork came by."})
    assert await memory.settled(PATIENCE)
    for asked in ("14 February", "13 February", "12 February"):
        assert texts(await user.recall(f"What happened on {asked} 2026?")) == ["The boiler burst."]
    for asked in ("5 February", "16 February", "3 December"):
        assert texts(await user.recall(f"What happened on {asked} 2026?")) == []
    await keep(user, {"2026-02-12": "The fence fell over."})
    assert await memory.settled(PATIENCE)
    found = texts(await user.recall("What happened on 12 February 2026?"))
    assert found[0] == "The fence fell over."
