"""Embedders: what every one must do, with the default model, stubs, and a real HTTP server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from memory.embedding import Embedder, alike, open_embedder, usable
from memory.embedding.base import LocalEmbedder, Role, Vectors, readable, unit
from memory.embedding.default import E5, MiniLM, Routed
from memory.embedding.script import is_latin
from memory.errors import ConfigurationError, EmbeddingFailed
from memory.settings import Settings

SISTER = "My sister Anna moved to Oslo and works in a bakery there."
WEATHER = "The weather was dreadful all week, so the match was called off."
ZH_SISTER = "我姐姐安娜搬到了上海，现在在一家面包店工作。"
ZH_WEATHER = "这一周天气一直很糟糕，所以比赛取消了。"


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Embedder]:
    embedder = await open_embedder(settings)
    try:
        yield embedder
    finally:
        await embedder.close()


@pytest.fixture(scope="module")
def routed() -> Iterator[Embedder]:
    """Loaded once for all tests here; it holds no loop."""
    embedder = LocalEmbedder(Routed(), at_a_time=4, reentrant=True)
    yield embedder
    asyncio.run(embedder.close())


def lengths(vectors: Vectors) -> list[float]:
    return [round(float(x), 4) for x in np.linalg.norm(vectors, axis=1)]


# --- usable ------------------------------------------------------------------------------------


def test_each_row_that_cannot_be_used_says_why_and_the_others_can() -> None:
    rows: list[Any] = [
        [1.0, 0.0],
        [float("nan"), 0.0],
        [float("inf"), 0.0],
        [0.0, 0.0],
        [1.0, 0.0, 0.0],
        ["a", "b"],
        None,
        [0.6, 0.8],
    ]
    reasons = usable(rows, 9, 2)
    assert reasons[0] is None
    assert reasons[7] is None
    assert "finite" in str(reasons[1])
    assert "finite" in str(reasons[2])
    assert "zero" in str(reasons[3])
    assert "3 numbers, not of 2" in str(reasons[4])
    assert all(reasons[i] is not None for i in (5, 6, 8))
    assert len(reasons) == 9


@pytest.mark.parametrize("given", [None, 3, np.float32(1.0), [], np.zeros((0, 2))])
def test_what_holds_no_rows_gives_a_reason_for_every_row(given: Any) -> None:
    assert usable(given, 2, 2) == ["no vector", "no vector"]


def test_one_vector_for_different_texts_is_reported_and_for_equal_texts_is_not() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]], dtype=np.float32)
    assert alike(["a", "b", "same", "same ", "x", "y"], vectors) == [(0, 1)]


@given(st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), min_size=1, max_size=5))
def test_usable_rows_become_unit_and_others_stay_unusable(rows: list[list[float]]) -> None:
    vectors = np.array(rows, dtype=np.float32)
    before, after = usable(vectors, len(rows), 3), unit(vectors)
    for was, row, problem in zip(before, after, usable(after, len(rows), 3), strict=True):
        assert (was is None) == (problem is None)
        if problem is None:
            assert abs(float(np.linalg.norm(row.astype(float))) - 1) < 1e-3


# --- which script ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("", True),
        ("12:30 👍", True),
        ("My name is Ada", True),
        ("Ça va très bien, merci", True),
        ("My Chinese name is 李雷, and I like it", True),
        ("我在Google上班", False),
        ("体检", False),
        ("Привет, как дела?", False),
        ("こんにちは", False),
        ("مرحبا", False),
    ],
)
def test_a_text_is_latin_when_most_of_what_it_says_is(text: str, latin: bool) -> None:
    assert is_latin(text) is latin


# --- the default embedder ----------------------------------------------------------------------


async def test_the_default_finds_what_is_meant_in_english_and_in_chinese(
    routed: Embedder,
) -> None:
    texts = [SISTER, WEATHER, ZH_SISTER, ZH_WEATHER]
    questions = [
        "Where is her job?",
        "Why was there no game?",
        "她在哪里上班？",
        "为什么没有比赛？",
    ]
    documents = await routed.embed(texts, role="document")
    queries = await routed.embed(questions, role="query")
    assert (queries @ documents.T).argmax(axis=1).tolist() == [0, 1, 2, 3]


async def test_every_row_has_unit_length_and_the_promised_dims(routed: Embedder) -> None:
    vectors = await routed.embed([SISTER, ZH_SISTER, "ok"], role="document")
    assert vectors.shape == (3, routed.dims)
    assert vectors.dtype == np.float32
    assert lengths(vectors) == [1, 1, 1]
    assert str(routed.dims) in routed.identity


@pytest.mark.parametrize("blank", ["", "   ", "\u200b", "\n\t", "\x00"])
async def test_a_blank_text_has_a_zero_row_and_leaves_its_neighbours_alone(
    routed: Embedder, blank: str
) -> None:
    vectors = await routed.embed([SISTER, blank, WEATHER], role="document")
    alone = await routed.embed([SISTER, WEATHER], role="document")
    assert [reason is None for reason in usable(vectors, 3, routed.dims)] == [True, False, True]
    assert np.array_equal(vectors[[0, 2]], alone)


@pytest.mark.parametrize(
    "text",
    ["👍", "\ud800 broken", "before\x00after", "\u202eright to left\u202c", "<|endoftext|>", "a"],
)
async def test_hostile_texts_are_embedded(routed: Embedder, text: str) -> None:
    for role in ("query", "document"):
        assert usable(await routed.embed([text], role=role), 1, routed.dims) == [None]


async def test_what_stands_after_a_nul_is_not_lost(routed: Embedder) -> None:
    cut, whole, spaced = await routed.embed(
        ["天气", "天气\x00我姐姐在上海工作", "天气 我姐姐在上海工作"], role="document"
    )
    assert float(whole @ spaced) > 0.999
    assert float(whole @ cut) < 0.99


async def test_the_end_of_a_long_document_counts(routed: Embedder) -> None:
    filler = "Nothing of note happened on that day either. " * 40
    plain, told = await routed.embed([filler, filler + SISTER * 10], role="document")
    (asked,) = await routed.embed(["Where does my sister work?"], role="query")
    assert float(asked @ told) > float(asked @ plain) + 0.05


async def test_a_vector_does_not_depend_on_what_is_embedded_with_it(routed: Embedder) -> None:
    texts = [SISTER, ZH_SISTER, WEATHER, "ok", ZH_WEATHER * 20, SISTER * 30]
    together = await routed.embed(texts, role="document")
    alone = [(await routed.embed([text], role="document"))[0] for text in texts]
    assert np.array_equal(together, np.array(alone))


async def test_texts_of_all_lengths_and_scripts_computed_together_are_as_if_alone() -> None:
    model = Routed()
    texts = [
        f"{WEATHER if n % 5 else SISTER * (1 + n % 7)} {'你好，' * (n % 3)} {n}" for n in range(40)
    ] + [ZH_SISTER, "x", " ".join([SISTER] * 40)]
    alone = np.stack([model.encode([text], "document")[0] for text in texts])
    several = LocalEmbedder(model, at_a_time=8, reentrant=True, threads=2)
    try:
        together = await several.embed(texts, role="document")
        cut = await several.embed([texts[-1]], role="document")  # longer than the model reads
    finally:
        await several.close()
    assert np.abs(together[:-1] - unit(alone)[:-1]).max() < 1e-5
    assert np.abs(together[-1] - cut[0]).max() < 1e-5


def test_a_short_text_is_not_filled_up_to_the_length_of_a_long_one() -> None:
    model = MiniLM()
    texts = ["word " * words for words in (3, 100, 4, 5, 90, 7, 30)]
    alone = [model.encode([text], "document")[0] for text in texts]
    assert model._loaded is not None
    tokenizer, session = model._loaded
    shapes: list[tuple[int, ...]] = []

    class Watched:
        def run(self, names: None, inputs: dict[str, Any]) -> Any:
            mask = inputs["attention_mask"]
            shapes.append((*mask.shape, int(mask.sum(axis=1).min())))
            return session.run(names, inputs)

    model._loaded = tokenizer, Watched()
    together = model.encode(texts, "document")
    assert all(longest <= 1.2 * shortest for _, longest, shortest in shapes), shapes
    assert sum(rows for rows, _, _ in shapes) == len(texts) > len(shapes)
    assert np.sum(together * np.array(alone), axis=1) == pytest.approx(
        np.ones(len(texts)), abs=1e-3
    )


async def test_a_query_is_answered_while_documents_are_embedded(routed: Embedder) -> None:
    documents = asyncio.create_task(routed.embed([WEATHER * 15] * 24, role="document"))
    await routed.embed(["Where?", "在哪里？"], role="query")
    assert not documents.done()
    assert lengths(await documents) == [1] * 24


async def test_many_callers_at_once_get_their_own_vectors(routed: Embedder) -> None:
    texts = [f"{text} {number}" for number in range(8) for text in (SISTER, ZH_SISTER)]
    expected = [(await routed.embed([text], role="document"))[0] for text in texts]
    found = await asyncio.gather(*(routed.embed([text], role="document") for text in texts))
    assert np.array_equal(np.vstack(found), np.array(expected))


async def test_no_texts_give_no_rows(routed: Embedder) -> None:
    assert (await routed.embed([], role="document")).shape == (0, routed.dims)


async def test_the_role_decides_how_a_text_is_read_where_a_model_wants_to_know() -> None:
    e5 = E5()
    query, document = e5.encode(["体检"], "query"), e5.encode(["体检"], "document")
    assert not np.array_equal(query, document)


def test_windows_of_one_text_weigh_as_much_as_they_hold() -> None:
    """Words in many more windows outweigh words in one, with nothing cut off."""
    model = MiniLM()
    mixed, many, one = model.encode(["cat " * 900 + "engine " * 100, "cat", "engine"], "document")
    assert float(mixed @ many) > float(mixed @ one)
    short, long = model.encode(["cat " * 200, "cat " * 2_000], "document")
    assert float(short @ long) > 0.95


async def test_the_default_is_ready_at_once_and_can_be_closed_twice() -> None:
    async with opened(Settings(embedder="default")) as embedder:
        assert embedder.identity == Routed.identity
    await embedder.close()


# --- texts as models can take them -------------------------------------------------------------


def test_a_long_query_is_one_piece_of_both_ends() -> None:
    (piece,) = readable(["A" * 500 + "B" * 500], role="query", longest=lambda _: 100)
    assert len(piece.text) <= 100
    assert piece.text[0] == "A"
    assert piece.text[-1] == "B"


@given(st.lists(st.text(), max_size=4))
def test_a_document_is_read_whole_in_pieces_that_fit(texts: list[str]) -> None:
    read = readable(texts, role="document", longest=lambda _: 5)
    assert all(0 < len(piece.text) <= 5 for piece in read)
    for row, text in enumerate(texts):
        left = [character for character in text if character.isalnum()]
        there = "".join(piece.text for piece in read if piece.row == row)
        assert [character for character in there if character.isalnum()] == left


# --- models that fail --------------------------------------------------------------------------


@dataclass
class Stub:
    """A model that answers with what `answer` makes of its texts, and notes what it was asked."""

    answer: Callable[[Sequence[str]], Vectors]
    identity: str = "stub/2"
    dims: int = 2
    asked: list[tuple[Role, list[str]]] = field(default_factory=list)

    def longest(self, text: str) -> int:
        return 1_000

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        self.asked.append((role, list(texts)))
        return self.answer(texts)


def rows(*values: Sequence[float]) -> Callable[[Sequence[str]], Vectors]:
    return lambda texts: np.array(values, dtype=np.float32)[: len(texts)]


def failing(texts: Sequence[str]) -> Vectors:
    raise RuntimeError("out of memory")


async def test_a_model_that_raises_is_a_typed_error_with_its_cause() -> None:
    embedder = LocalEmbedder(Stub(failing), at_a_time=8, reentrant=False)
    with pytest.raises(EmbeddingFailed, match=r"stub/2: out of memory") as caught:
        await embedder.embed(["text"], role="document")
    assert isinstance(caught.value.__cause__, RuntimeError)
    await embedder.close()


async def test_vectors_of_another_length_are_a_typed_error_that_names_both() -> None:
    embedder = LocalEmbedder(Stub(rows([1.0, 2.0, 3.0])), at_a_time=8, reentrant=False)
    with pytest.raises(EmbeddingFailed, match=r"\(1, 3\), not \(1, 2\)"):
        await embedder.embed(["text"], role="document")
    await embedder.close()


async def test_a_bad_row_stays_bad_and_its_neighbours_stay_good() -> None:
    stub = Stub(rows([3.0, 4.0], [float("nan"), 1.0], [0.0, 0.0]))
    embedder = LocalEmbedder(stub, at_a_time=8, reentrant=False)
    vectors = await embedder.embed(["a", "b", "c"], role="document")
    reasons = usable(vectors, 3, 2)
    assert reasons[0] is None
    assert np.allclose(vectors[0], [0.6, 0.8])
    assert "finite" in str(reasons[1])
    assert "zero" in str(reasons[2])
    await embedder.close()


async def test_the_model_hears_the_role_and_never_sees_a_blank_or_broken_text() -> None:
    stub = Stub(rows(*[[1.0, 0.0]] * 8))
    embedder = LocalEmbedder(stub, at_a_time=8, reentrant=False)
    await embedder.embed(["", "\ud800", "question\x00"], role="query")
    await embedder.embed(["note"], role="document")
    assert stub.asked == [("query", ["\ufffd", "question "]), ("document", ["note"])]
    await embedder.close()


# --- an endpoint -------------------------------------------------------------------------------

KEY = "sk-very-secret-0123456789"
Answer = tuple[int, dict[str, str], Any]


@dataclass
class Endpoint:
    """A real HTTP server. It gives the scripted answers in turn, then proper embeddings."""

    script: list[Answer]
    dims: int = 3
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> Answer:
        if self.script:
            return self.script.pop(0)
        return 200, {}, {"data": self.embeddings(body["input"])}

    def embeddings(self, texts: list[str]) -> list[dict[str, Any]]:
        """Out of order, as the protocol allows."""
        items = [
            {"index": at, "embedding": [float(len(text)), 1.0] + [0.0] * (self.dims - 2)}
            for at, text in enumerate(texts)
        ]
        return items[::-1]


@contextmanager
def serving(script: Sequence[Answer] = (), dims: int = 3) -> Iterator[Endpoint]:
    endpoint = Endpoint(list(script), dims)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            endpoint.requests.append({"path": self.path} | body)
            endpoint.keys.append(self.headers["authorization"])
            status, headers, said = endpoint.answer(body)
            if status == 0:  # the connection breaks
                return
            data = said.encode() if isinstance(said, str) else json.dumps(said).encode()
            self.send_response(status)
            for name, value in (headers | {"content-length": str(len(data))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nothing: what was asked is in `requests`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1/"
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def settings_for(endpoint: Endpoint, **changes: Any) -> Settings:
    given: dict[str, Any] = {
        "embedder": "openai:small-model",
        "embedder_url": endpoint.url,
        "embedder_api_key": SecretStr(KEY),
        "embedder_dims": 3,
        "timeout": timedelta(seconds=10),
    }
    return Settings(**(given | changes))


async def test_an_endpoint_gives_unit_vectors_in_the_order_of_the_texts() -> None:
    with serving() as endpoint:
        async with opened(settings_for(endpoint)) as embedder:
            vectors = await embedder.embed(["a", "", "abcdefgh"], role="document")
    assert np.allclose(vectors, unit(np.array([[1, 1, 0], [0, 0, 0], [8, 1, 0]], np.float32)))
    (request,) = endpoint.requests
    assert request["path"] == "/v1/embeddings"
    assert sorted(request["input"]) == ["a", "abcdefgh"]
    assert request["model"] == "small-model"
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert embedder.identity == "openai:small-model/3"


async def test_an_endpoint_is_asked_once_how_long_its_vectors_are() -> None:
    with serving(dims=5) as endpoint:
        async with opened(settings_for(endpoint, embedder_dims=None)) as embedder:
            assert embedder.dims == 5
            assert len(endpoint.requests) == 1


async def test_a_model_whose_length_is_known_is_not_asked() -> None:
    with serving() as endpoint:
        settings = settings_for(
            endpoint, embedder="openai:text-embedding-3-small", embedder_dims=None
        )
        async with opened(settings) as embedder:
            assert (embedder.dims, endpoint.requests) == (1536, [])


async def test_a_shorter_vector_is_asked_for_where_the_model_can_give_one() -> None:
    with serving() as endpoint:
        settings = settings_for(endpoint, embedder="openai:text-embedding-3-small")
        async with opened(settings) as embedder:
            await embedder.embed(["text"], role="query")
    assert endpoint.requests[0]["dimensions"] == 3


async def test_prefixes_go_before_queries_and_documents_and_name_the_space() -> None:
    with serving() as endpoint:
        settings = settings_for(
            endpoint, embedder_query_prefix="query: ", embedder_document_prefix="passage: "
        )
        async with opened(settings) as embedder, opened(settings_for(endpoint)) as plain:
            await embedder.embed(["体检"], role="query")
            await embedder.embed(["体检"], role="document")
            assert embedder.identity != plain.identity
    assert [request["input"] for request in endpoint.requests] == [
        ["query: 体检"],
        ["passage: 体检"],
    ]


@pytest.mark.parametrize("status", [429, 500, 503, 0])
async def test_what_may_pass_is_asked_again(status: int) -> None:
    answers: list[Answer] = [(status, {"retry-after": "0"}, "busy")] * 2
    with serving(answers) as endpoint:
        async with opened(settings_for(endpoint)) as embedder:
            assert lengths(await embedder.embed(["text"], role="query")) == [1]
    assert len(endpoint.requests) == 3


async def test_what_does_not_pass_is_a_typed_error_after_some_attempts() -> None:
    with serving([(503, {"retry-after": "0"}, "down for the day")] * 9) as endpoint:
        async with opened(settings_for(endpoint)) as embedder:
            with pytest.raises(EmbeddingFailed, match="503: down for the day"):
                await embedder.embed(["text"], role="query")
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize("status", [400, 401, 404, 413])
async def test_what_will_not_pass_is_asked_once_and_never_shows_the_key(status: int) -> None:
    said = {"error": {"message": f"no such thing for {KEY}\n" + "x" * 5_000}}
    with serving([(status, {}, said)]) as endpoint:
        async with opened(settings_for(endpoint)) as embedder:
            with pytest.raises(EmbeddingFailed, match=str(status)) as caught:
                await embedder.embed(["text"], role="query")
    assert len(endpoint.requests) == 1
    assert "no such thing" in str(caught.value)
    assert "***" in str(caught.value)
    assert KEY not in repr(caught.value)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


async def test_nobody_there_is_a_typed_error_that_names_the_host() -> None:
    with serving() as endpoint:
        pass  # a port where nobody listens any more
    async with opened(settings_for(endpoint)) as embedder:
        with pytest.raises(EmbeddingFailed, match=r"small-model at 127\.0\.0\.1"):
            await embedder.embed(["text"], role="query")


async def test_an_endpoint_that_is_not_there_when_its_length_is_asked_fails_at_opening() -> None:
    with serving() as endpoint:
        pass
    with pytest.raises(EmbeddingFailed):
        await open_embedder(settings_for(endpoint, embedder_dims=None))


async def test_vectors_of_another_length_from_an_endpoint_name_both_lengths() -> None:
    with serving(dims=7) as endpoint:
        async with opened(settings_for(endpoint)) as embedder:
            with pytest.raises(EmbeddingFailed, match="of 3 numbers, and the endpoint gave 7"):
                await embedder.embed(["text"], role="query")


@pytest.mark.parametrize(
    "said",
    [
        "<html>hello</html>",
        {},
        {"data": None},
        {"data": [{"embedding": [1, 2, 3]}]},
        {"data": []},
        {"data": [{"index": 0, "embedding": [1, 2, 3]}] * 2},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": None}]},
    ],
)
async def test_an_answer_of_another_shape_is_a_typed_error(said: Any) -> None:
    with serving([(200, {}, said)]) as endpoint:
        async with opened(settings_for(endpoint)) as embedder:
            with pytest.raises(EmbeddingFailed):
                await embedder.embed(["text"], role="query")


async def test_bad_numbers_from_an_endpoint_are_left_for_usable_to_find() -> None:
    good = {"index": 1, "embedding": [1.0, 0.0, 0.0]}
    answer = f'{{"data": [{{"index": 0, "embedding": [NaN, 0, 0]}}, {json.dumps(good)}]}}'
    with serving([(200, {}, answer)]) as endpoint:
        async with opened(settings_for(endpoint)) as embedder:
            vectors = await embedder.embed(["a", "bb"], role="document")
    assert [reason is None for reason in usable(vectors, 2, 3)] == [False, True]


async def test_many_texts_go_in_several_requests() -> None:
    with serving() as endpoint:
        async with opened(settings_for(endpoint)) as embedder:
            vectors = await embedder.embed(["x" * (n + 1) for n in range(150)], role="document")
    assert [len(request["input"]) for request in endpoint.requests] == [64, 64, 22]
    assert np.all(np.diff(vectors[:, 0]) > 0)


# --- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "defualt", "openai:", "sentence-transformers:", "default:x"])
async def test_an_embedder_that_does_not_exist_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(ConfigurationError, match="'default', 'sentence-transformers:NAME'"):
        await open_embedder(Settings(embedder=name))


@pytest.mark.parametrize("url", ["", "localhost:8000", "file:///etc/passwd", "http://"])
async def test_a_url_that_is_none_is_refused(url: str) -> None:
    settings = Settings(embedder="openai:m", embedder_url=url, embedder_dims=3)
    with pytest.raises(ConfigurationError, match="URL"):
        await open_embedder(settings)


async def test_a_key_that_no_header_can_hold_is_refused_without_showing_it() -> None:
    settings = Settings(embedder="openai:m", embedder_api_key=SecretStr("sk-秘密"), embedder_dims=3)
    with pytest.raises(ConfigurationError) as caught:
        await open_embedder(settings)
    assert "秘密" not in str(caught.value)


async def test_a_missing_library_is_named_with_the_way_to_install_it() -> None:
    try:
        import sentence_transformers  # noqa: F401
    except ImportError:
        with pytest.raises(ConfigurationError, match=r"trimem\[sentence-transformers\]"):
            await open_embedder(Settings(embedder="sentence-transformers:some/model"))
    else:
        pytest.skip("sentence-transformers is installed here")
