"""What docker-compose.yml promises, read from the file itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
SERVERS = {"redis": 6379, "postgres": 5432, "chroma": 8000, "neo4j": 7687}
WITH_A_PASSWORD = ("redis", "postgres", "neo4j")

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))


def test_it_has_the_four_servers() -> None:
    assert set(COMPOSE["services"]) == set(SERVERS)


@pytest.mark.parametrize("name", SERVERS)
class TestEachServer:
    def test_its_image_is_pinned_to_a_patch_version(self, name: str) -> None:
        image = COMPOSE["services"][name]["image"]
        assert re.fullmatch(r"[a-z/0-9]+:\d+\.\d+(\.\d+)?(-[a-z]+)?", image), image

    def test_it_listens_on_loopback_only(self, name: str) -> None:
        port = SERVERS[name]
        assert COMPOSE["services"][name]["ports"] == [f"127.0.0.1:{port}:{port}"]
        assert "network_mode" not in COMPOSE["services"][name]

    def test_it_has_a_health_check_that_asks_it_something(self, name: str) -> None:
        check = COMPOSE["services"][name]["healthcheck"]
        asks = {"redis": "ping", "postgres": "pg_isready", "chroma": "heartbeat", "neo4j": "RETURN"}
        assert asks[name] in " ".join(check["test"])
        assert check["retries"] > 1
        assert {"interval", "timeout"} <= set(check)

    def test_its_data_is_in_a_named_volume(self, name: str) -> None:
        (volume,) = COMPOSE["services"][name]["volumes"]
        assert volume.split(":")[0] == name
        assert name in COMPOSE["volumes"]


@pytest.mark.parametrize("name", WITH_A_PASSWORD)
def test_it_refuses_to_start_without_a_password_from_the_environment(name: str) -> None:
    environment = COMPOSE["services"][name]["environment"]
    variable = f"TRIMEM_{name.upper()}_PASSWORD"
    required = f"${{{variable}:?set {variable}}}"
    assert [value for value in environment.values() if required in value]


def test_no_password_is_written_in_the_file() -> None:
    given = [
        (key, value)
        for service in COMPOSE["services"].values()
        for key, value in service["environment"].items()
        if re.search("AUTH|PASSWORD", key)
    ]
    assert len(given) == len(WITH_A_PASSWORD)
    for key, value in given:
        assert re.sub(r"\$\{\w+:\?[^}]*\}", "", value) in ("", "neo4j/"), key


def test_chroma_and_neo4j_are_the_versions_that_the_tests_run() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    pom = (ROOT / "scripts" / "neo4j" / "pom.xml").read_text("utf-8")
    chroma = COMPOSE["services"]["chroma"]["image"].split(":")[1]
    neo4j = COMPOSE["services"]["neo4j"]["image"].split(":")[1].removesuffix("-community")
    assert f'"chromadb=={chroma}"' in pyproject
    assert f"<neo4j.version>{neo4j}</neo4j.version>" in pom
