"""Does the recall floor let in what answers and keep out what does not? English and Chinese.

    python benchmarks/recall_floor.py [FLOOR …]

The data (recall_floor.json) is this project's own: short conversations, queries that one message
of them answers, and queries that none does (greetings, nonsense, other subjects). The floor was
chosen looking at `chosen_on`; `checked_on` was written afterwards and not looked at for it.

Printed for each set and floor: how many of the answers came among the eight recalled, how many of
the queries without an answer recalled anything, and how many episodes a query recalled on average.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from memory import Memory, RecallPolicy, Settings
from memory.embedding import open_embedder
from memory.local import stop_stack

DATA = Path(__file__).with_name("recall_floor.json")
K = 8


async def measure(memory: Memory, sets: dict[str, Any], floor: float) -> None:
    for name, data in sets.items():
        user = memory.user(name)
        said = {
            f"{session}.{place}": text
            for session, texts in enumerate(data["sessions"])
            for place, text in enumerate(texts)
        }
        for session, texts in enumerate(data["sessions"]):
            await user.session(str(session)).record(
                messages=[
                    {"role": "assistant" if place % 2 else "user", "content": text}
                    for place, text in enumerate(texts)
                ],
                keys=[f"{session}.{place}" for place in range(len(texts))],
            )
        await memory.settled(timedelta(minutes=5))
        found = answers = let_in = others = recalled = 0
        for query, answer in data["queries"]:
            items = (await user.recall(query, k=K)).items
            episodes = [item for item in items if item.tier == "episodic"]
            if answer is None:
                others += 1
                let_in += bool(episodes)
            else:
                answers += 1
                found += said["{}.{}".format(*answer)] in {item.text for item in episodes}
                recalled += len(episodes)
        print(
            f"{name:14} floor {floor:.2f}: answers {found}/{answers}, "
            f"others let in {let_in}/{others}, recalled {recalled / answers:.1f} of {K}"
        )


async def main(floors: list[float]) -> None:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    embedder = await open_embedder(Settings())
    own = RecallPolicy.of_embedder(embedder.identity)
    print(embedder.identity)
    for floor in floors or [own.floor]:
        policy = own.model_copy(update={"floor": floor})
        with tempfile.TemporaryDirectory(prefix="trimem-bench-") as home:
            async with Memory.open(Path(home), embedder=embedder, recall=policy) as memory:
                for part, sets in data.items():
                    named = {f"{part} {name}": each for name, each in sets.items()}
                    await measure(memory, named, floor)
            await stop_stack(Path(home))
    await embedder.close()


if __name__ == "__main__":
    asyncio.run(main([float(each) for each in sys.argv[1:]]))
