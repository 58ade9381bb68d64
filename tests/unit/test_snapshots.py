"""Snapshots: what was built comes back equal, to the byte, is stored once, and cannot rot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.codec import decode, digest, encode
from memory.context import ContextParts, assemble
from memory.errors import Conflict, Corrupt, InvalidInput, NotFound, SchemaTooNew
from memory.journal import Journal, SnapshotStore
from memory.models import (
    Context,
    Dropped,
    Item,
    Message,
    Prefix,
    Recalled,
    RecordedMessage,
    Role,
    Scope,
    Summary,
    TokenCount,
    Window,
)
from memory.snapshots import Snapshots, context_of, diff, parts_of
from memory.snapshots.document import SCHEMA, _without_text, bytes_of, document_of
from memory.tokens import TokenCounter

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
ADA = Scope.of("acme", "ada")
COUNTER = TokenCounter()


def built(turns: int = 3, asked: str = "Where shall we eat?", **given: Any) -> Context:
    """A context with something of every tier."""
    roles = (Role.ASSISTANT, Role.USER)
    messages = [
        RecordedMessage(
            role=roles[n % 2],
            content=f"turn {n}: it was a fine day",
            id=f"m{n}",
            session="monday",
            seq=n,
            event_time=NOW,
            recorded_at=NOW,
        )
        for n in range(9, 9 + turns)
    ]
    episodes = [
        Recalled(
            tier="episodic",
            id=f"e{n}",
            text=f"I went to Porto in year {n}",
            score=0.5,
            scores={"meaning": 0.4, "words": 0.1 * n},
            reason="close in meaning",
            speaker="Ada",
            role=Role.USER,
            event_time=NOW - timedelta(days=n),
        )
        for n in range(1, 4)
    ]
    facts = [Recalled(tier="semantic", id="f1", text="user likes tea", score=0.2, valid_from=NOW)]
    return assemble(
        ContextParts(
            **{
                "window": Window(
                    messages=tuple(messages),
                    summary=Summary(text="They met.", covers_from=1, covers_to=8),
                ),
                "message": Message(role=Role.USER, content=asked),
                "system": "Be kind.",
                "facts": facts,
                "episodes": episodes,
                "dropped": [Dropped(tier="episodic", id="e9", text="no", score=0.1, reason="low")],
                "unavailable": ["semantic"],
                "warnings": ["a warning"],
                "budget": 2_000,
                "reserve": 100,
                "now": NOW,
                **given,
            }
        ),
        counter=COUNTER,
    )


TEXT = st.text(st.characters(), max_size=40)
LINES = st.lists(
    st.sampled_from(["- a", "02-03 a", "\\n- b", "\\", '"', "\ud800", "\x00", "中"]), max_size=6
).map("\n".join)
CONTENT = st.one_of(TEXT, LINES, LINES.map(lambda text: f"<memory-0a1b2c3d>\n{text}"))
ITEMS = st.builds(
    Item,
    tier=st.sampled_from(["working", "episodic", "semantic"]),
    id=st.sampled_from(["m1", "m2", "summary:1-8", "e1"]),
    text=CONTENT,
    tokens=st.integers(0, 99),
    score=st.sampled_from([0.0, 0.5, 1.0]),
    scores=st.dictionaries(st.sampled_from(["meaning", "words"]), st.sampled_from([0.0, 0.25])),
    reason=TEXT,
    rank=st.integers(0, 3),
)
DROPPED = st.builds(
    Dropped,
    tier=st.sampled_from(["working", "episodic"]),
    id=TEXT,
    text=CONTENT,
    reason=TEXT,
    scores=st.dictionaries(st.just("words"), st.sampled_from([0.0, 0.25])),
    rank=st.integers(0, 3),
    cause=st.none() | st.sampled_from(["over_budget", "superseded"]),
    by=st.none() | TEXT,
    missing=st.integers(0, 9),
)
TOOLS = st.lists(
    st.builds(lambda name: {"name": name, "input_schema": {"type": "object"}}, CONTENT), max_size=2
)
CONTEXTS = st.builds(
    Context,
    messages=st.lists(
        st.builds(
            lambda role, content: {"role": role, "content": content},
            st.sampled_from(["system", "user", "assistant", "tool"]),
            st.one_of(
                st.none(), CONTENT, CONTENT.map(lambda text: [{"type": "text", "text": text}])
            ),
        ),
        max_size=5,
    ).map(tuple),
    tokens=st.builds(TokenCount, total=st.integers(0, 99)),
    items=st.lists(ITEMS, max_size=5).map(tuple),
    tools=TOOLS.map(tuple),
    dropped=st.lists(DROPPED, max_size=3).map(tuple),
    prefix=st.none()
    | st.builds(Prefix, previous=TEXT, messages=st.integers(0, 9), tokens=st.integers(0, 9)),
    warnings=st.lists(TEXT, max_size=2).map(tuple),
)


@given(CONTEXTS)
def test_any_context_comes_back_equal_and_its_bytes_are_canonical(context: Context) -> None:
    data = bytes_of(parts_of(context))
    assert data == encode(document_of(context))
    assert context_of(data) == context


@given(CONTEXTS, CONTEXTS)
def test_a_diff_is_empty_only_between_equals(one: Context, other: Context) -> None:
    assert diff(one, one).is_empty
    if diff(one, other).is_empty:
        assert {i.id for i in one.items} == {i.id for i in other.items}
        assert one.tokens == other.tokens


def test_the_context_of_a_turn_shares_almost_all_parts_with_the_one_before() -> None:
    first, second = parts_of(built(turns=40)), parts_of(built(turns=42, asked="And tomorrow?"))
    new = [data for _, data in second if data not in {data for _, data in first}]
    assert len(second) > 45
    assert len(new) <= 7
    assert sum(map(len, new)) < 1_400


def test_what_was_said_on_days_of_their_own_is_stored_line_by_line() -> None:
    def said(days: Iterable[int]) -> list[Recalled]:
        return [
            Recalled(
                tier="episodic",
                id=f"e{n}",
                text=f"I went to Porto, the day was number {n} and a fine one.",
                score=0.5,
                speaker="Ada",
                role=Role.USER,
                event_time=NOW - timedelta(days=n),
            )
            for n in days
        ]

    def stored(days: Iterable[int]) -> list[bytes]:
        return [
            data
            for _, data in parts_of(built(episodes=said(days), budget=4_000))
            if b"Porto" in data
        ]

    first = stored(range(1, 70))
    lines = [data for data in first if b'"tier"' not in data]
    assert len(lines) == 69
    assert sum(b"2026-" in data or b"2025-" in data for data in lines) == 2
    without = stored(n for n in range(1, 70) if n != 20)
    assert len(set(without) - set(first)) == 1  # the one that the fence closes, whose name is new


def test_the_definitions_of_tools_and_pinned_facts_are_stored_once() -> None:
    tools = [{"name": f"tool-{n}", "input_schema": {"about": "x" * 400}} for n in range(5)]
    pinned = [Recalled(tier="semantic", id="p1", text="user is allergic to nuts", score=0.2)]
    first = built(turns=40, tools=tools, pinned=pinned)
    second = built(turns=42, tools=tools, pinned=pinned, asked="And tomorrow?")
    assert [item.id for item in first.items][:2] == ["p1", "summary:1-8"]
    for context in (first, second):
        assert context_of(bytes_of(parts_of(context))) == context
    known = {data for _, data in parts_of(first)}
    new = [data for _, data in parts_of(second) if data not in known]
    assert sum(map(len, new)) < 1_400
    assert sum(len(data) for _, data in parts_of(first)) > 5 * 400


SCHEMA_1 = Path(__file__).parent / "snapshot_schema_1.json"
"""The bytes of `built()` as version 1 of the document had them."""


def _told(context: Context) -> list[bytes]:
    """The messages that are not from memory: what stands around those was worded in another way
    then."""
    return [encode(m) for m in context.messages if "<memory-" not in str(m["content"])]


def test_bytes_of_the_first_schema_are_still_read() -> None:
    old = context_of(SCHEMA_1.read_bytes(), snapshot_id="s1")
    now = built()
    blocks = [str(m["content"]) for m in old.messages if "From memory" in str(m["content"])]
    assert "- 2026-" in blocks[0]  # episodes were written down in another way then
    assert _told(old) == _told(now)
    assert [item.id for item in old.items] == [item.id for item in now.items]
    assert [item.scores for item in old.items] == [item.scores for item in now.items]
    assert old.tokens.to_json() == decode(SCHEMA_1.read_bytes())["state"]["tokens"]
    assert [(each.id, each.cause) for each in old.dropped] == [
        (each.id, each.cause) for each in now.dropped
    ]
    assert (old.tools, old.prefix, {item.rank for item in old.items}) == ((), None, {0})
    assert (old.unavailable, old.warnings) == (now.unavailable, now.warnings)


def test_bytes_of_the_second_schema_are_still_read() -> None:
    old = context_of((Path(__file__).parent / "snapshot_schema_2.json").read_bytes())
    now = context_of(bytes_of(parts_of(built())))
    assert _told(old) == _told(now)
    assert [item.scores for item in old.items] == [item.scores for item in now.items]
    assert [item.id for item in old.items] == [item.id for item in now.items]
    assert any(item.scores for item in old.items)
    assert old.prefix == now.prefix
    assert {each.cause for each in old.dropped} == {each.cause for each in now.dropped}


def test_a_value_that_json_cannot_hold_is_refused_by_the_name_of_its_field() -> None:
    good = built()
    parts = [{"type": "image_url", "image_url": {"detail": float("inf")}}]
    bad = good.model_copy(update={"messages": (*good.messages, {"role": "user", "content": parts})})
    with pytest.raises(InvalidInput, match=r"entries\[\d+\]\.message\.content\[0\].*detail is inf"):
        parts_of(bad)
    odd = good.model_copy(update={"messages": ({"role": "user", "content": "x", "at": NOW},)})
    with pytest.raises(InvalidInput, match=r"message\.at is a datetime"):
        parts_of(odd)
    assert parts_of(good)


def test_content_parts_of_unknown_kinds_are_kept_as_they_are() -> None:
    part = {"type": "hologram", "depth": [1, {"big": 2**70, "text": "\ud800"}], "x": None}
    message = {"role": "user", "content": [part]}
    context = Context(messages=(message,), tokens=TokenCount())
    assert context_of(bytes_of(parts_of(context))).messages[0]["content"] == [part]


def test_a_newer_schema_is_refused_with_both_versions_and_what_is_none_is_corrupt() -> None:
    document = decode(bytes_of(parts_of(built())))
    newer = encode({**document, "schema": SCHEMA + 1, "from the future": True})
    with pytest.raises(SchemaTooNew, match=rf"'s1'.*{SCHEMA + 1}.*{SCHEMA}"):
        context_of(newer, snapshot_id="s1")
    for broken in (
        encode([]),
        encode({}),
        encode({**document, "schema": "1"}),
        encode({**document, "why": []}),
        encode({**document, "state": {**document["state"], "arms": []}}),
        encode({k: v for k, v in document.items() if k != "state"}),
        encode({**document, "entries": [{"message": "text"}]}),
        b"\xff",
    ):
        with pytest.raises(Corrupt):
            context_of(broken, snapshot_id="s1")
    assert context_of(encode(document)).messages


def test_a_diff_names_what_came_what_went_and_what_moved() -> None:
    def item(name: str, score: float = 0.5, text: str = "") -> Item:
        return Item(tier="episodic", id=name, text=text or name, tokens=1, score=score)

    def context(*items: Item, total: int = 10) -> Context:
        return Context(messages=(), items=items, tokens=TokenCount(total=total))

    found = diff(
        context(item("a"), item("b"), item("c"), item("d")),
        context(item("c"), item("b", score=0.9), item("e"), item("d", text="new"), total=12),
    )
    assert [each.id for each in found.added] == ["e", "d"]
    assert [each.id for each in found.removed] == ["a", "d"]
    assert {move.id: (move.place_before, move.place_after) for move in found.moved} == {
        "c": (2, 0),
        "b": (1, 1),
    }
    assert (found.tokens_before.total, found.tokens_after.total) == (10, 12)
    same = context(item("a"), item("b"))
    assert diff(same, same).is_empty
    assert diff(context(item("x"), item("a")), context(item("a"))).moved == ()  # only pushed up


# --- in a journal ------------------------------------------------------------------------------


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    async with Journal.open(url, timeout=timedelta(seconds=10)) as opened:
        yield opened


@pytest.fixture
def snapshots(journal: Journal) -> Snapshots:
    return Snapshots(SnapshotStore(journal))


async def test_what_was_recorded_is_shown_and_replayed(snapshots: Snapshots) -> None:
    context = built()
    await snapshots.record(ADA, "monday", context, snapshot_id="s1", now=NOW)
    assert await snapshots.show(ADA, "s1") == context.model_copy(update={"snapshot_id": "s1"})
    replay = await snapshots.replay(ADA, "s1")
    assert replay.data == encode(document_of(context))
    assert replay.digest == digest(replay.data)
    assert replay.verified
    assert (replay.session, replay.created_at) == ("monday", NOW)
    assert replay.context.messages == context.messages


async def test_each_snapshot_follows_the_newest_of_its_session(snapshots: Snapshots) -> None:
    for name, session in (("s1", "monday"), ("t1", "tuesday"), ("s2", "monday"), ("s3", "monday")):
        await snapshots.record(ADA, session, built(asked=name), snapshot_id=name, now=NOW)
    log = await snapshots.log(ADA, "monday")
    assert [(info.id, info.parent) for info in log] == [("s3", "s2"), ("s2", "s1"), ("s1", None)]
    assert [info.id for info in await snapshots.log(ADA, limit=2)] == ["s3", "s2"]
    assert [info.id for info in await snapshots.log(ADA, before="t1")] == ["s1"]
    changed = await snapshots.diff(ADA, "s1", "s3")
    assert changed.message_changed
    assert (changed.before, changed.after) == ("s1", "s3")


async def test_a_snapshot_is_nobody_elses(snapshots: Snapshots) -> None:
    await snapshots.record(ADA, "monday", built(), snapshot_id="s1", now=NOW)
    for other in (Scope.of("acme", "bob"), Scope.of("other", "ada")):
        for read in (snapshots.show, snapshots.replay):
            with pytest.raises(NotFound, match="s1"):
                await read(other, "s1")
        assert await snapshots.log(other) == []
    assert (await snapshots.show(ADA, "s1")).messages
    assert len(await snapshots.log(ADA)) == 1


async def test_recording_again_changes_nothing_and_another_under_its_id_is_refused(
    snapshots: Snapshots,
) -> None:
    for _ in range(2):
        await snapshots.record(ADA, "monday", built(), snapshot_id="s1", now=NOW)
    assert len(await snapshots.log(ADA)) == 1
    with pytest.raises(Conflict):
        await snapshots.record(ADA, "monday", built(asked="x"), snapshot_id="s1", now=NOW)


async def test_what_cannot_be_kept_leaves_nothing_behind(snapshots: Snapshots) -> None:
    bad = built().model_copy(update={"messages": ({"role": "user", "content": float("nan")},)})
    with pytest.raises(InvalidInput, match="content is nan"):
        await snapshots.record(ADA, "monday", bad, snapshot_id="s1", now=NOW)
    assert await snapshots.log(ADA) == []
    await snapshots.record(ADA, "monday", built(), snapshot_id="s1", now=NOW)
    assert len(await snapshots.log(ADA)) == 1


async def test_a_wrong_digest_is_noticed(journal: Journal, snapshots: Snapshots) -> None:
    parts = parts_of(built())
    for name, stored in (("good", digest(bytes_of(parts))), ("bad", digest(b"something else"))):
        await SnapshotStore(journal).save(
            ADA,
            "monday",
            snapshot_id=name,
            parent=None,
            created_at=NOW,
            parts=parts,
            digest=stored,
        )
    assert (await snapshots.replay(ADA, "good")).verified
    for read in (snapshots.replay, snapshots.show):
        with pytest.raises(Corrupt, match="'bad'"):
            await read(ADA, "bad")


def test_an_item_beside_its_message_is_all_of_it_but_the_text() -> None:
    plain = Item(tier="working", id="m1", text="hello", tokens=3, reason="recent turn")
    scored = Item(tier="episodic", id="e1", text="x", tokens=1, score=0.5, scores={"words": 0.5})
    for item in (plain, scored):
        assert _without_text(item) | {"text": item.text} == item.to_json()
