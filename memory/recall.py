"""Recall: what two arms found, put into one order, with a floor. Pure over the candidates.

An episode's score is a number in [0, 1] that means the same for every query:

    meaning   (cosine - low) / (high - low), within [0, 1]; low and high are the embedder's:
              what unrelated texts reach, and what a good paraphrase does (`Calibration`)
    words     BM25 / the best BM25 of this query, times the root of how much of the query the best
              one covers
    own       1 - (1 - meaning / 2) (1 - words): either alone is enough, words a little more so
    score     0.9 × (own + what neighbours in the conversation add); with a literal hit on an
              identifier, a file name or a quotation: 0.9 + 0.1 × own, so that it comes first

Words alone prove little: every long question shares some with something. So a query must first be
answered at all: by a meaning that passes the floor, by an episode that covers about half of what
is asked, or by some of both (`_evidence`). When none is, all scores are brought below the floor.

One floor serves all: what is below `RecallPolicy.floor` is not recalled, and is reported. Both
arms are on an absolute scale for that; a fusion of ranks would reward an arm for being sure of
nothing. Of equal scores, which are many where neighbours lift all to the top, what was found by
itself comes before what stands beside it; every order ends in the id.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from pydantic import Field

from memory.embedding.script import is_latin
from memory.models import Cause, Dropped, Episode, Fact, Recalled, Value
from memory.semantic.entities import NAMED_BEFORE, Bearing, Whom
from memory.semantic.names import SELF
from memory.semantic.predicates import Registry
from memory.semantic.predicates import key as predicate_key
from memory.semantic.predicates import render as plainly
from memory.text import terms

LITERAL_BAND: Final = 0.1
"""The top of the scale that only literal hits reach."""
EXCERPT: Final = 160
"""Characters of a near miss that are kept to recognise it by."""


class Hit(Protocol):
    """What an arm found: an id, and its raw score (cosine, or BM25)."""

    @property
    def id(self) -> str: ...
    @property
    def score(self) -> float: ...


class Calibration(Value):
    """What an embedder's cosines mean: `low` and below is unrelated, `high` and above the same."""

    low: float
    high: float

    def __call__(self, cosine: float) -> float:
        return min(1.0, max(0.0, (cosine - self.low) / (self.high - self.low)))


_MINILM: Final = Calibration(low=0.2, high=0.6)
_E5: Final = Calibration(low=0.85, high=0.915)


class RecallPolicy(Value):
    """How candidates become an order. Measured in docs/decisions/0010-recall-floor.md.

    Of an embedder that sends texts to different models by their script, `latin` calibrates queries
    in Latin script and `other` all the rest; of any other embedder both are the same.
    """

    latin: Calibration = _MINILM
    other: Calibration = _E5
    floor: float = Field(default=0.15, ge=0.0, le=1.0)
    """The lowest score that is recalled. On the scale of `Recalled.score`."""
    neighbours: tuple[float, ...] = (0.4, 0.2)
    """What a hit adds to the messages 1, 2, … places before and after it in its session."""
    recency: float = Field(default=0.05, ge=0.0, le=1.0)
    """How much of the score fades with age: 0 none, 1 all of it."""
    half_life: timedelta = timedelta(days=90)
    near_misses: int = Field(default=5, ge=0)
    """The most that is reported as dropped, for each reason."""

    @classmethod
    def of_embedder(cls, identity: str) -> RecallPolicy:
        """The policy for an embedder by its identity. Unknown ones are taken to be as MiniLM is."""
        parts = set(re.split(r"[^a-z0-9]+", identity.casefold()))
        known = [each for name, each in _CALIBRATIONS if parts.issuperset(name.split())]
        return cls(latin=known[0], other=known[-1]) if known else cls(latin=_MINILM, other=_MINILM)

    @property
    def own_floor(self) -> float:
        """The floor before the room at the top for literal hits is taken off."""
        return self.floor / (1.0 - LITERAL_BAND)

    def meaning(self, query: str) -> Calibration:
        """The calibration of the model that this query goes to."""
        return self.latin if is_latin(query) else self.other


