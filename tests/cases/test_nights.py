"""The nightly job as far as it needs no language model: promoting, fading, and running alone."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from consolidation import Policy, consolidate
from consolidation.decay import retention
from consolidation.job import LEASE
from consolidation.plan import RECURS
from memory import Memory
from memory.errors import AlreadyRunning
from memory.memory import UserMemory
from memory.models import Fact, Scope
from tests.behaviour.conftest import Clock, Open
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(seconds=30)


async def say(user: UserMemory, *said: str, session: str) -> None:
    await user.session(session).record(
        messages=[{"role": "user", "content": text} for text in said]
    )


async def promoted(user: UserMemory) -> list[Fact]:
    return [fact for fact in await user.facts() if fact.origin == "promoted"]


TOPICS = {
    "sport": [
        "Tuesday run along the river, six kilometres",
        "Did my Tuesday run by the river, slow but good",
        "Tuesday run along the river again, windy",
        "Went swimming before work, twenty lanes in the pool",
        "Twenty lanes in the pool before work, tired arms",
        "Swam my twenty lanes in the pool before work",
    ],
    "diet": [
        "Oatmeal with blueberries for breakfast again",
        "Had oatmeal and blueberries for breakfast",
        "Breakfast was oatmeal with blueberries",
        "No sugar in my coffee since Monday, it works",
        "Drank my coffee without sugar, no sugar needed",
    ],
    "work": [
        "The weekly report for the harbour board is late",
        "Wrote the weekly report for the harbour board",
        "The harbour board got its weekly report at last",
        "Ran to the office with oatmeal in my bag for the harbour board",
    ],
}


async def test_ten_nights_promote_what_recurs_in_its_own_words_and_mix_no_topics(
    memory: Memory, clock: Clock
) -> None:
    """CONS-01"""
    user = memory.user("u1")
    topic_of: dict[str, str] = {}
    for night in range(10):
        for topic, lines in TOPICS.items():
            for line in (lines[night % len(lines)], lines[(night + 1) % len(lines)]):
                text = f"{line}." if night % 2 else line
                topic_of[text] = topic
                await say(user, text, session=f"day {night}")
        await consolidate(memory, now=clock.now)
        clock.forward(days=1)
    episodes = {episode.message_id: episode for episode in await user.episodes()}
    facts = await promoted(user)
    assert 2 <= len(facts) <= sum(map(len, TOPICS.values()))
    for fact in facts:
        sources = [episodes[source] for source in fact.sources]
        assert len({topic_of[episode.text] for episode in sources}) == 1, fact
        assert fact.object in {episode.text.strip() for episode in sources}
        assert len({episode.session for episode in sources}) >= 2


class Alike(StubEmbedder):
    """All texts are close to one another: cosine 0.96 for any two."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        own = super()._vector(text)
        shared = np.zeros_like(own)
        shared[0] = 1.0
        own = own - own[0] * shared
        vector = np.sqrt(0.96) * shared + np.sqrt(0.04) * own / np.linalg.norm(own)
        result: NDArray[np.float32] = vector.astype(np.float32)
        return result


DIFFERENT = [
    ("Mara Lind is CEO of Acme", "Ines Roth is CTO of Acme"),
    ("The company HQ is in Turin", "The company HQ is in Ghent"),
    ("My favourite colour is amber", "My favourite colour is teal"),
    ("The service runs on port 8090", "The service runs on port 8091"),
    ("The backup job does run at night", "The backup job does not run at night"),
]
SAME = ("The backend is at localhost:8090", "The backend runs on port 8090")


async def test_sentences_that_differ_in_the_value_that_matters_are_never_one_fact(
    open_memory: Open, clock: Clock
) -> None:
    """CONS-04"""
    async with open_memory(embedder=Alike()) as memory:
        for number, pair in enumerate([*DIFFERENT, SAME]):
            user = memory.user(f"u{number}")
            await say(user, *pair, session="one")
            clock.forward(minutes=5)
            await say(user, *pair, session="two")
            await consolidate(memory, now=clock.now, policy=Policy(episodes=2), scopes=[user.scope])
            facts = await promoted(user)
            said = {episode.message_id: episode.text for episode in await user.episodes()}
            per_fact = [{said[source] for source in fact.sources} for fact in facts]
            if pair is SAME:
                assert per_fact == [set(SAME)]
            else:
                assert sorted(per_fact, key=min) == sorted([{text} for text in pair], key=min)
                history = {fact.object for fact in await user.facts(history=True)}
                assert set(pair) <= history


