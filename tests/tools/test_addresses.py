"""Which addresses are public: everything else is refused, however it is written."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.errors import AddressRefused
from denizen.tools.addresses import check, is_allowed, is_public, resolve

PRIVATE = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
    "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
    "::/128", "::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "2001::/32", "2001:db8::/32", "100::/64",
    "64:ff9b:1::/48", "::/96",
]  # fmt: skip
ANY_4 = st.ip_addresses(v=4)
ANY_6 = st.ip_addresses(v=6)


@pytest.mark.parametrize("network", PRIVATE)
@given(data=st.data())
def test_no_address_of_a_private_network_is_public(network: str, data: st.DataObject):
    assert not is_public(data.draw(st.ip_addresses(network=network)))


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_hosts_of_the_internet_are_public(address: str):
    assert is_public(ip_address(address))


@given(ANY_4)
def test_what_python_calls_local_is_never_public(address: IPv4Address):
    assert not (is_public(address) and (address.is_private or address.is_multicast or address.is_reserved))


@given(st.one_of(ANY_4, st.sampled_from([IPv4Network(each)[1] for each in PRIVATE if ":" not in each])))
def test_an_address_within_an_ipv6_address_is_judged_as_itself(inner: IPv4Address):
    mapped = IPv6Address(0xFFFF << 32 | int(inner))
    nat64 = IPv6Address(int(IPv6Address("64:ff9b::")) | int(inner))
    six_to_four = IPv6Address(0x2002 << 112 | int(inner) << 80)
    assert {is_public(mapped), is_public(nat64), is_public(six_to_four)} == {is_public(inner)}


@given(ANY_6)
def test_outside_of_the_global_range_only_embedded_addresses_are_public(address: IPv6Address):
    embedding = address.ipv4_mapped is not None or address in IPv6Network("64:ff9b::/96")
    assert not is_public(address) or embedding or address in IPv6Network("2000::/3")


def test_one_private_address_among_public_ones_is_enough_to_refuse():
    with pytest.raises(AddressRefused, match=r"shop\.example is not on the public internet") as refused:
        check("shop.example", [IPv4Address("8.8.8.8"), IPv4Address("10.1.2.3")])
    assert "10.1.2.3" not in str(refused.value)
    check("shop.example", [IPv4Address("8.8.8.8"), IPv6Address("2606:4700::1111")])
    with pytest.raises(AddressRefused):
        check("shop.example", [])


@pytest.mark.parametrize(
    ("allowed", "yes"),
    [
        (["printer.local"], True),
        (["Printer.Local."], True),
        (["printer.local:80"], True),
        (["printer.local:81"], False),
        (["rinter.local"], False),
        (["x.printer.local"], False),
        ([], False),
    ],
)
def test_a_host_is_allowed_by_name_or_by_name_and_port(allowed: list[str], yes: bool):
    assert is_allowed("printer.local", 80, allowed) is yes
    assert is_allowed("PRINTER.local.", 80, allowed) is yes


def test_an_ipv6_host_is_allowed_with_or_without_brackets():
    assert all(is_allowed("::1", 80, [each]) for each in ("::1", "[::1]", "[::1]:80"))


@pytest.mark.parametrize("spelling", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "::1", "localhost"])
async def test_every_spelling_of_this_machine_is_seen_for_what_it_is(spelling: str):
    assert not any(is_public(each) for each in await resolve(spelling, 80))
