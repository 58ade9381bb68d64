#!/usr/bin/env python3
"""What is in a memory: everybody who has one, how much, and how far the tiers are.

    python scripts/inspect_memory.py                  everybody
    python scripts/inspect_memory.py --user ada       one user: sessions, facts, newest episodes
    python scripts/inspect_memory.py --json           the same for programs

Opens what `Memory.open()` opens: --home or TRIMEM_HOME, and the servers of the TRIMEM_… URLs.
Reads only. Exit code 1 when a tier is behind with an error or has set events aside.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from memory import Memory
from memory.errors import AgentMemoryError
from memory.settings import Settings
from memory.terminal import console, show


def main() -> int:
    console.prepare_streams()
    arguments = _arguments()
    try:
        return asyncio.run(_inspect(arguments))
    except AgentMemoryError as error:
        console.fail(str(error))
        return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--home", type=Path, help="the data folder")
    parser.add_argument("--tenant", help="only this tenant")
    parser.add_argument("--user", help="one user in detail")
    parser.add_argument("--newest", type=int, default=10, help="episodes shown of one user")
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")
    return parser.parse_args()


async def _inspect(arguments: argparse.Namespace) -> int:
    settings = Settings()
    if arguments.home is not None:
        settings = settings.model_copy(update={"home": arguments.home})
    async with Memory.open(settings=settings) as memory:
        lags = await memory.lags()
        found: dict[str, Any] = {"lags": lags}
        if arguments.user is None:
            found["users"] = await _everybody(memory, arguments.tenant)
        else:
            found |= await _one(memory, arguments)
    if arguments.json:
        console.write_json(found)
    else:
        _print(found)
    return 1 if any(lag.error or lag.parked for lag in lags) else 0


async def _everybody(memory: Memory, tenant: str | None) -> list[dict[str, Any]]:
    rows = []
    for scope in await memory.scopes():
        if tenant not in (None, scope.tenant):
            continue
        user = memory.user(scope.user, tenant=scope.tenant)
        sessions = await user.sessions()
        episodes = await user.episodes(archived=True)
        rows.append(
            {
                "tenant": scope.tenant,
                "user": scope.user,
                "sessions": len(sessions),
                "messages": sum(info.messages for info in sessions),
                "episodes": len(episodes),
                "archived": sum(episode.archived for episode in episodes),
                "facts": len(await user.facts()),
            }
        )
    return rows


async def _one(memory: Memory, arguments: argparse.Namespace) -> dict[str, Any]:
    user = memory.user(arguments.user, tenant=arguments.tenant)
    episodes = await user.episodes(archived=True)
    return {
        "sessions": await user.sessions(),
        "facts": await user.facts(),
        "episodes": episodes[-arguments.newest :],
    }


def _print(found: dict[str, Any]) -> None:
    out = console.people()
    if "users" in found:
        show.rows(out, found["users"], empty="nobody has a memory here")
    else:
        show.sessions(out, found["sessions"])
        out.print()
        show.facts(out, found["facts"])
        out.print()
        show.episodes(out, found["episodes"])
    out.print()
    show.rows(out, [lag.model_dump() for lag in found["lags"]], empty="no projections")


if __name__ == "__main__":
    sys.exit(main())
