"""A local server that answers by path, as the public documentation of a provider says."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.endpoint import Received, reply

TOKEN = "provider-canary-88"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what the route's pattern found in its path."""

    found: tuple[str, ...]
    query: Mapping[str, str]
    request: Received

    def json(self) -> Any:
        return self.request.json()


Route = Callable[[Asked], bytes]


@dataclass
class ProviderServer:
    """Answers requests that show the token by their route: `GET /repos/(.+)` and a function."""

    routes: Mapping[str, Route]
    port: int = 0
    requests: list[str] = field(default_factory=list)
    accepted: str = TOKEN
    first: list[bytes] = field(default_factory=list)
    """Answers to the next requests, before any route."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        writer.write(self.answer(Received(head[0], headers, body.decode())))
        await writer.drain()
        writer.close()

    def answer(self, request: Received) -> bytes:
        method, target, _ = request.line.split(" ")
        self.requests.append(f"{method} {target}")
        if self.first:
            return self.first.pop(0)
        if request.headers.get("authorization") != f"Bearer {self.accepted}":
            return reply(401, {"message": f"Bad: {request.headers}"})
        parts = urlsplit(target)
        for pattern, route in self.routes.items():
            wanted, _, path = pattern.partition(" ")
            found = re.fullmatch(path, parts.path)
            if found is not None and wanted == method:
                groups = tuple(unquote(one) for one in found.groups(""))
                return route(Asked(groups, dict(parse_qsl(parts.query)), request))
        return reply(404, {"message": "Not Found"})


@asynccontextmanager
async def provider_server(
    routes: Mapping[str, Route], port: int = 0
) -> AsyncIterator[ProviderServer]:
    made = ProviderServer(routes)
    server = await asyncio.start_server(made.handle, "127.0.0.1", port)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
