"""What a LangGraph store holds, added up from changes, and how it is searched. Pure.

A change puts an item or takes it away. Vectors are kept as whole numbers of a ten-thousandth: as
exact as a ranking needs, in half the room.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.errors import InvalidInput
from memory.models import JsonObject

Namespace = tuple[str, ...]
Vectors = NDArray[np.float32]

_SCALE = 10_000


class Address(NamedTuple):
    namespace: Namespace
    key: str


@dataclass(slots=True)
class Entry:
    """An item. `fields` are the paths by which it is searched; `vectors` None: not yet made."""

    value: JsonObject
    fields: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    position: int
    vectors: Vectors | None = None

    def copy_of_value(self) -> JsonObject:
        """The value, which a caller may change."""
        return copy.deepcopy(self.value)


@dataclass(slots=True)
class Items:
    """All items of a user; `position` is that of the last change that is in them."""

    entries: dict[Address, Entry] = field(default_factory=dict)
    position: int = 0

    def put(self, address: Address, entry: Entry) -> None:
        before = self.entries.get(address)
        if before is not None:
            entry.created_at = before.created_at
        self.entries[address] = entry

    def take_away(self, address: Address) -> None:
        self.entries.pop(address, None)

    def matching(
        self, prefix: Namespace, where: Mapping[str, Any] | None
    ) -> list[tuple[Address, Entry]]:
        """The items below a namespace that the filter accepts, the one changed last first."""
        found = [
            (address, entry)
            for address, entry in self.entries.items()
            if address.namespace[: len(prefix)] == prefix
            and all(accepts(entry.value.get(name), asked) for name, asked in (where or {}).items())
        ]
        return sorted(found, key=lambda each: (-each[1].position, each[0]))

    def namespaces(self) -> set[Namespace]:
        return {address.namespace for address in self.entries}


def ranked(
    found: Sequence[tuple[Address, Entry]], query: Vectors
) -> Iterator[tuple[Address, Entry, float | None]]:
    """The items, the nearest to the query first; those without vectors last, without a score."""
    scored = [
        (address, entry, float(np.max(entry.vectors @ query)))
        for address, entry in found
        if entry.vectors is not None and len(entry.vectors)
    ]
    yield from sorted(scored, key=lambda each: (-each[2], each[0]))
    for address, entry in found:
        if entry.vectors is None or not len(entry.vectors):
            yield address, entry, None


# --- filters -----------------------------------------------------------------------------------


def accepts(value: Any, asked: Any) -> bool:
    """Whether a value is what a filter asks for: equal, or as its operators say. Objects are
    compared field by field; what is not there equals nothing but None, and is in no order.
    Raises InvalidInput for an unknown operator."""
    if isinstance(asked, Mapping):
        if any(str(name).startswith("$") for name in asked):
            return all(_holds(value, operator, operand) for operator, operand in asked.items())
        return isinstance(value, Mapping) and all(
            accepts(value.get(name), inner) for name, inner in asked.items()
        )
    if isinstance(asked, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(asked)
            and all(accepts(one, other) for one, other in zip(value, asked, strict=True))
        )
    return bool(value == asked)


def _holds(value: Any, operator: str, operand: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == operand)
        case "$ne":
            return bool(value != operand)
        case "$gt" | "$gte" | "$lt" | "$lte":
            return _in_order(value, operator, operand)
    raise InvalidInput(f"there is no operator {operator!r}: $eq, $ne, $gt, $gte, $lt, $lte")


def _in_order(value: Any, operator: str, operand: Any) -> bool:
    if isinstance(value, str) != isinstance(operand, str):
        value, operand = _number(value), _number(operand)
    if value is None or operand is None:
        return False
    try:
        match operator:
            case "$gt":
                return bool(value > operand)
            case "$gte":
                return bool(value >= operand)
            case "$lt":
                return bool(value < operand)
        return bool(value <= operand)
    except TypeError:  # a list and a number are in no order
        return False


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


# --- namespaces --------------------------------------------------------------------------------


def begins(namespace: Namespace, path: Sequence[str]) -> bool:
    """Whether the namespace begins as the path does; `*` is any label."""
    return len(namespace) >= len(path) and all(
        asked in ("*", label) for label, asked in zip(namespace, path, strict=False)
    )


def ends(namespace: Namespace, path: Sequence[str]) -> bool:
    return begins(namespace[::-1], path[::-1])


# --- vectors -----------------------------------------------------------------------------------


def as_text(vectors: Vectors) -> str:
    """Unit vectors as whole numbers of two bytes."""
    whole = np.rint(vectors * _SCALE).astype("<i2")
    return base64.b64encode(whole.tobytes()).decode()


def from_text(text: str, dims: int) -> Vectors | None:
    """What `as_text` was given; None when that cannot be read, as after a redactor took it for a
    secret: the vectors are then made again."""
    try:
        whole = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i2")
        return whole.reshape(-1, dims).astype(np.float32) / np.float32(_SCALE)
    except ValueError:
        return None
