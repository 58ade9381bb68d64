"""What was found, one line of JSON a question, in a file that a stopped run goes on with.

The unit is a block: one system's answers to the questions of one conversation, written together
and closed by a line that names it. What follows the last closed block is a run that was stopped:
it is cut off when the file is opened. A block is the same as another only when the version of the
system and the plan (questions, budgets, depth, embedder) are the same.

Lines hold ids and numbers, no text of a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict


class Packed(BaseModel):
    """The turns that a context of some budget holds, what it took, and how long that was."""

    model_config = ConfigDict(frozen=True)

    turns: tuple[str, ...]
    tokens: int
    ms: float
    empty: bool
    """Whether nothing at all was recalled into it."""


class Answer(BaseModel):
    """What a system found for one question, and what there was to find."""

    model_config = ConfigDict(frozen=True)

    question: str
    category: str
    answerable: bool
    evidence: tuple[str, ...]
    evidence_sessions: tuple[str, ...]
    ranked: tuple[str, ...]
    ranked_sessions: tuple[str, ...]
    recall_ms: float
    nothing: bool
    """Whether recall gave nothing at all."""
    contexts: dict[int, Packed]


class Block(NamedTuple):
    set: str
    system: str
    version: str
    conversation: str
    plan: str


class Results:
    """The answers in a file, block by block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._blocks: dict[Block, list[Answer]] = {}
        if path.exists():
            self._cut_to(self._read(path.read_bytes()))

    def __contains__(self, block: Block) -> bool:
        return block in self._blocks

    def of(self, block: Block) -> list[Answer]:
        return self._blocks.get(block, [])

    def add(self, block: Block, answers: Iterable[Answer]) -> None:
        """Write a whole block. It counts from when its closing line is in the file."""
        kept = list(answers)
        lines = [{**block._asdict(), **each.model_dump(mode="json")} for each in kept]
        closing = {"finished": len(kept), **block._asdict()}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in (*lines, closing))
        self._blocks[block] = kept

    def _read(self, data: bytes) -> int:
        """Take in the closed blocks; how many bytes they are."""
        end, answers = 0, list[Answer]()
        for after, line in _lines(data):
            if "finished" in line:
                block = Block(**{name: str(line[name]) for name in Block._fields})
                self._blocks[block] = answers
                end, answers = after, []
            else:
                answers.append(Answer.model_validate(line))
        return end

    def _cut_to(self, size: int) -> None:
        with self._path.open("r+b") as file:
            file.truncate(size)


def _lines(data: bytes) -> Iterator[tuple[int, dict[str, object]]]:
    """Each whole line, and where it ends. A torn one, and what follows, is none."""
    end = 0
    for raw in data.splitlines(keepends=True):
        end += len(raw)
        if not raw.endswith(b"\n"):
            return
        try:
            line = json.loads(raw)
        except ValueError:
            return
        yield end, line
