"""`workspace quarantine`: shows the work that is executed apart from all other, and lifts that."""

import asyncio
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from cli.console import reported
from cli.supervisor.errors import StartError


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
    from cli.quarantine.database import opened
    from models.core.lifecycle import suspects

    async with opened(state_dir) as database, database.reading() as work:
        for row in await suspects.quarantined(work):
            typer.echo(f"{row.quarantined_at:%Y-%m-%dT%H:%M:%SZ}  lost {row.lost}  {row.id}")


async def _lift(state_dir: Path, work_id: UUID) -> None:
    from cli.quarantine.database import opened
    from models.core.lifecycle import suspects

    async with opened(state_dir) as database, database.transaction() as work:
        lifted = await suspects.clear(work, work_id)
    if not lifted:
        raise StartError(f"{work_id} is not quarantined.")
    typer.echo(f"{work_id} is executed like any other work again, within seconds.")
