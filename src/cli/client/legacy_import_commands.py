"""`workspace legacy-import`: imports whole workspaces, with a command for each step."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.client.following import API_KEY, STATE_DIR, URL, Place, run_command

legacy_import = typer.Typer(
    name="legacy-import",
    help="Import whole workspaces: upload, review, approve, start, roll back."
    " Exits with 1 on failure.",
    no_args_is_help=True,
)

_RUN = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
_WORKSPACE = Annotated[
    str, typer.Argument(metavar="WORKSPACE", help="Id or name of a workspace in the run.")
]


@legacy_import.command()
def upload(
    file: Annotated[Path, typer.Argument(help="Bundle file: zip or tar.zst.")],
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Upload a bundle, validate it, and preview the import."""
    from cli.client.legacy_import_calls import upload_bundle

    run_command(upload_bundle(file, (state_dir, url, api_key)))


@legacy_import.command(name="list")
def list_newest(
    state_dir: STATE_DIR = Path(".state"), url: URL = None, api_key: API_KEY = None
) -> None:
    """List the latest runs."""
    from cli.client.legacy_import_calls import list_runs

    run_command(list_runs((state_dir, url, api_key)))


@legacy_import.command()
def show(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Follow a run until it ends or needs a decision, then print its result."""
    from cli.client.legacy_import_calls import show_run

    run_command(show_run(run, (state_dir, url, api_key)))


@legacy_import.command()
def select(
    run: _RUN,
    workspace: _WORKSPACE,
    skip: Annotated[bool, typer.Option("--skip", help="Exclude the workspace instead.")] = False,
    into: Annotated[
        str | None, typer.Option(metavar="ID", help="Import into this existing workspace.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Import into a new workspace.")] = False,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Include or exclude a workspace, or set its target, before approval."""
    from cli.client.legacy_import_calls import decide_workspace

    if into is not None and new:
        raise typer.BadParameter("Use --into or --new, not both.")
    body: dict[str, Any] = {"selected": not skip}
    if into is not None or new:
        body["targetWorkspaceId"] = into
    run_command(decide_workspace(run, workspace, None, body, (state_dir, url, api_key)))


@legacy_import.command()
def check(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Repeat the dry run for the selected workspaces."""
    _decide(run, "dry-run", {}, (state_dir, url, api_key))


@legacy_import.command()
def approve(
    run: _RUN,
    note: Annotated[str | None, typer.Option(help="Note about the decision.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKSPACE", help="Import only this workspace. Repeatable."),
    ] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Approve a validated run, so that it can be started."""
    body = {} if note is None else {"note": note}
    _decide(run, "approve", body, (state_dir, url, api_key), only, "selectedWorkspaceIds")


@legacy_import.command()
def start(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Start an approved import, and wait for the result. Ctrl-C stops watching."""
    _decide(run, "start", {}, (state_dir, url, api_key))


@legacy_import.command()
def retry(
    run: _RUN,
    workspace: _WORKSPACE,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Retry the import of a workspace from where it failed."""
    from cli.client.legacy_import_calls import decide_workspace

    run_command(decide_workspace(run, workspace, "retry", {}, (state_dir, url, api_key)))


@legacy_import.command()
def cancel(
    run: _RUN,
    reason: Annotated[str | None, typer.Option(help="Reason.")] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Cancel a run. Unfinished workspaces are rolled back."""
    body = {} if reason is None else {"reason": reason}
    _decide(run, "cancel", body, (state_dir, url, api_key))


@legacy_import.command()
def release(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Publish the workspaces that were complete when a run was cancelled."""
    _decide(run, "release", {}, (state_dir, url, api_key))


@legacy_import.command()
def rollback(
    run: _RUN,
    reason: Annotated[str, typer.Option(help="Reason.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also remove what was edited since the import.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKSPACE", help="Roll back only this workspace. Repeatable."),
    ] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Roll back an import, up to 30 days later. Edited data is kept."""
    body = {"reason": reason, "force": force}
    _decide(run, "rollback", body, (state_dir, url, api_key), only, "workspaceIds")


def _decide(
    run: str,
    operation: str,
    body: dict[str, Any],
    place: Place,
    only: list[str] | None = None,
    key: str = "",
) -> None:
    from cli.client.legacy_import_calls import decide

    run_command(decide(run, operation, body, place, only or (), key))
