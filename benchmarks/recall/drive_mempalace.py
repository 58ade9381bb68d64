"""Drives MemPalace (mempalace) for `peers`: a drawer a turn, a wing a user, then its own search.

Run by the Python of MemPalace's own environment, of which this imports mempalace alone. Its search
is asked for candidates of both kinds, by meaning and by words: it can, and by default does not.
"""

from __future__ import annotations

import os
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from answering import serve  # beside this file, which is run as a script


class Driver:
    def open(self, folder: str, endpoint: str, dims: int) -> dict[str, Any]:
        os.environ |= {
            "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
            "MEMPALACE_EMBEDDING_API_URL": endpoint,
            "MEMPALACE_EMBEDDING_API_MODEL": "local",
        }
        from mempalace.palace import get_collection  # type: ignore[import-not-found]
        from mempalace.searcher import search_memories  # type: ignore[import-not-found]

        self._search = search_memories
        self._palace = str(Path(folder) / "palace")
        self._drawers = get_collection(self._palace)
        self._turn: dict[str, str] = {}
        how = "Chroma, candidate_strategy=union"
        return {"version": version("mempalace"), "how": how}

    def learn(self, user: str, turns: list[dict[str, Any]]) -> dict[str, Any]:
        names = [f"{_short(user)}-{_short(turn['id'])}" for turn in turns]
        self._turn |= {name: turn["id"] for name, turn in zip(names, turns, strict=True)}
        self._drawers.upsert(
            ids=names,
            documents=[turn["text"] for turn in turns],
            metadatas=[
                {
                    "wing": _short(user),
                    "room": "conversation",
                    "source_file": name,
                    "chunk_index": 0,
                    "added_by": turn["name"] or turn["role"],
                    "filed_at": turn["time"] or "",
                }
                for name, turn in zip(names, turns, strict=True)
            ],
        )
        return {}

    def search(self, user: str, query: str, k: int) -> dict[str, Any]:
        found = self._search(
            query, self._palace, wing=_short(user), n_results=k, candidate_strategy="union"
        )
        if "error" in found:
            raise RuntimeError(found["error"])
        return {"turns": [self._turn[hit["source_file"]] for hit in found["results"]]}


def _short(name: str) -> str:
    """A name that is also a file's and a wing's."""
    return sha256(name.encode()).hexdigest()[:16]


serve(Driver())
