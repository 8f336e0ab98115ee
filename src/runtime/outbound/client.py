"""The client of every HTTP call that leaves the platform: in turn, hop by hop.

A name is resolved once, and every address judged. TLS and the Host header keep the name, so nothing
between the check and the connection can move.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import (
    AsyncIterator,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import UUID

import anyio
import h11
import httpcore2
import httpx2
from typing_extensions import override

from runtime.outbound import errors, messages
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
        raise errors.OutboundBlockedError(host)
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
        raise errors.OwnListenerError(host, port)


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


@dataclass(slots=True)
class Caller:
    """The work in whose name a task calls others.

    `key` is the same for each repetition of the task, and `execution` is the execution that repeats
    it. `calls` counts those begun so far; `connection_id` is the connection that they go through.
    """

    workspace_id: UUID
    work_id: UUID
    execution: str
    key: str
    connection_id: UUID | None = None
    calls: int = 0


calling: ContextVar[Caller | None] = ContextVar("calling", default=None)
"""None for calls without a caller, which have no turns."""


def call_through(connection_id: UUID) -> None:
    """Note that what the task calls from now on goes through a connection."""
    caller = calling.get()
    if caller is not None:
        caller.connection_id = connection_id


class Turns(Protocol):
    """Lets the callers of hosts take turns."""

    def turn(self, host: str) -> AbstractAsyncContextManager[None]:
        """Wait until the host may be called, and hold a place there in the block."""
        ...

    async def answered(self, answer: messages.OutboundResponse) -> None:
        """Heed what an answer asks of all callers; a turn is held meanwhile."""
        ...


KEPT, KEPT_SECONDS = 4, 600.0
"""Connections of HTTP/2 that stay open, and for how long without a call."""


@cache
def _public_tls(*, http2: bool) -> ssl.SSLContext:  # noqa: ARG001  # a pool writes its protocols there
    """Trusts the public certificate authorities, whose certificates a process reads once."""
    return httpx2.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of an answer: at most `limit` bytes of its body; whether more are a failure."""

    limit: int
    follows: bool
    cuts: bool
    sink: messages.Sink | None


@dataclass(slots=True)
class Progress:
    """The progress of a call: a silent host differs from a slow one only once connected."""

    host: str
    connected: bool = False

    async def trace(self, event: str, _info: object) -> None:
        """An httpcore2 trace hook."""
        if event == "connection.connect_tcp.complete":
            self.connected = True

    def late(self) -> errors.OutboundError:
        """The error of a deadline that passed now."""
        return (errors.OutboundTimeoutError if self.connected else errors.ConnectionFailedError)(
            self.host
        )


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
        """The turns of callers; a process that has callers sets it."""
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
        messages.check_host(host)
        try:
            async with asyncio.timeout(self.policy.connect_seconds):
                return await permitted_addresses(self._resolver, self.policy, host, port)
        except (OSError, UnicodeError):  # of which a time-out is one
            raise errors.ConnectionFailedError(host) from None

    async def send(
        self, request: messages.OutboundRequest, sink: messages.Sink | None = None
    ) -> messages.OutboundResponse:
        """Send one request, follow its redirects, and return the whole answer of any status.

        With a `sink` the body goes there as it arrives, and the answer has none. Raises the
        subclasses of OutboundError; their messages hold no secret of the request.
        """
        hop = messages.first_hop(request)
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
        messages.check_host(host)
        if self.turns is None:
            yield
            return
        async with self.turns.turn(host):
            yield

    async def _in_time(
        self, hop: messages.Hop, reading: Reading, seconds: float
    ) -> messages.OutboundResponse:
        progress = Progress(hop.url.host)
        try:
            async with asyncio.timeout(seconds) as deadline:
                return await self._follow(hop, reading, progress)
        except TimeoutError:
            # A time-out that is not ours, such as that of the caller, is for the caller.
            if not deadline.expired():
                raise
            raise progress.late() from None

    async def _follow(
        self, hop: messages.Hop, reading: Reading, progress: Progress
    ) -> messages.OutboundResponse:
        for _ in range(self.policy.max_redirects + 1):
            progress.host, progress.connected = hop.url.host, False
            answer = await self._exchange(hop, reading, progress)
            if isinstance(answer, messages.OutboundResponse):
                return answer
            hop = answer
        raise errors.TooManyRedirectsError(progress.host, self.policy.max_redirects)

    async def _exchange(
        self, hop: messages.Hop, reading: Reading, progress: Progress
    ) -> messages.OutboundResponse | messages.Hop:
        try:
            core = core_request(hop, self.policy, progress)
            response = await self._pool.handle_async_request(core)
            try:
                return await self._answer(hop, response, reading)
            finally:
                # Without this the pool keeps the connection for a body that is not read.
                await response.aclose()
        except (
            httpcore2.NetworkError,
            httpcore2.TimeoutException,
            httpcore2.ProtocolError,
            ssl.SSLError,
        ) as error:
            # Without the cause, whose text may quote headers and so credentials.
            raise failure(error, progress, self.policy) from None

    async def _answer(
        self, hop: messages.Hop, response: httpcore2.Response, reading: Reading
    ) -> messages.OutboundResponse | messages.Hop:
        host = hop.url.host
        check_headers(response, host, self.policy.max_header_bytes)
        headers = _headers(response)
        location = headers.get("location") if reading.follows else None
        redirected = messages.next_hop(hop, response.status, location)
        if redirected is not None:
            return redirected
        body = bytearray()

        async def keep(chunk: bytes) -> None:
            body.extend(chunk)

        try:
            size = await messages.read_body(response, host, reading.limit, reading.sink or keep)
        except (errors.ResponseTooLargeError, errors.UnknownCodingError) as error:
            if not reading.cuts:
                error.head = response.status, headers
                raise
            size = reading.limit
        return messages.OutboundResponse(
            status=response.status,
            headers=headers,
            body=bytes(body),
            bytes_received=size,
            final_url=str(hop.url),
        )


