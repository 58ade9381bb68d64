"""Facts that a language model reads at night: what it answers wrongly, and what becomes of it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from consolidation import Reading, consolidate
from consolidation.reading import NOTHING_FOUND
from memory import Memory
from memory.doctor import doctor
from memory.memory import UserMemory
from memory.models import Fact, Health, Scope
from memory.settings import Settings
from memory.unread import NIGHTS
from tests.behaviour.conftest import Clock
from tests.llm_endpoint import Answer, Asked, LLMEndpoint, as_json, cut, dropped, failing, refused
from tests.stub_embedder import StubEmbedder

Opens = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def opens(urls: dict[str, str], clock: Clock, scope: Scope, llm_endpoint: LLMEndpoint) -> Opens:
    """Opens the test's memory with the scripted endpoint as its language model."""

    @asynccontextmanager
    async def open_it(**changes: Any) -> AsyncIterator[Memory]:
        chosen = {**urls, "tenant": scope.tenant, **llm_endpoint.settings(), "llm_retries": 0}
        settings = Settings.model_validate({**chosen, **changes})
        async with Memory.open(settings=settings, embedder=StubEmbedder(), clock=clock) as memory:
            yield memory

    return open_it


async def night(memory: Memory, clock: Clock) -> Reading:
    """A night's reading, and on to the next day."""
    report = await consolidate(memory, now=clock.now)
    assert not report.failures
    clock.forward(days=1)
    assert report.reading is not None
    return report.reading


async def told(user: UserMemory) -> set[tuple[str, str, str]]:
    return {(fact.subject, fact.predicate, fact.object) for fact in await user.facts()}


def item(quote: str, predicate: str, object: str, **more: object) -> dict[str, object]:
    said = {"quote": quote, "subject": "user", "predicate": predicate, "object": object}
    return {"message": 1, **said, **more}


def items(*listed: dict[str, object]) -> Answer:
    return as_json({"items": list(listed)})


MUG = "Vera's brother painted a whale on the blue mug."
VERA = item("Vera's brother painted a whale", "painted", "whale", subject="Vera's brother")
BLUE = item("the blue mug", "is", "blue", subject="mug")
PAINTED = ("Vera's brother", "painted", "whale")


async def test_worked_examples_of_the_prompt_that_come_back_are_not_believed_and_are_counted(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint
) -> None:
    """LLM-02"""

    def echo(asked: Asked) -> Answer:
        examples = re.findall(r"^\{.*\}$", asked.instructions, re.MULTILINE)
        assert len(examples) >= 2
        return items(*map(json.loads, examples))

    llm_endpoint.always(echo)
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s").record(user="ok thanks")
        reading = await night(memory, clock)
        assert await user.facts(history=True) == []
        assert (reading.read, reading.facts, reading.rejected) == (1, 0, 2)
        llm_endpoint.always(items(VERA))
        await user.session("s").record(user=MUG)
        assert (await night(memory, clock)).facts == 1
        assert await told(user) == {PAINTED}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("I'm sorry, but I can't help with that.", "refused"),
        (refused(), "refused"),
        ("抱歉，我无法协助处理这个请求。", "refused"),
        ("Could you tell me which conversation you mean?", "refused"),
        ("", "malformed"),
        ("   \n", "malformed"),
    ],
)
async def test_what_is_no_answer_is_never_a_fact_and_is_made_up_for_the_next_night(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint, answer: Answer | str, kind: str
) -> None:
    """LLM-04"""
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s").record(user=MUG)
        llm_endpoint.always(answer)
        reading = await night(memory, clock)
        assert (reading.read, reading.facts, reading.failed) == (0, 0, 1)
        assert reading.usage.failures == {kind: 1}
        assert await user.facts(history=True) == []
        assert MUG in [episode.text for episode in await user.episodes()]
        llm_endpoint.always(items(VERA))
        assert (await night(memory, clock)).read == 1
        assert await told(user) == {PAINTED}
        assert (await night(memory, clock)).usage.calls == 0


CLEAN = json.dumps({"items": [VERA, BLUE]})


