"""Furnished workspaces and the callers of the isolation matrix."""

from collections.abc import AsyncIterator

import pytest_asyncio
from fastapi import FastAPI

from runtime.crypto import KeyRing
from tests.contract.furnished import Furnished, furnish
from tests.support.client import Client, Contract
from tests.support.spaces import make_space
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
    """A workspace of somebody else."""
    async for made in _furnished(_app, contract, _watched_database, keys):
        yield made


@pytest_asyncio.fixture
async def fresh(
    _app: FastAPI, contract: Contract, _watched_database: WatchedDatabase, keys: KeyRing
) -> AsyncIterator[Furnished]:
    """A workspace for one call that may change or end it."""
    async for made in _furnished(_app, contract, _watched_database, keys):
        yield made
