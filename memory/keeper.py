"""The keeper of a local stack: one small process per data folder that runs its sidecars.

Whoever uses the stack keeps a connection to the keeper's socket open. That connection is the
share: the kernel closes it when its holder dies, so nobody has to be remembered or timed out. The
keeper starts what a holder asks for, answers when it is ready, starts again what crashed, and
stops everything when there has been no holder for long enough.

One line of JSON each way:

    {"do": "hold", "idle": SECONDS, "parts": {NAME: SPEC}}  →  {"ready": {NAME: [pid, port]}}
    {"do": "status"}  →  {"parts": {NAME: …}, "holders": N}
    {"do": "stop"}    →  {"stopped": [NAME, …]}, after they are gone

There is one keeper per folder because it holds keeper.lock, one of each sidecar because that holds
its own (see `memory.sidecar`). A keeper that was killed leaves its sidecars running; the next one
finds them by their locks and keeps them. Only the standard library is used: this process stays
for long and has to stay small.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from memory.sidecar import Sidecar, free_port

GRACE = 15.0
"""Seconds that a sidecar has to write its data when it is stopped."""

_BUSY = 0.02  # between looks at a sidecar that is starting
_CALM = 5.0  # between looks at one that is somebody else's child
_FOLDER_LOOK = 2.0  # between looks whether the folder is there, while nobody holds the stack
_ASK_LIMIT = 0.5
_TRIES = 3  # failed starts after which whoever waits is told
_STEADY = 10.0  # seconds of life after which a crash is not part of a series
_LONGEST_PAUSE = 30.0
_NO_HOLDER_YET = 60.0


class Spec(NamedTuple):
    """How one sidecar is run, as a holder gives it.

    `{port}` in `command` stands for its port; with a `socket` it has none. It is ready when it
    answers `ask` with something that starts with `expect`. When a failed start's output matches
    `damaged`, its `data` folder is set aside and it begins anew: the journal is the truth.
    """

    command: list[str]
    env: dict[str, str]
    data: str
    ask: str
    expect: str
    damaged: str
    socket: str | None = None


class Part:
    """One sidecar, and what the keeper knows of it."""

    def __init__(self, folder: Path, name: str, spec: Spec) -> None:
        self.name = name
        self.spec = spec
        self.folder = folder
        self.sidecar = Sidecar(folder, name)
        self.child: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.starts = 0
        self.failures = 0
        self.began = 0.0
        self.not_before = 0.0
        self.log_start = 0

    def look(self, now: float) -> None:
        """One step towards a sidecar that is ready: starts it, asks it, or lets it be."""
        self._reap()
        record = self.sidecar.running()
        if record is None and self.child is not None:
            self._end_child()  # it runs, but its record was removed: nobody would find it again
        elif record is None:
            self._start(now)
        elif not self.ready and self._answers(record.pid, record.port):
            self.ready = True

    def wake(self) -> None:
        """Forgets earlier failures: somebody asks for it now."""
        self._reap()
        if self.failures >= _TRIES or not self.ready:
            self.failures = 0
            self.not_before = 0.0

    def stop(self) -> bool:
        was_there = self.sidecar.stop(grace=GRACE)
        return self._end_child() or was_there

    def _end_child(self) -> bool:
        """Ends the server that this keeper started, found or not; True when it was there."""
        if self.child is None or self.child.poll() is not None:
            return False
        self.child.terminate()
        try:
            self.child.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        return True

    def status(self) -> dict[str, Any]:
        record = self.sidecar.running()
        return {
            "pid": record.pid if record else 0,
            "port": record.port if record else 0,
            "ready": self.ready and record is not None,
            "restarts": max(0, self.starts - 1),
        }

    @property
    def settled(self) -> bool:
        return self.ready or self.failures >= _TRIES

    @property
    def is_adopted(self) -> bool:
        return self.ready and self.child is None

    def problem(self) -> str:
        return f"{self.name} does not start; see {self.sidecar.log} and keeper.log beside it"

    def _reap(self) -> None:
        gone = self.child.poll() is not None if self.child else self.sidecar.running() is None
        if not gone:
            return
        if self.child is not None:
            self.child = None
            self._learn_from_death(time.monotonic())
        self.ready = False

    def _learn_from_death(self, now: float) -> None:
        if self.ready and now - self.began > _STEADY:
            self.failures = 0
            return
        self._count_failure(now)
        if re.search(self.spec.damaged, self._output()):
            self._set_aside()

    def _count_failure(self, now: float) -> None:
        self.failures += 1
        self.not_before = now + min(_LONGEST_PAUSE, 0.1 * 2**self.failures)

    def _output(self) -> str:
        """What the newest start has written."""
        with suppress(OSError), open(self.sidecar.log, "rb") as log:
            log.seek(self.log_start)
            return log.read(64_000).decode("utf-8", "replace")
        return ""

    def _set_aside(self) -> None:
        data = Path(self.spec.data)
        for number in range(1, 1_000):
            aside = data.with_name(f"{data.name}.damaged-{number}")
            if not aside.exists():
                with suppress(FileNotFoundError):
                    data.rename(aside)
                    _say(f"{self.name}: {data} cannot be read; set aside as {aside.name}")
                return

    def _start(self, now: float) -> None:
        if now < self.not_before:
            return
        self.ready = False
        try:
            port = self._clear_the_way()
            self.child = self.sidecar.start(
                [word.replace("{port}", str(port)) for word in self.spec.command],
                cwd=Path(self.spec.data),
                env=self.spec.env,
                port=port,
                patience=0.0,
            )
        except OSError as error:
            self._count_failure(now)
            _say(f"{self.name}: {error}")
            return
        self.starts += 1
        self.began = now
        _say(f"{self.name}: started, pid {self.child.pid}")

    def _clear_the_way(self) -> int:
        """What a start needs: a data folder, and a free port or a free socket; gives the port."""
        Path(self.spec.data).mkdir(exist_ok=True)  # never the whole folder, when it was removed
        with suppress(FileNotFoundError):
            self.log_start = self.sidecar.log.stat().st_size
        if self.spec.socket is not None:
            Path(self.spec.socket).unlink(missing_ok=True)
            return 0
        before = self.sidecar.last()
        return free_port(before.port if before else 0)

    def _answers(self, pid: int, port: int) -> bool:
        family = socket.AF_INET if self.spec.socket is None else socket.AF_UNIX
        address = self.spec.socket or ("127.0.0.1", port)
        try:
            with socket.socket(family, socket.SOCK_STREAM) as asked:
                asked.settimeout(_ASK_LIMIT)
                asked.connect(address)
                asked.sendall(self.spec.ask.encode())
                answer = asked.recv(200)
        except OSError:
            return False
        return answer.startswith(self.spec.expect.encode()) and (
            self.spec.socket is not None or owns_port(pid, port)
        )


class Client:
    """One connection: what it has said so far, and what it waits for."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.heard = b""
        self.wants: tuple[str, ...] = ()
        self.holds = False

    def reply(self, message: Mapping[str, Any]) -> None:
        with suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")


