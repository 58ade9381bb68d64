"""The fixtures of tests/behaviour, on the local stack unless a case is about servers."""

from __future__ import annotations

import pytest

from tests.behaviour.conftest import clock, embedder, memory, open_memory, urls_of

__all__ = ["clock", "embedder", "memory", "open_memory", "urls"]


@pytest.fixture(params=["local"])
def urls(request: pytest.FixtureRequest) -> dict[str, str]:
    """Where the stores of this test are: a journal of its own, the other stores shared."""
    return urls_of(request, request.param)
