"""`workspace events`: events that reached automations, and their outcomes, from a terminal."""

from typing import Annotated

import typer

from cli.client.impact import DRY_RUN
from cli.client.profiles import JSON, LIMIT, PROFILE, STATE_DIR, run_command

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


@events.command(name="list")
def list_events(  # the options of the command
    *,
    automation: _AUTOMATION = None,
    source: _SOURCE = None,
    outcome: _OUTCOME = None,
    subject: _SUBJECT = None,
    since: Annotated[str | None, typer.Option(help="Received from this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Received before this time.")] = None,
    text: _TEXT = None,
    limit: LIMIT = 30,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """List events, newest first."""
    from cli.client.event_calls import print_events

    filters = {
        "automationId": automation,
        "source": source,
        "outcome": outcome,
        "subjectId": subject,
        "since": since,
        "until": until,
        "text": text,
    }
    run_command(print_events((profile, state_dir), filters, limit, as_json=json))


@events.command()
def show(
    event: _EVENT, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Show an event with its payload and outcomes."""
    from cli.client.event_calls import show_event

    run_command(show_event((profile, state_dir), event, as_json=json))


@events.command()
def replay(  # the options of the command
    event: _EVENT,
    *,
    automation: _AUTOMATION = None,
    version: Annotated[str, typer.Option(help="published, draft, or a number.")] = "published",
    test: Annotated[bool, typer.Option("--test", help="Simulate external calls.")] = False,
    dry_run: DRY_RUN = False,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Start a run of an event. Without --automation, of the only one that it reached."""
    from cli.client.event_calls import Replay, replay_event

    wanted = Replay(automation, version, test, dry_run)
    run_command(replay_event((profile, state_dir), event, wanted, as_json=json))


@events.command()
def tail(
    *,
    automation: _AUTOMATION = None,
    source: _SOURCE = None,
    outcome: _OUTCOME = None,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Print events as they arrive. Ctrl-C stops it."""
    from cli.client.event_calls import tail_events

    filters = {"automationId": automation, "source": source, "outcome": outcome}
    run_command(tail_events((profile, state_dir), filters, as_json=json))
