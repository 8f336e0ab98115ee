"""A process of its own that carries a legacy import run on, until it is killed or there is rest."""

import asyncio
import os
from collections.abc import Mapping
from uuid import UUID

from runtime.database import Database
from runtime.object_store import ObjectStore
from tests.support.engine import KEYS
from tests.support.forked import Forked, forked
from tests.support.import_driver import ImportDriver


def carrying_on(url: str, store: str, run_id: UUID, environment: Mapping[str, str]) -> Forked:
    """Start such a process."""
    return forked(_carry_on, url, store, run_id, dict(environment))


def _carry_on(url: str, store: str, run_id: UUID, environment: Mapping[str, str]) -> None:
    os.environ.update(environment)
    asyncio.run(_drive(url, store, run_id))


async def _drive(url: str, store: str, run_id: UUID) -> None:
    database = Database(url, pool_size=2, application="import")
    await ImportDriver(database, ObjectStore(store), KEYS).drive(run_id)
    await database.close()
