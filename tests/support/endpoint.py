"""A real server on loopback that a node calls: it gives its answers in turn and keeps requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Script = Callable[[asyncio.StreamWriter], Coroutine[Any, Any, None]]
Answer = bytes | Script


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived; header names are lower case."""

    line: str
    headers: dict[str, str]
    body: str
    """As UTF-8; what is none of it is replaced."""
    content: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Endpoint:
    """Gives `answers` in turn, the last one for ever."""

    answers: list[Answer]
    port: int = 0
    requests: list[Received] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a caller was gone before its answer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append(await _received(reader))
            self.reached.set()
            turn = min(len(self.requests), len(self.answers)) - 1
            await self._answer(self.answers[turn], reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()

    async def _answer(
        self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
            return
        gone = asyncio.create_task(reader.read(1))
        answering = asyncio.create_task(answer(writer))
        await asyncio.wait({gone, answering}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            self.left.set()
        for task in (gone, answering):
            task.cancel()


async def _received(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(head[0], headers, body.decode(errors="replace"), body)


def reply(
    status: int = 200, body: Any = None, /, *, type_: str = "application/json", **headers: str
) -> bytes:
    """The bytes of an answer; text and bytes are sent as they are, anything else as JSON."""
    if isinstance(body, str):
        body = body.encode()
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Answer", f"content-length: {len(content)}"]
    lines += [f"content-type: {type_}"] if type_ else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def never(_writer: asyncio.StreamWriter) -> None:
    """No answer."""
    await asyncio.sleep(3_600)


def after(seconds: float, answer: bytes) -> Script:
    """An answer that takes its time."""

    async def late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        writer.write(answer)
        await writer.drain()

    return late


def once(ready: asyncio.Event, answer: bytes) -> Script:
    """An answer that is held back until `ready`."""

    async def held(writer: asyncio.StreamWriter) -> None:
        await ready.wait()
        writer.write(answer)
        await writer.drain()

    return held


Serve = Callable[..., Awaitable[Endpoint]]


@asynccontextmanager
async def serving() -> AsyncIterator[Serve]:
    """Start endpoints by their answers: `endpoint = await serve(reply(503), reply(200))`."""
    servers: list[asyncio.Server] = []

    async def serve(*answers: Answer) -> Endpoint:
        endpoint = Endpoint(list(answers))
        server = await asyncio.start_server(endpoint.handle, "127.0.0.1", 0)
        endpoint.port = server.sockets[0].getsockname()[1]
        servers.append(server)
        return endpoint

    yield serve
    for server in servers:
        server.close()
