"""The default model when none is configured: by a key in the environment, a server on this machine, or `demo`.

It looks for Ollama, llama.cpp, LM Studio and vLLM on this machine, at loopback addresses only.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from pydantic import BaseModel, Field, ValidationError

from denizen.models.catalog import DEMO
from denizen.models.local_servers import find_servers, list_models
from denizen.models.location import OLLAMA_URL, is_loopback, ollama_in

ANTHROPIC_MODEL: Final = "anthropic:claude-sonnet-5-5"
OPENAI_MODEL: Final = "openai:gpt-6.1-terra"

USUAL_MODELS: Final = {
    "anthropic": (ANTHROPIC_MODEL, "anthropic:claude-haiku-5-5"),
    "openai": (OPENAI_MODEL, "openai:gpt-6-luna"),
}
"""By provider, the model that agents use, and the cheap one for summaries and the like."""

_SMALL: Final = re.compile("mini|nano|haiku|luna|flash|lite|small", re.IGNORECASE)
"""Parts of the names of cheap models."""

_KNOWN_TO_USE_TOOLS: Final = (
    "qwen3",
    "gpt-oss",
    "glm",
    "llama4",
    "llama3.3",
    "llama3.2",
    "llama3.1",
    "mistral-small",
    "mistral-nemo",
    "mistral",
    "devstral",
    "magistral",
    "qwen2.5",
    "command-r",
    "granite",
    "cogito",
    "firefunction",
    "hermes3",
)
_PARAMETERS = re.compile(r"([\d.]+)\s*([KMBT])", re.IGNORECASE)
_SCALE = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model to use."""

    name: str
    reason: str
    """A sentence that says why."""
    ollama_url: str | None = None
    """The address of Ollama, for `Models.ollama_url`, if the environment sets it or it was found."""


async def choose_model(
    configured: str | None,
    environ: Mapping[str, str],
    *,
    ollama_url: str = OLLAMA_URL,
    patience_seconds: float = 1.5,
) -> ModelChoice:
    """Returns the configured model; otherwise a provider whose key is set, a server on this machine, and last of all
    `demo`.
    """
    named = ollama_in(environ)
    if configured:
        return ModelChoice(configured, f"The model {configured} is configured.", named)
    if environ.get("ANTHROPIC_API_KEY", "").strip():
        return ModelChoice(ANTHROPIC_MODEL, f"ANTHROPIC_API_KEY is set, so agents think with {ANTHROPIC_MODEL}.", named)
    if (base := environ.get("OPENAI_BASE_URL", "").strip().rstrip("/")) and is_loopback(base):
        return await _of_compatible_server(base, named, patience_seconds)
    if environ.get("OPENAI_API_KEY", "").strip():
        return ModelChoice(OPENAI_MODEL, f"OPENAI_API_KEY is set, so agents think with {OPENAI_MODEL}.", named)
    found = await _local(named or ollama_url, patience_seconds)
    if found.name != DEMO:
        return found
    for each in await find_servers(environ, patience_seconds):
        reason = f"{each.server.title} runs on this machine, so agents think with its {each.models[0]}."
        return ModelChoice(each.names[0], reason, found.ollama_url)
    return found


def utility_model_for(name: str, environ: Mapping[str, str] | None = None) -> str:
    """Returns the cheap model of the same provider, for summaries and the like; the same model if none is known."""
    provider, _, model = name.partition(":")
    base = (os.environ if environ is None else environ).get(f"{provider.partition('-')[0].upper()}_BASE_URL", "")
    usual = USUAL_MODELS.get("openai" if provider == "openai-responses" else provider)
    # Another address may serve other models.
    if usual is None or base.strip() or _SMALL.search(model):
        return name
    return usual[1]


async def _of_compatible_server(base: str, ollama_url: str | None, patience_seconds: float) -> ModelChoice:
    """Returns the first model of the server on this machine that OPENAI_BASE_URL names."""
    listed = await list_models(base, patience_seconds)
    if listed:
        name = f"openai-chat:{listed[0]}"
        return ModelChoice(name, f"OPENAI_BASE_URL is {base}, so agents think with its {listed[0]}.", ollama_url)
    said = f"OPENAI_BASE_URL is {base}, which lists no models: agents think with the built-in demo model."
    return ModelChoice(DEMO, f"{said} Start that server, or set DENIZEN_MODEL=openai-chat:NAME.", ollama_url)


