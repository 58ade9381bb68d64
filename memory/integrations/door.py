"""One way into an open memory from wherever a framework calls: its loop, another loop, a thread.

A memory lives on the event loop that opened it. `do` awaits work on that loop from any other;
`wait` blocks a thread until it is done. Neither waits for what cannot come: `wait` refuses to block
the memory's own loop, and both refuse when that loop does not run, as after the memory was closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from memory.errors import ConfigurationError, InvalidInput
from memory.memory import Memory, UserMemory
from memory.sync import Blocking

T = TypeVar("T")
Owner = UserMemory | Blocking
"""Whose memory it is: `memory.user(name)`, of `Memory.open` or of `memory.sync.open`."""
Opened = Memory | Blocking
"""An open memory, of `Memory.open` or of `memory.sync.open`."""


class Door:
    """The way to a memory. Raises ConfigurationError when it is made outside of its event loop."""

    def __init__(self, inner: Opened | Owner) -> None:
        if isinstance(inner, Blocking):
            self._inner: object = inner._inner
            self._loop: asyncio.AbstractEventLoop = inner._run(_current_loop())
        else:
            self._inner = inner
            self._loop = _loop_of_this_thread()

    @property
    def user(self) -> UserMemory:
        """The user's memory that it leads to. Raises InvalidInput when it is another thing."""
        if not isinstance(self._inner, UserMemory):
            raise InvalidInput(f"give a user's memory, `memory.user(name)`, not {self._inner!r}")
        return self._inner

    @property
    def memory(self) -> Memory:
        """The open memory that it leads to. Raises InvalidInput when it is another thing."""
        if not isinstance(self._inner, Memory):
            raise InvalidInput(f"give an open memory, not {self._inner!r}")
        return self._inner

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work, done on the memory's loop. Raises ConfigurationError when that
        does not run."""
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(self._begun(work))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """As `do`, for a thread that may block. Raises ConfigurationError also on the memory's own
        loop."""
        if _running_here() is self._loop:
            work.close()
            raise ConfigurationError(
                "this is the event loop that the memory is open in, which a blocking call would "
                "stop for ever: await the async method, or open the memory with memory.sync.open"
            )
        return self._begun(work).result()

    def _begun(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if not self._loop.is_running():
            work.close()
            raise ConfigurationError(
                "the event loop that the memory was opened in does not run: the memory is closed, "
                "or nobody would answer"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop)


async def _current_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def _running_here() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _loop_of_this_thread() -> asyncio.AbstractEventLoop:
    loop = _running_here()
    if loop is None:
        raise ConfigurationError(
            "make this where the memory is open, inside `async with Memory.open()`; without an "
            "event loop, use memory.sync.open"
        )
    return loop
