"""`workspace incidents`: groups of similar failures, from a terminal."""

import asyncio
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote, urljoin

import typer

from cli.api_client import ApiClient, Json
from cli.client import profiles
from cli.client.output import clock, list_of, member_id, plain, print_json, print_rows, show_page
from cli.console import say, terminal

incidents = typer.Typer(
    name="incidents",
    help="List and manage incidents: groups of similar failures. Exits with 3 on an API error.",
    no_args_is_help=True,
)

_INCIDENT = Annotated[str, typer.Argument(metavar="INCIDENT", help="ID of the incident.")]


@incidents.command(name="list")
@profiles.client_command
async def list_incidents(
    options: profiles.Options,
    *,
    state: Annotated[str | None, typer.Option(help="open, muted or closed.")] = None,
    automation: Annotated[str | None, typer.Option(metavar="ID", help="Automation.")] = None,
    limit: profiles.LIMIT = 30,
) -> None:
    """List incidents, newest first."""
    filters = {"state": state, "automationId": automation}
    await print_incidents(options.place, filters, limit, as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def show(options: profiles.Options, incident: _INCIDENT) -> None:
    """Show an incident."""
    await show_incident(options.place, incident, as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def watch(options: profiles.Options, incident: _INCIDENT) -> None:
    """Follow an incident until it is closed. Ctrl-C stops watching."""
    await watch_incident(options.place, incident, as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def records(
    options: profiles.Options, incident: _INCIDENT, limit: profiles.LIMIT = 100
) -> None:
    """List the records affected by an incident."""
    await print_records(options.place, incident, limit, as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def assign(
    options: profiles.Options,
    incident: _INCIDENT,
    user: Annotated[
        str | None,
        typer.Argument(metavar="USER", help="Email or ID. Omit to unassign."),
    ] = None,
) -> None:
    """Assign an incident to a member, or unassign it."""
    await assign_incident(options.place, incident, user, as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def mute(options: profiles.Options, incident: _INCIDENT) -> None:
    """Stop notifications about an incident."""
    await change_incident(options.place, incident, {"muted": True}, as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def unmute(options: profiles.Options, incident: _INCIDENT) -> None:
    """Resume notifications about an incident."""
    await change_incident(options.place, incident, {"muted": False}, as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def note(
    options: profiles.Options,
    incident: _INCIDENT,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Replaces the current note.")],
) -> None:
    """Set the note of an incident."""
    await change_incident(options.place, incident, {"note": text}, as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def close(options: profiles.Options, incident: _INCIDENT) -> None:
    """Close an incident. A later failure reopens it."""
    await act_on_incident(options.place, incident, "close", as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def reopen(options: profiles.Options, incident: _INCIDENT) -> None:
    """Reopen a closed incident."""
    await act_on_incident(options.place, incident, "reopen", as_json=options.as_json)


@incidents.command()
@profiles.client_command
async def retry(
    options: profiles.Options,
    incident: _INCIDENT,
    begin: Annotated[
        str, typer.Option("--from", metavar="start|failed", help="Where to start.")
    ] = "failed",
    version: Annotated[
        str, typer.Option(metavar="own|published", help="Their own version, or the published one.")
    ] = "published",
) -> None:
    """Retry the failed runs of an incident, and print the ID of the operation."""
    body = profiles.retry_body(begin, version)
    await retry_incident(options.place, incident, body, as_json=options.as_json)


@incidents.command(name="open")
@profiles.client_command
async def open_page(options: profiles.Options, incident: _INCIDENT) -> None:
    """Print the URL of an incident, and open it when run in a terminal."""
    await open_incident(options.place, incident, as_json=options.as_json)


_COLUMNS = ("ID", "STATE", "AUTOMATION", "RUNS", "OPENED", "LAST SEEN", "MESSAGE")
_WATCHED = ("state", "runs", "lastFailedAt", "assigneeUserId", "note")
_LOOK_SECONDS = 2.0
"""Seconds between two reads of a watched incident."""
_RECORD_COLUMNS = ("ID", "DATABASE", "RUNS", "LAST SEEN", "TITLE")


async def print_incidents(
    place: profiles.Place, filters: Mapping[str, object], limit: int, *, as_json: bool
) -> None:
    """Print the incidents that fit. Raises StartError."""
    async with await profiles.connected(place) as client:
        path = f"{client.workspace}/incidents"
        listed = await list_of(client, path, "incidents", filters, limit)
    if as_json:
        print_json(listed)
        return
    rows = [_row(one) for one in listed["incidents"]]
    print_rows(terminal(), _COLUMNS, rows, empty="No incidents.")


async def show_incident(place: profiles.Place, incident_id: str, *, as_json: bool) -> None:
    """Print an incident. Raises StartError."""
    async with await profiles.connected(place) as client:
        _print(await client.call("GET", _path(client, incident_id)), as_json=as_json)


async def watch_incident(place: profiles.Place, incident_id: str, *, as_json: bool) -> None:
    """Print each change of an incident until it is closed. Raises StartError."""
    last: tuple[object, ...] = ()
    async with await profiles.connected(place) as client:
        while True:
            one = await client.call("GET", _path(client, incident_id))
            state = tuple(one.get(key) for key in _WATCHED)
            if state != last:
                _show_change(one, as_json=as_json)
            if one["state"] == "closed":
                return
            last = state
            await asyncio.sleep(_LOOK_SECONDS)


def _show_change(one: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(one, indent=None)
        return
    moment = clock(one.get("closedAt") or one["lastFailedAt"])
    say(terminal(), f"{moment}  {one['state']}, {one['runs']} runs  {plain(one['message'] or '')}")


async def print_records(
    place: profiles.Place, incident_id: str, limit: int, *, as_json: bool
) -> None:
    """Print the records that an incident is about. Raises StartError."""
    async with await profiles.connected(place) as client:
        path = f"{_path(client, incident_id)}/records"
        listed = await list_of(client, path, "records", {}, limit)
    if as_json:
        print_json(listed)
        return
    rows = [
        (
            record["recordId"],
            record["databaseLabel"],
            record["runs"],
            clock(record["lastFailedAt"]),
            record["title"],
        )
        for record in listed["records"]
    ]
    print_rows(terminal(), _RECORD_COLUMNS, rows, empty="No records.")


async def change_incident(
    place: profiles.Place, incident_id: str, change: Mapping[str, object], *, as_json: bool
) -> None:
    """Change an incident. Raises StartError."""
    async with await profiles.connected(place) as client:
        changed = await client.call("PATCH", _path(client, incident_id), json=dict(change))
    _print(changed, as_json=as_json)


async def assign_incident(
    place: profiles.Place, incident_id: str, user: str | None, *, as_json: bool
) -> None:
    """Make a member the owner of an incident, by email or id. Raises StartError."""
    async with await profiles.connected(place) as client:
        user_id = user if user is None or "@" not in user else await member_id(client, user)
        body = {"assigneeUserId": user_id}
        changed = await client.call("PATCH", _path(client, incident_id), json=body)
    _print(changed, as_json=as_json)


async def act_on_incident(
    place: profiles.Place, incident_id: str, action: str, *, as_json: bool
) -> None:
    """Close or reopen an incident. Raises StartError."""
    async with await profiles.connected(place) as client:
        changed = await client.call("POST", f"{_path(client, incident_id)}/{action}", json={})
    _print(changed, as_json=as_json)


async def retry_incident(
    place: profiles.Place, incident_id: str, body: Mapping[str, str], *, as_json: bool
) -> None:
    """Retry the runs of an incident. Raises StartError."""
    async with await profiles.connected(place) as client:
        path = f"{_path(client, incident_id)}/retry"
        operation = await client.call("POST", path, json=dict(body))
    if as_json:
        print_json(operation)
    else:
        say(terminal(), operation["id"])


async def open_incident(place: profiles.Place, incident_id: str, *, as_json: bool) -> None:
    """Print the address of the page of an incident, and open it. Raises StartError."""
    async with await profiles.connected(place) as client:
        found = await client.call("GET", _path(client, incident_id))
        path = client.workspace.removeprefix("/v1")
        page = urljoin(f"{client.base_url}/", f"{path}/incidents/{found['id']}")
    show_page(page, as_json=as_json)


def _path(client: ApiClient, incident_id: str) -> str:
    return f"{client.workspace}/incidents/{quote(incident_id, safe='')}"


def _row(one: Json) -> tuple[object, ...]:
    times = (clock(one["openedAt"]), clock(one["lastFailedAt"]))
    message = one["message"] or one.get("errorCode")
    return (one["id"], one["state"], one["automationLabel"], one["runs"], *times, message)


def _print(one: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    print_rows(terminal(), _COLUMNS, [_row(one)])
    if one["note"]:
        say(terminal(), f"Note: {plain(one['note'])}")
