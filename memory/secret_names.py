"""Secrets that show by the name before them: "password is …", `API_KEY=…`, 密码是…, пароль: ….

A name is looked for first, as a plain search for its stem; only where one stands is it asked what
is said of it: how it is joined to a value, and whether that value is a secret or goes on talking
("my password is too short"). The looser the joint, the more a value must look like one:

    assigned  `=`, `:`, `->`, a quoted key   any value that is no placeholder, type or sentence
    said      is, to, 是, est, это, …        digits or signs inside; a plain word at a clause's end
    beside    nothing but a space            letters and digits both

Passwords may be words; keys and tokens must look random; PINs are digits. Nobody's `token_count`,
`primary key` or `monkey` is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from math import log2
from typing import NamedTuple

from memory.secret_shapes import Span, is_placeholder

_MOST, _ASKING = 50_000, 10
"""Looks at one text at most, and what it takes to ask a name what it is given. People, files and
logs have fewer names; where there are more, all that one may be given is masked, so that nobody
waits."""


def find(text: str, lowered: str) -> Iterable[Span]:
    """The named secrets in a folded text; `lowered` is its lower case, of the same length."""
    said = _Said(text, lowered)
    found: list[Span] = []
    looks = 0
    for stem in _stems_in(lowered):
        at = lowered.find(stem.text)
        while at >= 0:
            after = at + len(stem.text)
            tail = stem.tail.match(lowered, after)
            span = None
            looks += 1
            if looks > _MOST:
                return _whatever_is_given(lowered)
            if (tail or stem.sort is _PASSWORD) and not _is_in_mask(lowered, at):
                looks += _ASKING
                name = _named(said, at, stem)
                span = name and _valued(said, name, after, stem, tail)
            if span:
                found.append(span)
            at = lowered.find(stem.text, max(after, span.end if span else 0))
    return found


def in_field(name: str, value: str) -> Span | None:
    """The secret that is the value of a field of this name, or in it; None where there is none."""
    field = _field(name[:_JUDGED])
    if field is None:
        return None
    if field.sort in _LINES:
        return _after(f"{name[:_JUDGED]}: ", value)
    if _holds(field, _Value(value[:_JUDGED], "", _Joint.TIGHT)):
        return Span(0, len(value), field.kind)
    return None


def beside(name: str, value: str) -> Span | None:
    """The secret in a value that stands behind a name, with nothing said of how they belong."""
    field = _field(name[:_JUDGED])
    if field is None:
        return None
    return _after(f"{name[:_JUDGED]}{':' * (field.sort in _LINES)} ", value)


def _after(start: str, value: str) -> Span | None:
    """The first secret in a value, as it is read after such a start."""
    text = folded(start + value)
    spans = (span for span in find(text, lower(text)) if span.start >= len(start))
    found = next(spans, None)
    if found is None:
        return None
    return found._replace(start=found.start - len(start), end=found.end - len(start))


@lru_cache(maxsize=4_096)
def _field(name: str) -> _Name | None:
    """What a field of this name holds, if it is a secret."""
    text = folded(f"{name}: ")
    said = _Said(text, lower(text))
    for stem in _stems_in(said.lowered):
        at = said.lowered.rfind(stem.text)
        if at >= 0 and (found := _named(said, at, stem)):
            tail = stem.tail.match(said.lowered, at + len(stem.text))
            if tail and tail.end() == len(text):
                return found
    return None


@dataclass
class _Said:
    """A text that is looked at, and where the run of characters last looked at goes on to."""

    text: str
    lowered: str
    start: int = 0
    end: int = 0

    def run(self, at: int) -> int:
        """Where what stands at `at` ends, as a word or a value would; `at` where nothing does."""
        if not self.start <= at < self.end:
            match = _RUN.match(self.text, at) or _UNSPACED_RUN.match(self.text, at)
            self.start, self.end = at, match.end() if match else at
        return self.end


# --- folding -------------------------------------------------------------------------------------

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    ord(colon): ":" for colon in "﹕∶꞉ː：\u05c3"
}

_WIDE = re.compile("[\uff01-\uff5e﹕∶꞉ː\u05c3]")


def folded(text: str) -> str:
    """The text with full-width letters, digits and signs as plain ones; not a character longer."""
    return text.translate(_FULL_WIDTH) if _WIDE.search(text) else text


def lower(text: str) -> str:
    """Its lower case, of the same length."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := c.lower()) == 1 else c for c in text)


# --- names ---------------------------------------------------------------------------------------


class _Sort(Enum):
    PASSWORD = auto()
    PASS = auto()
    """A word of many meanings: what it is given must look like a password, or be assigned."""
    KEY = auto()
    BARE = auto()
    """A key, token or secret of which is not said what it opens."""
    PIN = auto()
    CHECK = auto()
    """The digits on the back of a card."""
    PHRASE = auto()
    HEADER = auto()
    COOKIE = auto()


_LINES = (_Sort.HEADER, _Sort.COOKIE)
"""Whose value is a line of its own form."""


