"""The providers that a person can choose when they connect a model, and what each of them needs. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from denizen.errors import InvalidInput
from denizen.models.catalog import GATEWAYS, Models, known_names, provider_of
from denizen.models.discovery import USUAL_MODELS
from denizen.models.local_servers import SERVERS, with_version
from denizen.models.location import OLLAMA_URL, ollama_in

HOSTED: Final = (
    "anthropic",
    "openai",
    "deepseek",
    "moonshotai",
    "zai",
    "alibaba",
    "cerebras",
    "fireworks",
    "together",
    "openrouter",
)
"""Hosted providers that work without further packages, the best known first."""
MOST_SUGGESTED: Final = 12
ADDRESS_CHARACTERS: Final = 300
_METADATA_HOSTS: Final = frozenset({"metadata", "metadata.google.internal"})


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider, and what is needed to use it."""

    prefix: str
    """The prefix of its models' names."""
    title: str
    key_name: str | None
    """The environment variable, and the name of the secret, for its key."""
    needs_key: bool
    takes_address: bool
    """Whether its address can be set: a server of one's own, or a provider that a gateway may stand in front of."""
    needs_address: bool = False
    """Whether it is a server of one's own, which has no address unless somebody sets it."""
    usual_address: str | None = None
    fixed_by: str | None = None
    """The environment variable that sets its address; it overrides an address from the database."""
    suggestions: tuple[str, ...] = ()
    """Some of its models, as agents name them."""


def providers(environ: Mapping[str, str]) -> list[ModelProvider]:
    """Returns the providers to choose from: hosted ones first, then self-hosted servers."""
    catalog, known = Models(), list(known_names())
    hosted = [
        ModelProvider(
            each,
            provider_of(f"{each}:x") or each,
            catalog.key_name(f"{each}:x"),
            needs_key=True,
            takes_address=each in GATEWAYS,
            fixed_by=fixed_address(each, environ),
            suggestions=_suggestions(each, known),
        )
        for each in HOSTED
    ]
    return [*hosted, *(_server(prefix, environ) for prefix in ("ollama", *SERVERS))]


def provider_named(prefix: str, environ: Mapping[str, str]) -> ModelProvider | None:
    return next((each for each in providers(environ) if each.prefix == prefix), None)


def fixed_address(prefix: str, environ: Mapping[str, str]) -> str | None:
    """Returns the environment variable that sets this provider's address, if one does."""
    names = ("OLLAMA_BASE_URL", "OLLAMA_HOST") if prefix == "ollama" else (_variable(prefix),)
    return next((name for name in names if name and environ.get(name, "").strip()), None)


def check_address(prefix: str, address: str) -> str:
    """Normalizes the address of a server. Raises `InvalidInput` if it cannot be one."""
    address = address.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    if len(address) > ADDRESS_CHARACTERS or parts.scheme not in ("http", "https") or not host:
        raise InvalidInput("address: This is not an address. Enter one such as http://127.0.0.1:8080/v1.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidInput("address: Enter the address without a user, a password, ? or #. A key has its own field.")
    if is_metadata(host):
        raise InvalidInput("address: This address belongs to the machine's network, not to a model server.")
    # Clients of these two add the version by themselves.
    return address.removesuffix("/v1") if prefix in ("ollama", "anthropic") else with_version(address)


def is_metadata(host: str) -> bool:
    """Whether the host may be a cloud's metadata service, which holds credentials of the machine: no model is served
    there.
    """
    if host.lower().rstrip(".") in _METADATA_HOSTS:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    return address.is_link_local or address.is_multicast or str(address) in ("fd00:ec2::254", "100.100.100.200")


def _server(prefix: str, environ: Mapping[str, str]) -> ModelProvider:
    if prefix == "ollama":
        usual: str | None = ollama_in(environ) or OLLAMA_URL
    else:
        usual = SERVERS[prefix].url(environ)
    return ModelProvider(
        prefix,
        provider_of(f"{prefix}:x") or prefix,
        Models().key_name(f"{prefix}:x"),
        needs_key=False,
        takes_address=True,
        needs_address=True,
        usual_address=usual,
        fixed_by=fixed_address(prefix, environ),
    )


def _variable(prefix: str) -> str | None:
    return SERVERS[prefix].variable if prefix in SERVERS else GATEWAYS.get(prefix)


def _suggestions(prefix: str, known: list[str]) -> tuple[str, ...]:
    # For a provider with a hundred models, an alphabetical list begins with those that nobody wants.
    return USUAL_MODELS.get(prefix) or tuple(each for each in known if each.startswith(f"{prefix}:"))[:MOST_SUGGESTED]
