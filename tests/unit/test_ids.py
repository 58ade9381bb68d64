"""ULIDs sort by time and carry their entropy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory.ids import ulid

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_later_ids_sort_later() -> None:
    ids = [ulid(NOW + timedelta(milliseconds=i), b"\xff" * 10) for i in range(5)]
    assert ids == sorted(ids)
    assert {len(each) for each in ids} == {26}


def test_ids_of_one_moment_differ_by_their_entropy() -> None:
    assert ulid(NOW, bytes(10)) != ulid(NOW, bytes(9) + b"\x01")


def test_a_known_value() -> None:
    assert ulid(datetime(1970, 1, 1, tzinfo=UTC), bytes(10)) == "0" * 26
    with pytest.raises(ValueError, match="10 bytes"):
        ulid(NOW, b"")
