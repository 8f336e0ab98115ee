"""Calls that the commands for a terminal share, and answers printed as JSON."""

import json
import sys
import webbrowser
from collections.abc import Mapping
from urllib.parse import quote, urljoin

import typer

from cli.api_client import ApiClient, Json
from cli.console import say, terminal

PAGE = 100
"""Rows of a list that one request asks for at most."""


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print an answer of the API for another program."""
    typer.echo(json.dumps(value, indent=indent))


def show_page(page: str, *, as_json: bool) -> None:
    """Print the address of a page, and open it where this is a terminal."""
    if as_json:
        print_json({"pageUrl": page})
        return
    say(terminal(), page)
    if sys.stdout.isatty():
        webbrowser.open(page)


async def list_of(
    client: ApiClient, path: str, key: str, filters: Mapping[str, object], limit: int
) -> Json:
    """As many of a list as are asked for, and the cursor behind them where there are more."""
    query = {name: str(value) for name, value in filters.items() if value is not None}
    rows: list[Json] = []
    cursor: str | None = None
    while len(rows) < limit:
        turn = {"limit": str(min(PAGE, limit - len(rows)))}
        turn |= {} if cursor is None else {"cursor": cursor}
        page = await client.call("GET", path, params={**query, **turn})
        rows += page[key]
        cursor = page["cursor"]
        if cursor is None:
            break
    return {key: rows, "cursor": cursor}


async def overview_of(client: ApiClient, run_id: str) -> Json:
    """A run by its id alone, with its automation. Raises RefusedError."""
    answer: Json = await client.call("GET", f"/v1/runs/{quote(run_id, safe='')}")
    return answer


async def path_of(client: ApiClient, run_id: str) -> str:
    """The path of the operations of a run. Raises RefusedError."""
    run = (await overview_of(client, run_id))["run"]
    return f"{client.workspace}/automations/{run['automationId']}/runs/{run['id']}"


def page_of(client: ApiClient, run: Json) -> str:
    """The address of the page of a run."""
    page: str = run["metadata"]["pageUrl"]
    return urljoin(f"{client.base_url}/", page)
