"""Groups, provider-sound order, what fits a budget, and what is folded."""

from __future__ import annotations

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import BudgetError
from memory.models import Message, RecordedMessage, Role, Summary, ToolCall, Window
from memory.window import (
    boundaries,
    fit,
    fold,
    gather,
    groups,
    lead,
    plan,
    plan_of_oldest,
    shown,
    sound,
    summary_limit,
)
from tests.conversations import (
    conversation,
    histories,
    said,
    size_of,
    small_talk,
    what_a_provider_refuses,
)


def seqs(messages: object) -> list[int]:
    return [message.seq for message in messages]  # type: ignore[attr-defined]


# --- groups ------------------------------------------------------------------------------------


def test_a_call_and_its_results_are_one_group_also_with_a_message_between():
    history = [
        said(1, "user", "go"),
        said(2, "assistant", calls=["c1", "c2"]),
        said(3, "tool", "one", answers="c1"),
        said(4, "assistant", "waiting for approval"),
        said(5, "tool", "two", answers="c2"),
        said(6, "user", "and?"),
    ]
    assert [seqs(group) for group in groups(history)] == [[1], [2, 3, 5], [4], [6]]


def test_a_result_belongs_to_the_newest_call_of_its_id():
    history = [
        said(1, "assistant", calls=["call_0"]),
        said(2, "tool", "old", answers="call_0"),
        said(3, "assistant", calls=["call_0"]),
        said(4, "tool", "new", answers="call_0"),
    ]
    assert [seqs(group) for group in groups(history)] == [[1, 2], [3, 4]]


def test_a_result_that_comes_before_its_call_is_alone():
    history = [said(1, "tool", "early", answers="c1"), said(2, "assistant", calls=["c1"])]
    assert [seqs(group) for group in groups(history)] == [[1], [2]]


@given(histories())
def test_every_message_is_in_exactly_one_group(history: list[RecordedMessage]):
    found = groups(history)
    assert sorted(seq for group in found for seq in seqs(group)) == seqs(history)
    assert [group[0].seq for group in found] == sorted(group[0].seq for group in found)
    for first, *rest in found:
        ids = {call.id for call in first.tool_calls}
        assert all(m.role is Role.TOOL and m.tool_call_id in ids for m in rest)


# --- sound -------------------------------------------------------------------------------------


def test_an_unanswered_call_gets_a_marked_synthetic_result_and_its_text_survives():
    history = [
        said(1, "user", "find tea"),
        said(2, "assistant", "Looking.", calls=["c1"]),
        said(3, "user", "are you there?"),
    ]
    assert what_a_provider_refuses(history)
    messages, notes = sound(history)
    assert what_a_provider_refuses(messages) == []
    assert [m.role.value for m in messages] == ["user", "assistant", "tool", "user"]
    assert messages[1].text == "Looking."
    assert messages[2].text == "[No result was recorded for this call of search.]"
    assert messages[2].metadata == {"synthetic": True}
    assert [note.message for note in notes] == [history[1]]


def test_results_move_up_to_their_call_and_what_was_between_follows():
    history = [
        said(1, "user", "book it"),
        said(2, "assistant", calls=["c1"]),
        said(3, "assistant", "waiting for approval"),
        said(4, "tool", "booked", answers="c1"),
        said(5, "user", "thanks"),
    ]
    messages, notes = sound(history)
    assert what_a_provider_refuses(messages) == []
    assert seqs(messages) == [1, 2, 4, 3, 5]
    assert notes == ()


def test_results_stand_in_the_order_of_the_calls():
    history = [
        said(1, "assistant", calls=["c1", "c2"]),
        said(2, "tool", "second", answers="c2"),
        said(3, "tool", "first", answers="c1"),
    ]
    assert seqs(sound(history).messages) == [1, 3, 2]


def test_a_result_without_its_call_is_left_out_and_the_reason_names_the_call():
    history = [said(1, "tool", "lost", answers="c9"), said(2, "user", "hm")]
    messages, notes = sound(history)
    assert seqs(messages) == [2]
    assert [(note.message.text, "c9" in note.reason) for note in notes] == [("lost", True)]


def test_of_two_results_of_one_call_the_newer_one_counts():
    history = [
        said(1, "assistant", calls=["c1"]),
        said(2, "tool", "pending", answers="c1"),
        said(3, "tool", "done", answers="c1"),
    ]
    messages, notes = sound(history)
    assert seqs(messages) == [1, 3]
    assert seqs(note.message for note in notes) == [2]


