"""A database and a Temporal of the chaos tests' own: what breaks here disturbs no other test."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from runtime.database import Database
from tests.chaos.processes import Workers
from tests.chaos.queries import close_connections
from tests.support.engine import KEYS, Engine, running_engine
from tests.support.postgres import migrated_database
from tests.support.sink import Sink, serving
from tests.support.spaces import make_space
from tests.support.temporal import dev_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of this module's own migrated database."""
    with migrated_database(f"chaos_{uuid.uuid4().hex[:8]}") as url:
        yield url


@pytest_asyncio.fixture(scope="module")
async def temporal() -> AsyncIterator[WorkflowEnvironment]:
    async with dev_server() as environment:
        yield environment


@pytest_asyncio.fixture(scope="module")
async def own_database(url: str) -> AsyncIterator[Database]:
    database = Database(url, pool_size=10, application="chaos")
    yield database
    await database.close()


@pytest_asyncio.fixture(scope="module", autouse=True)
async def _closed_connections() -> AsyncIterator[None]:
    yield
    await close_connections()


@pytest_asyncio.fixture
async def sink() -> AsyncIterator[Sink]:
    async with serving() as sink:
        yield sink


@pytest_asyncio.fixture(scope="module")
async def idle(own_database: Database, temporal: WorkflowEnvironment) -> Engine:
    """An engine without workers: what it accepts waits until a test starts some."""
    actor = (await make_space(own_database, KEYS)).actor
    return Engine(own_database, temporal.client, actor)


@pytest_asyncio.fixture(scope="module")
async def engine(
    own_database: Database, url: str, temporal: WorkflowEnvironment
) -> AsyncIterator[Engine]:
    """An engine with workers in this process."""
    async with running_engine(own_database, url, temporal.client) as engine:
        yield engine


@pytest_asyncio.fixture
async def workers(
    tmp_path: Path, url: str, temporal: WorkflowEnvironment
) -> AsyncIterator[Workers]:
    """Starts worker processes; none outlives the test."""
    workers = Workers(tmp_path, url, temporal.client.service_client.config.target_host)
    yield workers
    await workers.close()


MakeDatabase = Callable[[Engine], Awaitable[UUID]]


@pytest.fixture
def new_database() -> MakeDatabase:
    """Makes a workspace database for the records of a story."""

    async def make(engine: Engine) -> UUID:
        async with engine.database.transaction() as work:
            body = CreateDatabase.model_validate({"label": "Effects", "fields": []})
            created = await create_database(work, engine.actor, body)
        return created.id

    return make
