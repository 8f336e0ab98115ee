"""The address that a request comes from, as the limits of callers without an account count it."""

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from starlette.types import Scope

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_PREFIX = 64
"""The bits of an IPv6 address that name the site: one caller has all addresses below them."""


def networks(entries: Sequence[str]) -> tuple[Network, ...]:
    """The networks of the proxies that are trusted."""
    return tuple(ip_network(entry) for entry in entries)


def client_address(scope: Scope, proxies: Sequence[Network]) -> str:
    """The address of the caller: an IPv4 address, or the network of an IPv6 address.

    Behind trusted proxies it is the last one in `X-Forwarded-For` that is none of theirs; what a
    caller writes there stands before it. Empty where a listener knows no addresses.
    """
    client = scope.get("client")
    if client is None:
        return ""
    hops = [client[0]]
    for name, value in reversed(scope["headers"]):
        if name == b"x-forwarded-for":
            hops += reversed(value.decode("latin-1").split(","))
    caller: Address | None = None
    for hop in hops:
        address = _read(hop.strip())
        if address is None:
            break
        caller = address
        if not any(address in proxy for proxy in proxies):
            break
    if caller is None:
        return ""
    if isinstance(caller, IPv4Address):
        return str(caller)
    return str(IPv6Network((int(caller), _PREFIX), strict=False))


def _read(text: str) -> Address | None:
    """The address in the form that proxies give it, perhaps with a port; None for anything else."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