_CALIBRATIONS: Final = (
    ("minilm", _MINILM),
    ("text embedding 3", Calibration(low=0.2, high=0.6)),
    ("ada 002", Calibration(low=0.75, high=0.9)),
    ("bge", Calibration(low=0.5, high=0.75)),
    ("e5", _E5),
)
"""By words of the embedder's name. MiniLM and E5 are measured; the others are what is commonly
seen of these models, and want measuring before anybody relies on them."""

DEFAULT: Final = RecallPolicy()


def fuse(
    dense: Sequence[Hit],
    lexical: Sequence[Hit],
    episodes: Mapping[str, Episode],
    *,
    query: str,
    k: int,
    now: datetime,
    policy: RecallPolicy = DEFAULT,
) -> tuple[list[Recalled], list[Dropped]]:
    """The best `k` episodes, best first, and the near misses with the reason of each.

    `dense` has cosines in [-1, 1] and `lexical` BM25 scores. Hits that are not in `episodes` do
    not count. Episodes that neither arm found may be there too: they are recalled when a
    neighbour in their session was hit hard enough. The same words are recalled once. Archived
    episodes are not recalled. A greeting recalls nothing. Of each cause at most
    `policy.near_misses` are reported, and their reason says how many there were.
    """
    candidates = _scored(dense, lexical, episodes, query, now, policy)
    if is_small_talk(query):
        nothing = f"{query.strip()[:40]!r} asks for nothing"
        return [], _near_misses(
            _Missed.in_order(candidates), policy, "not_asked", lambda _: nothing
        )
    above = [each for each in candidates if each.score >= policy.floor]
    order = _Order.of(above)
    below = _Missed.in_order(candidates[len(above) :], after=len(order.unique))
    dropped = [
        *_near_misses(
            _Missed.in_order(order.unique[k:], after=k),
            policy,
            "beyond_k",
            lambda _: f"{len(order.unique)} were found; the best {k} are recalled",
        ),
        *_near_misses(
            order.archived, policy, "archived", lambda _: _as_many("archived", order.archived)
        ),
        *_near_misses(
            order.repeated,
            policy,
            "duplicate",
            lambda _: _as_many("says the same as one that is found", order.repeated),
        ),
        *_near_misses(
            below,
            policy,
            "below_floor",
            lambda each: (
                f"its score {each.score:.2f} is below the floor {policy.floor:.2f}, "
                f"as {len(below)} were"
            ),
        ),
    ]
    return [_recalled(each) for each in order.unique[:k]], dropped


class _Candidate(NamedTuple):
    episode: Episode
    score: float
    own: float
    meaning: float
    words: float
    nearby: float
    recency: float
    literals: tuple[str, ...]
    is_hit: bool


def _scored(
    dense: Sequence[Hit],
    lexical: Sequence[Hit],
    episodes: Mapping[str, Episode],
    query: str,
    now: datetime,
    policy: RecallPolicy,
) -> list[_Candidate]:
    """Every episode with its scores, best first."""
    calibrated = policy.meaning(query)
    meaning = {hit.id: calibrated(hit.score) for hit in dense if hit.id in episodes}
    ratio, covered = _by_words([hit for hit in lexical if hit.id in episodes], episodes, query)
    words = {key: share * math.sqrt(covered) for key, share in ratio.items()}
    own = {
        key: 1.0 - (1.0 - 0.5 * meaning.get(key, 0.0)) * (1.0 - words.get(key, 0.0))
        for key in episodes
    }
    evidence = max(
        (_evidence(meaning.get(k, 0.0), ratio.get(k, 0.0), covered) for k in own), default=0.0
    )
    if evidence < policy.own_floor:
        own = _brought_below(own, evidence, policy.own_floor)
    nearby = _nearby(own, episodes, policy)
    wanted = literals(query)
    candidates = []
    for key, episode in episodes.items():
        found = tuple(each for each in wanted if _says(episode.text, each))
        recency = _recency(episode, now, policy.half_life)
        faded = 1.0 - policy.recency * (1.0 - recency)
        relevance = min(1.0, own[key] + nearby.get(key, 0.0)) * faded
        share = len(found) / len(wanted) if wanted else 0.0
        score = (1.0 - LITERAL_BAND) * relevance
        if found:
            score = (1.0 - LITERAL_BAND) + LITERAL_BAND * (0.5 * share + 0.5 * relevance)
        candidates.append(
            _Candidate(
                episode,
                round(score, 4),
                own[key],
                meaning.get(key, 0.0),
                words.get(key, 0.0),
                nearby.get(key, 0.0),
                recency,
                found,
                key in meaning or key in words,
            )
        )
    candidates.sort(key=lambda each: (-each.score, -each.own, each.episode.id))
    return candidates


