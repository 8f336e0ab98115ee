"""The bounds of a WebSocket's cost to the server, in uvicorn's protocol.

uvicorn ends a connection whose client does not answer pings. Here are the other bounds: what waits
to be read by the client, how long it may read nothing, and the connections of one address, which
`connections` counted before the handshake. Whole frames may be written past uvicorn, which would
make the same one for each of a thousand clients anew.
"""

import logging
from asyncio import BaseTransport
from collections.abc import Callable
from typing import Any

from typing_extensions import override
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from api.realtime.sockets import WRITER
from api.standstill import Standstill

MOST_RECEIVED = 1024
"""Bytes of a client's message."""
PING_SECONDS = 30.0
MOST_UNSENT = 1 << 20
"""Bytes that may wait for a client which does not read."""

_silent = logging.getLogger("api.websockets.protocol")
# uvicorn would tell the whole URL of each connection, which holds its ticket.
_silent.setLevel(logging.ERROR)


class BoundedSocket(WebSocketsSansIOProtocol):
    """A WebSocket that ends when its client leaves too much unread."""

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
