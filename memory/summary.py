"""The running summary of what has left the window, made without a language model.

It is extractive and says so: a heading that names the range it covers, then one line of excerpt
for each thing that was said or done, under its day.

    Excerpts of messages 2-41 (2026-01-02 to 2026-01-05), shortened:
    On 2026-01-02:
    - user: Can you find me a quiet place near the station? I …
    · assistant used search (near: station)
    · search returned: 3 places: …

Extending takes the lines of the summary so far, adds those of the new messages and makes all of
them smaller until they fit: first every line is cut shorter, then lines go, tool traffic before
what people said and the old before the new. So a summary never holds another one, and two hundred
of them in a row stay under the same limit. Every excerpt is folded onto one line, so nothing that
was said can look like the heading or like somebody else's line, and what tools did is told as
prose (`memory/prose.py`).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple, Protocol

from memory.errors import EmptyInput, InvalidInput
from memory.models import Message, RecordedMessage, Role, Summary, ToolCall
from memory.prose import PARSED, answered, names_of_calls, parts_beside, used

CountText = Callable[[str], int]
"""Tokens of a text."""

_WIDTHS = (480, 340, 240, 170, 120, 85, 60, 42)
"""Characters of one excerpt, tried from wide to narrow. The newest request has four times that."""
_LAST_WIDTHS = (_WIDTHS[-1], 16)
"""Tried when even the newest request alone does not fit."""
_FULL = 4 * _WIDTHS[0]
_NAME = 40
"""Characters of a speaker's or a tool's name."""

_DAY = r"\d{4}-\d{2}-\d{2}"
_HEADING = re.compile(
    rf"Excerpts of (messages \d+-\d+)(?: \(({_DAY})(?: to ({_DAY}))?\))?(, shortened)?:"
)
_ON = re.compile(rf"On (?P<day>{_DAY}):")
_SPEECH, _TOOL = "- ", "· "
_ONLY_RANGE = re.compile(r"\(Messages \d+-\d+\)")
_LITERAL_CALL = re.compile(r"(?P<who>.+?) called (?P<tool>\S+) (?P<arguments>\{.*)")
"""How a call stands in summaries that older versions wrote."""


class Summariser(Protocol):
    """One way to retell what leaves the window."""

    async def extend(
        self, previous: Summary | None, messages: Sequence[RecordedMessage], *, limit: int
    ) -> Summary:
        """The summary of what `previous` covers and of messages after it, at most `limit` tokens.

        It goes on right after `previous`, and covers the first of the messages at least, with the
        rest of its group; how many more it takes at once is its own choice.
        """
        ...


class _Line(NamedTuple):
    """One excerpt. `day` is '' when nobody knows it any more."""

    day: str
    text: str
    is_tool_traffic: bool = False
    is_newest_request: bool = False

    def cut(self, width: int) -> _Line:
        return self._replace(text=_cut(self.text, 4 * width if self.is_newest_request else width))


class _Excerpts(NamedTuple):
    """What a summary says, taken apart. `days` has the first and the last day of all that it
    covers, and perhaps some between; it is empty when they are not known."""

    covers: str
    days: tuple[str, ...]
    lines: tuple[_Line, ...]
    is_shortened: bool

    def cut(self, width: int) -> _Excerpts:
        lines = tuple(line.cut(width) for line in self.lines)
        return self._replace(lines=lines, is_shortened=self.is_shortened or lines != self.lines)

    def alike(self) -> _Excerpts:
        """With no line treated better than the others."""
        return self._replace(
            lines=tuple(line._replace(is_newest_request=False) for line in self.lines)
        )

    def without(self, places: Container[int]) -> _Excerpts:
        kept = tuple(line for place, line in enumerate(self.lines) if place not in places)
        return self._replace(lines=kept, is_shortened=self.is_shortened or kept != self.lines)


_NOTHING = _Excerpts("", (), (), False)


class Excerpts:
    """The summariser that quotes: at once, and without anybody who could fail."""

    def __init__(self, count: CountText) -> None:
        self._count = count

    async def extend(
        self, previous: Summary | None, messages: Sequence[RecordedMessage], *, limit: int
    ) -> Summary:
        return extend(previous, messages, limit=limit, count=self._count)


def extend(
    previous: Summary | None,
    messages: Sequence[RecordedMessage],
    *,
    limit: int,
    count: CountText,
) -> Summary:
    """The summary of what `previous` covers and of `messages` after it, at most `limit` tokens.

    Messages that `previous` covers already change nothing. `tokens` is `count` of the text. With
    a limit too small for even the range, the text is empty; the range is right all the same.

    Raises InvalidInput when messages are missing between the two or among the messages, and
    EmptyInput when there is nothing to summarise.
    """
    new = after(previous, messages)
    if previous is not None and not new and count(previous.text) <= limit:
        return previous

    covers_from = previous.covers_from if previous else new[0].seq
    covers_to = new[-1].seq if new else previous.covers_to if previous else 0
    old = _taken_apart(previous.text) if previous else _NOTHING
    lines = (*old.lines, *_lines_of(new, messages))
    everything = _Excerpts(
        covers=f"messages {covers_from}-{covers_to}",
        days=(*old.days, *map(_day, new)) if old.days or previous is None else (),
        lines=lines,
        is_shortened=old.is_shortened or any(line.text.endswith("…") for line in lines),
    )
    text = _fitted(everything, limit, count)
    return Summary(text=text, covers_from=covers_from, covers_to=covers_to, tokens=count(text))


def after(previous: Summary | None, messages: Sequence[RecordedMessage]) -> list[RecordedMessage]:
    """The messages that `previous` does not cover. Raises as `extend` does."""
    covered = previous.covers_to if previous else None
    new = [message for message in messages if covered is None or message.seq > covered]
    if previous is None and not new:
        raise EmptyInput("there is nothing to summarise")
    for message in new:
        if covered is not None and message.seq != covered + 1:
            raise InvalidInput(f"message {message.seq} cannot follow {covered} in a summary")
        covered = message.seq
    return new


def without_heading(text: str) -> str:
    """What a summary says, without the heading that names what it covers."""
    heading, _, rest = text.partition("\n")
    return rest if _HEADING.fullmatch(heading) or _ONLY_RANGE.fullmatch(heading) else text


# --- from messages to lines --------------------------------------------------------------------


def _lines_of(
    messages: Sequence[RecordedMessage], known: Sequence[RecordedMessage]
) -> Iterator[_Line]:
    """The lines of `messages`. `known` has the calls that their results answer."""
    names = names_of_calls(known)
    requests = [message.seq for message in messages if message.role is Role.USER]
    for message in messages:
        day, speaker = _day(message), _speaker(message)
        if message.role is Role.TOOL:
            tool = names.get(message.tool_call_id or "") or message.name or "a tool"
            said = _said(message, answered(message.text[: PARSED + 1]))
            yield _Line(day, f"{_one_line(tool, _NAME)} returned: {said or 'nothing'}", True)
            continue
        if said := _said(message, message.text):
            is_newest = message.seq in requests[-1:]
            yield _Line(day, f"{speaker}: {said}", is_newest_request=is_newest)
        for call in message.tool_calls:
            yield _Line(day, f"{speaker} used {_one_line(used(call))}", True)


def _day(message: RecordedMessage) -> str:
    return message.event_time.date().isoformat()


def _speaker(message: Message) -> str:
    return _one_line(message.name or "", _NAME) or message.role.value


def _said(message: Message, text: str) -> str:
    """The text on one line; parts of other kinds are named."""
    kinds = [_one_line(kind, _NAME) for kind in parts_beside(message)]
    return " ".join(filter(None, [_one_line(text), *kinds]))


def _one_line(text: str, width: int = _FULL) -> str:
    """The start of the text with white space folded; no more of a long one is read."""
    read = 4 * width
    folded = " ".join(text[:read].split())
    return _cut(folded, width) if len(folded) > width or len(text) <= read else f"{folded} …"


def _cut(text: str, width: int) -> str:
    """At most `width` characters, with … where something is missing.

    Cut at the end of a word if one is near, and never inside a character that is put together of
    several (accents, joined emoji).
    """
    if len(text) <= width:
        return text
    end = width - 1
    space = text.rfind(" ", max(0, end - 16), end + 1)
    if space > 0:
        end = space
    while end > 0 and (_belongs_to_the_one_before(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end].rstrip(" …") + "…"


def _belongs_to_the_one_before(character: str) -> bool:
    """Combining marks, joiners, variation selectors and skin tones."""
    return (
        character in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or unicodedata.combining(character) > 0
    )


# --- from a text to lines and back -------------------------------------------------------------


def _put_together(excerpts: _Excerpts) -> str:
    first, last = min(excerpts.days, default=""), max(excerpts.days, default="")
    dates = first if first == last else f"{first} to {last}"
    shortened = ", shortened" if excerpts.is_shortened else ""
    told = [f"Excerpts of {excerpts.covers}{f' ({dates})' if dates else ''}{shortened}:"]
    day = first if first == last else ""
    for line in excerpts.lines:
        if line.day != day and line.day:
            day = line.day
            told.append(f"On {day}:")
        told.append(f"{_TOOL if line.is_tool_traffic else _SPEECH}{line.text}")
    return "\n".join(told)


def _taken_apart(text: str) -> _Excerpts:
    """The inverse of `_put_together`. Of prose by somebody else, every line is a line of speech."""
    covers, days, day, is_shortened = "", (), "", text == ""
    lines: list[_Line] = []
    for written in filter(None, map(str.strip, text.split("\n"))):
        if heading := _HEADING.fullmatch(written):
            covers, first, last, shortened = heading.groups()
            days = tuple(filter(None, (first, last)))
            day = first if first and not last else ""
            is_shortened = bool(shortened)
        elif _ONLY_RANGE.fullmatch(written):
            is_shortened = True
        elif on := _ON.fullmatch(written):
            day = on["day"]
        else:
            said = _one_line(written.removeprefix(_SPEECH).removeprefix(_TOOL))
            is_tool_traffic = written.startswith(_TOOL)
            lines.append(_Line(day, _as_prose(said) if is_tool_traffic else said, is_tool_traffic))
    return _Excerpts(covers, days, tuple(lines), is_shortened)


def _as_prose(line: str) -> str:
    """The line with a call that stands there literally told as prose."""
    literal = _LITERAL_CALL.fullmatch(line)
    if literal is None:
        return line
    call = ToolCall(id="", name=literal["tool"], arguments=literal["arguments"])
    return f"{literal['who']} used {_one_line(used(call))}"


# --- making it fit -----------------------------------------------------------------------------


def _fitted(excerpts: _Excerpts, limit: int, count: CountText) -> str:
    """The fullest text of these that has at most `limit` tokens; '' when none has."""

    def fits(smaller: _Excerpts) -> bool:
        return count(_put_together(smaller)) <= limit

    for cut in (excerpts, *map(excerpts.cut, _WIDTHS)):
        if fits(cut):
            return _put_together(cut)
    narrow = excerpts.cut(_WIDTHS[-1])
    for narrowed in (narrow, *map(narrow.alike().cut, _LAST_WIDTHS)):
        age = len(narrowed.lines)
        least_first = sorted(range(age), key=lambda n: _worth(narrowed.lines[n], age - n))
        fewer = [narrowed.without({*least_first[:n]}) for n in range(age)]
        enough = bisect_left(fewer, True, key=fits)
        if enough < len(fewer):
            return _put_together(fewer[enough])
    heading, only_range = narrow._replace(lines=(), is_shortened=True), f"(M{excerpts.covers[1:]})"
    for least in (_put_together(heading), only_range):
        if count(least) <= limit:
            return least
    return ""


def _worth(line: _Line, age: int) -> tuple[bool, int]:
    """What is worth least goes first: the oldest, and tool traffic as if it were three times as
    old; never the newest request before anything else."""
    return line.is_newest_request, -age * (3 if line.is_tool_traffic else 1)
