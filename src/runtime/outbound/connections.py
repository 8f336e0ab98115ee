"""The connection itself: resolve once, judge every address, connect to the judged one.

TLS and the Host header keep the name, so nothing between the check and the connection can move.
"""

import asyncio
import socket
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

import anyio
import httpcore2
from typing_extensions import override

from runtime.outbound.errors import OutboundBlockedError, OwnListenerError
from runtime.outbound_policy import Address, OutboundPolicy, is_public, parse_address

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
            # A listener without an address cannot be reached by any name.
            with suppress(OSError, UnicodeError):
                names[listener.host] = await resolver.resolve(listener.host, port)
    if any(policy.own.is_own(host, address, port, names) for address in addresses):
        raise OwnListenerError(host, port)


class SystemResolver:
    """The machine's resolver: the same one, with the same reading of odd hosts, as `connect`."""

    def __init__(self) -> None:
        # Threads of its own: slow name servers must not use up the default ones, which read files.
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Every address of the name, in the order the machine prefers, without repetitions."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _lookup, host, port)

    def close(self) -> None:
        # getaddrinfo cannot be interrupted, and may take many seconds.
        self._threads.shutdown(wait=False, cancel_futures=True)


def _lookup(host: str, port: int) -> list[Address]:
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(parse_address(str(entry[4][0])) for entry in entries))


# A host that lists a dead address first must not use up the time of the living one behind it.
_SECONDS_PER_ADDRESS = 4.0


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """An httpcore2 backend that opens TCP connections to permitted addresses only."""

    def __init__(self, policy: OutboundPolicy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver
        self._network = httpcore2.AnyIOBackend()

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address of `host` that answers.

        Raises OutboundBlockedError, httpcore2.ConnectError and httpcore2.ConnectTimeout.
        """
        deadline = time.monotonic() + (self._policy.connect_seconds if timeout is None else timeout)
        addresses = await self._checked(host, port, deadline)
        for number, address in enumerate(addresses, start=1):
            seconds = deadline - time.monotonic()
            if number < len(addresses):
                seconds = min(seconds, _SECONDS_PER_ADDRESS)
            try:
                return await self._network.connect_tcp(
                    str(address), port, seconds, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise httpcore2.ConnectError

    async def _checked(self, host: str, port: int, deadline: float) -> Sequence[Address]:
        try:
            with anyio.fail_after(deadline - time.monotonic()):
                return await permitted_addresses(self._resolver, self._policy, host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError from None

    @override
    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise NotImplementedError

    @override
    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
