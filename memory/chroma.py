"""Chroma over its HTTP interface (version 2), as much of it as an index of vectors needs.

A collection holds ids, vectors and, in the field `user`, whose they are: nothing else. All of it
can be made again from the journal. The chromadb package is the server; its client is not used,
because importing it takes longer than opening all else (docs/decisions/0013-chroma-client.md).

Collections are named here; the server's ids for them are looked up once and again when the server
no longer knows one. Every request can be sent twice without harm, so one that broke with its
connection (the server was restarted) is sent once more.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

import aiohttp
import numpy as np
from numpy.typing import NDArray
from yarl import URL

from memory.errors import ConfigurationError, TierUnavailable

USER = "user"
"""The one metadata field."""
BATCH = 1_000
"""Records sent in one request. The server takes no more than 5,461."""
HNSW = {
    "space": "cosine",
    "ef_construction": 200,
    "ef_search": 400,
    "max_neighbors": 32,
    "sync_threshold": 100,
    "batch_size": 50,
}
"""How a collection's index is made: docs/decisions/0009-vector-layout.md."""

CONNECTIONS = 32
"""The most that are open to the server at once."""
OK, REDIRECTED, NOT_FOUND, FAILED = 200, 300, 404, 500

_PLACES = 5
"""Decimals of a similarity: the server's own arithmetic differs in the seventh from call to call,
so that equals would come in another order each time."""


class Record(NamedTuple):
    """A vector of unit length under its id, and whose it is."""

    id: str
    user: str
    vector: NDArray[np.float32]


class Neighbour(NamedTuple):
    """A record near to a vector; `similarity` is the cosine, in [-1, 1]."""

    id: str
    similarity: float


