"""Facts in the journal's database, SQLite or PostgreSQL.

    facts            every version of every fact; unlearnt_at is null while it is believed
    facts_applied    the assertions that were taken in, by id
    fact_pins        what is pinned: a slot whole (no object), or one object of it
    fact_names       other forms of the facts' names, and the keys that they find

Every key and index begins with the owner, so that a read costs what its user has, whoever else
there is. Writes of one owner take turns, because an assertion reads before it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    bindparam,
    delete,
    exists,
    not_,
    or_,
    select,
    update,
)

from memory.errors import Corrupt, TierUnavailable
from memory.journal import Journal
from memory.journal.database import insert_into
from memory.journal.schema import bytes_column, metadata, moment_column, owner_column, owner_of
from memory.journal.statements import Statement, among
from memory.models import Assertion, Fact, Health, Scope
from memory.semantic import names
from memory.semantic.base import (
    Wanted,
    fact_of,
    forms_of,
    keys_of,
    pin_of,
    row_of,
    wanted,
    wanted_former,
)
from memory.semantic.predicates import checked, key
from memory.semantic.timeline import Change, Slot, change, slot
from memory.times import to_micros

facts_table = Table(
    "facts",
    metadata,
    owner_column(),
    Column("id", Text, nullable=False),
    Column("fact_id", Text, nullable=False),
    Column("subject_key", Text, nullable=False),
    Column("predicate_key", Text, nullable=False),
    Column("object_key", Text, nullable=False),
    moment_column("valid_from"),
    moment_column("valid_to", nullable=True),
    moment_column("learnt_at"),
    moment_column("unlearnt_at", nullable=True),
    bytes_column("body"),
    PrimaryKeyConstraint("owner", "id"),
)
_facts = facts_table.c
Index(
    "facts_subject",
    _facts.owner,
    _facts.subject_key,
    _facts.predicate_key,
    _facts.object_key,
)
Index("facts_object", _facts.owner, _facts.object_key)

pins_table = Table(
    "fact_pins",
    metadata,
    owner_column(),
    Column("subject_key", Text, nullable=False),
    Column("predicate_key", Text, nullable=False),
    Column("object_key", Text, nullable=False),
    PrimaryKeyConstraint("owner", "subject_key", "predicate_key", "object_key"),
    sqlite_with_rowid=False,
)

names_table = Table(
    "fact_names",
    metadata,
    owner_column(),
    Column("form", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    PrimaryKeyConstraint("owner", "form", "name_key"),
    sqlite_with_rowid=False,
)

applied_table = Table(
    "facts_applied",
    metadata,
    owner_column(),
    Column("id", Text, nullable=False),
    PrimaryKeyConstraint("owner", "id"),
    sqlite_with_rowid=False,
)

_COLUMNS = (_facts.owner, _facts.unlearnt_at, _facts.body)


def open_sql(journal: Journal) -> SqlSemanticMemory:
    """The facts in the journal's own database. The journal stays the caller's to close."""
    return SqlSemanticMemory(journal)


class SqlSemanticMemory:
    """A `SemanticMemory` over the journal's tables."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def apply(self, scope: Scope, *assertions: Assertion) -> None:
        owner = owner_of(scope)
        sound = [checked(assertion) for assertion in assertions]

        def work(connection: Connection) -> None:
            for assertion in sound:
                if _is_new(connection, owner, assertion):
                    believed = _believed(connection, owner, slot(assertion))
                    _write(connection, owner, change(believed, assertion))

        if sound:
            with _answering():
                await self._journal.write(work, alone=f"facts {owner.hex()}")

    async def facts(
        self,
        scope: Scope,
        *,
        about: str | Sequence[str] | None = None,
        predicate: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        history: bool = False,
        limit: int | None = None,
    ) -> list[Fact]:
        return await self._found(
            scope,
            wanted(
                keys=keys_of(about),
                predicate=predicate,
                as_of=as_of,
                known_at=known_at,
                history=history,
                limit=limit,
            ),
        )

    async def mentioned(
        self,
        scope: Scope,
        keys: Sequence[str],
        limit: int,
        *,
        as_of: datetime | None = None,
        forms: Sequence[str] = (),
        predicates: Sequence[str] = (),
    ) -> list[Fact]:
        owner = owner_of(scope)
        question = wanted(keys=keys, as_of=as_of, limit=limit, predicates=predicates)

        def work(connection: Connection) -> list[Fact]:
            by_form = _named_so(connection.dialect.name)
            also = by_form.rows(connection, {"owner": owner, "forms": forms})
            named = dict.fromkeys((*(question.keys or ()), *(row.name_key for row in also)))
            return _answers(connection, owner, question._replace(keys=tuple(named)))

        if not forms:
            return await self._found(scope, question)
        with _answering():
            return await self._journal.query(work)

    async def pin(
        self, scope: Scope, subject: str, predicate: str, object: str | None, pinned: bool
    ) -> None:
        row = {"owner": owner_of(scope), **pin_of(subject, predicate, object)._asdict()}

        def work(connection: Connection) -> None:
            if pinned:
                connection.execute(
                    insert_into(connection, pins_table).on_conflict_do_nothing(), row
                )
            else:
                connection.execute(delete(pins_table).filter_by(**row))

        with _answering():
            await self._journal.write(work, alone=f"facts {row['owner'].hex()}")

    async def pinned(
        self, scope: Scope, limit: int, *, as_of: datetime, own: Sequence[str] = ()
    ) -> list[Fact]:
        owner = owner_of(scope)
        question = wanted(keys=(), as_of=as_of, limit=limit)
        values: dict[str, Any] = {
            "owner": owner,
            "true_at": question.true_at,
            "limit": question.limit,
            "own": sorted({key(each) for each in own}),
        }

        def work(connection: Connection) -> list[Fact]:
            pins = _pins(connection.dialect.name).rows(connection, {"owner": owner})
            named = {
                "subjects": sorted({_SELF, *(pin.subject_key for pin in pins)}),
                "predicates": sorted({*values["own"], *(pin.predicate_key for pin in pins)}),
            }
            query = _pinned(connection.dialect.name)
            return list(_read(owner, query.rows(connection, {**values, **named})))

        with _answering():
            return await self._journal.query(work)

    async def former(
        self,
        scope: Scope,
        keys: Sequence[str],
        predicates: Sequence[str],
        limit: int,
        *,
        as_of: datetime,
    ) -> list[Fact]:
        return await self._found(scope, wanted_former(keys, predicates, limit, as_of))

    async def _found(self, scope: Scope, question: Wanted) -> list[Fact]:
        owner = owner_of(scope)
        with _answering():
            return await self._journal.query(
                lambda connection: _answers(connection, owner, question)
            )

    async def clear(self, scope: Scope | None) -> None:
        def work(connection: Connection) -> None:
            for table in (facts_table, applied_table, pins_table, names_table):
                every = delete(table)
                connection.execute(
                    every if scope is None else every.where(table.c.owner == owner_of(scope))
                )

        with _answering():
            await self._journal.write(
                work, alone=None if scope is None else f"facts {owner_of(scope).hex()}"
            )

    async def health(self) -> Health:
        journal = await self._journal.health()
        return journal.model_copy(update={"part": "semantic"})


