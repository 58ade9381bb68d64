"""Drives mem0 (mem0ai) for `peers`: one `add` a turn without a language model, then `search`.

Run by the Python of mem0's own environment, of which this imports mem0 alone. Its default store
(Qdrant in a folder) is used, and the search as it is by default.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from answering import serve  # beside this file, which is run as a script

os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(Path.home() / ".mem0")}


class Driver:
    def open(self, folder: str, endpoint: str, dims: int) -> dict[str, Any]:
        from mem0 import Memory  # type: ignore[import-not-found]

        model = {"openai_base_url": endpoint, "api_key": "none"}
        self._memory = Memory.from_config(
            {
                "embedder": {"provider": "openai", "config": {"model": "local", **model}},
                "llm": {"provider": "openai", "config": {"model": "none", **model}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(Path(folder) / "qdrant"),
                        "collection_name": "recall",
                        "embedding_model_dims": dims,
                        "on_disk": True,
                    },
                },
                "history_db_path": str(Path(folder) / "history.db"),
            }
        )
        how = "infer=False (no language model), Qdrant; its keyword arm needs a download: off"
        return {"version": version("mem0ai"), "how": how}

    def learn(self, user: str, turns: list[dict[str, Any]]) -> dict[str, Any]:
        for turn in turns:
            message = {"role": turn["role"], "content": turn["text"]}
            if turn["name"]:
                message["name"] = turn["name"]
            about = {"turn": turn["id"], "said_at": turn["time"]}
            self._memory.add([message], user_id=_one_word(user), metadata=about, infer=False)
        return {}

    def search(self, user: str, query: str, k: int) -> dict[str, Any]:
        found = self._memory.search(query, top_k=k, filters={"user_id": _one_word(user)})
        return {"turns": [each["metadata"]["turn"] for each in found["results"]]}


def _one_word(user: str) -> str:
    """mem0 takes no white space in a user's id."""
    return "_".join(user.split())


serve(Driver())
