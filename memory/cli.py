"""`trimem`: the command line. Thin: every command calls the front door and shows what it gives.

Exit codes: 0 done, 1 an error of ours or a part that is not well, 2 wrong usage, 3 done in part
(a file with lines that could not be read, a night that failed for some users, a tier that did not
answer), 4 somebody else is at it. Errors are one line on stderr.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from consolidation import consolidate as run_night
from memory.codec import decode
from memory.demo import run as play
from memory.doctor import doctor as examine
from memory.doctor import llm_named
from memory.embedding import open_embedder
from memory.errors import AgentMemoryError, AlreadyRunning, InvalidInput
from memory.importers.importing import import_file
from memory.local import default_folder, local_stack, stack_status, stop_stack
from memory.memory import Memory, UserMemory
from memory.models import Context, Scope
from memory.settings import Settings
from memory.terminal import console, show
from memory.terminal.waiting import until_settled
from memory.times import as_utc

T = TypeVar("T")

DONE, FAILED, USAGE, PARTIAL, BUSY = 0, 1, 2, 3, 4
"""Exit codes; what each means stands above."""

app = typer.Typer(
    name="trimem",
    help="A three-tier memory for LLM agents: working, episodic and semantic.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
snapshots_app = typer.Typer(
    help="Every context that was built: listed, shown, compared, replayed.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
app.add_typer(snapshots_app, name="snapshots")


@app.callback()
@snapshots_app.callback()
def _help_when_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def main() -> NoReturn:
    """Run the command line and exit with its code. Errors of ours are one line on stderr."""
    console.prepare_streams()
    logging.getLogger("neo4j").addHandler(logging.NullHandler())  # else each retry is on stderr
    try:
        code = app(prog_name="trimem", standalone_mode=False)
    except typer.Exit as ended:
        code = ended.exit_code
    except typer.Abort:
        code = FAILED
    except AlreadyRunning as error:
        console.fail(str(error))
        code = BUSY
    except (AgentMemoryError, OSError) as error:
        console.fail(str(error))
        code = FAILED
    except KeyboardInterrupt:
        console.fail("interrupted")
        code = 130
    except Exception as error:
        code = _usage(error)
    sys.exit(code or DONE)


def _usage(error: Exception) -> int:
    """Wrong usage in one line; anything else is a bug and keeps its traceback.

    Usage errors are told by what they can do: some versions of typer carry a click of their own.
    """
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        raise error
    console.fail(f"{format_message()} (see `trimem --help`)")
    return USAGE


# --- arguments ---------------------------------------------------------------------------------


def _moment(text: str) -> datetime:
    try:
        return as_utc(text)
    except InvalidInput as error:
        raise typer.BadParameter(f"{text!r} is not a date such as 2026-01-31 or a time") from error


Json = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
Home = Annotated[
    Path | None,
    typer.Option("--home", help="The data folder. Default: TRIMEM_HOME, else the user's."),
]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Default: TRIMEM_TENANT.")]
User = Annotated[str, typer.Option("--user", "-u", envvar="TRIMEM_USER", help="Whose memory.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Say why: the budget, what is in it, what is not.")
]
SessionName = Annotated[str | None, typer.Option("--session", "-s", help="One conversation only.")]
Agent = Annotated[str | None, typer.Option("--agent", help="The agent that takes part.")]
When = Annotated[
    datetime | None,
    typer.Option(parser=_moment, metavar="TIME", help="A date or time, UTC unless it says so."),
]


# --- remember and ask --------------------------------------------------------------------------


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The file to read.")],
    user: User,
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="For messages without a session of their own."),
    ] = None,
    agent: Agent = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing.")] = False,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Remember a file: JSON lines, OpenAI, Anthropic, ChatGPT, Claude or LangChain.

    Running it again adds only what is new. Exit code 3 when parts could not be read.
    """

    async def work() -> int:
        async with _opened(home) as memory:
            with console.bar("recording", shown=_bars(as_json)) as moved:
                report = await import_file(
                    memory,
                    file,
                    user,
                    tenant=tenant,
                    session=session,
                    agent=agent,
                    dry_run=dry_run,
                    progress=moved,
                )
            await until_settled(memory, "remembering", shown=_bars(as_json))
        if as_json:
            console.write_json(report)
        else:
            show.imported(console.people(), report)
        return DONE if report.complete else PARTIAL

    _run(work())


