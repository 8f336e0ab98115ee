"""Real Temporal, real PostgreSQL, production workers."""

from collections.abc import AsyncIterator

import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from runtime.database import Database
from tests.support.engine import Engine, running_engine
from tests.support.temporal import dev_server, time_skipping_server


@pytest_asyncio.fixture(scope="session")
async def temporal() -> AsyncIterator[WorkflowEnvironment]:
    async with dev_server() as environment:
        yield environment


@pytest_asyncio.fixture(scope="session")
async def engine(
    temporal: WorkflowEnvironment, _watched_database: Database, database_url: str
) -> AsyncIterator[Engine]:
    async with running_engine(_watched_database, database_url, temporal.client) as engine:
        yield engine


@pytest_asyncio.fixture(scope="module")
async def skipping_engine(
    _watched_database: Database, database_url: str
) -> AsyncIterator[Engine]:
    async with (
        time_skipping_server() as environment,
        running_engine(_watched_database, database_url, environment.client) as engine,
    ):
        yield engine
