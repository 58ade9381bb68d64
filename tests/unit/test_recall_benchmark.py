"""The recall benchmark: its metrics, what it keeps when it is stopped, and what it compares.

The set is made up, in the shape that a folder's load.py gives.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.recall.endpoint import serving
from benchmarks.recall.metrics import all_of, any_of, mean, ndcg_at, percentile, recall_at
from benchmarks.recall.peers import Peer, PeerUnavailable, installed, running
from benchmarks.recall.recall import Plan, measure, parser, reported, run
from benchmarks.recall.report import Measured, SetReport, figures, markdown
from benchmarks.recall.results import Answer, Packed, Results
from benchmarks.recall.sets import Conversation, Question, chosen, read_sets
from benchmarks.recall.systems import Baseline, Clock, Ranked, baselines, open_product
from memory.tokens import TokenCounter
from tests.stub_embedder import StubEmbedder

PLAN = Plan("stub/384", depth=10, budgets=(60, 400))
LOAD = """
SAID = [
    ("monday", "Ada", "The lighthouse keeper keeps seven goats", "2026-02-02T09:00:00"),
    ("monday", "Ben", "My boat is called Marigold", "2026-02-02T09:01:00"),
    ("friday", "Ada", "We repainted the boat shed green", "2026-02-06T18:00:00"),
    ("friday", "Ben", "Nobody came to the market", None),
]
ASKED = [
    ("What is the boat called?", "single", [1]),
    ("What colour is the boat shed?", "single", [2]),
    ("Who keeps goats and what boat is there?", "multi", [0, 1]),
    ("Which opera does Ben like?", "adversarial", []),
]


def tiny():
    for who in ("first", "second"):
        turns = [
            dict(id=f"t{n}", session=session, speaker=speaker, text=text, timestamp=time)
            for n, (session, speaker, text, time) in enumerate(SAID)
        ]
        questions = [
            dict(
                id=f"{who}{n}", q=text, answer=None, evidence=[f"t{each}" for each in places],
                evidence_sessions=sorted({SAID[each][0] for each in places}), category=category,
                time=None, extra={},
            )
            for n, (text, category, places) in enumerate(ASKED)
        ]
        yield dict(id=who, turns=turns, questions=questions)


DATASETS = {"tiny": tiny, "again": tiny}


def load(name):
    return DATASETS[name]()
