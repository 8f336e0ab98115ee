"""Hosts: what can be the name or the address of one, and which are on the public internet.

`ipaddress.is_global` alone is not a guard: it has passed transition addresses that embed private
ones, and its answer differs between Python versions. So the lists stand here, and both must agree.
"""

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import idna

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NO_HOST = "The host is not a name or an address."
_NAME = re.compile(
    r"(?=.{1,253}\.?\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*"
    r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.?"
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ZONE = re.compile(r"[A-Za-z0-9._~-]{1,60}")

# IANA IPv4 Special-Purpose Address Registry, multicast, class E, and one cloud's metadata service.
_SPECIAL_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        # Public by number, yet answered by the host of every virtual machine on Azure.
        "168.63.129.16/32",
    )
)

# Only global unicast is routed (RFC 4291 2.4), so NAT64, mapped, unique-local, link-local and
# multicast addresses fall outside; inside it, what IANA lists as special or as a transition.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)


def is_host(host: str) -> bool:
    """Tell whether this can be a host, as it is looked up: a name in ASCII, or an address.

    One that ends in a number is an address, in any spelling that the machine reads (URL standard,
    3.5).
    """
    name = host.lower()
    if _NAME.fullmatch(name):
        bare = name.removesuffix(".")
        if _NUMBER.fullmatch(bare.rpartition(".")[2]):
            return number_address(bare) is not None
        return not bare.startswith("xn--") or _is_readable(bare)
    address, percent, zone = host.partition("%")
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return not percent or (parsed.version == 6 and _ZONE.fullmatch(zone) is not None)


def _is_readable(name: str) -> bool:
    """True for a name in Punycode that stands for one: our client writes it out."""
    try:
        idna.decode(name)
    except UnicodeError:
        return False
    return True


def number_address(host: str) -> IPv4Address | None:
    """The address that numbers are to the machine: `127.1` and `0x7f000001` are some."""
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def parse_address(text: str) -> Address:
    """The address that a connection to `text` really goes to: zone dropped, IPv4-mapped unwrapped.

    Raises ValueError for anything else than a canonical address literal.
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_public(address: Address) -> bool:
    """True when anyone on the internet could reach this address as well."""
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_V6)
