"""Predicates: how many objects each can have at a time, what contradicts it, how it reads.

A registry is a frozen value that a caller extends:

    registry = Registry.default().extended(Predicate(name="reports_to", single=True))

A predicate is found by its key, in which case, spaces, hyphens and underscores do not matter:
'Works At' is works_at, and is stored as it was written. An alias ('employed_by') is replaced by
the name of its predicate. One that the registry does not know has as many objects as are given,
contradicts nothing, and is kept exactly as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property, lru_cache

from pydantic import model_validator

from memory.errors import EmptyInput, InvalidInput
from memory.models import Assertion, Fact, JsonObject, Origin, Value
from memory.semantic import names

PREDICATE_LIMIT = 200
"""The longest predicate, in characters."""
ID_LIMIT = 512
"""The longest id of an assertion, in characters."""

_SEPARATORS = re.compile(r"[\s_-]+")
_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def key(predicate: str) -> str:
    """What two spellings of one predicate share. 'Works At' and 'works_at' give 'works_at'."""
    return _remembered(predicate) if len(predicate) <= PREDICATE_LIMIT else _key(predicate)


def _key(predicate: str) -> str:
    folded = names.key(predicate)
    return _SEPARATORS.sub("_", folded).strip("_") or folded


_remembered = lru_cache(maxsize=4_096)(_key)
"""The same few predicates come with every question."""


def valid(predicate: object) -> str:
    """`predicate` when it can be one. Raises InvalidInput, EmptyInput.

    Refused: anything but a string, blank, over PREDICATE_LIMIT characters, control characters and
    lone surrogates. All else is data and reads back exactly.
    """
    if not isinstance(predicate, str):
        raise InvalidInput(f"a predicate must be a string, not {type(predicate).__name__}")
    if names.is_blank(predicate):
        raise EmptyInput("a predicate must not be empty")
    if len(predicate) > PREDICATE_LIMIT:
        raise InvalidInput(
            f"the predicate has {len(predicate)} characters; the limit is {PREDICATE_LIMIT}"
        )
    if _has_unprintable(predicate):
        raise InvalidInput(f"the predicate {predicate!r} has control characters or lone surrogates")
    return predicate


def _has_unprintable(text: str) -> bool:
    """Control characters or lone surrogates, which text columns of some stores refuse."""
    return any(unicodedata.category(c) in ("Cc", "Cs") for c in text)


class Predicate(Value):
    """What is known of one predicate.

    `single`: one object at a time, a newer one supersedes. `opposite`: the predicate that cannot
    hold of the same object; both must name each other. `en` and `zh` are sentences with {s} and
    {o}, in this order, for subject and object. `names`: the object is another name of the subject.
    `profile`: what it says of the user is in every context, whatever is asked.
    """

    name: str
    single: bool = False
    opposite: str | None = None
    aliases: tuple[str, ...] = ()
    names: bool = False
    profile: bool = False
    en: str | None = None
    zh: str | None = None

    @model_validator(mode="after")
    def _one_rule_each(self) -> Predicate:
        if self.single and self.opposite is not None:
            raise ValueError(f"{self.name} cannot be single and have an opposite")
        return self


class Registry(Value):
    """The predicates that are known. Unknown ones may be used all the same."""

    predicates: tuple[Predicate, ...] = ()

    @cached_property
    def _by_key(self) -> dict[str, Predicate]:
        found: dict[str, Predicate] = {}
        for predicate in self.predicates:
            for spelling in (predicate.name, *predicate.aliases):
                valid(spelling)
                taken = found.setdefault(key(spelling), predicate)
                if taken is not predicate:
                    raise ValueError(f"{spelling!r} is {taken.name} and {predicate.name} at once")
        return found

    @model_validator(mode="after")
    def _is_sound(self) -> Registry:
        for predicate in self._by_key.values():
            self._check_opposite(predicate)
        return self

    def _check_opposite(self, predicate: Predicate) -> None:
        if predicate.opposite is None:
            return
        other = self.find(predicate.opposite)
        if other is None or other.opposite is None or self.find(other.opposite) is not predicate:
            raise ValueError(f"{predicate.name} and {predicate.opposite} must name each other")

    @classmethod
    def default(cls) -> Registry:
        """What the built-in extractor uses, and common names for the same."""
        return _DEFAULT

    def extended(self, *predicates: Predicate) -> Registry:
        """A registry with these too; one of the same name replaces what was there."""
        replaced = {key(predicate.name) for predicate in predicates}
        kept = [each for each in self.predicates if key(each.name) not in replaced]
        return Registry.from_json({"predicates": (*kept, *predicates)})

    @cached_property
    def naming(self) -> frozenset[str]:
        """The keys, aliases' too, of the predicates whose object is a name of the subject."""
        return frozenset(spelling for spelling, each in self._by_key.items() if each.names)

    @cached_property
    def profile(self) -> tuple[str, ...]:
        """The keys of the predicates that are in every context where they are of the user."""
        return tuple(sorted(spelling for spelling, each in self._by_key.items() if each.profile))

    def find(self, predicate: str) -> Predicate | None:
        """The predicate of this name or alias, or None."""
        return self._by_key.get(key(predicate))

    def spelling(self, predicate: str) -> str:
        """As it is stored: an alias gives the name that it stands for, all else itself."""
        known = self.find(predicate)
        if known is None or key(known.name) == key(predicate):
            return predicate
        return known.name

    def assertion(
        self,
        *,
        id: str,
        subject: str,
        predicate: str,
        object: str,
        valid_from: datetime,
        learnt_at: datetime,
        valid_to: datetime | None = None,
        said_at: datetime | None = None,
        holds: bool = True,
        sources: Iterable[str] = (),
        origin: Origin = "stated",
        confidence: float = 1.0,
        attributes: JsonObject | None = None,
    ) -> Assertion:
        """An assertion with what this registry knows of its predicate written into it.

        Raises EmptyInput for a blank subject, predicate or object, and InvalidInput for a
        predicate that cannot be one or times that contradict each other.
        """
        known = self.find(valid(predicate))
        return checked(
            Assertion.from_json(
                {
                    "id": id,
                    "subject": subject,
                    "predicate": self.spelling(predicate),
                    "object": object,
                    "holds": holds,
                    "single": known is not None and known.single,
                    "opposite": known.opposite if known is not None else None,
                    "valid_from": valid_from,
                    "valid_to": valid_to,
                    "said_at": said_at,
                    "learnt_at": learnt_at,
                    "sources": tuple(dict.fromkeys(sources)),
                    "origin": origin,
                    "confidence": confidence,
                    "attributes": attributes or {},
                }
            )
        )

    def render(self, fact: Fact | Assertion) -> str:
        """The fact as one readable line, in the language that it is written in.

        Without its times. A predicate that the registry does not know reads as it is.
        """
        subject, shown = _one_line(fact.subject), _one_line(fact.object)
        known = self.find(fact.predicate)
        chinese = bool(_CJK.search(shown) or _CJK.search(subject) or _CJK.search(fact.predicate))
        if chinese and subject == names.SELF:
            subject = "用户"
        phrase = (known.zh if chinese else known.en) if known is not None else None
        if phrase is None:
            return f"{subject} {_one_line(fact.predicate).replace('_', ' ')} {shown}"
        return _fill(phrase, subject, shown)


