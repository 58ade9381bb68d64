"""What can be read of a model's answer, however it is wrapped.

Models put JSON into fences, talk around it, leave commas behind, answer twice, give a bare list, a
single object, or the schema that they were shown. So nothing here trusts the whole text: every
bracketed span is read for itself, repaired when it has to be, and taken apart until items of the
wanted shape are found. An item is taken whole or not at all, and what was no item is counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import json_repair
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from memory.errors import LLMMalformed, LLMRefused, LLMTruncated
from memory.llm.base import Answered
from memory.llm.refusals import asks_back, declines, tells_an_error
from memory.models import Value

V = TypeVar("V", bound=Value)

ITEMS = "items"
"""The name of the list that is asked for."""

DEPTH = 6
"""How many wrappings are seen through."""

SPANS = 200
"""How many bracketed spans of one answer are read."""

_NAMES_OF_THOUGHTS = ("think", "thinking", "reasoning", "reflection")
_THOUGHT = re.compile(rf"<({'|'.join(_NAMES_OF_THOUGHTS)})>", re.IGNORECASE | re.ASCII)
_END_OF_THOUGHT = {
    name: re.compile(f"</{name}>", re.IGNORECASE | re.ASCII) for name in _NAMES_OF_THOUGHTS
}
_UNENDED_THOUGHT = re.compile(r"^\s*<(think|thinking|reasoning)>", re.IGNORECASE)
_LOST_START = re.compile(r"^.*?</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"\s*```[^\n`]*\n(.*?)\n?\s*```\s*", re.DOTALL)
_TYPE_WORDS = frozenset(
    [
        "string",
        "str",
        "text",
        "number",
        "integer",
        "int",
        "float",
        "boolean",
        "bool",
        "null",
        "date",
        "whole number",
        "true or false",
        "value",
        "text or null",
        "string or null",
        "list of text",
        "...",
    ]
)
_SCHEMA_WORDS = frozenset(
    [
        "type",
        "properties",
        "required",
        "items",
        "title",
        "description",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "default",
        "$ref",
        "$defs",
        "$schema",
        "additionalProperties",
        "format",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "examples",
        "minimum",
        "maximum",
        "pattern",
        "definitions",
        "name",
        "strict",
    ]
)
_SCHEMA_TYPES = frozenset(["object", "array", "string", "number", "integer", "boolean", "null"])


# --- texts -------------------------------------------------------------------------------------


def read_text(text: str) -> str:
    """The prose of an answer: without thoughts aloud, a fence or a JSON object around it."""
    said = without_thoughts(text)
    fenced = _FENCED.fullmatch(said)
    if fenced:
        said = fenced[1].strip()
    if said.startswith("{"):
        said = _only_text(said) or said
    return said


def without_thoughts(text: str) -> str:
    """Without what a model that reasons wrote down before its answer."""
    said = _without_ended_thoughts(text)
    if _UNENDED_THOUGHT.match(said):
        return ""
    return _LOST_START.sub("", said, count=1).strip()


def _without_ended_thoughts(text: str) -> str:
    """In one pass: a model that has lost its way may begin thousands and end none."""
    kept: list[str] = []
    unended: set[str] = set()
    done = at = 0
    while (begin := _THOUGHT.search(text, at)) is not None:
        name, at = begin[1].lower(), begin.end()
        end = None if name in unended else _END_OF_THOUGHT[name].search(text, at)
        if end is None:
            unended.add(name)
            continue
        kept.append(text[done : begin.start()])
        done = at = end.end()
    return "".join(kept) + text[done:]


def _only_text(text: str) -> str:
    """The text that a JSON object with one field has, or the summary in it; "" when it is something
    else, such as an error."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict) or tells_an_error(text):
        return ""
    fields = {_key(name): one for name, one in value.items()}
    said = next(iter(fields.values())) if len(fields) == 1 else fields.get("summary")
    return said.strip() if isinstance(said, str) else ""


# --- lists -------------------------------------------------------------------------------------


def described(shape: type[Value]) -> str:
    """What to tell a model about the items that are wanted. No example that could be echoed."""
    lines = [
        f'- "{name}": {_kind(field)}{"" if field.is_required() else " (may be left out)"}'
        f"{': ' + field.description if field.description else ''}"
        for name, field in shape.model_fields.items()
    ]
    return (
        f'Answer with one JSON object and nothing else. It has one field, "{ITEMS}": a list. '
        "Every item of the list is an object with these fields:\n"
        + "\n".join(lines)
        + f'\nWhen there is nothing to list, "{ITEMS}" is an empty list.'
    )


