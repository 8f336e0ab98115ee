"""`workspace refresh`: refreshes a data source and waits for the end."""

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from cli.console import aside, terminal
from cli.rows.connection import API_KEY, STATE_DIR, URL, Place, run_command


def refresh(
    data_source: Annotated[str, typer.Argument(metavar="ID", help="Id of the data source.")],
    force: Annotated[
        bool, typer.Option("--force", help="Remove rows even where the guard would stop the run.")
    ] = False,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Refresh a data source, show how far it has come, and print what changed.

    Ctrl-C cancels it: nothing has changed then. Exits with 1 when it fails.
    """
    run_command(_refresh(data_source, force, (state_dir, url, api_key), terminal()))


async def _refresh(data_source: str, force: bool, place: Place, console: Console) -> None:
    from cli.api_client import api_client
    from cli.rows.display import Display
    from cli.rows.following import cancelling, follow_rows
    from cli.rows.outcome import print_outcome, require_success

    async with await api_client(*place) as client:
        source = f"{client.workspace}/data-sources/{quote(data_source, safe='')}"
        run = await client.call("POST", f"{source}/refresh", json={"force": force})
        path = f"{source}/runs/{run['id']}"
        with Display(aside()) as display:
            async with cancelling(client, path):
                await follow_rows(client, run["id"], display)
                run = await client.call("GET", path)
    require_success(run, client.base_url)
    print_outcome(console, run, client.base_url)
