"""Whom a question is about. Pure.

A question is read once (`Asked.of`) for what it names, whose relatives it speaks of, and whether
it says "I" or "she". The facts that were found then say who that is (`whom`): what is named, by
any name that it is known under; the sister of "my sister"; whoever the last messages named, where
a pronoun stands for them. Whose facts were not read yet is in `Whom.keys`, to be read next.

Names that are said to be of one thing (predicates with `names`) are followed up to what has the
name and from there down to its other names, so that a nickname of two people finds both of them,
and neither finds the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from typing import Final, NamedTuple

from memory.models import Fact
from memory.semantic import names, words
from memory.semantic.chinese import KIN as CHINESE_KIN
from memory.semantic.predicates import RELATIONS, Registry
from memory.semantic.predicates import key as predicate_key

SELF_KEY: Final = names.key(names.SELF)
REMEMBERED: Final = 4
"""Messages before the question in which a pronoun's name is looked for."""
_RECENT_KEYS: Final = 120
"""Names out of one of those messages that are looked up, at most."""
_HOPS: Final = 3


class Bearing(NamedTuple):
    """How somebody comes to be asked for, and how surely, in [0, 1]."""

    score: float
    reason: str


_NAMED: Final = Bearing(1.0, "names it")
_ALSO_CALLED: Final = Bearing(0.95, "names it by another name")
_IN_PART: Final = Bearing(0.9, "names it in part, or in another spelling")
_RELATED: Final = Bearing(0.9, "asks for such a relative")
NAMED_BEFORE: Final = 0.25
"""How surely somebody is asked for who was only named in the messages before."""
_RECENT: Final = Bearing(NAMED_BEFORE, "was named just before")


class _Named(NamedTuple):
    """What a text may name."""

    keys: frozenset[str]
    forms: frozenset[str]


class Asked(NamedTuple):
    """A question, read for whom it is about. `recent` are the messages before it, newest first."""

    keys: tuple[str, ...]
    forms: tuple[str, ...]
    recent: tuple[_Named, ...]
    kin: frozenset[str]
    own_kin: bool
    asks: bool
    says_i: bool
    says_they: bool
    of_others: bool

    @classmethod
    def of(cls, query: str, recent: Sequence[str] = ()) -> Asked:
        """`recent` are the texts of the messages before it, the newest first."""
        says_i = _says_i(query)
        says_they = bool(_THEY.search(query[:_READ]))
        asks = bool(_QUESTION.search(query[:_READ]))
        return cls(
            keys=names.mentions(query),
            forms=names.asked_forms(query),
            recent=tuple(
                _Named(
                    frozenset(names.mentions(text)[:_RECENT_KEYS]),
                    frozenset(names.asked_forms(text)[:_RECENT_KEYS]),
                )
                for text in recent[:REMEMBERED]
            ),
            kin=_kin(query[:_READ]),
            own_kin=says_i or bool(_LEAVES_I_OUT.search(query[:_READ])),
            asks=asks,
            says_i=says_i,
            says_they=says_they,
            of_others=not says_i and asks and (says_they or _names_one(query)),
        )

    @property
    def looked_up(self) -> tuple[str, ...]:
        """The keys to read facts by first: the user's, the question's and the last messages'."""
        before = (key for named in self.recent for key in sorted(named.keys))
        return tuple(dict.fromkeys((SELF_KEY, *self.named, *before)))

    @property
    def named(self) -> tuple[str, ...]:
        """The keys of what the question may name, in every way that it can be read."""
        return tuple(dict.fromkeys((*self.keys, *self.forms)))

    @property
    def looked_up_forms(self) -> tuple[str, ...]:
        before = (form for named in self.recent for form in sorted(named.forms))
        return tuple(dict.fromkeys((*self.forms, *before)))


class Whom(NamedTuple):
    """Whom the question is about, by key. `selves` are the user's own names; with `of_others`,
    what is known of the user answers only where it bears on the question."""

    bearing: Mapping[str, Bearing]
    selves: frozenset[str] = frozenset((SELF_KEY,))
    of_others: bool = False

    @property
    def keys(self) -> list[str]:
        """Whose facts are wanted."""
        return sorted({*self.bearing, *self.selves})

    def of(self, fact: Fact) -> tuple[bool, Bearing | None]:
        """Whether the fact is about the user, and how its subject or object is asked for; of the
        user's facts, how the object is."""
        ends = _ends(fact.subject, fact.predicate, fact.object)
        thing = self.bearing.get(ends.object)
        if ends.subject in self.selves:
            return True, thing
        subject = self.bearing.get(ends.subject)
        if subject is None or thing is None:
            return False, subject or thing
        return False, max(subject, thing)


