"""`workspace demo`: its own platform, a failing service, a worker that dies, a run that ends."""

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cli.api_client import Json
from cli.console import StartError, missing_extra, terminal
from cli.demo_shop import WorkspaceClient, open_shop
from cli.supervisor.state import LOOPBACK, StateDir, read_object, tail

_START_SECONDS = 120
_SETTINGS = ("WORKSPACE_", "TEMPORAL_", "AWS_", "DATABASE_")


async def run_demo() -> None:
    """Run the demo on a platform of its own, and remove all of it afterwards. Raises StartError."""
    console = terminal()
    endpoint = FlakyEndpoint()
    async with endpoint.serving(), _platform(endpoint, console) as state:
        waits = sys.stdin.isatty() and console.is_terminal
        await play(state, endpoint, console, waits=waits)
        if waits:
            console.print("[dim]Press Enter to end the demo.[/]")
            await _line()
    console.print("The demo platform was deleted. Start a permanent one: make up")
    console.print("Then create the sample shop in it: workspace demo --into .state")


async def fill_platform(state_dir: Path) -> None:
    """Create the sample shop in the platform that runs on a state directory. Raises StartError."""
    state = StateDir(state_dir)
    connection = read_object(state.connection) if state.is_owned() else {}
    if not connection:
        raise StartError(f"No platform is running in {state.root}. Start one with `workspace up`.")
    client = WorkspaceClient(connection["baseUrl"], connection["apiKey"], connection["workspaceId"])
    try:
        await open_shop(client, datetime.now(UTC).date())
    finally:
        await client.close()
    home = f"{connection['consoleUrl']}workspaces/{connection['workspaceId']}"
    terminal().print(f"Created the sample shop: {home}", soft_wrap=True)


@dataclass
class FlakyEndpoint:
    """Counts requests; `failed_once` is set when the first of them has been refused."""

    port: int = 0
    """A free one, once it is serving."""
    requests: int = 0
    failed_once: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/rate"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen for the length of the block."""
        server = await asyncio.start_server(self._handle, LOOPBACK, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            writer.write(self._answer())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
        self.failed_once.set()

    def _answer(self) -> bytes:
        if self.requests <= FAILURES:
            return b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
        body = f'{{"rate": {RATE}}}'
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        return f"{head}\r\n\r\n{body}".encode()


@asynccontextmanager
async def _platform(endpoint: FlakyEndpoint, console: Console) -> AsyncIterator[StateDir]:
    """A running platform, whose workers may call the endpoint and nothing else that is private."""
    home = _directory()
    state = StateDir(home / "state")
    console.print(f"Starting a temporary platform in {home}.", soft_wrap=True)
    try:
        async with _running(state, endpoint, home / "up.log"):
            yield state
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _directory() -> Path:
    """A new directory; when root starts the platform, PostgreSQL's account passes through it."""
    home = Path(tempfile.mkdtemp(prefix="workspace-demo-"))
    home.chmod(0o711)
    return home


@asynccontextmanager
async def _running(state: StateDir, endpoint: FlakyEndpoint, output: Path) -> AsyncIterator[None]:
    ours = {key: value for key, value in os.environ.items() if not key.startswith(_SETTINGS)}
    options = [f"--state-dir={state.root}", "--port=0", "--temporal-port=0", "--ui-port=0"]
    with output.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cli.main", "up", *options),
            env=ours | {"WORKSPACE_OUTBOUND_ALLOW": endpoint.address},
            stdout=log,
            stderr=log,
            # Ctrl-C is for the demo, which ends it then.
            start_new_session=True,
        )
    try:
        await _ready(state, process, output)
        yield
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def _ready(state: StateDir, process: asyncio.subprocess.Process, output: Path) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _START_SECONDS
    while process.returncode is None and loop.time() < deadline:
        if state.connection.exists():
            return
        await asyncio.sleep(0.1)
    raise StartError(f"The platform did not become ready:\n{tail(output)}")


async def _line() -> None:
    """Wait for a line, or the end, of the standard input."""
    typed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, typed.set)
    await typed.wait()
    loop.remove_reader(sys.stdin)


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
        console.print("A refund needs your approval. Open the console with this one-time link:")
        console.print(connection["signInUrl"], soft_wrap=True)
        console.print(
            f"Run: {connection['baseUrl']}{run['metadata']['pageUrl']}",
            soft_wrap=True,
        )
        console.print(f"In Temporal: {run['metadata']['temporal'].get('uiUrl')}", soft_wrap=True)


async def _play(
    client: WorkspaceClient, endpoint: FlakyEndpoint, state: StateDir, console: Console
) -> Json:
    """The run, once it has succeeded."""
    rows = cars()
    cars_id = await client.create_database("Cars", CAR_FIELDS)
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
        raise StartError(f"No worker found in {state.pids}.")
    os.kill(int(record["pid"]), signal.SIGKILL)
    return int(record["pid"])