async def test_what_is_pinned_stays_as_it_is_while_the_rest_fades(
    memory: Memory, clock: Clock
) -> None:
    """CONS-06"""
    user = memory.user("u1")
    await say(user, "Penicillin is the medicine I must never get.", session="rule")
    await user.assert_fact("user", "allergic to", "penicillin")
    others = [f"Note {number}: the weather was mild." for number in range(60)]
    await say(user, *others, session="notes")
    (rule, *_) = (e for e in await user.episodes() if "medicine" in e.text)
    await user.pin([rule.id])
    half_life, everything = timedelta(days=90), Policy(most_archived=1.0)
    kept = []
    for _ in range(9):
        clock.forward(days=30)
        await consolidate(memory, now=clock.now, policy=everything)
        episodes = await user.episodes(archived=True)
        kept.append([retention(e, clock.now, half_life) for e in episodes if e.id != rule.id])
        assert (await user.recall("medicine")).items[0].text == rule.text
    for night, next_night in pairwise(kept):
        assert all(0 <= b <= a for a, b in zip(night, next_night, strict=True))
    pinned = next(e for e in await user.episodes() if e.id == rule.id)
    assert (pinned.text, pinned.event_time) == (rule.text, rule.event_time)
    assert [e.id for e in await user.episodes()] == [rule.id]
    assert [fact.object for fact in await user.facts()] == ["penicillin"]
    await user.pin([rule.id], pinned=False)
    clock.forward(days=400)
    await consolidate(memory, now=clock.now, policy=everything)
    assert await user.episodes() == []
    assert len(await user.episodes(archived=True)) == 61


async def test_restating_adds_sources_and_not_entries(memory: Memory, clock: Clock) -> None:
    """CONS-09"""
    user = memory.user("u1")
    bug = "The export button crashes when the list is empty"
    setup = "The staging server needs the old VPN client"
    counts = []
    for night in range(8):
        await say(user, f"{bug}.", f"{setup}!" if night % 2 else setup, session=f"day {night}")
        before = len(await user.episodes()) + len(await user.facts())
        await consolidate(memory, now=clock.now)
        after = len(await user.episodes()) + len(await user.facts())
        facts = await promoted(user)
        assert after <= before + 2
        counts.append((len(facts), sum(len(fact.sources) for fact in facts)))
        clock.forward(days=1)
    assert counts[-1] == (2, 16)
    assert [facts for facts, _ in counts] == [0, 0, 2, 2, 2, 2, 2, 2]
    assert [sources for _, sources in counts] == sorted(sources for _, sources in counts)
    quiet = await consolidate(memory, now=clock.now)
    assert not quiet.changed
    assert len(await promoted(user)) == 2


async def test_what_was_said_to_hold_no_longer_is_not_promoted_night_after_night(
    open_memory: Open, clock: Clock
) -> None:
    async with open_memory(embedder=Alike()) as memory:
        user = memory.user("u1")
        text = "The backup job does run at night"
        for day in ("one", "two", "three"):
            await say(user, text, session=day)
            clock.forward(days=1)
        assert (await consolidate(memory, now=clock.now)).promoted == 1
        clock.forward(days=1)
        await user.assert_fact("user", RECURS, text, holds=False)
        assert await promoted(user) == []
        for _ in range(2):
            clock.forward(days=1)
            assert not (await consolidate(memory, now=clock.now)).changed
        await say(user, text, session="four")
        clock.forward(days=1)
        assert (await consolidate(memory, now=clock.now)).promoted == 1
        clock.forward(days=1)
        assert not (await consolidate(memory, now=clock.now)).changed


async def test_an_old_history_that_is_learnt_later_adds_to_the_fact_that_is_there(
    memory: Memory, clock: Clock
) -> None:
    """CONS-09: the fact keeps its words, and holds from the older date on."""
    user = memory.user("u1")
    for number in range(3):
        await say(user, "Tuesday run along the river", session=f"s{number}")
    await consolidate(memory, now=clock.now)
    (before,) = await promoted(user)
    clock.forward(days=1)
    long_ago = datetime(2024, 3, 5, tzinfo=UTC)
    await user.session("old").record(user="Tuesday run along the river again.", event_time=long_ago)
    await consolidate(memory, now=clock.now)
    (after,) = await promoted(user)
    assert (after.object, after.fact_id) == (before.object, before.fact_id)
    assert after.valid_from == long_ago
    assert set(after.sources) > set(before.sources)


