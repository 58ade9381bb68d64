"""The values that cross every boundary: frozen, typed, and JSON both ways.

Nothing here does I/O, reads a clock or draws a random number. Collections are tuples. Times are
aware and in UTC. `to_json` gives what `memory.codec.encode` takes; `from_json` is its inverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    ValidationError,
    field_validator,
    model_validator,
)

from memory.errors import EmptyInput, InvalidInput, InvalidScope
from memory.explain import explain
from memory.fence import strip_fences
from memory.providers import anthropic_request, openai_request
from memory.providers.parts import is_blank, says_nothing
from memory.times import as_utc, iso

if TYPE_CHECKING:  # it is made of models
    from memory.budget import ContextPolicy

JsonObject = dict[str, JsonValue]
Moment = Annotated[datetime, BeforeValidator(as_utc), PlainSerializer(iso, return_type=str)]

NAME_LIMIT = 512
"""The longest tenant, user, agent or session name, in characters."""


class Value(BaseModel):
    """A frozen value. Unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def to_json(self) -> JsonObject:
        """A JSON object with every field that is not at its default. Its arrays are lists."""
        data = self.model_dump(mode="python", exclude_defaults=True)  # "json" refuses surrogates
        return {name: _listed(value) for name, value in data.items()}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The value that `to_json` gave. Raises InvalidInput for any other shape."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise InvalidInput(f"not a {cls.__name__}: {_first_problem(error)}") from error

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """The value with these fields, every one of them, which are known to be right.

        Nothing is checked: for what was a value of ours before, where many are made in a turn.
        """
        made, put = cls.__new__(cls), object.__setattr__
        put(made, "__dict__", fields)
        put(made, "__pydantic_fields_set__", cls._all_fields)  # one for all: nothing changes it
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made

    _all_fields: ClassVar[set[str]] = set()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls._all_fields = set(cls.model_fields)


def _listed(value: Any) -> Any:
    """The value with lists for its tuples: pydantic's JsonValue takes no others."""
    if isinstance(value, tuple | list):
        return [_listed(each) for each in value]
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    return value


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "value"
    return f"{where}: {problem['msg']}"


# --- who ---------------------------------------------------------------------------------------


def valid_name(kind: str, name: object) -> str:
    """`name` when it can be a tenant, user, agent or session; raises InvalidScope otherwise.

    Any script is welcome. Refused: anything but a string, blank, over NAME_LIMIT characters,
    surrounding white space, `*`, control characters and lone surrogates.
    """
    if not isinstance(name, str):
        raise InvalidScope(f"{kind} must be a string, not {type(name).__name__}")
    if not name.strip():
        raise InvalidScope(f"{kind} must not be empty")
    if len(name) > NAME_LIMIT:
        raise InvalidScope(f"{kind} has {len(name)} characters; the limit is {NAME_LIMIT}")
    if name != name.strip() or name == "*":
        raise InvalidScope(f"{kind} {name!r}: no wildcard and no surrounding white space")
    if any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) <= 0xDFFF for c in name):
        raise InvalidScope(f"{kind} {name!r} has control characters or lone surrogates")
    return name


class Scope(Value):
    """Whose memory it is. There is no read or write without one."""

    tenant: str
    user: str

    @field_validator("tenant", "user", mode="before")
    @classmethod
    def _is_name(cls, value: object, info: Any) -> str:
        try:
            return valid_name(info.field_name, value)
        except InvalidScope as error:  # pydantic only wraps ValueError; keep the type
            raise ValueError(str(error)) from error

    @classmethod
    def of(cls, tenant: object, user: object) -> Scope:
        """The scope of a user in a tenant. Raises InvalidScope."""
        return cls(tenant=valid_name("tenant", tenant), user=valid_name("user", user))


# --- what was said -----------------------------------------------------------------------------


class Role(StrEnum):
    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


FRAMEWORK = "framework"
"""The name in a message's metadata under which `memory.integrations` keeps what a framework said
beyond the message. It is no part of the message's episodes."""


