"""Servers on loopback, and a client that may reach them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from tests.support.endpoint import Serve, serving


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    async with serving() as serve:
        yield serve


@pytest_asyncio.fixture(scope="session")
async def outbound() -> AsyncIterator[OutboundClient]:
    """A client that may reach one address of loopback; the others stand for private ones."""
    policy = OutboundPolicy.from_entries(["127.0.0.1"])
    async with OutboundClient(policy) as client:
        yield client
