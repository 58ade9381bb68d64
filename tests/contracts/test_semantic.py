"""What every store of facts promises, over each of them: SQLite, PostgreSQL, Neo4j."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from neo4j import AsyncGraphDatabase
from sqlalchemy import text as sql

from memory.codec import content_id
from memory.errors import (
    ConfigurationError,
    EmptyInput,
    InvalidInput,
    SchemaTooNew,
    TierUnavailable,
)
from memory.journal import Event, Journal
from memory.models import Assertion, Fact, Scope
from memory.projections import SemanticProjection
from memory.semantic import Registry, SemanticMemory, names, open_semantic
from memory.semantic import neo4j as graph
from memory.semantic.timeline import change
from memory.sidecar import free_port
from tests.proxy import proxy

TIMEOUT = timedelta(seconds=20)
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
REGISTRY = Registry.default()


def day(number: float) -> datetime:
    return EPOCH + timedelta(days=number)


def says(subject: str, predicate: str, object: str, start: float = 1, **more: object) -> Assertion:
    given: dict[str, object] = {
        "id": content_id("test", subject, predicate, object, str(start), str(sorted(more))),
        "valid_from": day(start),
        "learnt_at": day(start),
    }
    return REGISTRY.assertion(
        subject=subject, predicate=predicate, object=object, **{**given, **more}
    )


@dataclass(frozen=True)
class Store:
    """Where facts are kept, and how to open it once more."""

    kind: str
    url: str

    @asynccontextmanager
    async def open(self) -> AsyncIterator[SemanticMemory]:
        async with AsyncExitStack() as stack:
            if self.kind == "neo4j":
                opening = graph.open_neo4j(self.url, timeout=TIMEOUT)
                yield await stack.enter_async_context(opening)
                return
            journal = await stack.enter_async_context(Journal.open(self.url, timeout=TIMEOUT))
            yield await stack.enter_async_context(open_semantic(None, journal, timeout=TIMEOUT))


@pytest.fixture(params=["sqlite", "postgresql", "neo4j"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        return Store("sqlite", f"sqlite:///{tmp_path / 'journal.db'}")
    fixture = {"postgresql": "postgres_url", "neo4j": "neo4j_url"}[request.param]
    return Store(request.param, request.getfixturevalue(fixture))


@pytest.fixture
async def memory(store: Store, scope: Scope) -> AsyncIterator[SemanticMemory]:
    async with store.open() as opened:
        yield opened
        await opened.clear(scope)


def objects(facts: list[Fact]) -> list[str]:
    return [fact.object for fact in facts]


# --- time ----------------------------------------------------------------------------------------


async def test_a_newer_fact_ends_the_older_one_but_history_remains(
    memory: SemanticMemory, scope: Scope
) -> None:
    await memory.apply(scope, says("ann", "lives_in", "Lyon", 1))
    await memory.apply(scope, says("ann", "lives_in", "Oslo", 5))
    assert objects(await memory.facts(scope)) == ["Oslo"]
    assert objects(await memory.facts(scope, as_of=day(3))) == ["Lyon"]
    versions = await memory.facts(scope, history=True)
    assert sorted(
        (f.object, f.valid_to, f.unlearnt_at) for f in versions if f.object == "Oslo"
    ) == [("Oslo", None, None)]
    assert {(f.valid_to, f.unlearnt_at) for f in versions if f.object == "Lyon"} == {
        (None, day(5)),
        (day(5), None),
    }


async def test_exactly_one_holds_at_the_moment_where_two_meet(
    memory: SemanticMemory, scope: Scope
) -> None:
    june = datetime(2024, 6, 1, tzinfo=UTC)
    await memory.apply(scope, says("ann", "lives_in", "Lyon", valid_to=june))
    await memory.apply(scope, says("ann", "lives_in", "Oslo", valid_from=june, learnt_at=june))
    just_before = june - timedelta(microseconds=1)
    same_instant = datetime(2024, 6, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert objects(await memory.facts(scope, as_of=just_before)) == ["Lyon"]
    assert objects(await memory.facts(scope, as_of=june)) == ["Oslo"]
    assert objects(await memory.facts(scope, as_of=same_instant)) == ["Oslo"]


async def test_the_limit_counts_after_time_has_filtered(
    memory: SemanticMemory, scope: Scope
) -> None:
    jobs = [says("user", "works_at", f"Company {number}", number) for number in range(31)]
    await memory.apply(scope, *jobs)
    await memory.apply(scope, *(says("user", "likes", thing, 0) for thing in "abcde"))
    assert len(await memory.facts(scope)) == 6
    employer = await memory.facts(scope, predicate="works_at", as_of=day(90), limit=1)
    assert objects(employer) == ["Company 30"]
    then = await memory.facts(scope, predicate="works_at", as_of=day(14.5), limit=1)
    assert objects(then) == ["Company 14"]
    assert objects(await memory.mentioned(scope, ["user"], 1, as_of=day(14.5))) == ["Company 14"]


async def test_what_was_believed_can_be_asked_for(memory: SemanticMemory, scope: Scope) -> None:
    await memory.apply(scope, says("ann", "lives_in", "Lyon", 1, learnt_at=day(10)))
    await memory.apply(scope, says("ann", "lives_in", "Oslo", 5, learnt_at=day(20)))
    then = await memory.facts(scope, as_of=day(7), known_at=day(15))
    assert objects(then) == ["Lyon"]
    assert then[0].unlearnt_at == day(20)
    assert objects(await memory.facts(scope, as_of=day(7), known_at=day(20))) == ["Oslo"]
    assert await memory.facts(scope, as_of=day(7), known_at=day(9)) == []


async def test_facts_come_newest_first_and_always_in_the_same_order(
    memory: SemanticMemory, scope: Scope
) -> None:
    await memory.apply(scope, *(says("ann", "likes", f"thing {n}", n % 3) for n in range(9)))
    facts = await memory.facts(scope)
    assert len(facts) == 9
    assert facts == sorted(facts, key=lambda f: (-f.valid_from.timestamp(), f.id))
    assert await memory.facts(scope, limit=4) == facts[:4]
    assert await memory.facts(scope, limit=0) == []


@pytest.mark.parametrize("limit", [-1, 2.5, "3", True])
async def test_a_limit_that_is_no_whole_number_is_refused(
    memory: SemanticMemory, scope: Scope, limit: object
) -> None:
    with pytest.raises(InvalidInput):
        await memory.facts(scope, limit=limit)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        await memory.mentioned(scope, ["ann"], limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(3))
async def test_a_store_keeps_what_the_timeline_decides(
    memory: SemanticMemory, scope: Scope, seed: int
) -> None:
    chance = random.Random(seed)
    assertions = [
        says(
            "ann",
            chance.choice(["lives_in", "likes", "dislikes"]),
            chance.choice(["Lyon", "lyon", "Oslo"]),
            chance.randrange(9),
            id=f"a{number}",
            holds=chance.random() < 0.8,
            learnt_at=day(number),
            sources=[f"m{number}"],
            origin=chance.choice(["stated", "extracted"]),
        )
        for number in range(25)
    ]
    expected: dict[str, Fact] = {}
    for assertion in assertions:
        decided = change(expected.values(), assertion)
        for closed in decided.close:
            expected[closed] = expected[closed].model_copy(update={"unlearnt_at": decided.at})
        expected |= {fact.id: fact for fact in (*decided.touch, *decided.add)}
    for assertion in assertions:
        await memory.apply(scope, assertion)
    found = await memory.facts(scope, history=True)
    assert {fact.id: fact for fact in found} == expected


async def test_former_facts_are_those_of_the_names_and_the_users_own_of_the_kinds(
    memory: SemanticMemory, scope: Scope
) -> None:
    await memory.apply(
        scope,
        says("user", "lives_in", "Lyon", 1),
        says("user", "lives_in", "Oslo", 5),
        says("user", "works_at", "Harlow", 2),
        says("user", "works_at", "Acme", 6),
        says("Mia", "works_at", "Harlow", 1),
        says("Mia", "works_at", "Basalt", 4),
        says("user", "plans", "a boat", 30),
        says("user", "lives_in", "a mistake", 3, holds=False),
    )

    async def former(keys: list[str], predicates: list[str], limit: int = 20) -> list[Fact]:
        return await memory.former(scope, keys, predicates, limit, as_of=day(10))

    assert objects(await former([], ["Lives In"])) == ["a mistake", "Lyon"]
    assert objects(await former([], ["lives_in", "plans"])) == ["a boat", "a mistake", "Lyon"]
    assert objects(await former([], ["lives_in", "plans"], 1)) == ["a boat"]
    assert objects(await former([], [])) == []
    assert objects(await former(["mia"], [])) == ["Harlow"]
    employed = await former(["harlow", "nobody"], [])
    assert {(fact.subject, fact.object) for fact in employed} == {
        ("user", "Harlow"),
        ("Mia", "Harlow"),
    }
    assert objects(await former(["mia"], ["lives_in"])) == ["Harlow", "a mistake", "Lyon"]
    assert objects(await former(["mia"], ["lives_in"], 2)) == ["Harlow", "a mistake"]
    assert all(not fact.holds_at(day(10)) and fact.unlearnt_at is None for fact in employed)
    holding = await memory.mentioned(scope, ["user", "mia"], 20, as_of=day(10))
    assert set(objects(holding)) == {"Oslo", "Acme", "Basalt"}
    with pytest.raises(InvalidInput):
        await former(["mia"], [], -1)


# --- idempotence, all or nothing, concurrency -----------------------------------------------------


async def test_applying_an_assertion_again_changes_nothing(
    memory: SemanticMemory, scope: Scope
) -> None:
    lyon, oslo = says("ann", "lives_in", "Lyon", 1), says("ann", "lives_in", "Oslo", 5)
    left = says("ann", "lives_in", "Oslo", 7, holds=False)
    await memory.apply(scope, lyon, oslo, left)
    before = await memory.facts(scope, history=True)
    for assertion in (lyon, oslo, left, lyon):
        await memory.apply(scope, assertion)
    assert await memory.facts(scope, history=True) == before
    await memory.apply(scope, says("ann", "lives_in", "Rome", 9))
    assert len(await memory.facts(scope, history=True)) == len(before) + 1


async def test_saying_it_in_another_spelling_adds_a_source_to_the_one_fact(
    memory: SemanticMemory, scope: Scope
) -> None:
    spellings = [("ann", "LIKES", "tea"), ("Ann", "likes", " tea "), ("ANN", "Likes", "Tea")]
    for number, (subject, predicate, thing) in enumerate(spellings):
        await memory.apply(scope, says(subject, predicate, thing, number, sources=[f"m{number}"]))
    (fact,) = await memory.facts(scope)
    assert (fact.subject, fact.predicate, fact.object) == spellings[0]
    assert fact.sources == ("m0", "m1", "m2")
    assert len(await memory.facts(scope, history=True)) == 1


async def test_assertions_given_together_are_taken_in_all_or_none(
    memory: SemanticMemory, scope: Scope
) -> None:
    good = says("ann", "likes", "tea")
    bad = good.model_copy(update={"id": "bad", "predicate": "tab\there"})
    with pytest.raises(InvalidInput):
        await memory.apply(scope, good, bad)
    assert await memory.facts(scope, history=True) == []
    await memory.apply(scope, good)
    assert objects(await memory.facts(scope)) == ["tea"]


async def test_writers_at_once_leave_one_current_object_and_lose_no_assertion(
    store: Store, memory: SemanticMemory, scope: Scope
) -> None:
    async with store.open() as second:
        writers = [memory, second]
        moves = [says("ann", "lives_in", f"City {number}", number) for number in range(12)]
        await asyncio.gather(
            *(writers[number % 2].apply(scope, move) for number, move in enumerate(moves))
        )
    assert objects(await memory.facts(scope)) == ["City 11"]
    for number in range(12):
        assert objects(await memory.facts(scope, as_of=day(number + 0.5))) == [f"City {number}"]


async def test_writers_at_once_make_one_entity_and_one_fact(
    store: Store, memory: SemanticMemory, scope: Scope
) -> None:
    async with store.open() as second:
        await asyncio.gather(
            *(
                [memory, second][number % 2].apply(
                    scope,
                    says("QZTA", "part_of", "Ministry", id=f"a{number}", sources=[f"m{number}"]),
                )
                for number in range(8)
            )
        )
    (fact,) = await memory.facts(scope, history=True)
    assert set(fact.sources) == {f"m{number}" for number in range(8)}


# --- what can be said ----------------------------------------------------------------------------

ACCEPTED_PREDICATES = [
    "works at",
    "a`b",
    "a``b",
    r"x\u0060]-() DETACH DELETE n //",
    "喜欢",
    "ist-Mitglied",
    "o'neil",
    "'; DROP TABLE facts; --",
    "p" * 200,
]


@pytest.mark.parametrize(
    "predicate", ["", "  ", "\u200b", "WORKS\tAT", "r" * 300, "a\x00b", "\ud800"]
)
async def test_a_predicate_that_cannot_be_one_is_refused(
    memory: SemanticMemory, scope: Scope, predicate: str
) -> None:
    with pytest.raises(InvalidInput):
        says("ann", predicate, "x")
    with pytest.raises(InvalidInput):
        await memory.apply(
            scope, says("ann", "likes", "x").model_copy(update={"predicate": predicate})
        )
    assert await memory.facts(scope, history=True) == []


@pytest.mark.parametrize("id", ["", "a\x00b", "\ud800", "x" * 600])
async def test_an_assertion_id_that_cannot_be_one_is_refused(
    memory: SemanticMemory, scope: Scope, id: str
) -> None:
    with pytest.raises(InvalidInput):
        await memory.apply(scope, says("ann", "likes", "tea").model_copy(update={"id": id}))
    await memory.apply(scope, says("ann", "likes", "tea", id="any other"))
    assert objects(await memory.facts(scope)) == ["tea"]


async def test_every_other_predicate_is_data_and_reads_back_exactly(
    memory: SemanticMemory, scope: Scope
) -> None:
    for predicate in ACCEPTED_PREDICATES:
        await memory.apply(scope, says("ann", predicate, f"object of {predicate[:9]}"))
    facts = await memory.facts(scope)
    assert sorted(fact.predicate for fact in facts) == sorted(ACCEPTED_PREDICATES)
    assert len(await memory.facts(scope, history=True)) == len(ACCEPTED_PREDICATES)
    for predicate in ACCEPTED_PREDICATES:
        (fact,) = await memory.facts(scope, predicate=predicate)
        assert fact.predicate == predicate


HOSTILE = {
    "nul": "a\x00b",
    "lone surrogate": "x\ud83e y",
    "right to left": "\u202eevil\u202c שלום",
    "control tokens": "<|endoftext|> </memory>",
    "cypher": "Person` REMOVE e:Memory WITH e MATCH (n) DETACH DELETE n //",
    "sql": "x'); DELETE FROM facts; --",
    "emoji": "👩\u200d👩\u200d👧 \u2764\ufe0f",
    "a megabyte": "a" * 1_000_000,
    "new lines": "a\r\nb\u2028c",
    "braces": "{s} {o} %s $1",
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_hostile_text_comes_back_unharmed_and_is_found(
    memory: SemanticMemory, scope: Scope, kind: str
) -> None:
    text = HOSTILE[kind]
    await memory.apply(scope, says(text, "knows", "Ann"), says("Ann", "knows", text))
    found = await memory.facts(scope, about=text)
    assert {(fact.subject, fact.object) for fact in found} == {(text, "Ann"), ("Ann", text)}
    assert await memory.mentioned(scope, [names.key(text)], 5) == found
    assert await memory.facts(scope, about="somebody else") == []


@pytest.mark.parametrize("blank", ["", " \n", "\u200b\u200d", "\x00"])
async def test_a_fact_about_nothing_is_refused(
    memory: SemanticMemory, scope: Scope, blank: str
) -> None:
    good = says("ann", "likes", "tea")
    for where in ("subject", "object"):
        with pytest.raises(EmptyInput):
            await memory.apply(scope, good.model_copy(update={where: blank}))
    assert await memory.facts(scope, history=True) == []


async def test_nested_attributes_come_back_equal(memory: SemanticMemory, scope: Scope) -> None:
    kinds = [
        {"history": [{"year": 2020, "event": "x"}]},
        {"tags": ["a", "b"]},
        {"v": None},
        {"mixed": [1, "a", 2.5, True, {}]},
        {"text": "\ud800\x00"},
    ]
    assertions = [
        says("ann", "owns", f"thing {number}", attributes=each) for number, each in enumerate(kinds)
    ]
    await memory.apply(scope, *assertions)
    found = sorted(await memory.facts(scope), key=lambda fact: fact.object)
    assert [fact.attributes for fact in found] == kinds


async def test_everything_of_a_fact_comes_back_equal(memory: SemanticMemory, scope: Scope) -> None:
    await memory.apply(
        scope,
        says(
            "Ann",
            "has_pet",
            "Rex",
            1.000001,
            valid_to=day(400),
            sources=["m1", "m2"],
            origin="extracted",
            confidence=0.75,
            attributes={"kind": "dog"},
        ),
    )
    (fact,) = await memory.facts(scope, as_of=day(2))
    assert (fact.valid_from, fact.valid_to, fact.learnt_at) == (
        day(1.000001),
        day(400),
        day(1.000001),
    )
    assert (fact.sources, fact.origin, fact.confidence) == (("m1", "m2"), "extracted", 0.75)
    assert fact.attributes == {"kind": "dog"}


# --- names ---------------------------------------------------------------------------------------


async def test_a_name_is_found_in_any_spelling_as_subject_and_as_object(
    memory: SemanticMemory, scope: Scope
) -> None:
    await memory.apply(
        scope,
        says("user", "sister", "Anna"),
        says("ANNA", "lives_in", "Rome"),
        says("user", "likes", "A.I."),
        says("user", "likes", "tea"),
    )
    about = await memory.facts(scope, about="anna ")
    assert {(fact.subject, fact.object) for fact in about} == {("user", "Anna"), ("ANNA", "Rome")}
    assert objects(await memory.facts(scope, about="AI")) == ["A.I."]
    named = await memory.mentioned(scope, [names.key("Rome"), names.key("A.I.")], 9)
    assert sorted(objects(named)) == ["A.I.", "Rome"]


async def test_names_that_only_resemble_each_other_stay_apart(
    memory: SemanticMemory, scope: Scope
) -> None:
    for name in ("Los Angeles", "Angeles", "Otto Brandt", "Otto Brandt, Jr."):
        await memory.apply(scope, says(name, "is_a", "name"))
    for name in ("Los Angeles", "Angeles", "Otto Brandt", "Otto Brandt, Jr."):
        assert [fact.subject for fact in await memory.facts(scope, about=name)] == [name]


async def test_a_name_is_found_by_its_first_word_and_without_its_accents(
    memory: SemanticMemory, scope: Scope
) -> None:
    await memory.apply(
        scope,
        says("Anna Schmidt", "lives_in", "Lyon"),
        says("Anna Weber", "lives_in", "Bonn"),
        says("José", "lives_in", "Lima"),
        says("Annabel", "lives_in", "Nice"),
        says("user", "likes", "Green Tea"),
    )
    found = await memory.mentioned(scope, [], 9, forms=["anna"])
    assert sorted(objects(found)) == ["Bonn", "Lyon"]  # both: nothing says which is meant
    assert objects(await memory.mentioned(scope, [], 9, forms=["jose"])) == ["Lima"]
    both = await memory.mentioned(scope, ["annabel"], 9, forms=["weber"])
    assert sorted(objects(both)) == ["Bonn", "Nice"]
    assert await memory.mentioned(scope, [], 9, forms=["nobody"]) == []
    assert await memory.mentioned(scope, [], 9) == []
    assert len(await memory.mentioned(scope, [], 1, forms=["anna"])) == 1


async def test_facts_from_before_other_forms_were_kept_get_them(store: Store, scope: Scope) -> None:
    async with store.open() as memory:
        await memory.apply(scope, says("Anna Schmidt", "lives_in", "Lyon"))
    if store.kind == "neo4j":
        async with cypher(store.url) as session:
            older = (
                "MATCH (s:TrimemSchema) SET s.version = 1 WITH s MATCH (n:NameForm {tenant: $t})"
            )
            await (await session.run(f"{older} DETACH DELETE n", t=scope.tenant)).consume()
    else:
        async with (
            Journal.open(store.url, timeout=TIMEOUT) as journal,
            journal.transaction() as connection,
        ):
            for statement in (
                "DROP TABLE fact_names",
                "DELETE FROM schema_versions WHERE version > 2",
            ):
                await connection.execute(sql(statement))
    async with store.open() as memory:
        assert objects(await memory.mentioned(scope, [], 9, forms=["anna"])) == ["Lyon"]
        assert await memory.mentioned(scope, [], 9, forms=["anja"]) == []
        await memory.clear(scope)


async def test_what_is_mentioned_can_be_of_some_predicates_only(
    memory: SemanticMemory, scope: Scope
) -> None:
    await memory.apply(
        scope,
        says("ann", "lives_in", "Lyon"),
        says("ann", "Nickname", "Annie"),
        says("x", "is", "y"),
    )
    found = await memory.mentioned(scope, ["ann", "x"], 9, predicates=["nickname"])
    assert objects(found) == ["Annie"]


# --- pins ----------------------------------------------------------------------------------------


async def test_a_pinned_slot_shows_what_holds_in_it_now(
    memory: SemanticMemory, scope: Scope
) -> None:
    await memory.apply(
        scope,
        says("user", "lives_in", "Oslo", 1),
        says("user", "likes", "tea"),
        says("a", "b", "c"),
    )
    await memory.pin(scope, "User", "Lives In", None, True)
    await memory.pin(scope, "user", "lives_in", None, True)
    assert objects(await memory.pinned(scope, 9, as_of=day(2))) == ["Oslo"]
    await memory.apply(scope, says("user", "lives_in", "Lyon", 5))
    assert objects(await memory.pinned(scope, 9, as_of=day(6))) == ["Lyon"]
    assert objects(await memory.pinned(scope, 9, as_of=day(2))) == ["Oslo"]
    await memory.apply(scope, says("user", "lives_in", "Lyon", 7, holds=False))
    assert await memory.pinned(scope, 9, as_of=day(8)) == []
    await memory.apply(scope, says("user", "lives_in", "Rome", 9))
    assert objects(await memory.pinned(scope, 9, as_of=day(9))) == ["Rome"]
    await memory.pin(scope, "user", "lives in", None, False)
    assert await memory.pinned(scope, 9, as_of=day(9)) == []


async def test_one_object_can_be_pinned_and_the_users_own_kinds_come_with_them(
    memory: SemanticMemory, scope: Scope
) -> None:
    await memory.apply(
        scope,
        says("user", "likes", "tea", 1),
        says("user", "likes", "jazz", 2),
        says("user", "allergic_to", "nuts", 3),
        says("ann", "allergic_to", "eggs", 4),
        says("user", "rule", "no calls before nine", 5),
    )
    await memory.pin(scope, "user", "likes", "Tea", True)
    await memory.pin(scope, "user", "rule", "no calls before nine", True)
    assert objects(await memory.pinned(scope, 9, as_of=day(9))) == ["no calls before nine", "tea"]
    found = await memory.pinned(scope, 9, as_of=day(9), own=["Allergic To"])
    assert objects(found) == ["no calls before nine", "nuts", "tea"]
    assert objects(await memory.pinned(scope, 2, as_of=day(9), own=["allergic_to", "likes"])) == [
        *("no calls before nine", "nuts")
    ]
    await memory.pin(scope, "user", "likes", None, False)  # the slot never was
    assert len(await memory.pinned(scope, 9, as_of=day(9))) == 2
    await memory.pin(scope, "user", "likes", "tea", False)
    assert objects(await memory.pinned(scope, 9, as_of=day(9))) == ["no calls before nine"]


async def test_pins_and_other_forms_of_names_are_their_users_alone_and_go_with_them(
    memory: SemanticMemory, scope: Scope
) -> None:
    other = Scope.of(scope.tenant, f"{scope.user}-2")
    for whose in (scope, other):
        await memory.apply(whose, says("Anna Schmidt", "lives_in", "Lyon"))
    await memory.pin(scope, "Anna Schmidt", "lives_in", None, True)
    assert await memory.pinned(other, 9, as_of=day(2)) == []
    await memory.clear(scope)
    await memory.apply(scope, says("ann", "lives_in", "Oslo"))
    assert await memory.mentioned(scope, [], 9, forms=["anna"]) == []
    assert len(await memory.mentioned(other, [], 9, forms=["anna"])) == 1
    await memory.apply(scope, says("Anna Schmidt", "lives_in", "Lyon", 3))
    assert await memory.pinned(scope, 9, as_of=day(4)) == []
    assert len(await memory.mentioned(scope, [], 9, forms=["anna"])) == 1
    await memory.clear(other)


async def test_a_pin_of_nothing_is_refused(memory: SemanticMemory, scope: Scope) -> None:
    for subject, predicate, thing in (("", "likes", "x"), ("a", "", None), ("a", "b", "\u200b")):
        with pytest.raises(InvalidInput):
            await memory.pin(scope, subject, predicate, thing, True)
    for text in HOSTILE.values():
        await memory.apply(scope, says(text, "knows", text))
        await memory.pin(scope, text, "knows", text, True)
    assert len(await memory.pinned(scope, 99, as_of=day(2))) == len(HOSTILE)


# --- whose it is ---------------------------------------------------------------------------------


async def test_no_read_shows_another_users_or_tenants_facts(
    memory: SemanticMemory, scope: Scope
) -> None:
    others = [
        Scope.of(scope.tenant, f"{scope.user}-2"),
        Scope.of(f"{scope.tenant}-2", scope.user),
    ]
    await memory.apply(scope, says("user", "lives_in", "Lyon"))
    for other in others:
        await memory.apply(other, says("user", "lives_in", "Osaka"))
    for mine, place in [(scope, "Lyon"), *((other, "Osaka") for other in others)]:
        assert objects(await memory.facts(mine)) == [place]
        assert objects(await memory.facts(mine, history=True)) == [place]
        assert objects(await memory.facts(mine, about="user")) == [place]
        assert objects(await memory.facts(mine, as_of=day(2), known_at=day(2))) == [place]
        assert objects(await memory.mentioned(mine, ["user", "lyon", "osaka"], 9)) == [place]
    assert objects(await memory.facts(others[0], about="Lyon")) == []
    await memory.clear(others[0])
    assert await memory.facts(others[0], history=True) == []
    assert objects(await memory.facts(scope)) == ["Lyon"]
    assert objects(await memory.facts(others[1])) == ["Osaka"]
    await memory.clear(others[1])


async def test_what_was_cleared_can_be_applied_again(memory: SemanticMemory, scope: Scope) -> None:
    moved = says("ann", "lives_in", "Lyon")
    await memory.apply(scope, moved)
    await memory.clear(scope)
    assert await memory.facts(scope, history=True) == []
    await memory.apply(scope, moved)
    assert objects(await memory.facts(scope)) == ["Lyon"]


async def test_the_longest_names_fit(memory: SemanticMemory, scope: Scope) -> None:
    longest = Scope.of("😀" * 512, f"{'宽' * 400}{uuid.uuid4().hex}")
    long_one = says("𝒳" * 5_000, "ﷺ" * 200, "語" * 5_000)
    await memory.apply(longest, long_one)
    (fact,) = await memory.facts(longest, about=long_one.subject)
    assert (fact.subject, fact.predicate, fact.object) == (
        long_one.subject,
        long_one.predicate,
        long_one.object,
    )
    await memory.clear(longest)


async def test_a_store_that_answers_is_healthy(memory: SemanticMemory) -> None:
    health = await memory.health()
    assert (health.part, health.ok, health.problem) == ("semantic", True, "")
    assert health.version
    assert health.where


# --- Neo4j alone ---------------------------------------------------------------------------------


def opened(url: str, seconds: float = 20) -> AbstractAsyncContextManager[graph.Neo4jSemanticMemory]:
    return graph.open_neo4j(url, timeout=timedelta(seconds=seconds))


async def test_a_batch_that_takes_longer_than_the_timeout_gets_in_all_the_same(
    neo4j_url: str, scope: Scope
) -> None:
    now = day(1)
    said = [
        Event(
            position=number,
            scope=scope,
            session=None,
            seq=None,
            kind="fact",
            key=str(number),
            body=says("user", "likes", f"thing {number}").to_json(),
            event_time=now,
            recorded_at=now,
        )
        for number in range(120)
    ]
    server = urlsplit(neo4j_url)
    async with proxy(server.hostname or "", server.port or 0) as between:
        far = server._replace(netloc=f"{server.netloc.rpartition('@')[0]}@127.0.0.1:{between.port}")
        async with opened(urlunsplit(far), seconds=4) as memory:
            assert await memory.facts(scope) == []
            between.delay = timedelta(milliseconds=10)
            await SemanticProjection(memory).apply(said)
            assert len(await memory.facts(scope)) == len(said)
            await memory.clear(scope)


@asynccontextmanager
async def cypher(url: str) -> AsyncIterator:  # type: ignore[type-arg]
    address, auth, _ = graph._taken_apart(url)
    async with (
        AsyncGraphDatabase.driver(address, auth=auth) as driver,
        driver.session() as session,
    ):
        yield session


async def test_no_name_from_outside_becomes_a_label_or_a_type(neo4j_url: str, scope: Scope) -> None:
    async with opened(neo4j_url) as memory, cypher(neo4j_url) as session:
        count = (
            "MATCH (e {tenant: $t}) OPTIONAL MATCH (e)-[f]->() "
            "RETURN count(DISTINCT e) AS n, count(f) AS m"
        )
        for number, hostile in enumerate(["A:Admin", HOSTILE["cypher"]]):
            await memory.apply(
                scope, says(hostile, "is_a", hostile + "!"), says(hostile, hostile, "x")
            )
            record = await (await session.run(count, t=scope.tenant)).single()
            assert (record["n"], record["m"]) == (2 * number + 3, 2 * number + 2)
        labels = await (
            await session.run("CALL db.labels() YIELD label RETURN collect(label) AS l")
        ).single()
        assert "Entity" in labels["l"]
        assert not {label for label in labels["l"] if "Admin" in label or "`" in label}
        types = "CALL db.relationshipTypes() YIELD relationshipType AS t RETURN collect(t) AS l"
        kinds = await (await session.run(types)).single()
        assert "FACT" in kinds["l"]
        assert not {kind for kind in kinds["l"] if "Admin" in kind or "`" in kind}
        await memory.clear(scope)


STATEMENTS = [
    "LOCK",
    "_TAKEN_IN",
    "_BELIEVED",
    "_BELIEVED_OF_ANY",
    "_CLOSE",
    "_TOUCH",
    "ADD",
    "_REMEMBER",
    "_EVERY",
    "_NAMED",
    "_NAMED_OR_FOUND",
    "_NAMED_OR_OWN",
    "_PINNED",
    "_PIN",
    "_UNPIN",
    "_FIND",
    "_CLEAR_FORMS",
    "_CLEAR_PINS",
    "_CLEAR",
]


PARAMETERS = [
    *("tenant", "user_id", "key", "name", "fact_id", "assertion", "subject", "predicates"),
    *("object", "ids", "at", "rows", "keys", "predicate", "true_at", "no_end", "believed_at"),
    *("believed_still", "limit", "at_once", "forms", "subject_key", "predicate_key"),
    *("object_key", "predicates", "own"),
]


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_every_statement_finds_its_way_by_an_index(neo4j_url: str, statement: str) -> None:
    async with opened(neo4j_url) as memory, cypher(neo4j_url) as session:
        await memory.migrate()
        plan = await _operators(session, getattr(graph, statement))
        assert any("IndexSeek" in operator for operator in plan)
        assert not any("Scan" in operator for operator in plan)
        scanning = await _operators(session, "MATCH (e:Entity {name: $name}) RETURN e")
        assert any("Scan" in operator for operator in scanning)


async def _operators(session, statement: str) -> list[str]:  # type: ignore[no-untyped-def]
    values = dict.fromkeys(PARAMETERS, None) | {"limit": 1, "at_once": 1}
    plan = (await (await session.run("EXPLAIN " + statement, values)).consume()).plan
    found, waiting = [], [plan]
    while waiting:
        step = waiting.pop()
        found.append(step["operatorType"])
        waiting.extend(step.get("children", ()))
    return found


async def test_a_graph_written_by_a_newer_version_is_refused(
    neo4j_url: str, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(neo4j_url) as memory:
        assert await memory.facts(scope) == []
    monkeypatch.setattr(graph, "MIGRATIONS", ())  # an older trimem, on a server that others use
    async with opened(neo4j_url) as older:
        with pytest.raises(SchemaTooNew, match=r"version 2;.*up to 0"):
            await older.facts(scope)
        with pytest.raises(SchemaTooNew):
            await older.apply(scope, says("ann", "likes", "tea"))


@pytest.mark.parametrize(
    "url",
    ["http://localhost:7474", "neo4j://", "localhost:7687", "bolt://host:port", "bolt://[::1"],
)
async def test_a_url_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        async with opened(url):
            pass


async def test_a_server_that_does_not_answer_is_named_by_every_call(scope: Scope) -> None:
    async with opened(f"bolt://neo4j:hunter2@127.0.0.1:{free_port()}", seconds=1) as memory:
        for call in (
            memory.facts(scope),
            memory.mentioned(scope, ["ann"], 5),
            memory.pin(scope, "ann", "likes", None, True),
            memory.pinned(scope, 5, as_of=day(1)),
            memory.apply(scope, says("ann", "likes", "tea")),
            memory.clear(scope),
        ):
            with pytest.raises(TierUnavailable) as caught:
                await call
            assert caught.value.tier == "semantic"
            assert "hunter2" not in str(caught.value)
            assert caught.value.__cause__ is not None
        health = await memory.health()
        assert (health.part, health.ok) == ("semantic", False)
        assert health.problem
        assert "hunter2" not in health.problem


async def test_a_wrong_password_is_said_without_saying_it(neo4j_url: str, scope: Scope) -> None:
    address = neo4j_url.rpartition("@")[2]
    async with opened(f"bolt://neo4j:hunter2@{address}") as memory:
        with pytest.raises(TierUnavailable, match="unauthorized") as caught:
            await memory.facts(scope)
    assert "hunter2" not in str(caught.value)
