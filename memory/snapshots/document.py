"""A context as bytes, in pieces that stay the same from turn to turn. Pure.

The bytes are `codec.encode` of one JSON document:

    definitions   the tools that were given; not there when there were none
    entries   [{"message": …, "item": …}]   every message; its item where it came from the window
    found     [{"id", "text", "tier"}]   the other items, then what was dropped
    schema    the version of this shape
    state     arms (the names of scores, a list for each set of them), items (how many of `found`
              are), lead (how many of those stand before the items of entries), prefix, tokens,
              unavailable, warnings
    why       [[score, scores, reason, tokens, rank]]   one for each of `found`;
              of what was dropped also [… cause, by, missing], without what is at its default;
              scores: which of `arms` they are of, then their values

What changes with every query (scores and reasons) is apart from what does not (texts), and the
memory block is cut before each of its entries, so that a turn adds little to what is stored. The
pieces are cut anywhere and only ever joined again: that gives the bytes, whatever the schema.

Schema 2 had no arms, and scores by name in `why`. Schema 1 had no definitions, lead and prefix
either, and four values of each in `why`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from memory.codec import culprit, decode, encode
from memory.errors import Corrupt, InvalidInput, SchemaTooNew
from memory.models import Context, Dropped, Item, JsonObject
from memory.packing import BEGINS

SCHEMA: Final = 3
"""The version of the document that is written. Older ones are read, newer ones refused."""

PLAIN: Final = "p"
PACKED: Final = "z"
"""Roles of a part: bytes as they are, or deflated."""

_QUICKLY: Final = 3
"""Of zlib's levels: the usual one takes three times as long for a tenth less."""

Part = tuple[str, bytes]


def document_of(context: Context) -> dict[str, Any]:
    """The document of a context; its `snapshot_id` is not in it, for it names the bytes."""
    entries, items, lead = _entries(context)
    found: list[Item | Dropped] = [*items, *context.dropped]
    arms = {names: number for number, names in enumerate(dict.fromkeys(map(_arms, found)))}
    state: JsonObject = {
        "arms": [list(names) for names in arms],
        "items": len(items),
        "lead": lead,
        "tokens": context.tokens.to_json(),
        "unavailable": list(context.unavailable),
        "warnings": list(context.warnings),
    }
    if context.prefix is not None:
        state["prefix"] = context.prefix.to_json()
    document = {
        "entries": entries,
        "found": [{"id": each.id, "text": each.text, "tier": each.tier} for each in found],
        "schema": SCHEMA,
        "state": state,
        "why": [_why(each, arms) for each in found],
    }
    if context.tools:
        document["definitions"] = list(context.tools)
    return document


def _arms(each: Item | Dropped) -> tuple[str, ...]:
    return tuple(each.scores)


def _why(each: Item | Dropped, arms: Mapping[tuple[str, ...], int]) -> list[Any]:
    """Why it is there or not: what changes from question to question."""
    scores = [arms[_arms(each)], *each.scores.values()]
    row = [each.score, scores, each.reason, each.tokens, each.rank]
    if isinstance(each, Dropped):
        row += [each.cause, each.by, each.missing]
        while len(row) > _SHORTEST and row[-1] in (None, 0):
            row.pop()
    return row


_SHORTEST: Final = 4


def parts_of(context: Context) -> list[Part]:
    """The document in parts for a store that keeps equal parts once; joined, they are its bytes.

    Raises InvalidInput that names the field which JSON cannot hold.
    """
    document = document_of(context)
    try:
        entries = [encode(entry) for entry in document["entries"]]
        found = encode(document["found"])[1:-1]
        state, why = encode(document["state"]), encode(document["why"])
        tools = encode(document["definitions"]) if context.tools else b""
    except InvalidInput as error:
        raise InvalidInput(
            f"the context cannot be stored: {culprit(document) or error}; nothing was stored"
        ) from error
    parts = [(PLAIN, piece) for piece in _pieces(tools, entries, found)]
    tail = b'],"schema":%d,"state":%b,"why":%b}' % (SCHEMA, state, why)
    packed = zlib.compress(tail, _QUICKLY)
    return [*parts, (PACKED, packed) if len(packed) < len(tail) else (PLAIN, tail)]


def bytes_of(parts: Sequence[Part]) -> bytes:
    """The document's bytes. Raises Corrupt for a part that cannot be unpacked."""
    try:
        return b"".join(zlib.decompress(data) if role == PACKED else data for role, data in parts)
    except zlib.error as error:
        raise Corrupt(f"a part of a snapshot cannot be unpacked: {error}") from error


