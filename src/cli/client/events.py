"""`workspace events`: events that reached automations, and their outcomes, from a terminal."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

import typer

from cli.api_client import ApiClient, Json
from cli.client.impact import DRY_RUN, print_changes
from cli.client.output import clock, list_of, plain, print_json, print_rows
from cli.client.profiles import LIMIT, Options, Place, client_command, connected
from cli.console import StartError, say, terminal

events = typer.Typer(
    name="events",
    help="List and replay events that reached automations. Exits with 3 on an API error.",
    no_args_is_help=True,
)

_EVENT = Annotated[str, typer.Argument(metavar="EVENT", help="ID of the event.")]
_AUTOMATION = Annotated[str | None, typer.Option(metavar="ID", help="Automation.")]
_SOURCE = Annotated[
    str | None, typer.Option(help="webhook, record, form, button, schedule, call, failure, …")
]
_OUTCOME = Annotated[
    str | None, typer.Option(help="run, filtered, duplicate, disabled, unverified, …")
]
_SUBJECT = Annotated[
    str | None, typer.Option(metavar="ID", help="Database, form, data source or automation.")
]
_TEXT = Annotated[str | None, typer.Option(help="Part of the payload.")]


_SINCE = Annotated[str | None, typer.Option(help="Received from this time on.")]
_UNTIL = Annotated[str | None, typer.Option(help="Received before this time.")]


def _filters(
    source: str | None,
    outcome: str | None,
    subject: str | None,
    since: str | None,
    until: str | None,
    text: str | None,
) -> dict[str, str | None]:
    """The filters of the API."""
    return {
        "source": source,
        "outcome": outcome,
        "subjectId": subject,
        "since": since,
        "until": until,
        "text": text,
    }


@events.command(name="list")
@client_command
async def list_events(
    options: Options,
    *,
    automation: _AUTOMATION = None,
    source: _SOURCE = None,
    outcome: _OUTCOME = None,
    subject: _SUBJECT = None,
    since: _SINCE = None,
    until: _UNTIL = None,
    text: _TEXT = None,
    limit: LIMIT = 30,
) -> None:
    """List events, newest first."""
    narrowed = _filters(source, outcome, subject, since, until, text)
    filters = {"automationId": automation, **narrowed}
    await print_events(options.place, filters, limit, as_json=options.as_json)


@events.command()
@client_command
async def show(options: Options, event: _EVENT) -> None:
    """Show an event with its payload and outcomes."""
    await show_event(options.place, event, as_json=options.as_json)


@events.command()
@client_command
async def replay(
    options: Options,
    event: Annotated[str | None, typer.Argument(metavar="[EVENT]", help="ID of the event.")] = None,
    *,
    all_events: Annotated[
        bool, typer.Option("--all", help="Replay every event that fits the filters.")
    ] = False,
    automation: _AUTOMATION = None,
    version: Annotated[str, typer.Option(help="published, draft, or a number.")] = "published",
    test: Annotated[bool, typer.Option("--test", help="Simulate external calls.")] = False,
    source: _SOURCE = None,
    outcome: _OUTCOME = None,
    subject: _SUBJECT = None,
    since: _SINCE = None,
    until: _UNTIL = None,
    text: _TEXT = None,
    rate: Annotated[float | None, typer.Option(help="Events per second, with --all.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask for no confirmation.")] = False,
    dry_run: DRY_RUN = False,
) -> None:
    """Start a run of an event, or of every event that fits filters (--all).

    Without --automation, an event is replayed for the only one that it reached. --all needs
    --automation, shows a preview, asks, and follows the operation until it ends. It exits with 1
    when an event could not be replayed.
    """
    wanted = Replay(automation, version, test, dry_run)
    place, filters = options.place, _filters(source, outcome, subject, since, until, text)
    if all_events and event is None and automation is not None:
        await replay_events(place, wanted, filters, rate, ask=not yes, as_json=options.as_json)
    elif event is not None and not all_events and not any(filters.values()):
        await replay_event(place, event, wanted, as_json=options.as_json)
    else:
        raise typer.BadParameter("Name an event, or use --all with --automation and filters.")


@events.command()
@client_command
async def tail(
    options: Options,
    *,
    automation: _AUTOMATION = None,
    source: _SOURCE = None,
    outcome: _OUTCOME = None,
) -> None:
    """Print events as they arrive. Ctrl-C stops it."""
    filters = {"automationId": automation, "source": source, "outcome": outcome}
    await tail_events(options.place, filters, as_json=options.as_json)


_COLUMNS = ("ID", "RECEIVED", "SOURCE", "AUTOMATION", "OUTCOME", "RUN", "DETAIL")
_LOOK_SECONDS = 2.0
"""Seconds between two reads of new events."""
_PROGRESS_SECONDS = 1.0
"""Seconds between two looks at an operation."""
_TAILED = 100


async def print_events(
    place: Place, filters: Mapping[str, object], limit: int, *, as_json: bool
) -> None:
    """Print the events that fit, with a row for each outcome. Raises StartError."""
    async with await connected(place) as client:
        listed = await list_of(client, _path(client), "events", filters, limit)
    if as_json:
        print_json(listed)
        return
    rows = [row for event in listed["events"] for row in _rows(event)]
    print_rows(terminal(), _COLUMNS, rows, empty="No events.")


async def show_event(place: Place, event_id: str, *, as_json: bool) -> None:
    """Print an event. Raises StartError."""
    async with await connected(place) as client:
        event = await client.call("GET", _path(client, event_id))
    if as_json:
        print_json(event)
        return
    print_rows(terminal(), _COLUMNS, _rows(event), empty="No outcomes.")
    for outcome in event["outcomes"]:
        label = plain(outcome["automationLabel"]) + (", replay" if outcome["replay"] else "")
        say(terminal(), f"{label}: {outcome['reason']} {plain(_detail(outcome))}".rstrip())
    if event["redactedPaths"]:
        say(terminal(), _lacking(event["redactedPaths"]))
    print_json(event.get("payload"))


def _lacking(paths: Sequence[str]) -> str:
    return f"Not kept, [redacted] in a replay: {plain(', '.join(paths))}."


@dataclass(frozen=True, slots=True)
class Replay:
    """The automation, the version and the way of a replay, as options say them."""

    automation: str | None
    version: str
    test: bool
    dry_run: bool

    def body(self, automation: str) -> Json:
        version = int(self.version) if self.version.isdecimal() else self.version
        return {"automationId": automation, "version": version, "test": self.test}


async def replay_event(place: Place, event_id: str, choice: Replay, *, as_json: bool) -> None:
    """Start a run of an event and print it. Raises StartError."""
    async with await connected(place) as client:
        automation = choice.automation or await _only_automation(client, event_id)
        body = choice.body(automation)
        path = f"{_path(client, event_id)}/replay"
        if choice.dry_run:
            print_changes(await client.changes("POST", path, json=body), as_json=as_json)
            return
        outcome = await client.call("POST", path, json=body)
    if as_json:
        print_json(outcome)
        return
    say(terminal(), f"Started run {outcome['runId']}: {outcome['outcome']}.")
    redacted = (outcome.get("detail") or {}).get("redactedPaths")
    if redacted:
        say(terminal(), _lacking(redacted))


async def replay_events(
    place: Place,
    choice: Replay,
    filters: Mapping[str, object],
    rate: float | None,
    *,
    ask: bool,
    as_json: bool,
) -> None:
    """Replay all events that fit, after a preview and a confirmation, and wait for the end.

    Exits with 1 when an event could not be replayed. Raises StartError.
    """
    conditions = {name: value for name, value in filters.items() if value is not None}
    async with await connected(place) as client:
        path = f"{client.workspace}/run-operations"
        replay = {**choice.body(str(choice.automation)), "filter": conditions}
        body: Json = {"action": "replay", "replay": replay}
        preview = await client.call("POST", f"{path}/preview", json=body)
        # Events after the preview were not counted.
        replay["filter"] = {**conditions, "until": conditions.get("until") or preview["until"]}
        if choice.dry_run or not preview["fitting"]:
            _print_preview(preview, as_json=as_json)
            return
        if not as_json:
            _print_preview(preview, as_json=False)
        if ask:
            typer.confirm("Replay them?", abort=True, err=True)
        body |= {} if rate is None else {"rate": rate}
        operation = await client.call("POST", path, json=body)
        operation = await _ended(client, f"{path}/{operation['id']}", as_json=as_json)
    if as_json:
        print_json(operation)
    if operation["status"] != "succeeded" or operation["failed"]:
        raise typer.Exit(1)


def _print_preview(preview: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(preview)
        return
    more = " or more" if preview["more"] else ""
    say(terminal(), f"{preview['fitting']:,}{more} events fit.")
    if preview["redacted"]:
        say(terminal(), f"{preview['redacted']:,} of them lack values.")
        say(terminal(), _lacking(preview["redactedPaths"]))


async def _ended(client: ApiClient, path: str, *, as_json: bool) -> Json:
    """The operation when it has ended or is paused; until then, its progress is printed."""
    last_line = ""
    while True:
        operation: Json = await client.call("GET", path)
        total = operation.get("total")
        progress = "Selecting events" if total is None else f"{operation['done']:,} of {total:,}"
        progress += f": {operation['succeeded']:,} started, {operation['skipped']:,} skipped"
        line = f"{operation['status'].capitalize()}, {progress}, {operation['failed']:,} failed."
        if line != last_line and not as_json:
            say(terminal(), line)
        last_line = line
        if operation["status"] not in ("queued", "running"):
            return operation
        await asyncio.sleep(_PROGRESS_SECONDS)


async def _only_automation(client: ApiClient, event_id: str) -> str:
    event = await client.call("GET", _path(client, event_id))
    automations = {str(one["automationId"]) for one in event["outcomes"]}
    if len(automations) != 1:
        raise StartError("The event reached several automations. Name one with --automation.")
    return automations.pop()


async def tail_events(place: Place, filters: Mapping[str, object], *, as_json: bool) -> None:
    """Print new events, oldest first, until interrupted. Raises StartError."""
    async with await connected(place) as client:
        listed = await list_of(client, _path(client), "events", filters, 1)
        since = listed["events"][0]["receivedAt"] if listed["events"] else None
        printed = {one["id"] for one in listed["events"]}
        while True:
            wanted = {**filters, "since": since}
            listed = await list_of(client, _path(client), "events", wanted, _TAILED)
            for event in reversed(listed["events"]):
                if event["id"] not in printed:
                    printed.add(event["id"])
                    _print_line(event, as_json=as_json)
            if listed["events"]:
                since = listed["events"][0]["receivedAt"]
            await asyncio.sleep(_LOOK_SECONDS)


def _print_line(event: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(event, indent=None)
        return
    for row in _rows(event):
        say(terminal(), "  ".join(str(cell) for cell in row))


def _rows(event: Json) -> list[tuple[object, ...]]:
    return [
        (
            event["id"],
            clock(event["receivedAt"]),
            event["source"],
            plain(outcome["automationLabel"]),
            outcome["outcome"],
            outcome.get("runId", ""),
            plain(_detail(outcome)),
        )
        for outcome in event["outcomes"]
    ]


def _detail(outcome: Json) -> str:
    detail = outcome.get("detail")
    return "" if detail is None else json.dumps(detail, ensure_ascii=False)


def _path(client: ApiClient, event_id: str | None = None) -> str:
    own = "" if event_id is None else f"/{quote(event_id, safe='')}"
    return f"{client.workspace}/trigger-events{own}"