def read_list(text: str, shape: type[V], *, cut: bool) -> Answered[V]:
    """The items of an answer. `cut` says that it ran into its limit.

    Raises LLMRefused, LLMTruncated when not one item came whole, and LLMMalformed when there is
    no list in it at all, or only the description of one.
    """
    said = without_thoughts(text)
    spans = list(_spans(said, cut=cut))
    truncated = cut or any(span.broken for span in spans)
    found = _Found(shape)
    for span in spans:
        found.look_into(span.value)
    if found.items:
        return Answered(found.items, found.unread, truncated)
    if truncated and spans:
        raise LLMTruncated("the answer was cut off before its first item was whole")
    if declines(said) or asks_back(said) or any(map(declines, found.texts)):
        raise LLMRefused("the model declined or asked back")
    if truncated:
        raise LLMTruncated("the answer was cut off before it came to its list")
    if not spans:
        raise LLMMalformed("there is no list in the answer")
    if found.schemas and not found.unread:
        raise LLMMalformed("the answer describes a list and does not give one")
    return Answered([], found.unread)


def _kind(field: FieldInfo) -> str:
    """The field's type in words that are no JSON schema."""
    words = str(field.annotation)
    kinds = [
        said
        for word, said in (
            ("str", "text"),
            ("int", "whole number"),
            ("float", "number"),
            ("bool", "true or false"),
            ("date", "date"),
            ("Literal", words.split("Literal[")[-1].split("]")[0].replace("'", '"')),
        )
        if re.search(rf"\b{word}", words)
    ]
    kinds = kinds[-1:] if "Literal" in words else kinds
    listed = "list of " if re.search(r"\b(?:list|tuple|Sequence)\[", words) else ""
    nothing = " or null" if re.search(r"\bNone\b", words) else ""
    return f"{listed}{' or '.join(kinds) or 'value'}{nothing}"


class _Found(Generic[V]):
    """What was found so far: items, how many were none, and descriptions instead of values."""

    def __init__(self, shape: type[V]) -> None:
        self._shape = shape
        self._names = {_key(name): name for name in shape.model_fields}
        required = [name for name, field in shape.model_fields.items() if field.is_required()]
        self._only = required[0] if len(required) == 1 else None
        self._echoes = _TYPE_WORDS | {
            field.description.casefold()
            for field in shape.model_fields.values()
            if field.description
        }
        self._seen: set[str] = set()
        self.items: list[V] = []
        self.unread = 0
        self.schemas = 0
        self.texts: list[str] = []

    def look_into(self, value: object, depth: int = 0) -> None:
        if isinstance(value, list):
            for one in value:
                self.look_into(one, depth + 1)
        elif isinstance(value, dict):
            self._object({str(name): one for name, one in value.items()}, depth)
        elif value is not None:
            self._scalar(value, depth)

    def _object(self, value: dict[str, object], depth: int) -> None:
        item = self._item(value)
        if item is not None:
            self._take(item)
        elif self._is_echo(value):
            self.schemas += 1
        elif _is_schema(value):
            self.schemas += 1
            if depth < DEPTH and isinstance(value.get("properties"), dict):
                self.look_into(value["properties"], depth + 1)
        elif depth < DEPTH and ITEMS in value:
            self.texts += [one for one in value.values() if isinstance(one, str)]
            self.look_into(value[ITEMS], depth + 1)
        else:
            self._wrapper(value, depth)

    def _wrapper(self, value: dict[str, object], depth: int) -> None:
        """Something around the items, or an object that is none."""
        inner = [one for one in value.values() if isinstance(one, (list, dict))]
        self.texts += [one for one in value.values() if isinstance(one, str)]
        named = any(_key(name) in self._names for name in value)
        if inner and depth < DEPTH and not (named and not _holds_objects(inner)):
            for one in inner:
                self.look_into(one, depth + 1)
        elif any(one is not None for one in value.values()):
            self.unread += 1

    def _scalar(self, value: object, depth: int) -> None:
        if isinstance(value, str):
            self.texts.append(value)
            if value.lstrip().startswith("{") and depth < DEPTH:
                for span in _spans(value, cut=False):
                    self.look_into(span.value, DEPTH)
                return
            item = self._item({self._only: value}) if self._only and value.strip() else None
            if item is not None and value.strip().casefold() not in self._echoes:
                self._take(item)
                return
        self.unread += 1

    def _item(self, value: dict[str, object]) -> V | None:
        fields = {
            self._names[_key(name)]: one for name, one in value.items() if _key(name) in self._names
        }
        if not fields or self._is_echo(fields):
            return None
        try:
            return self._shape.model_validate(fields)
        except (ValidationError, RecursionError):
            return None

    def _is_echo(self, value: dict[str, object]) -> bool:
        """Whether it says of which kinds its values are instead of what they are."""
        texts = [one for one in value.values() if one is not None]
        return bool(texts) and all(
            isinstance(one, str) and one.strip().casefold() in self._echoes for one in texts
        )

    def _take(self, item: V) -> None:
        mark = repr(item)
        if mark not in self._seen:
            self._seen.add(mark)
            self.items.append(item)