def _brought_below(own: Mapping[str, float], evidence: float, floor: float) -> dict[str, float]:
    """The scores in their proportions, the best of them at the evidence, which is below the floor.

    Not all the way to 0, so that what would have come first is seen among the near misses.
    """
    most = max(own.values(), default=0.0)
    best = max(evidence, 0.5 * floor * most)
    return {key: score / most * best if most else 0.0 for key, score in own.items()}


# --- words -------------------------------------------------------------------------------------


def _evidence(meaning: float, ratio: float, covered: float) -> float:
    """How well an episode answers at all, in [0, 1], on the scale of `own`.

    Words count from a coverage of 0.3 on, and fully from 0.7.
    """
    return 0.5 * meaning + 0.5 * ratio * min(1.0, max(0.0, (covered - 0.3) / 0.4))


def _by_words(
    lexical: Sequence[Hit], episodes: Mapping[str, Episode], query: str
) -> tuple[dict[str, float], float]:
    """Each BM25 as a share of the best one, and how much of the query the best one covers."""
    best = min(lexical, key=lambda hit: (-hit.score, hit.id), default=None)
    if best is None or best.score <= 0:
        return {}, 0.0
    covered = _coverage(query, episodes[best.id].text, (episodes[hit.id].text for hit in lexical))
    return {hit.id: max(0.0, hit.score / best.score) for hit in lexical}, covered


def _coverage(query: str, best: str, texts: Iterable[str]) -> float:
    """How much of the query a text says, in [0, 1]. A term counts more the fewer texts say it.

    A term's share is 1 + log(1 + (n - df + 0.5) / (df + 0.5)) over the n texts that were found, so
    that one everyday word out of a long question is next to nothing. Whether one of the others
    says it is looked up by its letters, which is quick and near enough for a share. Chinese words
    that only ask need not be said.
    """
    wanted, asking = set(terms(query)), _only_asking(query)
    said = set(terms(best))
    folded = [_folded(text) for text in texts]
    n = len(folded)
    share = {}
    for term in sorted(wanted):
        frequency = max(sum(term in text for text in folded), int(term in said))
        share[term] = 1.0 + math.log(1.0 + (n - frequency + 0.5) / (frequency + 0.5))
    return max(_part(share, said, wanted), _part(share, said, wanted - asking))


def _part(share: Mapping[str, float], said: Set[str], wanted: Set[str]) -> float:
    whole = math.fsum(share[term] for term in wanted)
    return math.fsum(share[term] for term in wanted & said) / whole if whole else 0.0


def _only_asking(query: str) -> set[str]:
    """The terms of a query's words that only ask."""
    return {term for word in _ASKING.findall(query) for term in terms(word)}


_ASKING: Final = re.compile(
    "为什么|怎么样?|什么时候|什么|怎样|如何|哪里|哪儿|哪个|哪些|多少|有没有|是不是|能不能|会不会|请问"
)
_QUOTED: Final = re.compile(r"[\"“”„«「『]([^\"“”„«»「」『』\n]{3,80})[\"“”»」』]")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/:#+\\-]*[A-Za-z0-9_+#]")
_YEAR_OR_TIME: Final = re.compile(r"(?:1[89]|20)\d\d|\d{1,2}[:.]\d{2}|\d{1,2}(?:st|nd|rd|th)")
_NAME_WITH_SIGNS: Final = re.compile(r"[._@/\\#]|::")


def literals(query: str) -> tuple[str, ...]:
    """What in a query must be meant to the letter: quotations, identifiers, paths, addresses.

    An identifier has a digit and at least four characters, or a sign inside it, as in `PLAN.md`.
    Years, dates and times of day are none.
    """
    quoted = [match.strip() for match in _QUOTED.findall(query)]
    tokens = [token for token in _TOKEN.findall(query) if _is_identifier(token)]
    return tuple(dict.fromkeys(_folded(each) for each in (*quoted, *tokens) if each))