class ToolCall(Value):
    """A call that the assistant made. `arguments` is the JSON text as the provider gave it."""

    id: str
    name: str
    arguments: str = "{}"


class Message(Value):
    """One message, as a caller gives it.

    `content` is text, or the provider's content parts kept as they came (unknown kinds too), or
    None for a message that only calls tools. `name` is the speaker where a conversation has
    several. `event_time` is when it was said; None means now. Empty messages are refused.
    """

    role: Role
    content: str | tuple[JsonObject, ...] | None = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    event_time: Moment | None = None
    metadata: JsonObject = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """All text of the content, parts joined by new lines; '' when there is none."""
        if isinstance(self.content, str):
            return self.content
        texts = [part.get("text") for part in self.content or ()]
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def is_empty(self) -> bool:
        """Nothing in it: no text that anybody could see, no part of another kind, no tool call."""
        if self.tool_calls or self.role is Role.TOOL:
            return False
        if isinstance(self.content, str) or self.content is None:
            return is_blank(self.content or "")
        return all(map(says_nothing, self.content))

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.role is Role.TOOL and not self.tool_call_id:
            raise ValueError("a tool message needs the tool_call_id that it answers")
        if self.tool_calls and self.role is not Role.ASSISTANT:
            raise ValueError(f"tool_calls belong to the assistant, not to {self.role.value}")
        return self

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """A message of an OpenAI-style mapping (also `tool_calls` with a nested `function`).

        Fields that are not of the shape are refused. Raises InvalidInput.
        """
        if not isinstance(given, Mapping):
            raise InvalidInput(f"not a {cls.__name__}: {type(given).__name__} is no mapping")
        data = dict(given)
        if isinstance(data.get("content"), list):
            data["content"] = tuple(data["content"])
        if data.get("tool_calls") is not None:
            data["tool_calls"] = tuple(_flat_call(call) for call in data["tool_calls"])
        else:
            data.pop("tool_calls", None)
        return cls.from_json(data)

    def require_content(self) -> Self:
        """Itself, or EmptyInput when there is nothing in it."""
        if self.is_empty:
            raise EmptyInput(f"the {self.role.value} message is empty")
        return self


def _flat_call(call: Any) -> Any:
    """A tool call without OpenAI's `function` nesting; anything else as it is, to be judged."""
    if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
        function = call["function"]
        return {
            "id": call.get("id"),
            "name": function.get("name"),
            "arguments": function.get("arguments", "{}"),
        }
    return call


class RecordedMessage(Message):
    """A message in the journal: it has an identity, a place in its session, and two times.

    `seq` counts from 1 without gaps within (tenant, user, session). `event_time` is when it was
    said, `recorded_at` when it was learnt.
    """

    id: str
    session: str
    seq: int
    agent: str | None = None
    event_time: Moment
    recorded_at: Moment


class Summary(Value):
    """A running summary of messages `covers_from`..`covers_to` (seq, both inclusive).

    `method` says honestly how it was made: 'extract' quotes, 'llm' retells.
    """

    text: str
    covers_from: int
    covers_to: int
    method: Literal["extract", "llm"] = "extract"
    tokens: int = 0


class Window(Value):
    """Working memory of one session: the summary, then the messages after it, oldest first.

    `last_seq` is the newest message that the window knows of; 0 for an empty session.
    `expired_at` is set when an earlier part of the session ran out of its time to live.
    `unsummarised` messages between the summary and these do not fit and wait to be summarised;
    `problem` says why they still wait, in words of ours, where that is known.
    """

    messages: tuple[RecordedMessage, ...] = ()
    summary: Summary | None = None
    last_seq: int = 0
    tokens: int = 0
    expired_at: Moment | None = None
    unsummarised: int = 0
    problem: str = ""


