"""LangGraph: nodes around a model, and a store of a user's items in the journal.

    graph.add_node("context", context_node(memory, system=SYSTEM, budget=4_000))
    graph.add_node("model", call_model)        # answers state["context"], adds to state["messages"]
    graph.add_node("record", record_node(memory))

The nodes find the conversation in the run's config: `configurable.user_id` is whose memory it is,
`configurable.thread_id` which session.

The store keeps each batch of changes as one note of the kind `langgraph`, and answers from what
they add up to, held in this process and brought up to date before every operation, so that
processes agree. Vectors are in the notes too: opening a store embeds nothing. Of a batch, reads
come before writes, and of two writes to one key the last counts, as in LangGraph's own stores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import JsonValue

try:
    from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
    from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise ImportError(
        "memory.integrations.langgraph needs its extra: pip install 'trimem[langgraph]'"
    ) from error

from memory.codec import content_id, decode, encode
from memory.embedding.base import embedded, usable
from memory.errors import ConfigurationError, InvalidInput
from memory.integrations.conversation import Conversation
from memory.integrations.door import Door, Opened, Owner
from memory.integrations.items import (
    Address,
    Entry,
    Items,
    Vectors,
    as_text,
    begins,
    ends,
    from_text,
    ranked,
)
from memory.integrations.langchain import as_message, conversation_of, model_input, told
from memory.memory import Note, Session
from memory.models import JsonObject, Scope
from memory.text import is_blank, plain

_KIND = "langgraph"
_EVERYTHING = ("$",)
_THREADS = 10_000
"""Threads of which it is remembered how far they were told."""

# --- nodes -------------------------------------------------------------------------------------


def context_node(
    memory: Opened,
    *,
    messages: str = "messages",
    into: str = "context",
    agent: str | None = None,
    **options: Any,
) -> Runnable[Any, Any]:
    """A node that puts what the model should see into `state[into]`, as a list of messages.

    What the state's messages have that was not recorded is recorded first, up to the newest user
    message, which the context is built for; after a tool's result, that too. `options` are those
    of `Session.build_context`: system, budget, reserve, k … As a `pre_model_hook` of a prebuilt
    agent, give `into="llm_input_messages"`. Raises as `build_context` does.
    """
    teller = _Teller(Door(memory), agent)

    async def build(state: Any, config: RunnableConfig) -> dict[str, Any]:
        said = _said(state, messages)
        asking = isinstance(said[-1], HumanMessage)
        session = await teller.tell(config, said[:-1] if asking else said)
        context = await session.build_context(as_message(said[-1]) if asking else None, **options)
        return {into: model_input(context)}

    return _node(teller.door, build, "context")


def record_node(
    memory: Opened, *, messages: str = "messages", agent: str | None = None
) -> Runnable[Any, Any]:
    """A node that remembers the state's messages. Each is recorded once, by its id."""
    teller = _Teller(Door(memory), agent)

    async def record(state: Any, config: RunnableConfig) -> dict[str, Any]:
        await teller.tell(config, _said(state, messages))
        return {}

    return _node(teller.door, record, "record")


class _Teller:
    """Records what a state has and this process has not told: a state keeps all of a thread's
    messages, and a turn adds a few."""

    def __init__(self, door: Door, agent: str | None) -> None:
        self.door = door
        self._agent = agent
        self._newest: dict[tuple[Scope, str], str] = {}

    async def tell(self, config: RunnableConfig, said: Sequence[BaseMessage]) -> Session:
        """The session, after recording the messages. Each is recorded once, by its id."""
        conversation = _conversation(self.door, config, self._agent)
        session = await conversation.session()
        thread = (session.scope, session.name)
        keyed = _keyed(said)
        known = self._newest.get(thread)
        told_up_to = next((n for n, each in enumerate(keyed, 1) if each.id == known), 0)
        await conversation.add(told(keyed[told_up_to:]))
        if keyed:
            if len(self._newest) >= _THREADS:
                self._newest.clear()
            self._newest[thread] = str(keyed[-1].id)
        return session


def _node(door: Door, work: Any, name: str) -> Runnable[Any, Any]:
    def wait(state: Any, config: RunnableConfig) -> Any:
        return door.wait(work(state, config))

    async def do(state: Any, config: RunnableConfig) -> Any:
        return await door.do(work(state, config))

    return RunnableLambda(wait, afunc=do, name=name)


