"""Real servers for development and tests, without Docker: `make servers`, `make servers-down`.

Redis and PostgreSQL come from Debian's packages, Chroma from the environment that runs this
script, Neo4j Community through Maven (neo4j/pom.xml). Each listens on a free loopback port, keeps
everything in .servers/NAME and asks for a password where the server can. Starting what is running
changes nothing, from however many shells; the URLs are printed and kept in .servers/env.

    python scripts/servers.py up [redis|postgres|chroma|neo4j ...]
    python scripts/servers.py status | down | wipe
"""

from __future__ import annotations

import argparse
import fcntl
import glob
import hashlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from memory.local import CHROMA_PROGRAM  # noqa: E402
from memory.sidecar import Sidecar, free_port, wait_until  # noqa: E402

START_LIMIT = 90.0
"""Seconds that a server may take from its start to its first answer."""

ENV = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.environ.get("HOME", "/"),
    "LANG": "C.UTF-8",
    "ANONYMIZED_TELEMETRY": "False",
    "NO_COLOR": "1",
}


class Missing(Exception):
    """Something that has to be installed first. The message says what and how."""


@dataclass(frozen=True)
class Server:
    """What is particular to one server.

    `prepare(home)` makes its folder ready once and may install; `command(home, port)` runs it;
    `url(home, port)` is how clients reach it; `answers(home, port)` asks it something real.
    """

    name: str
    prepare: Callable[[Path], None]
    command: Callable[[Path, int], Sequence[str]]
    url: Callable[[Path, int], str]
    answers: Callable[[Path, int], bool]
    user: Callable[[], str | None] = lambda: None
    stop_signal: int = signal.SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Real servers for development and tests.")
    parser.add_argument("--folder", type=Path, default=ROOT / ".servers")
    parser.add_argument("do", choices=list(COMMANDS))
    parser.add_argument("names", nargs="*", choices=[*SERVERS, []], help="all when none is named")
    given = parser.parse_args(arguments)
    servers = [SERVERS[name] for name in given.names or SERVERS]
    folder: Path = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one(folder / "lock"):
        return COMMANDS[given.do](folder, servers)


def up(folder: Path, servers: Sequence[Server]) -> int:
    """Starts what does not run, side by side; 1 when one of them could not be started."""
    started: dict[str, float] = {}
    failed = False
    for server in servers:
        try:
            if _start(folder, server):
                started[server.name] = time.monotonic()
        except (Missing, subprocess.CalledProcessError) as problem:
            print(f"{server.name}: {problem}", file=sys.stderr)
            failed = True
    for server in servers:
        if server.name in started and not _wait(folder, server, started[server.name]):
            failed = True
    _write_env(folder)
    print((folder / "env").read_text("utf-8"), end="")
    return int(failed)


def down(folder: Path, servers: Sequence[Server]) -> int:
    for server in servers:
        if _sidecar(folder, server).stop(grace=20.0, kindly=server.stop_signal):
            print(f"{server.name}: stopped", file=sys.stderr)
    _write_env(folder)
    return 0


def wipe(folder: Path, servers: Sequence[Server]) -> int:
    """Stops them and removes their data, wherever it lies."""
    down(folder, servers)
    for server in servers:
        home = folder / server.name
        for data in (home / "data", home):
            shutil.rmtree(data.resolve(), ignore_errors=True)
    return 0


def status(folder: Path, servers: Sequence[Server]) -> int:
    well = True
    for server in servers:
        record = _sidecar(folder, server).running()
        if record is None:
            print(f"{server.name}: not running")
        elif server.answers(folder / server.name, record.port):
            print(f"{server.name}: answers on port {record.port}, pid {record.pid}")
        else:
            print(f"{server.name}: pid {record.pid} runs but does not answer")
        well = well and record is not None
    return int(not well)


def _start(folder: Path, server: Server) -> bool:
    home, sidecar = folder / server.name, _sidecar(folder, server)
    if sidecar.running() is not None:
        return False
    home.mkdir(exist_ok=True)
    server.prepare(home)
    before = sidecar.last()
    port = free_port(before.port if before else 0)
    sidecar.start(
        server.command(home, port), cwd=home, env=_env(home), port=port, user=server.user()
    )
    return True


def _wait(folder: Path, server: Server, since: float) -> bool:
    home, sidecar = folder / server.name, _sidecar(folder, server)

    def settled() -> bool:
        record = sidecar.running()
        return record is None or server.answers(home, record.port)

    wait_until(settled, START_LIMIT)
    record = sidecar.running()
    if record is None or not server.answers(home, record.port):
        print(f"{server.name} did not start; {sidecar.log}:\n{sidecar.tail(15)}", file=sys.stderr)
        return False
    print(f"{server.name}: answers after {time.monotonic() - since:.1f} s", file=sys.stderr)
    return True


def _sidecar(folder: Path, server: Server) -> Sidecar:
    return Sidecar(folder, server.name)


def _env(home: Path) -> dict[str, str]:
    return {**ENV, "NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf")}


