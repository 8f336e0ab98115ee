"""`workspace incidents`: groups of similar failures, from a terminal."""

from typing import Annotated

import typer

from cli.client.profiles import JSON, LIMIT, PROFILE, STATE_DIR, retry_body, run_command

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
    limit: LIMIT = 30,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """List incidents, newest first."""
    from cli.client.incident_calls import print_incidents

    filters = {"state": state, "automationId": automation}
    run_command(print_incidents((profile, state_dir), filters, limit, as_json=json))


@incidents.command()
def show(
    incident: _INCIDENT, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Show an incident."""
    from cli.client.incident_calls import show_incident

    run_command(show_incident((profile, state_dir), incident, as_json=json))


@incidents.command()
def watch(
    incident: _INCIDENT, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Follow an incident until it is closed. Ctrl-C stops watching."""
    from cli.client.incident_calls import watch_incident

    run_command(watch_incident((profile, state_dir), incident, as_json=json))


@incidents.command()
def records(
    incident: _INCIDENT,
    limit: LIMIT = 100,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """List the records affected by an incident."""
    from cli.client.incident_calls import print_records

    run_command(print_records((profile, state_dir), incident, limit, as_json=json))


@incidents.command()
def assign(
    incident: _INCIDENT,
    user: Annotated[
        str | None,
        typer.Argument(metavar="USER", help="Email or ID. Omit to unassign."),
    ] = None,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Assign an incident to a member, or unassign it."""
    from cli.client.incident_calls import assign_incident

    run_command(assign_incident((profile, state_dir), incident, user, as_json=json))


@incidents.command()
def mute(
    incident: _INCIDENT, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Stop notifications about an incident."""
    from cli.client.incident_calls import change_incident

    run_command(change_incident((profile, state_dir), incident, {"muted": True}, as_json=json))


@incidents.command()
def unmute(
    incident: _INCIDENT, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Resume notifications about an incident."""
    from cli.client.incident_calls import change_incident

    run_command(change_incident((profile, state_dir), incident, {"muted": False}, as_json=json))


@incidents.command()
def note(
    incident: _INCIDENT,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Replaces the current note.")],
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Set the note of an incident."""
    from cli.client.incident_calls import change_incident

    run_command(change_incident((profile, state_dir), incident, {"note": text}, as_json=json))


@incidents.command()
def close(
    incident: _INCIDENT, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Close an incident. A later failure reopens it."""
    from cli.client.incident_calls import act_on_incident

    run_command(act_on_incident((profile, state_dir), incident, "close", as_json=json))


@incidents.command()
def reopen(
    incident: _INCIDENT, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Reopen a closed incident."""
    from cli.client.incident_calls import act_on_incident

    run_command(act_on_incident((profile, state_dir), incident, "reopen", as_json=json))


@incidents.command()
def retry(
    incident: _INCIDENT,
    begin: Annotated[
        str, typer.Option("--from", metavar="start|failed", help="Where to start.")
    ] = "failed",
    version: Annotated[
        str, typer.Option(metavar="own|published", help="Their own version, or the published one.")
    ] = "published",
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Retry the failed runs of an incident, and print the ID of the operation."""
    from cli.client.incident_calls import retry_incident

    body = retry_body(begin, version)
    run_command(retry_incident((profile, state_dir), incident, body, as_json=json))


@incidents.command(name="open")
def open_page(
    incident: _INCIDENT, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Print the URL of an incident, and open it when run in a terminal."""
    from cli.client.incident_calls import open_incident

    run_command(open_incident((profile, state_dir), incident, as_json=json))