def _holds_objects(values: Sequence[object]) -> bool:
    return any(
        isinstance(value, dict)
        or (isinstance(value, list) and any(isinstance(v, dict) for v in value))
        for value in values
    )


def _is_schema(value: dict[str, object]) -> bool:
    """Whether it is a JSON schema, or a part of one."""
    if value.keys() & {"$schema", "$defs", "$ref"}:
        return True
    kind = value.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    typed = bool(kinds) and all(isinstance(k, str) and k in _SCHEMA_TYPES for k in kinds)
    return (typed and value.keys() <= _SCHEMA_WORDS) or isinstance(value.get("anyOf"), list)


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


# --- spans -------------------------------------------------------------------------------------


class _Span(NamedTuple):
    value: object
    broken: bool = False


class _Extent(NamedTuple):
    """Where a bracketed span ends; None: not at all. Then `whole` is the part of its outermost
    list that did come whole, from and to, and `in_text` whether the end is inside a string."""

    end: int | None
    whole: tuple[int, int] | None = None
    in_text: bool = False


def _spans(text: str, *, cut: bool) -> Iterator[_Span]:
    """Every bracketed span that is JSON or nearly so, in order."""
    at = 0
    for _ in range(SPANS):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        start = opening.start()
        extent = _extent(text, start)
        if extent.end is not None:
            at = extent.end
            value = _loaded(text[start : extent.end])
            if value is not None:
                yield _Span(value)
            continue
        rest = text[start:].rstrip().rstrip("`").rstrip()
        if not cut and extent.in_text and rest[-1:] in ("}", "]"):  # a quote inside a text
            value = _loaded(rest)
            if value is not None:
                yield _Span(value)
            return
        if extent.whole is None:
            if _looks_like_json(rest):
                yield _Span(None, broken=True)
        else:
            first, last = extent.whole
            yield _Span(_loaded(text[first:last] + "]"), broken=True)
        return


_OPENING = re.compile(r"[{\[]")
_MARK = re.compile(r"""["'{}\[\]]""")
_STRING_END = re.compile(r'"|\\.', re.DOTALL)
_PYTHON_STRING_END = re.compile(r"'(?=\s*[,:\]}])|\\.", re.DOTALL)


def _extent(text: str, start: int) -> _Extent:
    stack: list[tuple[str, int, int | None]] = []
    """Each open bracket, where it is, and where its last whole element ended."""
    closed: tuple[int, int] | None = None
    """The widest list that has ended: from its bracket to before the other one."""
    at = start
    in_text = False
    while (mark := _MARK.search(text, at)) is not None:
        at = mark.end()
        char = mark[0]
        if char in "{[":
            stack.append((char, mark.start(), None))
            continue
        if char in "\"'":
            if char == "'" and not _may_open(text, mark.start()):
                continue
            ended = _string_end(text, at, char)
            if ended is None:
                in_text = True
                break
            at = ended
        else:
            opened, where, _ = stack[-1]
            if opened != {"}": "{", "]": "["}[char]:
                continue
            stack.pop()
            if char == "]" and (closed is None or where < closed[0]):
                closed = (where, mark.start())
            if not stack:
                return _Extent(at)
        opened, where, _ = stack[-1]
        stack[-1] = (opened, where, at)
    lists = [(where, last) for char, where, last in stack if char == "["]
    if not lists:
        return _Extent(None, closed, in_text)
    first, last = lists[0]
    return _Extent(None, None if last is None else (first, last), in_text)


def _may_open(text: str, at: int) -> bool:
    """Whether an apostrophe here begins a text, as in Python's manner of writing."""
    return text[max(0, at - 40) : at].rstrip()[-1:] in tuple("[{,:")


def _string_end(text: str, at: int, quote: str) -> int | None:
    pattern = _STRING_END if quote == '"' else _PYTHON_STRING_END
    while (found := pattern.search(text, at)) is not None:
        at = found.end()
        if found[0] == quote:
            return at
    return None


def _looks_like_json(span: str) -> bool:
    return (span[:1] == "{" and ":" in span) or '"' in span or "'" in span


def _loaded(span: str) -> object:
    """The span's value; None when it is no JSON, and no list or object that could hold items."""
    try:
        value = json.loads(span, strict=False)
    except (ValueError, RecursionError):
        value = _repaired(span)
    if (
        isinstance(value, list)
        and value
        and not any(isinstance(v, (dict, list, str)) for v in value)
    ):
        return None
    return value


def _repaired(span: str) -> object:
    if not _looks_like_json(span):
        return None
    try:
        value = json_repair.loads(span, skip_json_loads=True)
    except (ValueError, RecursionError, TypeError, IndexError):
        return None
    return value if isinstance(value, (dict, list)) else None