def _write_env(folder: Path) -> None:
    lines = []
    for server in SERVERS.values():
        record = _sidecar(folder, server).running()
        if record is not None:
            url = server.url(folder / server.name, record.port)
            variable = "JOURNAL" if server.name == "postgres" else server.name.upper()
            lines.append(f"export TRIMEM_{variable}_URL='{url}'\n")
    part = folder / "env.part"
    part.touch(mode=0o600)
    part.write_text("".join(lines), "utf-8")
    part.replace(folder / "env")


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with open(lock, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- what they have in common ------------------------------------------------------------------


def _password(home: Path) -> str:
    """The password of the server in `home`, hexadecimal; made when it is first asked for."""
    file = home / "password"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(16), "ascii")
    return file.read_text("ascii")


def _program(name: str, package: str, elsewhere: str = "") -> str:
    """The path of a program, installed from Debian's packages when that is possible.

    `elsewhere` is a pattern of folders to look into when it is not on the PATH.
    """
    found = _find(name, elsewhere)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing {package} …", file=sys.stderr)
        apt = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-y", "-q", "--no-install-recommends", package],
        ):
            subprocess.run(step, env=apt, stdout=subprocess.DEVNULL, check=False)
        found = _find(name, elsewhere)
    if found is None:
        raise Missing(f"{name} is not here; install it first (Debian: apt-get install {package})")
    return found


def _find(name: str, elsewhere: str) -> str | None:
    on_path = shutil.which(name)
    if on_path is not None or not elsewhere:
        return on_path
    return max(glob.glob(f"{elsewhere}/{name}"), default=None)


# --- Redis -------------------------------------------------------------------------------------


def _redis_prepare(home: Path) -> None:
    _program("redis-server", "redis-server")
    _program("redis-sentinel", "redis-sentinel")
    conf = home / "redis.conf"
    conf.touch(mode=0o600)
    conf.write_text(f'requirepass {_password(home)}\nappendonly yes\nsave ""\n', "ascii")


def _redis_command(home: Path, port: int) -> Sequence[str]:
    redis = _program("redis-server", "redis-server")
    return [redis, "redis.conf", "--bind", "127.0.0.1", "--port", str(port)]


def _redis_url(home: Path, port: int) -> str:
    return f"redis://:{_password(home)}@127.0.0.1:{port}/0"


def _redis_answers(home: Path, port: int) -> bool:
    import redis

    try:
        with redis.Redis.from_url(_redis_url(home, port), socket_timeout=5) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


# --- PostgreSQL --------------------------------------------------------------------------------


def _postgres_user() -> str | None:
    """PostgreSQL refuses to run as root; its package brings a user for it."""
    return "postgres" if os.geteuid() == 0 else None


def _postgres_program(name: str) -> str:
    """From the newest version that is installed: Debian keeps these off the PATH."""
    return _program(name, "postgresql", "/usr/lib/postgresql/*/bin")


def _postgres_prepare(home: Path) -> None:
    initdb = _postgres_program("initdb")
    if (home / "data" / "PG_VERSION").exists():
        return
    place = _postgres_place(home)
    with tempfile.NamedTemporaryFile("w", prefix="trimem-", encoding="ascii") as password:
        password.write(_password(home))
        password.flush()
        user = _postgres_user()
        if user is not None:
            os.chown(password.name, pwd.getpwnam(user).pw_uid, -1)
        subprocess.run(
            [
                *(initdb, "-D", str(place), "-U", "trimem", f"--pwfile={password.name}"),
                *("-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8"),
            ],
            cwd="/",
            env=ENV,
            user=user,
            group=user,
            extra_groups=None if user is None else (),
            stdout=subprocess.DEVNULL,
            check=True,
        )


def _postgres_place(home: Path) -> Path:
    """An empty private folder for the data that its user can reach, at `home`/data."""
    data, user = home / "data", _postgres_user()
    if user is None:
        data.mkdir(mode=0o700, exist_ok=True)
        return data
    owner = pwd.getpwnam(user)
    reachable = subprocess.run(
        ["test", "-x", str(home)], user=user, group=user, extra_groups=(), check=False
    )
    if reachable.returncode == 0:
        data.mkdir(mode=0o700, exist_ok=True)
        place = data
    else:  # a checkout inside somebody's private folder
        place = Path(tempfile.mkdtemp(prefix="trimem-postgres-", dir="/var/tmp"))
        data.unlink(missing_ok=True)
        data.symlink_to(place)
    os.chown(place, owner.pw_uid, owner.pw_gid)
    return place.resolve()


def _postgres_command(home: Path, port: int) -> Sequence[str]:
    options = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "max_connections": "200",
    }
    settings = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
    return [_postgres_program("postgres"), "-D", str((home / "data").resolve()), *settings]


def _postgres_url(home: Path, port: int) -> str:
    return f"postgresql://trimem:{_password(home)}@127.0.0.1:{port}/postgres"


def _postgres_answers(home: Path, port: int) -> bool:
    import asyncio

    import asyncpg

    async def ask() -> bool:
        connection = await asyncpg.connect(_postgres_url(home, port), timeout=5)
        try:
            return await connection.fetchval("SELECT 1") == 1
        finally:
            await connection.close()

    try:
        return asyncio.run(ask())
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return False


