"""What one night does for one user, decided before anything is touched. Pure.

Two things: episodes that have faded are archived (kept in the journal, out of recall), and what
recurred is promoted to a fact that names every episode's message as its source. A promoted fact
quotes the episode that was learnt first, word for word, and is never made of another promoted fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from consolidation.cluster import Cluster, clusters
from consolidation.decay import faded
from memory.codec import content_id
from memory.models import Assertion, Episode, Fact, Role, Scope, Value
from memory.semantic import SELF, names
from memory.text import terms

RECURS = "keeps coming back to"
"""The predicate of a promoted fact; its object is what was said, word for word."""


class Policy(Value):
    """How a night decides. A share is of the user's episodes that are not archived yet."""

    half_life: timedelta = timedelta(days=90)
    floor: float = 0.1
    """Below this retention an episode has faded."""
    most_archived: float = 0.25
    """A night that would archive a larger share than this archives nothing and says so."""
    always_archived: int = 20
    """… unless it is no more than this many."""
    episodes: int = 3
    sessions: int = 2
    """What recurs in at least so many episodes, over so many sessions, is promoted."""
    similar: float = 0.6
    """The least cosine between two episodes that say the same."""
    shared: float = 0.5
    """The least share of the shorter one's words that they have in common."""
    least_words: int = 3
    """Shorter episodes ("ok, thanks") say too little to be promoted."""


class Plan(Value):
    """What will be done for a user. `held_back` says why a part will not be."""

    scope: Scope
    archive: tuple[str, ...] = ()
    promote: tuple[Assertion, ...] = ()
    episodes: int = 0
    held_back: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.archive or self.promote)


def plan(
    scope: Scope,
    episodes: Sequence[Episode],
    vectors: NDArray[np.float32],
    known: Sequence[Fact],
    *,
    now: datetime,
    policy: Policy,
) -> Plan:
    """The plan for one user at `now`. `vectors` has a unit row per episode, zero where there is
    none. `known` are all versions of the user's promoted facts: what they say, or said before it
    was ended, is not planned again.
    """
    archive, held_back = _to_archive(episodes, now, policy)
    return Plan(
        scope=scope,
        archive=archive,
        promote=_to_promote(scope, episodes, vectors, known, now, policy),
        episodes=len(episodes),
        held_back=held_back,
    )


def _to_archive(
    episodes: Sequence[Episode], now: datetime, policy: Policy
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    gone = faded(episodes, now, half_life=policy.half_life, floor=policy.floor)
    active = sum(not episode.archived for episode in episodes)
    if len(gone) > max(policy.always_archived, policy.most_archived * active):
        return (), (
            f"{len(gone)} of {active} episodes have faded, more than "
            f"{policy.most_archived:.0%} in one night: none was archived",
        )
    return tuple(episode.id for episode in gone), ()


def _to_promote(
    scope: Scope,
    episodes: Sequence[Episode],
    vectors: NDArray[np.float32],
    known: Sequence[Fact],
    now: datetime,
    policy: Policy,
) -> tuple[Assertion, ...]:
    telling = [i for i, episode in enumerate(episodes) if _tells(episode, policy)]
    if not telling:
        return ()
    found = clusters(
        [episodes[i] for i in telling],
        vectors[telling],
        threshold=policy.similar,
        shared=policy.shared,
    )
    supported: defaultdict[str, set[str]] = defaultdict(set)
    for fact in known:
        supported[names.key(fact.object)].update(fact.sources)
    promoted = []
    for cluster in found:
        if len(cluster.episodes) < policy.episodes or len(cluster.sessions) < policy.sessions:
            continue
        sources = {episode.message_id for episode in cluster.episodes}
        if not sources <= supported[names.key(cluster.leader.text)]:
            promoted.append(_promoted(scope, cluster, now))
    return tuple(promoted)


def _tells(episode: Episode, policy: Policy) -> bool:
    """The user's own statements: no question, and not too short to mean something."""
    text = episode.text.strip()
    return (
        episode.role is Role.USER
        and not text.endswith(("?", "？", "吗", "呢"))
        and len(set(terms(text))) >= policy.least_words
    )


def _promoted(scope: Scope, cluster: Cluster, now: datetime) -> Assertion:
    sources = tuple(dict.fromkeys(episode.message_id for episode in cluster.episodes))
    moments = [episode.event_time for episode in cluster.episodes]
    said = cluster.leader.text.strip()
    return Assertion(
        # The same messages can say two things, each in a part of its own.
        id=content_id("promoted", scope.tenant, scope.user, said, *sources),
        subject=SELF,
        predicate=RECURS,
        object=said,
        valid_from=min(moments),
        learnt_at=now,
        sources=sources,
        origin="promoted",
        confidence=min(1.0, 0.5 + 0.1 * len(cluster.episodes)),
        attributes={
            "episodes": len(cluster.episodes),
            "sessions": len(cluster.sessions),
            "last": max(moments).isoformat(),
        },
    )
