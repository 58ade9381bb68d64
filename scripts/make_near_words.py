#!/usr/bin/env python3
"""Make the table of near words again, from the model and the vocabulary that are installed.

    python scripts/make_near_words.py                   a minute or two of one core
    python scripts/make_near_words.py --out near.npz    elsewhere, to compare

Do it when `memory.text.terms` stems otherwise than before, or when the lists beside this script
have changed; then write the digest it prints into `memory/near_words/__init__.py`. On one machine
the bytes are the same each time. On another kind of processor the 8-bit model rounds otherwise, so
that a few pairs at the edge may come or go.

How near two words are is the cosine of their vectors, from which the mean of all is taken away, for
what all words share says nothing. What is near to many is then near to each a little less (as in
CSLS, Conneau et al. 2018): half of what two words have with their NEIGHBOURS on average, beyond
what all words have, is taken off for either.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
from near_words_lists import APART, COUNTED, NO_NAMES, OFFENDING, OTHER_WORDS, PEOPLE, PLACES, SHORT
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memory import near_words
from memory.embedding.default import MiniLM
from memory.near_words import Near
from memory.terminal import console
from memory.text import terms

NEAREST = 48
"""Near stems a stem, at most."""

LEAST = 0.35
"""How near they are at least."""

NEIGHBOURS = 25
"""The nearest words by whose mean it is told how crowded it is around a word."""

PERSON, PLACE = 0.1, 0.3
"""From where on a word counts as a name; examples are at 1, other words at -1."""

RIDGE = 3.0

AT_ONCE = 64
"""Words that are embedded between two steps of the progress bar."""

ROWS_AT_ONCE = 256
"""Of a matrix of all pairs, which as a whole would be most of a gigabyte."""

Vectors = npt.NDArray[np.float32]


def main() -> int:
    console.prepare_streams()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    default = Path(str(resources.files(near_words))) / near_words.FILE
    parser.add_argument("--out", type=Path, default=default, help="the file to write")
    parser.add_argument("--nearest", type=int, default=NEAREST, help="near stems a stem, at most")
    arguments = parser.parse_args()

    words = vocabulary()
    vectors = centred(embedded(words))
    rows = near_rows(words, vectors, arguments.nearest)
    file = near_words.pack(rows)
    arguments.out.write_bytes(file)

    pairs = sum(map(len, rows.values()))
    people = console.people()
    people.print(f"{len(rows):,} stems, {pairs:,} pairs, {len(file):,} bytes in {arguments.out}")
    people.print(f"SHA256 = {json.dumps(hashlib.sha256(file).hexdigest())}")
    return 0


def vocabulary() -> list[str]:
    """The whole words of MiniLM's vocabulary in plain letters, the most frequent first.

    Not the halves of contractions: `didn` is no word.
    """
    file = resources.files("memory.embedding.minilm").joinpath("tokenizer.json")
    ranks: dict[str, int] = json.loads(file.read_text("utf-8"))["model"]["vocab"]
    return [
        word
        for word in sorted(ranks, key=lambda word: ranks[word])
        if (re.fullmatch("[a-z]{3,}", word) or word in SHORT)
        and len(terms(word)) == 1
        and terms(f"{word}'t")
    ]


def embedded(words: Sequence[str]) -> Vectors:
    model = MiniLM()
    with Progress(
        TextColumn("embedding words"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console.notes(),
    ) as progress:
        task = progress.add_task("", total=len(words))
        made = []
        for start in range(0, len(words), AT_ONCE):
            some = words[start : start + AT_ONCE]
            made.append(model.encode(some, "document"))
            progress.advance(task, len(some))
    return np.concatenate(made)


def near_rows(words: Sequence[str], vectors: Vectors, nearest: int) -> dict[str, Near]:
    """For each stem, what is near it. A stem has the vector of its most frequent word."""
    people = named(PEOPLE, [*PLACES, *OTHER_WORDS], words, vectors, PERSON)
    places = named(PLACES, [*PEOPLE, *OTHER_WORDS], words, vectors, PLACE)
    first: dict[str, int] = {}
    for index, word in enumerate(words):
        first.setdefault(terms(word)[0], index)
    # A whole stem: `james` and `jam` are one term, and who asks for James wants no jelly.
    left_out = {*people, *COUNTED, *OFFENDING}
    stems = sorted(
        stem
        for stem, index in first.items()
        if words[index] not in left_out and terms(stem)  # the Andes leave a stop word
    )
    rows = centred(vectors[[first[stem] for stem in stems]])
    crowd = crowds(rows)
    apart = excluded([*APART, places], stems)
    found: dict[str, Near] = {}
    for index, stem in enumerate(stems):
        near = rows @ rows[index] - crowd - crowd[index]
        near[sorted(apart[index] | {index})] = -1
        best = np.argsort(-near, kind="stable")[:nearest]
        found[stem] = tuple(
            (stems[other], min(1.0, float(near[other]))) for other in best if near[other] >= LEAST
        )
    return found


def named(
    examples: Sequence[str],
    others: Sequence[str],
    words: Sequence[str],
    vectors: Vectors,
    least: float,
) -> set[str]:
    """All words that are like the examples and unlike the others, by ridge regression."""
    index_of = {word: index for index, word in enumerate(words)}
    yes = sorted({index_of[word] for word in examples if word in index_of})
    no = sorted({index_of[word] for word in others if word in index_of} - set(yes))
    wanted = np.r_[np.ones(len(yes)), -np.ones(len(no))]
    # Both sides weigh the same, however many examples they have.
    weight = np.r_[np.full(len(yes), 0.5 / len(yes)), np.full(len(no), 0.5 / len(no))]
    weight *= len(wanted)
    all_ = np.c_[vectors, np.ones(len(vectors))].astype(np.float64)
    known = all_[yes + no]
    weighted = (weight[:, None] * known).T
    line = np.linalg.solve(weighted @ known + RIDGE * np.eye(all_.shape[1]), weighted @ wanted)
    like = {words[index] for index in np.flatnonzero(all_ @ line > least).tolist()}
    return (like - {*others, *NO_NAMES}) | set(examples)


def crowds(rows: Vectors) -> Vectors:
    """Half of how much nearer the nearest words are to each than they are to words on average."""
    means = np.zeros(len(rows), np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        cosines = rows[start : start + ROWS_AT_ONCE] @ rows.T
        # The nearest of all is the word itself.
        nearest = np.sort(cosines, axis=1)[:, -NEIGHBOURS - 1 : -1]
        means[start : start + ROWS_AT_ONCE] = nearest.mean(axis=1)
    half: Vectors = (means - means.mean()) / 2
    return half


def excluded(groups: Iterable[Iterable[str]], stems: Sequence[str]) -> dict[int, set[int]]:
    """For each stem of a group, all of that group; by index."""
    index_of = {stem: index for index, stem in enumerate(stems)}
    found: dict[int, set[int]] = defaultdict(set)
    for group in groups:
        members = {index_of[stem] for stem in stems_of(group) if stem in index_of}
        for member in members:
            found[member] |= members
    return found


def stems_of(words: Iterable[str]) -> set[str]:
    return {stem for word in words for stem in terms(word)}


def centred(vectors: Vectors) -> Vectors:
    moved = vectors - vectors.mean(axis=0)
    unit: Vectors = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return unit


if __name__ == "__main__":
    sys.exit(main())
