"""A memory with a language model: opened from settings, not asked in a turn, looked after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory import Memory
from memory.doctor import doctor
from memory.errors import ConfigurationError
from memory.journal import Journal
from memory.journal.retries import Retries
from memory.llm import open_llm
from memory.local import LocalStack
from memory.models import Health
from memory.settings import Settings
from tests.behaviour.conftest import Clock, Open
from tests.llm_endpoint import LLMEndpoint, failing, refused


@pytest.fixture(params=["local"])
def urls(request: pytest.FixtureRequest, local: LocalStack, tmp_path: Path) -> dict[str, str]:
    """On the local stack only: nothing here depends on the stores."""
    return {
        "journal_url": f"sqlite:///{tmp_path / 'journal.db'}",
        "redis_url": local.redis_url,
        "chroma_url": local.chroma_url,
    }


async def test_a_memory_opens_the_model_of_its_settings_and_turns_ask_it_nothing(
    open_memory: Open, llm_endpoint: LLMEndpoint
) -> None:
    async with open_memory(**llm_endpoint.settings()) as memory:
        session = memory.user("ada").session("s")
        for turn in range(5):
            await session.record(user=f"I drank tea number {turn}.", assistant="Noted.")
            context = await session.build_context("How many teas?")
            assert context.messages
        assert llm_endpoint.requests == []


async def test_a_model_that_cannot_be_opened_is_told_when_the_memory_is(open_memory: Open) -> None:
    with pytest.raises(ConfigurationError, match="TRIMEM_LLM"):
        async with open_memory(llm="nobody:nothing"):
            pass


async def test_the_doctor_asks_the_model_and_says_what_it_could_not_do(
    open_memory: Open, llm_endpoint: LLMEndpoint, urls: dict[str, str], clock: Clock
) -> None:
    async with open_memory() as memory:
        ada = memory.user("ada")
        await ada.session("s").record(user="I drink tea.")
    settings = Settings(**urls, **llm_endpoint.settings(llm_api_key="hush-hush", llm_retries=0))

    llm_endpoint.always(refused())
    well = await examined(settings)
    assert list(well)[-3:] == ["language model", "summaries", "facts"]
    assert all(health.ok for health in well.values())
    assert well["language model"].version == "openai:scripted"
    assert well["language model"].where == llm_endpoint.url

    async with Journal.open(urls["journal_url"], timeout=settings.timeout) as journal:
        summaries, facts = Retries(journal, "compaction"), Retries(journal, "read")
        later = clock.now.replace(year=2027)
        await summaries.failed(ada.scope, "one", "refused", now=clock.now, retry_at=later)
        await summaries.failed(ada.scope, "two", "empty", now=later, retry_at=later)
        await facts.failed(ada.scope, "message", "malformed", now=clock.now, retry_at=None)
    llm_endpoint.always(failing(401, says="hush-hush is no key"))
    ill = await examined(settings)
    assert not ill["language model"].ok
    assert "401" in ill["language model"].problem
    assert (ill["summaries"].ok, ill["summaries"].version) == (False, "2 wait, 0 given up")
    assert "empty" in ill["summaries"].problem
    assert (ill["facts"].ok, ill["facts"].version) == (True, "1 unread, 0 failed, 1 given up")
    assert "malformed" in ill["facts"].problem
    assert "hush-hush" not in str(ill)


async def test_without_a_model_the_doctor_does_not_speak_of_one(urls: dict[str, str]) -> None:
    assert "language model" not in await examined(Settings(**urls))


async def test_a_model_that_was_brought_along_is_left_open(
    urls: dict[str, str], embedder: Any, llm_endpoint: LLMEndpoint
) -> None:
    own = await open_llm(Settings(**llm_endpoint.settings()))
    assert own is not None
    async with Memory.open(settings=Settings(**urls), embedder=embedder, llm=own):
        pass
    assert await own.text("Say it shorter.", "Ada likes tea.", limit=100) == "Noted."
    await own.close()


async def examined(settings: Settings) -> dict[str, Health]:
    return {health.part: health for health in await doctor(settings)}
