"""How the server may be reached: by which host names, through which proxies, and where a request came from.

Without settings it is reached on loopback only. Beyond loopback it speaks HTTPS: itself, or through a proxy that the
operator has named.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from denizen.errors import SettingsError
from denizen.settings.loopback import is_loopback
from denizen.settings.shape import Settings

_ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104  what is asked about, not what is bound


@dataclass(frozen=True, slots=True)
class Reach:
    """The host names of the server besides those of loopback, and the proxies that it trusts."""

    hosts: frozenset[str] = frozenset()
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    origin: str | None = None
    """The origin of our pages, if a proxy has another name than the one it asks us by."""
    path: str = ""
    """The path that public addresses begin with, such as `/agents`, where a proxy serves us below one."""

    def allows(self, host: str) -> bool:
        """Whether requests may use this host name."""
        return is_loopback(host) or host.lower().rstrip(".") in self.hosts

    def inner_path(self, path: str) -> str:
        """The path without what public addresses begin with: a proxy may have removed it, or not."""
        return path.removeprefix(self.path) if self.path and path.startswith(f"{self.path}/") else path

    def trusts(self, address: str) -> bool:
        """Whether this is the address of a trusted proxy."""
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(known in network for network in self.proxies)


@dataclass(frozen=True, slots=True)
class Visit:
    """Where a request came from, and how."""

    address: str
    """The client's address, as far as it is known."""
    secure: bool
    """Whether it came by HTTPS, to this server or to a trusted proxy."""
    nearby: bool
    """Whether it came from this machine, or through a trusted proxy."""
    host: str
    """The requested name and port, as written."""

    @property
    def port(self) -> str:
        """The requested port."""
        port = self.host.rpartition(":")[2]
        return port if port.isdecimal() and not self.host.endswith("]") else "443" if self.secure else "80"

    @property
    def origin(self) -> str:
        """The origin of our own pages for this request."""
        return f"{'https' if self.secure else 'http'}://{self.host.lower()}"


def visit_of(reach: Reach, scope: Scope, headers: Headers) -> Visit:
    """Determines where the request came from; the headers of proxies count only if the proxy is trusted."""
    peer = scope["client"][0] if scope.get("client") else ""
    secure, address, proxied = scope["scheme"] == "https", peer, reach.trusts(peer)
    if proxied:
        secure = secure or _last(headers, "x-forwarded-proto").lower() == "https"
        address = _forwarded_for(reach, headers) or peer
    names = headers.getlist("host")
    return Visit(address, secure, proxied or is_loopback(peer), names[0] if len(names) == 1 else "")


def _forwarded_for(reach: Reach, headers: Headers) -> str:
    """Returns the nearest address that is not a trusted proxy: anyone may have written those before it."""
    written = [each.strip() for value in headers.getlist("x-forwarded-for") for each in value.split(",")]
    return next((each for each in reversed(written) if each and not reach.trusts(each)), "")


def _last(headers: Headers, name: str) -> str:
    return ",".join(headers.getlist(name)).rpartition(",")[2].strip()


def without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def reach_of(settings: Settings) -> Reach:
    """Reads the settings. Raises `SettingsError` if they are unsafe, or if nobody could reach the server."""
    public = urlsplit(settings.public_url or "")
    hosts = {*settings.allowed_hosts, public.hostname or ""} - {""}
    if not is_loopback(settings.host):
        if settings.tls.certificate is None and not settings.trusted_proxy:
            raise SettingsError(
                f"host is {settings.host}, which other machines reach, and what they send could be read on the way. "
                "Give the server a certificate (tls.certificate and tls.key), or name the proxy that speaks HTTPS "
                "before it (trusted_proxy); or stay on loopback, with host 127.0.0.1 and a tunnel such as `ssh -L`."
            )
        if settings.host in _ANYWHERE and not hosts:
            raise SettingsError(
                f"host is {settings.host}, and no name is set by which others ask for this server: set public_url, "
                "such as https://agents.example.com, or allowed_hosts."
            )
        hosts |= {settings.host} - {*_ANYWHERE}
    networks = tuple(ipaddress.ip_network(each, strict=False) for each in settings.trusted_proxy)
    origin = f"{public.scheme}://{public.netloc}".lower() if public.netloc else None
    return Reach(frozenset(hosts), networks, origin, public.path.rstrip("/"))
