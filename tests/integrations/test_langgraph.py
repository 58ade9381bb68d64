"""LangGraph: the nodes in real graphs, and the store by LangGraph's own contract."""

from __future__ import annotations

import asyncio
import itertools
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, create_react_agent, tools_condition
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from memory import Memory
from memory import sync as blocking
from memory.embedding import Embedder
from memory.errors import ConfigurationError, InvalidInput
from memory.integrations.items import as_text, from_text
from memory.integrations.langgraph import TrimemStore, context_node, record_node
from memory.settings import Settings
from tests.behaviour.conftest import Clock, Open
from tests.conversations import hostile_text
from tests.stub_embedder import StubEmbedder

CONFIG: Any = {"configurable": {"user_id": "ada", "thread_id": "monday"}}
TEXT: Any = {"fields": ["text"]}
TUESDAY: Any = {"configurable": {"user_id": "ada", "thread_id": "tuesday"}}
pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")


# --- nodes -------------------------------------------------------------------------------------


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    context: list[AnyMessage]


class Model(FakeMessagesListChatModel):
    """A scripted model that keeps what it was asked."""

    asked: list[Any] = []  # noqa: RUF012 (pydantic copies it)

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.asked.append(messages)
        return super()._generate(messages, *args, **kwargs)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def call(city: str, call_id: str) -> Any:
    return {"name": "weather", "args": {"city": city}, "id": call_id}