class _Name(NamedTuple):
    sort: _Sort
    kind: str
    tight: bool
    """Written as programs write names: DB_PASSWORD, --password, dbPassword."""


@dataclass(frozen=True)
class _Stem:
    text: str
    sort: _Sort
    kind: str
    tail: re.Pattern[str]
    whole: bool = False
    """Whether it must not be the end of a longer word, as `pin` is of `spin`."""


_INVISIBLE = "\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_GAP = rf"(?:[ \t\u00a0\u3000{_INVISIBLE}]|\r?\n(?![\r\n]))"
_CLOSED = r"(?:\\?[\"'`]|[*_\])}}”’»」』]){0,4}+"
_ABOUT = (
    r"(?:(?:[ ]|(?<=[\u3041-\u9fff]))\([^()\n]{0,40}\)"
    r"|(?:[ ](?:for|to|of|on|at|in|für|de|du|del|da|para|pour|per|voor|от|для|к))"
    r"(?:[ ][^\s:=,.;!?]{1,24}+){1,5}?|[ ](?:שלי|שלך|שלנו)|(?:[ ][\u0621-\u064a]{2,12}+){1,3}?"
    r"|[ ](?:wi-?fi|wlan|vpn|root|admin|api|here|below|instead|again)"
    r"|[ ]you (?:asked|wanted|need)(?: for)?)?"
)
_SIGN = rf"{_GAP}{{0,8}}+(?::=|=>|->|→|==?|::?)(?!/)"
_ADVERB = r"(?: (?:now|still|currently|just|simply|called|set to|changed to|as follows|jetzt))?"
_SAYING = (
    "is|was|are|will be|should be|(?:has been |was |is )?(?:changed|set|reset|updated) to|became"
    "|to|as|be|ist|lautet|war|wäre|auf|es|era|son|é|è|est|était|sera|är|er|on|jest|brzmi|je|este|van"
    "|είναι|это|такой|теперь|был|була|це|está|adalah|ialah|là|هي|هو|היא|הוא|है|था|است|คือ|হল"
)
_CHINESE_SAYING = (
    "就是|都是|係|换成了?|換成了?|改成了?|改为了?|設為|设为|设成|设置为|设置成|用的是|是|为|為|叫"
)
_JAPANESE_SAYING = "は|が|を|って"
_KOREAN_SAYING = "는요?|은요?|가|이|를|을"


def _tail(grown: str, saying: str, beside: str = "[ ]{1,4}+") -> re.Pattern[str]:
    """What stands between a name and its value; `grown` is what its word may go on with."""
    return re.compile(
        rf"{grown}(?P<closed>{_CLOSED})(?:{_ABOUT}(?:"
        rf"(?P<sign>{_SIGN})|(?P<tag>>)|(?P<cell>[ ]*\|)|(?P<said>{saying})"
        rf"|(?P<dash>[ ]+[-–—]))(?:[ ]?:)?(?:[*_]{{2}})?(?:{_GAP}{{0,8}}+)"
        rf"(?P<blank>(?:\r?\n){{2}})?|(?P<beside>{beside}))"
    )


_GROWN = (
    r"s?(?:[_-]?(?:value|val|prod|production|dev|test|staging|live|old|new|b64|base64|hex|\d{1,2}))?"
    r"(?![a-z0-9_]|-[a-z])"
)
_ENGLISH = _tail(
    _GROWN,
    rf" +(?:{_SAYING}){_ADVERB}(?= |:|$)|[ ]*(?:{_CHINESE_SAYING}|{_JAPANESE_SAYING})",
)
_SPACED = _tail(r"[^\W\d_]{0,5}?(?![^\W\d_])", rf" +(?:{_SAYING}){_ADVERB}(?= |:|$)")
_RIGHT_BESIDE = "[ ]{0,4}+(?=[!-~])"
_GOING_ON = r"(?=[^\u2e80-\uffff(]|\([^()\n]{0,40}\)|[」』就係换換改設设用是都为為叫はがをっ])"
"""What can follow a name in a script without spaces, so that most are no names at once."""
_HAN = _tail(_GOING_ON, rf"[ ]*(?:{_CHINESE_SAYING})", _RIGHT_BESIDE)
_KANA = _tail(_GOING_ON, rf"[ ]*(?:{_JAPANESE_SAYING})", _RIGHT_BESIDE)
_HANGUL = _tail("", rf"(?:{_KOREAN_SAYING})(?= |:)")
_THAI = _tail("", r"[ ]*(?:คือ|เป็น)")


def _stems(
    sort: _Sort, kind: str, tail: re.Pattern[str], *texts: str, whole: bool = False
) -> list[_Stem]:
    return [_Stem(text, sort, kind, tail, whole) for text in texts]


_PASSWORD, _BARE, _PIN = _Sort.PASSWORD, _Sort.BARE, _Sort.PIN

