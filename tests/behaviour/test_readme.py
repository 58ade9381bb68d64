"""What the README shows runs as it is written there, in the order of its reader."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

from typer.testing import CliRunner

from memory.cli import app
from memory.local import stop_stack

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def ran(code: str, folder: Path) -> str:
    """What a Python of its own prints, with its memory in `folder`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TRIMEM_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**env, "TRIMEM_HOME": str(folder)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_code_of_the_readme_runs_as_it_is_written(tmp_path: Path) -> None:
    hello, *inside, blocking = blocks("python")
    last = "        print(context.explain())"
    assert last in hello
    whole = hello.replace(last, last + "\n" + textwrap.indent("\n".join(inside), " " * 8), 1)
    folder = tmp_path / "memory"
    try:
        first, again = ran(hello, folder), ran(hello, folder)
        assert "Nothing in memory answers this." not in again
        assert "Recent turns" in again
        assert "Recent turns" not in first
        assert "the schema of the tools" in ran(whole, folder)
        ran(blocking, folder)
    finally:
        await stop_stack(folder)


def test_every_command_of_the_readme_is_one_with_its_options() -> None:
    lines = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]
    shown = [shlex.split(line)[1:] for line in lines if line.startswith("trimem ")]
    assert len(shown) >= 5
    for words in shown:
        named = words[: 2 if words[0] == "snapshots" else 1]
        told = CliRunner().invoke(app, [*named, "--help"])
        assert told.exit_code == 0, words
        for option in filter(lambda word: word.startswith("--"), words):
            assert option in told.stdout, words
