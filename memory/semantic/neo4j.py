"""Facts in Neo4j (5.26 or later; Community is enough).

    (:Entity {tenant, user_id, key, name})      one for each name of a user
    (:NameForm {tenant, user_id, form})         another form of names, -[:FINDS]-> the entities
    (:FactPin {tenant, user_id, subject_key, predicate_key, object_key})    what is pinned
    -[:FACT {tenant, user_id, id, fact_id, predicate_key, valid_from, …, body, assertions}]->
    (:TrimemSchema {one: 1, version})           what the database was migrated to

There is one relationship type; predicates, like everything else from outside, are parameters and
never part of Cypher text. A version is one relationship from its subject to its object. `body` is
the fact in the bytes of `codec`, and the truth of it; `subject`, `predicate` and `object` beside it
are for people who look at the graph. `assertions` are the ids that were taken in by a fact: they
live on one of its versions, so that an assertion that comes again changes nothing.

An assertion first takes the lock of its subject's node, so that two writers never decide from the
same picture. Transactions are the driver's managed ones: they are run again after a deadlock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString
from urllib.parse import unquote, urlsplit, urlunsplit

from neo4j import (
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    AsyncSession,
    NotificationMinimumSeverity,
    Record,
    unit_of_work,
)
from neo4j.exceptions import ConfigurationError as DriverConfigurationError
from neo4j.exceptions import DriverError, Neo4jError

from memory.errors import ConfigurationError, Corrupt, SchemaTooNew, TierUnavailable
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
from memory.semantic.predicates import checked
from memory.semantic.predicates import key as predicate_key
from memory.semantic.timeline import Change, change, fact_id, slot
from memory.text import plain
from memory.times import to_micros

SCHEMES: Final = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
READABLE: Final = 200
"""Characters of the copies that are there for people."""
_CLEARED_AT_ONCE: Final = 1_000


@asynccontextmanager
async def open_neo4j(url: str, *, timeout: timedelta) -> AsyncIterator[Neo4jSemanticMemory]:
    """The facts at bolt:// or neo4j:// (+s, +ssc) USER:PASSWORD@HOST[:PORT][/DATABASE], migrated.

    `timeout` is the longest that connecting or one operation waits. Raises ConfigurationError for
    another URL. Nothing is connected to before the first call, which also migrates and raises
    SchemaTooNew when a newer version wrote what is there.
    """
    address, auth, database = _taken_apart(url)
    try:
        driver = AsyncGraphDatabase.driver(
            address,
            auth=auth,
            connection_timeout=timeout.total_seconds(),
            connection_acquisition_timeout=timeout.total_seconds(),
            max_transaction_retry_time=timeout.total_seconds(),
            notifications_min_severity=NotificationMinimumSeverity.OFF,
            telemetry_disabled=True,
            user_agent="trimem",
        )
    except (DriverConfigurationError, ValueError) as error:
        raise ConfigurationError(f"neo4j_url: {_first_line(error)}") from error
    async with driver:
        yield Neo4jSemanticMemory(driver, database=database, where=address, timeout=timeout)


def _taken_apart(url: str) -> tuple[str, tuple[str, str] | None, str | None]:
    """Address, credentials and database: the driver refuses to take them out of the URL itself."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"neo4j_url cannot be read: {error}") from error
    if parts.scheme not in SCHEMES:
        raise ConfigurationError(f"neo4j_url must begin with one of {', '.join(SCHEMES)}")
    if not host:
        raise ConfigurationError("neo4j_url names no host")
    shown = f"[{host}]" if ":" in host else host
    where = shown if port is None else f"{shown}:{port}"
    auth = None
    if parts.username is not None:
        auth = (unquote(parts.username), unquote(parts.password or ""))
    address = urlunsplit((parts.scheme, where, "", parts.query, ""))
    return address, auth, parts.path.strip("/") or None