_STEMS = (
    *_stems(_PASSWORD, "password", _ENGLISH, "password", "passwd", "passcode", "passwort"),
    *_stems(_PASSWORD, "password", _ENGLISH, "pwd", "pw", "pswd", "pass word", whole=True),
    *_stems(_Sort.PASS, "password", _ENGLISH, "pass", whole=True),
    *_stems(_Sort.PHRASE, "passphrase", _ENGLISH, "passphrase", "pass phrase"),
    *_stems(_Sort.PHRASE, "passphrase", _ENGLISH, "recovery phrase", "seed phrase", "mnemonic"),
    *_stems(_Sort.PHRASE, "passphrase", _HAN, "助记词", "助記詞"),
    *_stems(_BARE, "api key", _ENGLISH, "key", "apikey"),
    *_stems(_BARE, "token", _ENGLISH, "token", "jwt"),
    *_stems(_BARE, "secret", _ENGLISH, "secret", "credential", "credentials"),
    *_stems(_PIN, "pin", _ENGLISH, "pin", "pin code", "pin number", "pincode", whole=True),
    *_stems(_PIN, "pin", _HAN, "pin码", "pin碼", "取款密码", "支付密码"),
    *_stems(_PIN, "pin", _KANA, "暗証番号"),
    *_stems(_PIN, "pin", _SPACED, "пин-код", "пин код", "пинкод"),
    *_stems(_Sort.CHECK, "card code", _ENGLISH, "cvv", "cvc", "cvv2", "cvc2", whole=True),
    *_stems(_Sort.CHECK, "card code", _ENGLISH, "security code"),
    *_stems(_Sort.CHECK, "card code", _HAN, "安全码", "校验码"),
    *_stems(_Sort.CHECK, "card code", _KANA, "セキュリティコード"),
    *_stems(_Sort.KEY, "recovery code", _ENGLISH, "backup code", "recovery code"),
    *_stems(_Sort.KEY, "recovery code", _HAN, "备份码", "恢复码", "恢复代码"),
    *_stems(_Sort.HEADER, "token", _ENGLISH, "authorization", "authorisation"),
    *_stems(_Sort.COOKIE, "cookie", _ENGLISH, "cookie"),
    # Other languages' words for password, with what may follow the stem.
    *_stems(_PASSWORD, "password", _SPACED, "contraseña", "contrasena", "senha"),
    *_stems(_Sort.PASS, "password", _SPACED, "clave", "parola"),
    *_stems(_PASSWORD, "password", _SPACED, "palavra-passe", "mot de passe", "mots de passe"),
    *_stems(_PASSWORD, "password", _ENGLISH, "mdp", whole=True),
    *_stems(_PASSWORD, "password", _SPACED, "kennwort", "wachtwoord", "hasło", "hasla"),
    *_stems(_PASSWORD, "password", _SPACED, "şifre", "lösenord", "adgangskode", "passord"),
    *_stems(_PASSWORD, "password", _SPACED, "salasana", "jelszó", "jelszav", "heslo", "lozinka"),
    *_stems(_PASSWORD, "password", _SPACED, "kata sandi", "mật khẩu", "κωδικός", "κωδικό"),
    *_stems(_PASSWORD, "password", _SPACED, "пароль", "пароля", "паролем", "парола", "лозинка"),
    *_stems(_PASSWORD, "password", _SPACED, "كلمة المرور", "كلمة السر", "الرقم السري", "رمز عبور"),
    *_stems(_PASSWORD, "password", _SPACED, "كلمة مرور", "كلمة سر", "باسورد", "رمز الدخول"),
    *_stems(_PASSWORD, "password", _SPACED, "گذرواژه", "סיסמה", "סיסמא", "הסיסמה", "הסיסמא"),
    *_stems(_PASSWORD, "password", _SPACED, "पासवर्ड", "পাসওয়ার্ড", "கடவுச்சொல்"),
    *_stems(_PASSWORD, "password", _HAN, "密码", "密碼", "口令"),
    *_stems(_PASSWORD, "password", _KANA, "パスワード", "パスコード"),
    *_stems(_PASSWORD, "password", _HANGUL, "비밀번호", "비번", "암호", "패스워드"),
    *_stems(_PASSWORD, "password", _THAI, "รหัสผ่าน"),
    # … and for keys and tokens.
    *_stems(_BARE, "api key", _HAN, "密钥", "秘钥", "密鑰", "金鑰"),
    *_stems(_BARE, "token", _HAN, "令牌", "权杖"),
    *_stems(_BARE, "api key", _KANA, "apiキー", "シークレットキー", "アクセスキー"),
    *_stems(_BARE, "token", _KANA, "トークン"),
    *_stems(_BARE, "api key", _HANGUL, "api 키", "api키", "비밀키", "액세스 키"),
    *_stems(_BARE, "token", _HANGUL, "토큰"),
    *_stems(_BARE, "api key", _SPACED, "ключ", "schlüssel", "clé", "clave", "chave", "chiave"),
    *_stems(_BARE, "api key", _SPACED, "مفتاح"),
    *_stems(_BARE, "token", _SPACED, "токен", "jeton"),
)

