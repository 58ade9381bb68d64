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
    def of(cls, query: Select[Any], dialect: str) -> Self:
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
        ready = {**self.given, **values}
        for name, value in values.items():
            if isinstance(value, list | tuple):
                ready[name] = encode(list(value)).decode() if self.as_json else list(value)
        return connection.exec_driver_sql(
            self.text, tuple(ready[name] for name in self.order)
        ).all()


def among(column: ColumnElement[Any], name: str, dialect: str) -> ColumnElement[bool]:
    """Whether the column has one of the values that are given as the list `name`."""
    if dialect == "sqlite":
        return column.in_(select(func.json_each(bindparam(name)).table_valued("value").c.value))
    return column == any_(bindparam(name, type_=ARRAY(column.type)))


def compiled(build: Callable[[str], Select[Any]]) -> Callable[[Connection], Statement]:
    """The statement of a store, built when it is first asked for."""

    @lru_cache(maxsize=len(_DIALECTS))
    def of(dialect: str) -> Statement:
        return Statement.of(build(dialect), dialect)

    return lambda connection: of(connection.dialect.name)
