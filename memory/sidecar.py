"""A server process that outlives whoever started it, and how it is recognised again.

The server inherits an open file, NAME.lock, locked. The kernel frees the lock when the server is
gone, however it went; so a held lock is the proof of life, and the pid written in that file is the
server's own for just as long. A record left by a crash or a reboot is therefore harmless, and a
pid that now belongs to somebody else is never signalled. The server signs the record itself
between fork and exec: there is no moment at which it runs unrecorded.

Only the standard library is used here, and the file can be run from where it lies: the keeper of
the local stack has to stay small.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

LOG_LIMIT = 8_000_000
"""Bytes of log above which the next start begins a new one and keeps the old one beside it."""

_POLL = 0.02


class Record(NamedTuple):
    """What a running server is known by. `port` is 0 for one that only has a socket."""

    pid: int
    port: int


class Sidecar:
    """One server in `folder`: its record in NAME.lock, its output in NAME.log."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.lock = folder / f"{name}.lock"
        self.log = folder / f"{name}.log"

    def running(self) -> Record | None:
        """Its record while it lives; None when it does not."""
        if not is_locked(self.lock):
            return None
        return self.last()

    def last(self) -> Record | None:
        """The newest record, whether or not that server still lives."""
        try:
            pid, port = json.loads(self.lock.read_bytes())
            return Record(int(pid), int(port))
        except (OSError, ValueError, TypeError):
            return None

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        port: int = 0,
        user: str | None = None,
        patience: float = 5.0,
    ) -> subprocess.Popen[bytes]:
        """Starts it in a session of its own, as `user` when given.

        Raises BlockingIOError when one is running already: `patience` seconds are given to one
        that is just going away. OSError when the command cannot be run.
        """
        lock = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + patience
            while not _try_lock(lock, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise BlockingIOError(f"{self.name} is running already")
                time.sleep(_POLL)
            _rotate(self.log)
            with open(self.log, "ab", buffering=0) as log:
                return subprocess.Popen(  # noqa: S603 - our own commands
                    command,
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(lock,),
                    preexec_fn=partial(_sign, lock, port),
                    user=user,
                    group=user,
                    extra_groups=None if user is None else (),
                )
        finally:
            os.close(lock)

    @contextmanager
    def become(self) -> Iterator[Callable[[], None] | None]:
        """Makes this process the server, or gives None when there is one already.

        What it gives signs the record; call it in the process that stays. The lock goes with
        every copy of this process that is forked inside the block.
        """
        lock = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield partial(_sign, lock, 0) if _try_lock(lock, fcntl.LOCK_EX) else None
        finally:
            os.close(lock)

    def stop(self, *, grace: float, kindly: int = signal.SIGTERM) -> bool:
        """Asks it to stop, kills it after `grace` seconds; True when there was one to stop."""
        record = self.running()
        if record is None:
            return False
        for signal_number, patience in ((kindly, grace), (signal.SIGKILL, 5.0)):
            if not _signal(record.pid, signal_number):
                break
            if wait_until(lambda: not is_locked(self.lock), patience):
                break
        return True

    def tail(self, lines: int = 5) -> str:
        """The last lines of its log, for an error message."""
        try:
            with open(self.log, "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - 4_000))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock on `path`. Askers do not disturb one another."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(lock, fcntl.LOCK_SH)
    finally:
        os.close(lock)


def free_port(wish: int = 0) -> int:
    """A free loopback port: `wish` when nobody has it, else one of the system's choice."""
    for port in (wish, 0):
        with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether `condition` came true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def _try_lock(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(lock: int, port: int) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps([os.getpid(), port]).encode(), 0)


def _signal(pid: int, signal_number: int) -> bool:
    try:
        os.kill(pid, signal_number)
    except ProcessLookupError:
        return False
    return True


def _rotate(log: Path) -> None:
    try:
        if log.stat().st_size > LOG_LIMIT:
            log.replace(log.with_suffix(".log.1"))
    except FileNotFoundError:
        pass
