"""Waiting for the tiers, with a bar that shows how far they are."""

from __future__ import annotations

import asyncio

from memory.memory import Memory
from memory.terminal import console

LOOK = 0.1
"""Seconds between two looks at how far the tiers are."""


async def until_settled(memory: Memory, description: str, *, shown: bool | None = None) -> None:
    """Wait until the tiers have everything that was recorded; say so when one cannot have it."""
    waiting = asyncio.create_task(memory.settled())
    total = await _behind(memory)
    with console.bar(description, shown=shown if total else False) as moved:
        while not waiting.done():
            behind = await _behind(memory)
            total = max(total, behind)
            moved(total - behind, total)
            await asyncio.wait([waiting], timeout=LOOK)
        if waiting.result():
            moved(total, total)
    if not waiting.result():
        late = [f"{lag.projection}: {lag.error}" for lag in await memory.lags() if lag.error]
        console.fail(
            f"recorded, but not yet in every tier ({'; '.join(late)}); it will be brought there"
        )


async def _behind(memory: Memory) -> int:
    """Events that the tier that is furthest behind has still to take."""
    return max((lag.behind for lag in await memory.lags()), default=0)
