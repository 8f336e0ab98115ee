"""`workspace runs`: runs of automations from a terminal."""

from typing import Annotated

import typer

from cli.client.profiles import JSON, LIMIT, PROFILE, STATE_DIR, retry_body, run_command

runs = typer.Typer(
    name="runs",
    help="Runs of automations, of the profile in use or of the platform that runs here."
    " Exits with 3 when the platform refuses or does not answer.",
    no_args_is_help=True,
)

_RUN = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
_TEXT = str | None
_SECONDS = float | None


@runs.command(name="list")
def list_runs(
    *,
    status: Annotated[_TEXT, typer.Option(help="failed, running, …")] = None,
    source: Annotated[_TEXT, typer.Option(help="manual, webhook, schedule, …")] = None,
    automation: Annotated[_TEXT, typer.Option(metavar="ID", help="Of an automation.")] = None,
    version: Annotated[_TEXT, typer.Option(metavar="ID", help="Of a version of it.")] = None,
    attribute: Annotated[
        list[str] | None, typer.Option(metavar="KEY:VALUE", help="With an attribute; repeatable.")
    ] = None,
    text: Annotated[_TEXT, typer.Option(help="A part of the payload or the error.")] = None,
    period: Annotated[_TEXT, typer.Option(help="hour, day, week or month, until now.")] = None,
    since: Annotated[_TEXT, typer.Option(metavar="TIME", help="Asked for since.")] = None,
    until: Annotated[_TEXT, typer.Option(metavar="TIME", help="Asked for before.")] = None,
    started_since: Annotated[_TEXT, typer.Option(metavar="TIME")] = None,
    started_until: Annotated[_TEXT, typer.Option(metavar="TIME")] = None,
    ended_since: Annotated[_TEXT, typer.Option(metavar="TIME")] = None,
    ended_until: Annotated[_TEXT, typer.Option(metavar="TIME")] = None,
    min_seconds: Annotated[_SECONDS, typer.Option(help="That took so long, or longer.")] = None,
    max_seconds: Annotated[_SECONDS, typer.Option(help="That took so long at most.")] = None,
    error_code: Annotated[_TEXT, typer.Option(help="Of a node that failed.")] = None,
    failed_node: Annotated[_TEXT, typer.Option(metavar="ID", help="That failed in it.")] = None,
    limit: LIMIT = 30,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """List runs, newest first, by the filters of the API; all of them hold."""
    from cli.client.run_calls import joined_pairs, print_list

    filters = {
        "status": status, "source": source, "automationId": automation,
        "automationVersionId": version, "attribute": joined_pairs(attribute or []), "text": text,
        "period": period, "since": since, "until": until, "startedSince": started_since,
        "startedUntil": started_until, "endedSince": ended_since, "endedUntil": ended_until,
        "minSeconds": min_seconds, "maxSeconds": max_seconds, "errorCode": error_code,
        "failedNodeId": failed_node,
    }  # fmt: skip
    run_command(print_list((profile, state_dir), filters, limit, as_json=json))


@runs.command()
def show(
    run: _RUN, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Show a run and its nodes in the order they began."""
    from cli.client.run_calls import show_run

    run_command(show_run((profile, state_dir), run, as_json=json))


@runs.command()
def watch(
    run: _RUN, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Follow a run until it has ended; Ctrl-C leaves it going on.

    Exits with 0 when it succeeded, 1 when it failed or timed out, 2 when it was cancelled.
    """
    from cli.client.run_calls import watch_run

    run_command(watch_run((profile, state_dir), run, as_json=json))


@runs.command()
def retry(
    run: _RUN,
    begin: Annotated[
        str, typer.Option("--from", metavar="start|failed", help="Where it begins.")
    ] = "failed",
    version: Annotated[
        str, typer.Option(metavar="own|published", help="The version it had, or that of now.")
    ] = "own",
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Run an ended run again, and print the id of the new one."""
    from cli.client.run_calls import retry_run

    body = retry_body(begin, version)
    run_command(retry_run((profile, state_dir), run, body, as_json=json))


@runs.command()
def cancel(
    run: _RUN, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Cancel a run; one that has ended stays as it is."""
    from cli.client.run_calls import cancel_run

    run_command(cancel_run((profile, state_dir), run, as_json=json))


@runs.command()
def compare(
    run: _RUN,
    reference: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="By default the last that succeeded before."),
    ] = None,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Compare a run with another of its automation: which nodes differ, and by which values."""
    from cli.client.run_calls import compare_runs

    run_command(compare_runs((profile, state_dir), run, reference, as_json=json))


@runs.command(name="open")
def open_page(
    run: _RUN, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Print the address of the page of a run, and open it where this is a terminal."""
    from cli.client.run_calls import open_run

    run_command(open_run((profile, state_dir), run, as_json=json))
