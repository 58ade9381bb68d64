"""Files of other programs: what was on the screen is remembered, with its dates, and once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from consolidation import consolidate
from memory import Memory
from memory.errors import ImportRefused
from memory.importers import to_anthropic, to_openai
from memory.importers.importing import import_file
from tests.behaviour.conftest import Clock, Open
from tests.cases.test_window import CONTROL
from tests.stub_embedder import StubEmbedder

PATIENCE = timedelta(seconds=30)


def file(folder: Path, value: Any, name: str = "export.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    return path


def lines(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def chatgpt(name: str, *said: str, at: float = 1_740_000_000) -> dict[str, Any]:
    """A conversation as ChatGPT exports it, with custom instructions that nobody said."""
    profile = {
        "author": {"role": "user"},
        "create_time": None,
        "content": {
            "content_type": "user_editable_context",
            "user_profile": "Preferred name: Sam. The current date is 1 March.",
            "user_instructions": "Answer in verse.",
        },
        "metadata": {"is_visually_hidden_from_conversation": True},
    }
    nodes = [("root", None), ("profile", profile)]
    nodes += [
        (
            f"n{number}",
            {
                "author": {"role": ("user", "assistant")[number % 2]},
                "create_time": at + number,
                "content": {"content_type": "text", "parts": [text]},
            },
        )
        for number, text in enumerate(said)
    ]
    keys = [key for key, _ in nodes]
    mapping = {
        key: {
            "id": key,
            "message": message,
            "parent": keys[place - 1] if place else None,
            "children": keys[place + 1 : place + 2],
        }
        for place, (key, message) in enumerate(nodes)
    }
    return {
        "id": name,
        "title": f"About {name}",
        "create_time": at,
        "mapping": mapping,
        "current_node": keys[-1],
    }


async def test_a_chatgpt_export_is_remembered_once_with_its_roles_and_times(
    memory: Memory, tmp_path: Path
) -> None:
    """IMP-01"""
    path = file(
        tmp_path,
        [chatgpt("trip", "Where to in May?", "Try Ghent."), chatgpt("soup", "Lentils?", "Yes.")],
    )
    report = await import_file(memory, path, "sam")
    assert (report.conversations, report.messages, report.added) == (2, 4, 4)
    again = await import_file(memory, path, "sam")
    assert (again.messages, again.added) == (4, 0)
    sam = memory.user("sam")
    assert {info.session for info in await sam.sessions()} == {"trip", "soup"}
    messages = await sam.session("trip").messages()
    assert [(m.role.value, m.text) for m in messages] == [
        ("user", "Where to in May?"),
        ("assistant", "Try Ghent."),
    ]
    assert messages[0].event_time == datetime.fromtimestamp(1_740_000_000, UTC)
    assert not any('"mapping"' in episode.text for episode in await sam.episodes())
    with pytest.raises(ImportRefused):
        await import_file(memory, file(tmp_path, {"a": [1]}, "odd.json"), "pat")
    assert await memory.user("pat").sessions() == []


async def test_custom_instructions_in_forty_conversations_are_nothing_that_was_said(
    memory: Memory, tmp_path: Path, clock: Clock
) -> None:
    """IMP-06"""
    export = [
        chatgpt(f"talk {n}", f"What about the kayak, number {n}?", "It floats.") for n in range(40)
    ]
    report = await import_file(memory, file(tmp_path, export), "sam")
    assert report.added == 80
    assert report.left_out["custom instructions"] == 40
    await consolidate(memory, now=clock.now)
    sam = memory.user("sam")
    episodes = await sam.episodes()
    assert len(episodes) == 80
    assert not any("Preferred name" in one.text or "verse" in one.text for one in episodes)
    assert min(one.event_time for one in episodes).year == 2025
    first = (await sam.session("talk 7").messages())[0]
    assert first.text == "What about the kayak, number 7?"
    assert await sam.facts() == []
    for query in ("What did the user say first?", "preferred name", "current date"):
        assert "1 March" not in (await sam.session("new").build_context(query)).text


async def test_old_statements_hold_from_when_they_were_made_and_not_from_the_import(
    memory: Memory, tmp_path: Path, clock: Clock
) -> None:
    """TIME-06"""
    clock.now = datetime(2026, 6, 1, tzinfo=UTC)
    path = lines(
        tmp_path,
        {"role": "user", "content": "I work at Northwind now.", "timestamp": "2022-11-16T10:00Z"},
        {
            "role": "user",
            "content": "I moved to Porto last week.",
            "timestamp": "2022-11-16T10:01Z",
        },
    )
    assert (await import_file(memory, path, "ann")).added == 2
    await consolidate(memory, now=clock.now)
    ann = memory.user("ann")
    facts = {fact.predicate: fact for fact in await ann.facts()}
    works, lives = facts["works_at"], facts["lives_in"]
    assert (works.object, works.valid_from) == ("Northwind", datetime(2022, 11, 16, 10, tzinfo=UTC))
    assert works.learnt_at == clock.now
    assert datetime(2022, 11, 7, tzinfo=UTC) <= lives.valid_from
    assert lives.valid_from < datetime(2022, 11, 16, tzinfo=UTC)
    assert await ann.facts(as_of=datetime(2022, 10, 1, tzinfo=UTC)) == []
    then = await ann.facts(as_of=datetime(2023, 6, 1, tzinfo=UTC))
    assert {fact.object for fact in then} == {"Northwind", "Porto"}


async def test_a_damaged_file_gives_its_good_lines_and_stays_as_it_is(
    memory: Memory, tmp_path: Path
) -> None:
    """DUR-02"""
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"role": "user", "content": "one"}\r\n'
        b"this is no JSON\r\n"
        b"\r\n"
        b'{"role": "assistant", "content": "two"}\r\n'
        b'{"role": "user", "content": "cut o'
    )
    before = path.read_bytes()
    report = await import_file(memory, path, "u1", session="s")
    assert report.added == 2
    assert [problem.where for problem in report.problems] == ["line 2", "line 5"]
    assert not report.complete
    assert [m.text for m in await memory.user("u1").session("s").messages()] == ["one", "two"]
    assert path.read_bytes() == before


async def test_an_emoji_that_was_written_as_an_escaped_pair_is_one_character(
    memory: Memory, tmp_path: Path
) -> None:
    """UNI-03, without a language model"""
    path = tmp_path / "escaped.jsonl"
    path.write_text('{"role": "user", "content": "I like \\ud83e\\udd8a."}\n', "ascii")
    await import_file(memory, path, "u1", session="s")
    user = memory.user("u1")
    (message,) = await user.session("s").messages()
    assert message.text == "I like \U0001f98a."
    await user.assert_fact("user", "likes", message.text[7:-1])
    assert [fact.object for fact in await user.facts()] == ["\U0001f98a"]
    assert [episode.text for episode in await user.episodes()] == [message.text]
    context = await user.session("t").build_context("What do I like?")
    assert "\U0001f98a".encode() in (await user.replay(context.snapshot_id or "")).data


async def test_control_tokens_in_a_file_are_text(memory: Memory, tmp_path: Path) -> None:
    """TOK-01"""
    path = lines(tmp_path, *({"role": "user", "content": text} for text in CONTROL))
    await import_file(memory, path, "u1", session="s")
    session = memory.user("u1").session("s")
    assert [message.text for message in await session.messages()] == CONTROL
    assert (await session.build_context("And now?")).messages[-1]["content"] == "And now?"


CLAUDE = [
    {
        "uuid": "c1",
        "name": "Tickets",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "",
                "content": [{"type": "text", "text": "hi"}],
                "created_at": "2025-03-04T09:00:00Z",
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "",
                "content": [
                    {"type": "thinking", "thinking": "I am a secret plan."},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "look_up", "input": {"地": "北京"}},
                ],
                "created_at": "2025-03-04T09:00:10Z",
            },
            {
                "uuid": "m3",
                "sender": "human",
                "text": "",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [{"type": "text", "text": "three tickets"}],
                    }
                ],
                "created_at": "2025-03-04T09:00:20Z",
            },
            {"uuid": "m4", "sender": "human", "text": "", "content": []},
        ],
    }
]


async def test_a_claude_export_survives_the_way_out_and_in_again(
    memory: Memory, tmp_path: Path
) -> None:
    """IMP-04, and the round trips of IMP-08"""
    report = await import_file(memory, file(tmp_path, CLAUDE), "u1")
    assert report.added == 3
    assert sum(report.left_out.values()) >= 1
    first = await memory.user("u1").session("c1").messages()
    assert [m.role.value for m in first] == ["user", "assistant", "tool"]
    assert [m.text for m in first] == ["hi", "I look.", "three tickets"]
    assert json.loads(first[1].tool_calls[0].arguments) == {"地": "北京"}
    assert first[2].tool_call_id == first[1].tool_calls[0].id == "t1"
    episodes = [one.text for one in await memory.user("u1").episodes()]
    assert not any("secret plan" in text for text in episodes)
    for name, exported in (("o", to_openai(first)), ("a", to_anthropic(first))):
        await import_file(memory, file(tmp_path, exported, f"{name}.json"), name, session="c1")
        second = await memory.user(name).session("c1").messages()
        for before, after in zip(first, second, strict=True):
            assert after.role is before.role
            assert after.text == before.text
            assert after.event_time == before.event_time
            assert after.tool_call_id == before.tool_call_id
            assert [(c.id, c.name, json.loads(c.arguments)) for c in after.tool_calls] == [
                (c.id, c.name, json.loads(c.arguments)) for c in before.tool_calls
            ]


async def test_imports_and_nights_embed_documents_with_the_configured_embedder(
    open_memory: Open, tmp_path: Path, clock: Clock
) -> None:
    """EMB-05"""
    embedder = StubEmbedder()
    path = lines(tmp_path, *({"role": "user", "content": f"体检 {n}"} for n in range(5)))
    async with open_memory(embedder=embedder) as memory:
        await import_file(memory, path, "u1", session="s")
        assert await memory.settled(PATIENCE)
        await consolidate(memory, now=clock.now)
        await memory.reembed()
        assert {role for role, _ in embedder.calls} == {"document"}
        assert sorted(embedder.embedded) == [f"体检 {n}" for n in range(5)]
        user = memory.user("u1")
        assert (await user.vectors(await user.episodes())).any(axis=1).all()