@contextmanager
def _answering() -> Iterator[None]:
    """The journal's silence is this tier's silence."""
    try:
        yield
    except TierUnavailable as error:
        if error.tier == "semantic":
            raise
        message = str(error).removeprefix(f"{error.tier}: ")
        raise TierUnavailable("semantic", message) from error


# --- writing -------------------------------------------------------------------------------------


def _is_new(connection: Connection, owner: bytes, assertion: Assertion) -> bool:
    taken_in = insert_into(connection, applied_table).on_conflict_do_nothing()
    return connection.execute(taken_in, {"owner": owner, "id": assertion.id}).rowcount > 0


def _believed(connection: Connection, owner: bytes, about: Slot) -> list[Fact]:
    query = select(*_COLUMNS).where(
        _facts.owner == owner,
        _facts.subject_key == about.subject,
        _facts.predicate_key.in_(about.predicates),
        _facts.unlearnt_at.is_(None),
    )
    if about.object is not None:
        query = query.where(_facts.object_key == about.object)
    return list(_read(owner, connection.execute(query)))


_CLOSE = (
    update(facts_table)
    .where(_facts.owner == bindparam("whose"), _facts.id == bindparam("version"))
    .values(unlearnt_at=bindparam("at"))
)
_TOUCH = (
    update(facts_table)
    .where(_facts.owner == bindparam("whose"), _facts.id == bindparam("version"))
    .values(body=bindparam("said"))
)


def _write(connection: Connection, owner: bytes, decided: Change) -> None:
    at = to_micros(decided.at)
    if decided.close:
        ended = [{"whose": owner, "version": version, "at": at} for version in decided.close]
        connection.execute(_CLOSE, ended)
    if decided.touch:
        rows = [row_of(fact) for fact in decided.touch]
        said = [{"whose": owner, "version": row.id, "said": row.body} for row in rows]
        connection.execute(_TOUCH, said)
    if decided.add:
        added = [{"owner": owner, **row_of(fact)._asdict()} for fact in decided.add]
        connection.execute(facts_table.insert(), added)
        if found_by := forms_of(decided.add):
            connection.execute(
                insert_into(connection, names_table).on_conflict_do_nothing(),
                [{"owner": owner, "form": form, "name_key": of} for form, of in sorted(found_by)],
            )


