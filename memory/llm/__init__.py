"""Language models: optional, asked only by background work and nightly jobs."""

from memory.llm.base import Answered, LanguageModel, Spend, Usage
from memory.llm.open import open_llm

__all__ = ["Answered", "LanguageModel", "Spend", "Usage", "open_llm"]
