"""The command line, through its front door: arguments in, text and exit code out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.cells import cell_len

from memory.cli import main
from memory.local import LocalStack
from memory.terminal import console


class Ran(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Trimem = Callable[..., Ran]


@pytest.fixture
def trimem(
    local: LocalStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Trimem:
    """Runs `trimem …` on the local stack of this test run, in a tenant of this test's own."""
    for name in [name for name in os.environ if name.startswith("TRIMEM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRIMEM_HOME", str(local.folder))
    monkeypatch.setenv("TRIMEM_TENANT", f"cli-{uuid.uuid4().hex}")
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["trimem", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """Ten messages of two sessions, in lines."""
    path = tmp_path / "chat.jsonl"
    said = [
        ("tea", "user", "我喜欢喝乌龙茶", "2024-05-01T09:00:00Z"),
        ("tea", "assistant", "乌龙茶很香。", "2024-05-01T09:01:00Z"),
        ("tea", "user", "I live in Ghent.", "2024-05-01T09:02:00Z"),
        ("tea", "assistant", "Ghent it is.", "2024-05-01T09:03:00Z"),
        ("cat", "user", "The cat Muesli sleeps on the naïve drum 🐈", "2024-05-02T09:00:00Z"),
        ("cat", "assistant", "Drums are warm.", "2024-05-02T09:01:00Z"),
    ]
    names = ("session", "role", "content", "event_time")
    _write(path, [dict(zip(names, row, strict=True)) for row in said])
    return path


# --- import ------------------------------------------------------------------------------------


def test_an_imported_file_is_remembered_with_its_old_dates(trimem: Trimem, chat: Path) -> None:
    report = trimem("import", str(chat), "-u", "ada", "--json").json
    assert (report["conversations"], report["messages"], report["added"]) == (2, 6, 6)
    found = trimem("sessions", "-u", "ada", "--json").json
    assert [(s["session"], s["messages"]) for s in found] == [("cat", 2), ("tea", 4)]
    assert found[1]["first_event_time"] == "2024-05-01T09:00:00Z"


def test_importing_again_adds_nothing_and_a_grown_file_adds_the_rest(
    trimem: Trimem, chat: Path
) -> None:
    assert trimem("import", str(chat), "-u", "ada", "--json").json["added"] == 6
    assert trimem("import", str(chat), "-u", "ada", "--json").json["added"] == 0
    with chat.open("a") as file:
        file.write('{"session": "cat", "role": "user", "content": "Still there."}\n')
    assert trimem("import", str(chat), "-u", "ada", "--json").json["added"] == 1
    assert trimem("sessions", "-u", "ada", "--json").json[0]["messages"] == 3


def test_a_dry_run_of_an_import_stores_nothing(trimem: Trimem, chat: Path) -> None:
    report = trimem("import", str(chat), "-u", "ada", "--dry-run", "--json").json
    assert (report["messages"], report["added"]) == (6, 0)
    assert trimem("sessions", "-u", "ada", "--json").json == []


def test_a_file_with_bad_lines_is_imported_in_part_and_says_so(trimem: Trimem, chat: Path) -> None:
    chat.write_bytes(chat.read_bytes() + b'garbage\n\n{"role": "user", "content": "cut o')
    before = chat.read_bytes()
    ran = trimem("import", str(chat), "-u", "ada", "--json")
    assert ran.code == 3
    assert ran.json["added"] == 6
    assert [problem["where"] for problem in ran.json["problems"]] == ["line 7", "line 9"]
    assert chat.read_bytes() == before


def test_a_file_of_unknown_shape_is_refused_in_one_line_and_nothing_is_stored(
    trimem: Trimem, tmp_path: Path
) -> None:
    path = tmp_path / "odd.json"
    path.write_text('{"a": [1, 2]}')
    ran = trimem("import", str(path), "-u", "ada")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("trimem: odd.json: ")
    assert ran.err.count("\n") == 1
    assert trimem("sessions", "-u", "ada", "--json").json == []


def test_an_import_that_was_killed_is_finished_by_the_next_run(
    trimem: Trimem, tmp_path: Path
) -> None:
    path = tmp_path / "long.jsonl"
    _write(path, [{"session": "s", "role": "user", "content": f"number {n}"} for n in range(500)])
    killed = subprocess.run([sys.executable, "-c", _KILLED_IN_THE_MIDDLE, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert trimem("sessions", "-u", "ada", "--json").json[0]["messages"] == 200
    report = trimem("import", str(path), "-u", "ada", "--json").json
    assert (report["messages"], report["added"]) == (500, 300)
    assert trimem("sessions", "-u", "ada", "--json").json[0]["messages"] == 500


# --- asking ------------------------------------------------------------------------------------


def test_what_was_imported_is_recalled_and_another_user_and_tenant_find_nothing(
    trimem: Trimem, chat: Path
) -> None:
    trimem("import", str(chat), "-u", "ada")
    ask = ("recall", "where does the cat Muesli sleep?", "--json")
    assert "Muesli" in trimem(*ask, "-u", "ada").json["items"][0]["text"]
    assert trimem(*ask, "-u", "bob").json["items"] == []
    assert trimem(*ask, "-u", "ada", "--tenant", "elsewhere").json["items"] == []


def test_a_context_is_shown_with_its_tokens_and_can_be_replayed(trimem: Trimem, chat: Path) -> None:
    trimem("import", str(chat), "-u", "ada")
    built = trimem("context", "Where does Muesli sleep?", "-u", "ada", "-s", "tea", "--json").json
    assert built["messages"][-1]["content"] == "Where does Muesli sleep?"
    assert 0 < built["tokens"]["total"] <= built["tokens"]["budget"]
    snapshot_id = built["snapshot_id"]
    assert [s["id"] for s in trimem("snapshots", "log", "-u", "ada", "--json").json] == [
        snapshot_id
    ]
    replayed = trimem("snapshots", "replay", snapshot_id, "-u", "ada", "--json").json
    assert replayed["verified"] is True
    shown = trimem("snapshots", "show", snapshot_id, "-u", "ada", "--json").json
    assert shown["messages"] == built["messages"]
    text = trimem("context", "Where does Muesli sleep?", "-u", "ada", "-s", "tea")
    assert " tokens = " in text.out
    assert "snapshot " in text.out


def test_a_context_is_explained_when_it_is_built_and_out_of_its_snapshot(
    trimem: Trimem, chat: Path
) -> None:
    with chat.open("a") as file:
        moved = {"session": "tea", "role": "user", "content": "I moved to Porto.\nI live in Porto."}
        file.write(json.dumps(moved | {"event_time": "2024-09-01T09:00:00Z"}) + "\n")
    trimem("import", str(chat), "-u", "ada")
    ask = ("context", "In which city does Muesli live, and do I live there?", "-u", "ada")
    built = trimem(*ask, "-s", "new", "--json").json
    old = next(miss for miss in built["dropped"] if miss["text"] == "user lives in Ghent")
    held = next(item for item in built["items"] if item["text"] == "user lives in Porto")
    assert (old["cause"], old["by"]) == ("superseded", held["id"])
    assert old["scores"]["cue"] > 0
    explained = trimem(*ask, "-s", "new", "--explain")
    assert explained.code == 0
    lines = explained.out.splitlines()
    assert all(cell_len(line) <= 100 for line in lines)
    assert any(line.startswith("Facts") for line in lines)
    assert any(line.startswith("Episodes") for line in lines)
    assert any("superseded by 'user lives in Porto' on 2024-09-01" in line for line in lines)
    again = trimem("snapshots", "show", built["snapshot_id"], "-u", "ada", "--explain")
    assert again.code == 0
    assert "user lives in Porto" in again.out
    assert "superseded by 'user lives in Porto'" in again.out
    assert "user lives in Ghent" not in "".join(m["content"] for m in built["messages"])


def test_two_contexts_are_compared(trimem: Trimem, chat: Path) -> None:
    trimem("import", str(chat), "-u", "ada")
    ids = [
        trimem("context", question, "-u", "ada", "-s", "tea", "--json").json["snapshot_id"]
        for question in ("Where does the cat Muesli sleep?", "hello")
    ]
    change = trimem("snapshots", "diff", *ids, "-u", "ada", "--json").json
    assert change["message_changed"] is True
    assert "~ another newest message" in trimem("snapshots", "diff", *ids, "-u", "ada").out


def test_a_snapshot_of_somebody_else_is_not_found(trimem: Trimem, chat: Path) -> None:
    trimem("import", str(chat), "-u", "ada")
    mine = trimem("context", "Hello there", "-u", "ada", "--json").json["snapshot_id"]
    assert trimem("snapshots", "show", mine, "-u", "ada").code == 0
    ran = trimem("snapshots", "show", mine, "-u", "bob")
    assert (ran.code, ran.out) == (1, "")
    assert mine in ran.err


def test_facts_are_asked_by_date(trimem: Trimem, tmp_path: Path) -> None:
    path = tmp_path / "moves.jsonl"
    said = [
        ("I live in Ghent.", "2024-05-01"),
        ("I moved to Porto. I live in Porto.", "2024-09-01"),
    ]
    _write(path, [{"role": "user", "content": t, "event_time": f"{d}T09:00:00Z"} for t, d in said])
    trimem("import", str(path), "-u", "ada")
    ask = ("facts", "-u", "ada", "--predicate", "lives_in", "--json")
    assert [f["object"] for f in trimem(*ask).json] == ["Porto"]
    assert [f["object"] for f in trimem(*ask, "--as-of", "2024-06-01").json] == ["Ghent"]
    assert trimem(*ask, "--as-of", "2024-01-01").json == []
    assert "Ghent" in trimem("facts", "-u", "ada", "--history").out


# --- output ------------------------------------------------------------------------------------


def test_no_script_is_shown_as_escapes(trimem: Trimem, chat: Path) -> None:
    trimem("import", str(chat), "-u", "ada")
    for command in (
        ("recall", "乌龙茶", "-u", "ada"),
        ("context", "乌龙茶 naïve 🐈", "-u", "ada", "-s", "tea"),
        ("facts", "-u", "ada"),
        ("sessions", "-u", "ada"),
    ):
        plain, as_json = trimem(*command), trimem(*command, "--json")
        assert "\\u" not in plain.out + as_json.out
        assert as_json.json is not None
    assert "乌龙茶" in trimem("recall", "乌龙茶", "-u", "ada").out


def test_a_lone_surrogate_is_printed_and_parses_back(trimem: Trimem, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    _write(path, [{"session": "s", "role": "user", "content": "the odd fox \ud83e sleeps"}] * 2)
    trimem("import", str(path), "-u", "ada")
    ran = trimem("context", "where is the odd fox?", "-u", "ada", "-s", "s", "--json")
    assert ran.code == 0
    said = [message["content"] for message in ran.json["messages"]]
    assert "the odd fox \ud83e sleeps" in said
    assert trimem("context", "where is the odd fox?", "-u", "ada", "-s", "s").code == 0


def test_stored_control_characters_cannot_reach_the_terminal() -> None:
    assert console.safe("a\x1b[31mb\u202ec\nd\ud83e") == "a<U+001B>[31mb<U+202E>c\nd<U+D83E>"


@pytest.mark.parametrize(
    "arguments",
    [
        ("recall",),
        ("nonsense",),
        ("facts", "-u", "ada", "--as-of", "someday"),
        ("recall", "x", "-u", "ada", "--where", "{"),
        ("import", "there-is-no-such-file", "-u", "ada"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    trimem: Trimem, arguments: tuple[str, ...]
) -> None:
    ran = trimem(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("trimem: ")
    assert ran.err.count("\n") == 1


def test_help_and_no_arguments_show_the_commands(trimem: Trimem) -> None:
    for ran in (trimem("--help"), trimem()):
        assert "consolidate" in ran.out + ran.err


def test_an_error_of_ours_is_one_line_and_exit_code_1(trimem: Trimem) -> None:
    for arguments in (
        ("recall", "x", "-u", "*"),
        ("recall", "x", "-u", "ada", "--where", '{"$bad": 1}'),
        ("context", "hello there", "-u", "ada", "--budget", "5"),
        ("context", " ", "-u", "ada"),
        ("snapshots", "replay", "no-such-snapshot", "-u", "ada"),
    ):
        ran = trimem(*arguments)
        assert (ran.code, ran.out) == (1, ""), arguments
        assert ran.err.startswith("trimem: ")
        assert ran.err.count("\n") == 1


def test_a_setting_that_cannot_be_one_is_named_in_one_line_without_its_value(
    trimem: Trimem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMEM_BUDGET", "s3cret")
    ran = trimem("recall", "x", "-u", "ada")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("trimem: TRIMEM_BUDGET: ")
    assert ran.err.count("\n") == 1
    assert "s3cret" not in ran.err


def test_lines_are_whole_where_there_is_no_terminal(trimem: Trimem, tmp_path: Path) -> None:
    long = "The printer is on the third floor, " + "behind the second door, " * 9
    _write(tmp_path / "long.jsonl", [{"role": "user", "content": long}])
    imported = trimem("import", str(tmp_path / "long.jsonl"), "-u", "ada")
    assert "1 have no time in the file" in imported.out
    assert long.strip() in trimem("recall", "printer", "-u", "ada").out
    assert f"{os.environ['TRIMEM_HOME']}/journal.sqlite3" in trimem("doctor").out


# --- the stack and the night -------------------------------------------------------------------


def test_a_neo4j_that_is_not_there_is_one_line_of_the_doctor_and_nothing_on_stderr(
    local: LocalStack,
) -> None:
    given = {"HOME": str(local.folder), "NEO4J_URL": "bolt://127.0.0.1:1", "TIMEOUT": "PT2S"}
    ran = subprocess.run(  # in a process of its own: pytest has a handler for every logger
        _command("doctor", "--json"),
        capture_output=True,
        encoding="utf-8",
        env=_clean_environment() | {f"TRIMEM_{name}": value for name, value in given.items()},
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, "")
    unwell = [part for part in json.loads(ran.stdout) if not part["ok"]]
    assert [part["part"] for part in unwell] == ["semantic"]
    assert "TimeoutError" not in unwell[0]["problem"]


def test_status_and_doctor_say_of_each_part_whether_it_answers(
    trimem: Trimem, tmp_path: Path
) -> None:
    running = trimem("status", "--json")
    assert running.code == 0
    assert {part["part"] for part in running.json} >= {"keeper", "redis", "chroma"}
    assert trimem("status", "--home", str(tmp_path / "nothing here")).code == 1
    well = trimem("doctor", "--json")
    assert well.code == 0, well.out
    assert {part["part"] for part in well.json} >= {"journal", "working", "episodic", "semantic"}


def test_status_names_the_language_model_and_does_not_ask_it(
    trimem: Trimem, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "language model" not in {part["part"] for part in trimem("status", "--json").json}
    monkeypatch.setenv("TRIMEM_LLM", "openai:gpt-4o-mini")
    monkeypatch.setenv("TRIMEM_LLM_URL", "http://nobody.invalid/v1")
    named = trimem("status", "--json")
    assert (named.code, named.json[-1]["version"]) == (0, "openai:gpt-4o-mini")
    monkeypatch.setenv("TRIMEM_LLM", "nobody:nothing")
    assert trimem("status", "--json").code == 1


def test_the_stack_starts_and_stops_by_command(trimem: Trimem, tmp_path: Path) -> None:
    folder = ("--home", str(tmp_path / "a stack"))
    assert trimem("up", *folder).code == 0
    assert trimem("status", *folder).code == 0
    assert trimem("down", *folder).code == 0
    assert trimem("status", *folder).code == 1


def test_a_night_promotes_what_recurs_and_a_dry_run_only_says_so(
    trimem: Trimem, tmp_path: Path
) -> None:
    path = tmp_path / "weeks.jsonl"
    said = [
        ("one", "Went swimming in the lake before work, cold water."),
        ("two", "Before work I went swimming in the lake, quite cold today."),
        ("three", "Went swimming in the lake again before work."),
    ]
    _write(path, [{"session": s, "role": "user", "content": text} for s, text in said])
    trimem("import", str(path), "-u", "ada")
    night = ("consolidate", "-u", "ada", "--json")
    promoted = ("facts", "-u", "ada", "--json")
    assert trimem(*night, "--dry-run").json["promoted"] == 1
    assert not [f for f in trimem(*promoted).json if f["origin"] == "promoted"]
    assert trimem(*night).json["promoted"] == 1
    found = [f for f in trimem(*promoted).json if f["origin"] == "promoted"]
    assert len(found) == 1
    assert len(found[0]["sources"]) == 3
    assert trimem(*night).json["promoted"] == 0


def test_the_scripts_tell_what_is_there_and_that_every_context_can_be_replayed(
    trimem: Trimem, chat: Path
) -> None:
    tenant = os.environ["TRIMEM_TENANT"]
    trimem("import", str(chat), "-u", "ada")
    trimem("context", "Where does Muesli sleep?", "-u", "ada")
    everybody = _script("inspect_memory.py", "--tenant", tenant, "--json")["users"]
    assert [(row["user"], row["sessions"], row["messages"]) for row in everybody] == [("ada", 2, 6)]
    one = _script("inspect_memory.py", "--tenant", tenant, "--user", "ada", "--json")
    assert len(one["episodes"]) == 6
    verified = _script("snapshots.py", "--tenant", tenant, "--json")
    assert [(row["user"], row["verified"], row["corrupt"]) for row in verified] == [("ada", 1, [])]
    night = _script("consolidate.py", "--user", "ada", "--dry-run", "--json")
    assert (night["dry_run"], night["users"], night["episodes"]) == (True, 1, 6)


@pytest.fixture
def own_folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "demo folder"
    yield folder
    subprocess.run(_command("down", "--home", str(folder)), check=True, capture_output=True)


def test_the_demo_runs_twice_in_a_row_and_replays_to_the_byte(own_folder: Path) -> None:
    shown, told = (_play(own_folder, *options) for options in ((), ("--json",)))
    assert "byte-identical" in shown.out
    assert "林悦" in shown.out
    assert "promoted" in shown.out
    played = told.json
    assert played["identical"] is True
    assert played["messages"] == 340
    assert played["night"]["promoted"] == 3
    for context in played["contexts"].values():
        assert {item["tier"] for item in context["items"]} == {"working", "episodic", "semantic"}
    assert "byte-identical" in told.err


def _play(folder: Path, *options: str) -> Ran:
    ran = subprocess.run(
        _command("demo", "--home", str(folder), *options),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=_clean_environment() | {"COLUMNS": "80"},
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return Ran(ran.returncode, ran.stdout, ran.stderr)


# --- making and running ------------------------------------------------------------------------


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from memory.cli import main; main()", *arguments]


def _script(name: str, *arguments: str) -> Any:
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run(
        [sys.executable, str(root / "scripts" / name), *arguments],
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TRIMEM_")}


_KILLED_IN_THE_MIDDLE = """
import asyncio, os, signal, sys
from pathlib import Path
from memory import Memory
from memory.importers.importing import import_file

def kill_at_100(done, total):
    if done >= 100:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with Memory.open() as memory:
        await import_file(memory, Path(sys.argv[1]), "ada", progress=kill_at_100)

asyncio.run(main())
"""


# --- upkeep ------------------------------------------------------------------------------------


def test_shards_can_be_changed_and_everything_is_found_as_before(
    trimem: Trimem, chat: Path
) -> None:
    assert trimem("import", str(chat), "-u", "ada").code == 0
    before = trimem("recall", "Where does the cat sleep?", "-u", "ada", "--json").json
    assert before["items"]
    for shards in (80, 64):
        ran = trimem("relayout", "--shards", str(shards), "--json")
        assert ran.code == 0
        assert ran.json["copied"] >= 6
        assert trimem("recall", "Where does the cat sleep?", "-u", "ada", "--json").json == before
    assert trimem("relayout", "--shards", "64", "--json").json == {"shards": 64, "copied": 0}
    assert trimem("relayout", "--shards", "5000").code == 1


def test_reembedding_for_an_embedder_that_does_not_exist_is_one_line(trimem: Trimem) -> None:
    ran = trimem("reembed", "--to", "nothing-like-it")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("trimem: embedder 'nothing-like-it'")


def test_the_tiers_are_made_again_from_the_journal(trimem: Trimem, chat: Path) -> None:
    assert trimem("import", str(chat), "-u", "ada").code == 0
    before = trimem("recall", "Where does the cat sleep?", "-u", "ada", "--json").json
    assert before["items"]
    ran = trimem("rebuild", "--json")
    assert (ran.code, ran.json) == (0, {"rebuilt": True})
    assert trimem("recall", "Where does the cat sleep?", "-u", "ada", "--json").json == before


def test_a_repair_of_what_is_well_changes_nothing(trimem: Trimem, chat: Path) -> None:
    assert trimem("import", str(chat), "-u", "ada").code == 0
    ran = trimem("repair", "--json")
    assert ran.code == 0
    assert ran.json.get("put_back", 0) == 0
    assert "0 vectors put back" in trimem("repair").out