def test_calls_that_nothing_could_answer_are_left_out_but_the_text_stays():
    calls = (
        ToolCall(id="", name="search"),
        ToolCall(id="c1", name="a"),
        ToolCall(id="c1", name="b"),
    )
    texts = Message(role=Role.ASSISTANT, content="Looking.", tool_calls=calls[:1])
    only_call = Message(role=Role.ASSISTANT, tool_calls=calls[:1])
    twice = Message(role=Role.ASSISTANT, tool_calls=calls[1:])
    messages, notes = sound([texts, only_call, twice])
    assert what_a_provider_refuses(messages) == []
    assert [m.text for m in messages if m.role is Role.ASSISTANT] == ["Looking.", ""]
    assert [call.name for m in messages for call in m.tool_calls] == ["a"]
    assert len(notes) == 4


@pytest.mark.parametrize("nothing", [None, "", ()])
def test_an_assistant_message_with_calls_alone_is_sound_whatever_its_empty_content(nothing: object):
    history = [said(1, "assistant", nothing, calls=["c1"]), said(2, "tool", "ok", answers="c1")]
    assert sound(history).messages == history


@given(histories())
def test_what_sound_gives_is_accepted_by_a_strict_provider(history: list[RecordedMessage]):
    before = [message.model_copy(deep=True) for message in history]
    once = sound(history)
    assert what_a_provider_refuses(once.messages) == []
    assert history == before
    assert sound(once.messages) == (once.messages, ())
    if not what_a_provider_refuses(history):
        assert once.messages == history
    speech = [m.text for m in history if m.role is not Role.TOOL and m.text.strip()]
    assert [m.text for m in once.messages if m.role is not Role.TOOL and m.text.strip()] == speech


# --- fit ---------------------------------------------------------------------------------------


def test_for_every_budget_no_result_stands_without_its_call():
    history = [
        said(1, "user", "find tea"),
        said(2, "assistant", calls=["c1"]),
        said(3, "tool", "three places", answers="c1"),
        said(4, "assistant", "Three places."),
        said(5, "user", "book one"),
        said(6, "assistant", "Done."),
    ]
    all_tokens = sum(map(size_of, history))
    least = size_of(history[4])
    sizes = set()
    for budget in range(least, all_tokens + 1):
        kept, _, _, tokens = fit(history, budget, size_of)
        assert tokens == sum(map(size_of, kept)) <= budget
        assert what_a_provider_refuses(kept) == []
        assert 5 in seqs(kept)
        sizes.add(len(kept))
    assert fit(history, all_tokens, size_of) == (tuple(history), (), (), all_tokens)
    assert sizes == {1, 2, 3, 5, 6}


def test_the_newest_call_stays_with_its_result_and_the_older_group_goes_whole():
    history = [
        said(1, "system", "Be brief."),
        said(2, "user", "compare"),
        said(3, "assistant", calls=["c1"]),
        said(4, "tool", "a" * 3_000, answers="c1"),
        said(5, "assistant", calls=["c2"]),
        said(6, "tool", "b" * 6_000, answers="c2"),
    ]
    kept, dropped, shortened, tokens = fit(history, 7_000, size_of)
    assert seqs(kept) == [1, 2, 5, 6]
    assert seqs(note.message for note in dropped) == [3, 4]
    assert "tokens" in dropped[0].reason
    assert shortened == ()
    assert tokens <= 7_000


def test_a_result_that_is_too_large_by_itself_is_shortened_with_a_visible_mark():
    history = [
        said(1, "user", "read it"),
        said(2, "assistant", calls=["c1", "c2"]),
        said(3, "tool", "small", answers="c1"),
        said(4, "tool", "head" + "." * 90_000 + "tail", answers="c2"),
    ]
    kept, dropped, shortened, tokens = fit(history, 1_000, size_of)
    assert seqs(kept) == [1, 2, 3, 4]
    assert (kept[2], dropped) == (history[2], ())
    assert kept[3].text.startswith("head.")
    assert kept[3].text.endswith(".tail")
    assert "shortened" in kept[3].text
    assert "of 90008 characters left out" in kept[3].text
    assert 950 < tokens <= 1_000
    assert [note.message for note in shortened] == [history[3]]


