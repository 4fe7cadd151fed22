"""Servers of models on this machine that speak OpenAI's API: llama.cpp, LM Studio and vLLM, on their usual ports.

Their models are named `llamacpp:NAME`, `lmstudio:NAME` and `vllm:NAME`. Ollama, which has an API of its own besides, is
in `discovery`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2

from denizen.models.location import is_loopback

if TYPE_CHECKING:
    from pydantic_ai.providers import Provider

PATIENCE_SECONDS: Final = 1.5
_NOT_FOR_TALKING: Final = ("embed", "rerank", "whisper", "bge-")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A kind of server."""

    prefix: str
    """What the names of its models begin with."""
    title: str
    port: int
    variable: str
    """The variable that says where it is, where that is not this machine's usual port."""

    def url(self, environ: Mapping[str, str]) -> str:
        """The address of its API, with `/v1`."""
        given = environ.get(self.variable, "").strip().rstrip("/")
        if not given:
            return f"http://127.0.0.1:{self.port}/v1"
        return given if given.endswith("/v1") else f"{given}/v1"


LOCAL_SERVERS: Final = (
    LocalServer("llamacpp", "llama.cpp", 8080, "LLAMACPP_BASE_URL"),
    LocalServer("lmstudio", "LM Studio", 1234, "LMSTUDIO_BASE_URL"),
    LocalServer("vllm", "vLLM", 8000, "VLLM_BASE_URL"),
)
PREFIXES: Final = frozenset(each.prefix for each in LOCAL_SERVERS)


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that answers, and the names of its models."""

    server: LocalServer
    url: str
    models: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Its models as agents name them."""
        return tuple(f"{self.server.prefix}:{each}" for each in self.models)


async def find_servers(environ: Mapping[str, str], patience_seconds: float = PATIENCE_SECONDS) -> list[FoundServer]:
    """Those that answer on this machine, in the order of the list. Servers on other machines are not asked."""
    looked = [(each, each.url(environ)) for each in LOCAL_SERVERS]
    asked = [(server, url) for server, url in looked if is_loopback(url)]
    listed = await asyncio.gather(*(list_models(url, patience_seconds) for _, url in asked))
    return [FoundServer(server, url, tuple(names)) for (server, url), names in zip(asked, listed, strict=True) if names]


async def list_models(url: str, patience_seconds: float = PATIENCE_SECONDS) -> list[str]:
    """The models for talking that `/models` of this address tells of; none where nothing such answers."""
    try:
        async with (
            asyncio.timeout(patience_seconds),
            httpx2.AsyncClient(trust_env=not is_loopback(url)) as client,
        ):
            answer: object = (await client.get(f"{url}/models")).raise_for_status().json()
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return []
    data: Any = cast("dict[str, Any]", answer).get("data") if isinstance(answer, dict) else None
    rows = cast("list[object]", data) if isinstance(data, list) else []
    ids = [cast("dict[str, Any]", row).get("id") for row in rows if isinstance(row, dict)]
    return [each for each in ids if isinstance(each, str) and each and not _is_other(each)]


def _is_other(name: str) -> bool:
    return any(word in name.lower() for word in _NOT_FOR_TALKING)


def provider_for(prefix: str, key: str | None = None) -> Provider[Any]:
    """How a model of such a server is reached. Most take any key; one that wants its own has it in a variable."""
    from pydantic_ai.providers.openai import OpenAIProvider

    server = next(each for each in LOCAL_SERVERS if each.prefix == prefix)
    variable = server.variable.replace("_BASE_URL", "_API_KEY")
    return OpenAIProvider(base_url=server.url(os.environ), api_key=key or os.environ.get(variable) or "not-needed")
