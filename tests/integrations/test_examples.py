"""The examples run as a reader would run them, without a key and without a network; and nothing
of ours imports a framework unasked."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from memory.local import stop_stack

ROOT = Path(__file__).resolve().parents[2]
SAID = {
    "openai_agents_session.py": ["You asked about Oslo.", "6 items are kept", "sent 5 items"],
    "langchain_history.py": ["You are Ada.", "human: Who am I?"],
    "langgraph_agent.py": ["Your canary is Pippin.", "canary is called Pippin"],
    "pydantic_ai_agent.py": ["I was sent 3 messages.", "canary is called Pippin"],
}
EXTRAS = {
    "langchain": ("langchain_core", "trimem[langchain]"),
    "langgraph": ("langgraph", "trimem[langgraph]"),
    "openai_agents": ("agents", "trimem[openai-agents]"),
    "pydantic_ai": ("pydantic_ai", "trimem[pydantic-ai]"),
}


@pytest.mark.parametrize("example", SAID)
async def test_an_example_runs(example: str, tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    try:
        done = _python(str(ROOT / "examples" / example), str(folder))
    finally:
        await stop_stack(folder)
    assert done.returncode == 0, done.stderr
    for text in SAID[example]:
        assert text in done.stdout


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(SAID)


def test_the_memory_imports_no_framework() -> None:
    roots = sorted({root for root, _ in EXTRAS.values()})
    code = (
        "import sys, memory, memory.integrations, memory.sync, memory.cli\n"
        f"print([name for name in {roots!r} if name in sys.modules])"
    )
    assert _python("-c", code).stdout.strip() == "[]"
    code = "import sys, memory.integrations.langgraph\nprint('langgraph' in sys.modules)"
    assert _python("-c", code).stdout.strip() == "True"


@pytest.mark.parametrize("module", EXTRAS)
def test_a_missing_framework_is_named_with_the_extra_that_brings_it(module: str) -> None:
    root, extra = EXTRAS[module]
    code = (
        f"import sys\nsys.modules[{root!r}] = None\n"
        f"try:\n    import memory.integrations.{module}\n"
        "except ImportError as error:\n    print(error)"
    )
    assert f"pip install '{extra}'" in _python("-c", code).stdout


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=timedelta(minutes=3).total_seconds(),
        check=False,
    )
