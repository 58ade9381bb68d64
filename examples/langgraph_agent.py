"""A LangGraph agent: its context comes from the memory, its turns go there, and it has a store.

    pip install 'trimem[langgraph]'
    python examples/langgraph_agent.py

No key and no network: LangChain's fake model stands in for a real one. The memory is the one that
`Memory.open()` finds, or the one in a folder that is given as the first argument.
"""
# ruff: noqa: T201 (an example shows what it does)

import asyncio
import sys
from typing import Annotated, TypedDict

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.store.base import BaseStore

from memory import Memory
from memory.integrations.langgraph import TrimemStore, context_node, record_node


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    context: list[AnyMessage]


MODEL = FakeMessagesListChatModel(
    responses=[AIMessage("A fine name for a canary."), AIMessage("Your canary is Pippin.")]
)


async def answer(state: State, *, store: BaseStore) -> dict[str, list[AnyMessage]]:
    for message in state["context"]:
        print(f"  {message.type}: {message.content}")
    reply = await MODEL.ainvoke(state["context"])
    await store.aput(("answers",), str(reply.content), {"text": reply.content})
    return {"messages": [reply]}


async def main(folder: str | None = None) -> None:
    async with Memory.open(folder) as memory:
        graph = StateGraph(State)
        graph.add_node("context", context_node(memory, system="You are kind.", budget=2_000))
        graph.add_node("model", answer)
        graph.add_node("record", record_node(memory))
        graph.add_edge(START, "context")
        graph.add_edge("context", "model")
        graph.add_edge("model", "record")
        graph.add_edge("record", END)
        store = TrimemStore(memory.user("ada"), index={"fields": ["text"]})
        agent = graph.compile(store=store)
        for day, question in (
            ("monday", "My canary is called Pippin."),
            ("tuesday", "What is my canary called?"),
        ):
            print(day)
            config = {"configurable": {"user_id": "ada", "thread_id": day}}
            result = await agent.ainvoke({"messages": [HumanMessage(question)]}, config)
            print(f"  -> {result['messages'][-1].content}")
        for item in await store.asearch(("answers",), query="the name of the canary"):
            print(f"{item.score:.2f} {item.value['text']}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