def _check(run: Json, endpoint: FlakyEndpoint, summaries: list[Json]) -> None:
    """Raises StartError unless the run ended well and each effect happened exactly once."""
    if run["status"] != "succeeded":
        raise StartError(f"The run {run['status']}: {run['error']}")
    if len(summaries) != 1:
        raise StartError(f"Expected one summary record, found {len(summaries)}.")
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


CAR_FIELDS: list[Json] = [
    {"key": "name", "label": "Name", "kind": "text"},
    {"key": "miles_per_gallon", "label": "Miles per gallon", "kind": "number"},
    {"key": "cylinders", "label": "Cylinders", "kind": "number"},
    {"key": "horsepower", "label": "Horsepower", "kind": "number"},
    {"key": "weight_in_lbs", "label": "Weight (lbs)", "kind": "number"},
    {"key": "year", "label": "Year", "kind": "date"},
    {"key": "origin", "label": "Origin", "kind": "text"},
    {"key": "tax", "label": "Tax", "kind": "number"},
]

SUMMARY_FIELDS: list[Json] = [
    {"key": "cars", "label": "Cars", "kind": "number"},
    {"key": "rate", "label": "Rate", "kind": "number"},
    {"key": "note", "label": "Note", "kind": "text"},
]


def cars() -> list[Json]:
    """The rows as record data. Raises StartError when the package is not installed."""
    package = importlib.util.find_spec("vega_datasets")
    if package is None or package.origin is None:
        raise missing_extra("The demo table", "demo")
    path = Path(package.origin).parent / "_data" / "cars.json"
    keys = {field["key"] for field in CAR_FIELDS}
    rows: list[Json] = []
    for car in json.loads(path.read_text(encoding="utf-8")):
        row = {name.lower(): value for name, value in car.items() if value is not None}
        rows.append({name: value for name, value in row.items() if name in keys})
    return rows


UPDATED = 3


def graph(cars_id: str, summaries_id: str, endpoint: str) -> Json:
    """Query, condition, an HTTP call with retries, updates side by side, a wait, a summary."""
    updates = [_update(cars_id, index) for index in range(UPDATED)]
    nodes: list[Json] = [
        {
            "id": "strongest",
            "kind": "query_records",
            "label": "Find the strongest cars",
            "config": {
                "databaseId": cars_id,
                "query": {
                    "filter": {"field": "horsepower", "op": "gte", "value": 200},
                    "sorts": [{"field": "horsepower", "direction": "desc"}],
                    "limit": 20,
                },
            },
        },
        {
            "id": "enough",
            "kind": "condition",
            "label": f"At least {UPDATED}?",
            "config": {"expression": f"nodes.strongest.count >= {UPDATED}"},
        },
        {
            "id": "rate",
            "kind": "http_request",
            "label": "Ask for the tax rate",
            "config": {
                "method": "POST",
                "url": endpoint,
                "body": {"cars": {"type": "node", "value": "strongest.count"}},
            },
            "retry": {
                "maxAttempts": 5,
                "initialDelaySeconds": 2,
                "backoffMultiplier": 1.5,
                "maxDelaySeconds": 10,
            },
            "timeoutSeconds": 10,
        },
        *updates,
        {
            "id": "settle",
            "kind": "delay",
            "label": "Wait two seconds",
            "config": {"seconds": 2},
        },
        {
            "id": "summary",
            "kind": "create_record",
            "label": "Write the summary",
            "config": {
                "databaseId": summaries_id,
                "title": "Horsepower tax",
                "data": {
                    "cars": {"type": "node", "value": "strongest.count"},
                    "rate": {"type": "node", "value": "rate.body.rate"},
                    "note": {
                        "type": "template",
                        "value": "The strongest is {{ nodes.strongest.records[0].data.name }}.",
                    },
                },
            },
        },
    ]
    return {"nodes": nodes, "edges": _edges(update["id"] for update in updates)}


def _update(cars_id: str, index: int) -> Json:
    car = f"nodes.strongest.records[{index}]"
    return {
        "id": f"tax{index + 1}",
        "kind": "update_record",
        "label": f"Tax number {index + 1}",
        "config": {
            "databaseId": cars_id,
            "recordId": {"type": "expression", "value": f"{car}.id"},
            "data": {
                "tax": {
                    "type": "expression",
                    "value": f"double({car}.data.horsepower) * double(nodes.rate.body.rate)",
                }
            },
        },
    }


def _edges(updates: Iterable[str]) -> list[Json]:
    edges: list[Json] = [
        {"from": "strongest", "to": "enough"},
        {"from": "enough", "to": "rate", "outcome": "true"},
    ]
    for update in updates:
        edges += [{"from": "rate", "to": update}, {"from": update, "to": "settle"}]
    return [*edges, {"from": "settle", "to": "summary"}]


FAILURES = 2
RATE = 1.5
