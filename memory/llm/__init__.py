"""Language models: optional, asked only by background work and nightly jobs."""

from memory.llm.base import Answered, LanguageModel, Spend, Usage
from memory.llm.guarded import Guarded
from memory.llm.open import open_llm

__all__ = ["Answered", "Guarded", "LanguageModel", "Spend", "Usage", "open_llm"]
