"""`workspace quarantine`: lists the work that is executed apart, and releases it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from cli.console import StartError, aside, reported, say
from cli.supervisor.state import StateDir, no_platform, read_object

if TYPE_CHECKING:
    from runtime.database import Database


def quarantine(
    lift: Annotated[
        UUID | None, typer.Option(metavar="ID", help="Release this run or job from quarantine.")
    ] = None,
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
) -> None:
    """List quarantined runs and jobs, with the time, the lost workers and the ID of each.

    Uses the database at DATABASE_URL. Default: that of the platform in the state directory.
    """
    with reported():
        asyncio.run(_lift(state_dir, lift) if lift else _list(state_dir))


async def _list(state_dir: Path) -> None:
    from models.core.lifecycle import lost_workers

    async with _database(state_dir) as database, database.reading() as work:
        rows = await lost_workers.quarantined_work(work)
        if not rows:
            say(aside(), "Nothing is quarantined.")
        for row in rows:
            typer.echo(f"{row.quarantined_at:%Y-%m-%dT%H:%M:%SZ}  lost {row.lost}  {row.id}")


async def _lift(state_dir: Path, work_id: UUID) -> None:
    from models.core.lifecycle import lost_workers

    async with _database(state_dir) as database, database.transaction() as work:
        lifted = await lost_workers.clear_suspicion(work, work_id)
    if not lifted:
        raise StartError(f"{work_id} is not quarantined.")
    typer.echo(f"{work_id} was released from quarantine.")


@asynccontextmanager
async def _database(state_dir: Path) -> "AsyncIterator[Database]":
    """The database of the environment, else of the platform that runs on the state directory."""
    from runtime.database import Database

    connection = read_object(StateDir(state_dir).connection)
    url = os.environ.get("DATABASE_URL") or connection.get("databaseUrl")
    if not url:
        raise no_platform(state_dir, "set DATABASE_URL")
    database = Database(url, pool_size=1, application="workspace-quarantine")
    try:
        yield database
    finally:
        await database.close()
