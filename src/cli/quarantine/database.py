"""The database that a command about quarantines works on."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from cli.supervisor.errors import StartError
from cli.supervisor.files import read_object
from cli.supervisor.state import StateDir
from runtime.database import Database


@asynccontextmanager
async def opened(state_dir: Path) -> AsyncIterator[Database]:
    """The database of the environment, else of the platform that runs on the state directory.

    Raises StartError when there is neither.
    """
    connection = read_object(StateDir(state_dir).connection)
    url = os.environ.get("DATABASE_URL") or connection.get("databaseUrl")
    if not url:
        raise StartError(f"Set DATABASE_URL: no platform with a database runs on {state_dir}.")
    database = Database(url, pool_size=1, application="workspace-quarantine")
    try:
        yield database
    finally:
        await database.close()
