"""What tools did, told as prose: a model that reads a summary must find nothing to imitate.

A call in its literal syntax, quoted in a summary, is soon made again by the model that reads it, or
taken for one that it made. So JSON is flattened to its names and values, what cannot be parsed
loses its brackets and quotes, and `CALL_SYNTAX` knows the forms in which models write calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from memory.models import Message, ToolCall

CALL_SYNTAX: Final = re.compile(
    r"""</?(?:antml:)?(?:tool|function)_?(?:calls?|use|results?|responses?)\b[^<>]{0,200}>
    | </?(?:antml:)?(?:invoke|parameter)\b[^<>]{0,200}>
    | <\|[^|<>\n]{1,40}\|>
    | \[/?TOOL_(?:CALLS?|REQUEST|RESULTS?)\]
    | ```\s?tool_(?:code|calls?|outputs?)
    | "(?:arguments|parameters|tool_calls|tool_call_id|function_call)"\s?:
    | \b\w{1,64}\(\s?\{\s?["']
    | \bcalled\ \S{1,64}\ \{""",
    re.VERBOSE | re.IGNORECASE,
)
"""How models and their servers write calls of tools, and the control tokens around them."""

PARSED: Final = 64_000
"""Characters of the longest JSON that is taken apart."""
_VALUES: Final = 64
"""Values that are told of one JSON text."""
_DEPTH: Final = 8
_WORD: Final = 60
"""Characters of a name in it."""
_PUNCTUATION: Final = re.compile(r"""[{}\[\]"<>`\\|]+""")


def names_of_calls(messages: Sequence[Message]) -> dict[str, str]:
    """The tool that each call is for, by the call's id: what a result alone does not say."""
    return {call.id: call.name for message in messages for call in message.tool_calls}


def used(call: ToolCall) -> str:
    """`search (near: station; open: true)`, or `search` alone without arguments."""
    said = flat(call.arguments)
    name = _word(call.name) or "a tool"
    return f"{name} ({said})" if said else name


def answered(text: str) -> str:
    """What a tool gave back: JSON as its names and values, other text as it is."""
    return flat(text) if text.lstrip()[:1] in ("{", "[") else CALL_SYNTAX.sub(" ", text)


def flat(text: str) -> str:
    """JSON text as `name: value; name: value, value`, nested names in a row; '' for what is empty.

    Of a long one the beginning is told. Text that is no JSON loses what makes it look like it.
    """
    value = _parsed(text)
    if value is None:
        return _PUNCTUATION.sub(" ", text[:PARSED]).strip()
    found = list(islice(_values(value, "", _DEPTH), _VALUES + 1))
    told: list[str] = []
    before = None
    for name, said in found[:_VALUES]:
        if name and name != before:
            told.append(f"{name}: {said}")
        elif told:
            told[-1] += f", {said}"
        else:
            told.append(said)
        before = name
    return "; ".join(told) + (" …" if len(found) > _VALUES else "")


def _parsed(text: str) -> object:
    """The object or the array that the text is; None when it is neither."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > PARSED:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _values(value: object, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Every value in it, under the names that lead to it."""
    if isinstance(value, str) and depth and (inner := _parsed(value)) is not None:
        value = inner
    if isinstance(value, dict | list) and not depth:
        yield name, "…"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, f"{name} {_word(key)}".strip(), depth - 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner, name, depth - 1)
    else:
        yield name, _said(value)


def _said(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _PUNCTUATION.sub(" ", str(value)).strip() or "nothing"


def _word(name: str) -> str:
    folded = " ".join(_PUNCTUATION.sub(" ", name[: 4 * _WORD]).split())
    return folded if len(folded) <= _WORD else f"{folded[: _WORD - 1].rstrip()}…"


def parts_beside(message: Message) -> list[str]:
    """The kinds of the parts that are not text: `[image_url]`."""
    parts = message.content if isinstance(message.content, tuple) else ()
    return [
        f"[{_word(str(part.get('type') or 'part')) or 'part'}]"
        for part in parts
        if not isinstance(part.get("text"), str)
    ]