_ASCII_STEMS = tuple(stem for stem in _STEMS if stem.text.isascii())


def _stems_in(lowered: str) -> Iterable[_Stem]:
    """The stems that can be in a text."""
    if lowered.isascii():
        return _ASCII_STEMS
    there = set(lowered)
    return [stem for stem in _STEMS if stem.text[0] in there and stem.text[-1] in there]


_OPENS = (
    "api|app|application|access|secret|private|auth|authentication|authorization|client|bearer"
    "|session|refresh|service|deploy|bot|consumer|webhook|signing|signature|encryption|encrypt"
    "|master|admin|root|shared|account|storage|jwt|oauth|oauth2|security|personal|license|licence"
    "|openai|anthropic|aws|azure|google|gemini|stripe|github|gitlab|slack|telegram|discord|hmac"
    "|wlan|wifi|wi-fi|wpa|wpa2|network|recovery|csrf|xsrf|id|user|login|subscription|ssh|gpg|pgp|ssl|tls|accesskey|host|install|push"
    "|clé|clave|chave|chiave"
)
_OPENED = re.compile(rf"(?:^|[^a-z])(?:{_OPENS})[\"'\s_.\-]{{0,2}}$")
_OPENED_CLOSE = re.compile(r"(?:api|access|secret|auth|private|client)$")
_OPENS_AFTER = re.compile(r"[\s-](?:(?:de|d'|d’)[\s-]?)?(?:l'|l’)?(?:api|secr|acces|доступа)")
_API_BEFORE = re.compile(r"(?:api|访问|私|access|секретн\w*|приватн\w*)[\s-]?$")


def _is_in_mask(lowered: str, at: int) -> bool:
    """Whether what stands there is the kind of secret that a mask names."""
    begin = lowered.rfind("[redacted: ", max(0, at - 64), at)
    return begin >= 0 and lowered.find("]", begin, at) < 0


def _named(said: _Said, at: int, stem: _Stem) -> _Name | None:
    """What the name that ends in this stem names; None where it is another word."""
    text, lowered = said.text, said.lowered
    before = lowered[max(0, at - 24) : at]
    glued = bool(before) and before[-1].isascii() and before[-1].isalpha()
    hump = glued and text[at].isupper() and text[at - 1].islower()
    tight = hump or before.endswith(("_", "--", "."))
    sort = stem.sort
    if sort is not _BARE:
        if stem.whole and glued and not hump and not _escaped(text, at):
            return None
        return _Name(sort, stem.kind, tight)
    opened = _OPENED.search(before) or _API_BEFORE.search(before)
    if not opened and glued and not hump:
        opened = _OPENED_CLOSE.search(before)
        if not opened and not _escaped(text, at):
            return None
    if opened or stem.text in ("apikey", "api 키", "api키", "apiキー"):
        return _Name(_Sort.KEY, _kind(stem, before), tight)
    if _OPENS_AFTER.match(lowered, at + len(stem.text)):
        return _Name(_Sort.KEY, stem.kind, tight)
    return _Name(sort, "secret" if stem.text == "key" else stem.kind, tight)


def _escaped(text: str, at: int) -> bool:
    """Whether the letter before is the end of an escape, as in `\\npassword`."""
    return at >= 2 and text[at - 2] == "\\" and text[at - 1] in "nrt"


_SECRET_BEFORE = re.compile(r"(?:secret|private|encrypt\w*|signing)[\W_]?(?:access[\W_]?)?$")


def _kind(stem: _Stem, before: str) -> str:
    if stem.text == "key" and _SECRET_BEFORE.search(before):
        return "private key" if "private" in before else "secret"
    return stem.kind


# --- values --------------------------------------------------------------------------------------


class _Joint(Enum):
    TIGHT = auto()
    """Assigned as programs assign, so that nothing but a value can follow."""
    ASSIGNED = auto()
    SAID = auto()
    BESIDE = auto()


class _Value(NamedTuple):
    text: str
    after: str
    """A few characters of what follows."""
    joint: _Joint
    quoted: bool = False


_QUOTES = {
    '"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」", "『": "』", "„": "“",
}  # fmt: skip
_DRESSED = (
    r"(?:\*\*|__|<(?:code|b|strong)>|\[(?!redacted)|!!\w{1,16}[ ]|[|>][+-]?\r?\n[ \t]*+)?(\\?)"
)
"""What Markdown, HTML and YAML put before a value."""
_OPEN = re.compile(_DRESSED + "([\"'`“‘«「『„])?")
_UNSPACED = (
    "\u0e00-\u0edf\u1000-\u109f\u1780-\u17df\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
)
_MARKS = "、。，；：！？）】》」』”’»…\u060c\u061b\u061f\u0964"
_RUN = re.compile(
    rf"[^\s{_INVISIBLE}{_UNSPACED}{_MARKS}<]"
    rf"(?:[^\s{_INVISIBLE}{_UNSPACED}{_MARKS}<\\]|<(?![a-z/])|\\(?![nrt\"']))*+"
)
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}][{_UNSPACED}!-~]{{2,63}}+")
_APP_PASSWORD = re.compile(r"[a-z]{4}(?: [a-z]{4}){3}(?![\w ])")
"""As Google shows them."""
_TRAILING = ".,;:)]}>\"'`*|\\_"
_NEXT_FIELD = re.compile(r"[,;&|]\s*[\w .\-\"']{1,40}[=:]|[,;]\s*[{}\[\]]")
_LONGEST = 4_096
"""Characters between two quotation marks."""
_JUDGED = 128
"""Characters of a value that are looked at to judge it."""


