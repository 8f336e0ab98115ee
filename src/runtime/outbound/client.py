"""The client of every HTTP call that leaves the platform."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from types import TracebackType
from typing import Self

import httpcore2
import httpx2

from runtime.addresses import Address
from runtime.outbound.backend import CheckedBackend
from runtime.outbound.encoding import first_hop
from runtime.outbound.errors import (
    ConnectionFailedError,
    ResponseTooLargeError,
    TooManyRedirectsError,
)
from runtime.outbound.exchange import (
    Progress,
    Sink,
    check_headers,
    core_request,
    failure,
    read_body,
)
from runtime.outbound.messages import OutboundRequest, OutboundResponse
from runtime.outbound.redirects import Hop, next_hop
from runtime.outbound.resolver import Resolver, SystemResolver, permitted_addresses
from runtime.outbound.turns import Turns
from runtime.outbound.urls import check_host
from runtime.outbound_policy import OutboundPolicy

KEPT, KEPT_SECONDS = 4, 600.0
"""Connections of HTTP/2 that stay open, and for how long without a call."""


@cache
def _public_tls(*, http2: bool) -> ssl.SSLContext:  # noqa: ARG001  # a pool writes its protocols there
    """Trusts the public certificate authorities, whose certificates a process reads once."""
    return httpx2.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of an answer: so many bytes of its body, and whether more are a failure."""

    limit: int
    follows: bool
    cuts: bool
    sink: Sink | None


class OutboundClient:
    """An HTTP/1.1 client that reaches public addresses, and those its policy allows.

    It keeps nothing between calls: no cookies, no connections, no proxy or netrc from the
    environment, no retries. A cancelled call closes its socket at once. Safe to share by tasks.
    One made for `http2` speaks nothing else, and keeps its connections for other calls.
    """

    def __init__(
        self,
        policy: OutboundPolicy,
        *,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        http2: bool = False,
    ) -> None:
        self.policy = policy
        self.turns: Turns | None = None
        """The turns of whoever calls; a process that has callers sets it."""
        self._threads = SystemResolver() if resolver is None else None
        self._resolver = resolver or self._threads or SystemResolver()
        self._tls = tls
        self._http2 = http2

    @cached_property
    def _pool(self) -> httpcore2.AsyncConnectionPool:
        # Made for the first call: to read the certificates takes a worker 20 ms of its start.
        return httpcore2.AsyncConnectionPool(
            ssl_context=self._tls or _public_tls(http2=self._http2),
            max_connections=None,
            max_keepalive_connections=KEPT if self._http2 else 0,
            keepalive_expiry=KEPT_SECONDS,
            http1=not self._http2,
            http2=self._http2,
            network_backend=CheckedBackend(self.policy, self._resolver),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if "_pool" in vars(self):
            await self._pool.aclose()
        if self._threads is not None:
            self._threads.close()

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """The addresses that a client of another protocol may connect to, instead of the name.

        Raises InvalidUrlError, OutboundBlockedError, and ConnectionFailedError for a name that has
        none.
        """
        check_host(host)
        try:
            async with asyncio.timeout(self.policy.connect_seconds):
                return await permitted_addresses(self._resolver, self.policy, host, port)
        except (OSError, UnicodeError):  # of which a time-out is one
            raise ConnectionFailedError(host) from None

    async def send(self, request: OutboundRequest, sink: Sink | None = None) -> OutboundResponse:
        """Send one request, follow its redirects, and return the whole answer of any status.

        With a `sink` the body goes there as it arrives, and the answer has none. Raises the
        subclasses of OutboundError; their messages hold no secret of the request.
        """
        hop = first_hop(request)
        reading = Reading(
            min(request.max_bytes, self.policy.max_body_bytes),
            follows=request.follow_redirects,
            cuts=request.cut_body,
            sink=sink,
        )
        async with self.turn(hop.url.raw_host.decode("ascii")):
            answer = await self._in_time(hop, reading, request.timeout_seconds)
            if self.turns is not None:
                await self.turns.answered(answer)
            return answer

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Hold the turn of a call of a host, in any protocol. Raises InvalidUrlError."""
        check_host(host)
        if self.turns is None:
            yield
            return
        async with self.turns.turn(host):
            yield

    async def _in_time(self, hop: Hop, reading: Reading, seconds: float) -> OutboundResponse:
        progress = Progress(hop.url.host)
        try:
            async with asyncio.timeout(seconds) as deadline:
                return await self._follow(hop, reading, progress)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise progress.late() from None

    async def _follow(self, hop: Hop, reading: Reading, progress: Progress) -> OutboundResponse:
        for _ in range(self.policy.max_redirects + 1):
            progress.host, progress.connected = hop.url.host, False
            answer = await self._exchange(hop, reading, progress)
            if isinstance(answer, OutboundResponse):
                return answer
            hop = answer
        raise TooManyRedirectsError(progress.host, self.policy.max_redirects)

    async def _exchange(
        self, hop: Hop, reading: Reading, progress: Progress
    ) -> OutboundResponse | Hop:
        try:
            core = core_request(hop, self.policy, progress)
            response = await self._pool.handle_async_request(core)
            try:
                return await self._answer(hop, response, reading)
            finally:
                await response.aclose()
        except (
            httpcore2.NetworkError,
            httpcore2.TimeoutException,
            httpcore2.ProtocolError,
            ssl.SSLError,
        ) as error:
            raise failure(error, progress, self.policy) from None

    async def _answer(
        self, hop: Hop, response: httpcore2.Response, reading: Reading
    ) -> OutboundResponse | Hop:
        host = hop.url.host
        check_headers(response, host, self.policy.max_header_bytes)
        headers = _headers(response)
        location = headers.get("location") if reading.follows else None
        redirected = next_hop(hop, response.status, location)
        if redirected is not None:
            return redirected
        body = bytearray()

        async def keep(chunk: bytes) -> None:
            body.extend(chunk)

        try:
            size = await read_body(response, host, reading.limit, reading.sink or keep)
        except ResponseTooLargeError as error:
            if not reading.cuts:
                error.head = response.status, headers
                raise
            size = reading.limit
        return OutboundResponse(
            status=response.status,
            headers=headers,
            body=bytes(body),
            bytes_received=size,
            final_url=str(hop.url),
        )


def _headers(response: httpcore2.Response) -> Mapping[str, str]:
    return dict(httpx2.Headers(response.headers).items())
