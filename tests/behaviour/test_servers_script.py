"""scripts/servers.py, run as people run it: the development servers start once and stop."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = ("redis", "chroma")

pytestmark = pytest.mark.skipif(
    shutil.which("redis-server") is None and os.environ.get("CI") != "true",
    reason="redis-server is not installed",
)


def command(folder: Path, do: str, *names: str) -> list[str]:
    script = str(ROOT / "scripts" / "servers.py")
    return [sys.executable, script, "--folder", str(folder), do, *names]


def run(folder: Path, do: str, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, do, *names), capture_output=True, text=True, check=False)


def urls(folder: Path) -> dict[str, str]:
    words = shlex.split((folder / "env").read_text())
    return dict(word.split("=", 1) for word in words if "=" in word)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "test servers"
    yield folder
    run(folder, "wipe")


async def test_starting_from_several_shells_at_once_starts_one_set(folder: Path) -> None:
    async def up() -> str:
        shell = await asyncio.create_subprocess_exec(
            *command(folder, "up", *NAMES),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complaints = await shell.communicate()
        assert shell.returncode == 0, complaints.decode()
        return said.decode()

    said = await asyncio.gather(*(up() for _ in range(3)))
    assert len(set(said)) == 1
    assert said[0] == (folder / "env").read_text()
    assert set(urls(folder)) == {"TRIMEM_REDIS_URL", "TRIMEM_CHROMA_URL"}


def test_they_ask_for_the_password_and_come_back_at_the_same_address_with_their_data(
    folder: Path,
) -> None:
    assert run(folder, "up", "redis").returncode == 0
    url = urls(folder)["TRIMEM_REDIS_URL"]
    with redis.Redis.from_url(url) as client:
        client.set("kept", 1)
    with (
        redis.Redis(port=int(url.rsplit(":", 1)[1].split("/")[0])) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()

    assert "redis: stopped" in run(folder, "down").stderr
    assert urls(folder) == {}
    assert run(folder, "up", "redis").returncode == 0
    assert urls(folder)["TRIMEM_REDIS_URL"] == url
    with redis.Redis.from_url(url) as client:
        assert client.get("kept") == b"1"


def test_status_says_what_answers_and_what_does_not_run(folder: Path) -> None:
    run(folder, "up", "redis")
    assert run(folder, "status", "redis").returncode == 0
    both = run(folder, "status", *NAMES)
    assert both.returncode == 1
    assert "redis: answers on port" in both.stdout
    assert "chroma: not running" in both.stdout


def test_wiping_removes_the_data(folder: Path) -> None:
    run(folder, "up", "redis")
    assert (folder / "redis").is_dir()
    run(folder, "wipe")
    assert not (folder / "redis").exists()
    assert run(folder, "status", "redis").returncode == 1