@pytest.mark.parametrize(
    "answer",
    [
        CLEAN,
        f"```json\n{CLEAN}\n```",
        f"```\n{CLEAN}\n```",
        f"Here are the facts that I found:\n\n{CLEAN}\n\nLet me know if you need more.",
        CLEAN.replace("Vera's", r"Vera\'s"),
        CLEAN.replace("]}", ",]}"),
        json.dumps([VERA, BLUE]),
        json.dumps({"facts": [VERA, BLUE]}),
        json.dumps({"items": [VERA]}) + "\n" + json.dumps({"items": [BLUE]}),
        json.dumps({"properties": {"items": [VERA, BLUE]}}),
        json.dumps({"items": [{k: v for k, v in VERA.items() if k != "message"}, BLUE]}),
    ],
)
async def test_the_same_facts_are_read_in_whatever_wrapping(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint, answer: str
) -> None:
    """LLM-05"""
    llm_endpoint.always(answer)
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s").record(user=MUG)
        assert (await night(memory, clock)).facts == 2
        assert await told(user) == {
            PAINTED,
            ("mug", "is", "blue"),
        }


SCHEMA = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "object", "title": "Stated"}}},
    "required": ["items"],
}


@pytest.mark.parametrize(
    ("answer", "failed", "rejected"),
    [
        (json.dumps(SCHEMA), 1, 0),
        ('{"facts": ["a"]}\n{"facts": ["b"]}', 1, 0),
        ('{"items": [{"message": 1, "quote": "mug"}]}', 1, 0),
        ('{"facts": null}', 0, 0),
        (json.dumps({"items": [item("the object", "type", "string")]}), 0, 1),
        (json.dumps({"items": [item("what is said of it", "properties", "items")]}), 0, 1),
    ],
)
async def test_what_is_no_fact_in_an_answer_is_counted_and_never_kept(
    opens: Opens,
    clock: Clock,
    llm_endpoint: LLMEndpoint,
    answer: str,
    failed: int,
    rejected: int,
) -> None:
    """LLM-05"""
    llm_endpoint.always(answer)
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s").record(user=MUG)
        reading = await night(memory, clock)
        assert (reading.failed, reading.rejected, reading.facts) == (failed, rejected, 0)
        assert await user.facts(history=True) == []


PENICILLIN = "I am allergic to penicillin"
ALLERGY = item(PENICILLIN, "allergic_to", "penicillin")
TAMPERE = item("Mother moved to Tampere", "lives_in", "Tampere", subject="Mother")


async def status(memory: Memory) -> Health:
    found = await doctor(memory.settings)
    return next(health for health in found if health.part == "facts")


async def test_a_bad_escape_is_read_all_the_same_or_on_the_next_night(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint
) -> None:
    """LLM-06: invalid first, good second"""
    llm_endpoint.always(items(VERA))
    llm_endpoint.then(json.dumps({"items": [VERA]}).replace("painted a", r"\u00ZZ painted a"))
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s").record(user=MUG)
        await night(memory, clock)
        await night(memory, clock)
        assert await told(user) == {PAINTED}


@pytest.mark.parametrize("answer", [items(), Answer("")])
async def test_a_statement_in_which_nothing_is_found_is_read_again_for_some_nights(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint, answer: Answer
) -> None:
    """LLM-06: always empty"""
    llm_endpoint.always(answer)
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s").record(user=PENICILLIN)
        for number in range(1, NIGHTS + 1):
            reading = await night(memory, clock)
            assert (reading.failed, reading.given_up) == (1, number == NIGHTS)
            facts = await status(memory)
            left = "1 failed, 0 given up" if number < NIGHTS else "0 failed, 1 given up"
            assert facts.version == f"0 unread, {left}"
            assert ("failed once:", f"failed {number} times:")[number > 1] in facts.problem
        reading = await night(memory, clock)
        assert (reading.failed, reading.usage.calls) == (0, 0)
        recalled = await user.recall("penicillin")
        assert any(item.text == PENICILLIN for item in recalled.items)
    if answer.text:
        assert NOTHING_FOUND in facts.problem


async def test_a_model_that_does_not_answer_is_nothing_against_the_messages(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint
) -> None:
    """LLM-06: always 429"""
    llm_endpoint.always(failing(429))
    async with opens() as memory:
        user = memory.user("u1")
        for number in range(3):
            await user.session(f"s{number}").record(user=PENICILLIN)
        for _ in range(NIGHTS + 2):
            reading = await night(memory, clock)
            assert (reading.failed, reading.waiting, reading.usage.calls) == (0, 3, 2)
            assert reading.ended == "the language model did not answer"
        facts = await status(memory)
        assert not facts.ok
        assert facts.version == "3 unread, 0 failed, 0 given up"
        assert "did not answer" in facts.problem
        recalled = await user.recall("penicillin")
        assert any(each.text == PENICILLIN for each in recalled.items)
        llm_endpoint.always(items(ALLERGY))
        reading = await night(memory, clock)
        assert (reading.read, reading.waiting, reading.ended) == (3, 0, "")
        assert (await status(memory)).ok