def fill_names(connection: Connection) -> None:
    """The other forms of the names of all facts: for a database from before they were kept."""
    add = insert_into(connection, names_table).on_conflict_do_nothing()
    every = select(_facts.owner, _facts.body).execution_options(yield_per=1_000)
    for some in connection.execute(every).partitions():
        made = {
            (bytes(row.owner), *found_by)
            for row in some
            for found_by in forms_of([fact_of(row.body, None)])
        }
        if made:
            connection.execute(
                add, [dict(zip(("owner", "form", "name_key"), each, strict=True)) for each in made]
            )


# --- reading -------------------------------------------------------------------------------------


def _answers(connection: Connection, owner: bytes, question: Wanted) -> list[Fact]:
    values = {"owner": owner, **question._asdict()}
    asked = frozenset(
        name for name, value in values.items() if value is not None and value is not False
    )
    query = _query(asked, connection.dialect.name)
    return list(_read(owner, query.rows(connection, {name: values[name] for name in asked})))


_SELF = names.key(names.SELF)


@lru_cache(maxsize=128)
def _query(asked: frozenset[str], dialect: str) -> Statement:
    """One statement for each shape of a question: to build one takes longer than to run it."""
    conditions: list[ColumnElement[bool]] = [_facts.owner == bindparam("owner")]
    order: list[ColumnElement[Any]] = [_facts.valid_from.desc(), _facts.id.asc()]
    if "keys" in asked:
        named = or_(
            among(_facts.subject_key, "keys", dialect), among(_facts.object_key, "keys", dialect)
        )
        if "own" in asked:
            of_user = (_facts.subject_key == _SELF) & among(_facts.predicate_key, "own", dialect)
            conditions.append(or_(named, of_user))
            order.insert(0, named.desc())
        else:
            conditions.append(named)
    if "predicates" in asked:
        conditions.append(among(_facts.predicate_key, "predicates", dialect))
    if "predicate" in asked:
        conditions.append(_facts.predicate_key == bindparam("predicate"))
    if "true_at" in asked:
        conditions.append(_in_force("true_at", "valid_from", "valid_to"))
    if "untrue_at" in asked:
        conditions.append(not_(_in_force("untrue_at", "valid_from", "valid_to")))
    if "no_end" in asked:
        conditions.append(_facts.valid_to.is_(None))
    if "believed_at" in asked:
        conditions.append(_in_force("believed_at", "learnt_at", "unlearnt_at"))
    if "believed_still" in asked:
        conditions.append(_facts.unlearnt_at.is_(None))
    query = select(*_COLUMNS).where(*conditions).order_by(*order)
    return Statement.of(query.limit(bindparam("limit")) if "limit" in asked else query, dialect)


def _in_force(moment: str, start: str, end: str) -> ColumnElement[bool]:
    at = bindparam(moment, type_=BigInteger)
    return (_facts[start] <= at) & (_facts[end].is_(None) | (_facts[end] > at))


@lru_cache
def _named_so(dialect: str) -> Statement:
    """The keys of the names that have one of these forms."""
    named = names_table.c
    return Statement.of(
        select(named.name_key).where(
            named.owner == bindparam("owner"), among(named.form, "forms", dialect)
        ),
        dialect,
    )


@lru_cache
def _pins(dialect: str) -> Statement:
    pins = pins_table.c
    return Statement.of(
        select(pins.subject_key, pins.predicate_key).where(pins.owner == bindparam("owner")),
        dialect,
    )


@lru_cache
def _pinned(dialect: str) -> Statement:
    """What is pinned. Subjects and predicates are named although the rest implies them: they are
    what the index needs."""
    pins = pins_table.c
    query = (
        select(*_COLUMNS)
        .where(
            _facts.owner == bindparam("owner"),
            among(_facts.subject_key, "subjects", dialect),
            among(_facts.predicate_key, "predicates", dialect),
            _in_force("true_at", "valid_from", "valid_to"),
            _facts.unlearnt_at.is_(None),
            or_(
                (_facts.subject_key == _SELF) & among(_facts.predicate_key, "own", dialect),
                exists().where(
                    pins.owner == _facts.owner,
                    pins.subject_key == _facts.subject_key,
                    pins.predicate_key == _facts.predicate_key,
                    pins.object_key.in_(["", _facts.object_key]),
                ),
            ),
        )
        .order_by(_facts.valid_from.desc(), _facts.id)
        .limit(bindparam("limit"))
    )
    return Statement.of(query, dialect)


def _read(owner: bytes, rows: Iterable[Any]) -> Iterator[Fact]:
    for row in rows:
        if bytes(row.owner) != owner:
            raise Corrupt("a fact of another owner came back")
        yield fact_of(row.body, row.unlearnt_at)
