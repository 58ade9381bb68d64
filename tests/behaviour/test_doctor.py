"""The doctor: every part asked, each fault named in one line, no fault hiding another."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from sqlalchemy import insert

from memory.doctor import doctor
from memory.journal import Journal
from memory.journal.episode_tables import episode_owners
from memory.local import LocalStack
from memory.models import Health
from memory.settings import Settings

TIERS = ["journal", "working", "episodic", "semantic"]
MODELS = ["embedder", "tokenizer"]


async def examined(**settings: object) -> dict[str, Health]:
    given = Settings(timeout=timedelta(seconds=5)).model_copy(update=settings)
    found = await doctor(given)
    for health in found:
        assert "\n" not in health.problem
    return {health.part: health for health in found}


@pytest.fixture
def nobody() -> Iterator[str]:
    """host:port at which nobody answers; the port stays taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


async def test_on_the_local_stack_every_part_answers_with_its_version(local: LocalStack) -> None:
    found = await examined(home=local.folder)
    assert list(found) == ["data folder", "keeper", "redis", "chroma", *TIERS, *MODELS]
    assert {part: health.problem for part, health in found.items() if not health.ok} == {}
    assert all(health.version for health in found.values())
    assert found["data folder"].where == str(local.folder)


async def test_what_a_repair_will_bring_to_todays_rules_is_said_and_is_no_fault(
    local: LocalStack, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    settings = {"home": local.folder, "journal_url": SecretStr(url)}
    assert "former" not in (await examined(**settings))["journal"].version
    async with Journal.open(url, timeout=timedelta(seconds=5)) as journal:
        old = {"owner": bytes(16), "lexicon": 1}
        await journal.write(lambda c: c.execute(insert(episode_owners), old) and None)
    found = (await examined(**settings))["journal"]
    assert found.ok
    assert found.version.endswith("of former rules: the postings of 1 users, 0 vectors")


async def test_on_servers_every_part_answers_and_no_password_is_shown(
    redis_url: str, chroma_url: str, postgres_url: str, neo4j_url: str
) -> None:
    found = await examined(
        journal_url=SecretStr(postgres_url),
        redis_url=SecretStr(redis_url),
        chroma_url=SecretStr(chroma_url),
        neo4j_url=SecretStr(neo4j_url),
    )
    assert list(found) == [*TIERS, *MODELS]
    assert {part: health.problem for part, health in found.items() if not health.ok} == {}
    assert re.search(r"\d", found["semantic"].version)
    told = " ".join(str(health) for health in found.values())
    for url in (redis_url, postgres_url, neo4j_url):
        password = urlsplit(url).password
        assert password is not None
        assert str(urlsplit(url).port) in told
        assert password not in told


async def test_only_the_parts_of_the_local_stack_that_are_used_are_examined(
    tmp_path: Path, redis_url: str, chroma_url: str
) -> None:
    urls = {"redis_url": SecretStr(redis_url), "chroma_url": SecretStr(chroma_url)}
    found = await examined(home=tmp_path / "home", **urls)
    assert list(found) == ["data folder", *TIERS, *MODELS]
    assert all(health.ok for health in found.values())


async def test_what_does_not_answer_is_named_and_the_rest_is_examined_all_the_same(
    local: LocalStack, nobody: str
) -> None:
    found = await examined(
        home=local.folder,
        redis_url=SecretStr(f"redis://:hush@{nobody}/0"),
        chroma_url=SecretStr(f"http://{nobody}"),
        neo4j_url=SecretStr(f"bolt://neo4j:hush@{nobody}"),
    )
    ill = {part: health.problem for part, health in found.items() if not health.ok}
    assert set(ill) == {"working", "episodic", "semantic"}
    assert all(ill.values())
    assert "hush" not in str(found)
    assert found["journal"].ok


async def test_wrong_passwords_are_told_as_such(
    local: LocalStack, redis_url: str, postgres_url: str, neo4j_url: str
) -> None:
    wrong = {
        setting: SecretStr(url.replace(str(urlsplit(url).password), "not-the-password"))
        for setting, url in (
            ("redis_url", redis_url),
            ("journal_url", postgres_url),
            ("neo4j_url", neo4j_url),
        )
    }
    found = await examined(home=local.folder, **wrong)
    ill = {part: health.problem for part, health in found.items() if not health.ok}
    assert set(ill) == {"journal", "working", "semantic"}
    for part, problem in ill.items():
        assert re.search("password|auth|credentials", problem, re.IGNORECASE), (part, problem)
        assert "not-the-password" not in problem


class NotChroma(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


async def test_a_web_server_that_is_no_chroma_is_told_as_such(local: LocalStack) -> None:
    with HTTPServer(("127.0.0.1", 0), NotChroma) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            found = await examined(home=local.folder, chroma_url=SecretStr(url))
        finally:
            server.shutdown()
            thread.join()
    assert not found["episodic"].ok
    assert "is this a Chroma server?" in found["episodic"].problem
    assert found["working"].ok


async def test_a_local_stack_that_cannot_run_says_why_for_each_part_that_needs_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "taken").write_text("a file")
    found = await examined(home=tmp_path / "taken")
    ill = {part: health.problem for part, health in found.items() if not health.ok}
    assert set(ill) == {"local stack", *TIERS}
    assert "cannot be the data folder" in ill["local stack"]
    assert "local stack, which does not run" in ill["working"]
    assert found["tokenizer"].ok


async def test_settings_that_mean_nothing_are_told_as_such(local: LocalStack) -> None:
    found = await examined(
        home=local.folder,
        journal_url=SecretStr("mysql://somewhere"),
        redis_url=SecretStr("memcached://somewhere"),
        chroma_url=SecretStr("ftp://somewhere"),
        neo4j_url=SecretStr("http://somewhere"),
        embedder="no-such-embedder",
    )
    assert {part for part, health in found.items() if not health.ok} == {*TIERS, "embedder"}