def render(fact: Fact | Assertion) -> str:
    """The fact as one readable line, in the words of the default registry."""
    return Registry.default().render(fact)


def checked(assertion: Assertion) -> Assertion:
    """The assertion itself when a store can keep it. Raises EmptyInput, InvalidInput."""
    if not 0 < len(assertion.id) <= ID_LIMIT or _has_unprintable(assertion.id):
        raise InvalidInput(f"{assertion.id[:ID_LIMIT]!r} cannot be the id of an assertion")
    valid(assertion.predicate)
    if assertion.opposite is not None:
        valid(assertion.opposite)
        if key(assertion.opposite) == key(assertion.predicate):
            raise InvalidInput(f"{assertion.predicate!r} cannot be its own opposite")
    for what, name in (("subject", assertion.subject), ("object", assertion.object)):
        if names.is_blank(name):
            raise EmptyInput(f"the {what} of a fact must not be empty")
    end = assertion.valid_to
    if end is not None and end <= assertion.valid_from:
        raise InvalidInput("valid_to must be later than valid_from")
    if end is not None and assertion.said_at is not None:
        raise InvalidInput("said_at says that it goes on; it cannot stand beside valid_to")
    if assertion.said_at is not None and assertion.said_at < assertion.valid_from:
        raise InvalidInput("said_at must not be earlier than valid_from")
    return assertion


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fill(phrase: str, subject: str, shown: str) -> str:
    """The phrase with both names put in, whatever braces the names themselves have."""
    before, _, rest = phrase.partition("{s}")
    middle, _, after = rest.partition("{o}")
    return f"{before}{subject}{middle}{shown}{after}"


def _relation(
    name: str, chinese: str, *, single: bool = False, aliases: tuple[str, ...] = ()
) -> Predicate:
    word = name.replace("_", " ")
    return Predicate(
        name=name,
        single=single,
        aliases=aliases,
        en=f"{{s}}'s {word} is {{o}}",
        zh=f"{{s}}的{chinese}是{{o}}",
    )


