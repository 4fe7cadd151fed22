"""Model servers that speak OpenAI's API: llama.cpp, LM Studio and vLLM on their usual local ports, and any other.

Their models are named `llamacpp:NAME`, `lmstudio:NAME`, `vllm:NAME` and `compatible:NAME`. The last is a server at an
address of its own, with a key of its own: it is never sent an OpenAI key. Ollama, which also has an API of its own, is
in `discovery`.
"""

from __future__ import annotations

import asyncio
import os
import re
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
    """A kind of model server."""

    prefix: str
    """The prefix of its models' names."""
    title: str
    port: int | None
    """Its usual port on this machine; None if it has none."""
    variable: str
    """The environment variable with its address, if that is not the usual port."""

    @property
    def key_variable(self) -> str:
        """The environment variable with its key, if it needs one."""
        return self.variable.replace("_BASE_URL", "_API_KEY")

    @property
    def usual_url(self) -> str | None:
        return None if self.port is None else f"http://127.0.0.1:{self.port}/v1"

    def url(self, environ: Mapping[str, str], chosen: str | None = None) -> str | None:
        """Returns the address of its API, with `/v1`: from the environment, as chosen by an operator, or the
        usual one.
        """
        given = environ.get(self.variable, "").strip().rstrip("/") or chosen
        return with_version(given) if given else self.usual_url


LOCAL_SERVERS: Final = (
    LocalServer("llamacpp", "llama.cpp", 8080, "LLAMACPP_BASE_URL"),
    LocalServer("lmstudio", "LM Studio", 1234, "LMSTUDIO_BASE_URL"),
    LocalServer("vllm", "vLLM", 8000, "VLLM_BASE_URL"),
)
COMPATIBLE: Final = LocalServer("compatible", "OpenAI-compatible server", None, "COMPATIBLE_BASE_URL")
SERVERS: Final = {each.prefix: each for each in (*LOCAL_SERVERS, COMPATIBLE)}
"""By the prefix of their models."""


def with_version(url: str) -> str:
    """Adds `/v1`, which these servers use, to an address without a version."""
    url = url.rstrip("/")
    return url if re.search(r"/v\d+$", url) else f"{url}/v1"


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
    """Returns the servers that answer on this machine, in the order of the list. Servers on other machines are not
    contacted.
    """
    looked = [(each, each.url(environ) or "") for each in LOCAL_SERVERS]
    asked = [(server, url) for server, url in looked if is_loopback(url)]
    listed = await asyncio.gather(*(list_models(url, patience_seconds) for _, url in asked))
    return [FoundServer(server, url, tuple(names)) for (server, url), names in zip(asked, listed, strict=True) if names]


async def list_models(url: str, patience_seconds: float = PATIENCE_SECONDS) -> list[str]:
    """Returns the chat models that `/models` of this address lists; none if nothing answers."""
    try:
        # Certificates are not loaded for plain HTTP: that takes longer than the answer.
        tls = not url.startswith("http://")
        async with (
            httpx2.AsyncClient(trust_env=not is_loopback(url), verify=tls) as client,
            asyncio.timeout(patience_seconds),
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


def provider_for(prefix: str, key: str | None = None, chosen: str | None = None) -> Provider[Any]:
    """Returns the provider for a model on such a server, at the usual address or the one an operator has `chosen`.

    Most servers accept any key. The key in the environment belongs to the address in the environment, and is sent to no
    other. Raises `ValueError` if the address is not known.
    """
    from pydantic_ai.providers.openai import OpenAIProvider

    server = SERVERS[prefix]
    url = server.url(os.environ, chosen)
    if url is None:
        raise ValueError(f"Its address is not known: set {server.variable}, or enter it under Administration › Models.")
    kept = os.environ.get(server.key_variable) if url == server.url(os.environ) else None
    return OpenAIProvider(base_url=url, api_key=key or kept or "not-needed")
