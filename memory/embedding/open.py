"""The embedder that the settings name.

default                        what comes with the install
sentence-transformers:NAME     a folder, or a model's name on a hub
openai:MODEL                   any endpoint that answers like OpenAI's /embeddings
"""

from __future__ import annotations

import asyncio
import os
from functools import partial

from memory.embedding.base import Embedder, LocalEmbedder
from memory.embedding.default import Routed
from memory.embedding.openai import Endpoint, open_openai
from memory.embedding.sentence_transformers import SentenceTransformersModel
from memory.errors import ConfigurationError
from memory.settings import Settings

FEW = 8
"""Documents that are embedded in one go: a tenth of a second, after which others get their turn."""
THREADS = min(2, os.cpu_count() or 1)
"""Threads that the default embedder computes documents in, beside the one for queries."""


async def open_embedder(settings: Settings) -> Embedder:
    """The embedder, ready to use; whoever opens it closes it.

    The default one loads in the background and is returned at once. Raises ConfigurationError when
    there is none of that name or something it needs is not installed, and EmbeddingFailed when it
    does not answer.
    """
    kind, _, name = settings.embedder.partition(":")
    if kind == "default" and not name:
        embedder = LocalEmbedder(Routed(), at_a_time=FEW, reentrant=True, threads=THREADS)
        embedder.warm()
        return embedder
    if kind == "sentence-transformers" and name:
        model = await asyncio.to_thread(
            partial(
                SentenceTransformersModel,
                name,
                query_prefix=settings.embedder_query_prefix,
                document_prefix=settings.embedder_document_prefix,
            )
        )
        return LocalEmbedder(model, at_a_time=FEW, reentrant=False)
    if kind == "openai" and name:
        return await open_openai(
            Endpoint(
                url=settings.embedder_url,
                model=name,
                key=settings.embedder_api_key,
                dims=settings.embedder_dims,
                query_prefix=settings.embedder_query_prefix,
                document_prefix=settings.embedder_document_prefix,
                timeout=settings.timeout,
            )
        )
    raise ConfigurationError(
        f"embedder {settings.embedder!r}: it is 'default', 'sentence-transformers:NAME' "
        "or 'openai:MODEL'"
    )
