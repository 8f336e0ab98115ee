"""Names to addresses, on threads of its own: a name server that hangs delays no other work."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

from runtime.addresses import Address, is_public, parse_address
from runtime.outbound.errors import OutboundBlockedError, OwnListenerError
from runtime.outbound_policy import OutboundPolicy

_MAX_ADDRESSES = 4


class Resolver(Protocol):
    """Raises OSError when the name has no address."""

    async def resolve(self, host: str, port: int, /) -> Sequence[Address]: ...


async def permitted_addresses(
    resolver: Resolver, policy: OutboundPolicy, host: str, port: int
) -> Sequence[Address]:
    """The addresses of a host, all of which must be permitted.

    Raises OutboundBlockedError, and OSError and UnicodeError for a name that has none.
    """
    addresses = await resolver.resolve(host, port)
    await _refuse_own(resolver, policy, host, port, addresses)
    # One private address among public ones is how a rebinding answer looks: refuse them all.
    if not all(policy.permits(host, address, port) for address in addresses):
        raise OutboundBlockedError(host)
    return addresses[:_MAX_ADDRESSES]


async def _refuse_own(
    resolver: Resolver, policy: OutboundPolicy, host: str, port: int, addresses: Sequence[Address]
) -> None:
    """Raise OwnListenerError for a connection to the platform itself.

    Its names are looked up with each call to one of its ports, which are few: they may move.
    """
    names: dict[str, Sequence[Address]] = {}
    public = all(is_public(address) for address in addresses)
    for listener in policy.own.at(port):
        if listener.address is None and not (listener.shared and public):
            with suppress(OSError, UnicodeError):
                names[listener.host] = await resolver.resolve(listener.host, port)
    if any(policy.own.is_own(host, address, port, names) for address in addresses):
        raise OwnListenerError(host, port)


class SystemResolver:
    """The machine's resolver: the same one, with the same reading of odd hosts, as `connect`."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Every address of the name, in the order the machine prefers, without repetitions."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _lookup, host, port)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _lookup(host: str, port: int) -> list[Address]:
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(parse_address(str(entry[4][0])) for entry in entries))
