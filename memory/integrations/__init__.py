"""The memory behind other frameworks' own interfaces. Each module needs its extra.

    langchain       TrimemChatMessageHistory: a BaseChatMessageHistory
    langgraph       TrimemStore: a BaseStore; nodes that build the context and record the turn
    openai_agents   TrimemSession: a Session of the Agents SDK
    pydantic_ai     History, and MemoryContext: a capability that builds each request's context

Nothing is imported here, so that `import memory.integrations` needs none of them.
"""
