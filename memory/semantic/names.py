"""Names: what makes two spellings the same entity.

A key is a normal form that is compared, indexed and never shown. It is careful in both directions:
'A.I.' is 'AI' and 'ann  ' is 'Ann', but 'Los Angeles' is not 'Angeles' and 'Otto Brandt' is not
'Otto Brandt, Jr.'. Nothing is stemmed, translated or dropped but what cannot be seen. Keys fit
into the text index of every store: no surrogates, no control characters, at most KEY_LIMIT
characters (a longer name gives its beginning and a hash of the whole).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from memory.codec import digest, encode

KEY_LIMIT = 200
"""The longest key, in characters."""

SELF = "user"
"""The subject of what a user says about themselves."""

_ABBREVIATION_DOT = re.compile(r"(?<![^\W\d_])([^\W\d_])\.(?=[^\W\d_](?:\.|\b)|\s|,|$)")
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def key(name: str) -> str:
    """The normal form of a name: NFKC, case-folded, invisible characters out, spaces folded.

    Dots of abbreviations go ('U.S.' → 'us'); typographic apostrophes and hyphens become plain.
    Never empty unless the name is blank. A name too long to index gives its beginning and a hash.
    """
    return _remembered(name) if len(name) <= KEY_LIMIT else _key(name)


def _key(name: str) -> str:
    if name.isascii() and name.isprintable() and "." not in name and len(name) <= KEY_LIMIT:
        return " ".join(name.lower().split())  # what the rest comes to, for most of what is asked
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(_visible(c) for c in _VARIATION_SELECTORS.sub("", folded))
    text = _ABBREVIATION_DOT.sub(r"\1", " ".join(visible.split()))
    text = (text.rstrip(".").rstrip() or text) if text.count(".") < len(text) else text
    text = _SURROGATE.sub(lambda match: f"\ufffd{ord(match.group()):x}", text)
    if len(text) <= KEY_LIMIT:
        return text
    return f"{text[: KEY_LIMIT - 33]}~{digest(encode(text))}"


_remembered = lru_cache(maxsize=16_384)(_key)
"""The same few names come with every question. Long ones would fill the memory."""


def _visible(character: str) -> str:
    plain = _PLAIN.get(character)
    if plain is not None:
        return plain
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    return " " if category == "Cc" else character


_PLAIN = {"’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-", "–": "-", "—": "-"}


def is_blank(name: str) -> bool:
    """Nothing in it that anybody could see."""
    return not key(name)


def same(one: str, other: str) -> bool:
    """Whether two spellings name the same."""
    return key(one) == key(other)


# --- names inside a text -----------------------------------------------------------------------

_LONGEST_NAME = 4
"""Words of the longest name that is looked up."""
_LONGEST_RUN = 6
"""Characters of the longest name in Chinese and Japanese."""
_LONGEST_THAI = 10
"""Characters of the longest name in scripts of South East Asia."""
_MENTIONS = 400
"""The most keys that one text gives."""
_FORMS = 200
"""The most other forms that one text gives."""

_HAN = "\u3005\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_THAI = "\u0e00-\u0edf\u1000-\u109f\u1780-\u17df"
_RUN = re.compile(f"[{_HAN}]+")
_KATAKANA = re.compile("[\u30a1-\u30ff]{2,}")
_THAI_RUN = re.compile(f"[{_THAI}]+")
_WORD = re.compile(r"[^\s,;:!?()\[\]{}\"“”«»。，；：！？、؟،؛…（）《》「」]+")
_SPACED_WORD = re.compile(
    rf"[^\s,;:!?()\[\]{{}}\"“”«»。，；：！？、؟،؛…（）《》「」{_HAN}{_THAI}]+"
)
_ATTACHED = re.compile(r"['’]\w{0,4}$")
"""'Anna's', 'Ayşe'nin': an ending behind an apostrophe."""


def mentions(text: str) -> tuple[str, ...]:
    """Keys of everything in a text that could be somebody's or something's name.

    Every run of up to four words, and in scripts without spaces every short run of characters;
    words also without the endings and particles that a language puts on names. At most 400, in
    the order of the text. Most are names of nothing: look them up. Words such as 'will' and 'may'
    are among them only where they are written as names are.
    """
    return _mentions(text[:_READ])


_READ = 2_000
"""Characters of a text that are read for names."""


@lru_cache(maxsize=256)
def _mentions(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    names = _written_as_names(text)
    for candidate in _candidates(text):
        if len(found) >= _MENTIONS:
            break
        made = key(candidate)
        if len(made) > 1 and (made not in _NO_NAMES or made in names):
            found[made] = None
    return tuple(found)


def _written_as_names(text: str) -> frozenset[str]:
    """The words that begin with a capital, but not the 'Will' of 'Will it rain?'; in a text without
    capitals what stands where names do."""
    if text == text.lower():
        return frozenset(match[1] for match in _WHERE_NAMES_ARE.finditer(text))
    found = set()
    for word in _WORD_AND_NEXT.finditer(text):
        before = text[max(0, word.start() - 3) : word.start()].rstrip()
        is_first = not before or before[-1] in ".!?…"
        if word[1][0].isupper() and not (
            is_first and word[2] and word[2].lower() in _ASKED_WHETHER
        ):
            found.add(word[1].lower())
    return frozenset(found)


_WHERE_NAMES_ARE = re.compile(
    r"(?<!\w)(?:does|did|is|was|about|with|know|ask|tell|call|meet|met|and|named|called)\s+(\w+)"
)
_WORD_AND_NEXT = re.compile(r"(?<!\w)([^\W\d_]\w*)(?=(?:\s+(\w+))?)")
_ASKED_WHETHER = frozenset(
    "i you he she it we they the a an my your his her our their this that there these those".split()  # noqa: SIM905
)


@lru_cache(maxsize=8)
def _candidates(text: str) -> tuple[str, ...]:
    return tuple(_every_candidate(text))


def _every_candidate(text: str) -> Iterator[str]:
    for piece in _spans(text):
        yield piece
        yield from filter(None, _bare(piece))
    for run in _RUN.finditer(text):
        yield from _KATAKANA.findall(run.group())
        yield from _grams(run.group(), _LONGEST_RUN)
    for run in _THAI_RUN.finditer(text):
        yield from _grams(run.group(), _LONGEST_THAI)


def _spans(text: str) -> Iterator[str]:
    """Every run of up to four words; words also cut where a script without spaces begins."""
    whole = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    cut = [(match.start(), match.end()) for match in _SPACED_WORD.finditer(text)]
    for words in (whole, cut) if cut != whole else (whole,):
        for first in range(len(words)):
            for last in range(first, min(first + _LONGEST_NAME, len(words))):
                start, end = words[first][0], words[last][1]
                if last > first and words[last][0] - words[last - 1][1] > 1:
                    break
                yield text[start:end]


def _grams(run: str, longest: int) -> Iterator[str]:
    for first in range(len(run)):
        for length in range(2, min(longest, len(run) - first) + 1):
            yield run[first : first + length]


# --- what a language puts on names ---------------------------------------------------------------

_EDGES = re.compile(r"^[^\w\u0300-\u036f\u0900-\u1cff]+|[^\w'’\u0300-\u036f\u0900-\u1cff]+$")
_BARE = re.compile(r"[a-z0-9]+(?:[ -]+[a-z0-9]+)*", re.IGNORECASE | re.ASCII)
"""Most words that are asked: nothing is put on them."""
_HANGUL = re.compile("[\uac00-\ud7a3]{2,}$")
_KOREAN = tuple(
    sorted(
        "은 는 이 가 을 를 의 에 에게 에게서 한테 한테서 께 께서 에서 와 과 이랑 랑 하고 도 만 로 "  # noqa: SIM905
        "으로 부터 까지 처럼 보다 이라고 라고 이는 야 아 씨 님 이네".split(),
        key=lambda ending: (-len(ending), ending),
    )
)
_SEMITIC = re.compile("[\u0590-\u05ff\u0620-\u06ff]{4,}$")
_PROCLITIC = re.compile(
    "(?:[\u0648\u0641]?(?:[\u0628\u0644\u0643]|\u0627\u0644)|[\u0648\u0641]|[והבלמשכ])"
)
"""'and', 'to', 'of' and 'the', which Arabic and Hebrew write together with the name."""


def _bare(word: str) -> Iterator[str]:
    """A name without what its language puts before or behind it, in every way that is possible."""
    if _BARE.fullmatch(word):
        return
    if (inner := _EDGES.sub("", word)) != word:  # signs such as emoji beside it
        if inner:
            yield inner
            yield from _bare(inner)
    elif (bare := _ATTACHED.sub("", word)) != word:
        yield bare
    elif _HANGUL.search(word):
        yield from _without_particles(word, 3)
    elif _SEMITIC.match(word):
        before = _PROCLITIC.match(word)
        if before is not None and len(word) - before.end() >= 3:
            yield word[before.end() :]


def _without_particles(word: str, layers: int) -> Iterator[str]:
    if not layers:
        return
    for ending in _KOREAN:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            bare = word[: -len(ending)]
            yield bare
            yield from _without_particles(bare, layers - 1)


# --- other forms of a name -----------------------------------------------------------------------

_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")
_LETTERS = str.maketrans("łøđıæœأإآىةё", "lodiaoاااىهе".replace("ى", "ي"))
_CYRILLIC = re.compile("[\u0400-\u04ff]{3,}$")
_RUSSIAN_VOWELS = "аеиоуыэюяйьъ"
_GENERIC = frozenset(
    "new san santa saint st los las la le el the north south east west great old little big mount "  # noqa: SIM905
    "lake port mr mrs ms dr prof sir lady king queen city park street inc ltd company group".split()
)
"""Words of names that many names have, and that name nobody by themselves."""
_HAN_NAME = re.compile(
    "(?:欧阳|司马|上官|诸葛|慕容|皇甫|令狐|司徒|[王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾"
    "肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎"
    "贺顾毛郝龚邵万钱严覃武戴莫孔向汤])([\u4e00-\u9fff]{2})$"
)
_KOREAN_NAME = re.compile(
    "[김이박최정강조윤장임한오서신권황안송류유전홍고문양손배백허남심노하곽성차주우구민]([가-힣]{2})$"
)


def forms(name: str) -> tuple[str, ...]:
    """Under which other forms somebody may ask for this name, beside its key.

    Without accents and vowel marks; of a full name also the first and the last word, of a Chinese
    or Korean one the given name; of a Russian name what its cases share. Nothing for what is too
    long to be a name. They find an entity, and never make two of them one.
    """
    return _forms(name) if len(name) <= _LONGEST else ()


_LONGEST = 60
"""Characters of the longest name that has other forms."""


@lru_cache(maxsize=16_384)
def _forms(name: str) -> tuple[str, ...]:
    own = key(name)
    whole = _unmarked(own)
    words = whole.split()
    if not words or len(words) > _LONGEST_NAME:
        return ()
    made = [whole, *_stems(whole)]
    if len(words) > 1 and _is_proper(name):
        for word in (words[0], words[-1]):
            if len(word) > 1 and word not in _GENERIC:
                made += [word, *_stems(word)]
    made += [match[1] for match in (_HAN_NAME.match(own), _KOREAN_NAME.match(own)) if match]
    return tuple(dict.fromkeys(form for form in made if form and form != own))


def asked_forms(text: str) -> tuple[str, ...]:
    """The forms by which a text may ask for names that it does not spell out; at most 200.

    In scripts with capitals only of capitalised words, unless the text has no capital at all.
    """
    return _asked_forms(text[:_READ])


@lru_cache(maxsize=256)
def _asked_forms(text: str) -> tuple[str, ...]:
    casual = text == text.lower()
    found: dict[str, None] = {}
    for candidate in _candidates(text):
        if len(found) >= _FORMS:
            break
        first = candidate[0]
        has_case = first.lower() != first.upper()
        if has_case and not (casual or first.isupper()):
            continue
        whole = _unmarked(key(candidate))
        if len(whole) < 2 or whole.partition(" ")[0] in _NO_NAMES:
            continue
        found[whole] = None
        found.update(dict.fromkeys(_stems(whole)))
        if has_case and len(whole) > 4 and whole.endswith("s"):  # German: 'Annas Mann'
            found[whole[:-1]] = None
    return tuple(found)


def _unmarked(text: str) -> str:
    if text.isascii():
        return text
    bare = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text)))
    return bare.translate(_LETTERS)


def _stems(word: str) -> Iterator[str]:
    """What the cases of a Russian name share; the mark keeps it apart from what is spelled so."""
    if _CYRILLIC.match(word):
        bare = word.rstrip(_RUSSIAN_VOWELS)
        if bare.endswith(("ом", "ем")) and len(bare) > 4:
            bare = bare[:-2].rstrip(_RUSSIAN_VOWELS)
        yield f"{bare if len(bare) > 1 else word}~"


def _is_proper(name: str) -> bool:
    """Whether every word begins as names do: with a capital, or in a script without any."""
    return all(word[0].isupper() or word[0].lower() == word[0].upper() for word in name.split())


_NO_NAMES = frozenset(
    # Words that begin sentences, and everyday words of texts without capitals.
    "i i'm im a an the and but or so if then my your his her their our its he she it we they you "  # noqa: SIM905
    "this that these those is am are was were be been being has have had do does did not no yes ok "
    "okay hi hello hey well also just who whom whose which when where what why how can could will "
    "would should shall may might must let please tell me us him them about of in on at for to "
    "from with as by into than too very still now today tomorrow yesterday tonight there here "
    "live lives living work works working like likes love loves know knows want wants go goes get "
    "eat eats say says said think see make take any some all one two more most good best old "
    "und der die das ist wo wer was wie wann ein eine le les un une est où qui que quoi comment "
    "quand dónde quién qué cómo cuándo donde quien como cuando es el где кто что как когда почему "
    "это живет живёт работает любит أين من ماذا متى كيف هل ما".split()
)