def context_of(data: bytes, *, snapshot_id: str | None = None) -> Context:
    """The context that the bytes were made of. Nothing but the bytes is needed.

    Raises SchemaTooNew with both versions, and Corrupt for what is no such document.
    """
    document = decode(data)
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, int) or schema < 1:
        raise Corrupt(f"snapshot {snapshot_id!r} has no schema version")
    if schema > SCHEMA:
        raise SchemaTooNew(
            f"snapshot {snapshot_id!r} has schema {schema}; this version reads up to {SCHEMA}"
        )
    try:
        return _restored(document, snapshot_id)
    except (InvalidInput, LookupError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(f"snapshot {snapshot_id!r} has not the shape of schema {schema}") from error


# --- messages and their items ------------------------------------------------------------------


def _entries(context: Context) -> tuple[list[JsonObject], list[Item], int]:
    """Each message, with its item as long as items come in the messages' order; the other items,
    and how many of these come before them."""
    items = context.items
    lead = next((n for n, item in enumerate(items) if item.tier == "working"), 0)
    waiting = list(items[lead:])
    waiting.reverse()
    entries: list[JsonObject] = []
    for message in context.messages:
        entry: JsonObject = {"message": message}
        if waiting and waiting[-1].tier == "working":
            text, item = text_of(message), waiting[-1]
            if item.text == text:
                entry["item"] = _without_text(waiting.pop())
            elif item.id.startswith("summary:") and item.text in text:
                entry["item"] = waiting.pop().to_json()
        entries.append(entry)
    waiting.reverse()
    return entries, [*items[:lead], *waiting], lead


def _without_text(item: Item) -> JsonObject:
    """What `to_json` gives but for the text, made quickly: a context has hundreds."""
    data: JsonObject = {"id": item.id, "tier": item.tier, "tokens": item.tokens}
    if item.rank:
        data["rank"] = item.rank
    if item.reason:
        data["reason"] = item.reason
    if item.score:
        data["score"] = item.score
    if item.scores:
        data["scores"] = dict(item.scores)
    return data


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a provider's message: its content, or its parts' texts by lines."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _restored(document: Mapping[str, Any], snapshot_id: str | None) -> Context:
    state = document["state"]
    arms = state.get("arms")
    rows = [
        {**what, **_reasons(why, arms)}
        for what, why in zip(document["found"], document["why"], strict=True)
    ]
    lead = state.get("lead", 0)
    beside = [
        {"text": text_of(entry["message"]), **entry["item"]}
        for entry in document["entries"]
        if "item" in entry
    ]
    shown, dropped = rows[: state["items"]], rows[state["items"] :]
    return Context.from_json(
        {
            "messages": [entry["message"] for entry in document["entries"]],
            "tools": document.get("definitions", []),
            "tokens": state["tokens"],
            "items": [*shown[:lead], *beside, *shown[lead:]],
            "dropped": dropped,
            "unavailable": state["unavailable"],
            "warnings": state["warnings"],
            "prefix": state.get("prefix"),
            "snapshot_id": snapshot_id,
        }
    )


def _reasons(why: Sequence[Any], arms: Sequence[Sequence[str]] | None) -> JsonObject:
    told = dict(zip(_ROW, why, strict=False))
    if arms is not None:
        which, *values = told["scores"]
        told["scores"] = dict(zip(arms[which], values, strict=True))
    return told


_ROW: Final = ("score", "scores", "reason", "tokens", "rank", "cause", "by", "missing")
"""What each value of a row in `why` is."""


# --- pieces ------------------------------------------------------------------------------------

_MEMORY: Final = b'{"message":{"content":"<memory-'
_ENTRY: Final = re.compile(rb"\\n(?=%b)" % BEGINS.encode())
"""The line end, as JSON has it, before each entry."""
_FOUND: Final = b',{"id":'
"""Never within a text, where a quotation mark has a backslash before it."""


def _pieces(tools: bytes, entries: Sequence[bytes], found: bytes) -> list[bytes]:
    """Everything before the schema. Commas lead, so that what follows changes nothing."""
    opening = b'{"entries":['
    pieces: list[bytes] = []
    if tools:
        pieces.append(b'{"definitions":%b' % tools)
        opening = b',"entries":['
    for number, entry in enumerate(entries):
        lead = b"," if number else opening
        first, *rest = _ENTRY.split(entry) if entry.startswith(_MEMORY) else [entry]
        pieces += [lead + first, *(b"\\n" + line for line in rest)]
    if not entries:
        pieces.append(opening)
    pieces[-1] += b'],"found":['
    first, *rest = found.split(_FOUND)
    return [*pieces, first, *(_FOUND + each for each in rest)] if found else pieces
