"""The embedder that the settings name.

default                        what comes with the install
sentence-transformers:NAME     a folder, or a model's name on a hub
openai:MODEL                   any endpoint that answers like OpenAI's /embeddings
"""

from __future__ import annotations

from memory.embedding.base import Embedder, LocalEmbedder
from memory.embedding.default import Routed
from memory.errors import ConfigurationError
from memory.settings import Settings

FEW = 8
"""Documents that are embedded in one go: a tenth of a second, after which others get their turn."""


async def open_embedder(settings: Settings) -> Embedder:
    """The embedder, ready to use; whoever opens it closes it.

    The default one loads in the background and is returned at once. Raises ConfigurationError when
    there is none of that name or something it needs is not installed, and EmbeddingFailed when it
    does not answer.
    """
    kind, _, name = settings.embedder.partition(":")
    if kind == "default" and not name:
        embedder = LocalEmbedder(Routed(), at_a_time=FEW, reentrant=True)
        embedder.warm()
        return embedder
    raise ConfigurationError(
        f"embedder {settings.embedder!r}: it is 'default', 'sentence-transformers:NAME' "
        "or 'openai:MODEL'"
    )