class Episode(Value):
    """What happened: one message, or one part of a long one, verbatim.

    `text` is what was said. `speaker` is the name or role it is shown under. Parts of one message
    count from 0 to `parts` - 1.
    """

    id: str
    session: str
    message_id: str
    seq: int
    part: int = 0
    parts: int = 1
    role: Role
    speaker: str
    agent: str | None = None
    text: str
    event_time: Moment
    recorded_at: Moment
    importance: float = 0.5
    pinned: bool = False
    archived: bool = False
    last_access: Moment | None = None
    metadata: JsonObject = Field(default_factory=dict)


# --- what is known -----------------------------------------------------------------------------

Origin = Literal["stated", "extracted", "promoted"]
"""How a fact came in: given by the caller, read out of a message, or made of recurring episodes."""


class Assertion(Value):
    """Something said to hold (or, with `holds=False`, to hold no longer) from `valid_from` on.

    `single` says that the subject has one such object at a time, so that a newer one supersedes;
    it is decided when asserted, so that replaying the journal gives the same facts. `sources` are
    message ids. `opposite` names a predicate that this one contradicts for the same object.
    `said_at` is when it was said to hold still, where that is later than `valid_from` ("I moved
    here last month"); None: only `valid_from` is known.
    """

    id: str
    subject: str
    predicate: str
    object: str
    holds: bool = True
    single: bool = False
    opposite: str | None = None
    valid_from: Moment
    valid_to: Moment | None = None
    said_at: Moment | None = None
    learnt_at: Moment
    sources: tuple[str, ...] = ()
    origin: Origin = "stated"
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    attributes: JsonObject = Field(default_factory=dict)


class Fact(Value):
    """One version of a subject-predicate-object fact: true in [valid_from, valid_to).

    It was believed from `learnt_at` until `unlearnt_at` (None: still is); correcting a fact ends
    one version and begins another, so that both times can be asked `as_of`. `id` names the
    version, `fact_id` what all its versions share.

    `attested` and `denied` are the moments at which it was said to hold, and not to hold; from
    them the timeline is worked out again when something older is learnt later. A version with
    `valid_to == valid_from` holds never: something ended of which no beginning is known.
    """

    id: str
    fact_id: str
    subject: str
    predicate: str
    object: str
    valid_from: Moment
    valid_to: Moment | None = None
    learnt_at: Moment
    unlearnt_at: Moment | None = None
    sources: tuple[str, ...] = ()
    origin: Origin = "stated"
    confidence: float = 1.0
    attributes: JsonObject = Field(default_factory=dict)
    attested: tuple[Moment, ...] = ()
    denied: tuple[Moment, ...] = ()

    def holds_at(self, moment: datetime) -> bool:
        return self.valid_from <= moment and (self.valid_to is None or moment < self.valid_to)


class Entity(Value):
    """Somebody or something that facts are about. `key` is the normalised name."""

    key: str
    name: str


# --- what comes back ---------------------------------------------------------------------------

TierName = Literal["working", "episodic", "semantic"]


class Recalled(Value):
    """Something found: where it comes from, what it says, and why it is here.

    `scores` has each arm's score in [0, 1]; `score` is the fused one, by which `Recall.items` is
    ordered (ties: episodes by place, facts by id). `reason` is for people.
    """

    tier: TierName
    id: str
    text: str
    score: float
    scores: Mapping[str, float] = Field(default_factory=dict)
    reason: str = ""
    speaker: str = ""
    role: Role | None = None
    session: str | None = None
    agent: str | None = None
    seq: int | None = None
    event_time: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    sources: tuple[str, ...] = ()
    metadata: JsonObject = Field(default_factory=dict)