class Neo4jSemanticMemory:
    """A `SemanticMemory` over a Neo4j server. The driver stays the opener's to close."""

    def __init__(
        self, driver: AsyncDriver, *, database: str | None, where: str, timeout: timedelta
    ) -> None:
        self._driver = driver
        self._database = database
        self._where = where
        self._timeout = timeout
        self._migrating = asyncio.Lock()
        self._is_migrated = False

    async def apply(self, scope: Scope, *assertions: Assertion) -> None:
        sound = [checked(assertion) for assertion in assertions]
        if not sound:
            return

        async def work(tx: AsyncManagedTransaction) -> None:
            for assertion in sound:
                await _take_in(tx, scope, assertion)

        await self.migrate()
        async with self._session() as session:
            await session.execute_write(self._bounded(work))

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
        question = wanted(keys=keys, as_of=as_of, limit=limit, predicates=predicates)
        return await self._found(scope, question, forms=forms)

    async def pin(
        self, scope: Scope, subject: str, predicate: str, object: str | None, pinned: bool
    ) -> None:
        query = _PIN if pinned else _UNPIN
        values = {**_scope_values(scope), **pin_of(subject, predicate, object)._asdict()}

        async def work(tx: AsyncManagedTransaction) -> None:
            await _done(tx, query, values)

        await self.migrate()
        async with self._session() as session:
            await session.execute_write(self._bounded(work))

    async def pinned(
        self, scope: Scope, limit: int, *, as_of: datetime, own: Sequence[str] = ()
    ) -> list[Fact]:
        question = wanted(keys=(), as_of=as_of, limit=limit)._replace(
            own=tuple(map(predicate_key, own))
        )
        return await self._found(scope, question, query=_PINNED)

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

    async def _found(
        self,
        scope: Scope,
        question: Wanted,
        *,
        forms: Sequence[str] = (),
        query: LiteralString | None = None,
    ) -> list[Fact]:
        query = query or _query(question, bool(forms))
        values = {
            **_scope_values(scope),
            **question._asdict(),
            "forms": list(forms),
            "self": names.key(names.SELF),
        }

        async def work(tx: AsyncManagedTransaction) -> list[Fact]:
            return [_fact(scope, record) async for record in await tx.run(query, values)]

        await self.migrate()
        async with self._session() as session:
            return await session.execute_read(self._bounded(work))

    async def clear(self, scope: Scope | None) -> None:
        values = {"at_once": _CLEARED_AT_ONCE, **(_scope_values(scope) if scope else {})}
        await self.migrate()
        for query in _CLEAR_EVERYBODY if scope is None else (_CLEAR, _CLEAR_FORMS, _CLEAR_PINS):
            while await self._cleared(query, values):
                pass

    async def _cleared(self, query: LiteralString, values: dict[str, Any]) -> int:
        async def work(tx: AsyncManagedTransaction) -> int:
            record = await (await tx.run(query, values)).single(strict=True)
            return int(record["gone"])

        async with self._session() as session:
            gone: int = await session.execute_write(self._bounded(work))
            return gone

    async def health(self) -> Health:
        try:
            async with self._session() as session:
                record = await session.execute_read(self._bounded(_version))
        except TierUnavailable as error:
            return Health(part="semantic", ok=False, where=self._where, problem=str(error))
        return Health(part="semantic", ok=True, version=record, where=self._where)

    # --- the schema --------------------------------------------------------------------------

    async def migrate(self) -> None:
        """Every version that is missing, once. Safe to run from several processes at once.

        Raises SchemaTooNew when a newer trimem was here.
        """
        if self._is_migrated:
            return
        async with self._migrating, self._session() as session:
            found = await session.execute_read(self._bounded(_schema_version))
            if found > len(MIGRATIONS):
                raise SchemaTooNew(
                    f"the graph at {self._where} has schema version {found}; "
                    f"this trimem knows versions up to {len(MIGRATIONS)}"
                )
            for number, statements in enumerate(MIGRATIONS[found:], start=found + 1):
                for statement in statements:  # Neo4j takes each change of schema by itself
                    await (await session.run(statement)).consume()
                if number == _NAMES_VERSION:
                    await self._fill_forms(session)
                await (await session.run(_SET_SCHEMA_VERSION, version=number)).consume()
            if found < len(MIGRATIONS):
                seconds = max(1, round(self._timeout.total_seconds()))
                await (await session.run(_AWAIT_INDEXES, seconds=seconds)).consume()
            self._is_migrated = True

    async def _fill_forms(self, session: AsyncSession) -> None:
        """The other forms of the names that are there: for a graph from before they were kept."""
        everybody = [
            (record["tenant"], record["user_id"], record["key"], record["name"])
            async for record in await session.run(_ENTITIES)
        ]
        for start in range(0, len(everybody), _CLEARED_AT_ONCE):
            rows = [
                {"tenant": tenant, "user_id": user, "name_key": key, "form": form}
                for tenant, user, key, name in everybody[start : start + _CLEARED_AT_ONCE]
                for form in names.forms(name)
            ]
            await (await session.run(_FIND_EVERYBODY, rows=rows)).consume()

    # --- sessions ----------------------------------------------------------------------------

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[AsyncSession]:
        """A session; what the driver raises inside becomes ours."""
        with _answering():
            async with (
                asyncio.timeout(self._timeout.total_seconds()),
                self._driver.session(database=self._database) as session,
            ):
                yield session

    def _bounded(self, work: Any) -> Any:
        """The unit of work, which the server ends when it takes longer than the timeout."""
        return unit_of_work(timeout=self._timeout.total_seconds())(work)


