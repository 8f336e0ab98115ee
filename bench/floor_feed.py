"""The least that a feed can be: a process that hears NOTIFY and writes to all of its sockets."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

LINE = b"hello\n"
_MESSAGE = b"x" * 300


@asynccontextmanager
async def floor_feed(database_url: str) -> AsyncIterator[int]:
    """The port of such a process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.floor_feed"],
        env={**os.environ, "FLOOR_DATABASE_URL": database_url},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield int(await asyncio.to_thread(process.stdout.readline))
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


async def _main() -> None:
    clients: list[asyncio.StreamWriter] = []

    async def welcome(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clients.append(writer)

    server = await asyncio.start_server(welcome, "127.0.0.1", 0, backlog=1000)
    url = os.environ["FLOOR_DATABASE_URL"]
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("LISTEN floor_feed")
        print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201  # the process that started it reads
        async for _ in connection.notifies():
            for client in clients:
                client.write(_MESSAGE)


if __name__ == "__main__":
    import uvloop

    uvloop.run(_main())
