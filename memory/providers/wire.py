"""JSON on its way out: how it is looked into, and the copy of it that is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from memory import codec
from memory.errors import InvalidInput

JsonObject = dict[str, JsonValue]

RAW_ARGUMENTS: Final = "_arguments"
"""The key under which arguments that are no JSON object stand in an Anthropic `input`."""


class Ids:
    """Ids of calls as a provider takes them: each different, whatever they were before."""

    def __init__(self, accepted: re.Pattern[str]) -> None:
        self._accepted = accepted
        self._taken: set[str] = set()
        self._times: dict[str, int] = {}

    def of(self, id: str) -> str:
        """Itself where it can be; else a short hash of it and of how often it was there already,
        of STAND_IN characters."""
        sent = id
        while sent in self._taken or not self._accepted.fullmatch(sent):
            times = self._times[id] = self._times.get(id, 0) + 1
            sent = f"call_{codec.content_id('call', id, str(times))[:8]}"
        self._taken.add(sent)
        return sent


STAND_IN: Final = 13
"""Characters of an id that stands for another."""


_UNFIT_FOR_TOOL: Final = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(name: str, limit: int) -> str:
    """A name that a call can have in a request."""
    return _UNFIT_FOR_TOOL.sub("_", name)[:limit] or "unnamed"


def definition(tool: Mapping[str, JsonValue], provider: str, schema_key: str) -> JsonObject:
    """Name, description and schema of a tool, with the schema under this key."""
    held = fields(tool.get("function")) or tool
    name = held.get("name")
    kind = tool.get("type", "function")
    if not isinstance(name, str) or kind not in ("function", "custom"):
        raise InvalidInput(f"{provider} has no tool of type {kind!r} and name {name!r}")
    schemas = (held.get(key) for key in ("input_schema", "parameters", "inputSchema"))
    schema = next((fields(found) for found in schemas if found), {})
    made: JsonObject = {"name": name}
    if isinstance(description := held.get("description"), str):
        made["description"] = description
    made[schema_key] = schema or {"type": "object", "properties": {}}
    if held.get("strict") is True:
        made["strict"] = True
    return made


def sendable(request: JsonObject) -> JsonObject:
    """A copy that can be written as UTF-8. Keys keep their order. Raises InvalidInput."""
    text = written(request)
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    copied: JsonObject = json.loads(text)
    return copied


_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def compact(value: JsonValue) -> str:
    """The JSON text without spaces, as it reaches a model."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def written(value: JsonValue) -> str:
    """The JSON text, with every character as itself. Raises InvalidInput."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"cannot be sent as JSON: {codec.culprit(value) or error}") from error


def listed(value: JsonValue | tuple[JsonValue, ...]) -> Sequence[JsonValue]:
    """A list as it is, a text as one of one, nothing as none."""
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def fields(value: object) -> JsonObject:
    """The object that it is; without fields when it is none."""
    return value if isinstance(value, dict) else {}


def string(value: object) -> str:
    """The text that it is; '' when it is none."""
    return value if isinstance(value, str) else ""