def whom(asked: Asked, facts: Iterable[Fact], registry: Registry) -> Whom:
    """Whom the question is about, as far as these facts can tell."""
    graph = _Graph.of(facts, registry)
    found = _directly(asked, graph)
    found.pop(SELF_KEY, None)
    for _ in range(_HOPS):
        for key in _all_names(_first_hand(found), graph.naming):
            found.setdefault(key, _ALSO_CALLED)
        new = _related(found.keys(), asked, graph) - found.keys()
        found.update(dict.fromkeys(new, _RELATED))
        if not new:
            break
    of_user = asked.says_i or SELF_KEY in found
    found.pop(SELF_KEY, None)
    others = not of_user and (
        asked.of_others or (asked.asks and any(key in graph.subjects for key in found))
    )
    if asked.says_they:
        _before(found, asked, graph)
    for named in asked.recent:
        for key in graph.matching(named):
            found.setdefault(key, _RECENT)
    selves = graph.selves(of_user)
    found.pop(SELF_KEY, None)
    return Whom(found, selves, others)


def _first_hand(found: Mapping[str, Bearing]) -> list[str]:
    """Who is not only another name of somebody: from those no way leads on."""
    return [key for key, bears in found.items() if bears != _ALSO_CALLED]


def same_as(key: str, naming: Iterable[Fact]) -> frozenset[str]:
    """The keys of all names of what is called `key`, as far as these naming facts tell."""
    edges = [(names.key(fact.subject), names.key(fact.object)) for fact in naming]
    return frozenset(_all_names([key], edges))


# --- the facts as a graph ------------------------------------------------------------------------


class _Ends(NamedTuple):
    """What a fact joins, in keys, and the other forms of its names."""

    subject: str
    predicate: str
    object: str
    subject_forms: frozenset[str]
    object_forms: frozenset[str]


def _ends(subject: str, predicate: str, thing: str) -> _Ends:
    short = len(subject) + len(thing) <= _SHORT
    return _known_ends(subject, predicate, thing) if short else _new_ends(subject, predicate, thing)


def _new_ends(subject: str, predicate: str, thing: str) -> _Ends:
    return _Ends(
        names.key(subject),
        predicate_key(predicate),
        names.key(thing),
        frozenset(names.forms(subject)),
        frozenset(names.forms(thing)),
    )


_SHORT: Final = 500
"""Characters of names that are remembered: many long ones would fill the memory."""
_known_ends = lru_cache(maxsize=8_192)(_new_ends)
"""The same facts come with every question."""


class _Graph(NamedTuple):
    """Who is there, and what joins them. All keys."""

    forms: Mapping[str, frozenset[str]]
    subjects: frozenset[str]
    naming: Sequence[tuple[str, str]]
    relations: Sequence[tuple[str, str, str, str]]
    """Subject, predicate, object, and the kind of a pet."""

    @classmethod
    def of(cls, facts: Iterable[Fact], registry: Registry) -> _Graph:
        forms: dict[str, frozenset[str]] = {}
        subjects: set[str] = set()
        naming: dict[tuple[str, str], None] = {}
        relations: dict[tuple[str, str, str, str], None] = {}
        for fact in facts:
            ends = _ends(fact.subject, fact.predicate, fact.object)
            forms[ends.subject] = ends.subject_forms
            forms[ends.object] = ends.object_forms
            subjects.add(ends.subject)
            if ends.predicate in registry.naming:
                naming[ends.subject, ends.object] = None
            elif len(ends.object) <= _LONGEST_NAME:
                kind = str(fact.attributes.get("kind") or "")
                relations[ends.subject, ends.predicate, ends.object, kind] = None
        return cls(forms, frozenset(subjects), tuple(naming), tuple(relations))

    def matching(self, named: _Named) -> list[str]:
        """Those who are there and are named, in whatever form."""
        keys = named.keys | named.forms
        return [
            key
            for key, forms in self.forms.items()
            if key in keys or (forms and not forms.isdisjoint(named.forms))
        ]

    def selves(self, of_user: bool) -> frozenset[str]:
        """Who the user is: where it is about them also by name, unless somebody has it whom they
        know."""
        if not of_user:
            return frozenset((SELF_KEY,))
        called = {thing for subject, thing in self.naming if subject == SELF_KEY}
        known = {thing for subject, _, thing, _ in self.relations if subject == SELF_KEY}
        return frozenset((SELF_KEY, *(called - known)))


