"""The demo: real rows, a service that fails, a worker that dies, and a run that ends anyway."""

import asyncio
import os
import signal
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from cli.api_client import Json
from cli.demo.automation import graph
from cli.demo.cars import FIELDS, SUMMARY_FIELDS, cars
from cli.demo.client import WorkspaceClient
from cli.demo.endpoint import FAILURES, FlakyEndpoint
from cli.demo.shop import open_shop
from cli.supervisor.errors import StartError
from cli.supervisor.files import read_object
from cli.supervisor.state import StateDir

_RUN_SECONDS = 120
_STYLES = {"succeeded": "green", "failed": "red", "skipped": "dim"}


async def play(state: StateDir, endpoint: FlakyEndpoint, console: Console, *, waits: bool) -> None:
    """Run the demo against the platform of a state directory; links are shown if it then waits.

    Raises StartError.
    """
    connection = read_object(state.connection)
    client = WorkspaceClient(connection["baseUrl"], connection["apiKey"], connection["workspaceId"])
    try:
        run = await _play(client, endpoint, state, console)
        await open_shop(client, datetime.now(UTC).date())
    finally:
        await client.close()
    console.print(
        f"[green]The tax service was called {endpoint.requests} times,"
        " the summary record was written once.[/]"
    )
    if waits:
        console.print("A refund of the shop waits for you in the console, which this opens once:")
        console.print(connection["signInUrl"], soft_wrap=True)
        console.print(
            f"The page of the run: {connection['baseUrl']}{run['metadata']['pageUrl']}",
            soft_wrap=True,
        )
        console.print(f"In Temporal: {run['metadata']['temporal'].get('uiUrl')}", soft_wrap=True)


async def _play(
    client: WorkspaceClient, endpoint: FlakyEndpoint, state: StateDir, console: Console
) -> Json:
    """The run, once it has ended well."""
    rows = cars()
    cars_id = await client.create_database("Cars", FIELDS)
    summaries_id = await client.create_database("Summaries", SUMMARY_FIELDS)
    await client.create_records(cars_id, rows)
    console.print(f"Loaded {len(rows)} cars, 1970 to 1982, from vega-datasets.")
    automation_id = await client.publish(
        "Tax the strongest cars", graph(cars_id, summaries_id, endpoint.url)
    )
    run_id = await client.run(automation_id)
    console.print(
        f"Started run {run_id}; the tax service fails {FAILURES} times on purpose.", soft_wrap=True
    )
    await asyncio.wait_for(endpoint.failed_once.wait(), _RUN_SECONDS)
    # Until the refusal is written into the workflow's history.
    await asyncio.sleep(0.5)
    killed = _kill_worker(state)
    console.print(f"[red]Killed the worker (process {killed}) with signal 9.[/]")
    run = await client.finished(automation_id, run_id, _RUN_SECONDS)
    console.print(_node_table(run))
    summaries = await client.records(summaries_id)
    _check(run, endpoint, summaries)
    console.print(f"Summary record: {summaries[0]['data']}", soft_wrap=True)
    return run


def _kill_worker(state: StateDir) -> int:
    record = read_object(state.pids / "worker.json")
    if "pid" not in record:
        raise StartError(f"No worker is recorded in {state.pids}.")
    os.kill(int(record["pid"]), signal.SIGKILL)
    return int(record["pid"])


def _check(run: Json, endpoint: FlakyEndpoint, summaries: list[Json]) -> None:
    """Raises StartError unless the run ended well and each effect happened exactly once."""
    if run["status"] != "succeeded":
        raise StartError(f"The run ended as {run['status']}: {run['error']}")
    if len(summaries) != 1:
        raise StartError(f"There are {len(summaries)} summary records instead of one.")
    if endpoint.requests != FAILURES + 1:
        raise StartError(f"The tax service was called {endpoint.requests} times.")


def _node_table(run: Json) -> Table:
    table = Table(title=f"Run {run['id']}: {run['status']}")
    for column in ("node", "kind", "status"):
        table.add_column(column)
    for column in ("attempts", "seconds"):
        table.add_column(column, justify="right")
    for node in run["nodeRuns"]:
        style = _STYLES.get(node["status"], "yellow")
        table.add_row(
            node["nodeId"],
            node["nodeKind"],
            f"[{style}]{node['status']}[/]",
            str(node["attempt"]),
            _seconds(node.get("startedAt"), node.get("completedAt")),
        )
    return table


def _seconds(started: str | None, completed: str | None) -> str:
    if started is None or completed is None:
        return ""
    span = datetime.fromisoformat(completed) - datetime.fromisoformat(started)
    return f"{span.total_seconds():.3f}"
