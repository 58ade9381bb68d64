"""Real servers for the tests, and scopes that no other test uses.

A server's URL comes from TRIMEM_TEST_{REDIS,CHROMA,POSTGRES,NEO4J}_URL when given, else from the
set that `make servers` runs. A missing one skips the test and says why; with CI=true it fails it.
"""

from __future__ import annotations

import os
import shlex
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from memory.local import LocalStack, local_stack, stop_stack
from memory.models import Scope
from tests import redis_modes
from tests.llm_endpoint import LLMEndpoint, serving

RUNNING_SET = Path(__file__).resolve().parent.parent / ".servers" / "env"
PATIENCE = timedelta(seconds=30)

# A busy machine must not fail a property.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def scope() -> Scope:
    """A tenant and a user that nothing else uses."""
    return Scope.of(f"tenant-{uuid.uuid4().hex}", f"user-{uuid.uuid4().hex}")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def local(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalStack]:
    """The local stack, one for the whole run."""
    folder = tmp_path_factory.mktemp("local stack")
    async with local_stack(folder, idle=timedelta(minutes=5), timeout=PATIENCE) as stack:
        yield stack
    await stop_stack(folder)


@pytest.fixture
async def llm_endpoint() -> AsyncIterator[LLMEndpoint]:
    """A scripted language model behind real HTTP, in the shapes of OpenAI and Anthropic."""
    async with serving() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def redis_url() -> str:
    """A Redis server, shared by the run: keep to keys of your own scope."""
    return _url_of("REDIS")


@pytest.fixture(scope="session")
def chroma_url() -> str:
    """A Chroma server, shared by the run: keep to collections of your own."""
    return _url_of("CHROMA")


@pytest.fixture(scope="session")
def neo4j_url() -> str:
    """A Neo4j server with a password, shared by the run: keep to your own scope."""
    return _url_of("NEO4J")


@pytest.fixture
async def postgres_url() -> AsyncIterator[str]:
    """A fresh PostgreSQL database, dropped afterwards."""
    server, name = _url_of("POSTGRES"), f"test_{uuid.uuid4().hex}"
    await _on_postgres(server, f"CREATE DATABASE {name}")
    yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    await _on_postgres(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def redis_tls_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """rediss:// with an ACL user; the certificate is named in the URL (`ssl_ca_certs`)."""
    _require_redis_modes()
    with redis_modes.tls(tmp_path_factory.mktemp("tls")) as url:
        yield url


@pytest.fixture(scope="session")
def redis_sentinel_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """redis+sentinel:// with one primary and one replica, behind a password."""
    _require_redis_modes()
    with redis_modes.sentinel(tmp_path_factory.mktemp("sentinel")) as url:
        yield url


@pytest.fixture(scope="session")
def redis_cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """redis+cluster:// with three primaries, behind a password."""
    _require_redis_modes()
    with redis_modes.cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


def _url_of(server: str) -> str:
    url = os.environ.get(f"TRIMEM_TEST_{server}_URL") or _running_set().get(server)
    if url is None:
        _missing(f"no {server.lower()}: run `make servers` or set TRIMEM_TEST_{server}_URL")
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=5).close()
    except OSError as error:
        _missing(f"{server.lower()} does not answer at {parts.hostname}:{parts.port}: {error}")
    return url


def _running_set() -> dict[str, str]:
    """URLs by server, as `make servers` wrote them for a shell."""
    if not RUNNING_SET.exists():
        return {}
    words = shlex.split(RUNNING_SET.read_text("utf-8"))
    given = dict(word.split("=", 1) for word in words if word.startswith("TRIMEM_"))
    names = {name: name for name in ("REDIS", "CHROMA", "NEO4J")} | {"JOURNAL": "POSTGRES"}
    found = {server: given.get(f"TRIMEM_{name}_URL") for name, server in names.items()}
    return {server: url for server, url in found.items() if url}


def _require_redis_modes() -> None:
    reason = redis_modes.missing()
    if reason is not None:
        _missing(reason)


def _missing(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


async def _on_postgres(server: str, statement: str) -> None:
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
