"""The location of a model's server, by its address: at OpenAI, on this machine or network, or elsewhere. Pure."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from denizen.settings import loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.models import Model

OLLAMA_URL: Final = "http://127.0.0.1:11434"
"""The default address of Ollama."""
LOCAL_PATIENCE: Final = 5
"""How many times as long a model on this machine or network may take.

It may have to be loaded first, processes a few tokens a second, and answers one request after the other.
"""

_OPENAI_HOST: Final = "openai.com"


def is_openai(url: str | None) -> bool:
    """Whether the address is OpenAI's own, and not that of a compatible server."""
    host = _host(url)
    return host == _OPENAI_HOST or host.endswith(f".{_OPENAI_HOST}")


def is_loopback(url: str | None) -> bool:
    """Whether the address is on this machine."""
    return loopback.is_loopback(_host(url))


def is_local(model: Model) -> bool:
    """Whether the model runs on this machine or in this network, so that it may have to be loaded first."""
    if model.system in ("ollama", "local"):
        return True
    host = _host(model.base_url)
    if not host:
        return False
    if host == "localhost" or "." not in host or host.endswith((".local", ".internal", ".lan")):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def patience(model: Model, seconds: float) -> float:
    """Returns how long the model may take, given the seconds for a provider's model."""
    return seconds * LOCAL_PATIENCE if is_local(model) else seconds


def _host(url: str | None) -> str:
    try:
        return (urlsplit(url or "").hostname or "").lower()
    except ValueError:
        return ""


def ollama_in(environ: Mapping[str, str]) -> str | None:
    """Returns the address of Ollama from the environment: OLLAMA_BASE_URL, otherwise OLLAMA_HOST, which may be a host
    alone.
    """
    if base := environ.get("OLLAMA_BASE_URL", "").strip():
        return base.rstrip("/").removesuffix("/v1").rstrip("/")
    host = environ.get("OLLAMA_HOST", "").strip()
    try:
        return _address(host) if host else None
    except ValueError:
        return None


def _address(host: str) -> str:
    """Converts OLLAMA_HOST to a URL; raises `ValueError` if it is invalid."""
    scheme, _, rest = host.rpartition("://")
    parts = urlsplit(f"{scheme or 'http'}://{rest}")
    name = parts.hostname or "127.0.0.1"
    # A server that listens on every address can be reached on this one.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104
    port = parts.port or {"http": 80, "https": 443}.get(scheme) or 11434
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{port}"
