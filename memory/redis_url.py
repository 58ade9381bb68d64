"""From a URL to a client for the Redis behind it. The one place that knows the kinds there are.

    redis://user:password@host:6379/0                 one server
    rediss://…?ssl_ca_certs=/path/to/ca.pem           the same over TLS
    unix:///path/to/socket                            a socket of this machine
    redis+sentinel://:password@host:26379,host/name   the primary called `name`, found by Sentinel
    redis+cluster://:password@host:6379,host:6380     a cluster, found by any of its nodes
    rediss+sentinel:// and rediss+cluster://          these over TLS

`user` is an ACL user. What may follow `?` is what redis-py takes in a URL (`max_connections`,
`ssl_ca_certs`, …); a Sentinel with a login of its own has it in `sentinel_username` and
`sentinel_password`.

A command is tried again when a connection turns out to be closed (an idle one that a proxy cut, a
server that was restarted), but not when time ran out, so that nothing waits much longer than the
timeout. Trying again is safe because every command that is sent is idempotent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisClusterException, RedisError

from memory.errors import ConfigurationError

Client = Redis | RedisCluster

SCHEMES = (
    "redis",
    "rediss",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
)
_CONNECTIONS = 32
_ATTEMPTS = 3
_SENTINEL_PORT = 26379


@asynccontextmanager
async def open_redis(url: str, *, timeout: timedelta) -> AsyncIterator[Client]:
    """A client for this URL, closed afterwards. Nothing is sent before the first command.

    `timeout` bounds connecting, waiting for an answer, and waiting for a free connection, each.
    Raises ConfigurationError for a URL that cannot be one; its message never holds the password.
    """
    async with AsyncExitStack() as stack:
        try:
            client = _client(url, timeout.total_seconds(), stack)
        except (ValueError, TypeError, RedisError, RedisClusterException) as error:
            raise ConfigurationError(f"redis URL: {error}") from None
        yield client


def _client(url: str, timeout: float, stack: AsyncExitStack) -> Client:
    scheme, _, kind = urlsplit(url).scheme.partition("+")
    if urlsplit(url).scheme not in SCHEMES:
        raise ValueError(f"{urlsplit(url).scheme}:// is none of {', '.join(SCHEMES)}")
    options: dict[str, Any] = {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "protocol": 2,
        "retry": _retry(),
    }
    if kind == "sentinel":
        return _behind_sentinel(url, scheme, options, stack)
    if kind == "cluster":
        return _cluster(url, scheme, options, stack)
    pool = BlockingConnectionPool.from_url(
        url, **{"max_connections": _CONNECTIONS, "timeout": timeout} | options
    )
    _require_known_options(pool)
    client = Redis.from_pool(pool)
    stack.push_async_callback(client.aclose)
    return client


def _retry() -> Retry:
    return Retry(
        ExponentialBackoff(cap=0.2, base=0.01), _ATTEMPTS, supported_errors=(RedisConnectionError,)
    )


def _behind_sentinel(
    url: str, scheme: str, options: dict[str, Any], stack: AsyncExitStack
) -> Client:
    given, hosts, service = _taken_apart(url, scheme, _SENTINEL_PORT)
    if not service:
        raise ValueError("redis+sentinel:// needs the name of the service after the hosts")
    login = {
        name.removeprefix("sentinel_"): given.pop(name)
        for name in ("sentinel_username", "sentinel_password")
        if name in given
    }
    tls = {name: value for name, value in given.items() if name.startswith("ssl")}
    tls |= {"ssl": True} if scheme == "rediss" else {}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        hosts, sentinel_kwargs=options | tls | login, **options | given | tls
    )
    stack.push_async_callback(sentinel.aclose)
    client: Redis = sentinel.master_for(service)
    _require_known_options(client.connection_pool)
    stack.push_async_callback(client.aclose)
    return client


def _cluster(url: str, scheme: str, options: dict[str, Any], stack: AsyncExitStack) -> Client:
    given, hosts, _ = _taken_apart(url, scheme, 6379)
    nodes = [ClusterNode(host, port) for host, port in hosts]
    client = RedisCluster(startup_nodes=nodes, ssl=scheme == "rediss", **options | given)
    stack.push_async_callback(client.aclose)
    return client


def _taken_apart(
    url: str, scheme: str, default_port: int
) -> tuple[dict[str, Any], list[tuple[str, int]], str]:
    """The options that the URL gives, its hosts with their ports, and its path."""
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    each = [urlsplit(f"//{host}") for host in hosts.split(",")]
    addresses = [(host.hostname or "localhost", host.port or default_port) for host in each]
    # parse_url wants one host; it only has to see login and query here.
    given: dict[str, Any] = dict(
        parse_url(urlunsplit((scheme, f"{login}{at}{addresses[0][0]}", "", parts.query, "")))
    )
    for name in ("host", "port", "connection_class"):
        given.pop(name, None)
    return given, addresses, unquote(parts.path.strip("/"))


def _require_known_options(pool: ConnectionPool) -> None:
    """The driver would find an option that does not exist only when it connects."""
    pool.make_connection()  # type: ignore[no-untyped-call]


def where(client: Client) -> str:
    """Where a client's server is, for people; without any login."""
    if isinstance(client, RedisCluster):
        nodes = client.get_nodes() or client.nodes_manager.startup_nodes.values()
        return ", ".join(sorted(node.name for node in nodes))
    pool = client.connection_pool
    known = pool.connection_kwargs
    if "path" in known:
        return f"unix://{known['path']}"
    service = getattr(pool, "service_name", None)
    if service is not None:
        return f"{service}, by Sentinel"
    return f"{known.get('host', 'localhost')}:{known.get('port', 6379)}"