async def test_of_an_answer_that_is_cut_off_whole_items_are_kept_and_the_rest_is_asked_again(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint
) -> None:
    """LLM-06: cut at the limit"""
    half = json.dumps({"items": [VERA, {**TAMPERE, "message": 2}]})[:-8]
    assert half.endswith('"Tam')
    first = "[1] 2026-03-02 Monday user: Vera"
    llm_endpoint.always(lambda asked: items(VERA if first in asked.data else TAMPERE))
    llm_endpoint.then(cut(half))
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s").record(messages=[{"role": "user", "content": MUG}])
        await user.session("s").record(user="Mother moved to Tampere")
        reading = await night(memory, clock)
        assert (reading.read, reading.failed) == (2, 0)
        assert len(llm_endpoint.requests) == 3
        assert await told(user) == {PAINTED, ("Mother", "lives_in", "Tampere")}


async def test_of_a_single_message_whose_answer_is_cut_off_the_partial_item_is_never_kept(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint
) -> None:
    """LLM-06: cut at the limit"""
    listed = json.dumps({"items": [{**TAMPERE, "subject": "Mother"}]})
    llm_endpoint.always(cut(listed[: listed.rindex("pere")]))
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s").record(user="Mother moved to Tampere")
        assert (await night(memory, clock)).failed == 1
        assert await user.facts(history=True) == []
        llm_endpoint.always(items(TAMPERE))
        await night(memory, clock)
        assert await told(user) == {("Mother", "lives_in", "Tampere")}


WEDNESDAY = datetime(2022, 11, 16, 10, tzinfo=UTC)


async def named(user: UserMemory, object: str, **when: datetime) -> list[Fact]:
    return [fact for fact in await user.facts(**when) if fact.object == object]


@pytest.mark.parametrize("day", [None, "last week", "2022-11-09", "2026-06-01"])
async def test_what_is_read_long_afterwards_is_true_from_when_it_was_said(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint, day: str | None
) -> None:
    """TIME-06"""
    clock.now = datetime(2026, 6, 1, tzinfo=UTC)
    llm_endpoint.always(
        items(
            item("I work at Northwind now", "works_at", "Northwind"),
            item("I visited Porto last week", "visited", "Porto", message=2, valid_from=day),
        )
    )
    async with opens() as memory:
        user = memory.user("u1")
        said = ["I work at Northwind now", "I visited Porto last week"]
        await user.session("s").record(
            messages=[{"role": "user", "content": text} for text in said], event_time=WEDNESDAY
        )
        await night(memory, clock)
        asked = llm_endpoint.requests[-1]
        assert "2022-11-16 Wednesday" in asked.data
        assert "2026" not in asked.data + asked.instructions
        work = (await named(user, "Northwind"))[0]
        assert work.valid_from == WEDNESDAY
        assert work.learnt_at >= datetime(2026, 6, 1, tzinfo=UTC)
        assert not await named(user, "Northwind", as_of=datetime(2022, 10, 1, tzinfo=UTC))
        assert await named(user, "Northwind", as_of=datetime(2023, 6, 1, tzinfo=UTC))
        porto = (await named(user, "Porto"))[0]
        assert datetime(2022, 11, 7, tzinfo=UTC) <= porto.valid_from
        assert porto.valid_from < datetime(2022, 11, 16, tzinfo=UTC)


async def test_a_message_at_which_the_endpoint_breaks_stops_nobody_else(
    opens: Opens, clock: Clock, llm_endpoint: LLMEndpoint
) -> None:
    """CONS-08, an endpoint that fails for one message"""

    def script(asked: Asked) -> Answer:
        if "POISON" in asked.data:
            return dropped()
        return items(*([VERA] if "Vera" in asked.data else []))

    llm_endpoint.always(script)
    async with opens() as memory:
        user = memory.user("u1")
        await user.session("s0").record(user="POISON, and nothing else")
        for number in range(1, 3):
            await user.session(f"s{number}").record(user=MUG)
        readings = [await night(memory, clock) for _ in range(NIGHTS + 1)]
        assert readings[0].read == 2
        assert await told(user) == {PAINTED}
        assert [reading.failed for reading in readings] == [1] * NIGHTS + [0]
        assert [reading.ended for reading in readings] == [""] * (NIGHTS + 1)
