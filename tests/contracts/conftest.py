"""A journal of its own for each test, in either store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memory.journal import Journal

TIMEOUT = timedelta(seconds=60)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'journal.db'}"


@pytest.fixture
async def journal(url: str) -> AsyncIterator[Journal]:
    async with Journal.open(url, timeout=TIMEOUT) as opened:
        yield opened
