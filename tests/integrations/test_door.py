"""The way into an open memory from other loops and threads, also when the memory closes."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest

from memory import Memory
from memory import sync as blocking
from memory.errors import ConfigurationError
from memory.integrations.door import Door
from memory.settings import Settings


async def _answer(answer: str) -> str:
    return answer


async def test_a_cancelled_caller_in_another_loop_cancels_the_work(memory: Memory) -> None:
    door = Door(memory.user("ada"))
    begun, ended = threading.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def caller() -> None:
        waiting = asyncio.create_task(door.do(work()))
        await asyncio.to_thread(begun.wait)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    await asyncio.to_thread(lambda: asyncio.run(caller()))
    await asyncio.wait_for(ended.wait(), timeout=30)


@pytest.mark.filterwarnings("error")
def test_after_the_memory_is_closed_nobody_waits(urls: dict[str, str], scope: Any) -> None:
    settings = Settings.model_validate({**urls, "tenant": scope.tenant})
    with blocking.open(settings=settings) as memory:
        user = memory.user("ada")
        door = Door(user)
        assert door.wait(_answer("yes")) == "yes"
    with pytest.raises(ConfigurationError, match="closed"):
        door.wait(_answer("yes"))
    with pytest.raises(ConfigurationError, match="closed"):
        asyncio.run(door.do(_answer("yes")))
    with pytest.raises(ConfigurationError, match="closed"):
        user.facts()


def test_a_loop_that_does_not_run_is_not_waited_for(open_memory: Any) -> None:
    async def opened() -> Door:
        async with open_memory() as memory:
            return Door(memory.user("ada"))

    loop = asyncio.new_event_loop()
    try:
        door = loop.run_until_complete(opened())
        with pytest.raises(ConfigurationError, match="does not run"):
            door.wait(_answer("yes"))
    finally:
        loop.close()


def test_who_waits_while_the_memory_closes_is_let_go(urls: dict[str, str], scope: Any) -> None:
    settings = Settings.model_validate({**urls, "tenant": scope.tenant})
    begun = threading.Event()

    async def for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as thread:
        with blocking.open(settings=settings) as memory:
            waiting = thread.submit(Door(memory.user("ada")).wait, for_ever())
            begun.wait()
        with pytest.raises(CancelledError):
            waiting.result(timeout=30)