@contextmanager
def _answering() -> Any:
    try:
        yield
    except DriverConfigurationError as error:
        raise ConfigurationError(f"neo4j: {_first_line(error)}") from error
    except (Neo4jError, DriverError, OSError, TimeoutError) as error:
        raise TierUnavailable("semantic", _first_line(error)) from error


def _first_line(error: BaseException) -> str:
    if said := str(error).strip():
        return said.splitlines()[0]
    return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__


# --- Cypher --------------------------------------------------------------------------------------

MIGRATIONS: Final[tuple[tuple[LiteralString, ...], ...]] = (
    (
        "CREATE CONSTRAINT trimem_schema IF NOT EXISTS "
        "FOR (s:TrimemSchema) REQUIRE s.one IS UNIQUE",
        "CREATE CONSTRAINT trimem_entity IF NOT EXISTS "
        "FOR (e:Entity) REQUIRE (e.tenant, e.user_id, e.key) IS UNIQUE",
        "CREATE CONSTRAINT trimem_fact IF NOT EXISTS "
        "FOR ()-[f:FACT]-() REQUIRE (f.tenant, f.user_id, f.id) IS UNIQUE",
        "CREATE INDEX trimem_fact_versions IF NOT EXISTS "
        "FOR ()-[f:FACT]-() ON (f.tenant, f.user_id, f.fact_id)",
        "CREATE INDEX trimem_fact_slot IF NOT EXISTS "
        "FOR ()-[f:FACT]-() ON "
        "(f.tenant, f.user_id, f.subject_key, f.predicate_key, f.object_key)",
    ),
    (
        "CREATE CONSTRAINT trimem_name_form IF NOT EXISTS "
        "FOR (n:NameForm) REQUIRE (n.tenant, n.user_id, n.form) IS UNIQUE",
        "CREATE CONSTRAINT trimem_fact_pin IF NOT EXISTS "
        "FOR (p:FactPin) REQUIRE "
        "(p.tenant, p.user_id, p.subject_key, p.predicate_key, p.object_key) IS UNIQUE",
    ),
)
"""The changes of schema, version by version. Each statement may be run again."""
_NAMES_VERSION: Final = 2
"""The version that also gives the names that are there their other forms."""

_SCHEMA_VERSION: Final = "OPTIONAL MATCH (s:TrimemSchema {one: 1}) RETURN s.version AS version"
_SET_SCHEMA_VERSION: Final = """
MERGE (s:TrimemSchema {one: 1})
SET s.version = CASE WHEN coalesce(s.version, 0) < $version THEN $version ELSE s.version END
"""
_AWAIT_INDEXES: Final = "CALL db.awaitIndexes($seconds)"
_VERSION: Final = "CALL dbms.components() YIELD name, versions, edition RETURN *"

