"""Importers: a file that another program wrote, as conversations that `record` can take.

    reading    bytes to JSON: one document, or one value a line; a bad line costs only itself
    shapes     which entries are conversations, which are messages; what nothing knows is refused
    chat       one entry of a chat to messages: OpenAI, Anthropic, Claude, plain roles
    langchain  LangChain's serialised messages to entries of a chat
    chatgpt    ChatGPT's tree of messages to the branch that was on the screen
    claude     Claude's export to entries of a chat
    drafts     what all of them share: times, pairs of calls and results, keys
    export     the way back: histories as OpenAI or Anthropic messages
    importing  a file into a memory, with progress; safe to kill and to run again

All but `importing` are pure: values in, values out, and nothing in a file is ever instantiated.
`importing` knows the front door and is imported by its own name.
"""

from __future__ import annotations

from memory.importers.export import to_anthropic, to_openai
from memory.importers.shapes import Source, read
from memory.importers.values import Conversation, ImportReport, Problem

__all__ = [
    "Conversation",
    "ImportReport",
    "Problem",
    "Source",
    "read",
    "to_anthropic",
    "to_openai",
]
