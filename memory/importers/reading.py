"""Bytes to JSON values: one document, or one value a line.

Lines end at a line feed and nowhere else: U+2028 and its like are ordinary characters of a text.
A byte order mark, carriage returns and empty lines are no errors. A line that is cut off, is not
UTF-8 or is not JSON is a `Problem` with its number; the lines around it are good. NaN and
Infinity are not JSON here either, because they could never be written back.
"""

from __future__ import annotations

import codecs
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from memory.errors import ImportRefused
from memory.importers.values import Problem

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Line(NamedTuple):
    """A JSON value, and the number of its line from 1."""

    number: int
    value: Any


class Document(NamedTuple):
    """The file is one JSON value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Lines:
    """The file has one JSON value a line; `total` lines are not blank."""

    path: Path
    total: int

    def __iter__(self) -> Iterator[Line | Problem]:
        for number, data in _numbered(self.path):
            try:
                yield Line(number, _parse(data))
            except ValueError as error:
                yield Problem(where=f"line {number}", reason=_why(error, data))


def load(path: Path) -> list[Document | Lines]:
    """What the file holds: one document, or lines; of a zip archive, its conversations*.json.

    Raises ImportRefused when there is nothing in it that is JSON, OSError when it cannot be read.
    """
    if zipfile.is_zipfile(path):
        return _archived(path)
    head = _first_lines(path, 2)
    if not head:
        raise ImportRefused(f"{path.name}: the file is empty")
    if len(head) == 2 and _is_json(head[0]):
        return [Lines(path, _count(path))]
    try:
        return [Document(_parse(path.read_bytes()))]
    except ValueError as error:
        if any(_is_json(data) for _, data in _numbered(path)):
            return [Lines(path, _count(path))]
        raise ImportRefused(f"{path.name}: not JSON: {_why(error, b'')}") from error


def _archived(path: Path) -> list[Document | Lines]:
    found: list[Document | Lines] = []
    with zipfile.ZipFile(path) as archive:
        names = sorted(
            name
            for name in archive.namelist()
            if Path(name).name.startswith("conversations") and name.endswith(".json")
        )
        for name in names:
            try:
                found.append(Document(_parse(archive.read(name))))
            except ValueError as error:
                raise ImportRefused(f"{path.name}: {name} is not JSON: {error}") from error
    if not found:
        raise ImportRefused(f"{path.name}: no conversations.json in this archive")
    return found


def _numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        if file.read(2) in _UTF16_MARKS:
            text = path.read_bytes().decode("utf-16", "replace")
            yield from _not_blank(line.encode() for line in text.split("\n"))
            return
        file.seek(0)
        yield from _not_blank(file)


def _not_blank(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        data = line.removeprefix(codecs.BOM_UTF8).strip() if number == 1 else line.strip()
        if data:
            yield number, data


def _first_lines(path: Path, count: int) -> list[bytes]:
    first = []
    for _, data in _numbered(path):
        first.append(data)
        if len(first) == count:
            break
    return first


def _count(path: Path) -> int:
    return sum(1 for _ in _numbered(path))


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(_parse(data), dict | list)
    except ValueError:
        return False


def _parse(data: bytes) -> Any:
    """The JSON value in these bytes; ValueError when there is none."""
    text = data.decode("utf-16" if data[:2] in _UTF16_MARKS else "utf-8-sig")
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _why(error: ValueError, data: bytes) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        if data and error.pos >= len(error.doc) - 1:
            return "cut off in the middle"
        where = f"line {error.lineno}, column" if error.lineno > 1 else "column"
        return f"{error.msg} at {where} {error.colno}"
    return str(error)