class Recall(Value):
    """The answer to a recall. `dropped` are near misses; `unavailable` names tiers that did not
    answer, so that an empty list always means that nothing was found."""

    items: tuple[Recalled, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    unavailable: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Item(Value):
    """One thing inside a context, with what it cost and why it is there.

    `rank` counts from 1, the best, among the facts or the episodes that were found; 0 for what is
    not ranked: summary, turns and pinned facts.
    """

    tier: TierName
    id: str
    text: str
    tokens: int
    score: float = 0.0
    scores: Mapping[str, float] = Field(default_factory=dict)
    rank: int = 0
    reason: str = ""


Cause = Literal[
    "below_floor",
    "over_budget",
    "superseded",
    "out_of_time",
    "duplicate",
    "among_turns",
    "beyond_k",
    "archived",
    "unsound",
    "replaced",
    "not_asked",
]
"""Why something is not in a context, in one word: `unsound` is what no provider would accept,
`replaced` what something given by the caller stands for, `not_asked` what came near a greeting."""


class Dropped(Value):
    """A near miss: what it was, and why it is not in the context.

    `by` is the id of what stands in its place (superseded, duplicate); `missing` the tokens that
    it would have needed beside what was left (over_budget).
    """

    tier: TierName
    id: str
    text: str
    tokens: int = 0
    score: float = 0.0
    scores: Mapping[str, float] = Field(default_factory=dict)
    rank: int = 0
    reason: str
    cause: Cause | None = None
    by: str | None = None
    missing: int = 0


class TokenCount(Value):
    """Tokens by section; `total` includes `reserve`, the room left for the answer.

    `memory` is the whole block of recalled facts and episodes, `facts` and `episodes` what their
    lines take of it.
    """

    tools: int = 0
    system: int = 0
    pinned: int = 0
    summary: int = 0
    turns: int = 0
    facts: int = 0
    episodes: int = 0
    memory: int = 0
    message: int = 0
    reserve: int = 0
    total: int = 0
    budget: int = 0


class Prefix(Value):
    """How much of a context is word for word the beginning of the one before it in its session.

    What a provider's prompt cache can use again: the tools' schema, then `messages` whole messages,
    together `tokens`. `previous` is the snapshot it is compared with; `broken_by` says what differs
    first, for people.
    """

    previous: str
    messages: int
    tokens: int
    broken_by: str = ""


class Context(Value):
    """What goes to the model, and everything about how it came to be.

    `messages` are provider-ready (OpenAI chat shape), `tools` the definitions that were given with
    them. `text` is the messages as one readable string. `prefix` is None for the first context of
    a session.
    """

    messages: tuple[JsonObject, ...]
    tools: tuple[JsonObject, ...] = ()
    tokens: TokenCount
    items: tuple[Item, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    unavailable: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    prefix: Prefix | None = None
    snapshot_id: str | None = None

    @property
    def text(self) -> str:
        return "\n\n".join(f"[{m['role']}]\n{_readable(m.get('content'))}" for m in self.messages)

    def openai(self) -> JsonObject:
        """`messages` and `tools`, to be sent to OpenAI's chat completions as they are."""
        return openai_request(self.messages, self.tools)

    def anthropic(self, *, cache: bool = False) -> JsonObject:
        """`system`, `tools` and `messages`, to be sent to Anthropic's messages as they are.

        With `cache` they carry marks for the prompt cache, the last one before what is recalled
        for the newest message, because that changes with each.
        """
        stable = self._before_memory()
        return anthropic_request(self.messages, self.tools, cache=cache, stable=stable)

    def explain(self, policy: ContextPolicy | None = None) -> str:
        """Why it is as it is, for people: plain text of at most 100 columns. The policy that it
        was built with says also who had spare room."""
        return explain(self, policy)

    def _before_memory(self) -> int:
        """How many messages stand before the block of what is recalled; all, when there is none."""
        if self.tokens.memory:
            for place in range(len(self.messages) - 1, -1, -1):
                content = self.messages[place].get("content")
                if isinstance(content, str) and content and not strip_fences(content):
                    return place
        return len(self.messages)


def _readable(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)
    return ""


class Health(Value):
    """How one part is: whether it answers, what it is, and what is wrong, in one line each."""

    part: str
    ok: bool
    version: str = ""
    where: str = ""
    problem: str = ""


Recall.model_rebuild()
