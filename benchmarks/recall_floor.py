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
import math
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from memory.embedding import open_embedder
from memory.models import Episode, Role
from memory.recall import RecallPolicy, fuse
from memory.settings import Settings
from memory.text import terms

DATA = Path(__file__).with_name("recall_floor.json")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
K = 8


class Hit(NamedTuple):
    id: str
    score: float


class Bm25:
    """BM25 as in Robertson and Zaragoza (2009): k1 = 1.2, b = 0.75."""

    def __init__(self, texts: dict[str, str]) -> None:
        counts = {key: Counter(terms(text)) for key, text in texts.items()}
        self.n = len(counts)
        self.mean = sum(each.total() for each in counts.values()) / max(1, self.n)
        self.length = {key: each.total() for key, each in counts.items()}
        self.postings: dict[str, dict[str, int]] = defaultdict(dict)
        for key, each in counts.items():
            for term, often in each.items():
                self.postings[term][key] = often

    def search(self, query: str) -> list[Hit]:
        scores: Counter[str] = Counter()
        for term in set(terms(query)):
            found = self.postings.get(term, {})
            rarity = math.log(1 + (self.n - len(found) + 0.5) / (len(found) + 0.5))
            for key, often in found.items():
                norm = 1.2 * (0.25 + 0.75 * self.length[key] / self.mean)
                scores[key] += rarity * often * 2.2 / (often + norm)
        return sorted((Hit(*each) for each in scores.items()), key=lambda hit: (-hit.score, hit.id))


async def measure(embedder: Any, sets: dict[str, Any], policies: list[RecallPolicy]) -> None:
    for name, data in sets.items():
        episodes = _episodes(data["sessions"])
        texts = {key: episode.text for key, episode in episodes.items()}
        index = Bm25(texts)
        vectors = await embedder.embed(list(texts.values()), role="document")
        asked = await embedder.embed([query for query, _ in data["queries"]], role="query")
        cosines = asked @ vectors.T
        for policy in policies:
            found = answers = let_in = others = recalled = 0
            for (query, answer), row in zip(data["queries"], cosines, strict=True):
                dense = [Hit(*each) for each in zip(texts, map(float, row), strict=True)]
                items, _ = fuse(
                    dense, index.search(query), episodes, query=query, k=K, now=NOW, policy=policy
                )
                if answer is None:
                    others += 1
                    let_in += bool(items)
                else:
                    answers += 1
                    found += "{}.{}".format(*answer) in {item.id for item in items}
                    recalled += len(items)
            print(
                f"{name:14} floor {policy.floor:.2f}: answers {found}/{answers}, "
                f"others let in {let_in}/{others}, recalled {recalled / answers:.1f} of {K}"
            )


def _episodes(sessions: list[list[str]]) -> dict[str, Episode]:
    return {
        f"{session}.{place}": Episode(
            id=f"{session}.{place}",
            session=str(session),
            message_id=f"{session}.{place}",
            seq=place + 1,
            role=Role.ASSISTANT if place % 2 else Role.USER,
            speaker="assistant" if place % 2 else "user",
            text=text,
            event_time=NOW,
            recorded_at=NOW,
        )
        for session, texts in enumerate(sessions)
        for place, text in enumerate(texts)
    }


async def main(floors: list[float]) -> None:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    embedder = await open_embedder(Settings())
    own = RecallPolicy.of_embedder(embedder.identity)
    policies = [own.model_copy(update={"floor": floor}) for floor in floors] or [own]
    print(embedder.identity)
    for part, sets in data.items():
        await measure(embedder, {f"{part} {name}": each for name, each in sets.items()}, policies)
    await embedder.close()


if __name__ == "__main__":
    asyncio.run(main([float(each) for each in sys.argv[1:]]))
