"""`workspace runs`: runs of automations from a terminal: the list, one run, actions."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated
from urllib.parse import quote

import typer

from cli.api_client import ApiClient, Json, RefusedError
from cli.client import output, profiles
from cli.client.impact import DRY_RUN, print_changes
from cli.console import aside, say, terminal

runs = typer.Typer(
    name="runs",
    help="List and manage runs of automations. Exits with 3 on an API error.",
    no_args_is_help=True,
)

_RUN = Annotated[str, typer.Argument(metavar="RUN", help="ID of the run.")]
_TEXT = str | None
_SECONDS = float | None


@runs.command(name="list")
@profiles.client_command
async def list_runs(
    options: profiles.Options,
    *,
    status: Annotated[_TEXT, typer.Option(help="failed, running, …")] = None,
    source: Annotated[_TEXT, typer.Option(help="manual, webhook, schedule, …")] = None,
    automation: Annotated[_TEXT, typer.Option(metavar="ID", help="Automation.")] = None,
    version: Annotated[_TEXT, typer.Option(metavar="ID", help="Automation version.")] = None,
    attribute: Annotated[
        list[str] | None, typer.Option(metavar="KEY:VALUE", help="Attribute; repeatable.")
    ] = None,
    text: Annotated[_TEXT, typer.Option(help="Text in the payload or error.")] = None,
    period: Annotated[_TEXT, typer.Option(help="Last hour, day, week or month.")] = None,
    since: Annotated[_TEXT, typer.Option(metavar="TIME", help="Created at or after.")] = None,
    until: Annotated[_TEXT, typer.Option(metavar="TIME", help="Created before.")] = None,
    started_since: Annotated[
        _TEXT, typer.Option(metavar="TIME", help="Started at or after.")
    ] = None,
    started_until: Annotated[_TEXT, typer.Option(metavar="TIME", help="Started before.")] = None,
    ended_since: Annotated[_TEXT, typer.Option(metavar="TIME", help="Ended at or after.")] = None,
    ended_until: Annotated[_TEXT, typer.Option(metavar="TIME", help="Ended before.")] = None,
    min_seconds: Annotated[_SECONDS, typer.Option(help="Minimum duration.")] = None,
    max_seconds: Annotated[_SECONDS, typer.Option(help="Maximum duration.")] = None,
    error_code: Annotated[_TEXT, typer.Option(help="Error code of the failed node.")] = None,
    failed_node: Annotated[_TEXT, typer.Option(metavar="ID", help="Failed node.")] = None,
    limit: profiles.LIMIT = 30,
) -> None:
    """List runs, newest first. Filters are combined."""
    filters = {
        "status": status, "source": source, "automationId": automation,
        "automationVersionId": version, "attribute": joined_pairs(attribute or []), "text": text,
        "period": period, "since": since, "until": until, "startedSince": started_since,
        "startedUntil": started_until, "endedSince": ended_since, "endedUntil": ended_until,
        "minSeconds": min_seconds, "maxSeconds": max_seconds, "errorCode": error_code,
        "failedNodeId": failed_node,
    }  # fmt: skip
    await print_list(options.place, filters, limit, as_json=options.as_json)


@runs.command()
@profiles.client_command
async def show(options: profiles.Options, run: _RUN) -> None:
    """Show a run and its nodes."""
    await show_run(options.place, run, as_json=options.as_json)


@runs.command()
@profiles.client_command
async def watch(options: profiles.Options, run: _RUN) -> None:
    """Follow a run until it ends. Ctrl-C stops watching.

    Exits with 0 if it succeeded, 1 if it failed or timed out, 2 if it was cancelled.
    """
    await watch_run(options.place, run, as_json=options.as_json)


@runs.command()
@profiles.client_command
async def retry(
    options: profiles.Options,
    run: _RUN,
    begin: Annotated[
        str, typer.Option("--from", metavar="start|failed", help="Where to start.")
    ] = "failed",
    version: Annotated[
        str, typer.Option(metavar="own|published", help="Its own version, or the published one.")
    ] = "own",
    dry_run: DRY_RUN = False,
) -> None:
    """Retry a run, and print the ID of the new run."""
    body = profiles.retry_body(begin, version)
    await retry_run(options.place, run, body, dry_run=dry_run, as_json=options.as_json)


@runs.command()
@profiles.client_command
async def cancel(options: profiles.Options, run: _RUN, dry_run: DRY_RUN = False) -> None:
    """Cancel a run. A run that has ended is not changed."""
    await cancel_run(options.place, run, dry_run=dry_run, as_json=options.as_json)


@runs.command()
@profiles.client_command
async def undo(
    options: profiles.Options,
    run: _RUN,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would be reverted; change nothing.")
    ] = False,
    earlier: Annotated[
        str | None, typer.Option("--undo", metavar="UNDO", help="Undo this undo of the run.")
    ] = None,
) -> None:
    """Revert what an ended run wrote to records, unless it was changed since.

    Exits with 1 when there are conflicts.
    """
    body = {"preview": preview} if earlier is None else {"preview": preview, "undoId": earlier}
    await undo_run(options.place, run, body, as_json=options.as_json)


@runs.command()
@profiles.client_command
async def compare(
    options: profiles.Options,
    run: _RUN,
    reference: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Default: the last successful run before it."),
    ] = None,
) -> None:
    """Compare a run with another run of the same automation."""
    await compare_runs(options.place, run, reference, as_json=options.as_json)


@runs.command(name="open")
@profiles.client_command
async def open_page(options: profiles.Options, run: _RUN) -> None:
    """Print the URL of a run, and open it when run in a terminal."""
    await open_run(options.place, run, as_json=options.as_json)


_COLUMNS = ("ID", "STATUS", "AUTOMATION", "SOURCE", "CREATED", "DURATION", "DETAILS")


def joined_pairs(pairs: Sequence[str]) -> str | None:
    """The filter of the API for pairs of a key and a value, each as a person writes it."""
    escaped = [re.sub(r"([\\,])", r"\\\1", pair) for pair in pairs]
    return ",".join(escaped) or None


async def print_list(
    place: profiles.Place, filters: Mapping[str, object], limit: int, *, as_json: bool
) -> None:
    """Print the newest runs that fit. Raises StartError."""
    async with await profiles.connected(place) as client:
        path = f"{client.workspace}/automation-runs"
        listed = await output.list_of(client, path, "runs", filters, limit)
        if as_json:
            output.print_json(listed)
            return
        runs = listed["runs"]
        labels = await _labels(client, sorted({run["automationId"] for run in runs}))
    rows = [
        (
            run["id"],
            run["status"],
            labels[run["automationId"]],
            run["source"],
            output.clock(run["createdAt"]),
            output.taken(run.get("startedAt"), run.get("completedAt")),
            run.get("error") or _attributes(run),
        )
        for run in runs
    ]
    output.print_rows(terminal(), _COLUMNS, rows, empty="No matching runs.")


def _attributes(run: Json) -> str:
    return " ".join(f"{key}:{value}" for key, value in sorted(run.get("attributes", {}).items()))


async def _labels(client: ApiClient, automation_ids: Sequence[str]) -> dict[str, str]:
    """The labels of automations; the id of a deleted one."""

    async def label(automation_id: str) -> str:
        try:
            path = f"{client.workspace}/automations/{automation_id}"
            found = await client.call("GET", path)
        except RefusedError:
            return automation_id
        return str(found["label"])

    labels = await asyncio.gather(*map(label, automation_ids))
    return dict(zip(automation_ids, labels, strict=True))


_NODES = ("NODE", "STATUS", "KIND", "ATTEMPT", "DURATION", "ERROR")
_CODES = {"succeeded": 0, "failed": 1, "timed_out": 1, "cancelled": 2}
"""The exit code of each end."""


async def show_run(place: profiles.Place, run_id: str, *, as_json: bool) -> None:
    """Print a run and its nodes. Raises StartError."""
    async with await profiles.connected(place) as client:
        overview = await output.overview_of(client, run_id)
        automation = overview["automation"]
        path = f"{client.workspace}/automations/{automation['id']}/runs/{quote(run_id, safe='')}"
        run = await client.call("GET", path)
        page = output.page_of(client, run)
    if as_json:
        output.print_json(run)
        return
    console = terminal()
    facts = {
        "run": run["id"],
        "automation": f"{automation['label']}, version {overview['version']}",
        "status": run["status"],
        "error": run.get("error"),
        "source": run["source"],
        "created": output.clock(run["createdAt"]),
        "duration": output.taken(run.get("startedAt"), run.get("completedAt")),
        **{f"· {key}": value for key, value in sorted(run.get("attributes", {}).items())},
        "page": page,
    }
    for name, value in facts.items():
        if value:
            say(console, f"{output.plain(name):<12}{output.plain(value)}")
    say(console, "")
    output.print_rows(console, _NODES, [_node_row(node) for node in run["nodeRuns"]])
    if run["metadata"].get("trimmed"):
        say(console, "Not all nodes are shown. Open the page for the rest.")


def _node_row(node: Json) -> tuple[object, ...]:
    place = node["nodeId"] + (f" {node['scopeKey']}" if node["scopeKey"] else "")
    return (
        place,
        node["status"],
        node["nodeKind"],
        node["attempt"],
        output.taken(node.get("startedAt"), node.get("completedAt"))
        if node.get("startedAt")
        else "",
        node.get("error"),
    )


async def watch_run(place: profiles.Place, run_id: str, *, as_json: bool) -> None:
    """Print what changes until a run has ended, and exit by how it ended. Raises StartError."""
    last: dict[str, str] = {}
    console = terminal()

    def show(state: Json) -> None:
        last["status"] = state["run"]["status"]
        if as_json:
            output.print_json(state, indent=None)
            return
        for node in state["nodes"]:
            if last.get(node["nodeId"]) != node["status"]:
                last[node["nodeId"]] = node["status"]
                time = output.clock(node.get("completedAt") or node.get("startedAt")) or _now()
                say(
                    console,
                    f"{time}  {output.plain(node['nodeId'])} {node['status'].replace('_', ' ')}",
                )

    async with await profiles.connected(place) as client:
        overview = await output.overview_of(client, run_id)
        page = f"/runs/{quote(run_id, safe='')}"
        await output.follow(client, f"/v1{page}", page, show)
        run = (await output.overview_of(client, run_id))["run"]
    if not as_json:
        reason = f": {output.plain(run['error'])}" if run.get("error") else ""
        label = output.plain(overview["automation"]["label"])
        say(console, f"{label} {run['status'].replace('_', ' ')}{reason}")
    raise typer.Exit(_CODES[run["status"]])


def _now() -> str:
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"


async def retry_run(
    place: profiles.Place, run_id: str, body: Mapping[str, str], *, dry_run: bool, as_json: bool
) -> None:
    """Run a run again, or show what that would change. Raises StartError."""
    async with await profiles.connected(place) as client:
        path = await output.path_of(client, run_id)
        if dry_run:
            changes = await client.changes("POST", f"{path}/retry", json=dict(body))
            print_changes(changes, as_json=as_json)
            return
        run = await client.call("POST", f"{path}/retry", json=dict(body))
        page = output.page_of(client, run)
    if as_json:
        output.print_json(run)
        return
    say(terminal(), run["id"])
    say(aside(), f"Open: {page}")


async def cancel_run(place: profiles.Place, run_id: str, *, dry_run: bool, as_json: bool) -> None:
    """Cancel a run, or show what that would change. Raises StartError."""
    async with await profiles.connected(place) as client:
        path = await output.path_of(client, run_id)
        if dry_run:
            changes = await client.changes("POST", f"{path}/cancel", json={})
            print_changes(changes, as_json=as_json)
            return
        run = await client.call("POST", f"{path}/cancel", json={})
    if as_json:
        output.print_json(run)
    else:
        say(terminal(), run["status"])


async def undo_run(
    place: profiles.Place, run_id: str, body: Mapping[str, object], *, as_json: bool
) -> None:
    """Undo a run, or preview that, and exit with 1 for conflicts. Raises StartError."""
    async with await profiles.connected(place) as client:
        path = await output.path_of(client, run_id)
        undo = await client.call("POST", f"{path}/undo", json=dict(body))
    if as_json:
        output.print_json(undo)
    else:
        for line in undo_lines(undo):
            say(terminal(), line)
    if undo["conflictCount"]:
        raise typer.Exit(1)


def undo_lines(undo: Json) -> Iterator[str]:
    """An undo line by line: reverted records, conflicts, and what stays outside."""
    if undo["status"] == "running":
        yield f"{undo['records']} records are being reverted: operation {undo['operationId']}."
        return
    verb = "would be reverted" if undo["status"] == "preview" else "reverted"
    yield f"{undo['reverted']} of {undo['records']} records {verb}."
    if undo["trimmed"]:
        yield "The preview looked at the first 500 records."
    for record in undo["revertedRecords"]:
        changes = ", ".join(record["changes"])
        yield output.plain(f"{record['recordId']} {record['title']}: {changes}".rstrip())
        for key in dict.fromkeys((*record["before"], *record["after"])):
            values = (_shown(record[side].get(key)) for side in ("before", "after"))
            yield output.plain(f"  {key}: {' → '.join(values)}")
    for conflict in undo["conflicts"]:
        about = " ".join(
            str(conflict[name]) for name in ("recordId", "fieldKey") if name in conflict
        )
        yield output.plain(f"Conflict: {about} {conflict['message']}".replace("  ", " "))
    for node in undo["outside"]:
        name = f"{node.get('automationLabel', 'another automation')} {node.get('nodeId', '')}"
        yield output.plain(
            f"Not undone: {name.strip()} ({node['nodeKind']}), {node['succeeded']} times"
        )
    if undo.get("id"):
        yield f"To undo it: workspace runs undo {undo['runId']} --undo {undo['id']}"


def _shown(value: object) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


async def open_run(place: profiles.Place, run_id: str, *, as_json: bool) -> None:
    """Print the address of the page of a run, and open it for a person. Raises StartError."""
    async with await profiles.connected(place) as client:
        page = output.page_of(client, (await output.overview_of(client, run_id))["run"])
    output.show_page(page, as_json=as_json)


async def compare_runs(
    place: profiles.Place, run_id: str, reference_id: str | None, *, as_json: bool
) -> None:
    """Print how a run differs from another. Raises StartError."""
    async with await profiles.connected(place) as client:
        path = await output.path_of(client, run_id)
        query = {} if reference_id is None else {"with": reference_id}
        comparison = await client.call("GET", f"{path}/comparison", params=query)
    if as_json:
        output.print_json(comparison)
        return
    for line in comparison_lines(comparison):
        say(terminal(), line)


def comparison_lines(comparison: Json) -> Iterator[str]:
    """The differences of two runs, line by line: the reference as -, the run as +."""
    for sign, name in (("-", "reference"), ("+", "run")):
        run = comparison[name]
        yield f"{sign} {run['id']} {run['status']}, version {run['version']}"
    yield from _values("payload", comparison["triggerPayload"])
    first = comparison.get("firstDivergence")
    for node in comparison["nodes"]:
        if not node["differs"]:
            continue
        is_first = first is not None and _is_at(node, first)
        differs = ", ".join(str(aspect) for aspect in node["differs"])
        place = f"{node['nodeId']} {node['scopeKey']}".strip()
        yield output.plain(f"{place}: {differs}{' (first difference)' if is_first else ''}")
        yield from _values("input", node["input"])
        yield from _values("output", node["output"])
    yield from _values("output of the run", comparison["output"])
    if first is None:
        yield "No differences."
    if comparison["trimmed"]:
        yield "Not all nodes were compared."


def _is_at(node: Json, place: Json) -> bool:
    return bool((node["nodeId"], node["scopeKey"]) == (place["nodeId"], place["scopeKey"]))


def _values(name: str, values: Json) -> Iterator[str]:
    for one in values["differences"]:
        yield output.plain(f"  {name} {one['path']}")
        if one.get("before") is not None:
            yield output.plain(f"    - {one['before']}")
        if one.get("after") is not None:
            yield output.plain(f"    + {one['after']}")
