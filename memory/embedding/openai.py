"""Embeddings over HTTP, from OpenAI or anything that answers like its /embeddings.

The key goes into one header and nowhere else: what a server says about a failure is cut short,
kept to one line, and cleared of the key before it becomes part of an error.

Answers that may be different in a moment (429, 5xx, a broken connection) are asked for again,
ATTEMPTS times in all, after as long as the server says or a pause that doubles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
from pydantic import SecretStr

from memory.codec import digest
from memory.embedding.base import Piece, Role, Vectors, few, joined, readable, usable
from memory.embedding.script import is_latin
from memory.errors import ConfigurationError, EmbeddingFailed
from memory.models import Value

ATTEMPTS = 4
FIRST_PAUSE = timedelta(milliseconds=250)
LONGEST_PAUSE = timedelta(seconds=20)
AT_A_TIME = 64
"""Texts in one request."""

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})
_NATIVE_DIMS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


class Endpoint(Value):
    """Where to ask, for which model, and how its texts begin.

    `dims` is the length of the vectors; None asks the endpoint once. Models that were trained with
    instructions want `query_prefix` and `document_prefix` ("query: ", "passage: ").
    """

    url: str
    model: str
    key: SecretStr | None = None
    dims: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    timeout: timedelta


async def open_openai(endpoint: Endpoint) -> OpenAIEmbedder:
    """Ready to embed. Asks the endpoint for the length of its vectors when nobody has said.

    Raises ConfigurationError for a URL that is none, EmbeddingFailed when there is no answer.
    """
    parts = urlsplit(endpoint.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("the embedder's URL must begin with http:// or https://")
    client = httpx.AsyncClient(
        headers={} if endpoint.key is None else _authorisation(endpoint.key),
        timeout=endpoint.timeout.total_seconds(),
    )
    requests = _Requests(endpoint, client)
    try:
        dims = endpoint.dims or _NATIVE_DIMS.get(endpoint.model) or await requests.dims()
    except BaseException:
        await client.aclose()
        raise
    return OpenAIEmbedder(endpoint, dims, requests)


class OpenAIEmbedder:
    """An Embedder over an endpoint. Opened by `open_openai`."""

    def __init__(self, endpoint: Endpoint, dims: int, requests: _Requests) -> None:
        self._endpoint = endpoint
        self._requests = requests
        self.dims = dims
        self.identity = _identity(endpoint, dims)

    async def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        prefix = self._endpoint.query_prefix if role == "query" else self._endpoint.document_prefix
        wanted = readable(texts, role=role, longest=_longest)
        found: list[tuple[Piece, Vectors]] = []
        for part in few(wanted, AT_A_TIME):
            rows = await self._requests.vectors([prefix + piece.text for piece in part])
            found.extend(zip(part, self._checked(rows), strict=True))
        return joined(found, len(texts), self.dims)

    async def close(self) -> None:
        await self._requests.close()

    def _checked(self, rows: list[Any]) -> list[Vectors]:
        """As arrays. A row that is no vector of this length fails all; NaN and zeros pass, for
        `usable` to find them by row."""
        vectors = []
        for row in rows:
            try:
                vector = np.array(row, dtype=np.float32)
            except (TypeError, ValueError):
                vector = np.zeros(0, dtype=np.float32)
            if vector.shape != (self.dims,):
                raise EmbeddingFailed(
                    f"{self.identity} expects vectors of {self.dims} numbers, "
                    f"and the endpoint gave {vector.size}"
                )
            vectors.append(vector)
        return vectors


def _longest(text: str) -> int:
    """Well below the 8,191 tokens of OpenAI's models; smaller servers cut for themselves."""
    return 8_000 if is_latin(text) else 3_000


def _identity(endpoint: Endpoint, dims: int) -> str:
    prefix = endpoint.document_prefix
    marked = f"+{digest(prefix.encode('utf-8', 'surrogatepass'))[:8]}" if prefix else ""
    return f"openai:{endpoint.model}{marked}/{dims}"


def _authorisation(key: SecretStr) -> dict[str, str]:
    secret = key.get_secret_value().strip()
    if not secret.isascii() or not secret.isprintable():
        raise ConfigurationError("the embedder's key has characters that a header cannot hold")
    return {"Authorization": f"Bearer {secret}"}


# --- asking ------------------------------------------------------------------------------------


class _Requests:
    """One endpoint's /embeddings: asked again while that may help."""

    def __init__(self, endpoint: Endpoint, client: httpx.AsyncClient) -> None:
        self._endpoint = endpoint
        self._client = client
        self._url = endpoint.url.rstrip("/") + "/embeddings"

    async def dims(self) -> int:
        (row,) = await self.vectors(["dimensions"])
        problem = usable([row], 1, len(row) if isinstance(row, list) else 0)[0]
        if problem or not row:
            raise EmbeddingFailed(f"{self._name()} answered with {problem or 'an empty vector'}")
        return len(row)

    async def vectors(self, texts: list[str]) -> list[Any]:
        """The endpoint's rows, in the order of the texts, not looked into."""
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "input": texts,
            "encoding_format": "float",
        }
        if self._endpoint.dims and self._endpoint.model.startswith("text-embedding-3"):
            body["dimensions"] = self._endpoint.dims
        return self._rows(await self._post(body), len(texts))

    async def close(self) -> None:
        await self._client.aclose()

    async def _post(self, body: dict[str, Any]) -> httpx.Response:
        pause = FIRST_PAUSE
        for left in reversed(range(ATTEMPTS)):
            try:
                response = await self._client.post(self._url, json=body)
            except httpx.TransportError as error:
                if not left:
                    raise EmbeddingFailed(self._problem(error)) from error
                wanted = pause
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                raise EmbeddingFailed(self._problem(error)) from error
            else:
                if response.is_success:
                    return response
                if response.status_code not in _AGAIN or not left:
                    raise EmbeddingFailed(self._refusal(response))
                wanted = _retry_after(response) or pause
            await asyncio.sleep(min(wanted, LONGEST_PAUSE).total_seconds())
            pause *= 2
        raise AssertionError("unreachable")

    def _rows(self, response: httpx.Response, n: int) -> list[Any]:
        try:
            items = sorted(response.json()["data"], key=lambda item: int(item["index"]))
            rows = [item["embedding"] for item in items]
            in_order = [int(item["index"]) for item in items] == list(range(n))
        except (ValueError, KeyError, TypeError) as error:
            raise EmbeddingFailed(f"{self._name()} gave no embeddings") from error
        if not in_order:
            raise EmbeddingFailed(f"{self._name()} gave {len(rows)} embeddings for {n} texts")
        return rows

    def _refusal(self, response: httpx.Response) -> str:
        said = " ".join(response.text.split())[:300]
        return self._without_key(f"{self._name()} answered {response.status_code}: {said}")

    def _problem(self, error: Exception) -> str:
        return self._without_key(f"{self._name()}: {error or type(error).__name__}")

    def _name(self) -> str:
        """The model and the host; never a URL, which may hold a password."""
        return f"{self._endpoint.model} at {urlsplit(self._url).hostname}"

    def _without_key(self, text: str) -> str:
        secrets = [self._endpoint.key.get_secret_value()] if self._endpoint.key else []
        secrets.append(urlsplit(self._url).password or "")
        for secret in filter(None, secrets):
            text = text.replace(secret, "***")
        return text


def _retry_after(response: httpx.Response) -> timedelta | None:
    try:
        return timedelta(seconds=max(0.0, float(response.headers["retry-after"])))
    except (KeyError, ValueError, OverflowError):
        return None
