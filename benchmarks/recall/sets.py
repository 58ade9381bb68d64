"""The sets of a folder, in one shape. Nothing of them is copied: its load.py is run where it is.

A folder has a load.py with `DATASETS` and `load(name)`, which gives conversations as dicts:

    turn      {id, session, speaker, text, timestamp}
    question  {id, q, answer, evidence, evidence_sessions, category, time, extra}

Times without a zone are read as UTC.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})
"""Speakers that are roles and no names."""
WITHOUT_ANSWER = frozenset({"adversarial", "abstention", "unanswerable"})
"""Categories of questions that nothing in the conversation answers."""


@dataclass(frozen=True)
class Turn:
    id: str
    session: str
    speaker: str
    text: str
    said_at: datetime | None


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    category: str
    evidence: frozenset[str]
    sessions: frozenset[str]
    asked_at: datetime | None

    @property
    def answerable(self) -> bool:
        return self.category not in WITHOUT_ANSWER

    @property
    def measured(self) -> bool:
        """Whether it says something about recall: it has an answer, and where that stands."""
        return self.answerable and bool(self.evidence or self.sessions)


@dataclass(frozen=True)
class Conversation:
    """All that one user's memory is to hold, and what is asked of it."""

    set: str
    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    @property
    def user(self) -> str:
        """Whose memory it is; no other conversation's."""
        return f"{self.set}/{self.id}"

    @cached_property
    def named(self) -> bool:
        """Whether several people speak who have names. One alone is the user."""
        return len({turn.speaker for turn in self.turns if turn.speaker not in ROLES}) > 1

    @cached_property
    def session_of(self) -> Mapping[str, str]:
        return {turn.id: turn.session for turn in self.turns}

    @property
    def sessions(self) -> Mapping[str, list[Turn]]:
        """The turns by session, in the order in which sessions began."""
        found: dict[str, list[Turn]] = {}
        for turn in self.turns:
            found.setdefault(turn.session, []).append(turn)
        return found

    def speaker(self, turn: Turn) -> str | None:
        """The speaker's name, where there are names."""
        return turn.speaker if self.named and turn.speaker not in ROLES else None

    def shown(self, turn: Turn) -> str:
        """The turn as a line, with its speaker where speakers have names."""
        speaker = self.speaker(turn)
        return turn.text if speaker is None else f"{speaker}: {turn.text}"

    @cached_property
    def ends_at(self) -> datetime:
        """When the last turn was said; now where no turn has a time."""
        times = [turn.said_at for turn in self.turns if turn.said_at]
        return max(times, default=datetime.now(UTC))

    def now(self, question: Question) -> datetime:
        """When the question is asked: as it says, else when the conversation ends."""
        return question.asked_at or self.ends_at


def read_sets(folder: Path, names: Sequence[str]) -> dict[str, list[Conversation]]:
    """The named sets; all that the folder has when none is named. Raises LookupError."""
    loader = _loader(folder)
    unknown = [name for name in names if name not in loader.DATASETS]
    if unknown:
        raise LookupError(f"no set {unknown[0]!r} in {folder}: {', '.join(loader.DATASETS)}")
    return {
        name: [conversation(name, each) for each in loader.load(name)]
        for name in names or loader.DATASETS
    }


def _loader(folder: Path) -> Any:
    path = folder / "load.py"
    if not path.is_file():
        raise LookupError(f"no load.py in {folder}")
    spec = importlib.util.spec_from_file_location("recall_sets_load", path)
    if spec is None or spec.loader is None:
        raise LookupError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # the folder is not ours
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    return module


def conversation(name: str, given: Mapping[str, Any]) -> Conversation:
    """One conversation of load.py's shape, in the set of that name."""
    return Conversation(
        set=name,
        id=str(given["id"]),
        turns=tuple(
            Turn(
                id=str(turn["id"]),
                session=str(turn["session"] or ""),
                speaker=str(turn["speaker"] or "user"),
                text=turn["text"] or "",
                said_at=_time(turn["timestamp"]),
            )
            for turn in given["turns"]
        ),
        questions=tuple(
            Question(
                id=str(question["id"]),
                text=question["q"],
                category=str(question["category"]),
                evidence=frozenset(map(str, question["evidence"])),
                sessions=frozenset(map(str, question["evidence_sessions"])),
                asked_at=_time(question.get("time")),
            )
            for question in given["questions"]
        ),
    )


def _time(given: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(given))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def chosen(
    conversations: Iterable[Conversation],
    *,
    only: Sequence[str] = (),
    sample: int | None = None,
    seed: int = 0,
) -> list[Conversation]:
    """The conversations that are named (or all), with `sample` of their questions, drawn by seed.

    A conversation of which nothing is asked is left out: there is no need to remember it.
    """
    kept = [each for each in conversations if not only or each.id in only]
    if sample is not None:
        asked = [(each.id, question.id) for each in kept for question in each.questions]
        drawn = set(random.Random(seed).sample(asked, min(sample, len(asked))))
        kept = [
            replace(each, questions=tuple(q for q in each.questions if (each.id, q.id) in drawn))
            for each in kept
        ]
    return [each for each in kept if each.questions]
