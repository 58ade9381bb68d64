"""Which embedder should come with the install: recall and speed, in English and in Chinese.

    python benchmarks/embedders.py --data FOLDER [--turns 400] [--questions 60] [--cache FOLDER]

FOLDER holds public retrieval sets and a `load.py` with `load(name)`, which yields conversations of
`turns` (id, speaker, text) and `questions` (q, evidence: ids of turns). Only the folder is read.

Each candidate is measured alone and as it is used: the sum of its scores and BM25's, both scaled
to [0, 1] over the store (min-max). R@k is the mean share of a question's evidence among the first
k turns. Ties are broken by position, so that a run repeats.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import math
import os
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memory.embedding.base import Model, Role, Vectors, joined, readable
from memory.embedding.default import E5, MiniLM
from memory.embedding.script import is_latin
from memory.text import terms

KS = (1, 5, 10)


@dataclass(frozen=True)
class Store:
    """One user's memories and the questions asked of them."""

    texts: tuple[str, ...]
    questions: tuple[str, ...]
    evidence: tuple[frozenset[int], ...]


# --- data --------------------------------------------------------------------------------------


def read_sets(folder: Path, turns: int, questions: int, chats: int) -> dict[str, list[Store]]:
    load = _loader(folder)
    english, chinese = list(load("madial_en")), list(load("madial_zh"))
    return {
        "chat, en (LoCoMo)": _stores(list(load("locomo_fixed"))[:chats], turns, questions, True),
        "monologues, en (BFCL)": _stores(load("bfcl_memory"), turns, questions, False),
        "notes, en (MADial)": _stores(english, turns, questions, False),
        "notes, zh (MADial)": _stores(chinese, turns, questions, False),
        "phone, zh (LifeBench)": _stores(load("lifebench_zh"), turns, questions, False),
        "ask zh, notes en": _crossed(asked=chinese, kept=english),
        "ask en, notes zh": _crossed(asked=english, kept=chinese),
        "ask zh, notes both": _crossed(asked=chinese, kept=english, and_every_second=chinese),
        "ask en, notes both": _crossed(asked=english, kept=chinese, and_every_second=english),
    }