"""


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / "load.py").write_text(LOAD, encoding="utf-8")
    return folder


@pytest.fixture
def tiny(bench: Path) -> list[Conversation]:
    return read_sets(bench, ["tiny"])["tiny"]


@pytest.fixture
def counter() -> TokenCounter:
    return TokenCounter("gpt-4o")


class Asked(Baseline):
    """Ranks the turns as they were said; counts what it is asked, and can break."""

    name = "in order"
    version = "1"

    def __init__(self, counter: TokenCounter, *, breaks_at: str = "") -> None:
        super().__init__(counter)
        self.asked: list[str] = []
        self._breaks_at = breaks_at

    async def ranked(self, question: Question, k: int) -> Ranked:
        if question.id == self._breaks_at:
            raise KeyboardInterrupt
        self.asked.append(question.id)
        return await super().ranked(question, k)

    async def context(self, question: Question, budget: int) -> Packed:
        return Packed(turns=(), tokens=0, ms=0.0, empty=True)

    async def _index(self, conversation: Conversation) -> None:
        self._ids = [turn.id for turn in conversation.turns]

    async def _search(self, query: str, k: int) -> list[str]:
        return self._ids[:k]


# --- metrics -----------------------------------------------------------------------------------


def test_recall_is_the_share_of_the_evidence_among_the_first() -> None:
    ranked = ["a", "x", "b", "y", "c"]
    assert recall_at(ranked, {"a", "b", "c"}, 3) == pytest.approx(2 / 3)
    assert recall_at(ranked, {"a", "b", "c"}, 5) == 1
    assert recall_at([], {"a"}, 5) == 0


def test_gain_counts_less_the_later_it_comes_and_is_one_for_the_best_order() -> None:
    assert ndcg_at(["a", "b", "x"], {"a", "b"}, 10) == 1
    assert ndcg_at(["x", "a"], {"a"}, 10) == pytest.approx(1 / math.log2(3))
    best = 1 + 1 / math.log2(3)
    assert ndcg_at(["a", "x", "b"], {"a", "b"}, 10) == pytest.approx((1 + 1 / 2) / best)
    assert ndcg_at(["x"] * 10 + ["a"], {"a"}, 10) == 0


def test_any_and_all_differ_where_some_was_found() -> None:
    assert (any_of(["a", "x"], {"a", "b"}, 2), all_of(["a", "x"], {"a", "b"}, 2)) == (1, 0)
    assert (any_of(["b", "a"], {"a", "b"}, 2), all_of(["b", "a"], {"a", "b"}, 2)) == (1, 1)
    assert (any_of(["x"], {"a"}, 2), all_of(["x"], {"a"}, 2)) == (0, 0)


def test_percentiles_are_values_that_were_measured() -> None:
    hundred = [float(each) for each in range(1, 101)]
    assert (percentile(hundred, 0.5), percentile(hundred, 0.95)) == (50, 95)
    assert percentile([3.0], 0.95) == 3
    assert percentile([], 0.5) is None
    assert mean([]) is None


@given(
    st.lists(st.sampled_from("abcdefghij"), unique=True),
    st.sets(st.sampled_from("abcdefghij"), min_size=1),
    st.integers(1, 12),
)
def test_every_metric_is_a_share_and_grows_with_what_is_looked_at(
    ranked: list[str], evidence: set[str], k: int
) -> None:
    for metric in (recall_at, any_of, all_of):
        assert 0 <= metric(ranked, evidence, k) <= metric(ranked, evidence, k + 1) <= 1
    assert 0 <= ndcg_at(ranked, evidence, k) <= 1 + 1e-9


def answered(question: str, *, category: str = "single", **changes: Any) -> Answer:
    given: dict[str, Any] = {
        "question": question,
        "category": category,
        "answerable": category != "adversarial",
        "evidence": ("a",),
        "evidence_sessions": ("s1",),
        "ranked": ("a",),
        "ranked_sessions": ("s1",),
        "recall_ms": 1.0,
        "nothing": False,
        "contexts": {400: Packed(turns=("a",), tokens=100, ms=2.0, empty=False)},
    }
    return Answer.model_validate(given | changes)


def test_questions_without_an_answer_count_in_abstention_and_in_nothing_else() -> None:
    empty: dict[str, Any] = {"ranked": (), "ranked_sessions": (), "nothing": True}
    found = figures([answered("1"), answered("2", category="adversarial", **empty)], [400])
    assert found["R@10"] == 1
    assert found["context 400"] == 1
    assert (found["nothing, unanswerable"], found["nothing, answerable"]) == (1, 0)
    found = figures([answered("1", **empty), answered("2", category="adversarial")], [400])
    assert found["R@10"] == 0
    assert (found["nothing, unanswerable"], found["nothing, answerable"]) == (0, 1)


def test_evidence_that_is_known_by_session_only_counts_by_session_only() -> None:
    found = figures([answered("1", evidence=())], [400])
    assert (found["R@10"], found["any session"], found["all sessions"]) == (None, 1, 1)


# --- sets --------------------------------------------------------------------------------------


def test_a_set_is_read_where_it_is(bench: Path, tiny: list[Conversation]) -> None:
    first = tiny[0]
    assert [each.user for each in tiny] == ["tiny/first", "tiny/second"]
    assert first.named
    assert first.shown(first.turns[1]) == "Ben: My boat is called Marigold"
    assert [question.measured for question in first.questions] == [True, True, True, False]
    assert f"{first.now(first.questions[0]):%Y-%m-%d %H:%M %Z}" == "2026-02-06 18:00 UTC"
    assert [path.name for path in bench.iterdir()] == ["load.py"]


def test_a_set_that_is_not_there_is_named(bench: Path) -> None:
    with pytest.raises(LookupError, match=r"no set 'other'.*tiny, again"):
        read_sets(bench, ["other"])
    with pytest.raises(LookupError, match=r"no load\.py"):
        read_sets(bench / "nowhere", [])


def test_a_sample_is_the_same_for_the_same_seed(tiny: list[Conversation]) -> None:
    def drawn(seed: int) -> list[str]:
        return [q.id for each in chosen(tiny, sample=3, seed=seed) for q in each.questions]

    assert drawn(1) == drawn(1)
    assert len(drawn(1)) == 3
    assert len({tuple(drawn(seed)) for seed in range(10)}) > 1
    assert [each.id for each in chosen(tiny, only=["second"])] == ["second"]
    assert len(chosen(tiny, sample=1)) == 1  # what nothing is asked of is not remembered


# --- what is kept ------------------------------------------------------------------------------


async def test_what_is_finished_is_not_asked_again(
    tmp_path: Path, tiny: list[Conversation], counter: TokenCounter
) -> None:
    path = tmp_path / "out.jsonl"
    stopped = Asked(counter, breaks_at="second2")
    with pytest.raises(KeyboardInterrupt):
        await measure([stopped], tiny, Results(path), PLAN)
    assert len(stopped.asked) == 6

    going_on = Asked(counter)
    await measure([going_on], tiny, Results(path), PLAN)
    assert going_on.asked == ["second0", "second1", "second2", "second3"]
    written = path.read_bytes()

    nothing_left = Asked(counter)
    results = Results(path)
    await measure([nothing_left], tiny, results, PLAN)
    assert nothing_left.asked == []
    assert path.read_bytes() == written
    of_it = reported("tiny", tiny, [nothing_left], results, PLAN, skipped={}).systems[0]
    assert [each.question for each in of_it.answers] == [q.id for c in tiny for q in c.questions]


async def test_what_was_being_written_when_it_was_killed_is_asked_again(
    tmp_path: Path, tiny: list[Conversation], counter: TokenCounter
) -> None:
    path = tmp_path / "out.jsonl"
    await measure([Asked(counter)], tiny, Results(path), PLAN)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for torn in (whole[:-1], whole[:-30], b"".join(lines[:-1]), whole + b'{"set": "ti'):
        path.write_bytes(torn)
        again = Asked(counter)
        await measure([again], tiny, Results(path), PLAN)
        finished = torn.startswith(whole)
        assert [each[:6] for each in again.asked] == ([] if finished else ["second"] * 4)
        assert len(path.read_bytes().splitlines()) == len(lines)


async def test_another_version_or_other_questions_are_asked(
    tmp_path: Path, tiny: list[Conversation], counter: TokenCounter
) -> None:
    results = Results(tmp_path / "out.jsonl")
    await measure([Asked(counter)], tiny, results, PLAN)

    newer = Asked(counter)
    newer.version = "2"
    await measure([newer], tiny, results, PLAN)
    assert len(newer.asked) == 8

    for plan, conversations in (
        (PLAN._replace(depth=5), tiny),
        (PLAN._replace(budgets=(60,)), tiny),
        (PLAN, chosen(tiny, sample=7)),
    ):
        other = Asked(counter)
        await measure([other], conversations, results, plan)
        assert other.asked


async def test_results_hold_no_text_of_a_set(
    tmp_path: Path, tiny: list[Conversation], counter: TokenCounter
) -> None:
    path = tmp_path / "out.jsonl"
    await measure([Asked(counter)], tiny, Results(path), PLAN)
    kept = path.read_text(encoding="utf-8")
    assert "t1" in kept
    for conversation in tiny:
        assert not any(turn.text in kept for turn in conversation.turns)
        assert not any(question.text in kept for question in conversation.questions)


# --- systems -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bm25", "chroma", "chroma-named", "rrf"])
async def test_a_baseline_finds_what_shares_words_with_the_question(
    name: str, tiny: list[Conversation], counter: TokenCounter
) -> None:
    system = baselines(counter, StubEmbedder())[name]
    for conversation in tiny:  # the second one takes the place of the first
        await system.learn(conversation)
        found = await system.ranked(conversation.questions[0], 10)
        assert {"t1", "t2"} == set(found.turns[:2])
        assert not found.nothing


async def test_the_newest_turns_come_first_whatever_is_asked(
    tiny: list[Conversation], counter: TokenCounter
) -> None:
    system = baselines(counter, StubEmbedder())["recency"]
    await system.learn(tiny[0])
    assert (await system.ranked(tiny[0].questions[0], 3)).turns == ["t3", "t2", "t1"]


async def test_bm25_finds_nothing_where_no_word_is_shared(
    tiny: list[Conversation], counter: TokenCounter
) -> None:
    system = baselines(counter, StubEmbedder())["bm25"]
    await system.learn(tiny[0])
    boat, nothing = (
        tiny[0].questions[0],
        Question("q", "Opera?", "x", frozenset(), frozenset(), None),
    )
    assert not (await system.ranked(boat, 10)).nothing
    assert (await system.ranked(nothing, 10)).nothing


async def test_a_packed_context_keeps_to_its_budget_and_fills_it(
    tiny: list[Conversation], counter: TokenCounter
) -> None:
    system = baselines(counter, StubEmbedder())["recency"]
    await system.learn(tiny[0])
    question = tiny[0].questions[0]
    sizes = [len((await system.context(question, budget)).turns) for budget in (5, 40, 400)]
    assert sizes[0] == 0 < sizes[1] < sizes[2] == 4
    for budget in range(5, 120):
        assert (await system.context(question, budget)).tokens <= budget


async def test_the_product_is_asked_through_its_front_door(
    tmp_path: Path, tiny: list[Conversation]
) -> None:
    async with open_product(tmp_path / "home", StubEmbedder(), k=None) as product:
        results = Results(tmp_path / "out.jsonl")
        await measure([product], tiny, results, PLAN)
        answers = results.of(PLAN.block(tiny[1], product))
    boat, shed, both, _ = answers
    assert boat.ranked[0] == "t1"
    assert shed.ranked[0] == "t2"
    assert set(both.ranked[:3]) >= {"t0", "t1"}
    assert boat.ranked_sessions[0] == "monday"
    for answer in answers:
        assert set(answer.ranked) <= {"t0", "t1", "t2", "t3"}
        assert all(packed.tokens <= budget for budget, packed in answer.contexts.items())
    assert "t1" in boat.contexts[400].turns


async def test_the_clock_shows_the_question_s_time_to_who_asks_and_another_to_the_rest() -> None:
    clock, asked = Clock(), asyncio.Event()
    long_ago, now = datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 2, 6, tzinfo=UTC)

    async def background() -> datetime:
        await asked.wait()
        return clock()

    async def part_of_the_question() -> datetime:
        return clock()

    running_before = asyncio.create_task(background())
    clock.background = long_ago
    clock.asking(now)
    asked.set()
    assert await asyncio.create_task(part_of_the_question()) == now
    assert await running_before == long_ago


# --- peers -------------------------------------------------------------------------------------

DRIVER = """
import json, sys, urllib.request

