"""Any sentence-transformers model, from a folder or by its name on a hub.

A folder is all that a machine without a hub needs: nothing is looked up then. What the model
itself says about prompts for queries and documents is followed, unless the settings give prefixes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memory.embedding.base import Role, Vectors
from memory.embedding.script import is_latin
from memory.errors import ConfigurationError, EmbeddingFailed

_DECISIVE = frozenset({".json", ".txt", ".model", ".safetensors", ".bin", ".onnx"})
_SAMPLE = 1 << 20
_READ_WHEN_UNSAID = 512


class SentenceTransformersModel:
    """A Model over the library's own. Loading it takes seconds; do it in a thread.

    Raises ConfigurationError when the library is not installed, EmbeddingFailed when the model
    cannot be loaded.
    """

    def __init__(self, name: str, *, query_prefix: str = "", document_prefix: str = "") -> None:
        self._model = _load(name)
        self._prefixes: dict[Role, str] = {"query": query_prefix, "document": document_prefix}
        self.dims = _dims(self._model)
        self.identity = f"st:{_named(name, document_prefix)}/{self.dims}"

    def longest(self, text: str) -> int:
        """Three Latin letters to a token are on the safe side, and one character of the rest."""
        tokens: int = self._model.max_seq_length or _READ_WHEN_UNSAID
        return max(64, tokens * 3 if is_latin(text) else tokens)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        prefix = self._prefixes[role]
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        vectors: Vectors = encode(
            list(texts),
            **({"prompt": prefix} if prefix else {}),
            batch_size=max(1, len(texts)),
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return vectors.astype(np.float32, copy=False)


def _load(name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer  # an extra, and seconds to import
    except ImportError as error:
        raise ConfigurationError(
            "the embedder 'sentence-transformers' needs its library: "
            f"pip install 'trimem[sentence-transformers]' ({error})"
        ) from error
    try:
        return SentenceTransformer(name, local_files_only=Path(name).is_dir())
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise EmbeddingFailed(f"the model {name!r} cannot be loaded: {error}") from error


def _dims(model: Any) -> int:
    ask = getattr(model, "get_embedding_dimension", None) or (
        model.get_sentence_embedding_dimension  # its name before 6.0
    )
    return int(ask())


def _named(name: str, document_prefix: str) -> str:
    """A hub's name, or a folder's last part with a hash of what decides its vectors.

    A folder may be moved, and another model may be put in its place.
    """
    folder = Path(name)
    parts = []
    if folder.is_dir():
        parts.append(_fingerprint(folder))
        name = folder.resolve().name
    if document_prefix:
        parts.append(hashlib.blake2b(document_prefix.encode(), digest_size=4).hexdigest())
    return "+".join((name, *parts))


def _fingerprint(folder: Path) -> str:
    """Of settings, vocabulary and weights: names, sizes, and the first and last MiB of each."""
    seen = hashlib.blake2b(digest_size=4)
    for path in _decisive(folder):
        size = path.stat().st_size
        seen.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            seen.update(file.read(_SAMPLE))
            file.seek(max(0, size - _SAMPLE))
            seen.update(file.read(_SAMPLE))
    return seen.hexdigest()


def _decisive(folder: Path) -> Iterator[Path]:
    return (
        path for path in sorted(folder.rglob("*")) if path.suffix in _DECISIVE and path.is_file()
    )
