"""Another process that uses a journal: what the journal's tests start, and kill.

append URL TENANT USER SESSION WRITER [COUNT]  turns of two messages, without end or COUNT;
                                               says each turn's keys once they are durable
lease URL NAME      takes the lease, says so, and holds it until it is killed
open URL            waits for a line, opens, says the schema's version
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from sqlalchemy import select

from memory.journal import Journal
from memory.journal.schema import schema_versions
from memory.models import Message, Role, Scope

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIMEOUT = timedelta(seconds=60)


async def append(url: str, tenant: str, user: str, session: str, writer: str, turns: str) -> None:
    scope = Scope.of(tenant, user)
    async with Journal.open(url, timeout=TIMEOUT) as journal:
        for turn in range(int(turns)) if turns else count():
            keys = f"{writer}.{turn}.user", f"{writer}.{turn}.assistant"
            said = (
                (keys[0], Message(role=Role.USER, content=f"question {turn} of {writer}")),
                (keys[1], Message(role=Role.ASSISTANT, content=f"answer {turn} to {writer}")),
            )
            await journal.append_messages(scope, session, said, agent=writer, now=NOW)
            say(*keys)


async def hold_lease(url: str, name: str) -> None:
    async with Journal.open(url, timeout=TIMEOUT) as journal, journal.lease(name):
        say("held")
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def open_when_told(url: str) -> None:
    say("ready")
    sys.stdin.readline()
    async with Journal.open(url, timeout=TIMEOUT) as journal, journal.read() as connection:
        say(*[str(version) for version in await connection.scalars(select(schema_versions))])


def say(*words: str) -> None:
    print(*words, flush=True)


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case ["append", url, tenant, user, session, writer, *turns]:
            asyncio.run(append(url, tenant, user, session, writer, "".join(turns)))
        case ["lease", url, name]:
            asyncio.run(hold_lease(url, name))
        case ["open", url]:
            asyncio.run(open_when_told(url))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
