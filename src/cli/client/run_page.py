"""One run: shown, and followed to its end."""

from datetime import datetime
from urllib.parse import quote

import typer

from cli.api_client import Json
from cli.client.platform import Place, connected
from cli.client.tables import clock, plain, print_rows, taken
from cli.client.wire import overview_of, page_of, print_json
from cli.console import say, terminal
from cli.rows.following import follow

_NODES = ("NODE", "STATUS", "KIND", "TRY", "TOOK", "ERROR")
_CODES = {"succeeded": 0, "failed": 1, "timed_out": 1, "cancelled": 2}
"""The exit code of each end."""


async def show_run(place: Place, run_id: str, *, as_json: bool) -> None:
    """Print a run and its nodes. Raises StartError."""
    async with await connected(place) as client:
        overview = await overview_of(client, run_id)
        automation = overview["automation"]
        path = f"{client.workspace}/automations/{automation['id']}/runs/{quote(run_id, safe='')}"
        run = await client.call("GET", path)
        page = page_of(client, run)
    if as_json:
        print_json(run)
        return
    console = terminal()
    facts = {
        "run": run["id"],
        "automation": f"{automation['label']}, version {overview['version']}",
        "status": run["status"],
        "error": run.get("error"),
        "source": run["source"],
        "asked for": clock(run["createdAt"]),
        "took": taken(run.get("startedAt"), run.get("completedAt")),
        **{f"· {key}": value for key, value in sorted(run.get("attributes", {}).items())},
        "page": page,
    }
    for name, value in facts.items():
        if value:
            say(console, f"{plain(name):<12}{plain(value)}")
    say(console, "")
    print_rows(console, _NODES, [_node_row(node) for node in run["nodeRuns"]])
    if run["metadata"].get("trimmed"):
        say(console, "There are more nodes; the page of the run has all of them.")


def _node_row(node: Json) -> tuple[object, ...]:
    place = node["nodeId"] + (f" {node['scopeKey']}" if node["scopeKey"] else "")
    return (
        place,
        node["status"],
        node["nodeKind"],
        node["attempt"],
        taken(node.get("startedAt"), node.get("completedAt")) if node.get("startedAt") else "",
        node.get("error"),
    )


async def watch_run(place: Place, run_id: str, *, as_json: bool) -> None:
    """Print what changes until a run has ended, and exit by how it ended. Raises StartError."""
    last: dict[str, str] = {}
    console = terminal()

    def show(state: Json) -> None:
        last["status"] = state["run"]["status"]
        if as_json:
            print_json(state, indent=None)
            return
        for node in state["nodes"]:
            if last.get(node["nodeId"]) != node["status"]:
                last[node["nodeId"]] = node["status"]
                time = clock(node.get("completedAt") or node.get("startedAt")) or _now()
                say(console, f"{time}  {plain(node['nodeId'])} {node['status'].replace('_', ' ')}")

    async with await connected(place) as client:
        overview = await overview_of(client, run_id)
        page = f"/runs/{quote(run_id, safe='')}"
        await follow(client, f"/v1{page}", page, show)
        run = (await overview_of(client, run_id))["run"]
    if not as_json:
        reason = f": {plain(run['error'])}" if run.get("error") else ""
        label = plain(overview["automation"]["label"])
        say(console, f"{label} {run['status'].replace('_', ' ')}{reason}")
    raise typer.Exit(_CODES[run["status"]])


def _now() -> str:
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"