said = {}
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "open":
        body = json.dumps({"model": "m", "input": ["one", "two"]}).encode()
        asked = urllib.request.Request(request["endpoint"] + "/embeddings", body)
        rows = json.load(urllib.request.urlopen(asked))["data"]
        assert [len(row["embedding"]) for row in rows] == [request["dims"]] * 2
        answer = {"version": "9", "how": "by words"}
    elif request["do"] == "learn":
        said.update({turn["id"]: set(turn["text"].lower().split()) for turn in request["turns"]})
        answer = {}
    elif "opera" in request["query"]:
        answer = {"error": "no operas"}
    else:
        asked = set(request["query"].lower().strip("?").split())
        answer = {"turns": sorted(said, key=lambda turn: -len(said[turn] & asked))}
    print(json.dumps(answer), flush=True)
"""


async def test_a_peer_answers_in_a_process_of_its_own_until_it_fails(
    tmp_path: Path, tiny: list[Conversation], counter: TokenCounter
) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER, encoding="utf-8")
    peer = Peer("other", (), driver)
    results = Results(tmp_path / "out.jsonl")
    sane = chosen(tiny, only=["first"])
    sane = [type(sane[0])(c.set, c.id, c.turns, c.questions[:2]) for c in sane]
    async with (
        serving(StubEmbedder()) as endpoint,
        running(peer, Path(sys.executable), tmp_path, endpoint, counter) as system,
    ):
        assert system.version == "9, by words"
        assert await measure([system], sane, results, PLAN) == {}
        answers = results.of(PLAN.block(sane[0], system))
        assert [answer.ranked[0] for answer in answers] == ["t1", "t2"]
        assert endpoint.role == "query"
        stopped = await measure([system], tiny, results, PLAN)
    assert stopped == {"other": "search: no operas"}
    report = reported("tiny", tiny, [system], results, PLAN, skipped=stopped)
    assert (report.systems[0].answers, report.systems[0].skipped) == ([], "search: no operas")


async def test_a_peer_whose_process_ends_says_so(tmp_path: Path, counter: TokenCounter) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text("raise SystemExit('no such library')", encoding="utf-8")
    async with serving(StubEmbedder()) as endpoint:
        with pytest.raises(PeerUnavailable, match="no such library"):
            async with running(
                Peer("other", (), driver), Path(sys.executable), tmp_path, endpoint, counter
            ):
                pass


async def test_a_peer_that_cannot_be_installed_has_its_reason(tmp_path: Path) -> None:
    peer = Peer("other", (str(tmp_path / "nowhere.whl"),), tmp_path / "driver.py")
    with pytest.raises(PeerUnavailable, match=r"cannot be installed: .*nowhere\.whl"):
        await installed(peer, tmp_path / "cache")


# --- the report --------------------------------------------------------------------------------


def test_the_report_names_data_metric_k_machine_and_versions() -> None:
    systems = [
        Measured("trimem", "0.1", [answered("1"), answered("2", category="multi", ranked=())]),
        Measured("other", "", (), "cannot be installed: no wheel"),
    ]
    text = markdown(
        [SetReport("tiny", 1, 4, "2 questions drawn with seed 0.", systems)],
        budgets=(400,),
        k=20,
        how=["Embedder stub."],
    )
    assert "## tiny" in text
    assert "| trimem | 50.0 | 50.0 | 50.0 | 100.0 (100) |" in text
    assert "single (n = 1)" in text
    assert "1 conversations, 4 turns, 2 questions" in text
    assert "the first 20 recalled" in text
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in text
    assert "trimem (0.1)" in text
    assert "**other left out**: cannot be installed: no wheel" in text


async def test_a_run_writes_its_report_and_goes_on_from_its_results(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "out.jsonl", tmp_path / "table.md"
    given = f"--sets tiny,again --systems recency,bm25 --depth 4 --out {out} --table {report}"
    command = parser().parse_args(["--bench", str(bench), *given.split()])
    await run(command)
    table, written = report.read_text(encoding="utf-8"), out.read_bytes()
    assert table.strip() in capsys.readouterr().out
    assert table.index("## tiny") < table.index("## again")
    assert "| BM25 | 100.0 | 100.0 |" in table
    await run(command)
    assert out.read_bytes() == written
    assert report.read_text(encoding="utf-8").count("| BM25 |") == table.count("| BM25 |")


def test_a_system_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--bench", "x", "--systems", "bm25,bm52"])
    assert "no system 'bm52'" in capsys.readouterr().err


def test_a_line_of_the_results_can_be_read_alone(tmp_path: Path) -> None:
    results = Results(tmp_path / "out.jsonl")
    block = PLAN.block(
        Conversation(
            "tiny", "first", (), (Question("1", "?", "x", frozenset(), frozenset(), None),)
        ),
        Named(),
    )
    results.add(block, [answered("1")])
    line, closing = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (line["set"], line["system"], line["conversation"]) == ("tiny", "named", "first")
    assert line["ranked"] == ["a"]
    assert closing["finished"] == 1


class Named(Asked):
    name = "named"

    def __init__(self) -> None:
        super().__init__(TokenCounter("gpt-4o"))
