"""Text: made safe for indexes, cut at sentence ends, and broken into terms for lexical search.

What was said is stored as it came; these functions only make what is *derived* from it. A term is
what two texts must share to match word for word:

- words are case-folded, stripped of accents and lightly stemmed (English), stop words left out;
- numbers, identifiers, paths and file names are kept whole and in parts, so that `PLAN.md`,
  `plan` and `7300418826` all find what they are written in;
- scripts without spaces between words (Chinese, Japanese, Thai …) give every character and every
  pair of neighbours, which needs no dictionary;
- emoji count in a text without words.

Change what `terms` gives only together with LEXICON: stored postings carry that number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

LEXICON = 3
"""The version of the rules in `terms`."""

_UNSTORABLE = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """The text as embedders and indexes can take it: surrogates → U+FFFD, NUL → a space."""
    return _UNSTORABLE.sub("\ufffd", text).replace("\x00", " ")


def is_blank(text: str) -> bool:
    """Nothing to see in it: only white space, control and format characters (such as U+200B)."""
    return not text.strip() or all(
        c.isspace() or unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text
    )


# --- sentences ---------------------------------------------------------------------------------

_SENTENCE_END = re.compile(
    r"""(?: (?<![.!?…]) [.!?…]++ ["'”’»)\]]*+ (?=\s) | [。！？；｡]+ [”’」』）】"']* | \n )\s*""",
    re.VERBOSE,
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:[^\W\d_]|mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|no|nr|fig|approx|e\.g|i\.e|bzw|"
    r"z\.b|ca|inc|ltd|co|dept)\.\s*$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, with the white space behind them: joined, they are the text.

    Ends are `.!?…` before white space, the full-width marks, and new lines; not the full stops of
    common abbreviations, initials and numbers.
    """
    found, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        if "\n" not in end.group() and _ABBREVIATION.search(
            text, max(start, end.end() - 12), end.end()
        ):
            continue
        found.append(text[start : end.end()])
        start = end.end()
    if start < len(text):
        found.append(text[start:])
    return found


def pieces(text: str, limit_chars: int) -> list[str]:
    """The text in pieces of at most `limit_chars` characters: joined, they are the text.

    Cut at sentence ends; a sentence that alone is too long is cut at white space, and only where
    there is none, in the middle (never between a character and the marks that belong to it).
    """
    if limit_chars < 1:
        raise ValueError("a piece has at least one character")
    if len(text) <= limit_chars:
        return [text] if text else []
    made: list[str] = []
    held: list[str] = []
    length = 0
    for part in _short_enough(sentences(text), limit_chars):
        if held and length + len(part) > limit_chars:
            made.append("".join(held))
            held, length = [], 0
        held.append(part)
        length += len(part)
    if held:
        made.append("".join(held))
    return made


def _short_enough(parts: list[str], limit: int) -> Iterator[str]:
    for part in parts:
        start = 0
        while len(part) - start > limit:
            cut = _cut(part, start, limit)
            yield part[start:cut]
            start = cut
        yield part[start:]


def _cut(text: str, start: int, limit: int) -> int:
    """Where to end a piece that begins at `start`: after white space, else between characters."""
    end = start + limit
    for at in range(end, start + limit // 2, -1):
        if text[at - 1].isspace():
            return at
    for at in range(end, max(start + 1, end - 16), -1):
        if not _continues(text[at]) and text[at - 1] != "\u200d":
            return at
    return end


def _continues(character: str) -> bool:
    """Whether it belongs to the character before it."""
    return character in "\u200d\ufe0e\ufe0f" or unicodedata.category(character).startswith("M")


# --- terms -------------------------------------------------------------------------------------

_ENGLISH_STOP = frozenset(
    """a about after all also am an and any are as at be because been before being both but by can
    cannot could did do does doing done for from had has have having he her hers him his how i if in
    into is it its itself just me might more most must my myself no nor not of off on once only or
    other our ours out over own same she should so some such than that the their theirs them then
    there these they this those through to too under until up us very was we were what when where
    which while who whom why will with would you your yours yourself dont doesnt didnt isnt arent
    wasnt werent wont wouldnt cant couldnt shouldnt havent hasnt hadnt im ive id ill youre youve
    youll youd hes shes theyre theyve theyll weve lets thats whats wheres whos theres s t ll ve re d
    m""".split()  # noqa: SIM905
)
_CHINESE_STOP = frozenset("的了是我你他她它们在有和就都也很吗呢吧啊呀么这那着过与及或之其")

_UNSPACED = (
    "\u0e00-\u0edf\u1000-\u109f\u1780-\u17df"  # Thai, Lao; Burmese; Khmer
    "\u3005\u3007\u3041-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\uac00-\ud7a3"  # Hangul: spaced, but with endings attached
)
_MARKS = "".join(
    # Vowel signs and the like are no word characters to `re`, and would cut Hindi words in two.
    re.escape(chr(code))
    for code in range(0x0900, 0x1D00)
    if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
_TOKEN = re.compile(
    rf"(?P<unspaced>(?:[{_UNSPACED}])+)"
    rf"|(?P<word>{_LETTER}+(?:[_.,:/@+#&'\-]{_LETTER}+)*(?:\+\+|\#)?)"
)
_SEGMENTS = re.compile(r"[/@:]")
_ATOMS = re.compile(r"[_.,+#&\-]+")
_RUNS = re.compile(r"\d+|[^\W\d]+")
_HUMP = re.compile(r"(?<=[a-zA-Z])(?=[A-Z][a-z])")
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_APOSTROPHES = re.compile("[\u2019\u02bc\uff07]")


def terms(text: str) -> list[str]:
    """The lexical terms of a text, in order, repeated as often as they are said.

    The same rules serve documents and queries. Never empty strings; no surrogates, no NUL.
    """
    return list(_remembered(text) if len(text) <= _SHORT else _terms(text))


def only_asking(query: str) -> set[str]:
    """The terms of a query's words that only ask, which an answer need not say."""
    return {term for word in _ASKING.findall(query) for term in terms(word)}


_ASKING = re.compile(
    "为什么|怎么样?|什么时候|什么|怎样|如何|哪里|哪儿|哪[一二三两几]?个?|哪些|多少|几|有没有|是不是|"
    r"能不能|会不会|请问|\b(?:how (?:many|much|long|often)|(?:what|which) (?:kind|type|sort)|many|"
    r"much|kind|type|sort|total|different|ever|currently)\b",
    re.IGNORECASE,
)
_SHORT = 500
"""Characters of a text whose terms are remembered: facts and questions come again and again."""


def _terms(text: str) -> list[str]:
    found: list[str] = []
    for match in _TOKEN.finditer(_folded(plain(text))):
        run = match["unspaced"]
        if run is not None:
            found.extend(_grams(run))
        else:
            found.extend(_word_terms(match["word"]))
    return found or [sign for sign in text if unicodedata.category(sign) == "So"]


_remembered = lru_cache(maxsize=4_096)(_terms)


def _folded(text: str) -> str:
    """Compatibility forms, accents and invisible characters folded away; case still as it was."""
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", _APOSTROPHES.sub("'", text))
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _grams(run: str) -> Iterator[str]:
    """Every character and every pair of neighbours, except what is made of function words only."""
    previous = ""
    for character in run:
        common = character in _CHINESE_STOP
        if not common and character.isalnum():
            yield character
        if previous and not (common and previous in _CHINESE_STOP):
            yield previous + character
        previous = character


def _word_terms(word: str) -> Iterator[str]:
    if word.isalpha() and not _HUMP.search(word):
        yield from _plain_word(word.casefold())
        return
    whole = word.casefold()
    segments = _SEGMENTS.split(word)
    if len(segments) > 1:
        yield whole
    for segment in segments:
        yield from _segment_terms(segment)


def _segment_terms(segment: str) -> Iterator[str]:
    """A name such as `schema_v2.py`, `don't`, `1,000` or `getUserName`: whole, then its parts."""
    folded = segment.casefold()
    if "'" in folded:
        owner, _, ending = folded.partition("'")
        joined = folded.replace("'", "")
        if ending in ("s", ""):
            yield from _plain_word(owner)
            return
        if joined in _ENGLISH_STOP:
            return
        yield joined
        for atom in folded.split("'"):
            yield from _plain_word(atom)
        return
    atoms = [atom for atom in _ATOMS.split(segment) if atom]
    if len(atoms) > 1 or folded.endswith(("+", "#")):
        yield folded
        if all(atom.isdecimal() for atom in atoms) and "," in segment:
            yield folded.replace(",", "")
            return
    for atom in atoms:
        yield from _atom_terms(atom)


def _atom_terms(atom: str) -> Iterator[str]:
    folded = atom.casefold()
    runs = _RUNS.findall(folded) if folded.isascii() else [folded]
    humps = _HUMP.split(atom)
    if len(runs) > 1 or len(humps) > 1:
        yield folded
        for part in runs if len(runs) > 1 else [hump.casefold() for hump in humps]:
            yield from _plain_word(part)
    else:
        yield from _plain_word(folded)


def _plain_word(word: str) -> Iterator[str]:
    if word and word not in _ENGLISH_STOP:
        yield _stem(word)


_IRREGULAR = {
    form: base
    for base, forms in {
        "go": "went gone goes", "eat": "ate eaten", "buy": "bought", "take": "took taken",
        "give": "gave given", "come": "came", "see": "saw seen", "say": "said", "tell": "told",
        "think": "thought", "make": "made", "get": "got gotten", "find": "found", "meet": "met",
        "use": "used using", "leave": "left", "feel": "felt", "write": "wrote written",
        "speak": "spoke spoken", "run": "ran", "begin": "began begun", "drive": "drove driven",
        "fly": "flew flown",
        "teach": "taught", "bring": "brought", "sell": "sold", "pay": "paid", "swim": "swam swum",
        "child": "children", "person": "people", "man": "men", "woman": "women", "wife": "wives",
        "mouse": "mice", "foot": "feet", "tooth": "teeth",
    }.items()
    for form in forms.split()
}  # fmt: skip


def _stem(word: str) -> str:
    """A light stem: plurals, -ed, -ing and a silent e. Anything but plain English letters stays."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    word = _IRREGULAR.get(word, word)
    if word.endswith("s"):
        word = _singular(word)
    for ending in ("ing", "ed"):
        if word.endswith(ending):
            word = _without(word, ending)
            break
    if len(word) > 3 and word.endswith("e") and word[-2] not in "aeiou":
        return word if _SHORT_STEM.fullmatch(word[:-1]) else word[:-1]
    return word


_SHORT_STEM = re.compile("[^aeiouy]+[aeiouy][^aeiouwxy]")
"""A syllable that an e behind it makes another word: `win` and `wine`, `plan` and `plane`."""


def _singular(word: str) -> str:
    if len(word) < 4 or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zes", "oes")):
        return word[:-2]
    return word[:-1]


def _without(word: str, ending: str) -> str:
    """`running` → run, `making` → make, `tried` → try. A stem has three letters or more: `ring`
    stays."""
    stem = word[: -len(ending)]
    if len(stem) < 3 or not any(c in "aeiouy" for c in stem):
        return word
    if ending == "ed" and stem.endswith("i"):
        return stem[:-1] + "y"
    if stem[-1] == stem[-2] and stem[-1] not in "aeiouslz":
        return stem[:-1]
    return f"{stem}e" if _SHORT_STEM.fullmatch(stem) else stem
