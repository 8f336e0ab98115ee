"""The server: uvicorn's, with bounds on connections and WebSockets; idle without requests."""

import asyncio
import logging
from asyncio import AbstractEventLoop, BaseTransport, TimerHandle, Transport
from collections import Counter
from collections.abc import Callable
from enum import Enum
from ipaddress import IPv6Address, ip_address, ip_network
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from api.kernel.responses import complete, error_response, new_request_id
from api.realtime.feeds import ABORT, WRITER
from runtime import errors
from runtime.clock import wait_until_set

STANDSTILL_SECONDS = 60.0
"""The time a client may read nothing of what waits for it."""


class Standstill:
    """The time that the client of a connection has left to read."""

    def __init__(self, loop: AbstractEventLoop, transport: Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._end: TimerHandle | None = None

    def begin(self) -> None:
        """More waits than may, or the connection is closing: the client must read now.

        A closing connection stays until its client has read the rest, which may be never.
        """
        if self._end is None:
            self._end = self._loop.call_later(STANDSTILL_SECONDS, self._transport.abort)

    def read(self) -> None:
        """The client has read; of a closing connection it must read the rest, too."""
        if not self._transport.is_closing():
            self.forget()

    def forget(self) -> None:
        """The connection is gone, or nothing waits for its client."""
        if self._end is not None:
            self._end.cancel()
            self._end = None


MOST_RECEIVED = 1024
"""Bytes of a client's message."""
PING_SECONDS = 30.0
MOST_UNSENT = 1 << 20
"""Bytes that may wait for a client which does not read."""

_silent = logging.getLogger("api.server.protocol")

# uvicorn would tell the whole URL of each connection, which holds its ticket.
_silent.setLevel(logging.ERROR)


class BoundedSocket(WebSocketsSansIOProtocol):
    """A WebSocket that ends when its client leaves too much unread.

    uvicorn ends a connection whose client does not answer pings. Here are the other bounds: what
    waits to be read by the client, how long it may read nothing, and the connections of one
    address, which `ConnectionLimits` counted before the handshake. Whole frames may be written past
    uvicorn, which would make the same one for each of a thousand clients anew.
    """

    def __init__(self, leave: Callable[[str], None], **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.logger = _silent
        self.address: str | None = None
        """The address whose connections count it."""
        self._leave = leave
        self._standstill: Standstill

    @override
    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._standstill = Standstill(self.loop, self.transport)

    @override
    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][WRITER] = self  # type: ignore[assignment]  # our own

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._standstill.forget()
        if self.address is not None:
            self._leave(self.address)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._standstill.begin()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._standstill.read()

    @override
    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._standstill.begin()

    def write_frames(self, frames: bytes) -> None:
        """Write without waiting; a client that leaves too much unread is cut off."""
        if self.close_sent or self.transport.is_closing():
            return
        # Looked at before: however much comes at once, it was not left unread yet.
        if self.transport.get_write_buffer_size() > MOST_UNSENT:
            self.transport.abort()
        else:
            self.transport.write(frames)

    def close_with(self, code: int) -> None:
        """Begin to end the connection with a status code."""
        if not self.writable.is_set():
            self.transport.abort()
            return
        self._standstill.begin()
        task = self.loop.create_task(self.send({"type": "websocket.close", "code": code}))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


MOST_HEAD_BYTES = 64 * 1024
"""Of a request line with headers, of the trailers of a body, or between two pieces of a body."""
_LONGEST_URL = 2**16 - 1
"""Bytes of the longest URL that the parser reads."""
_NETWORK_BITS = 64
"""One host is given this much of an IPv6 address, and chooses the rest itself."""


class MalformedRequestError(errors.InvalidError):
    """The bytes are no HTTP request (RFC 9112)."""

    def __init__(self, message: str = "Invalid HTTP/1.1 request.") -> None:
        super().__init__(message)


class HeadTooLargeError(errors.PlatformError):
    """RFC 6585, 5."""

    tag = "ApiHeadersTooLarge"
    code = "headers_too_large"
    status = 431

    def __init__(self) -> None:
        super().__init__(
            f"The request line and headers are larger than {MOST_HEAD_BYTES // 1024} KiB. Shorten"
            " the URL or the headers."
        )


class TooManyConnectionsError(errors.RateLimitedError):
    headers: ClassVar[dict[str, str]] = {"Retry-After": "2"}

    def __init__(self, most: int) -> None:
        super().__init__(f"Limit of {most} connections per IP address. Reuse open connections.")


class ConnectionLimits:
    """The limits of a process, and the number of connections that each address holds in it."""

    def __init__(self, head_seconds: float, most_per_address: int) -> None:
        """`most_per_address` 0 sets no limit."""
        self.head_seconds = head_seconds
        self.most_per_address = most_per_address
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Count a connection of an address; False when it has as many as it may."""
        if self.most_per_address and self._open[address] >= self.most_per_address:
            return False
        self._open[address] += 1
        return True

    def leave(self, address: str) -> None:
        """Count one less."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]


class _Part(Enum):
    """The part of a request that the connection is in."""

    BETWEEN = 0
    HEAD = 1
    BODY = 2
    REFUSED = 3
    """The rest is read and thrown away: closed at once, the client would miss the answer
    (RFC 9112, 9.6).
    """


class BoundedConnection(HttpToolsProtocol):
    """A connection of uvicorn's that ends when its client is late, or sends what it may not.

    uvicorn bounds how long a connection is idle between two requests, and nothing else. Here are
    the other bounds: the time for the head of a request, its size, the time for bytes that are no
    longer read, the time an answer may stall, and the connections of one address. How fast a body
    must arrive is `kernel.body`'s, which knows when the application waits for it.
    """

    def __init__(self, limits: ConnectionLimits, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._limits = limits
        self._address: str | None = None
        self._part = _Part.BETWEEN
        self._head_bytes = 0
        self._names_host = True
        self._upgraded = False
        self._deadline: TimerHandle | None = None
        self._standstill: Standstill

    @override
    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._standstill = Standstill(self.loop, transport)
        if self.client is not None:
            address = _host(self.client[0])
            if not self._limits.enter(address):
                self._write(TooManyConnectionsError(self._limits.most_per_address))
                self._close()
                return
            self._address = address
        self._watch()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget_deadline()
        self._standstill.forget()
        if self._address is not None:
            self._limits.leave(self._address)

    @override
    def data_received(self, data: bytes) -> None:
        if self._part is _Part.REFUSED:
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refuse(HeadTooLargeError())
        self._watch()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.transport.abort}  # type: ignore[dict-item]  # ours
        self._part = _Part.HEAD

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers come after the body, and are no headers (RFC 9110, 6.5.1).
        if self._part is _Part.HEAD:
            super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        hosts = [value for name, value in self.headers if name == b"host"]
        # A proxy before us may have read the other one (RFC 9112, 3.2).
        is_old = self.parser.get_http_version() == "1.0"
        self._names_host = len(hosts) == 1 or (is_old and not hosts)
        if not self._names_host:
            raise MalformedRequestError
        super().on_headers_complete()
        self._part = _Part.BODY

    @override
    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._head_bytes = 0

    @override
    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._part = _Part.BETWEEN
        self._head_bytes = 0

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._standstill.begin()
        elif self._part is _Part.BODY:
            self._watch()

    @override
    def send_400_response(self, msg: str) -> None:
        # The parser takes a URL that is too long for a malformed one.
        is_long = self._part is _Part.HEAD and len(self.url or b"") >= _LONGEST_URL
        if is_long:
            self._refuse(HeadTooLargeError())
        elif not self._names_host:
            self._refuse(MalformedRequestError("An HTTP/1.1 request must have one Host header."))
        else:
            self._refuse(MalformedRequestError())

    @override
    def _unsupported_upgrade_warning(self) -> None:
        """Any client may ask for another protocol; it is answered in this one (RFC 9110, 7.8)."""

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._standstill.begin()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._standstill.read()

    @override
    def timeout_keep_alive_handler(self) -> None:
        self._close()

    @override
    def handle_websocket_upgrade(self) -> None:
        # The address stays counted: what serves the connection now lets go of it.
        address, self._address = self._address, None
        super().handle_websocket_upgrade()
        self._upgraded = True
        protocol = self.transport.get_protocol()
        if isinstance(protocol, BoundedSocket):
            protocol.address = address

    def _watch(self) -> None:
        """Wait for the client as long as it may take, if it is the client we wait for."""
        if self._upgraded or self.transport.is_closing() or not self._owed():
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._limits.head_seconds, self._late)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _owed(self) -> bool:
        """True when the remaining head is due, or a remaining body that is no longer read."""
        return self._part in {_Part.HEAD, _Part.REFUSED} or not self._answering()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _late(self) -> None:
        self._deadline = None
        if self._part is _Part.REFUSED:
            self._close()
        elif self._answering():
            # We read no further, or could not answer yet.
            self._watch()
        elif self._part is _Part.HEAD:
            seconds = f"{self._limits.head_seconds:g}"
            self._refuse(errors.RequestTimeoutError(f"The headers did not arrive in {seconds} s."))
        else:
            self._close()

    def _close(self) -> None:
        self.transport.close()
        self._standstill.begin()

    def _refuse(self, error: errors.PlatformError) -> None:
        """End the connection, with the answer if it is the next one the client expects."""
        if self.transport.is_closing() or self._part is _Part.REFUSED:
            return
        if self._answering() and (
            self._part is not _Part.BODY or self.pipeline or self.cycle.response_started
        ):
            self._close()
            return
        if self._answering():
            # Its application finds the client gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._write(error)
        self.transport.write_eof()
        self._part = _Part.REFUSED
        self.flow.resume_reading()
        self._forget_deadline()
        self._watch()

    def _write(self, error: errors.PlatformError) -> None:
        response = error_response(error)
        lines = [STATUS_LINE[response.status_code], b"connection: close\r\n"]
        for name, value in complete(response.raw_headers, new_request_id()):
            lines += [name, b": ", value, b"\r\n"]
        self.transport.write(b"".join([*lines, b"\r\n", bytes(response.body)]))


def _host(address: str) -> str:
    """The name that stands for the host of an address."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(ip, IPv6Address):
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ip_network((ip, _NETWORK_BITS), strict=False))


TICK_SECONDS = 1.0
"""The header `Date` is renewed that often."""


class Server(uvicorn.Server):
    """Wakes up once a second and at its end, where uvicorn looks ten times a second for that.

    `on_exit` is called when the first signal comes.
    """

    def __init__(self, config: uvicorn.Config, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit
        self._exit = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @override
    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Only a tick whose number is a multiple of ten renews the headers.
        while not await self.on_tick(0):
            await wait_until_set(self._exit, TICK_SECONDS)

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_exit()
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._exit.set)
