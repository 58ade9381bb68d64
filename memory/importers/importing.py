"""A file into a user's memory, with progress; safe to kill at any moment and to run again.

Messages go in through `Session.record` in the order of the file, each under a key that follows
from its content. What is there already stays as it is and is not counted as added, so a second
run adds nothing and a run after a kill adds the rest. It is passed over by its key alone: no text
of it is looked at again, and nothing is written.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from memory.errors import InvalidInput
from memory.importers.shapes import Source, read
from memory.importers.values import Conversation, ImportReport, KeyedMessage, Problem
from memory.memory import Memory, UserMemory

BATCH = 200
"""Messages that become durable together."""

Progress = Callable[[float, int], None]
"""Told the entries of the file that are done, and how many there are."""


async def import_file(
    memory: Memory,
    path: Path,
    user: str,
    *,
    tenant: str | None = None,
    session: str | None = None,
    agent: str | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> ImportReport:
    """Remember the conversations of a file, whatever wrote it. Durable when it returns.

    `session` names a conversation that has no name of its own. With `dry_run` nothing is stored.
    Raises ImportRefused, with nothing stored, for a file whose shape nothing knows; OSError when
    it cannot be read. Lines and entries that are broken are in the report's `problems`.
    """
    source = await asyncio.to_thread(read, path, session=session)
    run = _Import(memory.user(user, tenant=tenant), agent, source, progress, dry_run)
    await run.all()
    return run.report(path.name)


class _Import:
    """One run over one file: what was counted so far."""

    def __init__(
        self,
        user: UserMemory,
        agent: str | None,
        source: Source,
        progress: Progress | None,
        dry_run: bool,
    ) -> None:
        self._user = user
        self._agent = agent
        self._source = source
        self._progress = progress
        self._dry_run = dry_run
        self._format = ""
        self._sessions: set[str] = set()
        self._known: frozenset[str] = frozenset()
        self._last_seq: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._problems: list[Problem] = []
        self._done = 0.0

    async def all(self) -> None:
        self._last_seq = {info.session: info.messages for info in await self._user.sessions()}
        self._known = frozenset(self._last_seq)
        for item in self._source.found:
            if isinstance(item, Problem):
                self._problems.append(item)
                self._advance(1)
            else:
                await self._conversation(item)

    def report(self, file: str) -> ImportReport:
        return ImportReport(
            file=file,
            format=self._format,
            conversations=len(self._sessions),
            messages=self._counts["messages"],
            added=self._counts["added"],
            undated=self._counts["undated"],
            left_out=dict(sorted(self._left_out.items())),
            problems=tuple(self._problems),
            dry_run=self._dry_run,
        )

    async def _conversation(self, found: Conversation) -> None:
        self._format = self._format or found.format
        self._left_out.update(found.left_out)
        self._counts["messages"] += len(found.messages)
        self._counts["undated"] += found.undated
        if not found.messages:
            self._advance(found.entries)
            return
        self._sessions.add(found.session)
        share = found.entries / len(found.messages)
        for start in range(0, len(found.messages), BATCH):
            batch = found.messages[start : start + BATCH]
            if not self._dry_run:
                await self._record(found.session, batch)
            self._advance(share * len(batch))

    async def _record(self, session: str, batch: Sequence[KeyedMessage]) -> None:
        """The batch at once; where one message is refused, the others one by one."""
        if session in self._known:
            there = await self._user.session(session).has([key for key, _ in batch])
            batch = [keyed for keyed in batch if keyed[0] not in there]
        if not batch:
            return
        try:
            await self._store(session, batch)
        except InvalidInput as error:
            if len(batch) == 1:
                where = f"session {session!r}, a message of {batch[0][1].role.value}"
                self._problems.append(Problem(where=where, reason=str(error)))
                return
            for keyed in batch:
                await self._record(session, [keyed])

    async def _store(self, session: str, batch: Sequence[KeyedMessage]) -> None:
        recorded = await self._user.session(session, agent=self._agent).record(
            messages=[message for _, message in batch], keys=[key for key, _ in batch]
        )
        before = self._last_seq.get(session, 0)
        new = [message.seq for message in recorded.messages if message.seq > before]
        self._counts["added"] += len(new)
        self._last_seq[session] = max([before, *new])

    def _advance(self, entries: float) -> None:
        self._done += entries
        if self._progress is not None:
            self._progress(self._done, self._source.entries)