def _valued(
    said: _Said, name: _Name, after: int, stem: _Stem, tail: re.Match[str] | None
) -> Span | None:
    """The secret that a name, which ends at `after` and goes on with its tail, is given."""
    text, lowered = said.text, said.lowered
    if tail is None:
        return _before(said, name, after, stem)
    if name.sort is _Sort.COOKIE:
        return _cookies(text, tail, name)
    if name.sort is _Sort.HEADER:
        return _header(text, tail, name)
    joint = _joint(text, tail, name, after - len(stem.text))
    at = tail.end()
    if name.sort is _Sort.PHRASE and (words := _phrase(lowered, at, joint, stem)):
        return Span(at, words, name.kind)
    found = _value_at(said, at, joint)
    if found:
        start, end, value = found
        if tail["tag"] and not value.after.startswith("</"):
            return None
        if _holds(name, value):
            return Span(start, end, name.kind)
    return _before(said, name, after, stem) if tail["beside"] is not None else None


def _joint(text: str, tail: re.Match[str], name: _Name, at: int) -> _Joint:
    if tail["blank"]:
        return _Joint.BESIDE
    if tail["beside"] is not None:
        return _Joint.ASSIGNED if text[max(0, at - 2) : at] == "--" else _Joint.BESIDE
    if tail["said"] or tail["dash"]:
        return _Joint.SAID
    if tail["tag"]:
        opened = text.rfind("<", max(0, at - 64), at)
        return _Joint.TIGHT if opened >= 0 and text.find(">", opened, at) < 0 else _Joint.BESIDE
    if tail["cell"]:
        return _Joint.SAID
    quoted_name = any(quote in tail["closed"] for quote in "\"'")
    spaced = text[tail.end() - 1 : tail.end()].isspace()
    if quoted_name or (name.tight and "=" in tail["sign"]) or (not spaced and "=" in tail["sign"]):
        return _Joint.TIGHT
    return _Joint.ASSIGNED


def _value_at(said: _Said, at: int, joint: _Joint) -> tuple[int, int, _Value] | None:
    """Where the value that begins at `at` starts and ends, and what it is."""
    text = said.text
    opening = _OPEN.match(text, at)
    start = opening.end() if opening else at
    if opening and opening[2] and joint is not _Joint.BESIDE:
        closing = opening[1] + _QUOTES[opening[2]]
        end = _closing(text, closing, start)
        if end > start:
            return start, end, _Value(text[start:end][:_JUDGED], "", joint, quoted=True)
    if joint is _Joint.TIGHT and (words := _APP_PASSWORD.match(text, start)):
        return start, words.end(), _Value(words.group(), "", joint, quoted=True)
    end = said.run(start)
    near = min(end, start + _JUDGED)
    if ending := _NEXT_FIELD.search(text, start, near + 48):
        end = max(start + 1, ending.start()) if ending.start() < end else end
    while end > start and text[end - 1] in _TRAILING:
        end -= 1
    if end <= start:
        return None
    return start, end, _Value(text[start : min(end, start + _JUDGED)], text[end : end + 24], joint)


def _closing(text: str, closing: str, start: int) -> int:
    """Where a quotation ends in its line, -1 where it does not. An escaped mark does not end it."""
    end = start
    while (end := text.find(closing, end, start + _LONGEST)) >= 0:
        if len(closing) > 1 or text[end - 1] != "\\" or text[end - 2 : end] == "\\\\":
            return -1 if "\n" in text[start:end] else end
        end += 1
    return -1


_IS, _IS_CHINESE = re.compile(r"\s(?:is|was|as)\s"), re.compile("[是为為当當做]")
_REVERSED = re.compile(
    r"(?P<value>[!-~]{4,128}?)[\"'`”]?\s+(?:is|was|as)\s+(?:(?:my|the|our|your|his|her|a)\s+)?"
    r"(?:[a-z\-]+\s+){0,2}$"
)
_REVERSED_CHINESE = re.compile(
    r"(?P<value>[!-~]{4,128}?)[”」』]?(?:就?是|作为|作為|当作?|做)(?:我|你|他|她|我们|他们)?的?"
    r"[\u4e00-\u9fffa-z\-]{0,6}$"
)


