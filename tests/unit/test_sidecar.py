"""A server process and its record, with the smallest servers there are."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.sidecar import LOG_LIMIT, Record, Sidecar, free_port, is_locked, wait_until

WAITS = "print('waiting', flush=True); input()"
IGNORES = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITS}"


def launched(folder: Path, code: str, *, port: int = 0) -> tuple[Sidecar, subprocess.Popen[bytes]]:
    """A sidecar that has run `code` up to its first output, and the process that it is."""
    sidecar = Sidecar(folder, "server")
    command = [sys.executable, "-c", f"import os, sys; sys.stdin = os.fdopen(os.pipe()[0]); {code}"]
    process = sidecar.start(command, cwd=folder, env={}, port=port)
    assert wait_until(lambda: "waiting" in sidecar.tail(), 20)
    return sidecar, process


@contextlib.contextmanager
def started(folder: Path, code: str, *, port: int = 0) -> Iterator[Sidecar]:
    """The same, gone when the block ends."""
    sidecar, process = launched(folder, code, port=port)
    try:
        yield sidecar
    finally:
        process.kill()
        process.wait()


def test_it_is_known_while_it_lives_and_not_after(tmp_path: Path) -> None:
    with started(tmp_path, WAITS, port=1234) as sidecar:
        record = sidecar.running()
        assert record is not None
        assert record.port == 1234
        assert Sidecar(tmp_path, "server").running() == record
        assert Sidecar(tmp_path, "other").running() is None
    assert wait_until(lambda: sidecar.running() is None, 20)
    assert sidecar.last() == record


def test_a_second_one_is_refused(tmp_path: Path) -> None:
    with started(tmp_path, WAITS) as sidecar, pytest.raises(BlockingIOError, match="running"):
        sidecar.start(["true"], cwd=tmp_path, env={}, patience=0)


def test_one_that_stops_when_asked_is_not_killed_and_one_that_does_not_is(tmp_path: Path) -> None:
    for name, code, grace, how in (
        ("kind", WAITS, 20.0, -signal.SIGTERM),
        ("deaf", IGNORES, 0.1, -signal.SIGKILL),
    ):
        folder = tmp_path / name
        folder.mkdir()
        sidecar, process = launched(folder, code)
        assert sidecar.stop(grace=grace)
        assert process.wait() == how
        assert not sidecar.stop(grace=grace)


def test_a_command_that_cannot_run_leaves_nothing_locked(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, "server")
    with pytest.raises(FileNotFoundError):
        sidecar.start(["no-such-command"], cwd=tmp_path, env={})
    assert not is_locked(sidecar.lock)


def test_becoming_the_server_is_for_one_process(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, "server")
    with sidecar.become() as sign:
        assert sign is not None
        sign()
        record = sidecar.running()
        assert isinstance(record, Record)
        with Sidecar(tmp_path, "server").become() as again:
            assert again is None
    assert sidecar.running() is None


def test_a_log_that_grew_too_long_is_kept_beside_a_new_one(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, "server")
    sidecar.log.write_bytes(b"x" * (LOG_LIMIT + 1))
    sidecar.start(["true"], cwd=tmp_path, env={"PATH": "/bin:/usr/bin"}).wait()
    assert (tmp_path / "server.log.1").stat().st_size > LOG_LIMIT
    assert sidecar.log.stat().st_size == 0


def test_the_wished_port_is_given_when_it_is_free_and_another_when_it_is_not() -> None:
    wish = free_port()
    assert free_port(wish) == wish
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.bind(("127.0.0.1", wish))
        taken.listen()
        assert free_port(wish) != wish


def test_a_garbled_record_is_no_record(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, "server")
    for garbled in (b"", b"\xff", b"[1]", b"{}", b'["a", 1]'):
        sidecar.lock.write_bytes(garbled)
        assert sidecar.last() is None
    sidecar.lock.write_bytes(b"[1, 2]")
    assert sidecar.last() == Record(1, 2)


def test_the_record_is_written_before_the_server_runs(tmp_path: Path) -> None:
    """Its own lock file, read by the server itself, already names it."""
    code = "import json, os; print(json.load(open('server.lock'))[0] == os.getpid())"
    sidecar = Sidecar(tmp_path, "server")
    process: subprocess.Popen[bytes] = sidecar.start(
        [sys.executable, "-c", code], cwd=tmp_path, env={}
    )
    assert process.wait() == 0
    assert sidecar.tail() == "True"
