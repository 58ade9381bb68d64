"""A LangChain chain whose history is in the memory, without an event loop.

    pip install 'trimem[langchain]'
    python examples/langchain_history.py

No key and no network: LangChain's fake model stands in for a real one. The memory is the one that
`memory.sync.open()` finds, or the one in a folder that is given as the first argument.
"""
# ruff: noqa: T201 (an example shows what it does)

import sys

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from memory import sync
from memory.integrations.langchain import TrimemChatMessageHistory

MODEL = FakeMessagesListChatModel(responses=[AIMessage("Hello Ada."), AIMessage("You are Ada.")])
PROMPT = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])


def main(folder: str | None = None) -> None:
    with sync.open(folder) as memory:
        ada = memory.user("ada")
        chain = RunnableWithMessageHistory(
            PROMPT | MODEL,
            lambda session_id: TrimemChatMessageHistory(session_id, ada),
            input_messages_key="input",
            history_messages_key="history",
        )
        config = {"configurable": {"session_id": "monday"}}
        print(chain.invoke({"input": "I am Ada."}, config).content)
        print(chain.invoke({"input": "Who am I?"}, config).content)
        for message in TrimemChatMessageHistory("monday", ada).messages:
            print(f"{message.type}: {message.content}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