_LONGEST_NAME: Final = 60


def _directly(asked: Asked, graph: _Graph) -> dict[str, Bearing]:
    """Who is named by the question itself: by name, in part, or in another spelling.

    A part of somebody's full name that is all said is nobody else: 'Anna Weber' is not every Anna.
    """
    keys, forms = frozenset(asked.keys), frozenset(asked.forms)
    named = graph.matching(_Named(keys, forms))
    said = {key for key in named if key in keys}
    said |= {form for key in named for form in graph.forms[key] & forms}
    covered = {word for name in said if " " in name for word in name.split()}
    return {
        key: _NAMED if key in keys else _IN_PART
        for key in named
        if key in keys or key in forms or graph.forms[key] & forms - covered
    }


def _all_names(seeds: Iterable[str], naming: Sequence[tuple[str, str]]) -> set[str]:
    """From names up to what has them, then down to its other names."""
    found = set(seeds)
    for upwards in (True, False):
        waiting = list(found)
        while waiting:
            key = waiting.pop()
            for subject, name in naming:
                at, other = (name, subject) if upwards else (subject, name)
                if at == key and other not in found:
                    found.add(other)
                    waiting.append(other)
    return found


def _related(owners: Set[str], asked: Asked, graph: _Graph) -> set[str]:
    """Relatives and the like of these, or of the user, as the question speaks of them."""
    if not asked.kin:
        return set()
    if asked.says_i or (asked.own_kin and not owners):
        owners = {*owners, SELF_KEY}
    return {
        thing
        for subject, predicate, thing, kind in graph.relations
        if subject in owners
        and predicate in asked.kin
        and (predicate != "has_pet" or not kind or _is_kind(kind, asked))
    }


def _is_kind(kind: str, asked: Asked) -> bool:
    """Whether the question may mean a pet of this kind: it names the kind, or none."""
    mine = names.key(kind)
    named = [word for word in _PET_KINDS if word in asked.keys]
    return mine in asked.keys or not named or any(mine in word or word in mine for word in named)


def _before(found: dict[str, Bearing], asked: Asked, graph: _Graph) -> None:
    """Whom a pronoun may stand for: those that the last messages named, the latest first."""
    people = graph.subjects | {
        thing for _, predicate, thing, _ in graph.relations if predicate in _RELATIVES
    }
    for age, named in enumerate(asked.recent):
        for key in graph.matching(named):
            if key in people and key != SELF_KEY:
                bears = Bearing(0.85 - 0.05 * age, "was named just before, and is meant")
                found.setdefault(key, bears)


# --- reading a question --------------------------------------------------------------------------

_READ: Final = 2_000
_RELATIVES: Final = frozenset(each.name for each in RELATIONS) | {"has_pet"}

_I: Final = re.compile(
    r"(?<!\w)(?:i|i['’](?:m|ve|d|ll)|me|my|mine|myself|we|us|our|ours|ich|mich|mir|mein\w*|wir|uns|"
    r"unser\w*|je|moi|mon|ma|mes|nous|notre|nos|yo|mi|mis|mí|nosotros|nuestr[oa]s?|io|mio|mia|miei|"
    r"eu|meu|minha|meus|minhas|я|меня|мне|мной|мо(?:й|я|е|ё|и|ю|ей|ём|ем|им|их|ими|его|ему)|мы|нас|нам|"
    r"наш\w*|אני|שלי|أنا|لي|عندي|نحن|tôi|ben|benim|jag|min|mitt|mina|jeg|mij|mijn|ik)(?!\w)"
    r"|j['’]|m['’]"
    r"|[我咱俺私僕]|わたし|ぼく|ผม|ฉัน"
    r"|(?<![가-힣])(?:나|내|저|제|우리)(?:는|가|의|를|한테|에게|도|랑|희)?(?![가-힣])"
    r"|[\u0620-\u064a]{2,}ي(?!\w)",
    re.IGNORECASE,
)
"""The first person. Arabic writes 'my' as an ending."""

