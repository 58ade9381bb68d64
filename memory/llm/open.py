"""The language model that the settings name.

openai:MODEL        OpenAI's chat completions, or with a URL whatever answers like them
anthropic:MODEL     Anthropic's messages, or with a URL whatever answers like them
VENDOR:MODEL        what else pydantic-ai knows (google, groq, mistral, …), when its extra is there

Nothing of pydantic-ai is imported before a model is named. With a URL only the key of the settings
is sent there; without one a key that the vendor's own variable holds (OPENAI_API_KEY, …) is found.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from memory.errors import ConfigurationError
from memory.llm.base import LanguageModel
from memory.settings import Settings
from memory.tokens import TokenCounter


async def open_llm(settings: Settings) -> LanguageModel | None:
    """The model, ready to be asked; None when the settings name none. Whoever opens it closes it.

    Nothing is asked yet. Raises ConfigurationError when there is no such model, the key is missing
    or something is not installed.
    """
    if settings.llm is None:
        return None
    vendor, _, name = settings.llm.strip().partition(":")
    if not vendor or not name.strip():
        raise ConfigurationError(
            f"TRIMEM_LLM {settings.llm!r}: it is VENDOR:MODEL, such as 'openai:gpt-4o-mini' "
            "or 'anthropic:claude-haiku-4-5'"
        )
    _check_url(settings.llm_url)
    return await asyncio.to_thread(_opened, settings, vendor.strip(), name.strip())


def _opened(settings: Settings, vendor: str, name: str) -> LanguageModel:
    try:
        from memory.llm.vendors import open_endpoint
    except ImportError:
        raise ConfigurationError("TRIMEM_LLM needs the extra: pip install 'trimem[llm]'") from None
    counter = TokenCounter(settings.model, tokenizer_dir=settings.tokenizer_dir)
    return open_endpoint(settings, vendor, name, counter.count)


def _check_url(url: str | None) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        ok = parts.scheme in ("http", "https") and bool(parts.hostname)
        ok = ok and (parts.port is None or parts.port > 0)
    except ValueError:
        ok = False
    if not ok:
        raise ConfigurationError("TRIMEM_LLM_URL must begin with http:// or https:// and a host")
    if parts.query or parts.fragment:
        raise ConfigurationError("TRIMEM_LLM_URL holds more than a path: requests are added to it")
    if parts.username or parts.password:  # drivers write the URL of each request to their logs
        raise ConfigurationError("TRIMEM_LLM_URL holds a login; TRIMEM_LLM_API_KEY is the place")
