"""What is kept of users in memory: always what reading it anew would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.bm25 import Said
from memory.places import Places
from memory.shelf import Asked, Kept, Shelf
from tests.ranking import Journal, conversation, episode, key_of

FEW = settings(max_examples=30)
WORDS = ("kayak", "lamp", "tax")
TEXTS = ("kayak", "lamp tax", "kayak kayak lamp", "tax", "")


def keys() -> list[int]:
    return [key_of(word) for word in WORDS]


def postings(journal: Journal, kept: Kept) -> dict[int, dict[int, int]]:
    """How often which episode says each term, as it is kept."""
    places = kept.places
    saying = journal.saying(keys())
    found = kept.postings(places, saying, journal.read_terms)
    return {
        key: {
            int(places.n[at]): times
            for at, times in zip(places.of_ordinals(which).tolist(), often.tolist(), strict=True)
        }
        for key, (which, often) in found.items()
    }


def expected(journal: Journal) -> dict[int, dict[int, int]]:
    found: dict[int, dict[int, int]] = {key: {} for key in keys()}
    for key, n, times in journal.postings(keys()):
        found[key][n] = times
    return found


def assert_current(journal: Journal, kept: Kept) -> None:
    anew = Places.of(journal.rows(), journal.edition)
    assert kept.places.edition == journal.edition
    assert kept.places.n.tolist() == anew.n.tolist()
    assert kept.places.after.tolist() == anew.after.tolist()
    assert postings(journal, kept) == expected(journal)


# --- places and postings -----------------------------------------------------------------------


CHANGES = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("abc"), st.sampled_from(TEXTS)),
    st.tuples(st.just("archive"), st.integers(1, 12), st.just("")),
    st.tuples(st.just("unarchive"), st.integers(1, 12), st.just("")),
    st.tuples(st.just("reindex"), st.just(0), st.just("")),
    st.tuples(st.just("ask"), st.just(0), st.just("")),
)


@settings(max_examples=60)
@given(st.lists(CHANGES, max_size=25))
def test_whatever_happens_in_between_it_is_what_reading_anew_gives(
    changes: list[tuple[str, int | str, str]],
) -> None:
    journal, shelf = Journal(conversation("kayak", "lamp kayak", "fine")), Shelf()
    for what, which, text in changes:
        count = len(journal.episodes) + 1
        if what == "add":
            journal.add([episode(f"n{count}", text, session=str(which), seq=count)])
        elif (
            what == "archive"
            and int(which) in range(1, count)
            and int(which) not in (journal.archived)
        ):
            journal.archive(int(which))
        elif what == "unarchive" and int(which) in journal.archived:
            journal.unarchive(int(which))
        elif what == "reindex":
            journal.reindex()
        else:
            assert_current(journal, journal.kept(shelf))
    assert_current(journal, journal.kept(shelf))


def test_only_what_came_since_is_read() -> None:
    journal, shelf = Journal(conversation("kayak", "lamp")), Shelf()
    postings(journal, journal.kept(shelf))
    assert journal.reads == [("places", 0), ("postings", 0)]
    journal.reads.clear()
    postings(journal, journal.kept(shelf))
    assert journal.reads in (
        [],
        [("postings", 0)],
    )  # a term that nobody says may be looked for again
    journal.reads.clear()
    journal.add(conversation("kayak and lamp", session="tuesday"))
    kept = journal.kept(shelf)
    assert journal.reads == [("places", 2)]
    assert postings(journal, kept) == expected(journal)
    assert ("postings", 0) not in journal.reads[2:]


def test_what_comes_back_from_the_archive_stands_where_it_stood() -> None:
    journal, shelf = Journal(conversation("kayak", "lamp", "kayak lamp")), Shelf()
    assert_current(journal, journal.kept(shelf))
    journal.archive(2)
    assert_current(journal, journal.kept(shelf))
    journal.unarchive(2)
    journal.add(conversation("tax", first=4))
    assert_current(journal, journal.kept(shelf))


def test_one_that_comes_back_while_another_goes_is_not_taken_for_it() -> None:
    journal, shelf = Journal(conversation("kayak", "lamp", "kayak lamp")), Shelf()
    journal.archive(1)
    assert_current(journal, journal.kept(shelf))
    journal.unarchive(1)
    journal.archive(3)
    assert_current(journal, journal.kept(shelf))


def test_a_question_that_was_read_before_is_answered_from_what_was_there_then() -> None:
    """Between reading what is said and looking at candidates others ask, and more is stored."""
    journal = Journal([*conversation("kayak", "fine"), episode("late", "lamp", session="z")])
    shelf = Shelf()
    before: Said = journal.said("kayak lamp", journal.kept(shelf))
    here = [before.places.n[at] for at in before.best(5)]
    journal.add(conversation("the kayak and the lamp", first=3))  # moves `late` behind it
    journal.said("kayak lamp", journal.kept(shelf))
    assert [before.places.n[at] for at in before.best(5)] == here == [1, 3]


def test_a_reader_of_an_older_snapshot_leaves_nothing_wrong_behind() -> None:
    journal, shelf = Journal(conversation("kayak", "lamp", "kayak lamp")), Shelf()
    old_asked, old_rows, old_said = journal.asked(), journal.rows(), journal.saying(keys())
    old_postings = journal.postings(keys())
    journal.add(conversation("kayak tax", first=4))
    assert_current(journal, journal.kept(shelf))
    behind = shelf.of(old_asked, lambda after: [row for row in old_rows if row.n > after])
    behind.postings(
        behind.places,
        old_said,
        lambda wanted, after: [r for r in old_postings if r[0] in wanted and r[1] > after],
    )
    assert_current(journal, journal.kept(shelf))


def test_threads_that_ask_at_once_all_find_what_is_there() -> None:
    shelf = Shelf()
    texts = [WORDS[n % 3] for n in range(60)]

    def asks(upto: int) -> tuple[int, list[int]]:
        """Of a user whose journal has so many episodes, as that thread sees it."""
        journal = Journal(conversation(*texts[:upto]))
        found = journal.said("kayak lamp tax", journal.kept(shelf))
        there = found.places.n[found.own[0]]
        return upto, sorted(there.tolist())

    with ThreadPoolExecutor(8) as pool:
        for upto, found in pool.map(asks, [*range(1, 61)] * 4):
            assert found[:upto] == list(range(1, upto + 1))
            assert all(n <= 60 for n in found)
    assert asks(60) == (60, list(range(1, 61)))


# --- room --------------------------------------------------------------------------------------


def rows_are_read(journal: Journal, shelf: Shelf, user: int) -> bool:
    journal.reads.clear()
    journal.kept(shelf, user)
    return bool(journal.reads)


def test_the_user_who_was_asked_about_longest_ago_goes_first() -> None:
    journal = Journal(conversation(*["kayak"] * 10))
    shelf = Shelf(room=2 * journal.kept().size)
    for user in (1, 2):
        journal.kept(shelf, user)
    assert not rows_are_read(journal, shelf, 1)
    assert rows_are_read(journal, shelf, 3)
    assert not rows_are_read(journal, shelf, 1)
    assert rows_are_read(journal, shelf, 2)


def test_the_one_who_asks_is_kept_however_little_room_there_is() -> None:
    journal, shelf = Journal(conversation("kayak")), Shelf(room=0)
    for user in (1, 2, 1):
        assert rows_are_read(journal, shelf, user)
        assert not rows_are_read(journal, shelf, user)


class Vectors:
    """A reading function over vectors in memory, and what it was asked for."""

    def __init__(self, rows: Mapping[int, Sequence[float]]) -> None:
        self.rows = dict(rows)
        self.asked: list[list[int]] = []

    def __call__(self, numbers: Sequence[int]) -> dict[int, bytes]:
        self.asked.append(list(numbers))
        return {n: np.array(self.rows[n], dtype="<f4").tobytes() for n in numbers if n in self.rows}


class Ids:
    """A reading function over ids in memory, and what it was asked for."""

    def __init__(self, **known: int) -> None:
        self.known = known
        self.asked: list[list[str]] = []

    def __call__(self, ids: Sequence[str]) -> dict[str, int]:
        self.asked.append(list(ids))
        return {key: self.known[key] for key in ids if key in self.known}


def test_everything_that_is_kept_takes_room() -> None:
    journal = Journal(conversation("kayak", "lamp"))
    kept = journal.kept()
    sizes = [kept.size]
    journal.said("kayak", kept)
    sizes.append(kept.size)
    kept.vectors([1, 2], 1, 2, Vectors({1: [1.0, 0.0], 2: [0.0, 1.0]}))
    sizes.append(kept.size)
    kept.numbers(["e1"], Ids(e1=1))
    sizes.append(kept.size)
    assert sizes == sorted(set(sizes))


# --- vectors and ids ---------------------------------------------------------------------------


@FEW
@given(st.lists(st.lists(st.integers(1, 30), unique=True), max_size=8))
def test_vectors_are_those_of_the_numbers_in_their_order(asked: list[list[int]]) -> None:
    rows = {n: [float(n), 0.5, -float(n)] for n in range(1, 31) if n % 3}
    kept, read = Journal().kept(), Vectors(rows)
    for numbers in asked:
        found, matrix = kept.vectors(numbers, 7, 3, read)
        assert found == [n for n in numbers if n % 3]
        assert matrix.tolist() == [rows[n] for n in found]
        assert matrix.shape == (len(found), 3)
    there = [n for call in read.asked for n in call if n in rows]
    assert len(there) == len(set(there))  # what is there is read once


def test_vectors_of_two_spaces_are_told_apart() -> None:
    kept = Journal().kept()
    small, large = Vectors({1: [1.0, 2.0], 2: [3.0, 4.0]}), Vectors({1: [5.0, 6.0, 7.0]})
    assert kept.vectors([1, 2], 1, 2, small)[1].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert kept.vectors([1, 2], 2, 3, large)[0] == [1]
    assert kept.vectors([1], 2, 3, large)[1].tolist() == [[5.0, 6.0, 7.0]]
    assert kept.vectors([2], 1, 2, small)[1].tolist() == [[3.0, 4.0]]


def test_a_vector_that_was_made_later_is_found() -> None:
    kept = Journal().kept()
    assert kept.vectors([1], 1, 2, Vectors({}))[0] == []
    assert kept.vectors([1], 1, 2, Vectors({1: [1.0, 2.0]}))[0] == [1]


def passages_of(kept: Kept, numbers: Sequence[int]) -> dict[int, list[list[float]]]:
    """The vectors of passages by number."""
    found = kept.passages(numbers, 1)
    each = np.split(found.rows, found.first[1:])
    return {numbers[at]: rows.tolist() for at, rows in zip(found.of.tolist(), each, strict=False)}


def test_passages_are_those_of_the_numbers_and_the_whole_is_no_passage() -> None:
    kept = Journal().kept()
    rows = {n: [float(n), 0.0] * (1 + n % 4) for n in range(1, 40)}
    for row in rows.values():
        row[1::2] = [float(at) for at in range(len(row) // 2)]
    read = Vectors(rows)
    assert passages_of(kept, [1, 2]) == {}
    for asked in ([7, 4, 5], list(range(1, 40)), [8, 4]):
        found, wholes = kept.vectors(asked, 1, 2, read)
        assert (found, wholes.tolist()) == (asked, [[float(n), 0.0] for n in asked])
        assert passages_of(kept, asked) == {
            n: [[float(n), float(at)] for at in range(1, 1 + n % 4)] for n in asked if n % 4
        }
    assert passages_of(kept, [40, 4]) == {}
    assert kept.passages([1], 2).of.tolist() == []


def test_passages_take_room() -> None:
    short, long = Journal().kept(), Journal().kept()
    short.vectors([1], 1, 2, Vectors({1: [1.0, 0.0]}))
    long.vectors([1], 1, 2, Vectors({1: [1.0, 0.0] * 100}))
    assert long.size >= short.size + 99 * 2 * 4


def test_vectors_that_were_given_out_stay_as_they_are() -> None:
    kept = Journal().kept()
    rows = Vectors({n: [float(n)] for n in range(1, 100)})
    _, before = kept.vectors([1], 1, 1, rows)
    kept.vectors(list(range(1, 100)), 1, 1, rows)
    assert before.tolist() == [[1.0]]


def test_numbers_of_ids_are_read_once_and_unknown_ids_are_left_out() -> None:
    kept, read = Journal().kept(), Ids(a=1, b=2)
    assert kept.numbers(["b", "nobody", "a"], read) == [2, 1]
    assert kept.numbers(["a", "b"], read) == [1, 2]
    assert read.asked == [["b", "nobody", "a"]]
    read.known["nobody"] = 3
    assert kept.numbers(["nobody"], read) == [3]


def test_places_and_vectors_of_one_user_are_not_those_of_another() -> None:
    shelf = Shelf()
    one, other = Journal(conversation("kayak")), Journal(conversation("lamp", "tax"))
    first, second = one.kept(shelf, user=1), other.kept(shelf, user=2)
    assert (len(first.places), len(second.places)) == (1, 2)
    first.vectors([1], 1, 1, Vectors({1: [1.0]}))
    assert second.vectors([1], 1, 1, Vectors({}))[0] == []
    assert shelf.of(Asked(1, 1, 0), one.read_rows) is first


@pytest.mark.parametrize("change", ["archive", "unarchive"])
def test_who_is_still_reading_the_former_edition_leaves_nothing_wrong_behind(change: str) -> None:
    journal, shelf = Journal(conversation("kayak", "lamp", "kayak lamp")), Shelf()
    if change == "unarchive":
        journal.archive(1)
    late = journal.kept(shelf)
    places, said, rows = late.places, journal.saying(keys()), journal.postings(keys())
    if change == "archive":
        journal.archive(1)
    else:
        journal.unarchive(1)
    assert len(journal.kept(shelf).places) == len(journal.rows())
    late.postings(
        places,
        said,
        lambda wanted, after: [row for row in rows if row[0] in wanted and row[1] > after],
    )
    assert_current(journal, journal.kept(shelf))
    journal.add(conversation("kayak tax", first=4))
    assert_current(journal, journal.kept(shelf))
