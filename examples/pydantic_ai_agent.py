"""A pydantic-ai agent whose every request carries a context within a budget.

    pip install 'trimem[pydantic-ai]'
    python examples/pydantic_ai_agent.py

No key and no network: pydantic-ai's function model stands in for a real one. The memory is the one
that `Memory.open()` finds, or the one in a folder that is given as the first argument.
"""
# ruff: noqa: T201 (an example shows what it does)

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from memory import Memory
from memory.integrations.pydantic_ai import History, MemoryContext


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Shows what it is asked."""
    for message in messages:
        for part in message.parts:
            print(f"  {part.part_kind}: {getattr(part, 'content', '')}")
    return ModelResponse(parts=[TextPart(f"I was sent {len(messages)} messages.")])


async def main(folder: str | None = None) -> None:
    async with Memory.open(folder) as memory:
        for day, question in (
            ("monday", "My canary is called Pippin."),
            ("monday", "Are you there?"),
            ("tuesday", "What is my canary called?"),
        ):
            history = History(day, memory.user("ada"))
            agent = Agent(
                FunctionModel(answer),
                instructions="Be kind.",
                capabilities=[MemoryContext(history, budget=2_000)],
            )
            print(day)
            print(f"  -> {(await agent.run(question)).output}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