@app.command()
def context(
    message: Annotated[str, typer.Argument(help="What the user says next.")],
    user: User,
    session: Annotated[str, typer.Option("--session", "-s", help="The conversation.")] = "cli",
    system: Annotated[str | None, typer.Option("--system", help="The system text.")] = None,
    budget: Annotated[int | None, typer.Option("--budget", help="Tokens in all.")] = None,
    reserve: Annotated[int | None, typer.Option("--reserve", help="Tokens for the answer.")] = None,
    k: Annotated[int | None, typer.Option("-k", help="Episodes at most.")] = None,
    agent: Agent = None,
    explain: Explain = False,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Build the context for a message, and show what is in it and why. Records nothing said."""

    async def work() -> int:
        async with _opened(home) as memory:
            built = (
                await memory.user(user, tenant=tenant)
                .session(session, agent=agent)
                .build_context(message, system=system, budget=budget, reserve=reserve, k=k)
            )
        _context(built, explain=explain, as_json=as_json)
        return DONE

    _run(work())


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: User,
    k: Annotated[int | None, typer.Option("-k", help="Episodes at most.")] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", help="""A filter as JSON, such as '{"role": "user"}'."""),
    ] = None,
    session: SessionName = None,
    agent: Agent = None,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Find episodes and facts."""
    conditions = _conditions(where)

    async def work() -> int:
        async with _opened(home) as memory:
            found = await memory.user(user, tenant=tenant).recall(
                query, k=k, where=conditions, session=session, agent=agent
            )
        if as_json:
            console.write_json(found)
        else:
            show.recall(console.people(), found)
        return PARTIAL if found.unavailable else DONE

    _run(work())


@app.command()
def facts(
    user: User,
    about: Annotated[str | None, typer.Argument(help="A name; everything without one.")] = None,
    predicate: Annotated[str | None, typer.Option("--predicate", help="One relation only.")] = None,
    as_of: When = None,
    known_at: When = None,
    history: Annotated[bool, typer.Option("--history", help="Every version ever.")] = False,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What is known: true now or at --as-of, as it was believed now or at --known-at."""

    async def work() -> int:
        async with _opened(home) as memory:
            found = await memory.user(user, tenant=tenant).facts(
                about, predicate=predicate, as_of=as_of, known_at=known_at, history=history
            )
        if as_json:
            console.write_json(found)
        else:
            show.facts(console.people(), found, history=history)
        return DONE

    _run(work())


@app.command()
def sessions(user: User, tenant: Tenant = None, home: Home = None, as_json: Json = False) -> None:
    """A user's conversations, the newest first."""

    async def work() -> int:
        async with _opened(home) as memory:
            found = await memory.user(user, tenant=tenant).sessions()
        if as_json:
            console.write_json(found)
        else:
            show.sessions(console.people(), found)
        return DONE

    _run(work())


# --- snapshots ---------------------------------------------------------------------------------

SnapshotId = Annotated[str, typer.Argument(metavar="ID", help="A snapshot, from `log`.")]


@snapshots_app.command("log")
def snapshots_log(
    user: User,
    session: SessionName = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many.")] = 20,
    before: Annotated[str | None, typer.Option("--before", help="Older than this one.")] = None,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """The contexts that were built, the newest first."""

    async def work() -> int:
        async with _user(home, user, tenant) as one:
            found = await one.snapshots(session, limit=limit, before=before)
        if as_json:
            console.write_json(found)
        else:
            show.snapshots(console.people(), found)
        return DONE

    _run(work())


@snapshots_app.command("show")
def snapshots_show(
    snapshot_id: SnapshotId,
    user: User,
    explain: Explain = False,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """A context as it was built."""

    async def work() -> int:
        async with _user(home, user, tenant) as one:
            built = await one.snapshot(snapshot_id)
        _context(built, explain=explain, as_json=as_json)
        return DONE

    _run(work())


@snapshots_app.command("diff")
def snapshots_diff(
    before: SnapshotId,
    after: SnapshotId,
    user: User,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What changed from one context to another."""

    async def work() -> int:
        async with _user(home, user, tenant) as one:
            change = await one.diff(before, after)
        if as_json:
            console.write_json(change)
        else:
            show.diff(console.people(), change)
        return DONE

    _run(work())


@snapshots_app.command("replay")
def snapshots_replay(
    snapshot_id: SnapshotId,
    user: User,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write exactly the recorded bytes to stdout.")
    ] = False,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """The recorded bytes of a context, proved by their hash, from the journal alone."""

    async def work() -> int:
        async with _user(home, user, tenant) as one:
            replayed = await one.replay(snapshot_id)
        if raw:
            sys.stdout.buffer.write(replayed.data)
        elif as_json:
            console.write_json(
                {
                    "snapshot_id": replayed.snapshot_id,
                    "session": replayed.session,
                    "created_at": replayed.created_at.isoformat(),
                    "digest": replayed.digest,
                    "verified": replayed.verified,
                    "bytes": len(replayed.data),
                    "document": decode(replayed.data),
                }
            )
        else:
            show.replay(console.people(), replayed)
        return DONE

    _run(work())


# --- the stack and the night -------------------------------------------------------------------


@app.command()
def demo(
    home: Annotated[
        Path | None, typer.Option("--home", help="Default: .demo in the current folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Six weeks of two people in under a minute: all tiers, a night, a replay.

    With --json the show goes to stderr, and what came of it to stdout. Exit code 1 when the replay
    is not what was built.
    """

    async def work() -> int:
        played = await play(home, sys.stderr if as_json else sys.stdout)
        if as_json:
            console.write_json(played)
        return DONE if played.identical else FAILED

    _run(work())


@app.command()
def up(home: Home = None, as_json: Json = False) -> None:
    """Start the local stack. It stops when nobody has used it for a while."""

    async def work() -> int:
        settings = Settings()
        folder = _folder(home, settings)
        async with local_stack(folder, idle=settings.idle, timeout=settings.timeout):
            found = await stack_status(folder)
        _healths(found, as_json)
        if not as_json:
            minutes = settings.idle / timedelta(minutes=1)
            console.people().print(
                f"in {folder}; stops {minutes:g} minutes after its last use", style="dim"
            )
        return DONE if all(part.ok for part in found) else FAILED

    _run(work())


@app.command()
def status(home: Home = None, as_json: Json = False) -> None:
    """What of the local stack is running. Starts and asks nothing. Exit code 1 when a part is
    not."""

    async def work() -> int:
        settings = _settings(home)
        found = await stack_status(_folder(home, settings))
        named = await llm_named(settings)
        _healths([*found, *named], as_json)
        return DONE if found and all(part.ok for part in (*found, *named)) else FAILED

    _run(work())


@app.command()
def down(home: Home = None, as_json: Json = False) -> None:
    """Stop the local stack. What was remembered stays."""

    async def work() -> int:
        stopped = await stop_stack(_folder(home, Settings()))
        _healths(stopped, as_json)
        return DONE

    _run(work())


@app.command()
def doctor(home: Home = None, as_json: Json = False) -> None:
    """Each part: whether it answers, its version, and what is wrong. Exit code 1 when one is."""

    async def work() -> int:
        found = await examine(_settings(home))
        _healths(found, as_json)
        return DONE if all(part.ok for part in found) else FAILED

    _run(work())


@app.command()
def consolidate(
    user: Annotated[str | None, typer.Option("--user", "-u", help="Default: everybody.")] = None,
    now: When = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, but change nothing.")] = False,
    tenant: Tenant = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Run a night: archive what has faded, make facts of what keeps recurring, and have the
    language model, if there is one, read what was said for more.

    Exit code 4 when a night is running already, 3 when it failed for some users.
    """

    async def work() -> int:
        async with _opened(home) as memory:
            scopes = [memory.user(user, tenant=tenant).scope] if user else None
            with console.bar("users", shown=_bars(as_json)) as moved:

                def told(done: int, total: int, scope: Scope) -> None:
                    moved(done, total)

                report = await run_night(
                    memory,
                    now=now or datetime.now(UTC),
                    scopes=scopes,
                    dry_run=dry_run,
                    progress=told,
                )
        if as_json:
            console.write_json(report)
        else:
            show.night(console.people(), report)
        return PARTIAL if report.failures or report.problems else DONE

    _run(work())


@app.command()
def reembed(
    to: Annotated[
        str | None,
        typer.Option("--to", help="Another embedder, to be filled while that of today serves."),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Embed every episode again with the embedder of the settings. Safe to stop and run again.

    To change the embedder without a gap: `trimem reembed --to EMBEDDER` while everything runs, as
    often as you like; then TRIMEM_EMBEDDER=EMBEDDER for everything; then `trimem reembed`, which
    embeds what came in between and drops what the former one has embedded.
    """

    async def work() -> int:
        async with AsyncExitStack() as stack:
            memory = await stack.enter_async_context(_opened(home))
            moved = stack.enter_context(console.bar("episodes", shown=_bars(as_json)))
            if to is None:
                repaired = await memory.reembed(moved)
            else:
                chosen = memory.settings.model_copy(update={"embedder": to})
                embedder = await open_embedder(chosen)
                stack.push_async_callback(embedder.close)
                repaired = await memory.prepare(embedder, moved)
        if as_json:
            console.write_json(repaired)
        else:
            console.people().print(f"{repaired.embedded} episodes embedded")
            if repaired.still_flawed:
                console.fail(f"{repaired.still_flawed} could not be embedded")
        return PARTIAL if repaired.still_flawed else DONE

    _run(work())


@app.command()
def relayout(
    shards: Annotated[int, typer.Option("--shards", min=1, help="How many there are to be.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Share users out among another number of collections of vectors, while others read and write.
    Safe to stop; run it again until it is done."""

    async def work() -> int:
        async with _opened(home) as memory:
            with console.bar("vectors", shown=_bars(as_json)) as moved:
                copied = await memory.relayout(shards, moved)
        if as_json:
            console.write_json({"shards": shards, "copied": copied})
        else:
            console.people().print(f"{shards} shards; {copied} vectors copied")
        return DONE

    _run(work())


@app.command()
def repair(home: Home = None, as_json: Json = False) -> None:
    """Make up for what the index of vectors has lost, or never got. Changes nothing when all is
    well. The night does it too."""

    async def work() -> int:
        async with _opened(home) as memory:
            repaired = await memory.repair()
        if as_json:
            console.write_json(repaired)
        else:
            console.people().print(
                f"{repaired.put_back} vectors put back, {repaired.taken_out} taken out, "
                f"{repaired.embedded} episodes embedded"
            )
            if repaired.still_flawed:
                console.fail(f"{repaired.still_flawed} could not be embedded")
        return PARTIAL if repaired.still_flawed else DONE

    _run(work())


@app.command()
def rebuild(home: Home = None, as_json: Json = False) -> None:
    """Make all three tiers again from the journal. Embeds nothing; safe to stop and run again."""

    async def work() -> int:
        async with _opened(home) as memory:
            with console.bar("users", shown=_bars(as_json)) as moved:
                await memory.rebuild(moved)
            done = await memory.settled(timedelta(hours=12))
        if as_json:
            console.write_json({"rebuilt": done})
        else:
            console.people().print("made again from the journal" if done else "not all could be")
        return DONE if done else PARTIAL

    _run(work())


# --- doing it ----------------------------------------------------------------------------------


def _run(work: Coroutine[Any, Any, int]) -> None:
    """Run a command to its exit code."""
    raise typer.Exit(asyncio.run(work))


def _settings(home: Path | None) -> Settings:
    settings = Settings()
    return settings if home is None else settings.model_copy(update={"home": home})


def _folder(home: Path | None, settings: Settings) -> Path:
    return default_folder(home or settings.home)


@asynccontextmanager
async def _opened(home: Path | None) -> AsyncIterator[Memory]:
    async with Memory.open(settings=_settings(home)) as memory:
        yield memory


@asynccontextmanager
async def _user(home: Path | None, user: str, tenant: str | None) -> AsyncIterator[UserMemory]:
    async with _opened(home) as memory:
        yield memory.user(user, tenant=tenant)


def _bars(as_json: bool) -> bool | None:
    """Whether bars are shown: never beside JSON, else where there is a terminal."""
    return False if as_json else None


def _conditions(where: str | None) -> dict[str, Any] | None:
    if where is None:
        return None
    try:
        conditions = json.loads(where)
    except ValueError as error:
        raise typer.BadParameter(f"--where is not JSON: {error}") from error
    if not isinstance(conditions, dict):
        raise typer.BadParameter("--where must be a JSON object")
    return conditions


def _context(built: Context, *, explain: bool, as_json: bool) -> None:
    """JSON has everything; people get the messages and a short account, or the whole of why."""
    if as_json:
        console.write_json(built)
    elif explain:
        sys.stdout.write(built.explain())
    else:
        show.context(console.people(), built)


def _healths(found: Any, as_json: bool) -> None:
    if as_json:
        console.write_json(found)
    else:
        show.health(console.people(), found)
