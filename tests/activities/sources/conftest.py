"""Servers on loopback, databases of other people, and a client that may reach them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from tests.support.foreign_databases import ForeignDatabase, maria_database, over_tcp
from tests.support.source_steps import MakeSource, source_maker
from tests.support.spaces import Space


@pytest_asyncio.fixture(scope="session")
async def outbound() -> AsyncIterator[OutboundClient]:
    """A client that may reach one address of loopback; the others stand for private ones."""
    policy = OutboundPolicy.from_entries(["127.0.0.1"])
    async with OutboundClient(policy) as client:
        yield client


@pytest_asyncio.fixture(scope="module")
async def postgresql(database_url: str) -> AsyncIterator[ForeignDatabase]:
    async with over_tcp(database_url) as database:
        yield database


@pytest_asyncio.fixture(scope="module")
async def mysql(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ForeignDatabase]:
    async with maria_database(tmp_path_factory.mktemp("maria")) as database:
        if database is None:
            pytest.skip("MariaDB is not installed.")
        yield database


@pytest.fixture
def source(space: Space, outbound: OutboundClient, tmp_path: Path) -> MakeSource:
    """Makes data sources of a format, keyed by their title, that may become empty."""
    return source_maker(space, outbound, tmp_path)
