"""The size of a model's context in tokens: from a setting, its server, its provider's data, or an overflow error.

Self-hosted servers are asked from time to time: `/v1/models` of llama.cpp, vLLM and others, `/api/ps` and `/api/show`
of Ollama. The size in an overflow error overrides what a server says, and a setting that is larger.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2

from denizen.models import learned, overflow
from denizen.models.location import is_loopback, is_openai

if TYPE_CHECKING:
    from pydantic_ai.models import Model

ANY_MODEL: Final = "*"
"""The name in the setting `contexts` for every model whose size is not known otherwise."""
ASK_SECONDS: Final = 2.0
"""How long a server may take to answer."""
ASK_AGAIN_SECONDS: Final = 300.0
"""The interval between two requests to a server: Ollama may have loaded the model with another size."""

_ASKED_SYSTEMS: Final = frozenset({"openai", "ollama", "vllm"})
_SMALLEST: Final = 256
_SIZE_FIELDS: Final = ("n_ctx", "max_model_len", "loaded_context_length", "context_length", "max_context_length")
"""The names of the field: llama.cpp, vLLM, LM Studio, OpenRouter and others."""
_NUM_CTX: Final = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The size of a context, if known, and how that was learned."""

    tokens: int | None
    source: str


def size_of(model: Model, name: str = "", contexts: Mapping[str, int] | None = None) -> ContextSize:
    """Returns what is known now. `contexts` are settings, by the model's configured name."""
    contexts, found = contexts or {}, learned.about(model)
    if name in contexts:
        wanted, accepted = contexts[name], accepted_by_server(model)
        if accepted is None or wanted <= accepted:
            return ContextSize(wanted, "a setting")
    if found.context_tokens is not None:
        return ContextSize(found.context_tokens, found.context_source)
    if (given := model.context_window) is not None:
        return ContextSize(given, "the provider's data")
    if ANY_MODEL in contexts:
        return ContextSize(contexts[ANY_MODEL], "a setting for all models")
    return ContextSize(None, "unknown")


def accepted_by_server(model: Model) -> int | None:
    """Returns the size that was learned when the model's server refused a request; None if it has refused none.

    No setting can make it larger: a request of that size would be refused again.
    """
    found = learned.about(model)
    return found.context_tokens if found.context_source == overflow.SOURCE else None


async def ask_server(model: Model) -> None:
    """Asks the model's server for its size and remembers the answer. Does nothing if the server need not be asked."""
    if model.system not in _ASKED_SYSTEMS or model.base_url is None or is_openai(model.base_url):
        return
    known, now = learned.about(model), time.monotonic()
    if known.context_source == overflow.SOURCE or now < known.ask_again_at:
        return
    known.ask_again_at = now + ASK_AGAIN_SECONDS
    try:
        tokens, source = await _asked(model)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return
    if tokens is not None:
        learned.learn_context(model, tokens, source)


async def _asked(model: Model) -> tuple[int | None, str]:
    base = str(model.base_url).rstrip("/")
    key: Any = getattr(getattr(model.provider, "client", None), "api_key", None)
    headers = {"Authorization": f"Bearer {key}"} if isinstance(key, str) and key else {}
    # Not through a proxy of the environment if the server is on this machine, and then without certificates for plain
    # HTTP: loading them takes longer than the answer.
    trust = not is_loopback(base)
    tls = trust or not base.startswith("http://")
    async with httpx2.AsyncClient(timeout=ASK_SECONDS, headers=headers, trust_env=trust, verify=tls) as client:
        if model.system == "ollama":
            return await _ask_ollama(client, base.removesuffix("/v1"), model.model_name)
        answer = await client.get(f"{base}/models")
        return in_model_list(answer.raise_for_status().json(), model.model_name), "/v1/models of its server"


async def _ask_ollama(client: httpx2.AsyncClient, base: str, name: str) -> tuple[int | None, str]:
    running = await client.get(f"{base}/api/ps")
    if running.is_success and (tokens := in_ollama_ps(running.json(), name)) is not None:
        return tokens, "/api/ps of Ollama"
    shown = await client.post(f"{base}/api/show", json={"model": name})
    return in_ollama_show(shown.raise_for_status().json()), "/api/show of Ollama"


def in_model_list(answer: object, name: str) -> int | None:
    """Returns the size in an answer to `/v1/models`, for that model or the only one listed."""
    rows = [cast("dict[str, Any]", each) for each in _list_in(answer, "data") if isinstance(each, dict)]
    matching = [row for row in rows if row.get("id") == name] or (rows if len(rows) == 1 else [])
    for row in matching:
        meta = row.get("meta")
        places = [cast("dict[str, Any]", meta), row] if isinstance(meta, dict) else [row]
        sizes = (_size(place.get(field)) for place in places for field in _SIZE_FIELDS)
        if (tokens := next(filter(None, sizes), None)) is not None:
            return tokens
    return None


def in_ollama_ps(answer: object, name: str) -> int | None:
    """Returns the size with which Ollama has loaded the model, if it has."""
    for each in _list_in(answer, "models"):
        row = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        if row.get("name") in (name, f"{name}:latest"):
            return _size(row.get("context_length"))
    return None


def in_ollama_show(answer: object) -> int | None:
    """Returns the size in an answer to `/api/show`: that of the model file (`num_ctx`), otherwise the model's
    maximum.
    """
    shown = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    if (found := _NUM_CTX.search(str(shown.get("parameters") or ""))) is not None:
        return _size(int(found[1]))
    info: Any = shown.get("model_info")
    fields = cast("dict[str, Any]", info).items() if isinstance(info, dict) else ()
    return next((_size(value) for field, value in fields if field.endswith(".context_length")), None)


def _list_in(answer: object, field: str) -> Iterable[object]:
    listed: Any = cast("dict[str, Any]", answer).get(field) if isinstance(answer, dict) else None
    return cast("list[object]", listed) if isinstance(listed, list) else ()


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= _SMALLEST else None