def _is_identifier(token: str) -> bool:
    if len(token) < 4 or _YEAR_OR_TIME.fullmatch(token):
        return False
    if any(character.isdigit() for character in token):
        return not re.fullmatch(r"[\d]{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?", token)
    return bool(_NAME_WITH_SIGNS.search(token))


def _says(text: str, literal: str) -> bool:
    """Whether a text has the literal, not as a part of a longer word or number."""
    folded, start = _folded(text), 0
    while (at := folded.find(literal, start)) >= 0:
        end = at + len(literal)
        if not (
            _joins(folded[at - 1 : at], literal[0]) or _joins(folded[end : end + 1], literal[-1])
        ):
            return True
        start = at + 1
    return False


def _joins(beside: str, edge: str) -> bool:
    return beside.isascii() and beside.isalnum() and edge.isascii() and edge.isalnum()


def _folded(text: str) -> str:
    return text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


_COURTESIES: Final = re.compile(
    r"\b(?:good (?:morning|afternoon|evening|night|day)|how are you(?: doing)?(?: today)?|"
    r"what[’']?s up|see you(?: later| soon)?|thank you|thanks|thx|cheers|a lot|so much|very much|"
    r"many|hi|hello|hey|hiya|howdy|yo|greetings|there|again|all|everyone|bye|goodbye|ok|okay|yes|no|"
    r"yep|nope|sure|great|cool|nice|fine|please)\b"
    "|你好|您好|你们好|大家好|嗨|哈[喽啰罗]|早上好|上午好|中午好|下午好|晚上好|早安|晚安|(?:非常)?感谢|"
    "多谢|谢谢[你您]?|再见|拜拜|好的|好吧|好|嗯|是的|不是|没问题|在吗|最近怎么样|啊|呀|吗|吧|呢",
    re.IGNORECASE,
)
_ANY_WORD: Final = re.compile(r"\w")


def is_small_talk(query: str) -> bool:
    """Whether it is nothing but a greeting, thanks, a farewell, or a yes or no."""
    if len(query) > 80:
        return False
    rest = _COURTESIES.sub(" ", query)
    return rest != query and not _ANY_WORD.search(rest)


# --- neighbours and age ------------------------------------------------------------------------


def _nearby(
    own: Mapping[str, float], episodes: Mapping[str, Episode], policy: RecallPolicy
) -> dict[str, float]:
    """What each episode gets from hits around it: answers stand beside what asks for them.

    Only hits that pass the floor by themselves give, so that much noise is no signal.
    """
    strongest: dict[tuple[str, int], float] = defaultdict(float)
    for key, score in own.items():
        place = episodes[key].session, episodes[key].seq
        if score >= policy.own_floor:
            strongest[place] = max(strongest[place], score)
    if not strongest:
        return {}
    return {
        key: sum(
            share * strongest.get((episode.session, episode.seq + side * distance), 0.0)
            for distance, share in enumerate(policy.neighbours, start=1)
            for side in (-1, 1)
        )
        for key, episode in episodes.items()
    }


def _recency(episode: Episode, now: datetime, half_life: timedelta) -> float:
    """1 for what was said or recalled now, 0.5 after a half-life; never above 1."""
    seen = max(episode.event_time, episode.last_access or episode.event_time)
    return float(0.5 ** (max(timedelta(0), now - seen) / half_life))


# --- results -----------------------------------------------------------------------------------


class _Missed(NamedTuple):
    """A candidate that is not recalled, the place that its score gives it among those that could
    be, and the id of what says the same."""

    candidate: _Candidate
    rank: int
    by: str | None = None

    @classmethod
    def in_order(cls, candidates: Sequence[_Candidate], *, after: int = 0) -> list[_Missed]:
        return [cls(each, rank) for rank, each in enumerate(candidates, start=after + 1)]


class _Order(NamedTuple):
    """What passed the floor: what can be recalled, and what stands back, each best first."""

    unique: list[_Candidate]
    archived: list[_Missed]
    repeated: list[_Missed]

    @classmethod
    def of(cls, candidates: Sequence[_Candidate]) -> _Order:
        """The first of those that say the same words is the one that can be recalled."""
        order, first = cls([], [], []), dict[str, str]()
        for each in candidates:
            rank = len(order.unique) + 1
            if each.episode.archived:
                order.archived.append(_Missed(each, rank))
                continue
            said = first.setdefault(same_words(each.episode.text), each.episode.id)
            if said == each.episode.id:
                order.unique.append(each)
            else:
                order.repeated.append(_Missed(each, rank, said))
        return order


