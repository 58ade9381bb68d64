"""Which client a URL makes. That the clients work is in the contract suite."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection

from memory.errors import ConfigurationError
from memory.redis_url import open_redis, where

SOON = timedelta(seconds=3)


@pytest.mark.parametrize(
    ("url", "kind", "known"),
    [
        (
            "redis://agent:p%40ss@db:7000/2",
            Connection,
            {"host": "db", "port": 7000, "db": 2, "username": "agent", "password": "p@ss"},
        ),
        ("rediss://db?ssl_ca_certs=/a/ca.pem", SSLConnection, {"ssl_ca_certs": "/a/ca.pem"}),
        ("unix:///with%20space/socket?db=1", UnixDomainSocketConnection, {"db": 1}),
        ("redis://[::1]:7000", Connection, {"host": "::1", "port": 7000}),
    ],
)
async def test_a_url_of_one_server(url: str, kind: type, known: dict[str, object]):
    async with open_redis(url, timeout=SOON) as client:
        assert isinstance(client, Redis)
        pool = client.connection_pool
        assert pool.connection_class is kind
        assert known.items() <= pool.connection_kwargs.items()
        assert pool.connection_kwargs["socket_timeout"] == 3
        assert pool.max_connections == 32


async def test_the_url_may_say_how_many_connections_there_are():
    async with open_redis("redis://db?max_connections=2", timeout=SOON) as client:
        assert isinstance(client, Redis)
        assert client.connection_pool.max_connections == 2


async def test_a_sentinel_url_has_several_hosts_a_service_and_two_logins():
    url = "rediss+sentinel://agent:pw@one:1,two,[::1]:3/main?sentinel_password=other&db=1"
    async with open_redis(url, timeout=SOON) as client:
        assert isinstance(client, Redis)
        pool = client.connection_pool
        assert pool.service_name == "main"
        assert pool.connection_kwargs["username"] == "agent"
        assert pool.connection_kwargs["db"] == 1
        sentinels = [s.connection_pool for s in pool.sentinel_manager.sentinels]
        assert [(s.connection_kwargs["host"], s.connection_kwargs["port"]) for s in sentinels] == [
            ("one", 1),
            ("two", 26379),
            ("::1", 3),
        ]
        assert {s.connection_kwargs["password"] for s in sentinels} == {"other"}
        assert {s.connection_class for s in sentinels} == {SSLConnection}
        assert where(client) == "main, by Sentinel"


async def test_a_cluster_url_has_several_hosts():
    async with open_redis("redis+cluster://:pw@one:1,two", timeout=SOON) as client:
        assert isinstance(client, RedisCluster)
        assert sorted(client.nodes_manager.startup_nodes) == ["one:1", "two:6379"]
        assert where(client) == "one:1, two:6379"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://agent:hunter2@db", "http://"),
        ("agent:hunter2@db:6379", "is none of"),
        ("redis+sentinel://:hunter2@db:26379", "name of the service"),
        ("redis+sentinel://:hunter2@db:port/main", "redis URL"),
        ("redis://:hunter2@db:port", "redis URL"),
        ("redis://:hunter2@db?socket_timeout=soon", "socket_timeout"),
        ("redis://:hunter2@db?no_such_option=1", "no_such_option"),
        ("redis+sentinel://:hunter2@db/main?no_such_option=1", "no_such_option"),
        ("redis+cluster://:hunter2@db?no_such_option=1", "no_such_option"),
        ("redis+cluster://:hunter2@db?db=3", "redis URL"),
    ],
)
async def test_a_url_that_cannot_be_one_is_refused_without_showing_its_password(
    url: str, problem: str
):
    with pytest.raises(ConfigurationError) as caught:
        async with open_redis(url, timeout=SOON):
            pass
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
