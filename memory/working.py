"""Working memory: the current conversation of each session, in Redis.

    {tenant:user:session}:window   list   [tokens,message] as JSON, oldest first
    {tenant:user:session}:meta     hash   owner    whose it is, checked at every read
                                          lead     how many of the first entries are instructions
                                                   that opened the session and stay for ever
                                          first    seq of the entry after the lead
                                          last     seq of the newest message
                                          tokens   of all entries
                                          summary  of the messages before `first`
                                          expired  when an earlier part of the session expired

The names are quoted so that no two sessions share a key, and stand in one hash tag so that a
cluster keeps both keys on one node. Everything that changes is one script, so that Redis does it
wholly or not at all: no step between two commands can be seen, and none can be killed in.

The list always holds exactly `lead` entries and then the seqs from `first` to `last`. Where that
does not hold, because a server evicted one of the keys, there is nothing here, and the session is
rebuilt from the journal. Both keys expire at one moment, set in the script that appends.

No cancellation reaches the driver: a caller that gives up leaves its command to finish, so that
no answer is left on a connection for somebody else to read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha1
from typing import Any

from redis.exceptions import NoScriptError, RedisClusterException, RedisError

from memory import codec
from memory.errors import ConfigurationError, Corrupt, InvalidInput, TierUnavailable
from memory.models import Health, RecordedMessage, Scope, Summary, Window, valid_name
from memory.redis_url import Client, open_redis, where
from memory.times import from_micros, to_micros
from memory.window import instructions, lead

__all__ = ["WorkingMemory", "open_redis"]

_TIER = "working"
_QUOTED = str.maketrans({"%": "%25", ":": "%3A", "{": "%7B", "}": "%7D"})


class _Script:
    """Lua that Redis runs in one piece, known to the server by its hash."""

    def __init__(self, body: str) -> None:
        self.text = _COMMON + body
        self.sha = sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_COMMON = """
local window, meta, owner = KEYS[1], KEYS[2], ARGV[1]
local whose = redis.call('HGET', meta, 'owner')
if whose and whose ~= owner then return -1 end

-- lead, first and last of what is there; nothing when nothing is, or when it is not whole
local function found()
  local it = redis.call('HMGET', meta, 'lead', 'first', 'last')
  if not it[3] then return end
  local lead, first, last = tonumber(it[1]), tonumber(it[2]), tonumber(it[3])
  if redis.call('LLEN', window) ~= lead + last - first + 1 then return end
  return lead, first, last
end

local function live(ttl)
  if ttl == 0 then
    redis.call('PERSIST', window)
    redis.call('PERSIST', meta)
    return
  end
  local now = redis.call('TIME')
  local moment = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + ttl)
  redis.call('PEXPIREAT', window, moment)
  redis.call('PEXPIREAT', meta, moment)
end
"""
_FOREIGN = -1

# ARGV: owner, ttl in ms, seq of the first message, how many, how many of them could be lead,
# then the entries.
_APPEND = _Script("""
local ttl, seq = tonumber(ARGV[2]), tonumber(ARGV[3])
local size, opening = tonumber(ARGV[4]), tonumber(ARGV[5])
local lead, first, last = found()
if not last then
  if seq ~= 1 then return 0 end
  redis.call('DEL', window, meta)
  redis.call('HSET', meta, 'owner', owner, 'tokens', 0)
  lead, first, last = 0, 1, 0
end
if seq > last + 1 then return 0 end
if seq + size - 1 <= last then return 1 end
local tokens = 0
for place = last - seq + 2, size do
  local entry = ARGV[5 + place]
  redis.call('RPUSH', window, entry)
  tokens = tokens + tonumber(string.match(entry, '^%[(%d+),'))
  last = last + 1
  if lead == last - 1 and first == last and place <= opening then
    lead, first = lead + 1, first + 1
  end
end
redis.call('HSET', meta, 'lead', lead, 'first', first, 'last', last)
redis.call('HINCRBY', meta, 'tokens', tokens)
live(ttl)
return 1
""")

# ARGV: owner; the tokens that the newest entries must have before older ones may be left out; how
# many after the lead are wanted; each '' for all. The newest are looked at by 64, so that a group
# is hardly ever torn.
_READ = _Script("""
local lead = found()
if not lead then return false end
local it = redis.call('HMGET', meta, 'owner', 'last', 'tokens', 'summary', 'expired')
local most, from, to = tonumber(ARGV[2]), lead, -1
if tonumber(ARGV[3]) then to = lead + ARGV[3] - 1 end
if most and tonumber(it[3]) > most then
  local tokens = 0
  from = redis.call('LLEN', window)
  while from > lead and tokens <= most do
    local start = math.max(lead, from - 64)
    for _, entry in ipairs(redis.call('LRANGE', window, start, from - 1)) do
      tokens = tokens + tonumber(string.match(entry, '^%[(%d+),'))
    end
    from = start
  end
