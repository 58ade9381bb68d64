"""Recall: scored candidates put into one order, with a floor. Pure.

An episode's score is a number in [0, 1] that means the same for every query:

    own         1 - (1 - meaning / 2) (1 - words): either alone is enough, words a little more so;
                meaning is the cosine on the embedder's scale (`Calibration`), words BM25 as a share
                of the best, times the root of how much of the query is said
    confidence  the best `own` of the query
    score       0.9 × (1 + confidence) / 2 × the sum of its parts as a share of the best one's
                (`scoring`) × what age leaves of it; with a literal hit on an identifier, a file
                name or a quotation: 0.9 + 0.1 × that, so that it comes first

Words alone prove little: every long question shares some with something. So a query must first be
answered at all: by a meaning that passes the floor, by an episode that covers about half of what
is asked, or by some of both (`Scored.evidence`). When none is, all scores are brought below the
floor. Where it is answered, what has less than a certain share of what the best has is no answer.
One floor serves all: what is below `RecallPolicy.floor` is not recalled, and is reported.
Every order ends in the place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from pydantic import Field

from memory.asking import last_line
from memory.embedding.script import is_latin
from memory.models import Cause, Dropped, Episode, Fact, Recalled, Value
from memory.places import Floats
from memory.scoring import Calibration, Scored, Weights
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

_MINILM: Final = Calibration(low=0.2, high=0.6)
_E5: Final = Calibration(low=0.85, high=0.915)


class RecallPolicy(Value):
    """How candidates become an order. Measured in docs/decisions/0010 and 0024.

    Of an embedder that sends texts to different models by their script, `latin` calibrates queries
    in Latin script and `other` all the rest; of any other embedder both are the same.
    """

    latin: Calibration = _MINILM
    other: Calibration = _E5
    weights: Weights = Weights()
    floor: float = Field(default=0.15, ge=0.0, le=1.0)
    """The lowest score that is recalled. On the scale of `Recalled.score`."""
    least_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """What has less than this share of what the best one has is not recalled."""
    evidence_share: float = Field(default=1.0, ge=0.0)
    """How much of `own_floor` is evidence enough that a query is answered."""
    for_dialogues: float = Field(default=0.5, ge=0.0)
    """How much of `least_share` a dialogue needs, and what words count there: among so many, some
    are in anything."""
    dialogue_evidence: float = Field(default=0.25, ge=0.0)
    """How much of `evidence_share` is enough for a dialogue: it tells, and asks nothing."""
    dialogue_offers: float = Field(default=4 / 3, ge=0.0, le=100.0)
    """How many times as many episodes a context is offered for a dialogue: it touches on more."""
    recency: float = Field(default=0.05, ge=0.0, le=1.0)
    """How much of the score fades with age: 0 none, 1 all of it."""
    access: float = Field(default=0.0, ge=0.0, le=1.0)
    """How much of it fades with the time since the episode was last in a context."""
    importance: float = Field(default=0.0, ge=0.0, le=1.0)
    """How much of it an episode without importance loses."""
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
    def least_found(self) -> float:
        """The least that what is found has before age is looked at: a touch of age, as `recency`
        is by default, orders it and does not bring it below the floor."""
        more = min(1.0 - LITERAL_BAND, self.floor / max(0.5, 1.0 - self.recency))
        return max(self.floor, more)

    @property
    def own_floor(self) -> float:
        """The floor before the room at the top for literal hits is taken off."""
        return self.floor / (1.0 - LITERAL_BAND)

    def asked(self, query: str) -> RecallPolicy:
        """The policy for this query."""
        if last_line(query) is None:
            return self
        part = self.for_dialogues
        return self.model_copy(
            update={
                "evidence_share": self.evidence_share * self.dialogue_evidence,
                "least_share": min(1.0, self.least_share * part),
                "weights": self.weights.with_words(part),
            }
        )

    def offered(self, k: int, query: str) -> int:
        """The episodes that a context is offered for a query, where a question is offered `k`."""
        return k if last_line(query) is None else max(1, round(self.dialogue_offers * k))

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


def strengths(scored: Scored, policy: RecallPolicy) -> Floats:
    """The score of each candidate, best first, before age and literal hits are looked at."""
    if scored.evidence >= policy.own_floor * policy.evidence_share:
        strong = (1.0 - LITERAL_BAND) * (0.5 + 0.5 * scored.confidence) * scored.relative
        far = (scored.relative < policy.least_share) | (scored.relative <= 0)
        below = policy.floor * np.minimum(0.99, scored.relative / (policy.least_share or 1.0))
        return np.where(far, np.minimum(strong, below), np.maximum(strong, policy.least_found))
    # Not all the way to 0, so that what would have come first is seen among the near misses.
    unsure = max(scored.evidence, 0.5 * policy.own_floor * scored.confidence)
    return (1.0 - LITERAL_BAND) * unsure * scored.relative


def ranked(
    scored: Scored,
    episodes: Mapping[int, Episode],
    *,
    query: str,
    k: int,
    now: datetime,
    policy: RecallPolicy = DEFAULT,
) -> tuple[list[Recalled], list[Dropped]]:
    """The best `k` episodes, best first, and the near misses with the reason of each.

    `episodes` are those candidates that were read, by the place of each in the order of `scored`:
    the others count, and are not named. The same words are recalled once. Archived episodes are
    not recalled. A greeting recalls nothing. Of each cause at most `policy.near_misses` are
    reported, and their reason says how many there were.
    """
    strength = strengths(scored, policy)
    candidates = _candidates(scored, strength, episodes, query, now, policy)
    if is_small_talk(query):
        nothing = f"{query.strip()[:40]!r} asks for nothing"
        return [], _near_misses(
            _Missed.in_order(candidates), policy, "not_asked", lambda _: nothing
        )
    unread = np.delete(strength, list(episodes))
    above = [each for each in candidates if each.score >= policy.floor]
    order = _Order.of(above)
    found = len(order.unique) + int((unread >= policy.floor).sum())
    too_low = len(candidates) - len(above) + int((unread < policy.floor).sum())
    dropped = [
        *_near_misses(
            _Missed.in_order(order.unique[k:], after=k),
            policy,
            "beyond_k",
            lambda _: f"{found} were found; the best {k} are recalled",
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
            _Missed.in_order(candidates[len(above) :], after=found),
            policy,
            "below_floor",
            lambda each: (
                f"its score {each.score:.2f} is below the floor {policy.floor:.2f}, "
                f"as {too_low} were"
            ),
        ),
    ]
    return [_recalled(each) for each in order.unique[:k]], dropped


class _Candidate(NamedTuple):
    """An episode with its score and what that is made of. `said` are its `same_words`."""

    episode: Episode
    score: float
    parts: dict[str, float]
    literals: tuple[str, ...]
    said: str


def _candidates(
    scored: Scored,
    strength: Floats,
    episodes: Mapping[int, Episode],
    query: str,
    now: datetime,
    policy: RecallPolicy,
) -> list[_Candidate]:
    """The episodes with their scores, best first; what is equal stays in the order of `scored`."""
    wanted = literals(query)
    at = sorted(episodes)
    read = [episodes[place] for place in at]
    of_age = _of_age(read, now, policy)
    relevant = strength[at] / (1.0 - LITERAL_BAND) * _left(of_age, policy)
    names = (*scored.parts, *of_age)
    columns = [
        np.round(each, 4).tolist()
        for each in (*(part[at] for part in scored.parts.values()), *of_age.values())
    ]
    candidates = []
    for episode, relevance, *parts in zip(read, relevant.tolist(), *columns, strict=True):
        said = same_words(episode.text)
        found = tuple([each for each in wanted if each in said and _says(said, each)])
        score = (1.0 - LITERAL_BAND) * relevance
        if found:
            share = len(found) / len(wanted)
            score = (1.0 - LITERAL_BAND) + LITERAL_BAND * (0.5 * share + 0.5 * relevance)
        own = dict(zip(names, parts, strict=True))
        own["literal"] = 1.0 if found else 0.0
        candidates.append(_Candidate(episode, round(score, 4), own, found, said))
    candidates.sort(key=lambda each: -each.score)
    return candidates


def _of_age(episodes: Sequence[Episode], now: datetime, policy: RecallPolicy) -> dict[str, Floats]:
    """Of each episode, how fresh it is and its use, and its importance."""
    at, half_life = now.timestamp(), policy.half_life.total_seconds()
    said = np.array([each.event_time.timestamp() for each in episodes])
    used = np.array(
        [each.last_access.timestamp() if each.last_access else -np.inf for each in episodes]
    )
    return {
        "recency": _fresh(at - said, half_life),
        "access": _fresh(at - used, half_life),
        "importance": np.array([each.importance for each in episodes]),
    }


def _fresh(seconds: Floats, half_life: float) -> Floats:
    """1 for what is of now, 0.5 after a half-life; never above 1."""
    fresh: Floats = 0.5 ** (np.maximum(0.0, seconds) / half_life)
    return fresh


def _left(parts: Mapping[str, Floats], policy: RecallPolicy) -> Floats:
    """What is left of a score by age, use and importance."""
    lost = policy.recency * (1.0 - parts["recency"]) + policy.access * (1.0 - parts["access"])
    left: Floats = np.maximum(0.0, 1.0 - lost - policy.importance * (1.0 - parts["importance"]))
    return left


# --- words -------------------------------------------------------------------------------------

_QUOTED: Final = re.compile(r"[\"“”„«「『]([^\"“”„«»「」『』\n]{3,80})[\"“”»」』]")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/:#+\\-]*[A-Za-z0-9_+#]")
_YEAR_OR_TIME: Final = re.compile(r"(?:1[89]|20)\d\d|\d{1,2}[:.]\d{2}|\d{1,2}(?:st|nd|rd|th)")
_NAME_WITH_SIGNS: Final = re.compile(r"[._@/\\#]|::")


def literals(query: str) -> tuple[str, ...]:
    """What in a query must be meant to the letter: quotations, identifiers, paths, addresses.

    An identifier has a digit and at least four characters, or a sign inside it, as in `PLAN.md`.
    Years, dates and times of day are none.
    """
    folded = _folded(query)
    quoted = [" ".join(match.split()) for match in _QUOTED.findall(folded)]
    tokens = [token for token in _TOKEN.findall(folded) if _is_identifier(token)]
    return tuple(dict.fromkeys(each for each in (*quoted, *tokens) if each))


def _is_identifier(token: str) -> bool:
    if len(token) < 4 or _YEAR_OR_TIME.fullmatch(token):
        return False
    if any(character.isdigit() for character in token):
        return not re.fullmatch(r"[\d]{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?", token)
    return bool(_NAME_WITH_SIGNS.search(token))


def _says(folded: str, literal: str) -> bool:
    """Whether a folded text has the literal, not as a part of a longer word or number."""
    start = 0
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
    r"yep|nope|sure|great|cool|nice|fine|please|got it|understood|you[’']?re welcome|lol|"
    r"(?:ha)+|hm+|hallo|guten (?:morgen|tag|abend)|gute nacht|danke(?: schön| sehr)?|vielen dank|"
    r"tschüss|auf wiedersehen|bonjour|bonsoir|bonne nuit|salut|merci(?: beaucoup)?|au revoir|"
    r"hola|buen[oa]s (?:d[ií]as|tardes|noches)|(?:muchas )?gracias|adi[oó]s|"
    r"ciao|buongiorno|buonasera|grazie(?: mille)?|ol[aá]|bom dia|boa (?:tarde|noite)|obrigad[oa]|"
    r"привет|здравствуйте|спасибо|مرحبا|السلام عليكم|شكرا|שלום|תודה)\b"
    "|你好|您好|你们好|大家好|嗨|哈[喽啰罗]|早上好|上午好|中午好|下午好|晚上好|早安|晚安|(?:非常)?感谢|"
    "多谢|谢谢[你您]?|再见|拜拜|好的|好吧|好|嗯|是的|不是|没问题|在吗|最近怎么样|啊|呀|吗|吧|呢|"
    "收到|明白|知道了|辛苦了|不客气|哈+|早|了|こんにちは|こんばんは|おはよう(?:ございます)?|"
    "ありがとう(?:ございます)?|さようなら|안녕(?:하세요|히 가세요)?|감사합니다|고마워요?",
    re.IGNORECASE,
)
_ANY_WORD: Final = re.compile(r"\w")


def is_small_talk(query: str) -> bool:
    """Whether it is nothing but a greeting, thanks, a farewell, or a yes or no."""
    if len(query) > 80:
        return False
    rest = _COURTESIES.sub(" ", query)
    return rest != query and not _ANY_WORD.search(rest)


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
            by = first.setdefault(each.said, each.episode.id)
            if by == each.episode.id:
                order.unique.append(each)
            else:
                order.repeated.append(_Missed(each, rank, by))
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

    Where none came near at all the first is reported, so that it is said how many there were.
    """
    near = [each for each in missed if each.candidate.score > 0]
    shown = near or list(missed[:1])
    return [
        Dropped.trusted(
            tier="episodic",
            id=each.candidate.episode.id,
            text=excerpt(each.candidate.episode.text),
            tokens=0,
            score=each.candidate.score,
            scores=each.candidate.parts,
            rank=each.rank,
            reason=reason(each.candidate),
            cause=cause,
            by=each.by,
            missing=0,
        )
        for each in shown[: policy.near_misses]
    ]