def test_parts_that_are_not_text_are_named_in_a_shortened_result():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    large = [{"type": "text", "text": "a" * 5_000}, image]
    history = [
        said(1, "user", "look"),
        said(2, "assistant", calls=["c1"]),
        said(3, "tool", tuple(large), answers="c1"),
    ]
    kept = fit(history, 500, size_of).kept
    assert "1 parts that are not text" in kept[2].text


def test_the_latest_user_message_stays_though_newer_groups_do_not_fit():
    history = conversation(("user", "old"), ("user", "the question"), ("assistant", "a" * 500))
    kept, dropped, _, _ = fit(history, 60, size_of)
    assert seqs(kept) == [2]
    assert seqs(note.message for note in dropped) == [1, 3]
    assert fit(history, 60, size_of, keep_latest_user=False).kept == ()


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_stay_first_and_alone(role: str):
    history = [said(1, role, "Be brief."), *small_talk(24, first=2)]
    three = size_of(history[0]) + 2 * 20
    assert seqs(fit(history, three, size_of).kept) == [1, 24, 25]
    exactly = size_of(history[0]) + 20
    assert seqs(fit(history, exactly, size_of).kept) == [1, 24]


def test_what_must_stay_and_does_not_fit_is_an_error_with_both_numbers():
    history = [said(1, "system", "s" * 900), said(2, "user", "hello")]
    with pytest.raises(BudgetError) as caught:
        fit(history, 500, size_of)
    assert (caught.value.needed, caught.value.given) == (904 + 9, 500)


def test_nothing_fits_in_nothing():
    assert fit([], 0, size_of) == ((), (), (), 0)


@given(histories(), st.integers(0, 2_000))
def test_a_fit_is_within_its_budget_sound_and_in_order(history: list[RecordedMessage], budget: int):
    messages = sound(history).messages
    users = [m for m in messages if m.role is Role.USER]
    instructions = list(takewhile(lambda m: m.role in (Role.SYSTEM, Role.DEVELOPER), messages))
    needed = sum(map(size_of, [*instructions, *users[-1:]]))
    if needed > budget:
        with pytest.raises(BudgetError) as caught:
            fit(messages, budget, size_of)
        assert (caught.value.needed, caught.value.given) == (needed, budget)
        return
    kept, dropped, shortened, tokens = fit(messages, budget, size_of)
    assert tokens == sum(map(size_of, kept)) <= budget
    assert what_a_provider_refuses(kept) == []
    assert len(kept) + len(dropped) == len(messages)
    before = {id(note.message) for note in shortened}
    assert len([m for m in messages if any(m is k for k in kept)]) == len(kept) - len(before)
    assert all(any(m is must for m in kept) for must in [*instructions, *users[-1:]])
    assert fit(messages, budget, size_of) == (kept, dropped, shortened, tokens)


@given(histories(), st.integers(0, 2_000))
def test_whole_groups_are_kept_or_dropped(history: list[RecordedMessage], budget: int):
    try:
        kept = set(seqs(fit(history, budget, size_of).kept))
    except BudgetError:
        return
    for group in groups(history):
        assert set(seqs(group)) <= kept or not set(seqs(group)) & kept


# --- plan and fold -----------------------------------------------------------------------------


def test_a_window_within_its_limit_is_left_alone():
    window = gather(small_talk(10), size_of)
    assert plan(window, 200, size_of) == ()
    assert plan(window, 199, size_of) != ()


def test_a_window_knows_its_newest_message_also_when_only_the_summary_has_it():
    lead_alone = [said(1, "system", "Be brief.")]
    assert gather([], size_of).last_seq == 0
    assert gather(lead_alone, size_of).last_seq == 1
    summary = Summary(text="…", covers_from=2, covers_to=9, tokens=7)
    assert gather(lead_alone, size_of, summary=summary).last_seq == 9
    assert gather(lead_alone, size_of, summary=summary).tokens == size_of(lead_alone[0]) + 7
    assert gather([], size_of, last_seq=12).last_seq == 12


def test_a_plan_leaves_room_for_the_summary_and_for_the_next_turns():
    window = gather(small_talk(10), size_of)
    away = plan(window, 199, size_of)
    rest = sum(map(size_of, window.messages)) - sum(map(size_of, away))
    assert seqs(away) == [1, 2, 3, 4, 5]
    assert rest <= 199 - summary_limit(199, 10_000)


