"""Any cross-encoder of sentence-transformers as a reranker, from a folder or by its name on a hub.

Loading takes seconds and begins in the background; until it is done, questions that come are
answered without it. A thread of its own computes, a few texts at a time, so that a question that is
no longer waited for takes no more of it. Of what is longer than the model reads, it reads the
beginning.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory.errors import ConfigurationError, RerankFailed

FEW: Final = 8
"""Texts that are scored in one go."""


class CrossEncoder:
    """A Reranker over the library's own: the sigmoid of its logit, whatever the model's
    configuration would make of that.

    What cannot be loaded fails when it is asked, every time; it is not tried again. Raises
    ConfigurationError when the library is not installed.
    """

    def __init__(self, name: str) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise ConfigurationError(
                "the reranker 'sentence-transformers' needs its library: "
                "pip install 'trimem[sentence-transformers]'"
            )
        self.identity = Path(name).resolve().name if Path(name).is_dir() else name
        self._name = name
        self._model: Any = None
        self._failed: str | None = None
        self._thread = ThreadPoolExecutor(1, "trimem-rerank")

    def warm(self) -> None:
        """Begins to load the model, and does not wait for it."""
        self._thread.submit(self._load)

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros(len(texts), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # to need less padding
        loop = asyncio.get_running_loop()
        for start in range(0, len(order), FEW):
            part = order[start : start + FEW]
            pairs = [(query, texts[at]) for at in part]
            found[part] = await loop.run_in_executor(self._thread, self._scored, pairs)
        return found

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    # --- in the thread ------------------------------------------------------------------------

    def _scored(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self._load()
        if self._failed is not None:
            raise RerankFailed(self._failed)
        try:
            scores = self._model.predict(
                list(pairs),
                batch_size=len(pairs),
                activation_fn=_sigmoid,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        except Exception as error:
            raise RerankFailed(type(error).__name__) from error
        if scores.shape != (len(pairs),):
            raise RerankFailed(f"it gives {scores.shape[1:]} numbers a text, where one is wanted")
        return np.asarray(scores, dtype=np.float32)

    def _load(self) -> None:
        """Once, with what came of it kept."""
        if self._model is not None or self._failed is not None:
            return
        try:
            import sentence_transformers  # an extra, and seconds to import

            self._model = sentence_transformers.CrossEncoder(
                self._name, local_files_only=Path(self._name).is_dir()
            )
        except Exception as error:  # of the library, its model's code, or the hub
            self._failed = f"it cannot be loaded: {' '.join(str(error).split())[:200]}"


def _sigmoid(logits: Any) -> Any:
    return logits.sigmoid()
