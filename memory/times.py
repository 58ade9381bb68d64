"""Times: aware datetimes in UTC inside, integer microseconds since 1970 at a store's edge.

A time without a zone is read as UTC. That is the one documented rule for every importer and call.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memory.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970-01-01T00:00Z. Exact, also before 1970."""
    return (as_utc(moment) - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The moment that `to_micros` was given."""
    return _EPOCH + micros * _MICROSECOND


def as_utc(value: datetime | str | float) -> datetime:
    """A datetime, an ISO 8601 string or seconds since 1970, as an aware datetime in UTC.

    Without a zone it is read as UTC. Raises InvalidInput for anything else.
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float):
            return _EPOCH + timedelta(seconds=value)
        if value.tzinfo is None:
            return value.replace(tzinfo=UTC)
        return value.astimezone(UTC)
    except (ValueError, OverflowError, AttributeError) as error:
        raise InvalidInput(f"not a time: {value!r}") from error


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with a `Z`, microseconds only when there are any."""
    return as_utc(moment).isoformat().replace("+00:00", "Z")
