"""`workspace quarantine`: shows the work that is executed apart from all other, and lifts that."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from cli.console import StartError, reported
from cli.supervisor.state import StateDir, read_object

if TYPE_CHECKING:
    from runtime.database import Database


def quarantine(
    lift: Annotated[
        UUID | None, typer.Option(metavar="ID", help="Execute this work like any other again.")
    ] = None,
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of a platform.")
    ] = Path(".state"),
) -> None:
    """List the quarantined runs and jobs: since when, how many workers were lost, and their ids.

    The database is that of DATABASE_URL, else of the platform that runs on the state directory.
    """
    with reported():
        asyncio.run(_lift(state_dir, lift) if lift else _list(state_dir))


async def _list(state_dir: Path) -> None:
    from models.core.lifecycle import lost_workers

    async with _database(state_dir) as database, database.reading() as work:
        for row in await lost_workers.quarantined_work(work):
            typer.echo(f"{row.quarantined_at:%Y-%m-%dT%H:%M:%SZ}  lost {row.lost}  {row.id}")


async def _lift(state_dir: Path, work_id: UUID) -> None:
    from models.core.lifecycle import lost_workers

    async with _database(state_dir) as database, database.transaction() as work:
        lifted = await lost_workers.clear_suspicion(work, work_id)
    if not lifted:
        raise StartError(f"{work_id} is not quarantined.")
    typer.echo(f"{work_id} is executed like any other work again, within seconds.")


@asynccontextmanager
async def _database(state_dir: Path) -> "AsyncIterator[Database]":
    """The database of the environment, else of the platform that runs on the state directory."""
    from runtime.database import Database

    connection = read_object(StateDir(state_dir).connection)
    url = os.environ.get("DATABASE_URL") or connection.get("databaseUrl")
    if not url:
        raise StartError(f"Set DATABASE_URL: no platform with a database runs on {state_dir}.")
    database = Database(url, pool_size=1, application="workspace-quarantine")
    try:
        yield database
    finally:
        await database.close()
