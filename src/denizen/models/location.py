"""Where a model's server is, by its address: at OpenAI, on this machine or network, or elsewhere. Pure."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_OPENAI_HOST: Final = "openai.com"


def is_openai(url: str | None) -> bool:
    """Whether the address is OpenAI's own, and not of a server that speaks its API."""
    host = _host(url)
    return host == _OPENAI_HOST or host.endswith(f".{_OPENAI_HOST}")


def is_loopback(url: str | None) -> bool:
    """Whether the address is on this machine."""
    host = _host(url)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def _host(url: str | None) -> str:
    try:
        return (urlsplit(url or "").hostname or "").lower()
    except ValueError:
        return ""
