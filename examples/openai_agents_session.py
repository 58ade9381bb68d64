"""An agent of the OpenAI Agents SDK that remembers, run twice as two processes would.

    pip install 'trimem[openai-agents]'
    python examples/openai_agents_session.py

No key and no network: the SDK's scripted model stands in for a real one. The memory is the one
that `Memory.open()` finds (TRIMEM_HOME, or the user's data folder), or the one in a folder that is
given as the first argument.
"""
# ruff: noqa: T201 (an example shows what it does)

import asyncio
import sys

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from memory import Memory
from memory.integrations.openai_agents import TrimemSession


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


MODEL = ScriptedModel(
    [
        [function_call("weather", {"city": "Oslo"}, call_id="c1")],
        [assistant_message("It rains in Oslo.")],
        [assistant_message("You asked about Oslo.")],
    ]
)
AGENT = Agent(name="guide", model=MODEL, tools=[weather])


async def ask(question: str, folder: str | None) -> str:
    async with Memory.open(folder) as memory:
        session = TrimemSession("monday", memory.user("ada"))
        result = await Runner.run(AGENT, question, session=session)
        print(f"{len(await session.get_items())} items are kept")
        return str(result.final_output)


async def main(folder: str | None = None) -> None:
    set_tracing_disabled(True)
    print(await ask("What is the weather in Oslo?", folder))
    print(await ask("What did I ask about?", folder))
    print(f"the second run was sent {len(MODEL.calls[-1].input)} items")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