async def _local(url: str, patience_seconds: float) -> ModelChoice:
    if not is_loopback(url):
        reason = f"No model is configured, and Ollama is set to another machine ({url}), which is not asked unbidden"
        return ModelChoice(DEMO, f"{reason}: agents think with the built-in demo model.", url)
    try:
        async with asyncio.timeout(patience_seconds):
            found, installed = await _look_into(url)
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError):
        said = "No model is configured and no server of models answers on this machine"
        return ModelChoice(DEMO, f"{said}: agents think with the built-in demo model.")
    if found is not None:
        return ModelChoice(f"ollama:{found}", f"An Ollama runs on this machine, so agents think with its {found}.", url)
    lacks = "none of its models can use tools" if installed else "it has no model installed"
    return ModelChoice(
        DEMO, f"An Ollama runs on this machine, but {lacks}: agents think with the built-in demo model.", url
    )


async def installed_in_ollama(environ: Mapping[str, str], patience_seconds: float = 1.5) -> list[str]:
    """Returns the models of an Ollama on this machine, best first; none if there is no Ollama."""
    url = ollama_in(environ) or OLLAMA_URL
    if not is_loopback(url):
        return []
    try:
        tls = not url.startswith("http://")
        async with (
            httpx2.AsyncClient(base_url=url, trust_env=False, verify=tls) as client,
            asyncio.timeout(patience_seconds),
        ):
            return [each.name for each in _best_first(await _installed(client))]
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError):
        return []


class _Details(BaseModel):
    parameter_size: str | None = None


class _Installed(BaseModel, extra="ignore"):
    """One entry of `/api/tags`. Fields of other versions of Ollama are ignored."""

    name: str = Field(min_length=1)
    size: int = 0
    remote_host: str | None = None
    details: _Details | None = None

    @property
    def known(self) -> bool:
        return self.name.rpartition("/")[2].lower().startswith(_KNOWN_TO_USE_TOOLS)

    @property
    def is_here(self) -> bool:
        """Whether it runs here: some that are listed run on remote machines."""
        return not self.remote_host and not self.name.endswith(("-cloud", ":cloud"))

    @property
    def parameters(self) -> float:
        """Its number of parameters; estimated from the size of its file if it does not say."""
        found = _PARAMETERS.search((self.details.parameter_size if self.details else None) or "")
        try:
            return float(found[1]) * _SCALE[found[2].upper()] if found else self.size * 2.0
        except ValueError:
            return self.size * 2.0


class _Tags(BaseModel):
    models: list[_Installed] | None = None


class _Shown(BaseModel):
    capabilities: list[str] | None = None


async def _look_into(url: str) -> tuple[str | None, int]:
    """Returns the best installed model, and how many there are."""
    # Not through a proxy of the environment: the server is on this machine. Without certificates for plain HTTP:
    # loading them takes longer than the answer.
    tls = not url.startswith("http://")
    async with httpx2.AsyncClient(base_url=url, trust_env=False, verify=tls) as client:
        installed = await _installed(client)
        for each in _best_first(installed):
            if await _can_use_tools(client, each):
                return each.name, len(installed)
        return None, len(installed)


async def _installed(client: httpx2.AsyncClient) -> list[_Installed]:
    tags = _Tags.model_validate_json((await client.get("/api/tags")).raise_for_status().content)
    return [each for each in tags.models or () if each.is_here]


def _best_first(installed: Sequence[_Installed]) -> list[_Installed]:
    return sorted(installed, key=lambda each: (not each.known, -each.parameters, each.name))


async def _can_use_tools(client: httpx2.AsyncClient, model: _Installed) -> bool:
    """Returns what Ollama says; an old version that does not say is assumed to, for models known to."""
    answer: Any = await client.post("/api/show", json={"model": model.name})
    if answer.is_success:
        capabilities = _Shown.model_validate_json(answer.content).capabilities
        if capabilities is not None:
            return "tools" in capabilities
    return model.known
