"""A TCP proxy that misbehaves on demand: delays, drops, freezes, refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

_NOTHING = timedelta(0)


class Proxy:
    """Forwards connections on `127.0.0.1:port` to a server.

    Change the attributes at any time; they hold for what is forwarded from then on. `accepted`
    counts the connections so far, `open` those that are open now.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.delay = _NOTHING
        """How long every piece of an answer is held back."""
        self.frozen = asyncio.Event()
        self.refusing = False
        """Close new connections as soon as they are made."""
        self.accepted = 0
        self.port = 0

    @property
    def open(self) -> int:
        return len(self._writers) // 2

    def freeze(self) -> None:
        """From now on answers do not come, though connections stay open."""
        self.frozen.set()

    def thaw(self) -> None:
        """Undoes `freeze` for what comes from now on; what was held back is lost."""
        self.frozen.clear()

    def drop(self) -> None:
        """Closes every open connection, as a middlebox does with idle ones. New ones work."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self.refusing:
            writer.transport.abort()
            return
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, upstream_writer}
        self._writers |= both
        pipes = {
            asyncio.create_task(self._pipe(reader, upstream_writer, answers=False)),
            asyncio.create_task(self._pipe(upstream_reader, writer, answers=True)),
        }
        self._pipes |= pipes
        try:
            await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pipe in pipes:
                pipe.cancel()
            for end in both:
                end.transport.abort()
            self._writers -= both
            self._pipes -= pipes

    async def _pipe(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if answers and self.delay:
                    await asyncio.sleep(self.delay.total_seconds())
                if answers and self.frozen.is_set():
                    continue
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def proxy(host: str, port: int) -> AsyncIterator[Proxy]:
    """A proxy in front of `host:port` for as long as the block runs."""
    through = Proxy(host, port)
    server = await asyncio.start_server(through._serve, "127.0.0.1", 0)
    through.port = server.sockets[0].getsockname()[1]
    try:
        yield through
    finally:
        server.close()
        through.drop()
        for pipe in tuple(through._pipes):
            pipe.cancel()
        await asyncio.gather(*through._pipes, return_exceptions=True)
