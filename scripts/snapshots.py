#!/usr/bin/env python3
"""Verify the contexts of one user, or of everybody: each is replayed and its hash is checked.

    python scripts/snapshots.py                   everybody
    python scripts/snapshots.py --user ada -n 5   the five newest of one user
    python scripts/snapshots.py --json            the same for programs

`trimem snapshots log | show | diff | replay` is for one context at a time; this is for a cron job
that wants to know that all of them can still be replayed. Exit code 1 when one cannot.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from memory import Memory
from memory.errors import AgentMemoryError, Corrupt
from memory.memory import UserMemory
from memory.settings import Settings
from memory.terminal import console, show

PAGE = 200


def main() -> int:
    console.prepare_streams()
    arguments = _arguments()
    try:
        return asyncio.run(_verify(arguments))
    except AgentMemoryError as error:
        console.fail(str(error))
        return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--home", type=Path, help="the data folder")
    parser.add_argument("--tenant", help="only this tenant")
    parser.add_argument("--user", help="only this user")
    parser.add_argument("-n", "--newest", type=int, help="only so many of each user")
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")
    return parser.parse_args()


async def _verify(arguments: argparse.Namespace) -> int:
    settings = Settings()
    if arguments.home is not None:
        settings = settings.model_copy(update={"home": arguments.home})
    async with Memory.open(settings=settings) as memory:
        rows = [await _of_user(user, arguments.newest) async for user in _users(memory, arguments)]
    if arguments.json:
        console.write_json(rows)
    else:
        show.rows(console.people(), rows, empty="no snapshots")
    return 1 if any(row["corrupt"] for row in rows) else 0


async def _users(memory: Memory, arguments: argparse.Namespace) -> AsyncIterator[UserMemory]:
    for scope in await memory.scopes():
        if arguments.tenant in (None, scope.tenant) and arguments.user in (None, scope.user):
            yield memory.user(scope.user, tenant=scope.tenant)


async def _of_user(user: UserMemory, newest: int | None) -> dict[str, Any]:
    verified, corrupt = 0, []
    async for snapshot_id in _ids(user, newest):
        try:
            await user.replay(snapshot_id)
            verified += 1
        except Corrupt:
            corrupt.append(snapshot_id)
    return {
        "tenant": user.scope.tenant,
        "user": user.scope.user,
        "verified": verified,
        "corrupt": corrupt,
    }


async def _ids(user: UserMemory, newest: int | None) -> AsyncIterator[str]:
    """The user's snapshots, the newest first, page by page."""
    before: str | None = None
    left = newest if newest is not None else sys.maxsize
    while left > 0:
        page = await user.snapshots(limit=min(PAGE, left), before=before)
        for info in page:
            yield info.id
        if len(page) < min(PAGE, left):
            return
        left -= len(page)
        before = page[-1].id


if __name__ == "__main__":
    sys.exit(main())
