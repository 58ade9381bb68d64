"""Language models: optional, asked only by background work and nightly jobs."""

from memory.llm.base import Answered, LanguageModel, Spend, Usage

__all__ = ["Answered", "LanguageModel", "Spend", "Usage"]
