"""What one of several processes does in the tests of working memory.

A locked file stands for the journal: it gives every message its seq, and a window that fell
behind is rebuilt from it.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
from datetime import timedelta
from pathlib import Path

from memory.models import RecordedMessage, Scope, Window
from memory.summary import extend
from memory.window import fold, gather, plan, summary_limit
from memory.working import WorkingMemory, open_redis
from tests.conversations import said, size_of

SESSION = "monday"
LIMIT = 1_000


def append_all(url: str, tenant: str, user: str, log: Path, number: int, size: int) -> None:
    """Append messages `number:0` … to the session, folding whenever it is over its limit."""
    asyncio.run(_append_all(url, Scope.of(tenant, user), log, number, size))


def written(log: Path) -> list[RecordedMessage]:
    lines = log.read_text("utf-8").splitlines()
    return [said(seq, "user", json.loads(line)) for seq, line in enumerate(lines, 1)]


async def _append_all(url: str, scope: Scope, log: Path, number: int, size: int) -> None:
    async with open_redis(url, timeout=timedelta(seconds=30)) as client:
        working = WorkingMemory(client, ttl=None)
        for count in range(size):
            message = _write(log, f"{number}:{count}")
            if not await working.append(scope, SESSION, [message], [size_of(message)]):
                window = _folded(gather(written(log), size_of))
                sizes = [size_of(kept) for kept in window.messages]
                await working.rebuild(scope, SESSION, window, sizes)
            read = await working.read(scope, SESSION)
            assert read is not None
            after = _folded(read)
            if after.summary is not None and after != read:
                await working.fold(scope, SESSION, read=read, summary=after.summary)


def _folded(window: Window) -> Window:
    away = plan(window, LIMIT, size_of)
    if not away:
        return window
    limit = summary_limit(LIMIT, LIMIT)
    return fold(window, extend(window.summary, away, limit=limit, count=len), size_of)


def _write(log: Path, text: str) -> RecordedMessage:
    with log.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        seq = len(file.readlines()) + 1
        file.write(json.dumps(text) + "\n")
        file.flush()
        return said(seq, "user", text)
