"""Real servers on loopback that misbehave in one way each, and a resolver that obeys."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

Answer = Callable[[asyncio.StreamWriter, "Server"], Awaitable[None]]

NAME = "secure.example"
"""What the certificate of the tests is for."""


@dataclass
class Server:
    """A TCP server that records each request and answers with raw bytes."""

    answer: Answer
    port: int = 0
    requests: list[str] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = next(
                (
                    int(line[15:])
                    for line in head.lower().split("\r\n")
                    if line[:15] == "content-length:"
                ),
                0,
            )
            self.requests.append(head + (await reader.readexactly(length)).decode())
            self.reached.set()
            await self.answer(writer, self)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.gone.set()


Serve = Callable[[bytes | Answer], Awaitable[Server]]


def raw(data: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter, _server: Server) -> None:
        writer.write(data)

    return answer


@dataclass
class Names:
    """A resolver with an answer per name, each lookup taking the next of its answers."""

    answers: dict[str, list[list[str]]] = field(default_factory=dict)
    lookups: list[str] = field(default_factory=list)

    async def resolve(self, host: str, _port: int) -> Sequence[IPv4Address | IPv6Address]:
        self.lookups.append(host)
        given = self.answers[host]
        return [ip_address(text) for text in (given.pop(0) if len(given) > 1 else given[0])]