LOCK: Final = """
MERGE (s:Entity {tenant: $tenant, user_id: $user_id, key: $key})
ON CREATE SET s.name = $name
SET s.locked = true REMOVE s.locked
"""
"""The subject's node, made if need be, and locked until the transaction ends."""

_TAKEN_IN: Final = """
MATCH ()-[f:FACT {tenant: $tenant, user_id: $user_id, fact_id: $fact_id}]->()
WHERE $assertion IN f.assertions
RETURN f.id AS id LIMIT 1
"""
# `IS NOT NULL` on what a composite index has and the question leaves open: the index is used only
# when every property of it is named.
_BELIEVED: Final = """
UNWIND $predicates AS predicate
MATCH ()-[f:FACT {
  tenant: $tenant, user_id: $user_id, subject_key: $subject, predicate_key: predicate,
  object_key: $object
}]->()
WHERE f.unlearnt_at IS NULL
RETURN f.tenant AS tenant, f.user_id AS user_id, f.body AS body, f.unlearnt_at AS unlearnt_at
"""
_BELIEVED_OF_ANY: Final = """
UNWIND $predicates AS predicate
MATCH ()-[f:FACT {
  tenant: $tenant, user_id: $user_id, subject_key: $subject, predicate_key: predicate
}]->()
WHERE f.object_key IS NOT NULL AND f.unlearnt_at IS NULL
RETURN f.tenant AS tenant, f.user_id AS user_id, f.body AS body, f.unlearnt_at AS unlearnt_at
"""
_CLOSE: Final = """
UNWIND $ids AS id
MATCH ()-[f:FACT {tenant: $tenant, user_id: $user_id, id: id}]->()
SET f.unlearnt_at = $at
"""
_TOUCH: Final = """
UNWIND $rows AS row
MATCH ()-[f:FACT {tenant: $tenant, user_id: $user_id, id: row.id}]->()
SET f.body = row.body
"""
ADD: Final = """
UNWIND $rows AS row
MERGE (s:Entity {tenant: $tenant, user_id: $user_id, key: row.subject_key})
ON CREATE SET s.name = row.subject
MERGE (o:Entity {tenant: $tenant, user_id: $user_id, key: row.object_key})
ON CREATE SET o.name = row.object
CREATE (s)-[:FACT {
  tenant: $tenant, user_id: $user_id, id: row.id, fact_id: row.fact_id,
  subject_key: row.subject_key, predicate_key: row.predicate_key, object_key: row.object_key,
  valid_from: row.valid_from, valid_to: row.valid_to, learnt_at: row.learnt_at,
  body: row.body,
  subject: row.subject, predicate: row.predicate, object: row.object
}]->(o)
"""
_FIND: Final = """
UNWIND $rows AS row
MATCH (e:Entity {tenant: $tenant, user_id: $user_id, key: row.name_key})
MERGE (n:NameForm {tenant: $tenant, user_id: $user_id, form: row.form})
MERGE (n)-[:FINDS]->(e)
"""
_FIND_EVERYBODY: Final = """
UNWIND $rows AS row
MATCH (e:Entity {tenant: row.tenant, user_id: row.user_id, key: row.name_key})
MERGE (n:NameForm {tenant: row.tenant, user_id: row.user_id, form: row.form})
MERGE (n)-[:FINDS]->(e)
"""
_ENTITIES: Final = """
MATCH (e:Entity)
RETURN e.tenant AS tenant, e.user_id AS user_id, e.key AS key, e.name AS name
"""
_PIN: Final = """
MERGE (p:FactPin {
  tenant: $tenant, user_id: $user_id, subject_key: $subject_key, predicate_key: $predicate_key,
  object_key: $object_key
})
"""
_UNPIN: Final = """
MATCH (p:FactPin {
  tenant: $tenant, user_id: $user_id, subject_key: $subject_key, predicate_key: $predicate_key,
  object_key: $object_key
})
DELETE p
"""
_REMEMBER: Final = """
MATCH ()-[f:FACT {tenant: $tenant, user_id: $user_id, fact_id: $fact_id}]->()
WITH f ORDER BY f.learnt_at, f.id LIMIT 1
SET f.assertions = coalesce(f.assertions, []) + $assertion
"""