# --- Chroma ------------------------------------------------------------------------------------


def _chroma_prepare(home: Path) -> None:
    try:
        import chromadb_rust_bindings  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise Missing("chromadb is not in this environment (pip install chromadb)") from error


def _chroma_command(home: Path, port: int) -> Sequence[str]:
    where = ["--host", "127.0.0.1", "--port", str(port), "--path", str(home / "data")]
    return [sys.executable, "-P", "-c", CHROMA_PROGRAM, "run", *where]


def _chroma_url(home: Path, port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _chroma_answers(home: Path, port: int) -> bool:
    try:
        with urllib.request.urlopen(_chroma_url(home, port) + "/api/v2/heartbeat", timeout=5) as a:
            return bool(a.status == 200)
    except (OSError, urllib.error.URLError):
        return False


# --- Neo4j -------------------------------------------------------------------------------------

_POM = Path(__file__).resolve().parent / "neo4j" / "pom.xml"
_HEAP = ("-Xms256m", "-Xmx768m")
_OPEN = tuple(
    f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.nio", "java.io", "sun.nio.ch")
)


def _neo4j_prepare(home: Path) -> None:
    java = _program("java", "default-jre-headless")
    jars = _neo4j_jars(home)
    for part in ("conf", "data", "logs", "plugins", "import", "run"):
        (home / part).mkdir(exist_ok=True)
    if not (home / "prepared").exists():
        (home / "conf" / "neo4j.conf").write_text("dbms.usage_report.enabled=false\n", "utf-8")
        admin = [java, "-cp", f"{jars}/*", "org.neo4j.cli.AdminTool"]
        subprocess.run(
            [*admin, "dbms", "set-initial-password", _password(home)],
            cwd=home,
            env=_env(home),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        (home / "prepared").touch()


def _neo4j_jars(home: Path) -> Path:
    """The folder with the jars that the pom names; fetched when the pom has changed."""
    jars = home / "lib"
    stamp = jars / hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]
    if not stamp.exists():
        maven = _program("mvn", "maven")
        shutil.rmtree(jars, ignore_errors=True)
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        print("fetching Neo4j through Maven, about a minute the first time …", file=sys.stderr)
        subprocess.run(
            [
                maven,
                "-q",
                "-B",
                "-Dstyle.color=never",
                "-f",
                str(_POM),
                *copy,
                f"-DoutputDirectory={jars}",
            ],
            cwd=home,
            stdout=sys.stderr,
            check=True,
        )
        stamp.touch()
    return jars


def _neo4j_command(home: Path, port: int) -> Sequence[str]:
    settings = {
        "server.default_listen_address": "127.0.0.1",
        "server.bolt.listen_address": f"127.0.0.1:{port}",
        "server.bolt.advertised_address": f"127.0.0.1:{port}",
        "server.http.enabled": "false",
        "server.https.enabled": "false",
        "dbms.usage_report.enabled": "false",
        "server.memory.heap.initial_size": "256m",
        "server.memory.heap.max_size": "768m",
        "server.memory.pagecache.size": "64m",
        "db.tx_log.preallocate": "false",
    }
    conf = home / "conf" / "neo4j.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")
    java = _program("java", "default-jre-headless")
    machine = [java, *_HEAP, "-XX:+UseG1GC", *_OPEN, "--enable-native-access=ALL-UNNAMED"]
    entry = ["-cp", f"{home / 'lib'}/*", "org.neo4j.server.CommunityEntryPoint"]
    return [*machine, *entry, f"--home-dir={home}", f"--config-dir={home / 'conf'}"]


def _neo4j_url(home: Path, port: int) -> str:
    return f"bolt://neo4j:{_password(home)}@127.0.0.1:{port}"


def _neo4j_answers(home: Path, port: int) -> bool:
    import neo4j
    from neo4j.exceptions import DriverError, Neo4jError

    address, login = f"bolt://127.0.0.1:{port}", ("neo4j", _password(home))
    try:
        with (
            neo4j.GraphDatabase.driver(address, auth=login, connection_timeout=5) as driver,
            driver.session() as session,
        ):
            return session.run("RETURN 1 AS one").single(strict=True)["one"] == 1
    except (DriverError, Neo4jError, OSError):
        return False


SERVERS = {
    server.name: server
    for server in (
        Server("redis", _redis_prepare, _redis_command, _redis_url, _redis_answers),
        Server(
            "postgres",
            _postgres_prepare,
            _postgres_command,
            _postgres_url,
            _postgres_answers,
            user=_postgres_user,
            stop_signal=signal.SIGINT,  # SIGTERM would wait for every client to leave
        ),
        Server("chroma", _chroma_prepare, _chroma_command, _chroma_url, _chroma_answers),
        Server("neo4j", _neo4j_prepare, _neo4j_command, _neo4j_url, _neo4j_answers),
    )
}

COMMANDS = {"up": up, "status": status, "down": down, "wipe": wipe}


if __name__ == "__main__":
    sys.exit(main())