class Keeper:
    """The loop: connections in, sidecars up, everything down when nobody is left."""

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.folder = folder
        self.listener = listener
        self.parts: dict[str, Part] = {}
        self.clients: set[Client] = set()
        self.idle = _NO_HOLDER_YET
        self.alone_since = time.monotonic()
        self.stopping = False
        self.stopped: list[str] = []
        self.selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Until idle for long enough, told to stop, terminated, or the folder is removed; then
        stops the sidecars."""
        self.selector.register(self.listener, selectors.EVENT_READ)
        self._listen_to_signals()
        while not self.stopping and not self._is_idle():
            for key, _ in self.selector.select(self._patience()):
                if key.fileobj is self.listener:
                    self._welcome()
                elif isinstance(key.data, Client):
                    self._hear(key.data)
                else:
                    key.fileobj.recv(4096)  # type: ignore[union-attr]  # the signals' own socket
            if self.folder.is_dir():
                self._look_after_parts()
            else:
                self.stopping = True
        self._close()

    def _look_after_parts(self) -> None:
        now = time.monotonic()
        for part in self.parts.values():
            part.look(now)
        for client in self.clients:
            if client.wants and all(self.parts[name].settled for name in client.wants):
                self._answer(client)

    def _answer(self, client: Client) -> None:
        parts = [self.parts[name] for name in client.wants]
        client.wants = ()
        broken = [part.problem() for part in parts if not part.ready]
        if broken:
            client.reply({"error": "; ".join(broken)})
            return
        records = {part.name: part.sidecar.running() for part in parts}
        client.reply({"ready": records})

    def _patience(self) -> float | None:
        if any(client.wants for client in self.clients):
            return _BUSY
        waits = [_CALM for part in self.parts.values() if part.is_adopted]
        waits += [
            max(_BUSY, part.not_before - time.monotonic())
            for part in self.parts.values()
            if not part.ready
        ]
        if not self._holders():
            left = max(0.0, self.alone_since + self.idle - time.monotonic())
            waits.append(min(left, _FOLDER_LOOK))
        return min(waits, default=None)

    def _holders(self) -> int:
        return sum(client.holds for client in self.clients)

    def _is_idle(self) -> bool:
        if self._holders():
            self.alone_since = time.monotonic()
            return False
        return time.monotonic() - self.alone_since >= self.idle

    # --- connections -------------------------------------------------------------------------

    def _welcome(self) -> None:
        with suppress(BlockingIOError):
            connection, _ = self.listener.accept()
            connection.settimeout(_ASK_LIMIT)
            client = Client(connection)
            self.clients.add(client)
            self.selector.register(connection, selectors.EVENT_READ, client)

    def _hear(self, client: Client) -> None:
        try:
            heard = client.connection.recv(65_536)
        except OSError:
            heard = b""
        if not heard:
            self._farewell(client)
            return
        client.heard += heard
        while b"\n" in client.heard:
            line, _, client.heard = client.heard.partition(b"\n")
            try:
                self._obey(client, json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                client.reply({"error": f"not understood: {error!r}"})

    def _obey(self, client: Client, message: dict[str, Any]) -> None:
        if message["do"] == "hold":
            self._hold(client, float(message["idle"]), message["parts"])
        elif message["do"] == "status":
            status = {name: part.status() for name, part in self.parts.items()}
            client.reply({"parts": status, "holders": self._holders()})
        elif message["do"] == "stop":
            self.stopping = True
        else:
            raise ValueError(message["do"])

    def _hold(self, client: Client, idle: float, specs: dict[str, dict[str, Any]]) -> None:
        for name, given in specs.items():
            part = self.parts.setdefault(name, Part(self.folder, name, Spec(**given)))
            part.spec = Spec(**given)
            part.wake()
        self.idle = idle
        client.holds = True
        client.wants = tuple(specs)

    def _farewell(self, client: Client) -> None:
        self.alone_since = time.monotonic() if client.holds else self.alone_since
        self.selector.unregister(client.connection)
        self.clients.discard(client)
        client.connection.close()

    # --- the end -----------------------------------------------------------------------------

    def _close(self) -> None:
        """No new connections, then no sidecars."""
        Path(self.listener.getsockname()).unlink(missing_ok=True)
        self.listener.close()
        left = {lock.stem for lock in self.folder.glob("*.lock")} - {"keeper"} - set(self.parts)
        stopped = [name for name, part in self.parts.items() if part.stop()]
        stopped += [name for name in left if Sidecar(self.folder, name).stop(grace=GRACE)]
        self.stopped = sorted(stopped)
        _say(f"stopped {', '.join(self.stopped) or 'with nothing to stop'}")

    def say_goodbye(self) -> None:
        """Tells every client that it was on purpose, and what was stopped."""
        for client in self.clients:
            client.reply({"stopped": self.stopped})
            client.connection.close()

    def _listen_to_signals(self) -> None:
        """SIGTERM ends the loop; a sidecar's death only wakes it."""
        here, there = socket.socketpair()
        for end in (here, there):
            end.setblocking(False)
        signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
        self.selector.register(here, selectors.EVENT_READ)
        self._wakers = (here, there)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_terminate)

    def _on_terminate(self, *_: object) -> None:
        self.stopping = True


