"""Fixtures: misbehaving servers, chosen names, and clients with and without loopback allowed."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from tests.runtime.outbound.servers import NAME, Answer, Names, Serve, Server, raw


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


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for NAME, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path
