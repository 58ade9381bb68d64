"""The sync door: the same memory for code that has no event loop.

    with memory.sync.open() as memory:
        session = memory.user("ada").session("monday")
        context = session.build_context("Where shall we eat tonight?")

One background thread runs one event loop. Every coroutine method of Memory, UserMemory and Session
is run there and waited for; everything else (values, names) passes through. There are no second
classes to keep in step.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory.errors import ConfigurationError
from memory.memory import Memory, Session, UserMemory
from memory.settings import Settings

_Run = Callable[[Any], Any]


class Blocking:
    """A Memory, UserMemory or Session whose methods block."""

    def __init__(self, inner: Memory | UserMemory | Session, run: _Run) -> None:
        self._inner = inner
        self._run = run

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            if inspect.isawaitable(result):
                return self._run(result)
            if isinstance(result, UserMemory | Session):
                return Blocking(result, self._run)
            return result

        return call

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"


@contextmanager
def open(  # noqa: A001 (as `Memory.open`)
    folder: Path | str | None = None, *, settings: Settings | None = None
) -> Iterator[Any]:
    """Open a memory as `Memory.open` does, for blocking use from any number of threads.

    Gives a Blocking around the Memory; typed as Any because its methods are Memory's own, awaited.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_turn, args=(loop,), name="trimem", daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        if loop.is_closed():
            work.close()
            raise ConfigurationError("this memory is closed")
        return asyncio.run_coroutine_threadsafe(_awaited(work), loop).result()

    opening = Memory.open(folder, settings=settings)
    try:
        inner = run(opening.__aenter__())
        try:
            yield Blocking(inner, run)
        finally:
            run(opening.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped; then end what still waits in it, or its threads would wait
    for ever."""
    loop.run_forever()
    loop.run_until_complete(_end_others())
    loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _awaited(work: Any) -> Any:
    return await work
