"""What lexical search promises, over SQLite and PostgreSQL alike."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection

from memory import episode_store as store
from memory import lexical
from memory.asking import Query
from memory.bm25 import K1, B
from memory.episodes import split
from memory.errors import InvalidInput
from memory.journal import Journal
from memory.journal.schema import owner_of
from memory.lexical import KEPT, READ, LexicalIndex
from memory.models import RecordedMessage, Role, Scope
from memory.text import terms
from tests import ranking

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

FILLER = [
    f"{subject} {verb} {thing} number {number}"
    for number, (subject, verb, thing) in enumerate(
        (s, v, t)
        for s in ("Ada", "Ben", "Chen", "Dora", "Emil")
        for v in ("bought", "painted", "lost", "found", "repaired")
        for t in ("a bicycle", "the fence", "some apples", "an umbrella", "old books", "a lamp")
    )
]
LETTERS = str.maketrans("0123456789", "ghijklmnop")
CHINESE = [
    f"{who}{when}{what}，第{number}次"
    for number, (who, when, what) in enumerate(
        (a, b, c)
        for a in ("小王", "老李", "小张", "妈妈", "同事")
        for b in ("昨天", "周末", "上午", "晚上", "月初")
        for c in ("去公园散步", "看了一部电影", "买了新鲜水果", "整理了书架")
    )
]


@pytest.fixture
def index(journal: Journal) -> LexicalIndex:
    return LexicalIndex(journal)


async def store_texts(
    journal: Journal, scope: Scope, texts: Sequence[str], session: str = "s"
) -> dict[str, str]:
    """Stores an episode for each text, without vectors; texts by the ids of their episodes."""
    messages = [
        RecordedMessage(
            id=f"{scope.tenant} {scope.user} {session} {seq} {text[:20]!r}",
            session=session,
            seq=seq,
            role=Role.USER,
            content=text,
            event_time=NOW,
            recorded_at=NOW,
        )
        for seq, text in enumerate(texts, start=1)
    ]
    found = [episode for message in messages for episode in split(message).episodes]
    new = [(store.New(one, None, "not embedded"), lexical.counted(one.text)) for one in found]

    def work(connection: Connection) -> None:
        user = store.made_owner(connection, owner_of(scope))
        store.add(connection, user.n, new, store.space_of(connection, "none", 1))

    await journal.write(work)
    return {one.id: one.text for one in found}


async def texts_found(
    index: LexicalIndex, scope: Scope, query: str, k: int, texts: dict[str, str]
) -> list[str]:
    return [texts[hit.id] for hit in await index.search(scope, query, k)]


async def test_order_numbers_and_file_names_are_found_by_the_letter(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    order, plan = "refund for order 7300418826 was approved", "config lives in PLAN.md"
    texts = await store_texts(journal, scope, [*FILLER, order, plan])
    assert await texts_found(index, scope, "7300418826", 5, texts) == [order]
    assert await texts_found(index, scope, "PLAN.md", 5, texts) == [plan]
    assert await texts_found(index, scope, "7300418827", 5, texts) == []


async def test_chinese_words_are_found_without_a_dictionary(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    wanted = "我们每周巡检用 cron 做备份，机房在成都"
    texts = await store_texts(journal, scope, [*CHINESE, wanted])
    for query in ("备份", "每周巡检 cron", "成都"):
        assert wanted in await texts_found(index, scope, query, 3, texts)
    assert await index.search(scope, "蓉", 3) == []


async def test_english_results_do_not_change_for_chinese_neighbours(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    alone, mixed = scope, Scope.of(scope.tenant, f"{scope.user}-mixed")
    texts = await store_texts(journal, alone, FILLER)
    texts |= await store_texts(journal, mixed, [*FILLER, *CHINESE])
    for query in ("did Ada repair a bicycle", "Chen's lost lamp", "Emil and the painted fence"):
        first = await texts_found(index, alone, query, 1, texts)
        assert len(first) == 1
        assert await texts_found(index, mixed, query, 1, texts) == first


async def test_scores_are_those_of_bm25(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    texts = await store_texts(
        journal, scope, [*FILLER, "lamp lamp lamp, a lamp for Ada", "Ada and only Ada"]
    )
    query = "Did Ada repair the lamp?"
    hits = await index.search(scope, query, 500)
    expected = bm25(query, texts)
    assert {hit.id for hit in hits} == set(expected)
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.id], abs=1e-6)


def bm25(query: str, texts: dict[str, str]) -> dict[str, float]:
    counts = {key: Counter(terms(text)) for key, text in texts.items()}
    average = sum(each.total() for each in counts.values()) / len(counts)
    scores: dict[str, float] = {}
    for term in set(terms(query)):
        saying = [key for key, each in counts.items() if term in each]
        idf = math.log(1 + (len(counts) - len(saying) + 0.5) / (len(saying) + 0.5))
        for key in saying:
            tf, length = counts[key][term], counts[key].total()
            norm = tf + K1 * (1 - B + B * length / average)
            scores[key] = scores.get(key, 0.0) + idf * tf * (K1 + 1) / norm
    return scores


async def test_a_rare_word_is_found_where_everything_else_is_said_all_the_time(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    common = [f"the daily report of team {n % 7} is done" for n in range(2 * READ)]
    rare = "the daily report of team pelican is done"
    texts = await store_texts(journal, scope, [rare, *common, "pelicans eat fish, says the report"])
    for query in ("the daily report of team pelican", "pelican", "report pelican done"):
        assert (await texts_found(index, scope, query, 2, texts))[0] == rare or query == "pelican"
        assert rare in await texts_found(index, scope, query, 2, texts)
    newest = await index.search(scope, "is the daily report done", 20)
    assert len(newest) == 20
    assert all("report" in texts[hit.id] for hit in newest)
    expected = bm25("daily report pelican", texts)
    for hit in await index.search(scope, "daily report pelican", 2):
        assert hit.score == pytest.approx(expected[hit.id], abs=1e-6)


async def test_equals_come_in_the_order_of_their_ids_wherever_they_are_cut(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    await store_texts(journal, scope, [*FILLER, *["the same words again"] * 40])
    every = [hit.id for hit in await index.search(scope, "same words", 100)]
    assert len(every) == 40
    assert every == sorted(every)
    for k in (1, 7, 39):
        assert [hit.id for hit in await index.search(scope, "same words", k)] == every[:k]


async def test_nobody_else_is_searched_and_nobody_else_matters(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    secret = "the password of the vault is swordfish"
    texts = await store_texts(journal, scope, [*FILLER, secret])
    before = await index.search(scope, "vault password", 5)
    others = [Scope.of(scope.tenant, "somebody"), Scope.of("elsewhere", scope.user)]
    for other in others:
        await store_texts(journal, other, [*FILLER, "a vault", "another vault", "no password"])
        found = await index.search(other, "swordfish", 5)
        assert found == []
    assert [texts[hit.id] for hit in before] == [secret]
    assert await index.search(scope, "vault password", 5) == before
    assert await index.search(Scope.of(scope.tenant, "nobody"), "vault", 5) == []


async def test_archived_episodes_are_not_found_until_they_are_back(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    texts = await store_texts(journal, scope, [*FILLER, "a unicorn in the garden"])
    unicorn = next(key for key, text in texts.items() if "unicorn" in text)
    everything = await index.search(scope, "Ada lamp", 20)

    async def archive(archived: bool) -> None:
        def work(connection: Connection) -> None:
            user = store.made_owner(connection, owner_of(scope))
            store.set_archived(connection, user.n, [unicorn], archived=archived)

        await journal.write(work)

    assert [hit.id for hit in await index.search(scope, "unicorn", 5)] == [unicorn]
    await archive(True)
    await archive(True)
    assert await index.search(scope, "unicorn", 5) == []
    assert len(await index.search(scope, "Ada lamp", 20)) == len(everything)
    await archive(False)
    assert [hit.id for hit in await index.search(scope, "unicorn", 5)] == [unicorn]
    assert await index.search(scope, "Ada lamp", 20) == everything


async def test_a_reindexed_user_is_searched_as_before(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    await store_texts(journal, scope, FILLER)
    before = await index.search(scope, "Ada painted the fence", 10)

    def work(connection: Connection) -> None:
        store.reindex(connection, store.made_owner(connection, owner_of(scope)).n)

    await journal.write(work)
    assert before
    assert await index.search(scope, "Ada painted the fence", 10) == before


# --- what is kept, and what is left out --------------------------------------------------------


async def test_what_is_kept_answers_as_reading_anew_does(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    """Whatever others add, archive and bring back between the questions."""

    async def same() -> None:
        for query in ("Ada painted the fence", "lamp", "unicorn garden"):
            anew = await LexicalIndex(journal).search(scope, query, 20)
            assert await index.search(scope, query, 20) == anew

    async def archive(*names: str, archived: bool = True) -> None:
        def work(connection: Connection) -> None:
            user = store.made_owner(connection, owner_of(scope))
            store.set_archived(connection, user.n, names, archived=archived)

        await journal.write(work)

    texts = await store_texts(journal, scope, FILLER[:60])
    await same()
    texts |= await store_texts(journal, scope, ["a unicorn in the garden", "Ada lost a lamp"], "b")
    await same()
    await archive(*list(texts)[3:40:3])
    await same()
    texts |= await store_texts(journal, scope, ["the fence of the unicorn"], "a")
    await archive(*list(texts)[3:10:3], archived=False)
    await same()

    def reindex(connection: Connection) -> None:
        store.reindex(connection, store.made_owner(connection, owner_of(scope)).n)

    await journal.write(reindex)
    await same()
    assert len(await index.search(scope, "unicorn", 5)) == 2


async def test_many_who_ask_at_once_are_answered_as_one_is(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    await store_texts(journal, scope, FILLER)
    queries = ["Ada painted the fence", "a lamp", "old books", "Emil", "umbrella number 7"] * 8
    alone = [await LexicalIndex(journal).search(scope, query, 10) for query in queries[:5]]
    found = await asyncio.gather(*(index.search(scope, query, 10) for query in queries))
    assert found == alone * 8


@pytest.mark.parametrize("too_many", [False, True])
async def test_terms_that_were_left_out_are_completed_for_candidates(
    journal: Journal, index: LexicalIndex, scope: Scope, too_many: bool
) -> None:
    """Their scores, alone and with their windows, are those of never having left anything out."""
    said = ["the daily report of a pelican", "nothing of it", "a pelican reports", "it is done"]
    texts = [*said, *(f"the daily report of team {n % 7} is done" for n in range(READ + 50))]
    await store_texts(journal, scope, texts)
    query = Query.of("is the daily report of the pelican done")
    found = await journal.query(lambda c: lexical.said(c, index.shelf, scope, query))
    assert found is not None
    assert found.unread
    at = found.places.with_neighbours(found.best(5))
    assert len(at) == 4
    if too_many:  # of a term that more than KEPT episodes say, only these are read
        many = [term._replace(episodes=KEPT + 1) for term in found.unread]
        found = replace(found, unread=tuple(many))
    around = found.places.with_neighbours(at, 2)
    scores = (await journal.query(lambda c: lexical.completed(c, found, around))).scores(at)
    whole = ranking.Journal(ranking.conversation(*texts)).said(query.text).scores(at)
    for which in ("own", "window", "covered"):
        expected = getattr(whole, which).tolist()
        assert getattr(scores, which).tolist() == pytest.approx(expected), which


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "the of and",
        "'; DROP TABLE postings; --",
        "nul \x00 and \ud800",
        "<|endoftext|>",
        "👍",
        "%s :name ? $",
    ],
)
async def test_hostile_queries_are_only_words(
    journal: Journal, index: LexicalIndex, scope: Scope, query: str
) -> None:
    texts = await store_texts(journal, scope, [*FILLER, "drop the table"])
    found = await texts_found(index, scope, query, 5, texts)
    assert found == (["drop the table"] if "DROP" in query else [])


async def test_a_query_of_a_megabyte_is_answered(
    journal: Journal, index: LexicalIndex, scope: Scope
) -> None:
    texts = await store_texts(journal, scope, FILLER)
    query = "bicycle " + " ".join(f"{number:x}".translate(LETTERS) for number in range(150_000))
    assert "bicycle" in (await texts_found(index, scope, query, 1, texts))[0]


async def test_less_than_one_hit_cannot_be_asked_for(index: LexicalIndex, scope: Scope) -> None:
    with pytest.raises(InvalidInput):
        await index.search(scope, "bicycle", 0)
