"""Statements that are asked all the time: compiled once, and run as text.

To build a statement takes longer than to run it, and so does a list that is given value by value.
Here it goes as one value, as JSON to SQLite and as an array to PostgreSQL, and there is one
statement for lists of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    CursorResult,
    Insert,
    LargeBinary,
    Select,
    any_,
    bindparam,
    func,
    make_url,
    select,
)

from memory.codec import encode

_DIALECTS: Final = {
    "sqlite": make_url("sqlite+pysqlite://").get_dialect()(),
    "postgresql": make_url("postgresql+asyncpg://").get_dialect()(),
}
"""What SQL and which order of the values each store takes."""


class Statement(NamedTuple):
    """A statement as text, the names of its values in their order, and those that it has itself."""

    text: str
    order: tuple[str, ...]
    given: Mapping[str, Any]
    as_json: bool

    @classmethod
    def of(cls, query: Select[Any] | Insert, dialect: str) -> Self:
        compiled = query.compile(
            dialect=_DIALECTS[dialect], compile_kwargs={"render_postcompile": True}
        )
        return cls(
            str(compiled),
            tuple(compiled.positiontup or ()),
            dict(compiled.params),
            dialect == "sqlite",
        )

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any]:
        """The answer; lists and tuples among the values are for `among`."""
        return self._run(connection, values).all()

    def value(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """The first value of the first row; None where there is none."""
        return self._run(connection, values).scalar()

    def run(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """For what has no answer."""
        self._run(connection, values)

    def _run(self, connection: Connection, values: Mapping[str, Any]) -> CursorResult[Any]:
        ready = {**self.given, **values}
        for name, value in values.items():
            if isinstance(value, list | tuple):
                ready |= self._list(name, list(value))
        return connection.exec_driver_sql(self.text, tuple(ready[name] for name in self.order))

    def _list(self, name: str, values: list[Any]) -> dict[str, Any]:
        if not self.as_json:
            return {name: values}
        if not values or not isinstance(values[0], bytes):
            return {name: encode(values).decode(), _starts(name): "[]"}
        joined = b"".join(values)  # JSON cannot hold bytes: it says where each of them starts
        starts = range(1, len(joined) + 1, len(values[0]))
        return {name: joined, _starts(name): encode(list(starts)).decode()}


def among(column: ColumnElement[Any], name: str, dialect: str) -> ColumnElement[bool]:
    """Whether the column has one of the values that are given as the list `name`. Bytes are all of
    the column's length."""
    if dialect != "sqlite":
        return column == any_(bindparam(name, type_=ARRAY(column.type)))
    if not isinstance(column.type, LargeBinary):
        return column.in_(select(_each(name)))
    start = _each(_starts(name))
    part = func.substr(bindparam(name, type_=LargeBinary), start, column.type.length)
    return column.in_(select(part))


def _each(name: str) -> ColumnElement[Any]:
    return func.json_each(bindparam(name)).table_valued("value").c.value


def _starts(name: str) -> str:
    """The name of the places at which the bytes of a list of that name start."""
    return f"{name}_at"


def compiled(build: Callable[[str], Select[Any] | Insert]) -> Callable[[Connection], Statement]:
    """The statement of a store, built when it is first asked for."""

    @lru_cache(maxsize=len(_DIALECTS))
    def of(dialect: str) -> Statement:
        return Statement.of(build(dialect), dialect)

    return lambda connection: of(connection.dialect.name)
