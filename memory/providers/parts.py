"""Parts of content, read from the shapes of OpenAI (chat and responses), Anthropic and LangChain.

Whatever can be shown has one form here: a URL. Base64 becomes a data URL, and what is in it is
told by its first bytes.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from memory.providers.wire import JsonObject, fields, listed, string


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    citations: JsonValue = None


@dataclass(frozen=True, slots=True)
class Refusal:
    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """A picture, a file or a sound. `url` is where it is, often a data URL that holds it.

    `block` is how the provider `of` which it is wrote it, where that says more than the URL.
    """

    kind: Literal["image", "file", "audio", "video"]
    url: str = ""
    name: str = ""
    media_type: str = ""
    detail: str = ""
    of: str = ""
    block: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Native:
    """What only Anthropic has: thinking, and the tools that it runs itself."""

    block: JsonObject


@dataclass(frozen=True, slots=True)
class Unknown:
    kind: str


Part = Text | Refusal | Media | Native | Unknown


_TEXTS: Final = ("text", "input_text", "output_text", None)
_NAMED: Final = 60
"""Characters of a name or an address that are shown of what cannot be shown itself."""
_IMAGES: Final = ("image_url", "input_image", "image", "image_file")
_FILES: Final = ("file", "input_file", "document")
_SOUNDS: Final = ("input_audio", "audio", "audio_url")
_VIDEOS: Final = ("video", "video_url", "input_video")
THINKING: Final = ("thinking", "redacted_thinking")
_NATIVE: Final = (
    *THINKING,
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "search_result",
    "container_upload",
)


def part_of(part: JsonValue) -> Part:
    if isinstance(part, str):
        return Text(part)
    given = {key: value for key, value in fields(part).items() if key != "cache_control"}
    kind, text = given.get("type"), given.get("text")
    if kind in _TEXTS and isinstance(text, str):
        return Text(text, given.get("citations"))
    if kind == "refusal":
        return Refusal(string(given.get("refusal")))
    if kind in _IMAGES:
        return _image(given)
    if kind in _FILES:
        return _file(given)
    if kind in _SOUNDS:
        return _sound(given)
    if kind in _VIDEOS:
        return Media("video", url=_url_in(given))
    if kind in _NATIVE:
        return Native(given)
    return Text(text) if isinstance(text, str) else Unknown(string(kind) or "unknown")


def _image(part: JsonObject) -> Media:
    nested = fields(part.get("image_url"))
    detail = string(nested.get("detail")) or string(part.get("detail"))
    source = fields(part.get("source"))
    uploaded = source.get("type") == "file"
    return Media(
        "image",
        url="" if uploaded else _url_in(part),
        detail=detail if detail in ("auto", "low", "high", "original") else "",
        of="anthropic" if uploaded else "",
        block={"type": "image", "source": source} if uploaded else {},
    )


def _file(part: JsonObject) -> Media:
    held = fields(part.get("file")) or part
    names = (held.get("filename"), held.get("name"), part.get("title"))
    name = next((name for name in map(string, names) if name.strip()), "")
    url = _url_in(held)
    media_type = string(part.get("mime_type")) or data_of(url).media_type
    if part.get("type") == "document" and "source" in part:
        return Media("file", url, name, media_type, of="anthropic", block=part)
    if held.get("file_id"):
        uploaded: JsonObject = {"file_id": held["file_id"]}
        return Media("file", "", name, media_type, of="openai", block=uploaded)
    return Media("file", url, name, media_type)


def _sound(part: JsonObject) -> Media:
    held = fields(part.get("input_audio"))
    if held.get("format") in ("wav", "mp3") and string(held.get("data")):
        exact: JsonObject = {"data": held["data"], "format": held["format"]}
        return Media("audio", of="openai", block=exact)
    url = _url_in(part)
    found = data_of(url)
    form = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
    if found.base64 and found.media_type in form:
        made: JsonObject = {"data": found.base64, "format": form[found.media_type]}
        return Media("audio", of="openai", block=made)
    return Media("audio", url=url, media_type=found.media_type)


_BASE64_KEYS: Final = ("base64", "data", "file_data")
_URL_KEYS: Final = ("image_url", "audio_url", "video_url", "url", "file_url", *_BASE64_KEYS)


def _url_in(part: JsonObject) -> str:
    """Where what this part shows is: a URL, or a data URL made of its base64; '' if neither.

    OpenAI's, Anthropic's and LangChain's ways to say it.
    """
    held = fields(part.get("source")) or part
    media_type = string(held.get("media_type")) or string(part.get("mime_type"))
    for key in _BASE64_KEYS:
        data = string(held.get(key))
        if data and not data.startswith(("data:", "http://", "https://")):
            return f"data:{media_type};base64,{data}" if held.get("type") != "text" else ""
    for key in _URL_KEYS:
        value = held.get(key)
        if url := string(value) or string(fields(value).get("url")):
            bare = f"data:{media_type};base64,{url}"
            return bare if ":" not in url[:16] and data_of(bare).media_type else url
    return ""


class Data(NamedTuple):
    """What a data URL holds; all empty where it is none, or none in base64."""

    media_type: str
    base64: str


_BASE64: Final = re.compile(r"[A-Za-z0-9+/]++={0,2}")
_MAGIC: Final = (
    ("image/png", b"\x89PNG"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/webp", b"RIFF"),
    ("application/pdf", b"%PDF"),
)


def data_of(url: str) -> Data:
    """What this URL holds, padded as it must be, under the type that its first bytes show.

    The declared type is often wrong, and a provider refuses it then.
    """
    head, comma, data = url.partition(",")
    if not comma or head[:5].lower() != "data:" or not head.lower().endswith(";base64"):
        return Data("", "")
    data = "".join(data.split())
    if not _BASE64.fullmatch(data) or len(data.rstrip("=")) % 4 == 1:
        return Data("", "")
    data = data.rstrip("=")
    data += "=" * (-len(data) % 4)
    declared = head[5:].split(";")[0].strip().lower()
    first = base64.b64decode(data[:16])
    shown = [
        media_type
        for media_type, magic in _MAGIC
        if first.startswith(magic) and (magic != b"RIFF" or first[8:12] == b"WEBP")
    ]
    return Data(next(iter(shown), "image/jpeg" if declared == "image/jpg" else declared), data)


def decoded(data: Data) -> str | None:
    """The text in it, where it is one."""
    if not data.media_type.startswith("text/") and data.media_type != "application/json":
        return None
    try:
        return base64.b64decode(data.base64).decode()
    except UnicodeDecodeError:
        return None


def stand_in(part: Media | Native | Unknown) -> str:
    """A text that stands for what cannot be shown."""
    if not isinstance(part, Media):
        kind = part.kind if isinstance(part, Unknown) else part.block["type"]
        return f"[{kind}: not shown]"
    words = [part.kind, repr(part.name[:_NAMED]) if part.name else ""]
    if not part.url.startswith("data:"):
        words.append(f"at {part.url[:_NAMED]}" if part.url else "")
    elif part.media_type or data_of(part.url).media_type:
        words.append(f"({part.media_type or data_of(part.url).media_type})")
    return f"[{' '.join(filter(None, words))}: not shown]"


def text_of(part: Media) -> str:
    """What a file that is a text says."""
    if part.kind != "file":
        return ""
    source = fields(part.block.get("source"))
    if source.get("type") == "text":
        return string(source.get("data"))
    if source.get("type") == "content":
        parts = map(part_of, listed(source.get("content")))
        return "\n".join(part.text for part in parts if isinstance(part, Text))
    text = decoded(data_of(part.url))
    name = part.name[:_NAMED]
    return f"[{part.kind} {name!r}:]\n{text}" if text and name else text or ""


def says_nothing(part: Mapping[str, JsonValue]) -> bool:
    """Whether it is a text in which nobody can see anything."""
    is_text = part.get("type") in _TEXTS and ("type" in part or "text" in part)
    return is_text and is_blank(string(part.get("text")))


def is_blank(text: str) -> bool:
    """Nothing but white space, and characters that only shape others, such as U+200B."""
    return not text.strip() or all(c.isspace() or unicodedata.category(c) == "Cf" for c in text)
