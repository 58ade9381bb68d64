"""Texts to vectors: one protocol, several embedders, chosen by the settings."""

from memory.embedding.base import Embedder, alike, usable
from memory.embedding.open import open_embedder

__all__ = ["Embedder", "alike", "open_embedder", "usable"]
