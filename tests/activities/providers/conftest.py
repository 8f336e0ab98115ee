"""The client of outbound calls, which may reach this machine."""

from collections.abc import AsyncIterator

import pytest_asyncio

from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy


@pytest_asyncio.fixture(scope="session")
async def outbound() -> AsyncIterator[OutboundClient]:
    async with OutboundClient(OutboundPolicy.from_entries(("127.0.0.0/8",))) as client:
        yield client


@pytest_asyncio.fixture(scope="session")
async def public_only() -> AsyncIterator[OutboundClient]:
    """A client as workers have it by default."""
    async with OutboundClient(OutboundPolicy()) as client:
        yield client