_FILTER: Final = """
  ($predicate IS NULL OR f.predicate_key = $predicate)
  AND ($predicates IS NULL OR f.predicate_key IN $predicates)
  AND ($true_at IS NULL
       OR f.valid_from <= $true_at AND (f.valid_to IS NULL OR $true_at < f.valid_to))
  AND ($untrue_at IS NULL OR f.valid_from > $untrue_at OR f.valid_to <= $untrue_at)
  AND (NOT $no_end OR f.valid_to IS NULL)
  AND ($believed_at IS NULL
       OR f.learnt_at <= $believed_at AND (f.unlearnt_at IS NULL OR $believed_at < f.unlearnt_at))
  AND (NOT $believed_still OR f.unlearnt_at IS NULL)
WITH DISTINCT f ORDER BY
  CASE WHEN $own IS NULL OR f.subject_key IN $keys OR f.object_key IN $keys THEN 0 ELSE 1 END,
  f.valid_from DESC, f.id
LIMIT coalesce($limit, 9223372036854775807)
RETURN f.tenant AS tenant, f.user_id AS user_id, f.body AS body, f.unlearnt_at AS unlearnt_at
"""
# The end of a CALL of several parts: the user's own facts of some predicates, then the filter.
_OR_OWN: Final = (
    """  UNWIND $own AS predicate
  MATCH ()-[f:FACT {
    tenant: $tenant, user_id: $user_id, subject_key: $self, predicate_key: predicate
  }]->()
  WHERE f.object_key IS NOT NULL
  RETURN f
}
WITH f WHERE
"""
    + _FILTER
)
_EVERY: Final = (
    """
MATCH ()-[f:FACT {tenant: $tenant, user_id: $user_id}]->() WHERE f.fact_id IS NOT NULL AND
"""
    + _FILTER
)
_NAMED: Final = (
    """
UNWIND $keys AS key
MATCH (:Entity {tenant: $tenant, user_id: $user_id, key: key})-[f:FACT]-() WHERE
"""
    + _FILTER
)
_NAMED_OR_FOUND: Final = (
    """
CALL () {
  UNWIND $keys AS key
  MATCH (:Entity {tenant: $tenant, user_id: $user_id, key: key})-[f:FACT]-()
  RETURN f
  UNION
  UNWIND $forms AS form
  MATCH (:NameForm {tenant: $tenant, user_id: $user_id, form: form})-[:FINDS]->(:Entity)-[f:FACT]-()
  RETURN f
}
WITH f WHERE
"""
    + _FILTER
)
_PINNED: Final = (
    """
CALL () {
  MATCH (p:FactPin {tenant: $tenant, user_id: $user_id})
  WHERE p.subject_key IS NOT NULL AND p.predicate_key IS NOT NULL AND p.object_key IS NOT NULL
  MATCH ()-[f:FACT {
    tenant: $tenant, user_id: $user_id, subject_key: p.subject_key, predicate_key: p.predicate_key
  }]->()
  WHERE f.object_key IS NOT NULL AND p.object_key IN ['', f.object_key]
  RETURN f
  UNION
"""
    + _OR_OWN
)
_NAMED_OR_OWN: Final = (
    """
CALL () {
  UNWIND $keys AS key
  MATCH (:Entity {tenant: $tenant, user_id: $user_id, key: key})-[f:FACT]-()
  RETURN f
  UNION
"""
    + _OR_OWN
)

