"""Real Temporal, real PostgreSQL, production workers."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import structlog
from temporalio.testing import WorkflowEnvironment

from models.core.base import Id
from runtime.configuration.settings import Settings
from runtime.database import Database
from tests.support.engine import Engine, running_engine
from tests.support.goods import make_table
from tests.support.post_office import PostOffice, open_post_office
from tests.support.postgres import emptied, migrated_database
from tests.support.temporal import dev_server, time_skipping_server


@pytest.fixture(autouse=True)
def _plain_tracebacks() -> None:
    """Log exceptions as text: to draw one with its locals holds up the engine for seconds."""
    structlog.reset_defaults()
    *before, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*before, renderer])


@pytest_asyncio.fixture(scope="session")
async def temporal() -> AsyncIterator[WorkflowEnvironment]:
    async with dev_server() as environment:
        yield environment


@pytest_asyncio.fixture(scope="session")
async def post_office() -> AsyncIterator[PostOffice]:
    """Where the mails of `engine` go."""
    async with open_post_office() as office:
        yield office


@pytest_asyncio.fixture(scope="session")
async def engine(
    temporal: WorkflowEnvironment,
    _watched_database: Database,
    database_url: str,
    post_office: PostOffice,
    settings: Settings,
) -> AsyncIterator[Engine]:
    """An engine whose worker finds nothing to do: earlier tests left thousands of open rows."""
    emptied(database_url)
    async with running_engine(
        _watched_database,
        database_url,
        temporal.client,
        store=settings.object_store,
        mail=post_office.server,
        providers=settings.providers,
    ) as engine:
        yield engine


@pytest_asyncio.fixture(scope="module")
async def skipping_engine() -> AsyncIterator[Engine]:
    """An engine whose timers do not take time.

    It has a database of its own: the relay of the other engine would start its runs there.
    """
    with migrated_database("skipping") as url:
        database = Database(url)
        async with (
            time_skipping_server() as environment,
            running_engine(database, url, environment.client) as engine,
        ):
            yield engine
        await database.close()


@pytest_asyncio.fixture
async def table(engine: Engine) -> Id:
    """A database with the fields title, code and price."""
    return await make_table(engine)
