"""Clients that ask for something and do not read the answer."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import psutil

from tests.support.patience import ENOUGH, eventually
from tests.support.server import Server

WEBSOCKET = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
"""The headers of a handshake (RFC 6455, 4.1)."""


@contextlib.contextmanager
def silent_client(
    url: str, *headers: str, method: str = "GET", body: bytes = b""
) -> Iterator[socket.socket]:
    """A client that sends a request, and for which the kernel keeps a few KiB of the answer."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    target = f"{parts.path}?{parts.query}".rstrip("?")
    head = [f"{method} {target} HTTP/1.1", f"Host: {parts.netloc}", *headers]
    head += [f"Content-Length: {len(body)}"] if body else []
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((parts.hostname, parts.port))
        connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
        connection.settimeout(ENOUGH)
        yield connection


def rest_of(connection: socket.socket) -> bytes:
    """What a connection still gives until it ends."""
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(1 << 20):
            received += piece
    return bytes(received)


def _answered(connection: socket.socket) -> None:
    """Return once an answer has begun, which is left to be read, or will not come."""
    with contextlib.suppress(ConnectionError):
        connection.recv(1, socket.MSG_PEEK)


async def cut_off(server: Server, *connections: socket.socket) -> None:
    """Return once the server holds none of these connections, which are not read."""
    for one in connections:
        # The server may not have taken it yet.
        await asyncio.to_thread(_answered, one)
    own = {one.getsockname()[1] for one in connections}
    process = psutil.Process(server.pid)

    async def are_gone() -> bool:
        held = process.net_connections(kind="tcp")
        return own.isdisjoint({one.raddr.port for one in held if one.raddr})

    await eventually(are_gone, what="the end of connections that nobody reads")