def _before(said: _Said, name: _Name, after: int, stem: _Stem) -> Span | None:
    """The value in "hunter2 is my password": only one that cannot be a word."""
    text, lowered = said.text, said.lowered
    if name.sort is not _PASSWORD:
        return None
    end = after - len(stem.text)
    start = max(0, end - 120)
    window = lowered[start:end]
    pattern, verb = (_REVERSED, _IS) if stem.text.isascii() else (_REVERSED_CHINESE, _IS_CHINESE)
    match = pattern.search(window) if verb.search(window) else None
    if match is None:
        return None
    at, value = start + match.start("value"), text[start + match.start("value") :]
    value = value[: match.end("value") - match.start("value")].rstrip(_TRAILING)
    lead = len(value) - len(value.lstrip("\"'`(["))
    value = value[lead:]
    if _holds(name, _Value(value, "", _Joint.BESIDE)):
        return Span(at + lead, at + lead + len(value), name.kind)
    return None


# --- whether a value is one ----------------------------------------------------------------------

_TALK = frozenset(
    """wrong weak strong incorrect invalid required optional missing empty needed expired reset
    changed correct valid ok okay fine good bad great here there below above null unknown undefined
    string str text char varchar bool boolean int integer number float object array type any bytes
    true false yes no not too very easy hard simple complex secure insecure safe unsafe private
    hidden plain plaintext gone same different new old default set unset case sensitive important
    mandatory short long short-lived random unique enough what which that this it mine yours ours
    in on at by with without from for and or but if when please enter type see ask check use only
    also always never only at least must should can may will would optional[str] secretstr nothing
    something anything everything someone somebody everyone available unavailable public shared
    val value lambda input prompt argument parameter variable
    again later today tomorrow yesterday now then soon blank common alright dead broken ready
    falsch richtig leer neu alt sicher unsicher schwach stark abgelaufen vergessen nötig
    incorrecta correcta nueva segura débil fuerte obligatoria errado errada correto forte fraca
    incorrect faux faible fort oublié nouveau sûr oubliée requis sbagliata corretta debole forte
    неверный неправильный слабый сильный новый старый другой забыл обязателен верный такой
    fel verkeerd vergeten błędne yanlış doğru salah benar sai đúng""".split()  # noqa: SIM905
)
_TALKING = re.compile(r".{2,}(?:ed|ing|able|ible|ly|ous|less|ful|ten|lich|isch|mente|ment|ность)$")
_CLAUSE_END = re.compile(
    r"[\"'”’)\]]*(?:[.,;!?…)\]}]+(?:\s|$|[^\x00-\x7f])|\s*$|\s*[\r\n]|[。，；！？、]|</)"
)
_FIELD_AFTER = re.compile(r"[\"',;]*\s+[\w\-]{1,24}\s?[:=]")
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:\.\w+)*[(\[].*|(?:self|this|config|settings|process|env|os|args|props|req|ctx"
    r"|user|data|params|options|request|secrets?|vars?|local|module|var)(?:\.[A-Za-z_]\w*)+",
    re.DOTALL,
)
_MEASURE = re.compile(r"\d{1,4}(?:[-–]\d{1,4}|\+|%|st|nd|rd|th|px|s|ms|h|d)?")
_ALGORITHM = re.compile(
    r"(?:sha|md|rc|aes|rsa|pbkdf|oauth|base|utf|rfc|ipv|bcrypt|argon|ntlmv|wpa|saml|tls|ssl)"
    r"[-_]?\d[\w.\-]*|(?:v|ver|top|win)[-_]?\d[\d.]*|\d{1,2}fa|1password\w*|\d+[-–]?(?:bit|byte|char|digit|character|day|step)s?",
    re.IGNORECASE,
)
_SELF_TALK = re.compile(
    r"(?i)\b(?:enter|your|please|must|should|password|choose|confirm|type|forgot)\b"
)
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOCAL = re.compile(r"(?i)(?:https?://|\.{0,2}/|[a-z]:\\|~/).*")


def _holds(name: _Name, value: _Value) -> bool:
    """Whether the value is a secret of this name."""
    text = value.text
    if is_placeholder(text) or text.startswith("[redacted") or _is_code(value):
        return False
    if name.sort is _PASSWORD:
        return _is_password(value)
    if name.sort is _Sort.PHRASE:
        return not _has_space(text) and _is_password(value)
    if name.sort is _Sort.PASS:
        sure = value.joint is _Joint.TIGHT
        return _is_password(value if sure else value._replace(joint=_Joint.BESIDE, quoted=False))
    if name.sort is _Sort.KEY:
        return _is_key(name, value)
    if name.sort is _BARE:
        return _is_bare(name, value)
    if name.sort is _PIN:
        return _is_digits(value, 4, 8)
    return _is_digits(value, 3, 4, beside=True)


def _is_code(value: _Value) -> bool:
    return not value.quoted and _CODE.fullmatch(value.text) is not None


def _is_password(value: _Value) -> bool:
    text, joint = value.text, value.joint
    if text.casefold() in _TALK or _ALGORITHM.fullmatch(text):
        return False
    if joint is _Joint.BESIDE:
        return len(text) >= 6 and _has_letter(text) and _has_digit(text) and not _LOCAL.match(text)
    if value.quoted and _has_space(text):
        return text == text.strip() and not _SELF_TALK.search(text) and len(text) <= 200
    if _MEASURE.fullmatch(text) and len(text) < 4 + (joint is not _Joint.TIGHT) * ("-" in text) * 9:
        return joint is _Joint.TIGHT and len(text) >= 3
    if _is_mixed(text):
        return len(text) >= 3 and not _LOCAL.match(text)
    if not text.isalpha() or len(text) < 3:
        return joint is _Joint.TIGHT and len(text) >= 3
    if text[0] >= "\u2e80":
        return False  # a sentence without spaces, such as 密码：请问管理员
    if _TALKING.match(text.casefold()):
        return False
    if joint is _Joint.TIGHT or value.quoted:
        return True
    return bool(_CLAUSE_END.match(value.after)) or (
        joint is _Joint.ASSIGNED and bool(_FIELD_AFTER.match(value.after))
    )


def _is_mixed(text: str) -> bool:
    """Digits, signs or capitals inside: no plain word of any language."""
    if _has_digit(text):
        return True
    inner = text[1:-1].replace("'", "").replace("’", "").replace("-", "").replace("/", "")
    return any(not c.isalpha() for c in inner) or (
        any(c.isupper() for c in inner) and any(c.islower() for c in text)
    )


def _is_key(name: _Name, value: _Value) -> bool:
    text = value.text
    if len(text) < 6 or _has_space(text) or _LOCAL.match(text):
        return False
    if _has_digit(text) and _has_letter(text):
        least = 12 if value.joint is _Joint.BESIDE else 8
        return len(text) >= least and not _ALGORITHM.fullmatch(text)
    if value.joint is _Joint.BESIDE:
        return False
    if text.isdecimal():
        return len(text) >= 16
    if value.joint is _Joint.TIGHT and name.kind == "secret":
        return not _TALKING.match(text.casefold()) and text.casefold() not in _TALK
    return len(text) >= 16 and _entropy(text) >= 3.2 and not _words_only(text)


def _is_bare(name: _Name, value: _Value) -> bool:
    text, joint = value.text, value.joint
    sure = name.kind == "secret" or (joint is _Joint.TIGHT and name.kind == "token")
    if joint is _Joint.BESIDE and (name.kind != "token" or len(text) < 20):
        return False
    if len(text) < (8 if sure else 16):
        return False
    if _has_space(text) or _LOCAL.match(text):
        return False
    if not (_has_digit(text) and _has_letter(text)) or _UUID.fullmatch(text):
        return False
    return _entropy(text) >= 2.8 and not _words_only(text)


def _is_digits(value: _Value, least: int, most: int, *, beside: bool = False) -> bool:
    text = value.text
    if not (text.isdecimal() and least <= len(text) <= most):
        return False
    return (beside or value.joint is not _Joint.BESIDE) and not value.after[:1].isdecimal()


def _words_only(text: str) -> bool:
    """Whether it is made of words and numbers, such as `order_7300418826` or `user-profile-v2`."""
    parts = re.split(r"[-_./:#@+ ]", text)
    return all(part.isalpha() or part.isdecimal() or len(part) < 6 for part in parts)


_DIGIT, _LETTER, _WHITE = re.compile(r"\d"), re.compile(r"[^\W\d_]"), re.compile(r"\s")


def _has_digit(text: str) -> bool:
    return _DIGIT.search(text) is not None


def _has_letter(text: str) -> bool:
    return _LETTER.search(text) is not None


def _has_space(text: str) -> bool:
    return _WHITE.search(text) is not None


def _entropy(text: str) -> float:
    """Shannon's entropy of its characters, in bits for one of them."""
    counts = {c: text.count(c) for c in set(text)}
    return -sum(n / len(text) * log2(n / len(text)) for n in counts.values())


# --- phrases, headers, cookies -------------------------------------------------------------------

_WORDS = re.compile(r"[\"'“]?[a-z]{3,12}(?:[ ,]{1,2}[a-z]{3,12})+")


def _phrase(lowered: str, at: int, joint: _Joint, stem: _Stem) -> int | None:
    """Where a row of plain words ends that begins here; None for fewer than a phrase has."""
    if joint is _Joint.BESIDE:
        return None
    match = _WORDS.match(lowered, at, at + 400)
    if match is None:
        return None
    words = match.group().split()
    if not _SENTENCE.isdisjoint(words):
        return None
    chosen = stem.text.startswith("pass")
    return match.end() if len(words) >= (4 if chosen else 12) else None


_SENTENCE = frozenset(("the", "are", "and", "for", "should", "please", "your", "not", "with"))

_SCHEME = re.compile(
    r"[\"'\\]{0,2}(?:(?P<scheme>Bearer|Basic|Token|ApiKey|Api-Key|Digest|Negotiate|SSWS|GoogleLogin"
    r"|AWS4-HMAC-SHA256|Hawk|OAuth)[ ]+)?",
    re.IGNORECASE,
)
_REST_OF_LINE = re.compile(r"[^\r\n\"'\\<]{1,4096}+")
_WORD = re.compile(r"[^\s\"'\\<,;]{1,4096}+")


def _header(text: str, tail: re.Match[str], name: _Name) -> Span | None:
    """The credentials of an Authorization header, the scheme left standing."""
    if not (tail["sign"] or tail["said"]):
        return None
    scheme = _SCHEME.match(text, tail.end())
    start = scheme.end() if scheme else tail.end()
    known = scheme["scheme"].lower() if scheme and scheme["scheme"] else ""
    several = known in ("digest", "aws4-hmac-sha256", "hawk", "oauth", "googlelogin")
    value = (_REST_OF_LINE if several else _WORD).match(text, start)
    if value is None:
        return None
    said = value.group().rstrip(" .,;)]}")
    plain_word = said.isalpha() and said.islower()
    if is_placeholder(said) or plain_word or not (known or _is_random(said)):
        return None
    return Span(start, start + len(said), name.kind)


def _is_random(text: str) -> bool:
    return len(text) >= 12 and _has_digit(text) and _has_letter(text) and not _words_only(text)


_COOKIES = re.compile(r"[\"'\\]{0,2}(?P<all>[\w.\-]{1,64}=[^\r\n\"'\\]{4,4096}+)")


def _cookies(text: str, tail: re.Match[str], name: _Name) -> Span | None:
    if not tail["sign"]:
        return None
    match = _COOKIES.match(text, tail.end())
    return Span(*match.span("all"), name.kind) if match else None


# --- more names than anybody gives secrets -------------------------------------------------------

_ANY = (
    rf"[\"'`“‘«「『„][^\"'`”’»」』\n]{{1,{_LONGEST}}}+|{_APP_PASSWORD.pattern}"
    rf"|(?=\S{{3}})(?:{_RUN.pattern})|{_UNSPACED_RUN.pattern}"
)
_MIXED = rf"(?=\S{{0,{_JUDGED}}}?\d)(?=\S{{0,{_JUDGED}}}?[^\W\d_])"
_LINE = rf"[^\r\n]{{1,{_LONGEST}}}+"


def _given(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{_DRESSED}(?!\[redacted)(?P<value>{pattern})")


_GIVEN = {
    _Sort.BARE: _given(rf"[\"'`]?+(?:{_MIXED}[^\s\"'`]{{8,}}+|[^\s\"'`]{{16,}}+)"),
    _Sort.PIN: _given(r"\d{4,8}+"),
    _Sort.CHECK: _given(r"\d{3,4}+"),
    _Sort.HEADER: _given(_LINE),
    _Sort.COOKIE: _given(_LINE),
    _Sort.PHRASE: _given(rf"{_WORDS.pattern}|{_ANY}"),
}
_GIVEN_ANYTHING = _given(_ANY)
_GIVEN_BESIDE = _given(rf"{_MIXED}\S{{6,}}+")
_GIVEN_BEFORE = re.compile(
    r"(?<![!-~])[!-~]{4,}+(?=[”」』]?+\s++(?:is|was|as)\s++(?:(?:my|the|our|your|his|her|a)\s++)?"
    r"(?:[a-z\-]{1,40}\s++){0,2}(?:pass|pwd|pw|pswd)"
    r"|[”」』]?+(?:就?是|作为|作為|当作?|做)[^\s!-~]{0,10}[\u4e00-\u9fffa-z\-]{0,6}(?:密|口令))"
)


def _whatever_is_given(lowered: str) -> Iterator[Span]:
    """All that could be the value of a name, found without asking what it looks like."""
    for stem in _stems_in(lowered):
        upto = 0
        for name in _whole(stem).finditer(lowered) if stem.text in lowered else ():
            at = name.end()
            if at < upto and lowered[at] not in _QUOTES:
                continue  # it is inside of what is masked, and so is what it is given
            is_beside = name["beside"] is not None and not lowered.endswith("--", 0, name.start())
            pattern = _GIVEN_BESIDE if is_beside else _GIVEN.get(stem.sort, _GIVEN_ANYTHING)
            if given := pattern.match(lowered, at):
                yield Span(*given.span("value"), stem.kind)
                upto = max(upto, given.end())
    for match in _GIVEN_BEFORE.finditer(lowered):
        yield Span(*match.span(), "password")


@lru_cache(maxsize=len(_STEMS))
def _whole(stem: _Stem) -> re.Pattern[str]:
    """The name with its tail."""
    start = "(?<![a-z])" if stem.whole else ""
    name = f"{start}{re.escape(stem.text)}{stem.tail.pattern}"
    return re.compile(rf"{name}(?(beside){_MIXED}|(?=\S))")
