"""Fixtures: misbehaving servers, chosen names, and clients with and without loopback allowed."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from runtime.outbound.client import OutboundClient
from runtime.outbound.policy import OutboundPolicy
from tests.runtime.outbound.servers import Answer, Names, Serve, Server, raw


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start a server from the bytes it sends, or from a coroutine that writes them."""
    servers: list[asyncio.Server] = []

    async def start(answer: bytes | Answer) -> Server:
        server = Server(raw(answer) if isinstance(answer, bytes) else answer)
        listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
        server.port = listening.sockets[0].getsockname()[1]
        servers.append(listening)
        return server

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
async def local() -> AsyncIterator[OutboundClient]:
    """A client that may reach loopback."""
    async with OutboundClient(OutboundPolicy.from_entries(["127.0.0.0/8"])) as client:
        yield client


@pytest.fixture
async def public() -> AsyncIterator[OutboundClient]:
    """A client as the platform ships: public addresses only."""
    async with OutboundClient(OutboundPolicy()) as client:
        yield client
