"""Furnished workspaces and the callers of the isolation matrix."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from fastapi import FastAPI
from sqlalchemy import update

from models.content.items.joins import item
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from tests.contract.callers import Callers
from tests.contract.furnished import Furnished, furnish
from tests.support.client import Client, Contract
from tests.support.engine import running_engine
from tests.support.postgres import emptied
from tests.support.spaces import make_space
from tests.support.temporal import dev_server
from tests.support.watched import WatchedDatabase


async def _furnished(
    app: FastAPI, contract: Contract, database: WatchedDatabase, keys: KeyRing
) -> AsyncIterator[Furnished]:
    space = await make_space(database, keys)
    async with Client(app, contract, space.token) as client:
        yield await furnish(space, client)


@pytest_asyncio.fixture(scope="module")
async def own(
    _app: FastAPI, contract: Contract, _watched_database: WatchedDatabase, keys: KeyRing
) -> AsyncIterator[Furnished]:
    """The workspace whose operations are called; refusals leave it as it is."""
    async for made in _furnished(_app, contract, _watched_database, keys):
        yield made


@pytest_asyncio.fixture(scope="module")
async def elsewhere(
    _app: FastAPI, contract: Contract, _watched_database: WatchedDatabase, keys: KeyRing
) -> AsyncIterator[Furnished]:
    """A workspace of another user."""
    async for made in _furnished(_app, contract, _watched_database, keys):
        yield made


@pytest_asyncio.fixture(scope="module")
async def restricted(
    _app: FastAPI, contract: Contract, _watched_database: WatchedDatabase, keys: KeyRing
) -> AsyncIterator[Furnished]:
    """A workspace whose items are closed to all but its owner and administrators."""
    async for made in _furnished(_app, contract, _watched_database, keys):
        async with _watched_database.transaction() as work:
            at_root = item.c.workspace_id == made.space.id, item.c.parent_item_id.is_(None)
            await work.execute(update(item).where(*at_root).values(access_mode="restricted"))
        yield made


@pytest_asyncio.fixture(scope="module")
async def used(
    _app: FastAPI, contract: Contract, _watched_database: WatchedDatabase, keys: KeyRing
) -> AsyncIterator[Furnished]:
    """A workspace for the calls that leave what further calls need."""
    async for made in _furnished(_app, contract, _watched_database, keys):
        yield made


@pytest_asyncio.fixture(scope="module")
async def platform(  # all of it
    _app: FastAPI,
    contract: Contract,
    _watched_database: WatchedDatabase,
    keys: KeyRing,
    settings: Settings,
    database_url: str,
) -> AsyncIterator[Furnished]:
    """A furnished workspace whose work is done."""
    emptied(database_url)
    async with (
        dev_server() as temporal,
        running_engine(
            _watched_database,
            database_url,
            temporal.client,
            store=settings.object_store,
            providers=settings.providers,
        ),
    ):
        space = await make_space(_watched_database, keys)
        async with Client(_app, contract, space.token) as client:
            yield await furnish(space, client)


Furnishing = Callable[[], Awaitable[Furnished]]


@pytest_asyncio.fixture
async def furnished(
    _app: FastAPI, contract: Contract, _watched_database: WatchedDatabase, keys: KeyRing
) -> AsyncIterator[Furnishing]:
    """Makes workspaces for calls that take something away: `made = await furnished()`."""
    async with AsyncExitStack() as stack:

        async def make() -> Furnished:
            space = await make_space(_watched_database, keys)
            client = await stack.enter_async_context(Client(_app, contract, space.token))
            return await furnish(space, client)

        yield make


@pytest.fixture(scope="module")
def callers(own: Furnished) -> Callers:
    """Callers of `own`."""
    return Callers(own)


@pytest.fixture(scope="module")
def outsiders(restricted: Furnished) -> Callers:
    """Callers of `restricted`."""
    return Callers(restricted)
