"""A feed as a WebSocket (RFC 6455): what serves the connection once it is opened."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from starlette.types import Receive, Scope, Send
from typing_extensions import override

from api.kernel.responses import as_refusal, error_response
from api.realtime.feed import End, Feed
from api.realtime.hub import Hub
from api.realtime.messages import Message
from runtime.errors import PlatformError

WRITER = "workspace.writer"
"""Key of the extension by which a connection offers its `Writer`."""


class Writer(Protocol):
    """The connection below a feed."""

    def write_frames(self, frames: bytes) -> None:
        """Write without waiting; a client that leaves too much unread is cut off."""

    def close_with(self, code: int) -> None:
        """Begin to end the connection with a status code."""


class SocketFeed(Feed):
    """A feed that writes to its connection."""

    writer: Writer
    asgi: Send

    @override
    def offer(self, messages: Iterable[Message]) -> None:
        self.writer.write_frames(b"".join(one.frame for one in messages))

    @override
    async def send(self, messages: Iterable[Message]) -> None:
        for one in messages:
            # The server waits here until the client has read.
            await self.asgi({"type": "websocket.send", "text": one.content.decode()})

    @override
    def close(self, why: End) -> None:
        self.writer.close_with(why)


async def refuse(error: PlatformError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a handshake with a refusal, as any request is answered."""
    await receive()
    await error_response(error)(scope, receive, send)


async def serve(
    feed: SocketFeed, hub: Hub, since: int | None, scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve an opened connection until one of its sides ends it."""
    await receive()
    feed.writer, feed.asgi = scope["extensions"][WRITER], send
    with hub.serving(feed):
        await send({"type": "websocket.accept"})
        catching_up = asyncio.create_task(_catching_up(feed, hub, since))
        try:
            # Clients have nothing to say; what they send ends the connection.
            if (await receive())["type"] == "websocket.receive":
                feed.end(End.WITHDRAWN)
        finally:
            catching_up.cancel()


async def _catching_up(feed: SocketFeed, hub: Hub, since: int | None) -> None:
    try:
        await hub.catch_up(feed, since)
    except Exception as error:  # noqa: BLE001  # the handshake is over, so it can only end
        as_refusal(error)
        feed.end(End.RESTART)