def _as_many(what: str, missed: Sequence[_Missed]) -> str:
    return what if len(missed) == 1 else f"{what}, as {len(missed)} were"


def excerpt(text: str) -> str:
    """The beginning of a text, to recognise it by."""
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"


def _recalled(each: _Candidate) -> Recalled:
    episode = each.episode
    return Recalled.trusted(
        tier="episodic",
        id=episode.id,
        text=episode.text,
        score=each.score,
        scores=each.parts,
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
        metadata=deepcopy(episode.metadata) if episode.metadata else {},  # the episode is kept
    )


def _why(each: _Candidate) -> str:
    if each.literals:
        return f"has {each.literals[0]!r}"
    best = max(_REASONS, key=each.parts.__getitem__)
    if each.parts[best] >= TELLING:
        return _REASONS[best]
    return _SURROUNDINGS[max(_SURROUNDINGS, key=each.parts.__getitem__)]


TELLING: Final = 0.25
"""From how much of a part it is a reason."""
_REASONS: Final = {
    "words": "shares words",
    "meaning": "close in meaning",
    "words_near": "beside what shares words",
    "meaning_near": "beside what is close in meaning",
    "time": "of the time that is asked for",
    "facts": "where a fact was learnt",
}
"""By the part that is the strongest of it; of equal ones, the first."""
_SURROUNDINGS: Final = {
    "session": "of a conversation about this",
    "speaker": "said by whom the question names",
    "person": "said by whom the question speaks of",
}
"""Where nothing else tells much."""


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
