"""Canonical bytes: the one way a value becomes bytes that are stored or hashed.

UTF-8 JSON with sorted keys and no spaces. Two things make it safe for text as it comes:
non-ASCII is written as itself (so that nothing grows and people can read it), and lone surrogates
pass through (`surrogatepass`), so that any Python string comes back exactly as it was. Stores must
hold these bytes as bytes: neither PostgreSQL nor Redis clients accept every such string as text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from memory.errors import Corrupt, InvalidInput

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
)


def encode(value: Any) -> bytes:
    """The canonical bytes of a JSON-like value. Raises InvalidInput that names the field which
    cannot be kept.

    Floats must be finite; keys must be strings.
    """
    try:
        text = _ENCODER.encode(value)
    except RecursionError as error:
        raise InvalidInput("nested too deep to be stored as JSON") from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"cannot be stored as JSON: {culprit(value) or error}") from error
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> Any:
    """The value that `encode` was given. Raises Corrupt when these are not such bytes."""
    try:
        return json.loads(data.decode("utf-8", "surrogatepass"))
    except (UnicodeDecodeError, ValueError) as error:
        raise Corrupt(f"stored value cannot be read: {error}") from error


_ESCAPE = re.compile(
    r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\(?:u([0-9a-f]{4})|.)",
    re.IGNORECASE | re.DOTALL,
)


def unescaped(text: str) -> str:
    r"""JSON text with its non-ASCII characters as themselves, not as \uXXXX: far fewer tokens.

    The value, spaces and order stay the same, lone surrogates stay escaped, and what is no JSON
    stays as it is.
    """
    if "\\u" not in text:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    high, low, code = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    number = int(code or "0", 16)
    is_itself = number < 0x80 or 0xD800 <= number <= 0xDFFF
    return escape[0] if is_itself else chr(number)


def digest(data: bytes) -> str:
    """A 128-bit content hash (BLAKE2b) as 32 hex digits."""
    return blake2b(data, digest_size=16).hexdigest()


def content_id(kind: str, *parts: str) -> str:
    """An id that is a function of its parts: the same input gives the same id, everywhere."""
    return digest(encode([kind, *parts]))


def culprit(value: Any, path: str = "") -> str:
    """The path of the first thing that JSON cannot hold, and what it is; '' if there is none."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                return f"{path or 'the value'} has the key {key!r}, which is no text"
            if found := culprit(inner, f"{path}.{key}" if path else key):
                return found
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            if found := culprit(inner, f"{path}[{index}]"):
                return found
    elif isinstance(value, float) and not math.isfinite(value):
        return f"{path or 'the value'} is {value!r}"
    elif value is not None and not isinstance(value, str | bool | int | float):
        return f"{path or 'the value'} is a {type(value).__name__}"
    return ""