async def test_the_second_of_two_nights_at_once_ends_at_once_and_changes_nothing(
    open_memory: Open, clock: Clock
) -> None:
    """CRON-03: also when the first began before midnight."""
    run = "Tuesday run along the river"
    async with open_memory() as memory, open_memory() as other:
        user = memory.user("u1")
        for number in range(6):
            await say(user, f"{run}, number it is." if number % 2 else run, session=f"s{number}")
        clock.now = datetime(2026, 5, 1, 23, 50, tzinfo=UTC)
        async with memory.exclusive(LEASE):
            clock.forward(minutes=15)
            for _ in range(2):
                with pytest.raises(AlreadyRunning):
                    await consolidate(other, now=clock.now)
        nights = await asyncio.gather(
            consolidate(memory, now=clock.now),
            consolidate(other, now=clock.now),
            return_exceptions=True,
        )
        assert any(not isinstance(night, BaseException) for night in nights)
        assert all(
            isinstance(night, AlreadyRunning) for night in nights if isinstance(night, Exception)
        )
        (fact,) = await promoted(user)
        assert len(fact.sources) == 6
        assert not (await consolidate(other, now=clock.now)).changed
        assert await promoted(user) == [fact]


async def test_what_is_said_during_a_night_is_promoted_once_then_or_the_next_night(
    memory: Memory, clock: Clock
) -> None:
    """CRON-03"""
    run = "Tuesday run along the river"
    user, waiting = memory.user("u1"), []
    for number in range(3):
        await say(user, run, session=f"s{number}")

    def speak(done: int, of: int, scope: Scope) -> None:
        clock.forward(seconds=1)
        waiting.append(asyncio.create_task(say(user, f"{run} again.", session="late")))

    await consolidate(memory, now=clock.now, progress=speak)
    await asyncio.gather(*waiting)
    assert len(waiting) == 1
    clock.forward(days=1)
    for _ in range(2):
        await consolidate(memory, now=clock.now)
        (fact,) = await promoted(user)
        assert len(fact.sources) == len(set(fact.sources)) == 4


async def test_times_with_and_without_a_zone_are_one_kind_of_time(
    memory: Memory, clock: Clock
) -> None:
    """TIME-04: a time without a zone is read in UTC."""
    clock.now = datetime(2026, 5, 2, tzinfo=UTC)
    user = memory.user("u1")
    stamp = datetime(2026, 5, 1, 10, tzinfo=UTC)
    spellings = [
        "2026-05-01T10:00:00",
        "2026-05-01T10:00:00Z",
        "2026-05-01T19:00:00+09:00",
        stamp.timestamp(),
    ]
    await user.session("s").record(
        messages=[
            {"role": "user", "content": f"The kayak trip, told {n}", "event_time": spelling}
            for n, spelling in enumerate(spellings)
        ]
    )
    report = await consolidate(memory, now=clock.now.replace(tzinfo=None))
    assert (report.episodes, report.failures, report.now) == (4, (), clock.now)
    episodes = await user.episodes()
    assert {episode.event_time for episode in episodes} == {stamp}
    clock.forward(days=30)
    left = {retention(episode, clock.now, timedelta(days=90)) for episode in episodes}
    assert len(left) == 1

    async def within(low: str, high: str) -> int:
        where = {"event_time": {"$gte": low, "$lt": high}}
        return len((await user.recall("kayak trip", where=where)).items)  # type: ignore[arg-type]

    assert await within("2026-05-01T09:00:00Z", "2026-05-01T10:00:01Z") == 4
    assert await within("2026-05-01T09:59", "2026-05-01T19:00:01+09:00") == 4
    assert await within("2026-05-01T10:00:01", "2026-06-01") == 0


async def test_the_command_line_says_that_a_night_is_running_and_leaves(
    open_memory: Open, urls: dict[str, str], scope: Scope
) -> None:
    """CRON-03: with an exit code of its own."""
    environment = {f"TRIMEM_{name.upper()}": url for name, url in urls.items()}
    environment |= {"TRIMEM_TENANT": scope.tenant, "PATH": str(Path(sys.executable).parent)}

    async def nightly() -> tuple[int | None, bytes]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from memory.cli import main; main()", "consolidate"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            cwd=Path(__file__).resolve().parents[2],
        )
        _, said = await process.communicate()
        return process.returncode, said

    async with open_memory() as memory:
        async with memory.exclusive(LEASE):
            code, said = await nightly()
        assert (code, said.count(b"\n")) == (4, 1)
        assert (await nightly())[0] == 0
