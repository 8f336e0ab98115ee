"""Calls that the commands for a terminal share, and answers printed as JSON."""

import json
from urllib.parse import quote, urljoin

import typer

from cli.api_client import ApiClient, Json


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print an answer of the API for another program."""
    typer.echo(json.dumps(value, indent=indent))


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
