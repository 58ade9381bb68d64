"""Reads facts out of English sentences in the first person.

A sentence is taken clause by clause. A slot is only read at the beginning of a clause ("I live in
…", "and work at …", "my sister Anna lives in …"), so that "she said that I live in …" or "I wish I
lived in …" cannot fill it; and once a clause that was not understood holds a word of doubt, report
or condition, the rest of the sentence is left alone. Questions, quotations, and whatever comes
after a request to translate, rewrite or play a part, are never read.

What stands in a slot is a phrase cut at the next function word. Names, places and employers have
to be capitalised, unless the writer never capitalises anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from memory.semantic import slots, words
from memory.semantic.names import SELF
from memory.semantic.slots import Found
from memory.text import sentences


def read(text: str, now: datetime) -> Iterator[Found]:
    """The facts in `text`, which somebody said at `now`, in the order of the text."""
    own = _plain_english(slots.own_words(text))
    casual = not any(character.isupper() for character in own)
    introduced: set[str] = set()
    greeted = False
    for sentence in sentences(own):
        if _OTHERS_WORDS.search(sentence):
            return
        said = sentence.strip()
        if len(said) > slots.SENTENCE_LIMIT or _QUESTION.search(said) or _UNREAL.match(said):
            continue
        greets = _GREETING.match(said) is not None
        yield from _Reader(said, now, casual, introduced, greeted or greets).read()
        greeted = greets and len(said) < _SHORT


_OTHERS_WORDS = re.compile(
    r"\b(?:translat(?:e|ion)|rewrite|rephrase|paraphrase|proofread|summari[sz]e|role-?play|pretend|"
    r"imagine|act\s+as|fiction(?:al)?|lyrics|the\s+following|in\s+(?:this|the|my)\s+"
    r"(?:story|novel|game|book|dream|scenario)|(?:correct|fix|improve|check)\s+(?:my|this|the)\s+"
    r"(?:grammar|sentence|text|english|paragraph|essay)|"
    r"(?:write|draft|compose)\b.{0,60}\b(?:story|poem|song|letter|monologue|dialogue|speech|"
    r"character|bio|essay|persona)|monologue|first[- ]person|"
    r"(?:sentence|phrase|text|paragraph)s?\s*:)",
    re.IGNORECASE,
)
"""What follows is not what the user says about themselves."""
_QUESTION = re.compile(r"\?[\s\"')\]\u2600-\u27bf\U0001f000-\U0001faff]*$|\?\s")
_UNREAL = re.compile(
    r"(?:and |but |so |well,? )?(?:if|suppose|supposing|assuming|assume|unless|let's say|"
    r"let us say|say that|what if|hypothetically|for example|for instance|e\.?g\.?|like when|"
    r"would|could|should|might|may|can|do|does|did|is|are|am|was|were|will|have you|has|who|what|"
    r"where|when|why|how|"
    r"which|whose|once|wish|hopefully|maybe|perhaps|in my dreams?|joking|just kidding|not)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:if|whether|unless|wish|wishes|would|could|might|may|maybe|perhaps|probably|possibly|"
    r"supposedly|imagine|suppose|dreams?|dreamed|dreamt|hope|hopes|hoping|think|thinks|thought|"
    r"believes?|guess|doubt|said|says|say|saying|told|tells?|asks?|asked|claims?|heard|hear|reads?|"
    r"wrote|writes?|quotes?|jokes?|joking|kidding|example|instead|like when|sure|what|which|who|"
    r"whose|where|how|why|almost|nearly|wanted|want|wants|used|until|when|as though|not true|"
    r"untrue|never|lie|lied|lying|song|movie|film|called|guy|friend|someone|somebody)\b|\w'd\b|\ufffc",
    re.IGNORECASE,
)
"""In a clause that was not understood, these make the rest of the sentence uncertain."""

_CONTRACTIONS = (
    (re.compile(r"[’ʼ‘]"), "'"),
    (re.compile(r"\b[Ii]'m\b|\bIm\b|\bim\b(?=\s)"), "I am"),
    (re.compile(r"\b[Ii]'ve\b|\b[Ii]ve\b(?=\s)"), "I have"),
    (re.compile(r"\b([Ww]e)'re\b"), r"\1 are"),
    (re.compile(r"\b([Ww]e)'ve\b"), r"\1 have"),
    (re.compile(r"\b([Cc]an)(?:'t|not)\b"), r"\1 not"),
    (re.compile(r"\b([Dd]o|[Dd]oes|[Dd]id|[Ii]s|[Aa]re|[Hh]ave|[Hh]as)n'?t\b"), r"\1 not"),
    (re.compile(r"[ \t]+"), " "),
)


def _plain_english(text: str) -> str:
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    return text


# --- clause by clause ----------------------------------------------------------------------------

_CLAUSE = re.compile(
    r"\s*(?:[,;:()!.…]+|\s[-–—]+\s|—|\b(?:and|but|so|because|since|though|although|while|plus)\b)"
    r"(?:\s*,)?\s*|\s+(?=(?:based|living|working|studying)\s+(?:in|at|for|as)\b)",
    re.IGNORECASE,
)
_OPENER = re.compile(
    r"(?:(?:well|so|yes|yeah|yep|no|nope|ok|okay|oh|ah|hi|hello|hey|hiya|thanks|thank you|btw|"
    r"fyi|and|but|also|now|then|plus|actually|honestly|basically|anyway|currently|nowadays|"
    r"recently|lately|finally|unfortunately|sadly|luckily|fortunately|personally|apparently not|"
    r"by the way|in fact|to be honest|as you know|just so you know|for the record|"
    r"please note(?: that)?|note that|please remember(?: that)?|remember(?: that)?|"
    r"keep in mind(?: that)?|right now|at the moment|these days|this year|this month|"
    r"last (?:week|month|year)|good news|bad news|update|(?:since|as of|in|"
    r"from)\s+(?:last\s+)?(?:january|february|march|april|may|june|july|august|september|october|"
    r"november|december|spring|summer|autumn|winter|monday|(?:19|20)\d\d)|yesterday|(?:an?|"
    r"\d{1,2}|two|three|four|five|six|seven|eight|nine|ten)\s+(?:day|week|month|year)s?\s+ago|"
    r"one more thing|a bit about me|about me|(?:good )?(?:morning|evening|afternoon)|"
    r"good (?:morning|evening|afternoon)|nice to meet you|there|everyone|all)\b[\s,:;!.–—-]*)+",
    re.IGNORECASE,
)
_SHORT = 30
"""Characters of a greeting that stands alone, before "I'm Ada"."""
_GREETING = re.compile(r"\s*(?:hi|hello|hey|good (?:morning|evening|afternoon))\b", re.IGNORECASE)

_ADVERBS = (
    r"(?:(?:currently|now|also|really|still|just|actually|recently|finally|absolutely|always|truly|"
    r"both|totally|definitely|personally|honestly|normally|usually|already|so|very much|"
    r"simply)\s+)*"
)
_I = re.compile(rf"I\s+{_ADVERBS}", re.IGNORECASE)
_WE = re.compile(rf"we\s+{_ADVERBS}", re.IGNORECASE)


class _Subject(NamedTuple):
    """Who the clause is about; `third` picks the form of the verb."""

    name: str
    third: bool
    we: bool = False


_ME = _Subject(SELF, third=False)
_US = _Subject(SELF, third=False, we=True)


class _Reader:
    """One sentence being read. `at` is how far it was understood."""

    def __init__(
        self, said: str, now: datetime, casual: bool, introduced: set[str], greets: bool
    ) -> None:
        self.said = said
        self.now = now
        self.casual = casual
        self.introduced = introduced
        self.greets = greets
        self.opening = ""
        self.subject = _ME
        self.has_subject = False
        self.was_be = False
        self.at = 0

    def read(self) -> Iterator[Found]:
        if not _UNREAL_ANYWHERE.search(self.said):
            yield from self._relations()
        for start in self._clauses():
            if start < self.at:
                continue
            if _DOUBT.search(self.said, self.at, start):
                return
            if self.at == 0 or not self._only_joins(self.at, start):
                self.has_subject = False
            opener = _OPENER.match(self.said, start)
            begin = opener.end() if opener else start
            self.opening = self.said[start:begin]
            found = self._clause(begin, start)
            if found is not None and not _TAKEN_BACK.match(self.said, self.at):
                yield from found

    def _only_joins(self, start: int, end: int) -> bool:
        boundary = _CLAUSE.match(self.said, start)
        return boundary is not None and boundary.end() == end

    def _clauses(self) -> Iterator[int]:
        yield 0
        for boundary in _CLAUSE.finditer(self.said):
            yield boundary.end()

    def _clause(self, begin: int, start: int) -> list[Found] | None:
        """The facts of the clause that begins there; None when it is not understood."""
        for pattern, take in _MINE:
            match = pattern.match(self.said, begin)
            if match and (found := take(self, match)) is not None:
                self.has_subject = False
                return found
        for pattern, subject in ((_I, _ME), (_WE, _US)):
            match = pattern.match(self.said, begin)
            if match:
                self._begin(subject)
                if start == 0 and subject is _ME and self.greets:
                    named = self._greeting_name(match.end())
                    if named is not None:
                        return named
                return self._predicate(match.end())
        somebody = self._somebody_at(begin)
        if somebody is not None:
            self._begin(_Subject(somebody.text, third=True))
            return self._predicate(somebody.end)
        if not self.has_subject or _EXAMPLE.match(self.said, self.at):
            return None
        return self._predicate(begin) or (self._be(begin) if self.was_be else None)

    def _begin(self, subject: _Subject) -> None:
        self.subject, self.has_subject, self.was_be = subject, True, False

    def _greeting_name(self, at: int) -> list[Found] | None:
        match = re.compile(r"am\s+(?!from\b|in\b|at\b)").match(self.said, at)
        name = self.name(match.end(), most=3) if match else None
        if name is None or not _ENDS.match(self.said, name.end):
            return None
        self.at = name.end
        return [Found("name", name.text, confidence=0.8)]

    def _somebody_at(self, begin: int) -> _Phrase | None:
        """'my sister Anna', or a name that such words introduced; and where the verb begins."""
        relative = _RELATIVE.match(self.said, begin)
        name = self.name(relative.end(), most=2) if relative else None
        if name is None:
            for known in sorted(self.introduced):
                if self.said.startswith(known, begin):
                    name = _Phrase(known, begin + len(known))
        verb = _WHO.match(self.said, name.end) if name else None
        return _Phrase(name.text, verb.end()) if name and verb else None

    def _predicate(self, at: int) -> list[Found] | None:
        """What is said of the subject from `at` on."""
        subject = self.subject
        be = (_IS if subject.third else _ARE if subject.we else _AM).match(self.said, at)
        if be:
            self.was_be = True
            return self._be(be.end())
        for slot in _VERBS:
            if subject.we and not slot.we:
                continue
            match = slot.pattern(subject.third).match(self.said, at)
            if match and (found := slot.take(self, match)) is not None:
                self.was_be = False
                return found
        return None

    def _be(self, at: int) -> list[Found] | None:
        """What the subject is, or is doing, or is not."""
        subject = self.subject
        for slot in _STATES:
            if subject.we and not slot.we:
                continue
            match = slot.pattern(subject.third).match(self.said, at)
            if match and (found := slot.take(self, match)) is not None:
                return found
        return None

    def _relations(self) -> Iterator[Found]:
        """Relatives and pets that are named anywhere in the sentence."""
        for match in _RELATIVE.finditer(self.said):
            name = self.name(match.end(), most=2)
            if name is None or self._is_list(match, name):
                continue
            self.introduced.add(name.text)
            yield Found(words.RELATIONS[match["kin"].lower()], name.text)
        for match in _RELATIVES.finditer(self.said):
            for each in self.names(match.end()):
                yield Found(words.PLURAL_RELATIONS[match["kin"].lower()], each)
        for match in _PET.finditer(self.said):
            name = self.name(match.end(), most=2)
            if name is not None:
                self.introduced.add(name.text)
                died = _DIED.match(self.said, name.end) is not None
                yield from _pet(match["pet"], name.text, holds=not died)

    def _is_list(self, before: re.Match[str], name: _Phrase) -> bool:
        """'My wife, Toby and I': the name is the next in a list, not hers."""
        joined = before.group().rstrip().endswith(",")
        return joined and _ALSO.match(self.said, name.end) is not None

    # --- phrases -----------------------------------------------------------------------------

    def about(self, predicate: str, object: str, *, holds: bool = True, since: int = -1) -> Found:
        """A fact about whom the clause is about. `since` is where its beginning may be told."""
        return Found(
            predicate,
            object,
            subject=self.subject.name,
            holds=holds,
            since=self.since(since) if since >= 0 else None,
        )

    def name(
        self, at: int, *, most: int = 3, never: frozenset[str] = words.NOT_NAMES
    ) -> _Phrase | None:
        """A capitalised name at `at`; `the` and small words inside it belong to it."""
        taken: list[_Word] = []
        for word in _words(self.said, at):
            lower = word.text.lower()
            if lower in ("the", "of", "and", "for", "de", "la", "del", "van", "von", "am", "upon"):
                if not self._goes_on(word, taken, most):
                    break
            elif lower in never or not (word.is_capital or self._is_casual(word, taken)):
                break
            taken.append(word)
            if word.stops or len(taken) >= most:
                break
        while taken and not taken[-1].is_capital and len(taken) > 1:
            taken.pop()
        if not taken or taken[-1].text.lower() in ("the", "of", "and", "for"):
            return None
        shown = self.said[taken[0].start : taken[-1].end]
        return _Phrase(shown[:-2] if shown.endswith("'s") else shown, taken[-1].end)

    def _goes_on(self, word: _Word, taken: list[_Word], most: int) -> bool:
        """Whether a small word is inside a name: 'the Hague', 'University of Oslo'."""
        if word.stops or most < 3:
            return False
        ahead = [following for following, _ in zip(_words(self.said, word.end), "ab", strict=False)]
        while ahead and ahead[0].text.lower() == "the" and not ahead[0].stops:
            ahead.pop(0)
        lower = word.text.lower()
        return (
            bool(ahead)
            and ahead[0].is_capital
            and lower != "and"
            and (lower == "the" or bool(taken))
        )

    def _is_casual(self, word: _Word, taken: list[_Word]) -> bool:
        """From somebody who never capitalises: one word with which the clause ends."""
        return (
            self.casual
            and not taken
            and word.text.lower() not in words.NOT_OBJECTS
            and _ENDS.match(self.said, word.end) is not None
        )

    def names(self, at: int) -> list[str]:
        """Names in a list: 'Milo and Luna', 'Ann, Bo and Cy'."""
        found: list[str] = []
        while (name := self.name(at, most=2)) is not None:
            found.append(name.text)
            self.introduced.add(name.text)
            self.at = max(self.at, name.end)
            joined = _AND.match(self.said, name.end)
            if joined is None:
                break
            at = joined.end()
        return found

    def place(self, at: int, never: frozenset[str] = words.NOT_PLACES) -> _Phrase | None:
        """A place or an organisation, with its region when that follows a comma."""
        place = self.name(at, most=6, never=never | words.NOT_NAMES - {"the"})
        if place is None or place.text.lower() in never:
            return None
        comma = _COMMA.match(self.said, place.end)
        if comma is not None and not self.casual:
            region = self.name(comma.end(), most=3)
            if region is not None and _ENDS.match(self.said, region.end):
                return _Phrase(f"{place.text}, {region.text}", region.end)
        return place

    def thing(
        self,
        at: int,
        *,
        most: int = 4,
        never: frozenset[str] = words.NOT_OBJECTS,
        liked: bool = False,
    ) -> _Phrase | None:
        """A short noun phrase: up to the next function word, without what trails behind it."""
        taken: list[_Word] = []
        for word in _words(self.said, at):
            lower = word.text.lower()
            if (not taken and lower in never) or lower in _NEVER_INSIDE:
                return None
            if taken and (lower in words.BOUNDARY or _TIME.match(self.said, word.start)):
                break
            taken.append(word)
            if word.stops:
                break
        end = taken[-1].end if taken else at
        phrase = _without_trailing(taken)
        if not 0 < len(phrase) <= most or _SPOILS.match(self.said, end):
            return None
        if liked and phrase[0].text.lower().endswith("ing"):
            return self._pastime(phrase, end)
        if _OF.match(self.said, end):
            return self.name(at, most=6) if phrase[0].is_capital else None
        return _Phrase(self.said[phrase[0].start : phrase[-1].end], end)

    def _pastime(self, phrase: list[_Word], end: int) -> _Phrase | None:
        """'hiking', 'hiking in the mountains'; not 'looking forward', 'capturing the beauty of'."""
        begin = phrase[0].start
        where = _WHEREABOUTS.match(self.said, end)
        if where is not None and not _AT_A_TIME.match(self.said, end):
            return _Phrase(self.said[begin : where.end()], where.end())
        if phrase[-1].text.lower() in ("up", "down", "out", "off", "away", "forward", "back"):
            return None
        known = phrase[0].text.lower() in words.PASTIMES
        goes_on = _LIST_GOES_ON.match(self.said, end) or _AT_A_TIME.match(self.said, end)
        if _OF.match(self.said, end) or not (known or goes_on):
            return None
        if len(phrase) == 1 and phrase[0].text.lower() in words.VAGUE_PASTIMES:
            return None
        return _Phrase(self.said[begin : phrase[-1].end], end)

    def things(
        self,
        at: int,
        *,
        most: int = 4,
        never: frozenset[str] = words.NOT_OBJECTS,
        liked: bool = False,
    ) -> list[str]:
        """Things in a list: 'peanuts and shellfish', 'pork, beef or fish'."""
        found: list[str] = []
        while thing := self.thing(at, most=3 if found else most, never=never, liked=liked):
            if found and not _LIST_GOES_ON.match(self.said, thing.end):
                break
            found.append(thing.text)
            self.at = thing.end
            joined = _LIST.match(self.said, thing.end)
            if joined is None or _STARTS_CLAUSE.match(self.said, joined.end()):
                break
            if _TAKEN_BACK.match(self.said, thing.end):
                break
            at = joined.end()
        return found

    def since(self, at: int) -> datetime | None:
        """When it began, where the beginning or the rest of the clause says so."""
        rest = _REST.match(self.said, at)
        return when(f"{self.opening} {rest.group() if rest else ''}", self.now)


class _Phrase(NamedTuple):
    text: str
    end: int


class _Word(NamedTuple):
    """A word; `stops` when punctuation follows it, so that no phrase goes on behind it."""

    text: str
    start: int
    end: int
    stops: bool

    @property
    def is_capital(self) -> bool:
        return not self.text[0].islower() and any(
            c.isalpha() and not c.islower() for c in self.text
        )


_WORD = re.compile(r"[ ]*([^\W_][\w'&+./-]*)")


def _words(said: str, at: int) -> Iterator[_Word]:
    """The words from `at` on, up to punctuation. Abbreviations keep their full stop."""
    while match := _WORD.match(said, at):
        text, start = match.group(1), match.start(1)
        bare = text.rstrip(".'/-")
        following = said[match.end() : match.end() + 2]
        if text.endswith(".") and bare in _ABBREVIATIONS and following[:1] == " ":
            bare = text
        end = start + len(bare)
        yield _Word(bare, start, end, stops=said[end : end + 1] not in (" ", ""))
        if said[end : end + 1] != " ":
            return
        at = end


def _without_trailing(taken: list[_Word]) -> list[_Word]:
    while taken:
        for length in range(min(4, len(taken)), 0, -1):
            if " ".join(word.text.lower() for word in taken[-length:]) in words.TRAILING:
                taken = taken[:-length]
                break
        else:
            return taken
    return taken


_ABBREVIATIONS = frozenset("St Mt Ft Dr Mr Mrs Ms Sta Sto".split())  # noqa: SIM905
_NEVER_INSIDE = (words.PRONOUNS - {"one"}) | frozenset(
    ["is", "are", "was", "were", "am", "have", "has", "had", "do", "does", "did", "will", "would"]
)
_TIME = re.compile(
    r"(?:(?:a|an|\d+|two|three|four|five|six|seven|eight|nine|ten|a\s+few|several|many)\s+"
    r"(?:day|week|month|year)s?\s+ago|(?:last|this|next|every)\s+\w+|yesterday|today)\b",
    re.IGNORECASE,
)
_MONTH = "|".join(slots.MONTHS)
_ALSO = re.compile(r"\s+(?:and|or|&)\b", re.IGNORECASE)
_OF = re.compile(r"\s+of\b", re.IGNORECASE)
_AT_A_TIME = re.compile(
    r"\s+(?:(?:on|in|at|during)\s+(?:the\s+)?(?:\w+days?|weekends?|mornings?|evenings?|night|"
    rf"spring|summer|autumn|fall|winter|{_MONTH}|\d+)\b|every\b|all\b)",
    re.IGNORECASE,
)
_WHEREABOUTS = re.compile(
    r"\s+(?:in|on|at|to|around|along|through|by)(?:\s+(?:the|a|an))?"
    r"(?:\s+(?!(?:my|me|it|them|you|him|her|us|this|that|these|those|some|any)\b)[^\W\d_]+){1,2}"
    r"(?=\s*(?:$|[.,;:!)…–—]|\s-\s|(?:and|or|but|so|because|too|when|every|with)\b))",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\s*,\s*like\b", re.IGNORECASE)
_WHO = re.compile(r"\s*(?:,\s*)?\s(?:who\s+)?(?:also\s+|now\s+|currently\s+|really\s+)?")
_COMMA = re.compile(r",\s+(?=[^\W\d_])")
_AND = re.compile(r"\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*")
_LIST = re.compile(r"\s*,\s*(?:and|or)\s+|\s*,\s+|\s+and\s+|\s+or\s+|\s*&\s*", re.IGNORECASE)
_LIST_GOES_ON = re.compile(
    r"\s*(?:$|[.,;:!)…–—]|\s-\s|(?:and|or|but|so|because|too|as well|any ?more|at all|though)\b)",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\s*(?:$|[.,;:!)…–—-]|(?:and|but|so|because|with|now|since|for|where|which|from|as|at|too|"
    r"currently|these days|right now|any ?more|last|these)\b)",
    re.IGNORECASE,
)
_STARTS_CLAUSE = re.compile(
    r"(?:i|we|my|our|you|he|she|it|they|this|that|there|so|then|now|if|when|lives?|works?|study|"
    r"studies|loves?|likes?|hates?|have|has|am|is|are|do|does|can|moved|prefer|enjoy|dislike|avoid|"
    r"plan|was|were|will|would|want|need|try|just|also|always|never|really|often|usually|sometimes|"
    r"even|not|no|maybe|got|went|go|get|allergic)\b",
    re.IGNORECASE,
)
_SPOILS = re.compile(r"\s+(?:without|if|unless|until|as if|like th\w+)\b|\s*\ufffc", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"[\s,;:.–—-]*(?:(?:haha|lol|ha|or)\s+)*(?:if|unless|not really|just kidding|kidding|joking|"
    r"in my dreams?|in a dream|"
    r"in th(?:e|is) (?:game|story|book|movie)|said no one|supposedly|apparently|allegedly|i think|"
    r"i guess|maybe|perhaps|when i was|as a (?:kid|child|teenager)|back then|lol jk|jk)\b",
    re.IGNORECASE,
)
_UNREAL_ANYWHERE = re.compile(
    r"\b(?:imagine|pretend|suppose|story|novel|character|dream|dreamed|dreamt|movie|film|game)\b",
    re.IGNORECASE,
)
_REST = re.compile(r"[^,;:.!()]*")


# --- when ----------------------------------------------------------------------------------------

_NUMBERS = {
    word: number
    for number, word in enumerate(
        ["a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], start=1
    )
} | {"an": 1, "one": 1, "couple": 2}
_AGO = re.compile(
    r"\b(?:a )?(?P<number>\d{1,3}|" + "|".join(_NUMBERS) + r")(?: of)? "
    r"(?P<unit>day|week|month|year)s? ago\b",
    re.IGNORECASE,
)
_FOR = re.compile(
    r"\bfor (?:the (?:last|past) |about |almost |over |more than )?(?:a )?"
    r"(?P<number>\d{1,3}|" + "|".join(_NUMBERS) + r")(?: of)? "
    r"(?P<unit>day|week|month|year)s?\b",
    re.IGNORECASE,
)
_LAST = re.compile(r"\blast (?P<what>week|month|year)\b", re.IGNORECASE)
_YESTERDAY = re.compile(r"\byesterday\b", re.IGNORECASE)
_IN_MONTH = re.compile(
    rf"\b(?:in|since)(?: last)? (?P<month>{_MONTH})(?: (?P<year>(?:19|20)\d\d))?\b", re.IGNORECASE
)
_IN_YEAR = re.compile(r"\b(?:in|since) (?P<year>(?:19|20)\d\d)\b", re.IGNORECASE)


def when(rest: str, now: datetime) -> datetime | None:
    """What the words say about the beginning; None when nothing, or when it is not in the past."""
    moment = _moment(rest, now)
    return moment if moment is not None and moment < now else None


def _moment(rest: str, now: datetime) -> datetime | None:
    if match := _AGO.search(rest) or _FOR.search(rest):
        number = match["number"].lower()
        count = int(number) if number.isdigit() else _NUMBERS[number]
        return slots.ago(now, count, match["unit"].lower())
    if _YESTERDAY.search(rest):
        return slots.ago(now, 1, "day")
    if match := _LAST.search(rest):
        what = match["what"].lower()
        if what == "year":
            return slots.start_of_year(now.year - 1)
        return slots.ago(now, 1, what)
    if match := _IN_MONTH.search(rest):
        year = int(match["year"]) if match["year"] else None
        return slots.last_month_named(now, slots.MONTHS.index(match["month"].lower()) + 1, year)
    if match := _IN_YEAR.search(rest):
        return slots.start_of_year(int(match["year"]))
    return None


# --- the slots -----------------------------------------------------------------------------------

_Take = Callable[["_Reader", "re.Match[str]"], "list[Found] | None"]


class _Slot:
    """The words before a slot, for "I" and for "she", and what to take from behind them.

    `<live|lives>` stands for both forms. Spaces match white space. `we` may speak of a household.
    """

    def __init__(self, head: str, take: _Take, *, we: bool = False) -> None:
        self._first = _compiled(head, r"\1")
        self._third = _compiled(head, r"\2")
        self.take = take
        self.we = we

    def pattern(self, third: bool) -> re.Pattern[str]:
        return self._third if third else self._first


def _compiled(head: str, form: str) -> re.Pattern[str]:
    chosen = re.sub(r"<([^|<>]*)\|([^<>]*)>", form, head)
    return re.compile(chosen.replace(" ", r"\s+") + r"\b\s*", re.IGNORECASE)


_AM = re.compile(rf"am\s+{_ADVERBS}", re.IGNORECASE)
_ARE = re.compile(rf"are\s+{_ADVERBS}", re.IGNORECASE)
_IS = re.compile(rf"is\s+{_ADVERBS}", re.IGNORECASE)


def _home(*, holds: bool = True, dated: bool = False) -> _Take:
    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        place = reader.place(match.end())
        if place is None or (dated and reader.since(place.end) is None):
            return None
        reader.at = place.end
        return [reader.about("lives_in", place.text, holds=holds, since=place.end if holds else -1)]

    return take


def _moved_from(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    left = reader.place(match.end())
    if left is None:
        return None
    reader.at = left.end
    found = [reader.about("lives_in", left.text, holds=False)]
    to = _TO.match(reader.said, left.end)
    reached = reader.place(to.end()) if to else None
    if reached is not None:
        reader.at = reached.end
        found.append(reader.about("lives_in", reached.text, since=reached.end))
    return found


_TO = re.compile(r"\s+to\s+", re.IGNORECASE)


def _origin(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    place = reader.place(match.end())
    if place is None:
        return None
    reader.at = place.end
    return [reader.about("comes_from", place.text)]


_AS = re.compile(r"\s*,?\s+as\s+(?:an?|the|their|our)\s+", re.IGNORECASE)
_AT = re.compile(r"\s+(?:at|for|with|@)\s+", re.IGNORECASE)
_IN = re.compile(r"\s+in\s+", re.IGNORECASE)


def _job(*, holds: bool = True, dated: bool = False) -> _Take:
    """An employer, and perhaps 'as a nurse' behind it."""

    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        employer = reader.place(match.end(), words.NOT_EMPLOYERS)
        if employer is None:
            return _job_somewhere(reader, match) if holds and not dated else None
        name = employer.text.partition(",")[0]
        end = match.end() + len(name)
        if dated and reader.since(end) is None:
            return None
        reader.at = end
        found = [reader.about("works_at", name, holds=holds, since=end if holds else -1)]
        kind = _AS.match(reader.said, end)
        occupation = reader.thing(kind.end()) if kind and holds else None
        if occupation is not None:
            reader.at = occupation.end
            found.append(reader.about("works_as", occupation.text.lower()))
        return found

    return take


def _job_somewhere(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    """'I work at a hospital as a nurse': the employer has no name, the occupation has."""
    somewhere = re.compile(r"(?:an?|the|my)\s+[\w' -]{2,40}?\s+as\s+an?\s+", re.IGNORECASE)
    kind = somewhere.match(reader.said, match.end())
    occupation = reader.thing(kind.end()) if kind else None
    if occupation is None:
        return None
    reader.at = occupation.end
    return [reader.about("works_as", occupation.text.lower())]


def _occupation(*, known_only: bool = False, holds: bool = True) -> _Take:
    """An occupation, and perhaps 'at Initech' behind it."""

    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        occupation = reader.thing(match.end())
        if occupation is None:
            return None
        shown = occupation.text.lower() if not occupation.text.isupper() else occupation.text
        last = shown.split()[-1]
        if known_only and (
            last not in words.OCCUPATIONS or not _AFTER_JOB.match(reader.said, occupation.end)
        ):
            return None
        reader.at = occupation.end
        found = [reader.about("works_as", shown, holds=holds)]
        at = _AT.match(reader.said, occupation.end)
        employer = reader.place(at.end(), words.NOT_EMPLOYERS) if at and holds else None
        if at is not None and employer is not None:
            name = employer.text.partition(",")[0]
            reader.at = at.end() + len(name)
            found.append(reader.about("works_at", name))
        return found

    return take


_AFTER_JOB = re.compile(
    r"\s*(?:$|[.,;:!)…–—-]|(?:and|but|so|at|for|with|in|by|who|now|too|from|since|these|"
    r"based|living)\b)",
    re.IGNORECASE,
)


def _study(*, holds: bool = True) -> _Take:
    """A subject, and perhaps 'at ETH' behind it."""

    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        subject = reader.thing(match.end(), most=3, never=words.NOT_SUBJECTS)
        if subject is None:
            return None
        shown = subject.text
        if shown.split()[-1].lower() in _NOT_LAST_IN_SUBJECT:
            return None
        reader.at = subject.end
        found = [reader.about("studies", shown, holds=holds)]
        for joins in (_AT, _IN):
            at = joins.match(reader.said, subject.end)
            school = reader.place(at.end()) if at and holds else None
            if school is not None and joins is _AT:
                reader.at = school.end
                found.append(reader.about("studies_at", school.text))
        return found

    return take


_NOT_LAST_IN_SUBJECT = frozenset(["exam", "exams", "test", "tests", "finals", "lot", "day"])


def _school(*, holds: bool = True) -> _Take:
    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        school = reader.place(match.end())
        if school is None:
            return None
        reader.at = school.end
        return [reader.about("studies_at", school.text, holds=holds)]

    return take


def _taste(predicate: str, *, holds: bool = True) -> _Take:
    """Likes and dislikes: things, pastimes, 'the beach'."""

    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        begin = match.end()
        pastime = _PASTIME.match(reader.said, begin)
        if pastime is not None:
            return _pastime(reader, predicate, pastime, holds)
        the = _THE.match(reader.said, begin)
        if the is not None:
            if the["what"].lower() not in words.OUTDOORS or not _LIST_GOES_ON.match(
                reader.said, the.end()
            ):
                return None
            reader.at = the.end()
            return [reader.about(predicate, f"the {the['what'].lower()}", holds=holds)]
        found = _with_shared_head(reader.things(begin, liked=True))
        return [reader.about(predicate, thing, holds=holds) for thing in found] or None

    return take


_THE = re.compile(r"the\s+(?P<what>\w+)", re.IGNORECASE)


def _with_shared_head(things: list[str]) -> list[str]:
    """'action and sci-fi movies' are action movies and sci-fi movies."""
    last = things[-1].split() if things else []
    if len(last) < 2 or last[-1].lower() not in words.HEADS:
        return things
    return [
        thing if " " in thing or thing.endswith("s") else f"{thing} {last[-1]}" for thing in things
    ]


_PASTIME = re.compile(
    r"(?:to\s+)(?P<verb>" + "|".join(words.GERUNDS) + r")\b(?P<what>(?:\s+[\w'-]+){0,3})",
    re.IGNORECASE,
)


def _pastime(
    reader: _Reader, predicate: str, match: re.Match[str], holds: bool
) -> list[Found] | None:
    verb = words.GERUNDS[match["verb"].lower()]
    what = reader.thing(match.start("what"), most=3) if match["what"] else None
    if verb == "playing" and what is None:
        return None
    reader.at = what.end if what else match.end("verb")
    return [reader.about(predicate, f"{verb} {what.text}" if what else verb, holds=holds)]


def _avoided(*, only: frozenset[str] | None = None) -> _Take:
    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        begin = match.end()
        a_kind = _ANY.match(reader.said, begin)
        foods = reader.things(a_kind.end() if a_kind else begin, most=3, never=words.NOT_FOODS)
        if only is not None:
            foods = [food for food in foods if food.lower() in only]
        shown = ["alcohol" if food.lower() == "drinking" else food for food in foods]
        return [reader.about("avoids", food) for food in shown] or None

    return take


_ANY = re.compile(r"any\s+(?:kind of\s+)?", re.IGNORECASE)


def _eaten(*, again: bool) -> _Take:
    """Eaten or drunk (again): what it was ended with it, diets included."""

    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        foods = reader.things(match.end(), most=3, never=words.NOT_FOODS)
        if not foods or (again and not _AGAIN.search(reader.said, match.end(), reader.at)):
            return None
        found = [reader.about("consumes", food) for food in foods]
        ended = {diet for food in foods for diet in _diets_without(food.lower())}
        found.extend(reader.about("diet", diet, holds=False) for diet in sorted(ended))
        return found

    return take


_AGAIN = re.compile(r"\bagain\b", re.IGNORECASE)


def _diets_without(food: str) -> tuple[str, ...]:
    if food in words.MEATS:
        return ("pescatarian", "vegan", "vegetarian")
    if food in words.SEAFOOD:
        return ("vegan", "vegetarian")
    return ("vegan",) if food in words.ANIMAL else ()


def _diet(*, holds: bool = True) -> _Take:
    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        if not _AFTER_DIET.match(reader.said, match.end("diet")):
            return None
        reader.at = match.end("diet")
        kind = words.DIETS[match["diet"].lower()]
        return [reader.about("diet", kind, holds=holds)]

    return take


_AFTER_DIET = re.compile(
    r"\s*(?:$|[.,;:!)…–—-]|(?:and|but|so|now|too|any ?more|since|for|because|again|by|these|"
    r"as well|at the moment|who|myself|if)\b)",
    re.IGNORECASE,
)


def _allergy(*, holds: bool = True) -> _Take:
    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        found = reader.things(match.end(), most=3)
        return [reader.about("allergic_to", thing, holds=holds) for thing in found] or None

    return take


def _named_allergy(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    reader.at = match.end()
    return [reader.about("allergic_to", match["what"])]


def _intolerance(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    reader.at = match.end()
    return [reader.about("avoids", match["what"].lower())]


def _plan(*, holds: bool = True, noun: bool = False) -> _Take:
    def take(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
        rest = _PLAN_REST.match(reader.said, match.end() if not noun else match.start("noun"))
        if rest is None:
            return None
        plan = rest.group().strip(" .")
        heard = plan.lower().split()
        if not (3 if noun else 2) <= len(heard) <= 14 or _NOT_A_PLAN.search(plan):
            return None
        if heard[0] in words.NOT_OBJECTS - {"go", "get", "have", "do", "a", "an", "the", "make"}:
            return None
        reader.at = rest.end()
        return [reader.about("plans", plan, holds=holds)]

    return take


_PLAN_REST = re.compile(
    r"(?:(?!\s+(?:but|because|so that|so i|so we|and i|and we|since|although|though)\b)"
    r"[^,;:!()…\ufffc])+",
    re.IGNORECASE,
)
_NOT_A_PLAN = re.compile(
    r"\b(?:you|your|it|that|them|if|unless|whether|maybe|not sure|"
    r"this(?!\s+(?:year|month|week|weekend|spring|summer|autumn|fall|winter|evening|afternoon)))\b",
    re.IGNORECASE,
)


def _has_pet(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    """'a dog named Rex', 'two cats named Milo and Luna', 'a cat'."""
    kind = _singular(match["pet"])
    named = _NAMED.match(reader.said, match.end("pet"))
    if named is not None:
        found = reader.names(named.end())
        return [fact for name in found for fact in _pet(kind, name)] or None
    if not _AFTER_PET.match(reader.said, match.end("pet")):
        return None
    reader.at = match.end("pet")
    many = match["many"].lower()
    shown = kind if many in ("a", "an", "one") else f"{many} {match['pet'].lower()}"
    return [reader.about("has_pet", shown)]


_NAMED = re.compile(r"(?:\s*,)?\s+(?:named|called|whose names? (?:is|are)|by the name of)\s+")
_AFTER_PET = re.compile(
    r"\s*(?:$|[.,;!)…–—]|(?:and|but|so|who|that|which|at home|now|too|as well|with me)\b)",
    re.IGNORECASE,
)


def _singular(pet: str) -> str:
    lower = " ".join(pet.lower().split())
    if lower in words.PETS:
        return lower
    return {"puppies": "puppy", "bunnies": "bunny", "ponies": "pony", "canaries": "canary"}.get(
        lower, lower.removesuffix("es") if lower.endswith("fishes") else lower.removesuffix("s")
    )


def _pet(kind: str, name: str, *, holds: bool = True) -> list[Found]:
    pet = Found("has_pet", name, holds=holds, attributes={"kind": _singular(kind)})
    return [pet, Found("is_a", _singular(kind), subject=name)] if holds else [pet]


_PET_WORD = (
    "(?:"
    + "|".join(
        [r"puppies|bunnies|ponies|canaries"]
        + [rf"{pet}s?".replace(" ", r"\s+") for pet in sorted(words.PETS, key=len, reverse=True)]
    )
    + ")"
)
_MANY = r"an?|one|two|three|four|five|\d"
_DIET_WORD = "|".join(words.DIETS)
_ALLERGEN = (
    r"peanut|nut|tree nut|milk|dairy|egg|soy|wheat|gluten|shellfish|fish|seafood|cat|dog|pollen|"
    r"dust|penicillin|latex|pet|bee|wasp|strawberry|sesame"
)

_MOVED_TO = (
    r"(?:<have|has> )?(?:just |recently |finally |now |already )*(?:moved|relocated)"
    r"(?: back| over| out| up| down| here)? to"
)

_VERBS = (
    # home
    _Slot(
        r"<live|lives>(?: and <work|works>| and <study|studies>| alone| together|"
        r" with (?:my|his|her|our) [a-z]+(?: and [a-z]+)?)? in",
        _home(),
        we=True,
    ),
    _Slot(r"<reside|resides> in", _home()),
    _Slot(_MOVED_TO, _home()),
    _Slot(_MOVED_TO, _home(dated=True), we=True),
    _Slot(r"(?:<have|has> )(?:lived|been living) in", _home(dated=True), we=True),
    _Slot(r"no longer <live|lives> in", _home(holds=False), we=True),
    _Slot(r"<do|does> not live in", _home(holds=False), we=True),
    _Slot(r"(?:used to live|stopped living) in", _home(holds=False), we=True),
    _Slot(
        r"(?:<have|has> )?(?:just |recently )?moved (?:away from|out of|from)", _moved_from, we=True
    ),
    _Slot(r"(?:originally )?<come|comes> from", _origin),
    _Slot(r"grew up in", _origin),
    # work
    _Slot(r"<work|works>(?: full[- ]time| part[- ]time| remotely)? (?:at|for)", _job()),
    _Slot(r"<work|works> as an?", _occupation()),
    _Slot(
        r"(?:<have|has> )?(?:just |recently )?(?:started|begun|began)"
        r"(?: working| work| (?:a|my) new (?:job|position|role)| a (?:job|position)| my job)?"
        r" (?:at|for|with)",
        _job(),
    ),
    _Slot(
        r"(?:<have|has> )?(?:just |recently )?(?:got|landed|found) an? (?:new )?"
        r"(?:job|position|role) (?:at|with)",
        _job(),
    ),
    _Slot(r"<have|has> (?:worked|been working) (?:at|for)", _job(dated=True)),
    _Slot(r"no longer <work|works> (?:at|for)", _job(holds=False)),
    _Slot(r"<do|does> not work (?:at|for)", _job(holds=False)),
    _Slot(r"(?:used to work|stopped working) (?:at|for)", _job(holds=False)),
    _Slot(
        r"(?:<have|has> )?(?:just |recently |finally )?(?:left|quit|lost) (?:my|his|her|the) "
        r"(?:job|position|role) (?:at|with)",
        _job(holds=False),
    ),
    _Slot(
        r"(?:<have|has> )?(?:just |recently |finally )?(?:resigned from|(?:was|got|been) "
        r"(?:fired from|laid off (?:from|by)|let go (?:from|by)))(?: my job at)?",
        _job(holds=False),
    ),
    _Slot(r"used to work as an?", _occupation(holds=False)),
    _Slot(r"no longer <work|works> as an?", _occupation(holds=False)),
    _Slot(r"<do|does> not work as an?", _occupation(holds=False)),
    # study
    _Slot(r"<study|studies> at", _school()),
    _Slot(r"<study|studies>", _study()),
    _Slot(r"<major|majors> in", _study()),
    _Slot(
        r"(?:no longer <study|studies>|stopped studying|<do|does> not study) at",
        _school(holds=False),
    ),
    _Slot(
        r"(?:no longer <study|studies>|stopped studying|<do|does> not study)", _study(holds=False)
    ),
    _Slot(
        r"(?:<have|has> )?(?:just |recently )?(?:graduated from|dropped out of)",
        _school(holds=False),
    ),
    # likes
    _Slot(
        r"(?:<do|does> )?(?:<love|loves>|<like|likes>|<enjoy|enjoys>|<adore|adores>)",
        _taste("likes"),
    ),
    _Slot(r"<prefer|prefers>", _taste("likes")),
    _Slot(r"<have|has> always (?:loved|liked|enjoyed|adored)", _taste("likes")),
    _Slot(r"<hate|hates>|<dislike|dislikes>|<detest|detests>|<loathe|loathes>", _taste("dislikes")),
    _Slot(r"can (?:not|no longer) stand", _taste("dislikes")),
    _Slot(r"<do|does> not (?:really |particularly |even )?(?:like|enjoy)", _taste("dislikes")),
    _Slot(r"no longer <like|likes>|no longer <enjoy|enjoys>", _taste("dislikes")),
    _Slot(r"<have|has> always (?:hated|disliked)", _taste("dislikes")),
    _Slot(
        r"(?:no longer <love|loves>|<do|does> not love|used to (?:love|like|enjoy)|"
        r"<have|has> stopped liking|stopped liking)",
        _taste("likes", holds=False),
    ),
    _Slot(
        r"(?:no longer <hate|hates>|no longer <dislike|dislikes>|<do|does> not (?:hate|dislike)|"
        r"used to (?:hate|dislike))",
        _taste("dislikes", holds=False),
    ),
    # diet
    _Slot(
        r"(?:<have|has> )?(?:become|became|gone|went|turned) (?:an? )?(?P<diet>"
        + _DIET_WORD
        + r")",
        _diet(),
    ),
    _Slot(
        r"(?:<eat|eats>|<follow|follows>) (?:an? )?(?:strict(?:ly)? )?(?P<diet>"
        + _DIET_WORD
        + r")(?: diet| food)?",
        _diet(),
    ),
    _Slot(
        r"(?:<have|has> )?stopped being (?:an? )?(?P<diet>" + _DIET_WORD + r")", _diet(holds=False)
    ),
    _Slot(r"used to be (?:an? )?(?P<diet>" + _DIET_WORD + r")", _diet(holds=False)),
    _Slot(r"<do|does> not (?:ever )?(?:eat|drink)", _avoided()),
    _Slot(r"(?:no longer|never) (?:<eat|eats>|<drink|drinks>)", _avoided()),
    _Slot(r"can (?:not|no longer) (?:eat|drink)", _avoided()),
    _Slot(
        r"(?:<have|has> )?(?:completely |recently |just )?stopped (?:eating|drinking)", _avoided()
    ),
    _Slot(r"<avoid|avoids>(?: eating| drinking)?", _avoided(only=words.GIVEN_UP)),
    _Slot(
        r"(?:<have|has> )?(?:completely |recently |just |finally )?(?:given up|gave up|quit)"
        r"(?: eating| drinking)?",
        _avoided(only=words.GIVEN_UP),
    ),
    _Slot(
        r"(?:<have|has> )?(?:recently |just )?(?:started|begun|began) (?:eating|drinking)",
        _eaten(again=False),
    ),
    _Slot(r"(?:<eat|eats>|<drink|drinks>)", _eaten(again=True)),
    _Slot(
        r"<have|has> (?:an? )?(?:severe |bad |mild |serious )?(?P<what>" + _ALLERGEN + r") allergy",
        _named_allergy,
    ),
    # pets
    _Slot(
        r"(?:(?:<have|has>|own|owns) (?:got )?|(?:<have|has> )?(?:just |recently )?"
        r"(?:got|adopted|bought|rescued) )(?P<many>" + _MANY + r") (?:[a-z-]+ ){0,3}?"
        r"(?P<pet>" + _PET_WORD + r")",
        _has_pet,
        we=True,
    ),
    # plans
    _Slot(r"<plan|plans> (?:to|on)", _plan(), we=True),
    _Slot(r"<intend|intends> to", _plan(), we=True),
    _Slot(r"(?:no longer <plan|plans>|<do|does> not plan) (?:to|on)", _plan(holds=False), we=True),
)
"""What a clause says of its subject with a verb, most particular first where heads are alike."""

_STATES = (
    _Slot(r"(?:living|based|residing|settled) in", _home(), we=True),
    _Slot(r"not (?:living|based) in", _home(holds=False), we=True),
    _Slot(r"no longer (?:living|based) in", _home(holds=False), we=True),
    _Slot(r"(?:originally )?from", _origin),
    _Slot(r"(?:working|employed) (?:at|for|by)", _job()),
    _Slot(r"(?:no longer|not) (?:working|employed) (?:at|for|by)", _job(holds=False)),
    _Slot(r"(?:working|employed) as an?", _occupation()),
    _Slot(r"(?:no longer|not) (?:working|employed) as an?", _occupation(holds=False)),
    _Slot(r"studying at", _school()),
    _Slot(r"(?:no longer|not) studying at", _school(holds=False)),
    _Slot(r"an? (?:[a-z-]+ ){0,3}student at", _school()),
    _Slot(
        r"(?:studying|majoring in|doing (?:a|my) (?:phd|master'?s|bachelor'?s|degree) in)", _study()
    ),
    _Slot(r"(?:no longer|not) studying", _study(holds=False)),
    _Slot(r"(?:an? )?(?:strict |lifelong |committed )?(?P<diet>" + _DIET_WORD + r")", _diet()),
    _Slot(
        r"(?:not|no longer) (?:an? )?(?:strict )?(?P<diet>" + _DIET_WORD + r")", _diet(holds=False)
    ),
    _Slot(
        r"(?:severely |deathly |highly |very |badly |mildly |terribly |extremely )?allergic to",
        _allergy(),
    ),
    _Slot(r"(?:not|no longer) allergic to", _allergy(holds=False)),
    _Slot(r"(?P<what>lactose|gluten|fructose|histamine)[- ]intolerant", _intolerance),
    _Slot(r"(?:an? )?(?:big |huge |great |massive |real )?(?:fan of|lover of)", _taste("likes")),
    _Slot(r"(?:really |very |totally |big )?(?:into|fond of|keen on)", _taste("likes")),
    _Slot(
        r"not (?:really |much of )?(?:an? )?(?:big |huge )?(?:fan of|into|fond of|keen on)",
        _taste("dislikes"),
    ),
    _Slot(r"no longer (?:an? fan of|into|fond of|keen on)", _taste("dislikes")),
    _Slot(r"(?:eating|drinking)", _eaten(again=True)),
    _Slot(r"planning (?:to|on)", _plan(), we=True),
    _Slot(r"planning (?P<noun>an? )", _plan(noun=True), we=True),
    _Slot(r"(?:no longer|not) planning (?:to|on)", _plan(holds=False), we=True),
    _Slot(r"an?", _occupation(known_only=True)),
)
"""What a clause says its subject is."""


# --- what begins with "my" -----------------------------------------------------------------------


def _my_name(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    name = reader.name(match.end(), most=4)
    if name is None or not _ENDS.match(reader.said, name.end):
        return None
    reader.at = name.end
    return [Found("name", name.text)]


def _nickname(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    name = reader.name(match.end(), most=2)
    if name is None or not _ENDS.match(reader.said, name.end):
        return None
    reader.at = name.end
    return [Found("nickname", name.text)]


_DATE = re.compile(
    rf"(?:(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})|"
    rf"(?P<month2>{_MONTH})\s+(?:the\s+)?(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)\b"
    r"(?:,?\s+(?P<year>(?:19|20)\d\d))?",
    re.IGNORECASE,
)


def _birthday(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    date = _DATE.match(reader.said, match.end())
    if date is None:
        return None
    reader.at = date.end()
    month = slots.MONTHS.index((date["month"] or date["month2"]).lower()) + 1
    day = int(date["day"] or date["day2"])
    if not 1 <= day <= 31:
        return None
    when: dict[str, str | int] = {"month": month, "day": day}
    if date["year"]:
        when["year"] = int(date["year"])
    return [Found("birthday", date.group(), attributes=when)]


def _favourite(reader: _Reader, match: re.Match[str]) -> list[Found] | None:
    kind = match["kind"].lower()
    if kind.split()[-1] in words.NOT_FAVOURITES:
        return None
    thing = reader.thing(match.end())
    if thing is None:
        return None
    reader.at = thing.end
    return [Found("likes", thing.text, attributes={"favourite": kind})]


def _mine(head: str, take: _Take) -> tuple[re.Pattern[str], _Take]:
    return re.compile(head.replace(" ", r"\s+") + r"\s*", re.IGNORECASE), take


_MINE = (
    _mine(r"my (?:full |first )?name is\b(?! not\b)", _my_name),
    _mine(r"(?:i am called|the name is)\b", _my_name),
    _mine(
        r"(?:please |you can |just |everyone |everybody |people |(?:my )?friends )*calls? me\b",
        _nickname,
    ),
    _mine(r"i go by\b", _nickname),
    _mine(r"my birthday(?: is|'s)(?: on)?\b", _birthday),
    _mine(r"i was born on\b", _birthday),
    _mine(r"my favou?rite (?P<kind>[a-z]+(?: [a-z]+)?) (?:is|are)\b", _favourite),
)
"""Clauses that are about the user without a subject that other slots share."""

_KIN = "|".join(sorted(words.RELATIONS, key=len, reverse=True))
_KINS = "|".join(words.PLURAL_RELATIONS)
_KIN_KIND = (
    r"(?:(?:little|big|older|younger|elder|twin|baby|oldest|youngest|eldest|dear|only|lovely|own|"
    r"half)[- ])*"
)
_IS_CALLED = (
    r"(?:\s*,\s*|'s\s+name\s+is\s+|\s+is\s+(?:called|named)\s+|,?\s+(?:named|called)\s+|\s+)"
)
_RELATIVE = re.compile(
    rf"(?:\b(?:my|our)\s+{_KIN_KIND}(?P<kin>{_KIN})\b{_IS_CALLED}"
    r"(?=[^\W\d_]))",
    re.IGNORECASE,
)
_RELATIVES = re.compile(
    rf"\b(?:my|our|two|three|four)\s+{_KIN_KIND}(?P<kin>{_KINS})\b"
    r"(?:\s*,\s*|\s+are\s+(?:called|named)\s+|,?\s+(?:named|called)\s+|\s+)(?=[^\W\d_])",
    re.IGNORECASE,
)
_PET = re.compile(
    rf"\b(?:my|our)\s+(?:[a-z-]+\s+)?(?P<pet>{_PET_WORD})\b{_IS_CALLED}(?=[^\W\d_])", re.IGNORECASE
)
_DIED = re.compile(r"\s*,?\s+(?:has\s+|just\s+|sadly\s+)*(?:died|passed away)\b", re.IGNORECASE)
