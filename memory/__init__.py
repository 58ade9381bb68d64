"""trimem: a three-tier memory for LLM agents.

    from memory import Memory

    async with Memory.open() as memory:
        session = memory.user("ada").session("monday")
        context = await session.build_context("Where shall we eat tonight?", budget=2_000)
        await session.record(user="Where shall we eat tonight?", assistant=answer)

Values are in `memory.models`, errors in `memory.errors`, settings in `memory.settings`.
"""

from memory.budget import ContextPolicy
from memory.errors import AgentMemoryError
from memory.memory import Memory, Session, UserMemory
from memory.models import Context, Fact, Message, Recall, Scope
from memory.recall import RecallPolicy
from memory.settings import Settings

__all__ = [
    "AgentMemoryError",
    "Context",
    "ContextPolicy",
    "Fact",
    "Memory",
    "Message",
    "Recall",
    "RecallPolicy",
    "Scope",
    "Session",
    "Settings",
    "UserMemory",
]
