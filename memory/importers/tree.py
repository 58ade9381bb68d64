"""The branch of a tree of messages that was on the screen."""

from __future__ import annotations

from collections.abc import Mapping


def branch(parents: Mapping[str, str | None], leaf: str) -> list[str]:
    """The ids from the root to `leaf`. An unknown parent or a cycle ends the walk."""
    walked: dict[str, None] = {}
    step: str | None = leaf
    while step is not None and step in parents and step not in walked:
        walked[step] = None
        step = parents[step]
    return list(reversed(walked))
