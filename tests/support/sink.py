"""A foreign server that notes every call it takes, and fails in ways a test chooses by path."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

REFUSALS = 2
"""Calls of one key that `/flaky` refuses before it answers."""
SLOW_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived; `key` is its Idempotency-Key: run, node and scope."""

    key: str
    body: bytes
    at: float

    @property
    def run_id(self) -> str:
        return self.key.partition(":")[0]

    @property
    def node_id(self) -> str:
        return self.key.split(":")[1]


@dataclass
class Sink:
    """`/ok` answers, `/slow` takes its time, `/flaky` refuses at first, `/broken` always does.

    `/held` keeps the first call of a key waiting until the second one comes.
    """

    port: int = 0
    calls: list[Call] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _again: defaultdict[str, asyncio.Event] = field(
        default_factory=lambda: defaultdict(asyncio.Event)
    )

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def counts(self) -> Counter[str]:
        """Calls by key."""
        return Counter(call.key for call in self.calls)

    def of_run(self, run_id: object) -> list[Call]:
        return [call for call in self.calls if call.run_id == str(run_id)]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            writer.write(await self._answer(head[0].split()[1], headers["idempotency-key"], body))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, key: str, body: bytes) -> bytes:
        self.calls.append(Call(key, body, time.monotonic()))
        self.arrived.set()
        if path == "/slow":
            await asyncio.sleep(SLOW_SECONDS)
        if path == "/held":
            if self.counts()[key] > 1:
                self._again[key].set()
            await self._again[key].wait()
        if path == "/broken" or (path == "/flaky" and self.counts()[key] <= REFUSALS):
            return b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b'Content-Length: 11\r\n\r\n{"rate": 1}'
        )


@asynccontextmanager
async def serving() -> AsyncIterator[Sink]:
    """A sink on a free port, for the length of the block."""
    sink = Sink()
    server = await asyncio.start_server(sink.handle, "127.0.0.1", 0)
    sink.port = server.sockets[0].getsockname()[1]
    try:
        yield sink
    finally:
        server.close()