def agent(memory: Any, model: Model, **options: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("context", context_node(memory, **options))
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["context"])]})
    graph.add_node("tools", ToolNode([weather]))
    graph.add_node("record", record_node(memory))
    graph.add_edge(START, "context")
    graph.add_edge("context", "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: "record"})
    graph.add_edge("tools", "context")
    graph.add_edge("record", END)
    return graph.compile()


def texts(messages: Any) -> list[str]:
    return [message.content for message in messages if "<memory-" not in message.content]


async def test_a_graph_remembers_its_turns_and_what_was_said_in_other_threads(
    memory: Memory,
) -> None:
    model = Model(responses=[AIMessage("Noted."), AIMessage("Yes."), AIMessage("Pippin.")])
    graph = agent(memory, model, system="Be kind.", budget=2_000)
    await graph.ainvoke({"messages": [HumanMessage("My canary is called Pippin.")]}, CONFIG)
    await graph.ainvoke({"messages": [HumanMessage("Are you there?")]}, CONFIG)
    assert texts(model.asked[1]) == [
        "Be kind.",
        "My canary is called Pippin.",
        "Noted.",
        "Are you there?",
    ]
    await graph.ainvoke({"messages": [HumanMessage("canary called what?")]}, TUESDAY)
    assert any("Pippin" in message.content for message in model.asked[2])
    assert texts(model.asked[2]) == ["Be kind.", "canary called what?"]


async def test_tools_are_called_in_the_middle_of_a_turn(memory: Memory) -> None:
    model = Model(
        responses=[
            AIMessage("", tool_calls=[call("Oslo", "c1"), call("Rome", "c2")]),
            AIMessage("Rain in both."),
        ]
    )
    graph = agent(memory, model, budget=2_000)
    await graph.ainvoke({"messages": [HumanMessage("The weather in Oslo and Rome?")]}, CONFIG)
    asked = [message for message in model.asked[1] if "<memory-" not in message.content]
    assert [message.type for message in asked] == ["human", "ai", "tool", "tool"]
    assert [each["id"] for each in asked[1].tool_calls] == ["c1", "c2"]
    assert texts(asked[2:]) == ["rain in Oslo", "rain in Rome"]
    messages = await memory.user("ada").session("monday").messages()
    assert [m.role.value for m in messages] == ["user", "assistant", "tool", "tool", "assistant"]


async def test_a_state_that_keeps_all_messages_is_recorded_once(memory: Memory) -> None:
    model = Model(responses=[AIMessage(f"Answer {n}") for n in range(3)])
    graph = agent(memory, model, budget=2_000)
    graph.checkpointer = InMemorySaver()
    for n in range(3):
        await graph.ainvoke({"messages": [HumanMessage(f"Question {n}")]}, CONFIG)
    messages = await memory.user("ada").session("monday").messages()
    assert [m.text for m in messages] == [
        f"{what} {n}" for n in range(3) for what in ("Question", "Answer")
    ]
    assert texts(model.asked[2]) == [*(m.text for m in messages[:4]), "Question 2"]


async def test_it_is_the_pre_model_hook_of_a_prebuilt_agent(memory: Memory) -> None:
    model = Model(
        responses=[AIMessage("", tool_calls=[call("Oslo", "c1")]), AIMessage("Rain in Oslo.")]
    )
    react = create_react_agent(
        model,
        [weather],
        pre_model_hook=context_node(
            memory, into="llm_input_messages", system="Be kind.", budget=2_000
        ),
        post_model_hook=record_node(memory),
    )
    await react.ainvoke({"messages": [HumanMessage("The weather in Oslo?")]}, CONFIG)
    assert model.asked[1][0] == SystemMessage("Be kind.")
    messages = await memory.user("ada").session("monday").messages()
    assert [m.role.value for m in messages] == ["user", "assistant", "tool", "assistant"]


async def test_messages_without_ids_are_recorded_once_by_their_place(memory: Memory) -> None:
    record = record_node(memory)
    state = {"messages": [HumanMessage("ok"), AIMessage("ok"), HumanMessage("ok")]}
    await record.ainvoke(state, CONFIG)
    await record.ainvoke(state, CONFIG)
    messages = await memory.user("ada").session("monday").messages()
    assert [m.text for m in messages] == ["ok", "ok", "ok"]


@pytest.mark.parametrize("missing", ["user_id", "thread_id"])
async def test_a_config_that_does_not_say_whose_it_is_is_refused(
    memory: Memory, missing: str
) -> None:
    named = {k: v for k, v in CONFIG["configurable"].items() if k != missing}
    with pytest.raises(InvalidInput, match=missing):
        await record_node(memory).ainvoke(
            {"messages": [HumanMessage("Hi")]}, {"configurable": named}
        )
    with pytest.raises(InvalidInput, match="no messages"):
        await record_node(memory).ainvoke({"messages": []}, CONFIG)


def test_a_graph_without_an_event_loop(urls: dict[str, str], scope: Any) -> None:
    with blocking.open(
        settings=Settings.model_validate({**urls, "tenant": scope.tenant})
    ) as memory:
        model = Model(responses=[AIMessage("Noted."), AIMessage("Yes.")])
        graph = agent(memory, model, budget=2_000)
        graph.invoke({"messages": [HumanMessage("My canary is called Pippin.")]}, CONFIG)
        graph.invoke({"messages": [HumanMessage("Are you there?")]}, CONFIG)
        assert texts(model.asked[1])[0] == "My canary is called Pippin."
        store = TrimemStore(memory.user("ada"))
        store.put(("a",), "k", {"x": 1})
        found = store.get(("a",), "k")
        assert found is not None
        assert found.value == {"x": 1}
        assert asyncio.run(store.aget(("a",), "k")) == found


# --- the store ---------------------------------------------------------------------------------


@pytest.fixture
async def store(memory: Memory) -> TrimemStore:
    return TrimemStore(memory.user("ada"))


async def test_an_item_is_put_changed_and_deleted(store: TrimemStore, clock: Clock) -> None:
    value: Any = {"text": "\x00 \ud800 ‮רtl", "deep": [{"n": 2**60, "f": 0.5, "none": None}]}
    await store.aput(("prefs", "日本"), "k", value)
    first = await store.aget(("prefs", "日本"), "k")
    assert first is not None
    assert (first.value, first.key, first.namespace) == (value, "k", ("prefs", "日本"))
    assert first.created_at == first.updated_at == clock.now
    clock.forward(hours=1)
    await store.aput(("prefs", "日本"), "k", {"n": 2})
    second = await store.aget(("prefs", "日本"), "k")
    assert second is not None
    assert second.value == {"n": 2}
    assert (second.created_at, second.updated_at) == (first.created_at, clock.now)
    await store.adelete(("prefs", "日本"), "k")
    assert await store.aget(("prefs", "日本"), "k") is None
    assert await store.asearch(()) == []
    assert await store.alist_namespaces() == []


async def test_what_a_caller_does_to_a_value_changes_no_item(store: TrimemStore) -> None:
    value = {"list": [1]}
    await store.aput(("a",), "k", value)
    value["list"].append(2)
    (await store.aget(("a",), "k")).value["list"].append(3)  # type: ignore[union-attr]
    (await store.asearch(("a",)))[0].value["list"].append(4)
    assert (await store.aget(("a",), "k")).value == {"list": [1]}  # type: ignore[union-attr]


async def test_items_outlive_the_process_and_are_seen_by_others(open_memory: Open) -> None:
    async with open_memory() as one, open_memory() as other:
        first, second = TrimemStore(one.user("ada")), TrimemStore(other.user("ada"))
        await first.aput(("a",), "k", {"n": 1})
        assert (await second.aget(("a",), "k")).value == {"n": 1}  # type: ignore[union-attr]
        await second.aput(("a",), "k", {"n": 2})
        await second.aput(("b",), "k", {"n": 3})
        assert (await first.aget(("a",), "k")).value == {"n": 2}  # type: ignore[union-attr]
        assert await first.alist_namespaces() == [("a",), ("b",)]
    async with open_memory() as again:
        reopened = TrimemStore(again.user("ada"))
        assert [item.value for item in await reopened.asearch(())] == [{"n": 3}, {"n": 2}]


async def test_items_are_one_users(memory: Memory, store: TrimemStore) -> None:
    await store.aput(("a",), "k", {"n": 1})
    for other in (memory.user("ben"), memory.user("ada", tenant="elsewhere")):
        assert await TrimemStore(other).aget(("a",), "k") is None
        assert await TrimemStore(other).asearch(()) == []
    assert await TrimemStore(memory.user("ada")).aget(("a",), "k") is not None


async def test_items_are_searched_by_meaning_within_a_namespace_and_a_filter(
    store: TrimemStore,
) -> None:
    await store.aput(("notes", "x"), "1", {"text": "she likes hiking in the mountains", "n": 1})
    await store.aput(("notes", "x"), "2", {"text": "he plays the piano", "n": 2})
    await store.aput(("notes", "y"), "3", {"text": "hiking in the mountains is dull", "n": 3})
    found = await store.asearch(("notes", "x"), query="hiking mountains")
    assert [item.key for item in found] == ["1", "2"]
    assert found[0].score is not None
    assert found[1].score is not None
    assert found[0].score > found[1].score
    found = await store.asearch(("notes",), query="hiking mountains", filter={"n": {"$gt": 1}})
    assert [item.key for item in found] == ["3", "2"]
    assert [i.key for i in await store.asearch((), query="hiking", limit=1, offset=1)] != []
    assert len(await store.asearch((), query="  ")) == 3


async def test_an_index_names_the_fields_and_a_put_its_own(memory: Memory) -> None:
    store = TrimemStore(memory.user("ada"), index={"dims": 384, "fields": ["title", "tags[*]"]})
    await store.aput(("a",), "1", {"title": "piano", "tags": ["music"], "body": "mountains"})
    await store.aput(("a",), "2", {"title": "hiking", "body": "piano"}, index=["body"])
    await store.aput(("a",), "3", {"title": "piano"}, index=False)
    found = await store.asearch(("a",), query="piano")
    assert {item.key for item in found[:2]} == {"1", "2"}
    assert (found[2].key, found[2].score) == ("3", None)
    found = await store.asearch(("a",), query="music")
    assert found[0].key == "1"
    found = await store.asearch(("a",), query="mountains")
    assert max(item.score or 0 for item in found) < 0.5


@pytest.mark.parametrize(
    ("index", "said"), [({"dims": 7}, "384"), ({"dims": 384, "embed": "openai:x"}, "own embedder")]
)
async def test_an_index_that_cannot_be_honoured_is_refused(
    memory: Memory, index: Any, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        TrimemStore(memory.user("ada"), index=index)


async def test_a_store_without_an_index_embeds_nothing_and_says_so(
    memory: Memory, embedder: StubEmbedder
) -> None:
    store = TrimemStore(memory.user("ada"), index=False)
    before = len(embedder.calls)
    await store.aput(("a",), "k", {"text": "unseen"})
    assert len(embedder.calls) == before
    with pytest.raises(InvalidInput, match="index=False"):
        await store.asearch(("a",), query="x")
    indexed = TrimemStore(memory.user("ada"))
    assert [item.key for item in await indexed.asearch(("a",), query="unseen")] == ["k"]


async def test_opening_a_store_embeds_nothing_and_another_embedder_embeds_anew(
    open_memory: Open,
) -> None:
    async with open_memory(embedder=StubEmbedder("one")) as memory:
        await TrimemStore(memory.user("ada"), index=TEXT).aput(("a",), "k", {"text": "the piano"})
        await TrimemStore(memory.user("ada"), index=TEXT).aput(("a",), "j", {"text": "a mountain"})
    same, other = StubEmbedder("one"), StubEmbedder("two", dims=64)
    async with open_memory(embedder=same) as memory:
        found = await TrimemStore(memory.user("ada"), index=TEXT).asearch(("a",), query="piano")
        assert [role for role, _ in same.calls] == ["query"]
    async with open_memory(embedder=other) as memory:
        store = TrimemStore(memory.user("ada"), index=TEXT)
        assert [item.key for item in await store.asearch(("a",), query="piano")] == ["k", "j"]
        await store.asearch(("a",), query="piano")
        assert [role for role, _ in other.calls] == ["document", "query", "query"]
    assert [item.key for item in found] == ["k", "j"]


async def test_namespaces_are_listed_by_prefix_suffix_and_depth(store: TrimemStore) -> None:
    for namespace in [("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("z", "b", "c")]:
        await store.aput(namespace, "k", {})
    assert await store.alist_namespaces(prefix=("a", "*"), suffix=("c",)) == [
        ("a", "b", "c"),
        ("a", "x", "c"),
    ]
    assert await store.alist_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("z", "b")]
    assert await store.alist_namespaces(max_depth=1, limit=1, offset=1) == [("z",)]


async def test_what_the_contract_refuses_is_refused_and_nothing_is_stored(
    store: TrimemStore,
) -> None:
    for namespace in [(), ("a.b",), ("",), ("langgraph", "x"), (1,)]:
        with pytest.raises(InvalidNamespaceError):
            await store.aput(namespace, "k", {})  # type: ignore[arg-type]
    with pytest.raises(InvalidNamespaceError):
        await store.abatch([PutOp(("a.b",), "k", {})])
    with pytest.raises(NotImplementedError):
        await store.aput(("a",), "k", {}, ttl=5)
    with pytest.raises(NotImplementedError):
        await store.abatch([PutOp(("a",), "k", {}, ttl=5)])
    for value in [{"x": float("nan")}, {"x": object()}, {"x": {1: 2}}, ["list"]]:
        with pytest.raises(InvalidInput):
            await store.abatch([PutOp(("a",), "j", {}), PutOp(("a",), "k", value)])  # type: ignore[arg-type]
    await store.aput(("b",), "k", {"x": 1})
    with pytest.raises(InvalidInput, match=r"\$near"):
        await store.asearch((), filter={"x": {"$near": 1}})
    assert [item.namespace for item in await store.asearch(())] == [("b",)]


async def test_secrets_in_a_value_are_masked_and_names_are_kept(
    urls: dict[str, str], embedder: Embedder
) -> None:
    def hide(text: str) -> str:
        return text.replace("hunter2", "[hidden]")

    settings = Settings.model_validate(urls)
    async with Memory.open(settings=settings, embedder=embedder, redact=hide) as memory:
        store = TrimemStore(memory.user("ada"))
        await store.aput(("hunter2",), "hunter2", {"is": "hunter2"})
        item = await store.aget(("hunter2",), "hunter2")
    assert item is not None
    assert item.value == {"is": "[hidden]"}


def test_vectors_come_back_from_text_and_from_nothing_else() -> None:
    vectors = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    again = from_text(as_text(vectors), 64)
    assert again is not None
    assert np.abs(again - vectors).max() <= 0.5e-4
    for other in ("[redacted: api key]", as_text(vectors)[:-8], "é"):
        assert from_text(other, 64) is None


async def test_a_compiled_graph_has_the_store(store: TrimemStore) -> None:
    def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
        store.put(("prefs",), "colour", {"is": state["messages"][-1].content})
        return {"messages": [AIMessage(store.get(("prefs",), "colour").value["is"])]}  # type: ignore[union-attr]

    graph = StateGraph(State)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    compiled: Any = graph.compile(store=store)
    answer = await compiled.ainvoke({"messages": [HumanMessage("blue")]})
    assert answer["messages"][-1].content == "blue"
    with pytest.raises(ConfigurationError, match="event loop"):
        store.get(("prefs",), "colour")


names = st.sampled_from(["a", "b", "c"])
namespaces = st.lists(names, min_size=1, max_size=3).map(tuple)
small = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | hostile_text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
values = st.dictionaries(names, small, max_size=3)
filters = st.none() | st.dictionaries(names, small | st.builds(lambda v: {"$ne": v}, small))
operations = st.one_of(
    st.builds(lambda *given: PutOp(*given), namespaces, names, st.none() | values),
    st.builds(lambda *given: GetOp(*given), namespaces, names),
    st.builds(lambda *given: SearchOp(*given, 1_000), namespaces | st.just(()), filters),
)
numbers = itertools.count()


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(batches=st.lists(st.lists(operations, max_size=6), max_size=6))
async def test_it_answers_as_langgraphs_own_store(memory: Memory, batches: list[list[Any]]) -> None:
    user = memory.user(f"user {next(numbers)}")
    ours, theirs = TrimemStore(user, index=False), InMemoryStore()
    for batch in batches:
        assert [_plain(each) for each in await ours.abatch(batch)] == [
            _plain(each) for each in await theirs.abatch(batch)
        ]
    reopened = TrimemStore(user)
    for store in (ours, reopened):
        assert _plain(await store.asearch((), limit=1_000)) == _plain(
            await theirs.asearch((), limit=1_000)
        )


def _plain(result: Any) -> Any:
    """An answer without its times and its order, in which stores differ."""
    if isinstance(result, list):
        return sorted((_plain(each) for each in result), key=repr)
    return result and (result.namespace, result.key, result.value)
