"""TLS keeps the name of the URL although the connection goes to an address."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import ConnectionFailedError
from runtime.outbound.messages import OutboundRequest
from runtime.outbound_policy import OutboundPolicy
from tests.runtime.outbound.servers import NAME, Names, Server, raw

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
async def secure(certificate: Path) -> AsyncIterator[Server]:
    server = Server(raw(OK))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    yield server
    listening.close()


async def test_the_certificate_is_checked_against_the_name(
    secure: Server, certificate: Path, names: Names
) -> None:
    names.answers = {NAME: [["127.0.0.1"]], "other.example": [["127.0.0.1"]]}
    policy = OutboundPolicy.from_entries(["127.0.0.1"])
    tls = ssl.create_default_context(cafile=certificate)
    async with OutboundClient(policy, resolver=names, tls=tls) as client:
        answer = await client.send(OutboundRequest(url=f"https://{NAME}:{secure.port}/"))
        assert answer.body == b"ok"
        with pytest.raises(ConnectionFailedError):
            await client.send(OutboundRequest(url=f"https://other.example:{secure.port}/"))


async def test_an_unknown_issuer_is_refused(secure: Server, names: Names) -> None:
    names.answers = {NAME: [["127.0.0.1"]]}
    async with OutboundClient(OutboundPolicy.from_entries(["127.0.0.1"]), resolver=names) as client:
        with pytest.raises(ConnectionFailedError):
            await client.send(OutboundRequest(url=f"https://{NAME}:{secure.port}/"))
    assert secure.requests == []
