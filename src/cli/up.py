"""`workspace up`: the whole platform with one command."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from cli.console import reported
from cli.supervisor.errors import StartError
from cli.supervisor.ports import port_option


def up(
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="Where all data are kept.")
    ] = Path(".state"),
    port: Annotated[
        int, port_option("--port", "Port of the API; 0 for a free one.", envvar="WORKSPACE_PORT")
    ] = 8000,
    temporal_port: Annotated[
        int, port_option("--temporal-port", "Port of the embedded Temporal; 0 for a free one.")
    ] = 7233,
    ui_port: Annotated[
        int, port_option("--ui-port", "Port of the embedded Temporal's UI; 0 for a free one.")
    ] = 8233,
    database_url: Annotated[
        str | None,
        typer.Option(envvar="DATABASE_URL", help="Use this PostgreSQL instead of the embedded."),
    ] = None,
    temporal_address: Annotated[
        str | None,
        typer.Option(envvar="TEMPORAL_ADDRESS", help="Use this Temporal instead of the embedded."),
    ] = None,
    restore: Annotated[
        Path | None,
        typer.Option(help="Begin with this dump of pg_dump instead of the data that are there."),
    ] = None,
) -> None:
    """Start the platform and keep it running until Ctrl-C."""
    from cli.supervisor.platform import UpOptions
    from cli.supervisor.run import run

    options = UpOptions(
        state_dir=state_dir,
        port=port,
        temporal_port=temporal_port,
        ui_port=ui_port,
        database_url=database_url or None,
        temporal_address=temporal_address or None,
        restore=restore,
    )
    # Logs, sockets and databases are for the account that runs the platform alone.
    os.umask(0o077)
    with reported():
        if restore is not None:
            _require_dump(restore, database_url)
        asyncio.run(run(options))


def _require_dump(dump: Path, database_url: str | None) -> None:
    if database_url:
        raise StartError("--restore is for the embedded PostgreSQL: restore yours by pg_restore.")
    if not dump.is_file():
        raise StartError(f"{dump} is no file.")
