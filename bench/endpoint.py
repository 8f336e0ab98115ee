"""What outside nodes call while they are measured: a server that costs almost nothing itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_ANSWER = "HTTP/1.1 {} -\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"


@asynccontextmanager
async def endpoint(
    called: asyncio.Event | None = None, *, status: int | None = 200
) -> AsyncIterator[str]:
    """The URL of a server that answers every request alike and keeps its connections.

    `called` is set by each request. Without a status the server does not answer.
    """
    answer = _ANSWER.format(status).encode() if status else b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
                await writer.drain()
                if called is not None:
                    called.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.close()
