"""The connection itself: resolve once, judge every address, connect to the judged one.

TLS and the Host header keep the name, so nothing between the check and the connection can move.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import anyio
import httpcore2
from typing_extensions import override

from runtime.addresses import Address
from runtime.outbound.resolver import Resolver, permitted_addresses
from runtime.outbound_policy import OutboundPolicy

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
