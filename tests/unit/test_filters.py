"""Filters: what passes, what does not, what is refused; checked against a second implementation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import filters
from memory.errors import InvalidFilter
from memory.models import Episode, Role, Scope

ROWS: list[dict[str, Any]] = [
    {"id": 1, "status": "archived", "count": 1, "lang": "en"},
    {"id": 2, "status": "archived", "count": 2, "lang": "zh"},
    {"id": 3, "status": "open", "count": 3, "lang": "en"},
    {"id": 4, "status": "open", "count": 4, "lang": "zh"},
    {"id": 5, "count": 5, "lang": "en"},
    {"id": 6, "status": None, "count": 6, "lang": "en"},
]


def passing(where: dict[str, Any] | None) -> list[int]:
    accepts = filters.compile(where)
    return [row["id"] for row in ROWS if accepts(row)]


@pytest.mark.parametrize("where", [None, {}, {"$and": [{}]}])
def test_no_condition_lets_every_row_through(where: dict[str, Any] | None) -> None:
    assert passing(where) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"status": "archived"}, [1, 2]),
        ({"status": {"$eq": "open"}}, [3, 4]),
        ({"status": "open", "lang": "zh"}, [4]),
        ({"count": {"$gt": 2, "$lte": 4}}, [3, 4]),
        ({"count": {"$gte": 5}}, [5, 6]),
        ({"count": {"$lt": 2}}, [1]),
        ({"lang": {"$in": ["zh", "fr"]}}, [2, 4]),
        ({"lang": {"$in": []}}, []),
        ({"lang": {"$nin": []}}, [1, 2, 3, 4, 5, 6]),
        ({"$or": [{"count": 1}, {"lang": "zh"}]}, [1, 2, 4]),
        ({"$and": [{"lang": "en"}, {"count": {"$gt": 1}}]}, [3, 5, 6]),
        ({"$nor": [{"lang": "zh"}, {"count": 1}]}, [3, 5, 6]),
        ({"status": {"$exists": True}}, [1, 2, 3, 4, 6]),
        ({"status": {"$exists": False}}, [5]),
        ({"status": None}, [6]),
    ],
)
def test_every_operator_selects_exactly_the_rows_it_says(
    where: dict[str, Any], ids: list[int]
) -> None:
    assert passing(where) == ids


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"status": {"$ne": "archived"}}, [3, 4, 5, 6]),
        ({"status": {"$nin": ["archived", "open"]}}, [5, 6]),
        ({"status": {"$not": {"$eq": "archived"}}}, [3, 4, 5, 6]),
        ({"$not": {"status": "archived"}}, [3, 4, 5, 6]),
        ({"$not": {"count": {"$gt": 5}}, "lang": "en"}, [1, 3, 5]),
        ({"$not": {"$not": {"status": "archived"}}}, [1, 2]),
        ({"$not": {}}, []),
    ],
)
def test_a_negation_is_the_exact_complement_and_true_for_a_missing_field(
    where: dict[str, Any], ids: list[int]
) -> None:
    assert passing(where) == ids


CONDITION = st.one_of(
    st.builds(
        lambda name, op, value: {name: {op: value}},
        st.sampled_from(["status", "count", "lang", "absent"]),
        st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
        st.sampled_from(["open", "archived", "en", 1, 3, 4.0]),
    ),
    st.builds(lambda name, found: {name: {"$exists": found}}, st.just("status"), st.booleans()),
)
FILTER = st.recursive(
    CONDITION,
    lambda inner: st.one_of(
        st.builds(
            lambda op, each: {op: each},
            st.sampled_from(["$and", "$or", "$nor"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        inner.map(lambda each: {"$not": each}),
    ),
    max_leaves=8,
)


@given(FILTER)
def test_not_splits_the_rows_in_two_whatever_the_filter(where: dict[str, Any]) -> None:
    assert sorted(passing(where) + passing({"$not": where})) == [1, 2, 3, 4, 5, 6]


@given(FILTER, FILTER)
def test_another_condition_never_widens(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert set(passing({"$and": [one, other]})) == set(passing(one)) & set(passing(other))
    assert set(passing({"$or": [one, other]})) == set(passing(one)) | set(passing(other))


@pytest.mark.parametrize(
    "where",
    [
        {"status": {"$regex": "a"}},
        {"status": {"$contains": "a"}},
        {"$xor": [{"a": 1}]},
        {"$and": []},
        {"$or": []},
        {"$or": {"a": 1}},
        {"$and": ["a"]},
        {"$not": [{"a": 1}]},
        {"a": {}},
        {"a": {"$eq": 1, "b": 2}},
        {"a": {"b": {"$gt": 1}}},
        {"a": {"$in": "text"}},
        {"a": {"$exists": 1}},
        {"a": {"$gt": True}},
        {"a": {"$gt": None}},
        {"a": float("nan")},
        {"a": {"$in": [float("inf")]}},
        {"a": object()},
        {"": 1},
        {1: 1},
        ["a"],
        "status = 'open'",
    ],
)
def test_what_is_no_filter_is_refused_and_never_ignored(where: Any) -> None:
    with pytest.raises(InvalidFilter):
        filters.compile(where)


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(InvalidFilter, match=r"'status'.*\$regex"):
        filters.compile({"status": {"$regex": "x"}})


def test_a_filter_that_nests_without_end_is_refused() -> None:
    where: dict[str, Any] = {"a": 1}
    deep: list[Any] = []
    for _ in range(5_000):
        where = {"$not": where}
        deep = [deep]
    with pytest.raises(InvalidFilter, match="deep"):
        filters.compile(where)
    with pytest.raises(InvalidFilter, match="deep"):
        filters.compile({"a": deep})
    filters.compile({"$not": {"$not": {"a": [[1]]}}})  # some depth is fine


@pytest.mark.parametrize(
    ("value", "operand", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        (True, True, True),
        ("1", 1, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([True], [1], False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("é", "e\u0301", False),
        (2**60, 2**60, True),
        (2**60, 2**60 + 1, False),
    ],
)
def test_equality_is_strict_about_types(value: Any, operand: Any, same: bool) -> None:
    assert filters.compile({"x": operand})({"x": value}) is same


def test_times_compare_as_moments_however_they_are_written() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    row = {"at": noon, "text": "2026-05-01T14:00:00+02:00"}
    tokyo = noon.astimezone(timezone(timedelta(hours=9)))
    assert filters.compile({"at": tokyo})(row)
    assert filters.compile({"text": noon})(row)
    assert filters.compile({"at": {"$gte": "2026-05-01T12:00:00"}})(row)  # without a zone: UTC
    assert filters.compile({"at": {"$lt": "2026-05-01T12:00:00.000001Z"}})(row)
    assert not filters.compile({"at": {"$gt": "2026-05-01T12:00:00Z"}})(row)
    assert not filters.compile({"at": {"$gt": "yesterday"}})(row)


def test_values_of_kinds_without_an_order_are_neither_more_nor_less() -> None:
    for found in ("a", None, True, [1], {"a": 1}):
        row = {"x": found}
        assert not filters.compile({"x": {"$gt": 0}})(row)
        assert not filters.compile({"x": {"$lte": 0}})(row)
    assert filters.compile({"x": {"$gt": 0}})({"x": 1})


def test_dots_look_inside_objects_unless_a_field_has_that_very_name() -> None:
    inside = filters.compile({"a.b": 1})
    assert inside({"a": {"b": 1}})
    assert inside({"a.b": 1, "a": {"b": 2}})
    assert not inside({"a": {"c": 1}})
    assert not inside({"a": 1})
    assert filters.compile({"a.b": {"$exists": False}})({"a": [1]})


def test_changing_the_mapping_afterwards_changes_nothing() -> None:
    allowed = ["en"]
    accepts = filters.compile({"lang": {"$in": allowed}})
    allowed.append("zh")
    assert not accepts({"lang": "zh"})
    assert accepts({"lang": "en"})


def test_an_episodes_own_fields_cannot_be_faked_by_its_metadata() -> None:
    episode = Episode(
        id="e1",
        session="monday",
        message_id="m1",
        seq=3,
        role=Role.USER,
        speaker="Ada",
        text="hello",
        event_time=datetime(2026, 1, 2, tzinfo=UTC),
        recorded_at=datetime(2026, 1, 3, tzinfo=UTC),
        metadata={"session": "faked", "user": "eve", "lang": "en", "agent": "faked"},
    )
    row = filters.view(episode, Scope.of("acme", "ada"))
    assert filters.compile({"session": "monday", "user": "ada", "tenant": "acme"})(row)
    assert filters.compile({"lang": "en", "role": "user", "seq": {"$gt": 2}})(row)
    assert filters.compile({"metadata.session": "faked"})(row)
    assert not filters.compile({"session": "faked"})(row)
    assert not filters.compile({"$or": [{"user": "eve"}, {"session": "faked"}]})(row)
    assert filters.compile({"agent": {"$exists": False}})(row)
    assert filters.compile({"event_time": {"$lt": "2026-01-03"}})(row)
