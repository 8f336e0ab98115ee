"""`workspace up`: the whole platform with one command."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from cli.console import reported
from cli.supervisor.ports import port_option


def up(
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="Where all data are kept.")
    ] = Path(".state"),
    port: Annotated[
        int, port_option("Port of the API; 0 for a free one.", envvar="WORKSPACE_PORT")
    ] = 8000,
    temporal_port: Annotated[
        int, port_option("Port of the embedded Temporal; 0 for a free one.")
    ] = 7233,
    ui_port: Annotated[
        int, port_option("Port of the embedded Temporal's UI; 0 for a free one.")
    ] = 8233,
    database_url: Annotated[
        str | None,
        typer.Option(envvar="DATABASE_URL", help="Use this PostgreSQL instead of the embedded."),
    ] = None,
    temporal_address: Annotated[
        str | None,
        typer.Option(envvar="TEMPORAL_ADDRESS", help="Use this Temporal instead of the embedded."),
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
    )
    # Logs, sockets and databases are for the account that runs the platform alone.
    os.umask(0o077)
    with reported():
        asyncio.run(run(options))