def _conversation(door: Door, config: RunnableConfig, agent: str | None) -> Conversation:
    given = config.get("configurable") or {}
    missing = [name for name in ("user_id", "thread_id") if not given.get(name)]
    if missing:
        raise InvalidInput(
            f"the run's config needs configurable.{' and configurable.'.join(missing)}"
        )
    user = door.memory.user(str(given["user_id"]))
    return conversation_of(user, str(given["thread_id"]), agent=agent)


def _said(state: Any, name: str) -> list[BaseMessage]:
    said = state.get(name) if isinstance(state, Mapping) else getattr(state, name, None)
    if not said:
        raise InvalidInput(f"the state has no messages in {name!r}")
    return list(convert_to_messages(said))


def _keyed(said: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages, each with an id; one without is known by its place and what it says."""
    return [
        message if message.id else message.model_copy(update={"id": _place_id(number, message)})
        for number, message in enumerate(said)
    ]


def _place_id(number: int, message: BaseMessage) -> str:
    return content_id("at", str(number), message.type, repr(message.content))


# --- the store ---------------------------------------------------------------------------------


class TrimemStore(BaseStore):
    """A BaseStore whose items are one user's, durable in the journal.

    Values are JSON objects; secrets in them are masked. Searching by meaning uses the memory's own
    embedder: `index` may name `fields` (by default the whole value) and `dims`, which must be the
    embedder's; `index=False` makes a store that cannot. Items do not expire.

    Everything that this user's stores hold is kept in memory while it is open, and every change
    ever made stays in the journal. Raises ConfigurationError for an index that cannot be honoured,
    and outside of the event loop in which the memory is open; InvalidInput; TierUnavailable.
    """

    def __init__(self, user: Owner, *, index: IndexConfig | Literal[False] | None = None) -> None:
        self._door = Door(user)
        self._user = self._door.user
        self._fields = _fields(index, self._user.embedder.dims)
        self._items = Items()
        self._one_at_a_time = asyncio.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._door.wait(self._batch(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self._door.do(self._batch(list(ops)))

    async def _batch(self, ops: Sequence[Op]) -> list[Result]:
        for op in ops:
            _check(op)
        async with self._one_at_a_time:
            await self._catch_up()
            results = [await self._answer(op) for op in ops]
            await self._write([op for op in ops if isinstance(op, PutOp)])
        return results

    # --- reading --------------------------------------------------------------------------------

    async def _catch_up(self) -> None:
        for note in await self._user.notes(_KIND, after=self._items.position):
            self._apply(note)

    def _apply(self, note: Note) -> None:
        if note.position <= self._items.position:
            return
        changes: Any = note.body["changes"]
        for label, change in zip(note.labels, changes, strict=True):
            namespace, key = decode(label.encode("utf-8", "surrogatepass"))
            address = Address(tuple(namespace), key)
            if change is None:
                self._items.take_away(address)
            else:
                self._items.put(address, self._entry(change, note))
        self._items.position = note.position

    def _entry(self, change: Mapping[str, Any], note: Note) -> Entry:
        fields = self._fields if change["fields"] is None else tuple(change["fields"])
        vectors = None
        if change["space"] == [self._user.embedder.identity, *fields]:
            vectors = from_text(change["vectors"], self._user.embedder.dims)
        return Entry(
            value=change["value"],
            fields=fields if self._fields else (),
            created_at=note.noted_at,
            updated_at=note.noted_at,
            position=note.position,
            vectors=vectors,
        )

    async def _answer(self, op: Op) -> Result:
        match op:
            case GetOp():
                address = Address(tuple(op.namespace), op.key)
                entry = self._items.entries.get(address)
                return _item(address, entry) if entry else None
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return _namespaces(self._items, op)
        return None

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found = self._items.matching(tuple(op.namespace_prefix), op.filter)
        span = slice(op.offset, op.offset + op.limit)
        if op.query is None or is_blank(op.query):
            return [_found(address, entry, None) for address, entry in found[span]]
        if not self._fields:
            raise InvalidInput("this store was made with index=False: it cannot search by a query")
        await self._embed([entry for _, entry in found])
        query = await embedded(self._user.embedder, [plain(op.query)], role="query")
        return [_found(*each) for each in list(ranked(found, query[0]))[span]]

    # --- writing --------------------------------------------------------------------------------

    async def _write(self, ops: Sequence[PutOp]) -> None:
        last = {Address(tuple(op.namespace), op.key): op for op in ops}
        if not last:
            return
        changes: list[JsonValue] = [await self._change(op) for op in last.values()]
        labels = [encode(list(address)).decode("utf-8", "surrogatepass") for address in last]
        await self._user.note(_KIND, {"changes": changes}, labels=labels)
        await self._catch_up()  # also what others wrote before it

    async def _change(self, op: PutOp) -> JsonObject | None:
        if op.value is None:
            return None
        value = self._user.masked(dict(op.value))
        own = None if op.index is None else tuple(op.index or ())
        searched = self._fields if own is None else own
        vectors = await self._vectors([value], [searched]) if self._fields else []
        return {
            "value": value,
            "fields": None if own is None else list(own),
            "space": [self._user.embedder.identity, *searched] if vectors else None,
            "vectors": as_text(vectors[0]) if vectors else "",
        }

    async def _embed(self, entries: Sequence[Entry]) -> None:
        """Make the vectors of those that have none in this embedder's space."""
        missing = [entry for entry in entries if entry.vectors is None]
        if missing:
            made = await self._vectors([e.value for e in missing], [e.fields for e in missing])
            for entry, vectors in zip(missing, made, strict=True):
                entry.vectors = vectors

    async def _vectors(
        self, values: Sequence[JsonObject], fields: Sequence[Sequence[str]]
    ) -> list[Vectors]:
        """The vectors of each value's texts; none for a text without a direction."""
        embedder = self._user.embedder
        texts = [_texts(value, paths) for value, paths in zip(values, fields, strict=True)]
        flat = [text for each in texts for text in each]
        rows: Any = await embedded(embedder, flat, role="document") if flat else []
        sound = [problem is None for problem in usable(rows, len(flat), embedder.dims)]
        made, at = [], 0
        for each in texts:
            mine = [rows[n] for n in range(at, at + len(each)) if sound[n]]
            made.append(np.asarray(mine, dtype=np.float32).reshape(len(mine), embedder.dims))
            at += len(each)
        return made


def _fields(index: IndexConfig | Literal[False] | None, dims: int) -> tuple[str, ...]:
    if index is False:
        return ()
    index = index or {}
    if "embed" in index:
        raise ConfigurationError(
            "the store embeds with the memory's own embedder: leave `embed` out of the index, and "
            "open the memory with the embedder that you want"
        )
    if index.get("dims", dims) != dims:
        raise ConfigurationError(
            f"the index has {index['dims']} dims; the memory's embedder has {dims}"
        )
    return tuple(index.get("fields") or _EVERYTHING)


def _texts(value: JsonObject, fields: Sequence[str]) -> list[str]:
    found = (text for path in fields for text in get_text_at_path(value, path))
    return [plain(text) for text in found if not is_blank(text)]


def _check(op: Op) -> None:
    validate_op_namespace(op)
    if isinstance(op, PutOp):
        if op.ttl is not None:
            raise NotImplementedError("items of a TrimemStore do not expire: put it without a ttl")
        if op.value is not None and not isinstance(op.value, dict):
            raise InvalidInput(f"a value is a JSON object, not a {type(op.value).__name__}")


def _item(address: Address, entry: Entry) -> Item:
    return Item(
        value=entry.copy_of_value(),
        key=address.key,
        namespace=address.namespace,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
    )


def _found(address: Address, entry: Entry, score: float | None) -> SearchItem:
    return SearchItem(
        namespace=address.namespace,
        key=address.key,
        value=entry.copy_of_value(),
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        score=score,
    )


def _namespaces(items: Items, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    matches = {"prefix": begins, "suffix": ends}
    found = {
        namespace[: op.max_depth]
        for namespace in items.namespaces()
        if all(
            matches[condition.match_type](namespace, condition.path)
            for condition in op.match_conditions or ()
        )
    }
    return sorted(found)[op.offset : op.offset + op.limit]