_LEAVES_I_OUT: Final = re.compile("[\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
"""Chinese, Japanese and Korean say 'sister' for 'my sister'."""

_THEY: Final = re.compile(
    r"(?<!\w)(?:he|she|him|her|hers|his|they|them|their|theirs|he['’]s|she['’]s|they['’]re|"
    r"él|ella|ellos|ellas|elle|lui|ils|elles|er|ihm|ihn|ihr|lei|ele|ela|eles|elas|"
    r"он|она|они|его|её|ее|ему|ей|им|их|него|неё|нее|ней|нём|нем|ними|"
    r"הוא|היא|הם|هو|هي|هم|له|لها|o|onun|hij|zij|hon|han)(?!\w)"
    r"|[他她它]|彼女?|あの人|เขา|เธอ"
    r"|(?<![가-힣])(?:그녀|걔|그분|그\s?사람|그)(?:는|가|의|를|한테|에게|도|들은|들이)?(?![가-힣])",
    re.IGNORECASE,
)
"""The third person, of people."""

_QUESTION: Final = re.compile(
    r"[?？؟]|^\W*(?:where|what|who|whose|which|when|why|how|do|does|did|is|are|was|were|has|have|"
    r"can|tell me about|wo|wer|was|wie|wann|où|qui|que|quand|comment|dónde|quién|qué|cuándo|где|"
    r"кто|что|как|когда|أين|من|ماذا|متى|كيف)(?!\w)|什么|哪|谁|几岁|多大|吗|怎么|どこ|誰|だれ|何|いつ|어디|누구|무엇|뭐|언제",
    re.IGNORECASE,
)

_ONE: Final = re.compile(
    # A capitalised word inside a sentence, but not one of where or when something is.
    r"(?<![.!?…]\s)(?<![.!?…])(?<!^)(?<![\w'’-])"
    r"(?<!\bin )(?<!\bat )(?<!\bon )(?<!\bto )(?<!\bfrom )(?<!\bnear )(?<!\baround )(?<!\bvia )"
    r"(?P<name>[^\W\d_a-z][^\W\d_]+)"
)
_OF_ONE: Final = re.compile(
    r"(?<!\w)(?:does|did)\s+(?P<name>[^\W\d_]{2,})\s+\w+"
    r"|^\W*(?P<owner>[^\W\d_]{2,})['’]s\s"
    r"|(?:^|[，。！？\s])(?P<chinese>[小阿老]?[\u4e00-\u9fff]{1,3}?)(?:现在|今年|最近|以前)?"
    r"(?:是谁|是什么人|住在?哪|在哪|喜欢什么|喜欢吃|几岁|多大|叫什么|做什么|的[\u4e00-\u9fff]{1,4}(?:是|叫))"
    r"|[가-힣]{2,4}(?:씨|님)(?:은|는|이|가|의)?\s"
    r"|\w(?:さん|くん|ちゃん|様|先生)(?:は|が|の)"
    r"|(?:أين|ماذا|متى|لماذا|كيف)\s+[يت]\w+\s+(?!ال)\w{3,}",
    re.IGNORECASE,
)
"""What is asked of somebody: 'does zelda live', '王伟住在哪', 'さんは', 'أين يعمل خالد'."""
_NOBODY: Final = frozenset(
    "it this that these those there the a an one you your some any each every everyone everybody "  # noqa: SIM905
    "someone somebody anyone anybody people monday tuesday wednesday thursday friday saturday "
    "sunday january february march april may june july august september october november "
    "december english french german spanish italian chinese japanese korean russian arabic "
    "christmas easter".split()
)
_NOBODY_CHINESE: Final = re.compile(
    "[这那哪谁你您它今明昨天气早午晚饭餐厅店附近最好家里]|什么|怎么|有没|推荐|大家|人家"
)


def _says_i(query: str) -> bool:
    return bool(_I.search(query[:_READ]))


def _names_one(query: str) -> bool:
    """Whether it asks about somebody or something by name, known or not."""
    text = query[:_READ]
    for match in _ONE.finditer(text):
        name = match["name"]
        if name[0].isupper() and name.lower() not in _NOBODY:
            return True
    for match in _OF_ONE.finditer(text):
        if (chinese := match["chinese"]) is not None:
            if not _NOBODY_CHINESE.search(chinese):
                return True
            continue
        name = (match["name"] or match["owner"] or "").lower()
        if name not in _NOBODY:
            return True
    return False


_ELSEWHERE: Final = {
    "sister": (
        "сестра schwester sœur soeur hermana sorella irmã 여동생 언니 누나 أختي أخت 妹 姉 姐 אחות"
    ),
    "brother": "брат bruder frère hermano fratello irmão 남동생 오빠 형 أخي أخ 弟 兄 哥 אח",
    "mother": (
        "мать матери мама mutter mama mère maman madre mamá mãe 엄마 어머니 أمي والدتي 母 妈 אמא"
    ),
    "father": "отец отца папа vater papa père padre papá pai 아빠 아버지 أبي والدي 父 爸 אבא",
    "wife": "жена frau ehefrau femme esposa moglie esposa 아내 와이프 زوجتي 妻 奥さん 老婆 אשתי",
    "husband": "муж mann ehemann mari esposo marido marito 남편 زوجي 夫 老公 בעלי",
    "daughter": "дочь дочери tochter fille hija figlia filha 딸 ابنتي 娘 女儿 בתי",
    "son": "сын sohn fils hijo figlio filho 아들 ابني 息子 儿子",
    "child": "ребенок kind enfant 孩子 子供 아이",
    "grandmother": "бабушка oma großmutter abuela nonna avó 할머니 جدتي 祖母 おばあさん",
    "grandfather": "дедушка opa großvater abuelo nonno avô 할아버지 جدي 祖父 おじいさん",
    "aunt": "тетя tante tía zia tia 이모 고모 خالتي عمتي",
    "uncle": "дядя onkel oncle tío zio tio 삼촌 عمي خالي",
    "cousin": "кузен кузина cousine prima primo cugina cugino 사촌",
    "girlfriend": "девушка freundin novia 여자친구 彼女 صديقتي",
    "boyfriend": "парень freund novio 남자친구 彼氏",
    "has_pet": (
        "pet собака кошка кот питомец haustier hund katze perro gato mascota cane gatto chien "
        "강아지 고양이 كلبي قطتي 犬 猫 狗 宠物"
    ),
}
"""Words for relatives and pets, beside those that the English and Chinese readers know."""


def _kin_words() -> dict[str, str]:
    table: dict[str, str] = {}
    for known in (words.RELATIONS, words.PLURAL_RELATIONS, CHINESE_KIN):
        table.update(known)
    table.update(dict.fromkeys(words.PETS, "has_pet"))
    for predicate, spoken in _ELSEWHERE.items():
        for word in spoken.split():
            key = names.key(word)
            table.update(dict.fromkeys((key, *names.forms(key)), predicate))
    return table


_KIN: Final = _kin_words()
_PET_KINDS: Final = tuple(word for word, predicate in _KIN.items() if predicate == "has_pet")
_UNSPACED_KIN: Final = re.compile(
    "|".join(
        sorted(
            (word for word in _KIN if re.fullmatch("[\u3041-\u30ff\u4e00-\u9fff]+", word)),
            key=lambda word: (-len(word), word),
        )
    )
)
_POSSESSED: Final = re.compile(
    r"(?:(?<!\w)(?:my|our|mein\w*|unser\w*|mi|mis|mon|ma|mes|mio|mia|meu|minha|мо[йяеёиюу]\w*|"
    r"his|her|their|его|её|ее|их)|\w['’]s)\s+(?P<words>[^\W\d_][\w-]*(?:\s+[^\W\d_][\w-]*){0,2})",
    re.IGNORECASE,
)
_POSSESSED_CHINESE: Final = re.compile("[我他她](?:们)?的?(?P<words>[\u4e00-\u9fff]{1,4})")


def _kin(query: str) -> frozenset[str]:
    """The keys of the predicates by which the question speaks of somebody: 'my sister's boss'."""
    found = set()
    for key in names.mentions(query):
        # the forms of a key in ASCII are none of these words
        for form in (key,) if key.isascii() else (key, *names.forms(key)):
            if predicate := _KIN.get(form):
                found.add(predicate)
    found.update(_KIN[match] for match in _UNSPACED_KIN.findall(query))
    for match in _POSSESSED.finditer(query):
        said = match["words"].lower().split()
        found.update(
            predicate_key(" ".join(said[first:last]))
            for first in range(len(said))
            for last in range(first + 1, len(said) + 1)
        )
    for match in _POSSESSED_CHINESE.finditer(query):
        said_so = match["words"]
        found.update(said_so[:length] for length in range(1, len(said_so) + 1))
    return frozenset(found)
