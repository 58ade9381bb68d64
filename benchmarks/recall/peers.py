"""Other memories, each in a virtual environment of its own and a process that speaks JSON lines.

    {"do": "open", "folder": …, "endpoint": …, "dims": …}   → {"version": …, "how": …}
    {"do": "learn", "user": …, "turns": [{id, role, name, text, time}]}   → {}
    {"do": "search", "user": …, "query": …, "k": …}          → {"turns": [ids, best first]}

An answer {"error": …} says what went wrong. A peer gets the product's embedder through a local
endpoint, and an environment without keys, names of hubs or telemetry. Whatever keeps it from
working is raised as PeerUnavailable and told with the figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.recall.endpoint import Endpoint
from benchmarks.recall.sets import Conversation
from benchmarks.recall.systems import Baseline
from memory.tokens import TokenCounter

HERE = Path(__file__).parent

LINE = 64 * 2**20
"""The longest line that is read, in bytes."""
AT_ONCE = 50
"""Turns that one line hands over."""


class PeerUnavailable(Exception):
    """A peer cannot be installed, or does not work. Its text is the reason, for people."""


@dataclass(frozen=True)
class Peer:
    """What is installed, and the driver that runs with it."""

    name: str
    requirements: tuple[str, ...]
    driver: Path


PEERS: Mapping[str, Peer] = {
    each.name: each
    for each in (
        Peer("mem0", ("mem0ai==2.2.1",), HERE / "drive_mem0.py"),
        Peer("mempalace", ("mempalace==3.11.0",), HERE / "drive_mempalace.py"),
    )
}


async def installed(peer: Peer, cache: Path) -> Path:
    """The Python of the peer's environment, made when it is not there. Raises PeerUnavailable."""
    wanted = sha256("\n".join((sys.version, *peer.requirements)).encode()).hexdigest()[:12]
    folder = cache / f"{peer.name}-{wanted}"
    python = folder / "bin" / "python"
    ready = folder / "installed"
    if not ready.exists():
        await _run(sys.executable, "-m", "venv", "--clear", str(folder))
        await _run(
            str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--only-binary", ":all:", *peer.requirements,
        )  # fmt: skip
        ready.write_text("\n".join(peer.requirements), encoding="utf-8")
    return python


async def _run(*command: str) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except OSError as error:
        raise PeerUnavailable(f"{command[0]}: {error.strerror}") from error
    output, _ = await process.communicate()
    if process.returncode:
        raise PeerUnavailable(f"cannot be installed: {_last_line(output.decode(errors='replace'))}")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no reason given"


class PeerSystem(Baseline):
    """A peer that is running. Its contexts are packed as the baselines' are."""

    def __init__(
        self,
        peer: Peer,
        process: asyncio.subprocess.Process,
        endpoint: Endpoint,
        counter: TokenCounter,
        log: Path,
    ) -> None:
        super().__init__(counter)
        self.name = peer.name
        self._process, self._endpoint, self._log = process, endpoint, log
        self._user = ""

    async def open(self, folder: Path) -> None:
        told = await self._ask(
            do="open", folder=str(folder), endpoint=self._endpoint.url, dims=self._endpoint.dims
        )
        self.version = f"{told['version']}, {told['how']}"

    async def _index(self, conversation: Conversation) -> None:
        self._endpoint.role = "document"
        self._user = conversation.user
        turns = [
            {
                "id": turn.id,
                "role": turn.speaker if turn.speaker in ("user", "assistant") else "user",
                "name": conversation.speaker(turn),
                "text": conversation.shown(turn),
                "time": turn.said_at.isoformat() if turn.said_at else None,
            }
            for turn in conversation.turns
            if turn.text.strip()
        ]
        for start in range(0, len(turns), AT_ONCE):
            await self._ask(do="learn", user=self._user, turns=turns[start : start + AT_ONCE])

    async def _search(self, query: str, k: int) -> list[str]:
        self._endpoint.role = "query"
        found = await self._ask(do="search", user=self._user, query=query, k=k)
        return [turn for turn in found["turns"] if turn in self._lines]

    async def _ask(self, **request: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            await stdin.drain()
            line = await stdout.readline()
        except (OSError, ValueError) as error:
            raise PeerUnavailable(f"{request['do']}: {error}") from error
        if not line:
            logged = _last_line(self._log.read_text(encoding="utf-8", errors="replace"))
            raise PeerUnavailable(f"{request['do']}: its process ended: {logged}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerUnavailable(f"{request['do']}: {answer['error'][:300]}")
        return answer


@asynccontextmanager
async def running(
    peer: Peer, python: Path, folder: Path, endpoint: Endpoint, counter: TokenCounter
) -> AsyncIterator[PeerSystem]:
    """The peer in `folder`, which is its home as well. Raises PeerUnavailable."""
    log = folder / "log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            str(python),
            "-u",
            str(peer.driver),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=_environment(folder),
            cwd=folder,
            limit=LINE,
        )
        try:
            system = PeerSystem(peer, process, endpoint, counter, log)
            await system.open(folder)
            yield system
        finally:
            if process.stdin is not None:
                process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), timeout=10)
            except TimeoutError:
                process.kill()
                await process.wait()


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "HF_HUB_OFFLINE": "1",
        "ANONYMIZED_TELEMETRY": "False",
        "DO_NOT_TRACK": "1",
    }