def same_words(text: str) -> str:
    """Equal for texts that differ in case, white space and compatibility forms only."""
    return " ".join(_folded(text).split())


def _near_misses(
    missed: Sequence[_Missed],
    policy: RecallPolicy,
    cause: Cause,
    reason: Callable[[_Candidate], str],
) -> list[Dropped]:
    """The first few that came near.

    Where none came near at all the first hit is reported, so that it is said how many there were.
    """
    near = [each for each in missed if each.candidate.score > 0]
    shown = near or [each for each in missed if each.candidate.is_hit][:1]
    return [
        Dropped(
            tier="episodic",
            id=each.candidate.episode.id,
            text=excerpt(each.candidate.episode.text),
            score=each.candidate.score,
            scores=_arms(each.candidate),
            rank=each.rank,
            reason=reason(each.candidate),
            cause=cause,
            by=each.by,
        )
        for each in shown[: policy.near_misses]
    ]


def _as_many(what: str, missed: Sequence[_Missed]) -> str:
    return what if len(missed) == 1 else f"{what}, as {len(missed)} were"


def excerpt(text: str) -> str:
    """The beginning of a text, to recognise it by."""
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"


def _arms(each: _Candidate) -> dict[str, float]:
    """What made the score, each in [0, 1]."""
    return {
        "meaning": round(each.meaning, 4),
        "words": round(each.words, 4),
        "neighbours": round(min(1.0, each.nearby), 4),
        "recency": round(each.recency, 4),
        "literal": 1.0 if each.literals else 0.0,
    }


def _recalled(each: _Candidate) -> Recalled:
    episode = each.episode
    return Recalled.trusted(
        tier="episodic",
        id=episode.id,
        text=episode.text,
        score=each.score,
        scores=_arms(each),
        reason=_why(each),
        speaker=episode.speaker,
        role=episode.role,
        session=episode.session,
        agent=episode.agent,
        seq=episode.seq,
        event_time=episode.event_time,
        valid_from=None,
        valid_to=None,
        sources=(episode.message_id,),
        metadata=episode.metadata,
    )


def _why(each: _Candidate) -> str:
    if each.literals:
        return f"has {each.literals[0]!r}"
    strongest = max(
        (0.5 * each.meaning, "close in meaning"),
        (each.words, "shares words"),
        (each.nearby, "beside what was found"),
    )
    return strongest[1]


# --- facts -------------------------------------------------------------------------------------

FACTS: Final = 20
"""The most facts that are offered to a context."""


def rank_facts(
    facts: Iterable[Fact],
    query: str,
    *,
    now: datetime,
    limit: int = FACTS,
    render: Callable[[Fact], str] = plainly,
    about: Whom | None = None,
) -> list[Recalled]:
    """The current facts that bear on `query`, best first; then what is known of the user anyway.

    A fact about the user is always of some use, unless the query is about others; one about
    somebody else only when the query names them or asks for such a thing. Facts that do not hold
    at `now` are left out before `limit` is counted. `render` gives the line a fact is shown as.
    `about` is whom the query is about; None: whom its words name.
    """
    bears = bearing(query, about)
    ranked = []
    for fact in facts:
        if not fact.holds_at(now) or fact.unlearnt_at is not None:
            continue
        score, scores = bears(fact)
        if score > 0:
            ranked.append((score, fact.subject == SELF, fact, scores))
    ranked.sort(
        key=lambda r: (
            *(-r[0], not r[1], -r[3]["cue"] - r[3]["words"]),
            *(-r[2].valid_from.timestamp(), r[2].id),
        )
    )
    return [
        _recalled_fact(fact, score, scores, _why_fact(fact, scores, about), render)
        for score, about_user, fact, scores in ranked[:limit]
    ]


