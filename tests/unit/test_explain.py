"""Explanations: everything that is in a context and everything that just missed it, in columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from memory.budget import ContextPolicy
from memory.explain import WIDTH, explain
from memory.models import Cause, Context, Dropped, Item, Prefix, TokenCount
from memory.snapshots.document import bytes_of, context_of, parts_of

TOKENS = TokenCount(
    tools=100,
    system=50,
    pinned=30,
    summary=70,
    turns=300,
    facts=60,
    episodes=90,
    memory=190,
    message=10,
    reserve=200,
    total=950,
    budget=1_000,
)


def fact(rank: int, text: str, **more: Any) -> Item:
    return Item(
        **{"tier": "semantic", "id": f"f{text}", "text": text, "tokens": 12, "rank": rank, **more}
    )


def episode(rank: int, text: str, **more: Any) -> Item:
    return fact(rank, text, **{"tier": "episodic", "id": f"e{text}", "score": 0.5, **more})


def turn(text: str, **more: Any) -> Item:
    given = {"tier": "working", "id": f"m{text}", "reason": "recent turn", **more}
    return fact(0, text, **given)


def miss(cause: Cause | None, text: str, **more: Any) -> Dropped:
    given = {"tier": "episodic", "id": f"d{text}", "text": text, "reason": "because", **more}
    return Dropped(cause=cause, **given)


def context(items: Iterable[Item] = (), dropped: Iterable[Dropped] = (), **more: Any) -> Context:
    given = {"messages": (), "tokens": TOKENS, "items": tuple(items), "dropped": tuple(dropped)}
    return Context(**{**given, **more})


def _cut(item: Item) -> Item:
    return item.model_copy(update={"text": f"{item.text[:8]} […]"})


def lines(explained: str) -> list[str]:
    assert all(cell_len(line) <= WIDTH for line in explained.splitlines())
    return explained.splitlines()


def numbers(explained: str) -> dict[str, list[str]]:
    """The rows of the table of sections, by name."""
    rows = [line.split() for line in lines(explained) if line.startswith("  ")]
    return {row[0]: row[1:3] for row in rows if len(row) > 2 and row[2].endswith("%")}


# --- the budget --------------------------------------------------------------------------------


def test_every_section_is_there_with_its_tokens_and_its_share() -> None:
    explained = explain(context())
    assert lines(explained)[0] == "950 of 1,000 tokens; 50 left"
    assert numbers(explained) == {
        "tools": ["100", "10.0%"],
        "system": ["50", "5.0%"],
        "pinned": ["30", "3.0%"],
        "summary": ["70", "7.0%"],
        "turns": ["300", "30.0%"],
        "memory": ["190", "19.0%"],
        "facts": ["60", "6.0%"],
        "episodes": ["90", "9.0%"],
        "around": ["40", "4.0%"],
        "message": ["10", "1.0%"],
        "reserve": ["200", "20.0%"],
    }
    bare = TokenCount(message=10, total=10, budget=20)
    assert numbers(explain(context(tokens=bare))).keys() == {"message"}


def test_sections_say_whether_they_wanted_more_and_with_the_policy_who_had_spare_room() -> None:
    built = context(
        [fact(1, "a"), episode(1, "b")],
        [
            miss("over_budget", "c", tier="semantic", rank=2),
            miss("over_budget", "d", tier="semantic", rank=3),
            miss("over_budget", "e", tier="working"),
            miss("below_floor", "f"),
        ],
    )
    rows = {line.split()[0]: line for line in lines(explain(built))[3:14] if line}
    assert "2 did not fit" in rows["facts"]
    assert "1 did not fit" in rows["turns"]
    assert "all that it wanted" in rows["episodes"]
    assert "spare" not in explain(built)
    whole = turn("we met. we left.", id="summary:1-9")
    for summary, note in ((whole, "all that it wanted"), (_cut(whole), "shortened")):
        (row,) = (r for r in lines(explain(context([summary]))) if r.startswith("  summary"))
        assert note in row
    told = explain(built, ContextPolicy())
    rows = {line.split()[0]: line for line in lines(told)[3:14] if line}
    assert "floor 192, ceiling 640; 108 of them spare room" in rows["turns"]  # of a room of 640
    assert "22 of them spare room" in rows["facts"]
    assert "spare" not in rows["episodes"]


def test_a_section_of_which_nothing_fits_says_so_and_blames_no_other() -> None:
    tokens = TOKENS.model_copy(update={"pinned": 0})
    missed = miss("over_budget", "a", tier="semantic", missing=9)
    told = lines(explain(context([fact(1, "b")], [missed], tokens=tokens)))
    rows = {line.split()[0]: line for line in told[3:14] if line}
    assert "1 did not fit" in rows["pinned"]
    assert "all that it wanted" in rows["facts"]


def test_in_a_small_room_the_floor_is_what_a_line_needs() -> None:
    tokens = TokenCount(facts=20, episodes=60, memory=90, message=10, total=100, budget=210)
    told = lines(explain(context(tokens=tokens), ContextPolicy()))
    rows = {line.split()[0]: line for line in told[3:14] if line}
    assert "floor 20," in rows["facts"]
    assert "spare" not in rows["facts"] + rows["episodes"]


# --- the prefix --------------------------------------------------------------------------------


def test_what_can_be_used_again_and_what_broke_it_is_told() -> None:
    prefix = Prefix(previous="s1", messages=12, tokens=600, broken_by="older turns were cut")
    told = " ".join(lines(explain(context(prefix=prefix))))
    assert "12 whole messages and 600 tokens (80% of what is sent) are as in snapshot s1." in told
    assert "What differs first: older turns were cut" in told
    assert "no context before this one" in explain(context())


# --- what is in it -----------------------------------------------------------------------------


def test_items_are_listed_by_tier_in_the_order_of_their_rank_with_what_made_them() -> None:
    told = lines(
        explain(
            context(
                [
                    turn("summed up", id="summary:1-9", reason="what is left of messages 1 to 9"),
                    turn("how are you"),
                    fact(1, "user lives in Lyon", score=0.84, scores={"named": 1.0, "cue": 0.0}),
                    episode(
                        2,
                        "second",
                        scores={"recency": 1, "words": 0.1, "meaning": 0.62},
                        reason="close",
                    ),
                    episode(1, "first", score=0.71),
                    fact(0, "user is called Ada"),
                ]
            )
        )
    )
    heads = [line for line in told if line and not line.startswith(" ")]
    assert heads[2:] == [
        "Always present (1, 12 tokens)",
        "Summary (1, 12 tokens)",
        "Recent turns (1, 12 tokens)",
        "Facts, best first (1, 12 tokens)",
        "Episodes, best first (2, 24 tokens)",
    ]
    assert "    #1  0.84     12  user lives in Lyon" in told
    assert told[told.index("    #1  0.84     12  user lives in Lyon") + 1].strip() == "named 1.00"
    first, second = (
        next(number for number, line in enumerate(told) if line.endswith(text))
        for text in ("first", "second")
    )
    assert first < second
    assert told[second + 1].strip() == "close; meaning 0.62, words 0.10, recency 1.00"


def test_of_many_turns_the_first_and_the_last_are_shown_and_the_others_counted() -> None:
    told = explain(context(turn(f"said {n:03}") for n in range(100)))
    shown = [line.split()[-1] for line in lines(told) if " said " in line]
    assert shown == ["000", "001", *(f"{n:03}" for n in range(94, 100))]
    assert "1,104  … 92 more of them …" in told
    few = explain(context(turn(f"said {n:03}") for n in range(9)))
    assert few.count(" said ") == 9
    assert "more of them" not in few
    cut = explain(context([turn("a", reason="shortened to fit")]))
    assert "shortened to fit" in cut


# --- what is not -------------------------------------------------------------------------------


def test_near_misses_are_grouped_by_cause_and_say_what_was_missing_and_what_stands_there() -> None:
    told = lines(
        explain(
            context(
                (),
                [
                    miss("below_floor", "far", score=0.12, rank=9, scores={"meaning": 0.2}),
                    miss("over_budget", "large", missing=12, tokens=40, rank=2),
                    miss("below_floor", "further", score=0.1, rank=10),
                    miss("superseded", "old", reason="superseded by 'new' on 2026-03-01", by="x"),
                ],
            )
        )
    )
    start = told.index("Near misses (4)")
    shown = [line.strip() for line in told[start + 1 :] if line]
    assert shown == [
        "Did not fit (1)",
        "#2  0.00     40  large",
        "episodic: over budget by 12 tokens: because",
        "Superseded (1)",
        "old",
        "episodic: superseded by 'new' on 2026-03-01",
        "Below the floor (2)",
        "#9  0.12         far",
        "episodic: because; meaning 0.20",
        "#10  0.10         further",
        "episodic: because",
    ]


def test_of_many_near_misses_of_one_cause_the_first_and_the_last_are_shown() -> None:
    many = [miss("over_budget", f"said {n:03}", tier="working", tokens=10) for n in range(100)]
    told = explain(context((), [*many, miss("archived", "once")]))
    shown = [line.split()[-1] for line in lines(told) if " said " in line]
    assert shown == ["000", "001", *(f"{n:03}" for n in range(94, 100))]
    assert "920  … 92 more of them …" in told
    assert "Did not fit (100)" in told
    assert "Archived (1)" in told


@pytest.mark.parametrize("cause", [*get_args(Cause), None])
def test_every_cause_has_its_heading(cause: Cause | None) -> None:
    told = lines(explain(context((), [miss(cause, "x")])))
    assert told[told.index("Near misses (1)") + 1].endswith(" (1)")


def test_silent_tiers_and_warnings_are_told() -> None:
    told = explain(
        context(unavailable=("episodic", "working"), warnings=("w " * 99,), snapshot_id="01J")
    )
    assert "Did not answer: episodic, working" in lines(told)
    assert sum(line.strip().startswith(("Warning: w", "w w")) for line in lines(told)) >= 2
    assert "Snapshot 01J" in told
    assert "Did not answer" not in explain(context())


# --- text --------------------------------------------------------------------------------------


def test_columns_stay_aligned_whatever_the_script() -> None:
    texts = [
        "plain",
        "乌龙茶很香" * 20,
        "👩\u200d👩\u200d👧 and 🐈" * 9,
        "שלום" * 30,
        "naïve",
        "\u0301x",
    ]
    told = lines(explain(context(episode(n, text) for n, text in enumerate(texts, start=1))))
    rows = [line for line in told if line.lstrip().startswith("#")]
    assert len(rows) == len(texts)
    assert {cell_len(row[: len("    #1  0.50     12  ")]) for row in rows} == {21}
    assert rows[1].endswith("…")


@given(st.text(st.characters() | st.sampled_from("\n\r\x1b\x00\u202e乌👩\ud83e"), max_size=300))
def test_stored_text_cannot_break_out_of_its_line(text: str) -> None:
    built = context(
        [episode(1, text, reason=text), turn(text)],
        [miss("superseded", text, reason=text)],
        warnings=(text,),
    )
    told = explain(built)
    heads = [line for line in lines(told) if line and not line.startswith(" ")]
    assert heads[2:5] == [
        "Recent turns (1, 12 tokens)",
        "Episodes, best first (1, 12 tokens)",
        "Near misses (1)",
    ]
    assert not set("\x1b\x00\u202e\r\ud83e") & set(told)


def test_very_long_texts_are_looked_at_by_their_beginning() -> None:
    told = explain(context([episode(1, "a" * 1_000_000)], warnings=["b" * 1_000_000]))
    assert len(told) < 8_000


# --- from a snapshot ---------------------------------------------------------------------------


def test_a_context_out_of_a_snapshot_is_explained_in_the_same_words() -> None:
    built = context(
        [fact(0, "a", score=0.5, scores={"cue": 0.8}, reason="asks for such a thing")],
        [miss(None, "b", tokens=3, score=0.1)],
        warnings=("one",),
    )
    assert explain(context_of(bytes_of(parts_of(built)))) == explain(built)
