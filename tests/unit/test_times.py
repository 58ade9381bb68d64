"""Times: one rule for zones, exact microseconds, clear refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import InvalidInput
from memory.times import as_utc, from_micros, iso, to_micros


@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_are_exact_both_ways(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment


def test_the_same_instant_reads_the_same_however_it_is_written() -> None:
    tokyo = datetime(2026, 5, 1, 19, tzinfo=timezone(timedelta(hours=9)))
    expected = datetime(2026, 5, 1, 10, tzinfo=UTC)
    for written in ("2026-05-01T10:00:00Z", "2026-05-01T19:00:00+09:00", tokyo, 1777629600.0):
        assert as_utc(written) == expected


def test_a_time_without_a_zone_is_read_as_utc() -> None:
    assert as_utc("2026-05-01T10:00:00") == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert as_utc(datetime(2026, 5, 1, 10)) == datetime(2026, 5, 1, 10, tzinfo=UTC)  # noqa: DTZ001


@pytest.mark.parametrize("value", ["", "yesterday", "2026-13-01", float("inf"), 1e300, None])
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        as_utc(value)  # type: ignore[arg-type]


def test_written_times_say_their_zone() -> None:
    assert iso(datetime(2026, 5, 1, 10, tzinfo=UTC)) == "2026-05-01T10:00:00Z"