def always_known(
    facts: Iterable[Fact],
    query: str,
    *,
    now: datetime,
    registry: Registry,
    about: Whom | None = None,
) -> list[Recalled]:
    """The facts that are in every context, in an order that no question changes: by predicate,
    then by when they began. Their scores say how they bear on this one."""
    bears = bearing(query, about)
    current = [fact for fact in facts if fact.holds_at(now) and fact.unlearnt_at is None]
    current.sort(key=lambda fact: (predicate_key(fact.predicate), fact.valid_from, fact.id))
    return [
        _recalled_fact(
            fact,
            *bears(fact),
            "of the user's profile"
            if fact.subject == SELF and predicate_key(fact.predicate) in registry.profile
            else "pinned",
            registry.render,
        )
        for fact in current
    ]


def _recalled_fact(
    fact: Fact,
    score: float,
    scores: Mapping[str, float],
    reason: str,
    render: Callable[[Fact], str],
) -> Recalled:
    return Recalled.trusted(
        tier="semantic",
        id=fact.id,
        text=render(fact),
        score=round(score, 4),
        scores={arm: round(each, 4) for arm, each in scores.items()},
        reason=reason,
        speaker="",
        role=None,
        session=None,
        agent=None,
        seq=None,
        event_time=fact.learnt_at,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        sources=fact.sources,
        metadata={},
    )


def facts_beyond(ranked: Sequence[Recalled], limit: int) -> list[Dropped]:
    """Those of the ranked facts that come after the first `limit`, as near misses."""
    return [
        Dropped(
            tier="semantic",
            id=fact.id,
            text=excerpt(fact.text),
            score=fact.score,
            scores=fact.scores,
            rank=rank,
            reason=f"the best {limit} facts are offered",
            cause="beyond_k",
        )
        for rank, fact in enumerate(ranked[limit:], start=limit + 1)
    ]


def bearing(
    query: str, about: Whom | None = None
) -> Callable[[Fact], tuple[float, dict[str, float]]]:
    """How much a fact bears on the query: its score, and what each arm says, all in [0, 1]."""
    wanted = _Wanted.of(query)

    def bears(fact: Fact) -> tuple[float, dict[str, float]]:
        scores = wanted.scores(fact)
        if about is None:
            return 0.2 * (fact.subject == SELF) + 0.8 * max(scores.values()), scores
        about_user, asked = about.of(fact)
        scores = _by_whom(scores, asked, about_user=about_user)
        anyway = 0.2 * (about_user and not about.of_others)
        return anyway + 0.8 * max(scores.values()), scores

    return bears


def _by_whom(
    scores: dict[str, float], bears: Bearing | None, *, about_user: bool
) -> dict[str, float]:
    """The scores, knowing whom the question is about: facts of others count in full when they are
    asked for, behind those where they were only named just before, and otherwise not at all."""
    named = scores["named"]
    if bears is not None and bears.score > NAMED_BEFORE:
        return {**scores, "named": max(named, bears.score)}
    if bears is None:
        return scores if about_user or named else dict.fromkeys(scores, 0.0)
    if not about_user and not named:
        scores = {**scores, "cue": 0.5 * scores["cue"], "words": 0.5 * scores["words"]}
    return {**scores, "recent": bears.score}


def asked_for(query: str, predicates: Iterable[str]) -> tuple[str, ...]:
    """Those of the predicates whose kind of fact the query asks for."""
    topics = _Wanted.of(query).topics
    return tuple(each for each in predicates if topics & _said(_spaced(each))[1])


def _spaced(predicate: str) -> str:
    return predicate.replace("_", " ")


def _why_fact(fact: Fact, scores: Mapping[str, float], about: Whom | None) -> str:
    reasons = {
        "named": "names it",
        "cue": "asks for such a thing",
        "words": "shares words",
        "recent": "was named just before",
    }
    best = max(scores, key=lambda arm: scores[arm])
    if best == "named" and about is not None and (asked := about.of(fact)[1]) is not None:
        return asked.reason
    return reasons[best] if scores[best] > 0 else "about the user"


