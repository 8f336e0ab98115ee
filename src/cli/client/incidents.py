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
def list_incidents(
    *,
    state: Annotated[str | None, typer.Option(help="open, muted or closed.")] = None,
    automation: Annotated[str | None, typer.Option(metavar="ID", help="Automation.")] = None,
    limit: profiles.LIMIT = 30,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """List incidents, newest first."""
    filters = {"state": state, "automationId": automation}
    profiles.run_command(print_incidents((profile, state_dir), filters, limit, as_json=json))


@incidents.command()
def show(
    incident: _INCIDENT,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Show an incident."""
    profiles.run_command(show_incident((profile, state_dir), incident, as_json=json))


@incidents.command()
def watch(
    incident: _INCIDENT,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Follow an incident until it is closed. Ctrl-C stops watching."""
    profiles.run_command(watch_incident((profile, state_dir), incident, as_json=json))


@incidents.command()
def records(
    incident: _INCIDENT,
    limit: profiles.LIMIT = 100,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """List the records affected by an incident."""
    profiles.run_command(print_records((profile, state_dir), incident, limit, as_json=json))


@incidents.command()
def assign(
    incident: _INCIDENT,
    user: Annotated[
        str | None,
        typer.Argument(metavar="USER", help="Email or ID. Omit to unassign."),
    ] = None,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Assign an incident to a member, or unassign it."""
    profiles.run_command(assign_incident((profile, state_dir), incident, user, as_json=json))


@incidents.command()
def mute(
    incident: _INCIDENT,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Stop notifications about an incident."""
    profiles.run_command(
        change_incident((profile, state_dir), incident, {"muted": True}, as_json=json)
    )


@incidents.command()
def unmute(
    incident: _INCIDENT,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Resume notifications about an incident."""
    profiles.run_command(
        change_incident((profile, state_dir), incident, {"muted": False}, as_json=json)
    )


@incidents.command()
def note(
    incident: _INCIDENT,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Replaces the current note.")],
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Set the note of an incident."""
    profiles.run_command(
        change_incident((profile, state_dir), incident, {"note": text}, as_json=json)
    )


@incidents.command()
def close(
    incident: _INCIDENT,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Close an incident. A later failure reopens it."""
    profiles.run_command(act_on_incident((profile, state_dir), incident, "close", as_json=json))


@incidents.command()
def reopen(
    incident: _INCIDENT,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Reopen a closed incident."""
    profiles.run_command(act_on_incident((profile, state_dir), incident, "reopen", as_json=json))


@incidents.command()
def retry(
    incident: _INCIDENT,
    begin: Annotated[
        str, typer.Option("--from", metavar="start|failed", help="Where to start.")
    ] = "failed",
    version: Annotated[
        str, typer.Option(metavar="own|published", help="Their own version, or the published one.")
    ] = "published",
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Retry the failed runs of an incident, and print the ID of the operation."""
    body = profiles.retry_body(begin, version)
    profiles.run_command(retry_incident((profile, state_dir), incident, body, as_json=json))


@incidents.command(name="open")
def open_page(
    incident: _INCIDENT,
    json: profiles.JSON = False,
    profile: profiles.PROFILE = None,
    state_dir: profiles.STATE_DIR = None,
) -> None:
    """Print the URL of an incident, and open it when run in a terminal."""
    profiles.run_command(open_incident((profile, state_dir), incident, as_json=json))


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
