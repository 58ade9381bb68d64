"""Notes: what an application keeps in a user's journal, beside what is remembered."""

from __future__ import annotations

import math
from typing import Any

import pytest

from memory import Memory
from memory.embedding import Embedder
from memory.errors import InvalidInput
from memory.settings import Settings
from tests.behaviour.conftest import STORES, Clock, urls_of


@pytest.fixture(params=STORES)
def urls(request: pytest.FixtureRequest) -> dict[str, str]:
    """Both journals: text that one of them could not hold would come back changed."""
    return urls_of(request, request.param)


async def test_a_note_comes_back_as_it_was_and_in_order(memory: Memory, clock: Clock) -> None:
    ada = memory.user("ada")
    body: Any = {"text": "\x00 \ud800 \u202eרtl <|endoftext|>", "deep": [{"n": 2**60, "f": 0.5}]}
    first = await ada.note("list", body, labels=["a", "日本"], session="monday")
    clock.forward(minutes=1)
    second = await ada.note("list", {"n": 2})
    assert await ada.notes("list") == [first, second]
    assert first.body == body
    assert first.labels == ("a", "日本")
    assert second.noted_at > first.noted_at


async def test_notes_are_found_by_kind_session_and_position(memory: Memory) -> None:
    ada = memory.user("ada")
    one = await ada.note("list", {"n": 1}, session="monday")
    two = await ada.note("list", {"n": 2}, session="tuesday")
    await ada.note("other", {"n": 3})
    assert await ada.notes("list", session="tuesday") == [two]
    assert await ada.notes("list", after=one.position) == [two]


async def test_noting_under_a_key_again_gives_the_first(memory: Memory) -> None:
    ada = memory.user("ada")
    first = await ada.note("list", {"n": 1}, key="k")
    assert await ada.note("list", {"n": 2}, key="k") == first
    assert await ada.note("other", {"n": 2}, key="k") != first
    assert len(await ada.notes("list")) == 1


async def test_notes_are_the_users_own(memory: Memory) -> None:
    await memory.user("ada").note("list", {"n": 1})
    assert len(await memory.user("ada").notes("list")) == 1
    assert await memory.user("ben").notes("list") == []
    assert await memory.user("ada", tenant="elsewhere").notes("list") == []


async def test_no_tier_and_no_recall_sees_a_note(memory: Memory) -> None:
    session = memory.user("ada").session("monday")
    await memory.user("ada").note("list", {"text": "a purple giraffe"}, session="monday")
    assert (await memory.user("ada").recall("purple giraffe")).items == ()
    assert (await session.window()).messages == ()
    await session.record(user="I saw a purple giraffe")
    assert (await memory.user("ada").recall("purple giraffe")).items != ()


async def test_secrets_in_a_note_are_masked_but_not_in_its_labels(
    urls: dict[str, str], embedder: Embedder
) -> None:
    def hide(text: str) -> str:
        return text.replace("hunter2", "[hidden]")

    settings = Settings.model_validate(urls)
    async with Memory.open(settings=settings, embedder=embedder, redact=hide) as memory:
        note = await memory.user("ada").note(
            "list", {"hunter2": ["my hunter2", 1, None]}, labels=["hunter2"]
        )
    assert note.body == {"[hidden]": ["my [hidden]", 1, None]}
    assert note.labels == ("hunter2",)


@pytest.mark.parametrize("bad", [math.nan, object(), {1: 2}, {"a", "b"}])
async def test_what_json_cannot_hold_is_refused_by_name(memory: Memory, bad: Any) -> None:
    with pytest.raises(InvalidInput, match="field"):
        await memory.user("ada").note("list", {"field": bad})
    assert await memory.user("ada").notes("list") == []
