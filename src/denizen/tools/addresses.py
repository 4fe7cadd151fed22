"""Which network addresses tools may reach. Pure, except for `resolve`.

A name is judged by what it resolves to, never by how it is spelled. Everything that is not clearly public is refused:
our own machine, private networks, the metadata services of clouds, and IPv6 addresses that contain such an IPv4
address.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from denizen.errors import AddressRefused

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Returns every address of a host."""

# Our own list and not `is_global`, which differs between the releases of Python.
_NOT_PUBLIC_4: Final = tuple(
    IPv4Network(each)
    for each in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, and the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_PUBLIC_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    IPv6Network(each)
    for each in (
        "2001::/23",  # protocol assignments, including Teredo
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
# The position of the embedded IPv4 address, in bits from the right.
_EMBEDDING: Final = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)


_WITH_PORT: Final = re.compile(r"(\[[^\]]*\]|[^:]*):([0-9]+)")


def is_public(address: Address) -> bool:
    """Whether an address belongs to a host of the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    for network, shift in _EMBEDDING:
        if address in network:
            return is_public(IPv4Address(int(address) >> shift & 0xFFFF_FFFF))
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def is_allowed(host: str, port: int, allow_private: Iterable[str]) -> bool:
    """Whether `host` is listed, alone or with this port, among the hosts that may be private."""
    name = _plain(host)
    accepted = {name, f"{name}:{port}", f"[{name}]", f"[{name}]:{port}"}
    return any(_plain(each) in accepted for each in allow_private)


def is_listed(entry: str, listed: Iterable[str]) -> bool:
    """Whether an entry of `allow_private` (`name` or `name:port`) is covered by a list of such entries.

    A listed name covers each of its ports; a listed port covers no other port and not the name alone.
    """
    wanted = _host_and_port(entry)
    return any(each in (wanted, (wanted[0], "")) for each in map(_host_and_port, listed))


def _host_and_port(entry: str) -> tuple[str, str]:
    found = _WITH_PORT.fullmatch(entry.strip())
    host, port = (found[1], found[2]) if found else (entry, "")
    return _plain(host).removeprefix("[").removesuffix("]"), port


def check(host: str, addresses: Sequence[Address]) -> None:
    """Raises `AddressRefused` unless every address of the host is public."""
    if not addresses:
        raise AddressRefused(f"{host} has no address.")
    if not all(is_public(each) for each in addresses):
        # The message does not name the address: that would reveal the inside of a network.
        raise AddressRefused(
            f"{host} is not on the public internet, and this tool may not reach private addresses. "
            "The owner of the agent can permit it with `allow_private`."
        )


async def resolve(host: str, port: int) -> Sequence[Address]:
    """Every address of a host, in the order in which the system would try them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(each[4][0]) for each in found))


def _plain(host: str) -> str:
    return host.strip().lower().rstrip(".")
