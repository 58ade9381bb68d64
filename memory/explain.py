"""Why a context is as it is, for people: plain text of at most 100 columns.

What it cost by section, what of it a provider's cache can use again, what is in it in the order of
its rank, what just missed it and why. All of it is read off the context alone, so that a snapshot
of last year is explained as well as the context of this turn.

Columns are counted in cells of a terminal: a Chinese character takes two. Stored text is shown as
one safe line each, so that it cannot be taken for a line of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from rich.cells import cell_len, chop_cells

from memory.terminal.console import line

if TYPE_CHECKING:  # models import this module
    from memory.budget import ContextPolicy, Section
    from memory.models import Context, Dropped, Item, TokenCount

T = TypeVar("T", "Item", "Dropped")

WIDTH: Final = 100
"""The longest line, in cells."""
LISTED: Final = 9
"""Turns, and near misses of one cause, that are listed one by one; of more, the first two and the
last ones."""
_EXCERPT: Final = 4 * WIDTH


def explain(context: Context, policy: ContextPolicy | None = None) -> str:
    """The explanation of a context. With the policy that shared it out, also who had spare room."""
    sections = (
        _budget(context, policy),
        _prefix(context),
        *_tiers(context),
        _near_misses(context.dropped),
        _remarks(context),
    )
    return "\n\n".join("\n".join(section) for section in map(list, sections) if section) + "\n"


# --- the budget --------------------------------------------------------------------------------

_NOTES: Final = {
    "tools": "the schema of the tools",
    "around": "days, headings and what else stands around them",
    "reserve": "room for the answer",
}
_SHORTENED: Final = "[…]"
"""The end of a summary that was shortened for this context."""
_SHARED: Final[tuple[Section, ...]] = ("pinned", "summary", "turns", "facts", "episodes")


def _budget(context: Context, policy: ContextPolicy | None) -> Iterator[str]:
    count = context.tokens
    left = count.budget - count.total
    yield f"{count.total:,} of {count.budget:,} tokens; {left:,} left"
    yield ""
    yield f"  {'section':<12}{'tokens':>10}{'share':>9}"
    for name, tokens in _rows(context):
        share = f"{100 * tokens / count.budget:.1f}%" if count.budget else ""
        note = "; ".join(_notes(name.strip(), context, policy))
        yield f"  {name:<12}{tokens:>10,}{share:>9}{'   ' if note else ''}{note}"


def _rows(context: Context) -> list[tuple[str, int]]:
    """Every section that has tokens, or would if it had room; those of memory indented below it."""
    count, cut = context.tokens, _cut(context)
    around = count.memory - count.facts - count.episodes
    rows = [(name, getattr(count, name)) for name in ("tools", "system", "pinned", "summary")]
    rows += [("turns", count.turns), ("memory", count.memory)]
    rows += [("  facts", count.facts), ("  episodes", count.episodes), ("  around", around)]
    rows += [("message", count.message), ("reserve", count.reserve)]
    return [(name, tokens) for name, tokens in rows if tokens or name.strip() in cut]


def _cut(context: Context) -> list[str]:
    """The section of each thing that did not fit."""
    missed = (each for each in context.dropped if each.cause == "over_budget")
    return [_section(each, context.tokens) for each in missed]


def _notes(name: str, context: Context, policy: ContextPolicy | None) -> Iterator[str]:
    """What a section holds, whether it wanted more, and what it had beyond its floor."""
    if name in _NOTES:
        yield _NOTES[name]
    if name not in _SHARED:
        return
    count = context.tokens
    cut = _cut(context).count(name)
    shortened = [item for item in context.items if item.text.endswith(_SHORTENED)]
    if any(_section(item, count) == name == "summary" for item in shortened):
        yield "shortened to what it may have"
    else:
        yield f"{cut} did not fit" if cut else "all that it wanted"
    if policy is not None:
        yield from _beyond_floor(name, count, policy)


def _beyond_floor(name: Section, count: TokenCount, policy: ContextPolicy) -> Iterator[str]:
    room = count.budget - count.tools - count.system - count.message - count.reserve
    share, tokens = policy.share(name), getattr(count, name)
    floor = policy.floors(room)[name]
    yield f"floor {floor:,}, ceiling {int(share.ceiling * room):,}"
    if tokens > floor:
        yield f"{tokens - floor:,} of them spare room"


def _section(thing: Item | Dropped, count: TokenCount) -> str:
    """The section of the budget that something is, or would have been, in."""
    if thing.tier == "working":
        return "summary" if thing.id.startswith("summary:") else "turns"
    if thing.tier == "episodic":
        return "episodes"
    ranked = thing.rank or not (count.pinned or getattr(thing, "cause", None) == "over_budget")
    return "facts" if ranked else "pinned"


# --- the prefix --------------------------------------------------------------------------------


def _prefix(context: Context) -> Iterator[str]:
    prefix = context.prefix
    if prefix is None:
        yield "Prefix: there is no context before this one to compare it with."
        return
    sent = max(1, context.tokens.total - context.tokens.reserve)
    yield from _wrapped(
        f"Prefix: {_counted(prefix.messages, 'whole message')} and "
        f"{prefix.tokens:,} tokens ({100 * prefix.tokens / sent:.0f}% of what is sent) are as in "
        f"snapshot {prefix.previous}."
    )
    if prefix.broken_by:
        yield from _wrapped(f"What differs first: {prefix.broken_by}")


# --- what is in it -----------------------------------------------------------------------------

_TIERS: Final = {
    "pinned": "Always present",
    "summary": "Summary",
    "turns": "Recent turns",
    "facts": "Facts",
    "episodes": "Episodes",
}


def _tiers(context: Context) -> Iterator[list[str]]:
    for section, title in _TIERS.items():
        found = [item for item in context.items if _section(item, context.tokens) == section]
        if found:
            order = ", best first" if any(item.rank for item in found) else ""
            tokens = _counted(sum(item.tokens for item in found), "token")
            yield [f"{title}{order} ({len(found)}, {tokens})", *_listed(section, found)]


def _listed(section: str, items: Sequence[Item]) -> Iterator[str]:
    if section == "turns":
        yield from _turns(items)
        return
    for item in sorted(items, key=lambda each: each.rank):
        yield _entry(item.rank, item.score, item.tokens, item.text)
        yield from _because(item.reason, item.scores)


def _turns(items: Sequence[Item]) -> Iterator[str]:
    def told(item: Item) -> Iterator[str]:
        yield _entry(0, 0.0, item.tokens, item.text)
        if item.reason != "recent turn":
            yield from _because(item.reason, item.scores)

    yield from _folded(items, told)


def _folded(things: Sequence[T], told: Callable[[T], Iterator[str]]) -> Iterator[str]:
    """Each as it is told; of many the first ones and the last, those between only counted."""
    many = len(things) > LISTED
    hidden = things[2 : 3 - LISTED] if many else ()
    for each in things[:2] if many else things:
        yield from told(each)
    if hidden:
        tokens = sum(each.tokens for each in hidden)
        yield _entry(0, 0.0, tokens, f"… {len(hidden)} more of them …")
    for each in things[3 - LISTED :] if many else ():
        yield from told(each)


def _entry(rank: int, score: float, tokens: int, text: str) -> str:
    """One line: place, score, tokens and the beginning of the text."""
    place = f"#{rank}" if rank else ""
    shown = f"{score:.2f}" if score or rank else ""
    head = f"  {place:>4} {shown:>5} {f'{tokens:,}' if tokens else '':>6}  "
    return head + _line(text, WIDTH - len(head))


def _because(reason: str, scores: Mapping[str, float]) -> Iterator[str]:
    """The reason, and the arms that made the score, each with its own: the strongest first, and
    last its age, which only takes off a little."""
    strongest = sorted(scores.items(), key=lambda each: (each[0] == _AGE, -each[1], each[0]))
    arms = [f"{arm} {score:.2f}" for arm, score in strongest if score]
    said = "; ".join(each for each in (reason, ", ".join(arms)) if each)
    if said:
        yield from _wrapped(said, indent=_INDENT)


_AGE: Final = "recency"
_INDENT: Final = 21
"""Cells before the text of an entry."""


# --- what is not -------------------------------------------------------------------------------

_CAUSES: Final[dict[str | None, str]] = {
    "over_budget": "Did not fit",
    "superseded": "Superseded",
    "out_of_time": "Not true now",
    "beyond_k": "Beyond the number that is shown",
    "below_floor": "Below the floor",
    "duplicate": "Said already",
    "among_turns": "Among the recent turns",
    "archived": "Archived",
    "not_asked": "Not asked for",
    "unsound": "Not acceptable to a provider",
    "replaced": "Replaced",
    None: "For other reasons",
}


def _near_misses(dropped: Sequence[Dropped]) -> Iterator[str]:
    if not dropped:
        return
    yield f"Near misses ({len(dropped)})"
    order = {cause: place for place, cause in enumerate(_CAUSES)}
    ordered = sorted(dropped, key=lambda each: order[each.cause])
    for cause, group in groupby(ordered, key=lambda each: each.cause):
        found = list(group)
        yield f"  {_CAUSES[cause]} ({len(found)})"
        yield from _folded(found, _missed)


def _missed(each: Dropped) -> Iterator[str]:
    missing = f"over budget by {_counted(each.missing, 'token')}: " if each.missing else ""
    yield _entry(each.rank, each.score, each.tokens, each.text)
    yield from _because(f"{each.tier}: {missing}{each.reason}", each.scores)


def _remarks(context: Context) -> Iterator[str]:
    if context.unavailable:
        yield f"Did not answer: {', '.join(context.unavailable)}"
    for warning in context.warnings:
        yield from _wrapped(f"Warning: {warning}")
    if context.snapshot_id:
        yield f"Snapshot {context.snapshot_id}"


# --- lines -------------------------------------------------------------------------------------


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _line(text: str, width: int) -> str:
    return line(text[:_EXCERPT], limit=width)


def _wrapped(text: str, *, indent: int = 0) -> Iterator[str]:
    """The text in as many lines as it needs, those after the first indented two cells more."""
    words: Iterable[str] = line(text[: 10 * _EXCERPT]).split(" ")
    current, margin = "", " " * indent
    for word in words:
        for piece in chop_cells(word, WIDTH - indent - 2):
            longer = f"{current} {piece}" if current else piece
            if cell_len(margin + longer) <= WIDTH:
                current = longer
                continue
            yield margin + current
            current, margin = piece, " " * (indent + 2)
    if current:
        yield margin + current
