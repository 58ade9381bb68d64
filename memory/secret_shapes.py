"""Secrets that show by their own shape: vendors' tokens, private keys, passwords in URLs, cards.

Every shape has a literal that must be in the text, and is only tried where that literal stands: a
text without secrets costs one search per literal. What a shape may run over is consumed whole, so
that a million of one letter are looked at once. Words end where ASCII letters and digits do, since
in Chinese or Thai the sentence goes on right before and behind a key.

The texts looked at are folded ones (`secret_names.folded`), of the length of what was said.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple


class Span(NamedTuple):
    """Characters `start`..`end` (exclusive) are a secret of this kind."""

    start: int
    end: int
    kind: str


def find(text: str) -> Iterator[Span]:
    """The secrets in a text, in no order; they may overlap."""
    long_words = " ".join(_LONG_WORD.findall(text))
    for token in _TOKENS if long_words else ():
        if token.literal in long_words:
            yield from _tokens(text, token)
    for shape in _SHAPES:
        among = text if shape.spaced else long_words
        if any(literal in among for literal in shape.literals):
            yield from _shapes(text, shape)
    if "PRIVATE KEY" in text or "Private-Lines" in text:
        yield from _private_keys(text)
    yield from _cards(text)


_LONG_WORD = re.compile("[!-~]{8,}+")
"""Where every token is: they are ASCII, and no shorter. Most of a text is not looked at again."""


# --- tokens of one run of characters -------------------------------------------------------------

_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
"""No word goes on here; the end of an escape (\\n, %3D, \\u003d) is not the start of one."""
_STRICT_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2}))"

_LETTERS, _WORD, _DASHED = "A-Za-z0-9", "A-Za-z0-9_", "A-Za-z0-9_-"
_HEX, _BASE64 = "a-f0-9", "A-Za-z0-9+/=_-"


@dataclass(frozen=True)
class _Token:
    literal: str
    rest: re.Pattern[str]
    kind: str
    sure: bool
    """Whether the literal alone says what it is; else the rest must look random too."""


def _token(
    kind: str, characters: str, least: int, *literals: str, sure: bool = True
) -> list[_Token]:
    return [
        _Token(
            literal,
            re.compile(rf"{_START}{re.escape(literal)}(?P<rest>[{characters}]{{{least},}}+)"),
            kind,
            sure,
        )
        for literal in literals
    ]


_TOKENS = (
    # OpenAI, Anthropic, OpenRouter, DeepSeek, Langfuse … all say sk-; so do some words.
    *_token("api key", _DASHED, 8, "sk-", sure=False),
    *_token("api key", _LETTERS, 8, "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
    *_token("secret", _BASE64, 16, "whsec_"),
    *_token("api key", _LETTERS, 20, "hf_", "gsk_", "pplx-", "r8_", "npm_", "sk_", "cio"),
    *_token("api key", _DASHED, 30, "AIza"),
    *_token("api key", _DASHED, 20, "GOCSPX-", "xai-", "nvapi-", "tvly-", "jina_", "pcsk_"),
    *_token("api key", _WORD, 20, "lsv2_pt_", "lsv2_sk_", "ntn_", "tgp_v1_", "re_", sure=False),
    *_token("api key", _LETTERS, 40, "secret_"),
    *_token("api key", _HEX, 32, "fc-", "e2b_", "dapi", "key-", "SK", "rubygems_", "pul-"),
    *_token("api key", _HEX, 32, "shpat_", "shpca_", "shppa_", "shpss_", "xkeysib-", "dop_v1_"),
    *_token("api key", _HEX, 32, "doo_v1_", "dor_v1_", "squ_", "sqp_", "sqa_"),
    *_token("api key", _DASHED, 20, "dckr_pat_", "dckr_oat_", "figd_", "lin_api_", "lin_oauth_"),
    *_token("api key", _DASHED, 20, "sq0atp-", "sq0csp-", "PMAK-", "NRAK-", "HRKU-", "CCIPAT_"),
    *_token("api key", _BASE64, 20, "sntrys_", "sntryu_", "glsa_", "glc_", "rdme_", "ABSK"),
    *_token(
        "api key", _WORD, 20, "pscale_tkn_", "pscale_pw_", "sb_secret_", "sbp_", "duffel_live_"
    ),
    *_token("api key", _LETTERS, 14, "LTAI", "AKID", sure=False),
    *_token("aws access key", "A-Z0-9", 16, "AKIA", "ASIA", "ABIA", "ACCA"),
    *_token("token", _BASE64, 60, "FwoGZXIvYXdz", "IQoJb3JpZ2lu", "EAACEdEose0cBA"),
    *_token("github token", _LETTERS, 20, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *_token("github token", _WORD, 22, "github_pat_"),
    *_token("gitlab token", _DASHED, 16, "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-"),
    *_token("gitlab token", _DASHED, 16, "gloas-", "glft-", "glimt-", "glagent-", "GR1348941"),
    *_token("slack token", _DASHED, 10, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-"),
    *_token("slack token", _DASHED, 10, "xoxc-", "xoxd-", "xoxo-", "xapp-"),
    *_token("api key", _DASHED, 50, "pypi-"),
    *_token("api key", _DASHED, 80, "ATATT3", "ATCTT3", "AKCp"),
    *_token("private key", "A-Z0-9", 50, "AGE-SECRET-KEY-1"),
    *_token("private key", _LETTERS, 100, "xprv"),
)


def begins_token(text: str) -> bool:
    """Whether a text begins with one."""
    return any(text.startswith(each.literal) and each.rest.match(text) for each in _TOKENS)


def _tokens(text: str, token: _Token) -> Iterator[Span]:
    at = text.find(token.literal)
    while at >= 0:
        match = token.rest.match(text, at)
        if match and (token.sure or _has_random_part(match["rest"])):
            yield Span(at, match.end(), token.kind)
        at = text.find(token.literal, match.end() if match else at + len(token.literal))


_PARTS = re.compile("[A-Za-z0-9]+")


def _has_random_part(rest: str) -> bool:
    """Whether it is no row of words, such as `sk-learn-for-beginners`."""
    return any(
        len(part) >= 16 or (len(part) >= 8 and any(c.isdigit() for c in part))
        for part in _PARTS.findall(rest)
    )


# --- shapes of several parts ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Shape:
    """What has several parts: the group `secret` is what is masked, when `judge` agrees."""

    kind: str
    literals: tuple[str, ...]
    whole: re.Pattern[str]
    judge: Callable[[str], bool] = bool
    spaced: bool = False
    """Whether a literal has a space in it, and so is in no word."""
    option: bool = False
    """Whether it is an option of the command that a literal names."""


def _is_basic(value: str) -> bool:
    """Whether it is `user:password` in base64, as HTTP's Basic wants it."""
    try:
        said = b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (Base64Error, ValueError):
        return False
    return b":" in said and all(32 <= byte < 127 for byte in said)