RELATIONS = (
    _relation("wife", "妻子", single=True),
    _relation("husband", "丈夫", single=True),
    _relation("partner", "伴侣", single=True, aliases=("spouse", "married_to")),
    _relation("fiance", "未婚夫", single=True),
    _relation("fiancee", "未婚妻", single=True),
    _relation("girlfriend", "女朋友", single=True),
    _relation("boyfriend", "男朋友", single=True),
    _relation("mother", "母亲", single=True),
    _relation("father", "父亲", single=True),
    _relation("daughter", "女儿"),
    _relation("son", "儿子"),
    _relation("child", "孩子"),
    _relation("sister", "姐妹"),
    _relation("brother", "兄弟"),
    _relation("twin", "双胞胎"),
    _relation("grandmother", "祖母"),
    _relation("grandfather", "祖父"),
    _relation("aunt", "姑姨"),
    _relation("uncle", "叔舅"),
    _relation("cousin", "表亲"),
    _relation("niece", "侄女"),
    _relation("nephew", "侄子"),
)

_DEFAULT = Registry(
    predicates=(
        Predicate(
            name="name",
            single=True,
            aliases=("is_named", "is_called", "has_name"),
            names=True,
            profile=True,
            en="{s}'s name is {o}",
            zh="{s}的名字是{o}",
        ),
        Predicate(
            name="nickname",
            aliases=("also_called", "also_known_as", "known_as", "alias", "aka", "goes_by"),
            names=True,
            profile=True,
            en="{s} is also called {o}",
            zh="{s}也叫{o}",
        ),
        Predicate(
            name="lives_in",
            single=True,
            aliases=("resides_in", "lives_at", "home_city"),
            en="{s} lives in {o}",
            zh="{s}住在{o}",
        ),
        Predicate(
            name="comes_from",
            single=True,
            aliases=("is_from", "hometown", "native_of"),
            en="{s} comes from {o}",
            zh="{s}来自{o}",
        ),
        Predicate(
            name="works_at",
            single=True,
            aliases=("works_for", "employed_by", "employed_at", "employer"),
            en="{s} works at {o}",
            zh="{s}在{o}工作",
        ),
        Predicate(
            name="works_as",
            single=True,
            aliases=("occupation", "job_title", "profession", "has_job"),
            en="{s} works as {o}",
            zh="{s}的职业是{o}",
        ),
        Predicate(
            name="studies_at",
            single=True,
            aliases=("student_at", "attends_university"),
            en="{s} studies at {o}",
            zh="{s}在{o}上学",
        ),
        Predicate(name="studies", en="{s} studies {o}", zh="{s}学{o}"),
        *RELATIONS,
        Predicate(name="has_pet", aliases=("owns_pet",), en="{s} has a pet: {o}", zh="{s}养了{o}"),
        Predicate(name="is_a", aliases=("instance_of",), en="{s} is a {o}", zh="{s}是{o}"),
        Predicate(
            name="likes",
            opposite="dislikes",
            aliases=("loves", "enjoys", "is_fond_of"),
            en="{s} likes {o}",
            zh="{s}喜欢{o}",
        ),
        Predicate(
            name="dislikes",
            opposite="likes",
            aliases=("hates", "does_not_like"),
            en="{s} dislikes {o}",
            zh="{s}不喜欢{o}",
        ),
        Predicate(
            name="diet",
            single=True,
            aliases=("has_diet", "follows_diet"),
            profile=True,
            en="{s}'s diet is {o}",
            zh="{s}的饮食习惯是{o}",
        ),
        Predicate(
            name="allergic_to",
            aliases=("has_allergy_to", "allergy", "has_allergy"),
            profile=True,
            en="{s} is allergic to {o}",
            zh="{s}对{o}过敏",
        ),
        Predicate(
            name="consumes",
            opposite="avoids",
            en="{s} eats or drinks {o}",
            zh="{s}吃或喝{o}",
        ),
        Predicate(
            name="avoids",
            opposite="consumes",
            aliases=("does_not_eat", "does_not_drink"),
            en="{s} avoids {o} (does not eat or drink it)",
            zh="{s}不吃或不喝{o}",
        ),
        Predicate(
            name="plans",
            aliases=("plans_to", "intends_to"),
            en="{s}'s plan: {o}",
            zh="{s}打算{o}",
        ),
        Predicate(
            name="birthday",
            single=True,
            aliases=("date_of_birth", "born_on", "birth_date"),
            en="{s}'s birthday is {o}",
            zh="{s}的生日是{o}",
        ),
    )
)
