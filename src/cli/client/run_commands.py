"""`workspace runs`: runs of automations from a terminal."""

from typing import Annotated

import typer

from cli.client.impact import DRY_RUN
from cli.client.profiles import JSON, LIMIT, PROFILE, STATE_DIR, retry_body, run_command

runs = typer.Typer(
    name="runs",
    help="List and manage runs of automations. Exits with 3 on an API error.",
    no_args_is_help=True,
)

_RUN = Annotated[str, typer.Argument(metavar="RUN", help="ID of the run.")]
_TEXT = str | None
_SECONDS = float | None


@runs.command(name="list")
def list_runs(
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
    limit: LIMIT = 30,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """List runs, newest first. Filters are combined."""
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
    """Show a run and its nodes."""
    from cli.client.run_calls import show_run

    run_command(show_run((profile, state_dir), run, as_json=json))


@runs.command()
def watch(
    run: _RUN, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Follow a run until it ends. Ctrl-C stops watching.

    Exits with 0 if it succeeded, 1 if it failed or timed out, 2 if it was cancelled.
    """
    from cli.client.run_calls import watch_run

    run_command(watch_run((profile, state_dir), run, as_json=json))


@runs.command()
def retry(
    run: _RUN,
    begin: Annotated[
        str, typer.Option("--from", metavar="start|failed", help="Where to start.")
    ] = "failed",
    version: Annotated[
        str, typer.Option(metavar="own|published", help="Its own version, or the published one.")
    ] = "own",
    dry_run: DRY_RUN = False,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Retry a run, and print the ID of the new run."""
    from cli.client.run_calls import retry_run

    body = retry_body(begin, version)
    call = retry_run((profile, state_dir), run, body, dry_run=dry_run, as_json=json)
    run_command(call)


@runs.command()
def cancel(
    run: _RUN,
    dry_run: DRY_RUN = False,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Cancel a run. A run that has ended is not changed."""
    from cli.client.run_calls import cancel_run

    run_command(cancel_run((profile, state_dir), run, dry_run=dry_run, as_json=json))


@runs.command()
def undo(
    run: _RUN,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would be reverted; change nothing.")
    ] = False,
    earlier: Annotated[
        str | None, typer.Option("--undo", metavar="UNDO", help="Undo this undo of the run.")
    ] = None,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Revert what an ended run wrote to records, unless it was changed since.

    Exits with 1 when there are conflicts.
    """
    from cli.client.run_calls import undo_run

    body = {"preview": preview} if earlier is None else {"preview": preview, "undoId": earlier}
    run_command(undo_run((profile, state_dir), run, body, as_json=json))


@runs.command()
def compare(
    run: _RUN,
    reference: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Default: the last successful run before it."),
    ] = None,
    json: JSON = False,
    profile: PROFILE = None,
    state_dir: STATE_DIR = None,
) -> None:
    """Compare a run with another run of the same automation."""
    from cli.client.run_calls import compare_runs

    run_command(compare_runs((profile, state_dir), run, reference, as_json=json))


@runs.command(name="open")
def open_page(
    run: _RUN, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None
) -> None:
    """Print the URL of a run, and open it when run in a terminal."""
    from cli.client.run_calls import open_run

    run_command(open_run((profile, state_dir), run, as_json=json))