class _Wanted(NamedTuple):
    """What a query asks for: its text to look names up in, its terms, and the topics of those."""

    text: str
    terms: frozenset[str]
    topics: frozenset[int]

    @classmethod
    def of(cls, query: str) -> _Wanted:
        asked = frozenset(terms(query))
        return cls(_folded(query), asked, _topics(query, asked))

    def scores(self, fact: Fact) -> dict[str, float]:
        said = _of_fact(fact.subject, fact.predicate, fact.object)
        shared = self.terms & said.words
        return {
            "named": float(any(_says(self.text, name) for name in said.names)),
            "cue": 0.0 if self.topics.isdisjoint(said.topics) else 0.8,
            "words": len(shared) / len(self.terms) if shared else 0.0,
        }


class _Said(NamedTuple):
    """What a fact says: its terms, its topics, and the names by which it can be asked for."""

    words: frozenset[str]
    topics: frozenset[int]
    names: tuple[str, ...]


def _of_fact(subject: str, predicate: str, object: str) -> _Said:
    short = len(subject) + len(predicate) + len(object) <= _SHORT
    return (_remembered_fact if short else _new_fact)(subject, predicate, object)


def _new_fact(subject: str, predicate: str, object: str) -> _Said:
    words, topics = _words_and_topics(f"{_spaced(predicate)} {object}")
    others = () if subject == SELF else (subject,)
    return _Said(
        words.union(*(terms(name) for name in others)),
        topics,
        tuple(_folded(name) for name in (object, *others) if len(name) > 1),
    )


_remembered_fact = lru_cache(maxsize=4_096)(_new_fact)
"""The same facts come with every question."""


def _words_and_topics(text: str) -> tuple[frozenset[str], frozenset[int]]:
    words = frozenset(terms(text))
    return words, _topics(text, words)


_SHORT: Final = 500
"""Characters of a fact whose words are remembered: many long ones would fill the memory."""
_said = lru_cache(maxsize=4_096)(_words_and_topics)
"""A fact's words and topics: the same facts come with every question."""


def _topics(text: str, words: frozenset[str]) -> frozenset[int]:
    return frozenset(
        number
        for number, (english, chinese) in enumerate(_TOPICS)
        if not english.isdisjoint(words) or any(word in text for word in chinese)
    )


def _topic(english: str, chinese: str) -> tuple[frozenset[str], tuple[str, ...]]:
    return frozenset(terms(english)), tuple(chinese.split())


_TOPICS: Final = (
    _topic("name called nickname", "名字 姓名 叫什么 怎么称呼"),
    _topic(
        "work works job employer employed company office career profession occupation boss",
        "工作 公司 上班 职业 单位 老板 同事 就职",
    ),
    _topic("comes_from hometown native origin", "来自 老家 哪里人 籍贯"),
    _topic(
        "live lives home city town address moved house apartment flat neighbourhood",
        "住 家在 城市 地址 搬家 搬到 居住",
    ),
    _topic(
        "study studies school university college degree major student",
        "学习 学校 大学 专业 读书 上学",
    ),
    _topic(
        "family married husband wife spouse partner son daughter child kid mother father mom mum "
        "dad parent brother sister sibling fiance fiancee girlfriend boyfriend twin grandmother "
        "grandfather aunt uncle cousin niece nephew relative",
        "家人 家庭 老公 丈夫 老婆 妻子 儿子 女儿 孩子 妈妈 母亲 爸爸 父亲 哥哥 弟弟 姐姐 妹妹 亲戚 "
        "女朋友 男朋友 奶奶 爷爷",
    ),
    _topic("pet dog cat puppy kitten rabbit bird", "宠物 狗 猫 兔子"),
    _topic(
        "like love enjoy favourite favorite prefer fan hobby dislike hate avoid interest",
        "喜欢 最爱 爱好 偏好 兴趣 讨厌 反感",
    ),
    _topic(
        "eat food dinner lunch breakfast restaurant cook recipe meal diet vegetarian vegan "
        "allergic allergy drink",
        "吃 餐厅 晚饭 午饭 早饭 做菜 饮食 过敏 素食 忌口 喝",
    ),
    _topic(
        "plan planned planning trip travel visit holiday vacation upcoming",
        "计划 旅行 打算 出差 假期",
    ),
    _topic("birthday born age old", "生日 出生 年龄 几岁 多大"),
    _topic(
        "health ill doctor medicine medication pill drug pharmacy condition allergic allergy",
        "健康 生病 医生 吃药 药 过敏",
    ),
)
"""Words that ask for one kind of fact: English terms, and Chinese words as they are written."""