@asynccontextmanager
async def open_chroma(url: str, *, timeout: timedelta) -> AsyncIterator[Chroma]:
    """The server at http:// or https://HOST[:PORT]; `user:password@` is sent as Basic.

    `?tenant=…&database=…` choose others than Chroma's defaults; they must exist. Nothing is
    connected to before the first call. Raises ConfigurationError for another URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("a Chroma URL is http://HOST:PORT or https://HOST:PORT")
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    headers = {"content-type": "application/json"}
    if parts.username is not None:
        headers["authorization"] = aiohttp.encode_basic_auth(
            unquote(parts.username), unquote(parts.password or "")
        )
    async with aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=60),
        timeout=aiohttp.ClientTimeout(total=timeout.total_seconds()),
    ) as client:
        yield Chroma(
            client,
            where=where,
            base=f"{where}{parts.path.rstrip('/')}/api/v2",
            tenant=options.get("tenant", "default_tenant"),
            database=options.get("database", "default_database"),
        )


class Chroma:
    """Collections of vectors on one server, by name. Raises TierUnavailable("episodic", …)."""

    def __init__(
        self, client: aiohttp.ClientSession, *, where: str, base: str, tenant: str, database: str
    ) -> None:
        self.where = where
        self._client = client
        self._base = base
        self._root = f"/tenants/{quote(tenant, safe='')}/databases/{quote(database, safe='')}"
        self._ids: dict[str, str] = {}

    async def version(self) -> str:
        """The version that the server says it has."""
        return str(await self._send("GET", "/version"))

    async def query(
        self, collection: str, vector: NDArray[np.float32], k: int, *, user: str | None
    ) -> list[Neighbour] | None:
        """The nearest `k` records, of `user` alone when given; None without such a collection.

        There may be fewer than `k`. The nearest come first, ties by id.
        """
        found = await self._in(
            collection,
            "query",
            {
                "query_embeddings": [_short(vector)],
                "n_results": k,
                "where": {USER: user} if user is not None else None,
                "include": ["distances"],
            },
        )
        if found is None:
            return None
        neighbours = [
            Neighbour(key, min(1.0, max(-1.0, round(1.0 - distance, _PLACES))))
            for key, distance in zip(found["ids"][0], found["distances"][0], strict=True)
        ]
        return sorted(neighbours, key=lambda one: (-one.similarity, one.id))

    async def upsert(self, collection: str, records: Sequence[Record]) -> None:
        """Puts the records there, in place of those with the same ids; makes the collection."""
        latest = list({record.id: record for record in records}.values())
        for start in range(0, len(latest), BATCH):
            part = latest[start : start + BATCH]
            body = {
                "ids": [record.id for record in part],
                "embeddings": [_base64(record.vector) for record in part],
                "metadatas": [{USER: record.user} for record in part],
            }
            if await self._in(collection, "upsert", body, create=True) is None:
                raise TierUnavailable("episodic", f"collection {collection!r} keeps disappearing")

    async def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Takes records out. Those that are not there change nothing."""
        for start in range(0, len(ids), BATCH):
            await self._in(collection, "delete", {"ids": list(ids[start : start + BATCH])})

    async def delete_user(self, collection: str, user: str) -> None:
        """Takes all records of a user out."""
        await self._in(collection, "delete", {"where": {USER: user}})

    async def count(self, collection: str) -> int | None:
        """How many records there are; None without such a collection."""
        found = await self._in(collection, "count", None)
        return None if found is None else int(found)

    async def records(self, collection: str) -> dict[str, str] | None:
        """The user of every record by its id; None without such a collection."""
        known: dict[str, str] = {}
        while True:
            body = {"limit": BATCH, "offset": len(known), "include": ["metadatas"]}
            found = await self._in(collection, "get", body)
            if found is None:
                return None
            for key, metadata in zip(found["ids"], found["metadatas"], strict=True):
                known[key] = str((metadata or {}).get(USER, ""))
            if len(found["ids"]) < BATCH:
                return known

    async def collections(self, prefix: str) -> list[str]:
        """The names of all collections that begin so, in order."""
        names: list[str] = []
        while True:
            path = f"{self._root}/collections?limit={BATCH}&offset={len(names)}"
            found = await self._send("GET", path)
            names.extend(str(one["name"]) for one in found)
            if len(found) < BATCH:
                return sorted(name for name in names if name.startswith(prefix))

    async def drop(self, collection: str) -> None:
        """Deletes a collection. One that is not there changes nothing."""
        self._ids.pop(collection, None)
        await self._send("DELETE", f"{self._root}/collections/{collection}", missing_is_none=True)

    # --- requests ------------------------------------------------------------------------------

    async def _in(
        self, collection: str, verb: str, body: Mapping[str, Any] | None, *, create: bool = False
    ) -> Any:
        """The answer to a request about a collection; None when there is no such collection.

        A known id may be the one of a collection that was dropped and made again elsewhere, so
        that the name is looked up anew before we believe that it is gone.
        """
        method = "GET" if body is None else "POST"
        for _ in range(2):
            was_known = collection in self._ids
            key = await self._id_of(collection, create=create)
            if key is None:
                return None
            path = f"{self._root}/collections/{key}/{verb}"
            found = await self._send(method, path, body, missing_is_none=True)
            if found is not None or not (was_known or create):
                return found
            self._ids.pop(collection, None)
        return None

    async def _id_of(self, collection: str, *, create: bool) -> str | None:
        if (known := self._ids.get(collection)) is not None:
            return known
        if create:
            body = {"name": collection, "get_or_create": True, "configuration": {"hnsw": HNSW}}
            found = await self._send("POST", f"{self._root}/collections", body)
        else:
            path = f"{self._root}/collections/{collection}"
            found = await self._send("GET", path, missing_is_none=True)
        if found is None:
            return None
        self._ids[collection] = str(found["id"])
        return self._ids[collection]

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        missing_is_none: bool = False,
    ) -> Any:
        url = URL(f"{self._base}{path}", encoded=True)
        content = None if body is None else json.dumps(body).encode()
        try:
            try:
                status, answer = await self._answer(method, url, content)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                status, answer = await self._answer(method, url, content)
            if status >= FAILED and b"finding id" in answer:
                # It found a record that was deleted meanwhile, and looked for it in vain.
                status, answer = await self._answer(method, url, content)
        except TimeoutError as error:
            raise TierUnavailable(
                "episodic", f"Chroma at {self.where}: no answer in time"
            ) from error
        except aiohttp.ClientError as error:
            said = str(error) or type(error).__name__
            raise TierUnavailable("episodic", f"Chroma at {self.where}: {said}") from error
        if status == NOT_FOUND and missing_is_none:
            return None
        if not OK <= status < REDIRECTED:
            raise TierUnavailable(
                "episodic", f"Chroma at {self.where}: {status} {_complaint(answer)}"
            )
        try:
            return json.loads(answer)
        except ValueError as error:
            raise TierUnavailable("episodic", f"{self.where} does not speak Chroma") from error

    async def _answer(self, method: str, url: URL, content: bytes | None) -> tuple[int, bytes]:
        async with self._client.request(method, url, data=content) as answer:
            return answer.status, await answer.read()


def _complaint(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return repr(answer[:200].decode("utf-8", "replace"))


def _short(vector: NDArray[np.float32]) -> list[float]:
    """A vector to search for, in as few digits as its precision needs: half the JSON."""
    wide = vector.astype(np.float64)
    rounded: list[float] = (wide / np.linalg.norm(wide)).round(7).tolist()
    return rounded


def _base64(vector: NDArray[np.float32]) -> str:
    return b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode()