def owns_port(pid: int, port: int) -> bool:
    """Whether process `pid` is who listens on `port`.

    Between choosing a free port and using it, another program may have taken it, and would answer
    in the sidecar's place. Systems without /proc cannot tell and answer True.
    """
    try:
        rows = Path(f"/proc/{pid}/net/tcp").read_text("ascii").splitlines()[1:]
        links = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return not Path("/proc/self/net/tcp").exists()
    fields = [row.split() for row in rows]
    listening = {f[9] for f in fields if f[1].endswith(f":{port:04X}") and f[3] == "0A"}
    return any(f"socket:[{inode}]" in links for inode in listening)


def _say(line: str) -> None:
    print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), line, flush=True)  # noqa: T201


def main(arguments: Sequence[str]) -> None:
    """`FOLDER SOCKET`: becomes the keeper of FOLDER in the background, once it can be reached.

    Returns at once when the folder has one already.
    """
    folder, address = Path(arguments[0]), arguments[1]
    os.umask(0o077)
    keeper = Sidecar(folder, "keeper")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    with keeper.become() as sign:
        if sign is None:
            return
        Path(address).unlink(missing_ok=True)
        listener.bind(address)
        listener.listen(128)
        if os.fork():
            return
        os.setsid()
        sign()
        os.chdir("/")
        _redirect(keeper.log)
        loop = Keeper(folder, listener)
        loop.run()
    loop.say_goodbye()  # with the lock free: whoever hears it can start another at once


def _redirect(log: Path) -> None:
    sys.stdout.flush()
    with open(os.devnull, "rb") as nothing, open(log, "ab") as output:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
