"""Secrets are masked before anything is stored: keys, tokens, passwords, private keys, cards.

A secret becomes `[redacted: KIND]`, so that what was said stays readable and that a key was given
stays known. Masking is stable (the same text gives the same one), idempotent, and looks at nothing
but the text. Two things find secrets: `secret_shapes` those that show by themselves, `secret_names`
those that are named.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory import secret_names, secret_shapes
from memory.errors import InvalidInput, RedactionFailed
from memory.models import Message, ToolCall
from memory.secret_shapes import Span

Redact = Callable[[str], str]
"""A text without its secrets; the same text when it has none."""

_MASK = re.compile(r"\[redacted: [^\[\]\n]{1,64}\]")
_ROUNDS = 8
"""What a mask uncovers is looked at again, so often at most."""


def mask(kind: str) -> str:
    return f"[redacted: {kind}]"


def only_masks(text: str) -> bool:
    """Whether a text says nothing but that there was a secret."""
    rest, masks = _MASK.subn("", text)
    return masks > 0 and not any(c.isalnum() for c in rest)


@dataclass(frozen=True)
class Pattern:
    """A secret of the caller's own: what `regex` finds, or its group `secret` where it has one.

    It is only tried on texts that hold one of `needs`, where there are any, as they are written.
    Raises InvalidInput when it cannot be compiled, or `kind` cannot stand in a mask.
    """

    kind: str
    regex: str
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if _MASK.fullmatch(mask(self.kind)) is None:
            raise InvalidInput(f"the kind {self.kind!r} of a secret cannot stand in a mask")
        try:
            re.compile(self.regex)
        except re.error as error:
            raise InvalidInput(f"the pattern for {self.kind} is no regex: {error}") from error

    def find(self, text: str) -> Iterator[Span]:
        if self.needs and not any(literal in text for literal in self.needs):
            return
        pattern = re.compile(self.regex)
        group = "secret" if "secret" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            if match.start(group) < match.end(group):
                yield Span(*match.span(group), self.kind)


@dataclass(frozen=True)
class Redactor:
    """What masks the secrets in texts and messages. A frozen value; calling it masks one text.

    `builtin` says whether it knows the usual secrets; `patterns` are the caller's own; `hook` is
    then asked about every text. A hook that raises, or gives no text, is RedactionFailed.
    """

    builtin: bool = True
    patterns: tuple[Pattern, ...] = ()
    hook: Redact | None = None

    @classmethod
    def of(cls, given: Redact | None, *, builtin: bool) -> Redactor:
        """A redactor as it is; any other function after the usual patterns, when `builtin`."""
        return given if isinstance(given, Redactor) else cls(builtin=builtin, hook=given)

    def extended(self, *patterns: Pattern) -> Redactor:
        """The same with more patterns, which come before the usual ones."""
        return replace(self, patterns=(*self.patterns, *patterns))

    def __call__(self, text: str) -> str:
        """The text with its secrets masked. Raises RedactionFailed."""
        if _HIDDEN_IN_JSON.match(text) and "\\u" in text:
            text = self._json_text(text)
        return self._hooked(self._masked(text))

    def message(self, message: Message) -> Message:
        """The message with its secrets masked: content, calls' arguments, names and metadata.

        Ids stay, and so does what is data and no text, such as images. Arguments that are JSON
        stay JSON. Raises RedactionFailed.
        """
        changes: dict[str, Any] = {}
        if isinstance(message.content, str):
            changes["content"] = self(message.content)
        elif message.content is not None:
            changes["content"] = tuple(self.json(part) for part in message.content)
        if message.name is not None:
            changes["name"] = self._name(message.name)
        if message.tool_calls:
            changes["tool_calls"] = tuple(self._call(call) for call in message.tool_calls)
        if message.metadata:
            changes["metadata"] = self.json(message.metadata)
        changed = {name: new for name, new in changes.items() if new != getattr(message, name)}
        return message.model_copy(update=changed) if changed else message

    def json(self, value: Any) -> Any:
        """A JSON value with the secrets in it masked, those included that their field names.

        Raises InvalidInput when it is nested too deep, RedactionFailed.
        """
        try:
            return self._json(value, "")
        except RecursionError as error:
            raise InvalidInput("nested too deep to be stored as JSON") from error

    def _json(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            return self.field(name, value)
        if isinstance(value, Mapping):
            return {
                self(key) if isinstance(key, str) else key: self._json(
                    inner, _name_of(value, key, name)
                )
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._item(value, at, name) for at in range(len(value))]
        if isinstance(value, int) and not isinstance(value, bool):
            said = str(value) if abs(value) < 10**19 else ""
            masked = self.field(name, said) if said else said
            return value if masked == said else masked
        return value

    def field(self, name: str, text: str) -> str:
        """The text in a field of this name."""
        if self.builtin and name and (span := secret_names.in_field(name, text)):
            return self._hooked(_covered(text, [span]))
        if (name in _IN_ORDER and _AS_BUILT.fullmatch(text)) or _is_data(text):
            return text
        return self(text)

    def _item(self, items: Sequence[Any], at: int, name: str) -> Any:
        """What stands in a list: of a pair's second its first is the name, and a flag before it."""
        item, before = items[at], items[at - 1] if at else None
        if self.builtin and isinstance(before, str) and isinstance(item, str):
            paired = at == 1 and len(items) == 2
            if (paired or before[:2] == "--") and (span := secret_names.beside(before, item)):
                item = _covered(item, [span])
        return self._json(item, name)

    def _call(self, call: ToolCall) -> ToolCall:
        name, arguments = self._name(call.name), self._json_text(call.arguments)
        if (name, arguments) == (call.name, call.arguments):
            return call
        return call.model_copy(update={"name": name, "arguments": arguments})

    def _json_text(self, text: str) -> str:
        """JSON stays as it is written where nothing is masked, and JSON where something is."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            return self._hooked(self._masked(text))
        masked = self.json(given)
        return text if masked == given else json.dumps(masked, ensure_ascii=False)

    def _name(self, name: str) -> str:
        """Providers refuse names with spaces and brackets in them."""
        masked = self(name)
        return name if masked == name else re.sub(r"[\s\[\]:<>|\\/]+", "_", masked)

    def _masked(self, text: str) -> str:
        for _ in range(_ROUNDS):
            spans = self._spans(text)
            if not spans:
                break
            text = _covered(text, spans)
        return text

    def _spans(self, text: str) -> list[Span]:
        found = [span for pattern in self.patterns for span in pattern.find(text)]
        if self.builtin:
            folded = secret_names.folded(text)
            found += secret_shapes.find(folded)
            found += secret_names.find(folded, secret_names.lower(folded))
        return _apart(found, [each.span() for each in _MASK.finditer(text)] if found else [])

    def _hooked(self, text: str) -> str:
        if self.hook is None:
            return text
        try:
            changed = self.hook(text)
        except Exception as error:
            problem = f"the redact function raised {type(error).__name__}"
        else:
            if isinstance(changed, str):
                return changed
            problem = f"the redact function gave {type(changed).__name__}, no text"
        raise RedactionFailed(problem)  # without its cause, whose words may be the secret


_HIDDEN_IN_JSON = re.compile(r"\s*[{\[]")
"""JSON, whose escapes may hide letters that a name is made of."""
_IN_ORDER = frozenset({"type", "role", "media_type", "mime_type", "detail", "tool_use_id"})
"""Fields of content parts that say how they are built."""
_AS_BUILT = re.compile(r"[a-z][a-z0-9_./+-]{0,63}|toolu_\w{1,64}|call_\w{1,64}")
"""What they say: a word of the provider's, or an id of its making."""
_DATA_URL = re.compile(
    r"data:[\w./+-]{0,127}(?:;[\w.=-]{1,64}){0,4};base64,[A-Za-z0-9+/_-]*+={0,2}"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{256,}+={0,2}")


def _is_data(text: str) -> bool:
    """Whether it is an image's, a sound's or a file's bytes, and nothing else."""
    if text.startswith("data:"):
        return _DATA_URL.fullmatch(text) is not None
    if len(text) < 256 or _BASE64.fullmatch(text) is None:
        return False
    return not secret_shapes.begins_token(text)


def _name_of(of: Mapping[Any, Any], key: Any, above: str) -> str:
    """The name of a field: its key, or what stands beside it in {"name": …, "value": …}."""
    if key in ("value", "Value"):
        beside = (of.get(each) for each in ("name", "key", "Name", "Key"))
        return next((named for named in beside if isinstance(named, str)), above)
    return key if isinstance(key, str) else above


_MANY, _CLOSE = 5_000, 32
"""Secrets in one text, and characters between two, from which on they are masked as one."""


def _apart(spans: list[Span], masks: list[tuple[int, int]]) -> list[Span]:
    """The spans in order, none over another or over a mask that is there already. Where there are
    more than anybody says, those that stand close are one."""
    apart: list[Span] = []
    close = _CLOSE if len(spans) > _MANY else 0
    first, upto, what = -1, -1 - close, ""
    for start, end, kind in sorted(spans, key=lambda each: (each.start, -each.end)):
        mask_before = bisect_left(masks, (end,)) - 1
        if mask_before >= 0 and masks[mask_before][1] > start:
            continue
        if start < upto + close:
            upto = max(upto, end)
            continue
        if first >= 0:
            apart.append(Span(first, upto, what))
        first, upto, what = start, end, kind
    return [*apart, Span(first, upto, what)] if first >= 0 else []


def _covered(text: str, spans: list[Span]) -> str:
    made, at = [], 0
    for start, end, kind in spans:
        made += [text[at:start], mask(kind)]
        at = end
    return "".join([*made, text[at:]])
