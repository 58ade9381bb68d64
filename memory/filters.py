"""Filters: a `where` mapping becomes one function over the fields of a row.

    {"agent": "planner"}                                    a field equals
    {"lang": {"$in": ["en", "zh"]}, "seq": {"$gt": 10}}     several conditions: all must hold
    {"$or": [{"lang": "zh"}, {"$not": {"status": "archived"}}]}

Operators on a field: $eq $ne $in $nin $gt $gte $lt $lte $exists $not. Combining: $and $or $nor (a
list of filters, at least one) and $not (one filter). None and {} let everything through.

**A missing field** equals nothing and is neither more nor less than anything, so that every
positive operator is false for it. The negations $ne, $nin, $not and $nor are exact complements, so
that they are true for it. `$exists` asks for it. A stored null is a value: `{"x": None}` finds it
and does not find a missing x.

**Comparison** is strict about types: 1 is 1.0 but not True and not "1". $gt and its kin compare
numbers with numbers, text with text, and times with times; anything else is false. Where either
side is a datetime the other may be ISO 8601 text, read in UTC when it has no zone.

`{"a.b": 1}` looks inside objects when there is no field of that very name. A filter only ever
narrows: it is applied to rows that were already checked against their scope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from memory.errors import InvalidFilter, InvalidInput
from memory.models import Episode, Recalled, Scope
from memory.times import as_utc

Row = Mapping[str, Any]
Accepts = Callable[[Row], bool]
_Test = Callable[[Any], bool]

DEPTH_LIMIT: Final = 32
"""How deep a filter may nest."""


class _Missing:
    """What a field is that is not there. Equal to nothing but itself."""


_MISSING: Final = _Missing()


def compile(where: Mapping[str, Any] | None) -> Accepts:  # noqa: A001 (as `re.compile`)
    """The filter as a function of a row. Raises InvalidFilter for what does not exist.

    The answer holds no reference to `where`'s lists; changing them later changes nothing.
    """
    if where is None:
        return _everything
    return _filter(where, 0)


def view(item: Episode | Recalled, scope: Scope | None = None) -> dict[str, Any]:
    """What a filter can ask about an episode or something recalled.

    Its own fields: id, session, agent, role, speaker, seq, text, event_time, and where there are
    such: message_id, part, tier, recorded_at, importance, pinned, archived, last_access,
    valid_from, valid_to; with a scope, tenant and user too. What is None is missing. Then its
    metadata by name; a name that is an own field's is only reached as `metadata.NAME`, so that
    nothing said of a row can pass for what it is.
    """
    own = {name: value for name in _OWN if (value := getattr(item, name, None)) is not None}
    if item.role is not None:
        own["role"] = item.role.value
    if scope is not None:
        own |= {"tenant": scope.tenant, "user": scope.user}
    said = {name: value for name, value in item.metadata.items() if name not in _RESERVED}
    return {**said, **own, "metadata": item.metadata}


_OWN: Final = (
    *("id", "tier", "session", "agent", "speaker", "seq", "text", "event_time", "message_id"),
    *("part", "recorded_at", "importance", "pinned", "archived", "last_access"),
    *("valid_from", "valid_to"),
)
_RESERVED: Final = frozenset({*_OWN, "role", "tenant", "user", "metadata"})


# --- filters -----------------------------------------------------------------------------------


def _everything(row: Row) -> bool:
    return True


def _filter(where: Any, depth: int) -> Accepts:
    if not isinstance(where, Mapping):
        raise InvalidFilter(f"a filter is a mapping, not {_kind(where)}")
    if depth > DEPTH_LIMIT:
        raise InvalidFilter(f"a filter may nest {DEPTH_LIMIT} deep")
    conditions = [_condition(key, value, depth) for key, value in where.items()]
    return _all(conditions)


def _condition(key: Any, value: Any, depth: int) -> Accepts:
    if not isinstance(key, str) or not key:
        raise InvalidFilter(f"a field's name is text, not {key!r}")
    if not key.startswith("$"):
        return _on_field(key, _field_test(key, value, depth))
    if key == "$not":
        return _negated(_filter(value, depth + 1))
    if key not in ("$and", "$or", "$nor"):
        raise InvalidFilter(f"no operator {key!r}; filters combine with $and $or $nor $not")
    if not isinstance(value, list | tuple) or not value:
        raise InvalidFilter(f"{key} needs a list of at least one filter, not {_kind(value)}")
    filters = [_filter(each, depth + 1) for each in value]
    if key == "$and":
        return _all(filters)
    either = _any(filters)
    return either if key == "$or" else _negated(either)


def _all(filters: list[Accepts]) -> Accepts:
    return lambda row: all(each(row) for each in filters)


def _any(filters: list[Accepts]) -> Accepts:
    return lambda row: any(each(row) for each in filters)


def _negated(inner: Accepts) -> Accepts:
    return lambda row: not inner(row)


def _on_field(name: str, test: _Test) -> Accepts:
    return lambda row: test(_look_up(row, name))


def _look_up(row: Row, name: str) -> Any:
    if name in row:
        return row[name]
    found: Any = row
    for step in name.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return _MISSING
        found = found[step]
    return found


# --- tests on one field ------------------------------------------------------------------------


def _field_test(name: str, value: Any, depth: int) -> _Test:
    if not isinstance(value, Mapping):
        return _equals(_operand(name, value))
    if depth > DEPTH_LIMIT:
        raise InvalidFilter(f"a filter may nest {DEPTH_LIMIT} deep")
    operators = [key for key in value if isinstance(key, str) and key.startswith("$")]
    if value and not operators:
        return _equals(_operand(name, dict(value)))
    if not value or len(operators) != len(value):
        raise InvalidFilter(f"{name!r} needs operators such as {{'$eq': …}} and nothing else")
    tests = [_operator(name, key, operand, depth) for key, operand in value.items()]
    return lambda found: all(test(found) for test in tests)


def _operator(name: str, operator: str, operand: Any, depth: int) -> _Test:
    if operator == "$not":
        return _complement(_field_test(name, operand, depth + 1))
    if operator == "$exists":
        if not isinstance(operand, bool):
            raise InvalidFilter(f"{name!r}: $exists takes true or false, not {operand!r}")
        return lambda found: (found is not _MISSING) is operand
    if operator in ("$in", "$nin"):
        if not isinstance(operand, list | tuple | set | frozenset):
            raise InvalidFilter(f"{name!r}: {operator} takes a list, not {_kind(operand)}")
        among = _among([_operand(name, each) for each in operand])
        return among if operator == "$in" else _complement(among)
    operand = _operand(name, operand)
    if operator == "$eq":
        return _equals(operand)
    if operator == "$ne":
        return _complement(_equals(operand))
    if operator in _ORDER:
        return _ordered(name, operator, operand)
    known = "$eq $ne $in $nin $gt $gte $lt $lte $exists $not"
    raise InvalidFilter(f"{name!r}: no operator {operator!r}; there are {known}")


def _complement(test: _Test) -> _Test:
    return lambda found: not test(found)


def _equals(operand: Any) -> _Test:
    return lambda found: found is not _MISSING and _same(found, operand)


def _among(operands: list[Any]) -> _Test:
    return lambda found: found is not _MISSING and any(_same(found, each) for each in operands)


_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$gt": lambda a, b: a > b,
    "$gte": lambda a, b: a >= b,
    "$lt": lambda a, b: a < b,
    "$lte": lambda a, b: a <= b,
}


def _ordered(name: str, operator: str, operand: Any) -> _Test:
    if not (_is_number(operand) or isinstance(operand, str | datetime)):
        raise InvalidFilter(
            f"{name!r}: {operator} compares numbers, text and times, not {_kind(operand)}"
        )
    compare = _ORDER[operator]

    def test(found: Any) -> bool:
        pair = _comparable(found, operand)
        return pair is not None and compare(*pair)

    return test


def _comparable(found: Any, operand: Any) -> tuple[Any, Any] | None:
    """Both sides as values of one kind that has an order, or None."""
    if isinstance(found, datetime) or isinstance(operand, datetime):
        moments = _moment(found), _moment(operand)
        return None if None in moments else moments
    if _is_number(found) and _is_number(operand):
        return found, operand
    if isinstance(found, str) and isinstance(operand, str):
        return found, operand
    return None


def _same(found: Any, operand: Any) -> bool:
    if isinstance(found, datetime) or isinstance(operand, datetime):
        moments = _moment(found), _moment(operand)
        return None not in moments and moments[0] == moments[1]
    if isinstance(found, bool) or isinstance(operand, bool):
        return found is operand
    if isinstance(found, Mapping) and isinstance(operand, Mapping):
        return found.keys() == operand.keys() and all(_same(found[k], operand[k]) for k in found)
    if isinstance(found, list | tuple) and isinstance(operand, list | tuple):
        return len(found) == len(operand) and all(map(_same, found, operand))
    return bool(found == operand)


def _moment(value: Any) -> datetime | None:
    """A datetime, or ISO text as one; None for what is no time."""
    if not isinstance(value, datetime | str):
        return None
    try:
        return as_utc(value)
    except InvalidInput:
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _operand(name: str, value: Any, depth: int = 0) -> Any:
    """`value` when rows can hold such a thing; raises InvalidFilter otherwise."""
    if depth > DEPTH_LIMIT:
        raise InvalidFilter(f"{name!r}: a value may nest {DEPTH_LIMIT} deep")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidFilter(f"{name!r}: {value!r} is no number to compare with")
    if value is None or isinstance(value, str | bool | int | float | datetime):
        return value
    if isinstance(value, list | tuple):
        return [_operand(name, each, depth + 1) for each in value]
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) or key.startswith("$") for key in value):
            raise InvalidFilter(f"{name!r}: operators cannot be inside a value")
        return {key: _operand(name, each, depth + 1) for key, each in value.items()}
    raise InvalidFilter(f"{name!r}: cannot compare with {_kind(value)}")


def _kind(value: Any) -> str:
    return "an empty list" if value in ([], ()) else type(value).__name__