_PLACEHOLDER = re.compile(
    r"[*•x.…_#?-]+|<.*|\{.*|\[.*|\$\{.*|\$\(.*|\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+)|%\w+%?"
    r"|(?:your|my|the|some|db|user)?[-_ ]?(?:password|passwd|pass|pwd|pw|secret|token|key|string)"
    r"[-_ ]?(?:here)?|your[-_ ].*|changeme|none|null|nil",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Whether it stands for a value that is not there: `<password>`, `$TOKEN`, `****`, `null`."""
    return _PLACEHOLDER.fullmatch(value) is not None


def _is_given(value: str) -> bool:
    return not is_placeholder(value)


def _is_given_with_digit(value: str) -> bool:
    return any(c.isdigit() for c in value) and not is_placeholder(value)


_REST_OF_WORD = r"(?P<secret>[^\s\"']{1,256}+)"
_WORD_GIVEN = r"(?P<quote>[\"'])?(?P<secret>(?(quote)[^\"'\n]{1,256}+|[^\s\"'-][^\s\"']{2,256}+))"


def _option(pattern: str, *commands: str) -> _Shape:
    whole = re.compile(rf"(?<=\s){pattern}")
    return _Shape("password", commands, whole, _is_given, spaced=True, option=True)


_SHAPES = (
    _Shape(
        "token",  # JWT and JWE
        ("eyJ",),
        re.compile(
            rf"{_STRICT_START}(?P<secret>eyJ[\w-]{{8,}}+\.[\w-]{{4,}}+(?:\.[\w-]*+){{0,3}})",
            re.ASCII,
        ),
    ),
    _Shape(
        "password",  # scheme://user:password@host
        ("://",),
        re.compile(r"://[^\s/?#:@\"'<>\\]{0,256}+:(?P<secret>[^\s/?#\"'<>]{1,512})@"),
        _is_given,
    ),
    _Shape(
        "token",  # https://token@host
        ("://",),
        re.compile(r"://(?P<secret>[A-Za-z0-9_-]{20,256}+)@", re.ASCII),
        _is_given_with_digit,
    ),
    _Shape(
        "token",
        ("earer ",),
        re.compile(
            r"(?<![A-Za-z])[Bb]earer +[\"'<]?(?P<secret>[A-Za-z0-9._~+/=-]{16,}+)", re.ASCII
        ),
        _is_given_with_digit,
        spaced=True,
    ),
    _Shape(
        "password",
        ("asic ",),
        re.compile(r"(?<![A-Za-z])[Bb]asic +(?P<secret>[A-Za-z0-9+/]{8,}+={0,2})", re.ASCII),
        _is_basic,
        spaced=True,
    ),
    _option(rf"(?:-u|--user)[ =]*+[\"']?[^\s:\"']{{1,128}}+:{_REST_OF_WORD}", "curl "),
    _option(rf"-p{_WORD_GIVEN}", "mysql", "mariadb", "sshpass "),
    _option(rf"-p[ ]+{_WORD_GIVEN}", "sshpass ", "docker login ", "podman login ", "az login "),
    _option(rf"(?:-a|--pass)[ ]+{_WORD_GIVEN}", "redis-cli "),
    _option(rf"-[a-zA-Z]*b[a-zA-Z]*(?:[ ]+[^\s]{{1,256}}+){{2}}[ ]+{_WORD_GIVEN}", "htpasswd "),
    _Shape(
        "password",
        ("chpasswd",),
        re.compile(
            r"echo[ ]+[\"']?[^\s:\"']{1,64}+:(?P<secret>[^\s\"']{1,256}+)[\"']?"
            r"[ ]*\|[ ]*(?:sudo[ ]+)?chpasswd"
        ),
        _is_given,
        spaced=True,
    ),
    _Shape(
        "signature",  # of a URL that opens a file to whoever has it
        ("sig=", "Signature="),
        re.compile(
            r"[?&;](?:sig|Signature|X-(?:Amz|Goog)-Signature)=(?P<secret>[A-Za-z0-9%+/=_~-]{32,}+)"
        ),
    ),
    _Shape(
        "aws secret key",  # beside its id, as consoles and files show them
        ("AKIA", "ASIA"),
        re.compile(
            r"(?:AKIA|ASIA)[A-Z0-9]{16}[\s,;:/|\"']{1,5}+(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])"
        ),
    ),
    _Shape(
        "slack webhook",
        ("hooks.slack.com/",),
        re.compile(r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/]{20,}+)"),
    ),
    _Shape(
        "discord webhook",
        ("/api/webhooks/",),
        re.compile(r"/api/webhooks/\d{5,25}/(?P<secret>[\w-]{20,}+)", re.ASCII),
    ),
    _Shape(
        "token",  # Telegram's bots
        (":AA",),
        re.compile(rf"(?:{_START}|(?<=/bot))(?P<secret>\d{{8,10}}:AA[\w-]{{33,}}+)", re.ASCII),
    ),
    _Shape(
        "api key",
        ("SG.",),
        re.compile(rf"{_STRICT_START}(?P<secret>SG\.[\w-]{{16,}}+\.[\w-]{{16,}}+)", re.ASCII),
    ),
    _Shape(
        "token",  # Google
        ("ya29.", "1//0"),
        re.compile(rf"{_STRICT_START}(?P<secret>(?:ya29\.|1//0)[\w-]{{20,}}+)", re.ASCII),
    ),
    _Shape(
        "token",  # Vault, Terraform, Doppler, Airtable, Dropbox
        ("hvs.", "hvb.", ".atlasv1.", "dp.", "pat", "sl."),
        re.compile(
            rf"{_STRICT_START}(?P<secret>hv[sb]\.[\w-]{{24,}}+|[A-Za-z0-9]{{14}}\.atlasv1\.[\w=-]{{40,}}+"
            r"|dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}+|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"
            r"|sl\.(?:u\.)?[\w-]{100,}+)",
            re.ASCII,
        ),
    ),
    _Shape(
        "api key",  # Mailchimp
        ("-us",),
        re.compile(rf"{_START}(?P<secret>[a-f0-9]{{32}}-us\d{{1,2}})(?![\w-])", re.ASCII),
    ),
    _Shape(
        "secret",  # Azure AD
        ("Q~",),
        re.compile(r"(?<![\w~.-])(?P<secret>[\w~.-]{3}\dQ~[\w~.-]{31,34})(?![\w~.-])", re.ASCII),
    ),
    _Shape(
        "password hash",
        ("$1$", "$5$", "$6$", "$y$", "$2a$", "$2b$", "$2y$", "$argon2"),
        re.compile(
            r"(?P<secret>\$(?:[156y]|2[aby]|argon2i?d?)\$[A-Za-z0-9./+$,=_-]{20,}+)", re.ASCII
        ),
    ),
)


def _shapes(text: str, shape: _Shape) -> Iterator[Span]:
    for match in shape.whole.finditer(text):
        if not shape.judge(match["secret"]):
            continue
        if not shape.option or _is_of_command(text, match.start(), shape.literals):
            yield Span(*match.span("secret"), shape.kind)


def _is_of_command(text: str, at: int, commands: tuple[str, ...]) -> bool:
    """Whether one of the commands stands before, in the same line of a shell."""
    begin = max(text.rfind(command, max(0, at - 400), at) for command in commands)
    return begin >= 0 and _COMMAND_END.search(text, begin, at) is None


_COMMAND_END = re.compile(r"(?<!\\)\n|[;|]")


# --- private keys --------------------------------------------------------------------------------

_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20})-----")
_BODY = re.compile(r"(?:[\s\"'+>|]|\\[nr]|[A-Za-z0-9+/=]{16,}+|[A-Za-z-]{1,20}: [^\n\\]{0,200})*+")


_PUTTY = re.compile(r"Private-Lines: \d+(?P<secret>(?:(?:\s|\\[nr])++[A-Za-z0-9+/=]{16,}+)++)")


def _private_keys(text: str) -> Iterator[Span]:
    """From the first to the last line of each; where the last is missing, as far as it goes on."""
    for putty in _PUTTY.finditer(text):
        yield Span(*putty.span("secret"), "private key")
    begin = _BEGIN.search(text)
    while begin:
        following = _BEGIN.search(text, begin.end())
        closing = f"-----END {begin[1]}-----"
        end = text.find(closing, begin.end(), following.start() if following else len(text))
        body = _BODY.match(text, begin.end())
        if end >= 0:
            yield Span(begin.start(), end + len(closing), "private key")
        else:
            yield Span(begin.start(), body.end() if body else begin.end(), "private key")
        begin = following


# --- cards ---------------------------------------------------------------------------------------

_GAP = "[ \\-.\u00a0\u2009\u202f\u2010-\u2013\u3000]"
_DIGITS = re.compile(rf"\d{{4,}}+(?:{_GAP}\d++)*+")
_ASCII_DIGITS = re.compile(r"[0-9]{4,}+(?:[ .-][0-9]++)*+")
_GROUP = re.compile(r"\d+")
_CARD_WORDS = re.compile(
    r"card|visa|amex|mastercard|credit|debit|karte|carte|tarjeta|cartão|карт|信用卡|银行卡|卡号|カード"
    r"|카드|بطاقة",
    re.IGNORECASE,
)


def _cards(text: str) -> Iterator[Span]:
    """Numbers of 13 to 19 digits, as issuers give them and with the digit that checks them."""
    for run in (_ASCII_DIGITS if text.isascii() else _DIGITS).finditer(text):
        if run.end() - run.start() < 13:
            continue
        groups = [group.span() for group in _GROUP.finditer(text, run.start(), run.end())]
        sizes = [end - start for start, end in groups]
        free = 0
        for first, (start, _) in enumerate(groups):
            if first < free or not (lengths := _issued(text[start : start + 4])):
                continue
            for count in _counts(sizes, first):
                end = groups[first + count - 1][1]
                if _is_card(text, start, end, lengths):
                    yield Span(start, end, "card number")
                    free = first + count
                    break


def _counts(sizes: list[int], first: int) -> tuple[int, ...]:
    """How many groups of digits from `first` on may be one card's number: as they are printed."""
    if sizes[first] > 8:
        return (1,)
    row = sizes[first : first + 5]
    if row[:3] == [4, 4, 4] and row[3:] and row[3] <= 4:
        return (5, 4) if row[3] == 4 and row[4:] and row[4] < 4 else (4,)
    if row[:2] == [4, 6] and row[2:3] in ([4], [5]):
        return (3,)
    return (2,) if row[:2] == [8, 8] else ()


_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")


def _is_card(text: str, start: int, end: int, lengths: frozenset[int]) -> bool:
    written = text[start:end].encode().translate(None, b" .-")
    if not written.isdigit():
        written = "".join(str(int(c)) for c in text[start:end] if c.isdecimal()).encode()
    if len(written) not in lengths:
        return False
    checked = sum(written[-1::-2]) + sum(written[-2::-2].translate(_DOUBLED)) - 48 * len(written)
    if checked % 10 or text[start - 1 : start] == "+":
        return False
    # 13 and 18 are hardly issued any more, and article and identity numbers are as long.
    return len(written) not in (13, 18) or bool(_CARD_WORDS.search(text, max(0, start - 40), start))


@lru_cache(maxsize=10_000)
def _issued(head: str) -> frozenset[int]:
    """How long issuers' numbers are that begin with these four digits (ISO/IEC 7812)."""
    if len(head) < 4 or not head.isdecimal():
        return frozenset()
    number = int(head)
    if number // 1000 == 4:
        return frozenset({13, 16, 18, 19})
    if 51 <= number // 100 <= 55 or 2221 <= number <= 2720:
        return frozenset({16})
    if number // 100 in (34, 37):
        return frozenset({15})
    if number // 100 in (36, 38, 39) or 300 <= number // 10 <= 305:
        return frozenset(range(14, 20))
    if 3528 <= number <= 3589 or number // 100 in (60, 62, 64, 65, 81):
        return frozenset(range(16, 20))
    return frozenset(range(16, 20)) if number // 100 in (50, 56, 57, 58, 63, 67) else frozenset()
