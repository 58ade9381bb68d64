"""Settings: a URL per store, the models, the policies. The only place that reads the environment.

Every field can be given as TRIMEM_<NAME>. A store without a URL is part of the local stack.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from memory.errors import ConfigurationError


class Settings(BaseSettings):
    """How a Memory is put together. Frozen; `model_copy(update=…)` makes a variant.

    URLs are secret because they may hold a password:
    - `journal_url`: postgresql://user:password@host:port/database, or sqlite:///path
    - `redis_url`: redis://, rediss:// (TLS), unix://, redis+sentinel://host:port,host:port/service,
      redis+cluster://host:port,host:port; user and password in the URL
    - `chroma_url`: http:// or https://host:port
    - `neo4j_url`: bolt://, neo4j://, +s and +ssc, with user:password@ in the URL
    """

    model_config = SettingsConfigDict(env_prefix="TRIMEM_", frozen=True, extra="ignore")

    home: Path | None = None
    tenant: str = "default"

    journal_url: SecretStr | None = None
    redis_url: SecretStr | None = None
    chroma_url: SecretStr | None = None
    neo4j_url: SecretStr | None = None

    embedder: str = "default"
    """default, sentence-transformers:FOLDER_OR_NAME, or openai:MODEL (any compatible endpoint)."""
    embedder_url: str = "https://api.openai.com/v1"
    embedder_api_key: SecretStr | None = None
    embedder_dims: int | None = Field(default=None, gt=0)
    """The length of an endpoint's vectors; None asks it when it is opened."""
    embedder_query_prefix: str = ""
    """What the model wants before a question, for example "query: ". Not for the default one."""
    embedder_document_prefix: str = ""
    reranker: str | None = None
    """What looks again at the best of a recall: sentence-transformers:FOLDER_OR_NAME, a
    cross-encoder; None: nothing does. Needs the extra trimem[sentence-transformers]."""
    rerank_k: int = Field(default=30, gt=0)
    """Episodes that it looks at."""
    rerank_timeout: timedelta = timedelta(seconds=1)
    """The longest that it is waited for; then the order stays as it was, and a warning says so."""
    rerank_weight: float = Field(default=0.5, ge=0.0, le=1.0)
    """What it counts beside the score: 0 nothing, 1 everything."""
    llm: str | None = None
    """The language model for summaries and facts, VENDOR:MODEL, such as openai:gpt-4o-mini or
    anthropic:claude-haiku-4-5; None: they are made without one. Needs the extra trimem[llm]."""
    llm_url: str | None = None
    """Where it answers, for openai:MODEL any endpoint that is compatible; None: the vendor's."""
    llm_api_key: SecretStr | None = None
    """Its key. None: none is sent to `llm_url`; to a vendor, the one of its own variable."""
    llm_window: int = Field(default=16_000, gt=0)
    """Tokens of one request, question and answer, that this model is trusted with."""
    llm_timeout: timedelta = timedelta(seconds=60)
    """The longest that one answer is waited for, with every attempt and pause."""
    llm_retries: int = Field(default=2, ge=0)
    """How often a request that got no answer is sent again, with growing pauses."""
    llm_requests_per_minute: int | None = Field(default=None, gt=0)
    """Requests that one process sends in a minute, evenly; None: as fast as they come."""
    llm_job_calls: int = Field(default=500, gt=0)
    """Calls that one night may make."""
    llm_job_tokens: int = Field(default=1_000_000, gt=0)
    """Tokens, asked and answered, that one night may use."""
    redact: bool = True
    """Whether secrets (keys, passwords, cards) are masked before anything is stored."""
    model: str = "gpt-4o"
    """The model whose tokenizer counts."""
    tokenizer_dir: Path | None = None
    """A folder with tiktoken's rank files; None uses the ones that came with the install."""

    budget: int = Field(default=8_000, gt=0)
    """Tokens of one whole context, with the reserve inside."""
    reserve: int = Field(default=1_000, ge=0)
    """Tokens kept free for the answer."""
    window_tokens: int = Field(default=4_000, gt=0)
    """Tokens that working memory holds for a session, summary included."""
    summary_tokens: int = Field(default=400, gt=0)
    session_ttl: timedelta | None = None
    """How long a session lives in working memory after its newest message; None: for ever."""
    recall_k: int = Field(default=8, gt=0)
    """Episodes that a recall gives."""
    context_k: int = Field(default=60, gt=0)
    """Episodes offered to a context, which shows as many as it has room for; for a dialogue a third
    more (`RecallPolicy.dialogue_offers`)."""
    half_life: timedelta = timedelta(days=90)
    """After this long without access, an episode of importance 1 has a retention of 0.5."""
    idle: timedelta = timedelta(minutes=15)
    """The local stack stops this long after the last process that used it is gone."""
    timeout: timedelta = timedelta(seconds=10)
    """The longest that one tier is waited for."""

    def __init__(self, **given: Any) -> None:
        """Raises ConfigurationError, which names the field and keeps its value to itself."""
        try:
            super().__init__(**given)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
            field = "_".join(str(part) for part in problem["loc"]).upper()
            raise ConfigurationError(f"TRIMEM_{field}: {problem['msg']}") from None