def _loader(folder: Path) -> Callable[[str], Iterator[dict[str, Any]]]:
    spec = importlib.util.spec_from_file_location("bench_load", folder / "load.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"no load.py in {folder}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load  # type: ignore[no-any-return]


def _stores(conversations: Any, turns: int, questions: int, with_speaker: bool) -> list[Store]:
    return [_store(c, turns, questions, with_speaker) for c in conversations]


def _store(
    conversation: Mapping[str, Any], turns: int, questions: int, with_speaker: bool
) -> Store:
    """At most so many turns: all evidence of the questions kept, and others by hash of their id."""
    asked = [
        q for q in conversation["questions"] if q["evidence"] and q["category"] != "adversarial"
    ]
    asked = sorted(asked, key=lambda q: _shuffled(q["id"]))[:questions]
    wanted = {turn for q in asked for turn in q["evidence"]}
    by_id = {turn["id"]: turn for turn in conversation["turns"]}  # some sets repeat an id
    ids = sorted(by_id, key=lambda i: (i not in wanted, _shuffled(i)))[: max(turns, len(wanted))]
    kept = [turn for i, turn in by_id.items() if i in set(ids)]
    place = {turn["id"]: at for at, turn in enumerate(kept)}
    return Store(
        texts=tuple(
            f"{turn['speaker']}: {turn['text']}" if with_speaker else turn["text"] for turn in kept
        ),
        questions=tuple(q["q"] for q in asked),
        evidence=tuple(frozenset(place[i] for i in q["evidence"]) for q in asked),
    )


def _crossed(*, asked: Any, kept: Any, and_every_second: Any = None) -> list[Store]:
    """Questions of one language over the same notes in another; or over notes of which every
    second one is in the questions' language."""
    stores = []
    for number, (ask, keep) in enumerate(zip(asked, kept, strict=True)):
        turns = {turn["id"]: turn for turn in keep["turns"]}
        if and_every_second is not None:
            own = {turn["id"]: turn for turn in and_every_second[number]["turns"]}
            turns = {
                i: own[i] if _shuffled(i) % 2 and i in own else turn for i, turn in turns.items()
            }
        questions = [
            {**q, "evidence": [i for i in q["evidence"] if i in turns]} for q in ask["questions"]
        ]
        stores.append(
            _store({"turns": list(turns.values()), "questions": questions}, 10**6, 10**6, False)
        )
    return stores


def _shuffled(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


# --- scores ------------------------------------------------------------------------------------

Scores = Any  # (questions, texts)


def bm25(store: Store, k1: float = 1.2, b: float = 0.75) -> Scores:
    """Robertson and Zaragoza (2009), with the terms that the product's lexical index uses."""
    counts = [Counter(terms(text)) for text in store.texts]
    lengths = np.array([sum(count.values()) for count in counts], dtype=float)
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    postings = defaultdict(list)
    for at, count in enumerate(counts):
        for term, often in count.items():
            postings[term].append((at, often))
    scores = np.zeros((len(store.questions), len(store.texts)))
    for row, question in enumerate(store.questions):
        for term in set(terms(question)):
            found = postings.get(term, [])
            rarity = math.log(1 + (len(counts) - len(found) + 0.5) / (len(found) + 0.5))
            for at, often in found:
                scores[row, at] += rarity * often * (k1 + 1) / (often + norm[at])
    return scores


def scaled(scores: Scores) -> Scores:
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    return (scores - low) / np.where(high > low, high - low, 1)


def recalls(store: Store, scores: Scores) -> list[list[float]]:
    """For each question its R@k, for each k."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, : max(KS)]
    return [
        [len(gold & set(ranked[:k].tolist())) / len(gold) for k in KS]
        for gold, ranked in zip(store.evidence, order, strict=True)
        if gold
    ]


# --- candidates --------------------------------------------------------------------------------


class Vectorised:
    """Texts as vectors of each model, kept in a folder when one is given."""

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self.models: dict[str, Model] = {"minilm": MiniLM(), "e5": E5()}

    def __call__(self, name: str, texts: Sequence[str], role: Role) -> Vectors:
        digest = hashlib.blake2b("\0".join((name, role, *texts)).encode(), digest_size=12)
        path = self._cache and self._cache / f"{digest.hexdigest()}.npy"
        if path and path.exists():
            return np.load(path)  # type: ignore[no-any-return]
        model = self.models[name]
        read = readable(texts, role=role, longest=model.longest)
        vectors = model.encode([piece.text for piece in read], role)
        rows = joined(list(zip(read, vectors, strict=True)), len(texts), model.dims)
        if path:
            np.save(path, rows)
        return rows


def dense(store: Store, vectorised: Vectorised) -> dict[str, Scores]:
    texts = {n: vectorised(n, store.texts, "document") for n in vectorised.models}
    asked = {n: vectorised(n, store.questions, "query") for n in vectorised.models}
    latin_texts = np.array([is_latin(text) for text in store.texts])[:, None]
    latin_asked = np.array([is_latin(text) for text in store.questions])[:, None]
    routed_texts = np.where(latin_texts, texts["minilm"], texts["e5"])
    routed_asked = np.where(latin_asked, asked["minilm"], asked["e5"])
    return {
        "MiniLM": asked["minilm"] @ texts["minilm"].T,
        "E5": asked["e5"] @ texts["e5"].T,
        "routed": routed_asked @ routed_texts.T,
        "both, summed": scaled(asked["minilm"] @ texts["minilm"].T)
        + scaled(asked["e5"] @ texts["e5"].T),
    }


def recall_table(sets: Mapping[str, list[Store]], vectorised: Vectorised) -> None:
    heads = "".join(f"{f'R@{k}':>7s}" for k in KS)
    print(f"\nrecall of evidence, %{'':14s}alone{'':12s}with BM25\n{'':16s}{heads}{'':4s}{heads}")
    for name, stores in sets.items():
        alone: defaultdict[str, list[list[float]]] = defaultdict(list)
        fused: defaultdict[str, list[list[float]]] = defaultdict(list)
        for store in stores:
            lexical = bm25(store)
            alone["BM25"] += recalls(store, lexical)
            for candidate, scores in dense(store, vectorised).items():
                alone[candidate] += recalls(store, scores)
                fused[candidate] += recalls(store, scaled(scores) + scaled(lexical))
        texts = sum(len(store.texts) for store in stores)
        print(f"\n{name}: {len(stores)} stores, {texts} texts, {len(alone['BM25'])} questions")
        for candidate, rows in alone.items():
            print(f"  {candidate:14s}{_means(rows)}    {_means(fused[candidate])}", flush=True)


def _means(rows: list[list[float]]) -> str:
    return "".join(f"{100 * mean:7.1f}" for mean in np.mean(rows, axis=0)) if rows else ""


# --- speed -------------------------------------------------------------------------------------

SHORT = {
    "en": "I finally signed up for the pottery class on Tuesdays, and my sister wants to come too.",
    "zh": "我终于报名了星期二晚上的陶艺课，我姐姐也想一起去，她说很久没有学新东西了。",
}
ASKED = {"en": "Which class did I sign up for?", "zh": "我报名了什么课？"}


def speed_table(models: Mapping[str, Model], times: int) -> None:
    print(f"\nmedian of {times}, one text at a time, one thread; ms, and ms of processor")
    print(f"{'':12s}{'query':>16s}{'short text':>18s}{'texts/s':>10s}")
    for name, model in models.items():
        for language in SHORT:
            query, query_cpu = _median(model, ASKED[language], "query", times)
            text, text_cpu = _median(model, SHORT[language], "document", times)
            print(
                f"  {name:7s}{language}{query:10.1f} ({query_cpu:.1f}){text:11.1f} ({text_cpu:.1f})"
                f"{1000 / text:9.0f}",
                flush=True,
            )


def _median(model: Model, text: str, role: Role, times: int) -> tuple[float, float]:
    """Milliseconds of wall clock and of processor."""
    model.encode([text], role)
    wall, cpu = [], []
    for number in range(times):
        started, used = time.perf_counter(), time.process_time()
        model.encode([f"{text} {number}"], role)
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - used)
    return float(np.median(wall)) * 1000, float(np.median(cpu)) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets and load.py")
    parser.add_argument("--turns", type=int, default=400, help="most texts of one store")
    parser.add_argument("--questions", type=int, default=60, help="most questions of one store")
    parser.add_argument("--chats", type=int, default=2, help="conversations of the chat set")
    parser.add_argument("--cache", type=Path, help="folder to keep vectors in")
    arguments = parser.parse_args()
    if arguments.cache:
        arguments.cache.mkdir(parents=True, exist_ok=True)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"load {os.getloadavg()[0]:.1f}; at most {arguments.turns} texts and "
        f"{arguments.questions} questions a store"
    )
    vectorised = Vectorised(arguments.cache)
    speed_table(vectorised.models, 50)
    sets = read_sets(arguments.data, arguments.turns, arguments.questions, arguments.chats)
    recall_table(sets, vectorised)


if __name__ == "__main__":
    main()