def test_the_instructions_that_opened_the_session_never_leave_the_window():
    history = [said(1, "system", "Be brief."), said(2, "developer", "No lists.")]
    history += small_talk(20, first=3)
    window = gather(history, size_of)
    away = plan(window, 300, size_of)
    assert lead(history) == 2
    assert away[0].seq == 3
    summary = Summary(text="…", covers_from=3, covers_to=away[-1].seq, tokens=1)
    after = fold(window, summary, size_of)
    assert seqs(after.messages)[:3] == [1, 2, away[-1].seq + 1]
    assert after.last_seq == 22
    assert after.tokens == sum(map(size_of, after.messages)) + 1


def test_a_group_is_folded_whole_or_not_at_all():
    history = [
        *small_talk(4),
        said(5, "assistant", calls=["c1"]),
        said(6, "assistant", "waiting"),
        said(7, "tool", "r" * 200, answers="c1"),
        *small_talk(2, first=8),
    ]
    for limit in range(60, 400):
        away = seqs(plan(gather(history, size_of), limit, size_of))
        assert len([seq for seq in away if 5 <= seq <= 7]) in (0, 3)


def test_an_open_call_is_not_folded_away_from_the_result_that_is_still_to_come():
    history = [*small_talk(20), said(21, "user", "go"), said(22, "assistant", calls=["c1"])]
    away = plan(gather(history, size_of), 100, size_of)
    assert 0 < len(away) <= 20
    more = [*history, *(said(n, "assistant", "still waiting " * 9) for n in range(23, 30))]
    assert max(seqs(plan(gather(more, size_of), 100, size_of))) < 22


def test_a_call_that_was_never_answered_does_not_keep_a_session_from_shrinking():
    history = [said(1, "user", "go"), said(2, "assistant", calls=["c1"]), *small_talk(30, first=3)]
    window = gather(history, size_of)
    away = plan(window, 300, size_of)
    assert 2 in seqs(away)
    assert window.tokens - sum(map(size_of, away)) <= 300


def test_the_newest_user_message_stays_while_the_window_can_hold_its_turn():
    turn = [said(21, "user", "go")]
    for number in range(22, 30, 2):
        turn += [
            said(number, "assistant", calls=[f"c{number}"]),
            said(number + 1, "tool", "r" * 10, answers=f"c{number}"),
        ]
    history = [*small_talk(20), *turn]
    size = sum(map(size_of, turn))
    assert seqs(plan(gather(history, size_of), size * 2, size_of))[-1] <= 20
    assert seqs(plan(gather(history, size_of), size, size_of))[-1] > 21


def oldest(messages: list[RecordedMessage], read: int) -> Window:
    """The window of these, of which only the first were read."""
    window = gather(messages, size_of)
    return window.model_copy(update={"messages": window.messages[:read]})


def test_of_a_long_window_the_oldest_tell_what_goes_first_and_of_a_short_one_they_do_not():
    history = [said(1, "system", "Be brief."), *small_talk(40, first=2)]
    part = plan_of_oldest(oldest(history, 11), 300, size_of, summary_tokens=50)
    assert seqs(part) == list(range(2, 12))
    assert set(seqs(part)) <= set(seqs(plan(gather(history, size_of), 300, size_of)))
    assert plan_of_oldest(oldest(history, 31), 300, size_of, summary_tokens=50) == ()