def _headers(response: httpcore2.Response) -> Mapping[str, str]:
    return dict(httpx2.Headers(response.headers).items())


_HEADER_FIELDS_TOO_LARGE = 431


def core_request(
    hop: messages.Hop, policy: OutboundPolicy, progress: Progress
) -> httpcore2.Request:
    """The hop as httpcore2 sends it: our headers, framed by httpx2."""
    # Characters beyond ASCII are sent as HTTP has always read them (RFC 9110, 5.5).
    headers = httpx2.Headers(hop.headers, encoding="latin-1")
    framed = httpx2.Request(hop.method, hop.url, headers=headers, content=hop.content)
    return httpcore2.Request(
        hop.method,
        httpcore2.URL(
            scheme=hop.url.raw_scheme,
            host=hop.url.raw_host,
            port=hop.url.port,
            target=hop.url.raw_path,
        ),
        headers=framed.headers.raw,
        content=hop.content or b"",
        extensions={
            "timeout": {
                "connect": policy.connect_seconds,
                "read": policy.read_seconds,
                "write": policy.read_seconds,
            },
            "trace": progress.trace,
        },
    )


def check_headers(response: httpcore2.Response, host: str, limit: int) -> None:
    """Raises ResponseTooLargeError when the header block passes `limit` bytes."""
    if sum(len(name) + len(value) for name, value in response.headers) > limit:
        raise errors.ResponseTooLargeError(host, "header block", limit)


def failure(error: Exception, progress: Progress, policy: OutboundPolicy) -> errors.OutboundError:
    """Our error for one of httpcore2's; its text stays behind, for it may quote a header."""
    match error:
        case httpcore2.ConnectError() | httpcore2.ConnectTimeout():
            return errors.ConnectionFailedError(progress.host)
        case httpcore2.TimeoutException():
            return progress.late()
        case httpcore2.LocalProtocolError():
            return errors.InvalidRequestError("The request is not valid HTTP.")
        case httpcore2.RemoteProtocolError() if _is_header_overflow(error):
            return errors.ResponseTooLargeError(
                progress.host, "header block", policy.max_header_bytes
            )
        case _:
            return errors.InvalidResponseError(progress.host)


def _is_header_overflow(error: Exception) -> bool:
    # httpcore2 keeps h11's exception as its only argument, and cuts the chain of causes.
    causes = [cause for cause in error.args if isinstance(cause, h11.RemoteProtocolError)]
    return any(cause.error_status_hint == _HEADER_FIELDS_TOO_LARGE for cause in causes)
