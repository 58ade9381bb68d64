"""Short-lived Redis servers in the modes that production uses: TLS with an ACL user, Sentinel and
Cluster. All from the one `redis-server` binary, on free loopback ports, in a folder of the test.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis

from memory.sidecar import Sidecar, free_port, wait_until

PASSWORD = "correct-horse"
_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
_START_LIMIT = 20.0
_SLOTS = ((0, 5460), (5461, 10922), (10923, 16383))


def missing() -> str | None:
    """Why these servers cannot be started here; None when they can."""
    absent = [name for name in ("redis-server", "openssl") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not installed" if absent else None


@contextmanager
def tls(folder: Path) -> Iterator[str]:
    """TLS only, and only the ACL user `agent` may log in. Gives the rediss:// URL."""
    key, certificate = _certificate(folder)
    options = [
        *("--port", "0"),
        *("--tls-cert-file", str(certificate)),
        *("--tls-key-file", str(key)),
        *("--tls-ca-cert-file", str(certificate)),
        *("--tls-auth-clients", "no"),
        *("--user", "default", "off"),
        *("--user", "agent", "on", f">{PASSWORD}", "~*", "&*", "+@all"),
    ]
    with _redis(folder, "tls", options, port_option="--tls-port") as port:
        url = f"rediss://agent:{PASSWORD}@127.0.0.1:{port}/0?ssl_ca_certs={certificate}"
        _wait_for(url)
        yield url


@contextmanager
def sentinel(folder: Path) -> Iterator[str]:
    """A primary, a replica and a sentinel. Gives redis+sentinel://…/primary."""
    login = ["--requirepass", PASSWORD, "--masterauth", PASSWORD]
    with ExitStack() as stack:
        primary = stack.enter_context(_redis(folder, "primary", login))
        follow = [*login, "--replicaof", "127.0.0.1", str(primary)]
        replica = stack.enter_context(_redis(folder, "replica", follow))
        for port in (primary, replica):
            _wait_for(f"redis://:{PASSWORD}@127.0.0.1:{port}/0")
        conf = folder / "sentinel.conf"
        conf.write_text(
            f"sentinel monitor primary 127.0.0.1 {primary} 1\n"
            f"sentinel auth-pass primary {PASSWORD}\n"
            "sentinel down-after-milliseconds primary 1000\n"
        )
        watch = stack.enter_context(_redis(folder, "sentinel", ["--sentinel"], conf=conf))
        with redis.Redis(port=watch) as client:
            _wait(lambda: len(_replicas(client)) == 1, "the sentinel")
        yield f"redis+sentinel://:{PASSWORD}@127.0.0.1:{watch}/primary"


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Three primaries that share the slots. Gives redis+cluster://…"""
    with ExitStack() as stack:
        ports = []
        for number in range(3):
            bus = free_port()
            options = ["--cluster-enabled", "yes", "--cluster-port", str(bus)]
            options += ["--requirepass", PASSWORD, "--masterauth", PASSWORD]
            ports.append((stack.enter_context(_redis(folder, f"node{number}", options)), bus))
        nodes = [
            stack.enter_context(redis.Redis(port=port, password=PASSWORD)) for port, _ in ports
        ]
        for (port, _), node, (first, last) in zip(ports, nodes, _SLOTS, strict=True):
            _wait_for(f"redis://:{PASSWORD}@127.0.0.1:{port}/0")
            node.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
        for port, bus in ports[1:]:
            nodes[0].execute_command("CLUSTER MEET", "127.0.0.1", port, bus)
        for node in nodes:
            _wait(lambda node=node: _whole(node), "the cluster")
        addresses = ",".join(f"127.0.0.1:{port}" for port, _ in ports)
        yield f"redis+cluster://:{PASSWORD}@{addresses}"


def _replicas(sentinel: redis.Redis) -> list[object]:
    return list(sentinel.execute_command("SENTINEL", "REPLICAS", "primary"))


def _whole(node: redis.Redis) -> bool:
    state = node.execute_command("CLUSTER INFO")
    return state["cluster_state"] == "ok" and state["cluster_known_nodes"] == "3"


@contextmanager
def _redis(
    folder: Path,
    name: str,
    options: Sequence[str],
    *,
    port_option: str = "--port",
    conf: Path | None = None,
) -> Iterator[int]:
    home = folder / name
    home.mkdir()
    port = free_port()
    server = Sidecar(folder, name)
    first = [] if conf is None else [str(conf)]
    command = ["redis-server", *first, port_option, str(port), "--bind", "127.0.0.1", *options]
    started = server.start(command, cwd=home, env=_ENV, port=port)
    try:
        yield port
    finally:
        server.stop(grace=5.0)
        started.wait()


def _wait_for(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        _wait(lambda: bool(client.ping()), url)


def _wait(condition: Callable[[], bool], what: str) -> None:
    def holds() -> bool:
        try:
            return condition()
        except redis.RedisError:
            return False

    assert wait_until(holds, _START_LIMIT), f"{what} did not come up"


def _certificate(folder: Path) -> tuple[Path, Path]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return key, certificate
