"""A service that fails twice before it answers, on the one local port the workers may call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from cli.supervisor.ports import LOOPBACK

FAILURES = 2
RATE = 1.5


@dataclass
class FlakyEndpoint:
    """Counts requests; `failed_once` is set when the first of them has been refused."""

    port: int = 0
    """A free one, once it is serving."""
    requests: int = 0
    failed_once: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/rate"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen for the length of the block."""
        server = await asyncio.start_server(self._handle, LOOPBACK, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            writer.write(self._answer())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
        self.failed_once.set()

    def _answer(self) -> bytes:
        if self.requests <= FAILURES:
            return b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
        body = f'{{"rate": {RATE}}}'
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        return f"{head}\r\n\r\n{body}".encode()