end
local entries = {}
if lead > 0 then entries = redis.call('LRANGE', window, 0, lead - 1) end
for _, entry in ipairs(redis.call('LRANGE', window, from, to)) do
  entries[#entries + 1] = entry
end
it[6] = from - lead
it[7] = '[' .. table.concat(entries, ',') .. ']'
return it
""")

# ARGV: owner, the first seq that was read, the summary that was read, the new summary, then the
# hash of each message that it covers. The lead is written over the last of what goes, so that the
# list never becomes empty and loses its expiry on the way.
_FOLD = _Script("""
local lead, first, last = found()
local size = #ARGV - 4
if not last or first ~= tonumber(ARGV[2]) or first + size - 1 > last then return 0 end
if (redis.call('HGET', meta, 'summary') or '') ~= ARGV[3] then return 0 end
local tokens = 0
for place, entry in ipairs(redis.call('LRANGE', window, lead, lead + size - 1)) do
  local comma = string.find(entry, ',', 1, true)
  if not comma or redis.sha1hex(string.sub(entry, comma + 1, -2)) ~= ARGV[4 + place] then
    return 0
  end
  tokens = tokens + tonumber(string.sub(entry, 2, comma - 1))
end
for place = lead - 1, 0, -1 do
  redis.call('LSET', window, size + place, redis.call('LINDEX', window, place))
end
redis.call('LTRIM', window, size, -1)
redis.call('HSET', meta, 'first', first + size, 'summary', ARGV[4])
redis.call('HINCRBY', meta, 'tokens', -tokens)
return 1
""")

# ARGV: owner, ttl in ms, lead, first, last, tokens, summary, expired, then the entries.
_REBUILD = _Script("""
local first, last = tonumber(ARGV[4]), tonumber(ARGV[5])
local _, first_there, last_there = found()
if last_there and (last_there > last or (last_there == last and first_there > first)) then
  return 0
end
redis.call('DEL', window, meta)
redis.call('HSET', meta, 'owner', owner, 'lead', ARGV[3], 'first', first, 'last', last,
  'tokens', ARGV[6], 'summary', ARGV[7], 'expired', ARGV[8])
for place = 9, #ARGV do redis.call('RPUSH', window, ARGV[place]) end
live(tonumber(ARGV[2]))
return 1
""")


class WorkingMemory:
    """The windows of all sessions in one Redis. Raises TierUnavailable when it does not answer.

    `ttl` is how long a session lives after its newest message; None: for ever. Reading does not
    make it live longer, nor does folding.
    """

    def __init__(self, redis: Client, *, ttl: timedelta | None) -> None:
        if ttl is not None and ttl < timedelta(milliseconds=1):
            raise ConfigurationError(f"a session cannot live for {ttl}")
        self._redis = redis
        self._ttl = 0 if ttl is None else ttl // timedelta(milliseconds=1)
        self._under_way: set[asyncio.Future[Any]] = set()

    async def append(
        self,
        scope: Scope,
        session: str,
        messages: Sequence[RecordedMessage],
        tokens: Sequence[int],
    ) -> bool:
        """Put messages at the end of the window; `tokens` has the size of each.

        Messages that are there already, by seq, change nothing. False, and nothing is put, when
        messages are missing between what is there and these: the caller then rebuilds.
        """
        entries = _entries(session, messages, tokens)
        if not messages:
            return True
        first = messages[0].seq
        if any(message.seq != first + place for place, message in enumerate(messages)):
            return False
        opening = instructions(messages)
        return bool(
            await self._run(
                _APPEND, scope, session, [self._ttl, first, len(entries), opening, *entries]
            )
        )

    async def read(
        self,
        scope: Scope,
        session: str,
        *,
        enough: int | None = None,
        oldest: int | None = None,
    ) -> Window | None:
        """The window as it is now, all of one moment; None when there is none.

        With `enough`, of a window with more tokens than that only the lead and the newest messages,
        which have so many or more; `unsummarised` says how many are left out. With `oldest`, only
        the lead and so many messages after it. `tokens` is what all messages were said to have when
        they came, and the summary's.

        Raises Corrupt when what is there cannot be read or is not this session's; `clear` it then,
        and rebuild.
        """
        wanted = [b"" if given is None else given for given in (enough, oldest)]
        answer = await self._run(_READ, scope, session, wanted)
        if answer is None:
            return None
        owner, last, tokens, summary, expired, left_out, entries = answer
        if owner != _owner(scope, session):
            raise Corrupt(f"the window of session {session!r} is another session's")
        try:
            kept = Summary.from_json(codec.decode(summary)) if summary else None
            return Window(
                messages=tuple(RecordedMessage.from_json(row[1]) for row in codec.decode(entries)),
                summary=kept,
                last_seq=int(last),
                tokens=int(tokens) + (kept.tokens if kept else 0),
                expired_at=from_micros(int(expired)) if expired else None,
                unsummarised=int(left_out),
            )
        except (InvalidInput, TypeError, ValueError, LookupError) as error:
            raise Corrupt(f"the window of session {session!r} cannot be read: {error}") from error

    async def fold(self, scope: Scope, session: str, *, read: Window, summary: Summary) -> bool:
        """Put `summary` in the place of the messages that it covers.

        Exactly these leave the window, and only if it still starts as it did in `read`; newer
        messages may have come meanwhile. False, and nothing changes, if it does not.

        Raises InvalidInput for a summary of other messages than the first ones after the lead.
        """
        body = read.messages[lead(read.messages) :]
        covered = [message for message in body if message.seq <= summary.covers_to]
        if not covered or covered[-1].seq != summary.covers_to:
            raise InvalidInput(f"messages up to {summary.covers_to} are not what was read")
        before = read.summary
        if summary.covers_from != (before.covers_from if before else covered[0].seq):
            raise InvalidInput(f"a summary from message {summary.covers_from} on leaves a gap")
        return bool(
            await self._run(
                _FOLD,
                scope,
                session,
                [
                    covered[0].seq,
                    codec.encode(before.to_json()) if before else b"",
                    codec.encode(summary.to_json()),
                    *(_hash(codec.encode(message.to_json())) for message in covered),
                ],
            )
        )

    async def rebuild(
        self, scope: Scope, session: str, window: Window, tokens: Sequence[int]
    ) -> None:
        """Put this window in the place of what is there, unless that is newer.

        Newer is what knows of a newer message, or has more of the same messages folded. `tokens`
        has the size of each message. The session lives as long as after a new message.

        Raises InvalidInput for a window with messages missing in the middle.
        """
        entries = _entries(session, window.messages, tokens)
        front = lead(window.messages)
        body = window.messages[front:]
        first = window.last_seq + 1 - len(body)
        if any(message.seq != first + place for place, message in enumerate(body)):
            raise InvalidInput(f"the messages of this window do not end at {window.last_seq}")
        if window.summary is not None and window.summary.covers_to != first - 1:
            raise InvalidInput(f"the summary does not end before message {first}")
        if window.last_seq == 0:
            return
        await self._run(
            _REBUILD,
            scope,
            session,
            [
                self._ttl,
                front,
                first,
                window.last_seq,
                sum(tokens),
                codec.encode(window.summary.to_json()) if window.summary else b"",
                to_micros(window.expired_at) if window.expired_at else b"",
                *entries,
            ],
        )

    async def clear(self, scope: Scope, session: str) -> None:
        """Nothing of the session is here any more. Clearing nothing changes nothing."""
        await self._finish(self._redis.unlink(*_keys(scope, session)))

    async def health(self) -> Health:
        """Whether Redis answers and can be written to; never raises TierUnavailable."""
        try:
            about = await self._finish(self._redis.execute_command("INFO"))
        except TierUnavailable as error:
            return Health(part=_TIER, ok=False, where=where(self._redis), problem=str(error))
        return _health(about, where(self._redis))

    async def _run(self, script: _Script, scope: Scope, session: str, given: list[Any]) -> Any:
        answer = await self._finish(
            self._evaluate(script, [*_keys(scope, session), _owner(scope, session), *given])
        )
        if answer == _FOREIGN:
            raise Corrupt(f"the window of session {session!r} is another session's")
        return answer

    async def _evaluate(self, script: _Script, given: list[Any]) -> Any:
        try:
            return await self._redis.evalsha(script.sha, 2, *given)
        except NoScriptError:
            return await self._redis.eval(script.text, 2, *given)

    async def _finish(self, command: Any) -> Any:
        """The command's answer. When the caller is cancelled, the command still ends by itself."""
        under_way = asyncio.ensure_future(command)
        self._under_way.add(under_way)
        under_way.add_done_callback(self._under_way.discard)
        with _answering():
            return await asyncio.shield(under_way)


@contextmanager
def _answering() -> Iterator[None]:
    """The driver's errors as ours, with the cause kept."""
    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:
        raise TierUnavailable(_TIER, str(error) or type(error).__name__) from error


def _keys(scope: Scope, session: str) -> tuple[bytes, bytes]:
    names = (scope.tenant, scope.user, valid_name("session", session))
    tag = "{" + ":".join(name.translate(_QUOTED) for name in names) + "}"
    return f"{tag}:window".encode(), f"{tag}:meta".encode()


def _owner(scope: Scope, session: str) -> bytes:
    return codec.encode([scope.tenant, scope.user, session])


def _entries(
    session: str, messages: Sequence[RecordedMessage], tokens: Sequence[int]
) -> list[bytes]:
    if len(messages) != len(tokens):
        raise InvalidInput(f"{len(messages)} messages have {len(tokens)} token counts")
    if any(message.session != session for message in messages):
        raise InvalidInput(f"a message of another session cannot be in session {session!r}")
    return [
        b"[%d,%b]" % (size, codec.encode(message.to_json()))
        for message, size in zip(messages, tokens, strict=True)
    ]


def _hash(body: bytes) -> str:
    return sha1(body, usedforsecurity=False).hexdigest()


def _health(about: Any, place: str) -> Health:
    name = about.get("server_name", "redis")
    version = about.get(f"{name}_version", about.get("redis_version", ""))
    problem = ""
    if about.get("role", "master") != "master":
        problem = "this is a replica, which cannot be written to: give the primary's URL"
    return Health(
        part=_TIER, ok=not problem, version=f"{name} {version}", where=place, problem=problem
    )
