"""The product's own embedder behind OpenAI's `/v1/embeddings`, for peers in other processes.

A peer cannot say whether a text is a question; whoever drives it sets `role` before it is asked.
Only on the loopback, on a port that the system chooses. Any other request is 404.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from memory.embedding import Embedder
from memory.embedding.base import Role
from memory.errors import EmbeddingFailed


class Endpoint:
    """Where it answers, and what the texts are for that come next."""

    def __init__(self, embedder: Embedder, loop: asyncio.AbstractEventLoop) -> None:
        self._embedder, self._loop = embedder, loop
        self.dims = embedder.dims
        self.url = ""
        self.role: Role = "document"

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Called from the server's threads."""
        work = self._embedder.embed(texts, role=self.role)
        rows = asyncio.run_coroutine_threadsafe(work, self._loop).result()
        return [list(map(float, row)) for row in rows]


@asynccontextmanager
async def serving(embedder: Embedder) -> AsyncIterator[Endpoint]:
    endpoint = Endpoint(embedder, asyncio.get_running_loop())
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(endpoint))
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            if not self.path.endswith("/embeddings"):
                self._answer(404, {"error": {"message": f"no {self.path} here"}})
                return
            given = body["input"]
            try:
                rows = endpoint.embed([given] if isinstance(given, str) else given)
            except EmbeddingFailed as error:
                self._answer(500, {"error": {"message": str(error)}})
                return
            self._answer(
                200,
                {
                    "object": "list",
                    "model": body.get("model", ""),
                    "data": [
                        {"object": "embedding", "index": index, "embedding": row}
                        for index, row in enumerate(rows)
                    ],
                    "usage": {"prompt_tokens": 0, "total_tokens": 0},
                },
            )

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: progress is on the screen."""

    return Handler
