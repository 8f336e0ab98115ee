"""A database that no worker watches."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from sqlalchemy import delete

from runtime.database import Database
from runtime.temporal.outbox import outbox
from tests.support.postgres import migrated_database


@pytest.fixture(scope="module")
def quiet_url() -> Iterator[str]:
    """A database that no running worker watches."""
    with migrated_database("quiet") as url:
        yield url


@pytest_asyncio.fixture
async def quiet(quiet_url: str) -> AsyncIterator[Database]:
    """The same with nothing in its outbox."""
    database = Database(quiet_url)
    async with database.transaction() as work:
        await work.execute(delete(outbox))
    yield database
    await database.close()