@given(histories(max_size=40), st.data())
def test_no_call_is_taken_from_the_oldest_without_a_result_that_it_has(
    history: list[RecordedMessage], data: st.DataObject
):
    read = data.draw(st.integers(0, len(history)))
    limit = data.draw(st.integers(0, 400))
    away = plan_of_oldest(oldest(history, read), limit, size_of, summary_tokens=limit // 4)
    gone = set(seqs(away))
    for first, *results in groups(history):
        for call in first.tool_calls if first.seq in gone else ():
            answers = [each.seq for each in results if each.tool_call_id == call.id]
            assert not answers or answers[0] in gone


def test_a_session_of_tool_traffic_shrinks():
    history = [said(1, "user", "go")]
    for number in range(2, 100, 2):
        history += [
            said(number, "assistant", calls=[f"c{number}"]),
            said(number + 1, "tool", "r" * 100, answers=f"c{number}"),
        ]
    window = gather(history, size_of)
    away = plan(window, 1_000, size_of)
    assert window.tokens - sum(map(size_of, away)) <= 750


def test_the_newest_group_stays_though_it_is_over_the_limit_alone():
    history = [*small_talk(4), said(5, "assistant", calls=["c1"])]
    history += [said(6, "tool", "r" * 9_000, answers="c1")]
    assert seqs(plan(gather(history, size_of), 500, size_of)) == [1, 2, 3, 4]


@given(histories(max_size=30), st.integers(10, 600))
def test_a_plan_is_the_oldest_part_and_tears_nothing(history: list[RecordedMessage], limit: int):
    window = gather(history, size_of)
    away = plan(window, limit, size_of)
    front = lead(history)
    assert list(away) == history[front : front + len(away)]
    assert away == () or window.tokens > limit
    gone = set(seqs(away))
    for group in groups(history[front:]):
        assert set(seqs(group)) <= gone or not set(seqs(group)) & gone


@given(st.integers(3, 40), st.integers(60, 600))
def test_after_a_fold_of_small_messages_the_window_is_within_its_limit(size: int, limit: int):
    window = gather(small_talk(size), size_of)
    away = plan(window, limit, size_of)
    if window.tokens > limit:
        most = summary_limit(limit, limit)
        summary = Summary(text="", covers_from=1, covers_to=away[-1].seq, tokens=most)
        after = fold(window, summary, size_of)
        assert after.tokens <= limit
        assert plan(after, limit, size_of) == ()


# --- what is shown while a summary is still to come ---------------------------------------------


def test_what_does_not_fit_is_left_out_and_counted_and_nothing_is_folded():
    history = [said(1, "system", "Be brief."), *small_talk(40, first=2)]
    summary = Summary(text="…", covers_from=2, covers_to=5, tokens=7)
    window = gather([history[0], *history[5:]], size_of, summary=summary)
    after = shown(window, 300, size_of)
    assert (after.summary, after.last_seq) == (summary, 41)
    assert seqs(after.messages)[0] == 1
    assert after.unsummarised == len(window.messages) - len(after.messages) > 0
    assert after.tokens == sum(map(size_of, after.messages)) + 7 <= 300
    assert shown(window, window.tokens, size_of) == window


def test_the_beginning_of_what_is_shown_moves_once_in_a_quarter_of_the_room():
    history = small_talk(200)
    begins = [
        shown(gather(history[:size], size_of), 400, size_of).messages[0].seq
        for size in range(21, 200)
    ]
    assert begins == sorted(begins)
    assert len(set(begins)) == 36  # of 179 windows; a quarter of the room is five messages


def test_of_a_window_that_was_read_in_part_the_same_is_shown():
    history = small_talk(200)
    whole = gather(history, size_of)
    part = whole.model_copy(update={"messages": whole.messages[136:], "unsummarised": 136})
    assert shown(part, 400, size_of) == shown(whole, 400, size_of)


def test_a_result_whose_call_was_left_out_is_left_out_too():
    history = small_talk(9)
    results = [said(10 + n, "tool", "r" * 30, answers="c1") for n in range(4)]
    window = gather([*history[:2], *results, said(14, "user", "and?")], size_of)
    part = window.model_copy(update={"unsummarised": 7})
    assert seqs(shown(part, 120, size_of).messages) == [14]


@given(histories(max_size=30), st.integers(10, 600))
def test_what_is_shown_is_the_newest_part_and_tears_nothing(
    history: list[RecordedMessage], limit: int
):
    window = gather(history, size_of)
    after = shown(window, limit, size_of)
    front = lead(history)
    kept = after.messages[front:]
    assert list(after.messages) == [*history[:front], *history[len(history) - len(kept) :]]
    assert after.unsummarised == len(history) - len(after.messages)
    assert after.tokens == sum(map(size_of, after.messages))
    there = set(seqs(kept))
    for group in groups(history[front:]):
        assert set(seqs(group)) <= there or not set(seqs(group)) & there


def test_boundaries_are_where_no_group_is_torn():
    history = [
        said(1, "user", "go"),
        said(2, "assistant", calls=["c1"]),
        said(3, "assistant", "waiting"),
        said(4, "tool", "done", answers="c1"),
        said(5, "user", "thanks"),
    ]
    assert boundaries(history) == [1, 4, 5]
    assert boundaries([]) == []