_CLEAR: Final = """
MATCH (e:Entity {tenant: $tenant, user_id: $user_id}) WHERE e.key IS NOT NULL
WITH e LIMIT $at_once DETACH DELETE e
RETURN count(*) AS gone
"""
_CLEAR_FORMS: Final = """
MATCH (e:NameForm {tenant: $tenant, user_id: $user_id}) WHERE e.form IS NOT NULL
WITH e LIMIT $at_once DETACH DELETE e
RETURN count(*) AS gone
"""
_CLEAR_PINS: Final = """
MATCH (e:FactPin {tenant: $tenant, user_id: $user_id})
WHERE e.subject_key IS NOT NULL AND e.predicate_key IS NOT NULL AND e.object_key IS NOT NULL
WITH e LIMIT $at_once DETACH DELETE e
RETURN count(*) AS gone
"""
_CLEAR_EVERYBODY: Final[tuple[LiteralString, ...]] = (
    "MATCH (e:Entity) WITH e LIMIT $at_once DETACH DELETE e RETURN count(*) AS gone",
    "MATCH (e:NameForm) WITH e LIMIT $at_once DETACH DELETE e RETURN count(*) AS gone",
    "MATCH (e:FactPin) WITH e LIMIT $at_once DETACH DELETE e RETURN count(*) AS gone",
)


# --- units of work -------------------------------------------------------------------------------


def _query(question: Wanted, has_forms: bool) -> LiteralString:
    """The statement for a question of this shape."""
    if question.own is not None:
        return _NAMED_OR_OWN
    if question.keys is None:
        return _EVERY
    return _NAMED_OR_FOUND if has_forms else _NAMED


def _scope_values(scope: Scope) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user_id": scope.user}


async def _take_in(tx: AsyncManagedTransaction, scope: Scope, assertion: Assertion) -> None:
    about = slot(assertion)
    whose = _scope_values(scope)
    this = {
        **whose,
        "fact_id": fact_id(assertion.subject, assertion.predicate, assertion.object),
        "assertion": assertion.id,
    }
    await _done(tx, LOCK, {**whose, "key": about.subject, "name": _readable(assertion.subject)})
    if await (await tx.run(_TAKEN_IN, this)).single() is not None:
        return
    query = _BELIEVED if about.object is not None else _BELIEVED_OF_ANY
    found = await tx.run(query, {**whose, **about._asdict()})
    believed = [_fact(scope, record) async for record in found]
    await _write(tx, whose, change(believed, assertion))
    await _done(tx, _REMEMBER, this)


async def _write(tx: AsyncManagedTransaction, whose: dict[str, Any], decided: Change) -> None:
    if decided.close:
        ended = {"ids": list(decided.close), "at": to_micros(decided.at)}
        await _done(tx, _CLOSE, {**whose, **ended})
    if decided.touch:
        rows = [{"id": fact.id, "body": row_of(fact).body} for fact in decided.touch]
        await _done(tx, _TOUCH, {**whose, "rows": rows})
    if decided.add:
        rows = [{**row_of(fact)._asdict(), **_for_people(fact)} for fact in decided.add]
        await _done(tx, ADD, {**whose, "rows": rows})
        if found_by := forms_of(decided.add):
            named = [{"form": form, "name_key": of} for form, of in sorted(found_by)]
            await _done(tx, _FIND, {**whose, "rows": named})


async def _done(tx: AsyncManagedTransaction, query: LiteralString, values: dict[str, Any]) -> None:
    await (await tx.run(query, values)).consume()


def _for_people(fact: Fact) -> dict[str, str]:
    return {
        "subject": _readable(fact.subject),
        "predicate": _readable(fact.predicate),
        "object": _readable(fact.object),
    }


def _readable(text: str) -> str:
    return plain(text[:READABLE])


def _fact(scope: Scope, record: Record) -> Fact:
    if (record["tenant"], record["user_id"]) != (scope.tenant, scope.user):
        raise Corrupt("a fact of another user came back")
    return fact_of(bytes(record["body"]), record["unlearnt_at"])


async def _schema_version(tx: AsyncManagedTransaction) -> int:
    record = await (await tx.run(_SCHEMA_VERSION)).single()
    return int(record["version"] or 0) if record is not None else 0


async def _version(tx: AsyncManagedTransaction) -> str:
    record = await (await tx.run(_VERSION)).single(strict=True)
    return f"Neo4j {record['edition']} {record['versions'][0]}"
