"""Every error that trimem raises, as a tree.

    AgentMemoryError
    ├── InvalidInput (ValueError)      the caller's argument cannot be accepted; nothing was written
    │   ├── EmptyInput                 a message, name or fact with nothing in it
    │   ├── InvalidScope               a tenant, user, agent or session that cannot be one
    │   ├── InvalidFilter              a `where` with an operator or shape that does not exist
    │   └── ImportRefused              a file whose shape no importer knows
    ├── BudgetError (ValueError)       the fixed parts of a context need more tokens than there are
    ├── NotFound (LookupError)         no such session, snapshot, fact …
    ├── TierUnavailable                a store did not answer; carries the tier's name
    │   └── IndexLost                  the index of vectors is gone; a repair makes it again
    ├── Corrupt                        stored bytes do not match their hash, or cannot be read back
    ├── Conflict                       somebody else changed what this write was based on
    │   └── AlreadyRunning             the job or lease is held by another process
    ├── EmbeddingFailed                the embedder raised or returned unusable vectors
    ├── RerankFailed                   the reranker was late, failed, or gave no scores
    ├── RedactionFailed                the caller's redact function failed; nothing was written
    ├── LLMError                       a language model gave nothing that can be used
    │   ├── LLMUnavailable             no answer: timeout, connection, rate limit, server error
    │   ├── LLMRefused                 it declined, or asked back
    │   ├── LLMMalformed               empty, chatty, or not of the shape that was asked for
    │   ├── LLMTruncated               the answer was cut off at its limit
    │   ├── LLMTooLong                 the answer, or the question, is longer than was allowed
    │   └── LLMSpent                   the job's budget of calls or tokens is used up
    └── ConfigurationError             settings that cannot work together, or with what is stored
        ├── EmbedderMismatch           stored vectors come from another embedder
        ├── SchemaTooNew               the data was written by a newer version of trimem
        └── UnsupportedPlatform        the local stack cannot run here

The base is not called MemoryError because that is a builtin.
"""

from __future__ import annotations


class AgentMemoryError(Exception):
    """The base of every error that trimem raises on purpose."""


class InvalidInput(AgentMemoryError, ValueError):
    """The argument cannot be accepted. Nothing was written."""


class EmptyInput(InvalidInput):
    """There is nothing in it to remember."""


class InvalidScope(InvalidInput):
    """A tenant, user, agent or session name that cannot be one."""


class InvalidFilter(InvalidInput):
    """A `where` filter with an operator or a shape that does not exist."""


class ImportRefused(InvalidInput):
    """A file whose shape no importer knows. Nothing was stored."""


class BudgetError(AgentMemoryError, ValueError):
    """The fixed parts of a context need more tokens than the budget has.

    `needed` and `given` are token counts.
    """

    def __init__(self, message: str, *, needed: int, given: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.given = given


class NotFound(AgentMemoryError, LookupError):
    """No such thing in this scope."""


class TierUnavailable(AgentMemoryError):
    """A store did not answer. `tier` names it; the driver's error is the cause."""

    def __init__(self, tier: str, message: str) -> None:
        super().__init__(f"{tier}: {message}")
        self.tier = tier


class IndexLost(TierUnavailable):
    """The index of vectors is gone. `repair` makes it again from the journal."""


class Corrupt(AgentMemoryError):
    """Stored bytes do not match their hash, or cannot be read back."""


class Conflict(AgentMemoryError):
    """Somebody else changed what this write was based on."""


class AlreadyRunning(Conflict):
    """Another process holds it."""


class EmbeddingFailed(AgentMemoryError):
    """The embedder raised, or returned vectors that cannot be used."""


class RerankFailed(AgentMemoryError):
    """The reranker was late, failed, or gave what are no scores. The order stays as it was."""


class RedactionFailed(AgentMemoryError):
    """The caller's function that takes out secrets raised, or gave no text. Nothing was written.

    Its message holds nothing of the text, and neither has it a cause that might.
    """


class LLMError(AgentMemoryError):
    """A language model gave nothing that can be used.

    Its message names the kind of failure and never holds what was asked, what was answered, or
    anything of the provider's secrets. `kind` is that failure in one word, for counting.
    """

    kind = "failed"


class LLMUnavailable(LLMError):
    """No answer: a timeout, no connection, a rate limit or the server's error."""

    kind = "unavailable"


class LLMRefused(LLMError):
    """The model declined, or asked back."""

    kind = "refused"


class LLMMalformed(LLMError):
    """The answer is empty, chatty, or not of the shape that was asked for."""

    kind = "malformed"


class LLMTruncated(LLMError):
    """The answer was cut off at its limit."""

    kind = "truncated"


class LLMTooLong(LLMError):
    """The answer, or the question, is longer than was allowed."""

    kind = "too_long"


class LLMSpent(LLMError):
    """The job's budget of calls or tokens is used up; the rest waits for the next one."""

    kind = "spent"


class ConfigurationError(AgentMemoryError):
    """Settings that cannot work together, or with what is stored."""


class EmbedderMismatch(ConfigurationError):
    """Stored vectors come from another embedder."""


class SchemaTooNew(ConfigurationError):
    """The data was written by a newer version of trimem."""


class UnsupportedPlatform(ConfigurationError):
    """The local stack cannot run here; docker-compose.yml can."""
