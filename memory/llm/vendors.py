"""From a vendor's name to a model that can be asked: the only place that knows vendors.

OpenAI and Anthropic have clients of our own making, so that nothing of the environment reaches an
endpoint that the settings name: no key, organisation or project of OpenAI's variables goes to a URL
that is not OpenAI's, redirects are not followed, and no tracing of the drivers is on.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import httpx2
from pydantic import SecretStr
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, create_async_httpx2_client, infer_model
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers import infer_provider_class

from memory.errors import ConfigurationError
from memory.llm.endpoint import Asking, Endpoint
from memory.settings import Settings

_CHAT = frozenset({"openai", "openai-chat"})
_RESPONSES = "openai-responses"
_ANTHROPIC = "anthropic"
_NO_KEY = "no-key"
"""What is sent to endpoints that want none, by drivers that insist on one."""

_AS_IT_CAME = ModelProfile(thinking_tags=("<\0>", "</\0>"))
"""Thoughts aloud are left in the text, for `answers` to take out: pydantic-ai takes the thoughts of
an answer that was cut off in their middle for the answer itself."""

_OPENAI_ONLY = ("openai-organization", "openai-project")


class _Ready(NamedTuple):
    model: Model
    close: Callable[[], Awaitable[None]]


def open_endpoint(
    settings: Settings, vendor: str, name: str, count: Callable[[str], int]
) -> Endpoint:
    """Raises ConfigurationError when the vendor is unknown, or wants something that is missing."""
    key = _key(settings.llm_api_key)
    try:
        ready = _ready(vendor, name, settings.llm_url, key)
    except ImportError:
        raise ConfigurationError(
            f"TRIMEM_LLM: the driver of {vendor!r} is not installed: "
            f"pip install 'pydantic-ai-slim[{vendor}]'"
        ) from None
    except UserError as error:
        said = str(error).split(" If you just want")[0].replace(key or "\0", "***")
        raise ConfigurationError(
            f"TRIMEM_LLM: {vendor!r} cannot be opened; is TRIMEM_LLM_API_KEY missing? ({said})"
        ) from None
    asking = Asking(
        identity=f"{vendor}:{name}",
        window=settings.llm_window,
        timeout=settings.llm_timeout,
        retries=settings.llm_retries,
        per_minute=settings.llm_requests_per_minute,
        old_limit=vendor in _CHAT and settings.llm_url is not None,
    )
    return Endpoint(ready.model, asking, count, ready.close)


def _ready(vendor: str, name: str, url: str | None, key: str | None) -> _Ready:
    if vendor in _CHAT or vendor == _RESPONSES:
        return _openai(vendor, name, url, key)
    if vendor == _ANTHROPIC:
        return _anthropic(name, url, key)
    return _other(vendor, name, url, key)


def _openai(vendor: str, name: str, url: str | None, key: str | None) -> _Ready:
    from pydantic_ai.models.openai import (
        OpenAIChatModel,
        OpenAIResponsesModel,
        OpenAIResponsesModelSettings,
    )
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = create_async_httpx2_client()
    provider: OpenAIProvider | OpenAICompatibleProvider
    if url is None:
        provider = OpenAIProvider(api_key=key, http_client=client)
    else:
        client.event_hooks["request"].append(_without_accounts)
        provider = OpenAICompatibleProvider(
            "openai-compatible", base_url=url, api_key=key or _NO_KEY, http_client=client
        )
    if vendor == _RESPONSES:
        kept_nowhere = OpenAIResponsesModelSettings(openai_store=False)
        model: Model = OpenAIResponsesModel(name, provider=provider, settings=kept_nowhere)
    else:
        model = OpenAIChatModel(name, provider=provider, profile=_AS_IT_CAME)
    return _Ready(model, client.aclose)


def _anthropic(name: str, url: str | None, key: str | None) -> _Ready:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = create_async_httpx2_client()
    if url is not None:
        key = key or _NO_KEY
        url = url.rstrip("/").removesuffix("/v1")  # the driver adds it
    silent: dict[str, Any] = {}
    if "open_telemetry" in inspect.signature(AsyncAnthropic).parameters:
        silent = {"open_telemetry": {"traces": False, "propagation": False}}
    driver = AsyncAnthropic(api_key=key, base_url=url, http_client=client, **silent)
    if driver.api_key is None and driver.auth_token is None and driver.credentials is None:
        raise UserError("Set the `ANTHROPIC_API_KEY` environment variable.")
    provider = AnthropicProvider(anthropic_client=driver)
    return _Ready(AnthropicModel(name, provider=provider), client.aclose)


def _other(vendor: str, name: str, url: str | None, key: str | None) -> _Ready:
    try:
        kind = infer_provider_class(vendor)
    except ValueError:
        raise ConfigurationError(
            f"TRIMEM_LLM: there is no vendor {vendor!r}; it is 'openai' (with TRIMEM_LLM_URL for "
            "whatever answers like it), 'anthropic', or another that pydantic-ai knows"
        ) from None
    given = {"base_url": url, "api_key": key}
    try:
        provider = kind(**{what: value for what, value in given.items() if value is not None})
    except TypeError:
        raise ConfigurationError(
            f"TRIMEM_LLM: {vendor!r} takes no URL or no key of the settings; "
            "its own environment variables say where it is"
        ) from None
    model = infer_model(f"{vendor}:{name}", provider_factory=lambda _: provider)
    return _Ready(model, partial(_closed, model))


async def _closed(model: Model) -> None:
    async with model:  # leaving it closes what the provider opened
        pass


async def _without_accounts(request: httpx2.Request) -> None:
    """OpenAI's account names, which its driver takes from the environment, are for OpenAI only."""
    for name in _OPENAI_ONLY:
        request.headers.pop(name, None)


def _key(secret: SecretStr | None) -> str | None:
    if secret is None or not secret.get_secret_value().strip():
        return None
    key = secret.get_secret_value().strip()
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError("TRIMEM_LLM_API_KEY has characters that a header cannot hold")
    return key
