"""`workspace legacy-import`: whole workspaces come in, each step by a command of its own."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.client.following import API_KEY, STATE_DIR, URL, Place, run_command

legacy_import = typer.Typer(
    name="legacy-import",
    help="Bring whole workspaces in: upload, look, approve, start, roll back."
    " Exits with 1 when something failed or was refused.",
    no_args_is_help=True,
)

_RUN = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
_WORKSPACE = Annotated[
    str, typer.Argument(metavar="WORKSPACE", help="A workspace of the run: its id or its name.")
]


@legacy_import.command()
def upload(
    file: Annotated[Path, typer.Argument(help="A bundle: zip or tar.zst.")],
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Upload a bundle, wait until it is checked, and tell what an import would do."""
    from cli.client.legacy_import_calls import upload_bundle

    run_command(upload_bundle(file, (state_dir, url, api_key)))


@legacy_import.command(name="list")
def list_newest(
    state_dir: STATE_DIR = Path(".state"), url: URL = None, api_key: API_KEY = None
) -> None:
    """List the newest runs."""
    from cli.client.legacy_import_calls import list_runs

    run_command(list_runs((state_dir, url, api_key)))


@legacy_import.command()
def show(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Follow a run until a person has the next move, or it has ended; then tell what it came to."""
    from cli.client.legacy_import_calls import show_run

    run_command(show_run(run, (state_dir, url, api_key)))


@legacy_import.command()
def select(
    run: _RUN,
    workspace: _WORKSPACE,
    skip: Annotated[bool, typer.Option("--skip", help="Leave it out instead.")] = False,
    into: Annotated[
        str | None, typer.Option(metavar="ID", help="Import it into this workspace.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Import it into one of its own.")] = False,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Choose, before a run is approved, whether a workspace comes in, and where to."""
    from cli.client.legacy_import_calls import decide_workspace

    if into is not None and new:
        raise typer.BadParameter("--into and --new exclude each other.")
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
    """Repeat the dry run of what is selected."""
    _decide(run, "dry-run", {}, (state_dir, url, api_key))


@legacy_import.command()
def approve(
    run: _RUN,
    note: Annotated[str | None, typer.Option(help="What is to be kept of the decision.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKSPACE", help="Select this one and no other; repeatable."),
    ] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Approve a run that was checked: it can then be started."""
    body = {} if note is None else {"note": note}
    _decide(run, "approve", body, (state_dir, url, api_key), only, "selectedWorkspaceIds")


@legacy_import.command()
def start(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Import what was approved, and wait for the end. Ctrl-C leaves it going on."""
    _decide(run, "start", {}, (state_dir, url, api_key))


@legacy_import.command()
def retry(
    run: _RUN,
    workspace: _WORKSPACE,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Go on with a workspace whose import failed, from where it stopped."""
    from cli.client.legacy_import_calls import decide_workspace

    run_command(decide_workspace(run, workspace, "retry", {}, (state_dir, url, api_key)))


@legacy_import.command()
def cancel(
    run: _RUN,
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Cancel a run; what it has not finished is taken back."""
    body = {} if reason is None else {"reason": reason}
    _decide(run, "cancel", body, (state_dir, url, api_key))


@legacy_import.command()
def release(
    run: _RUN,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Let people see the workspaces that were finished before a run was cancelled."""
    _decide(run, "release", {}, (state_dir, url, api_key))


@legacy_import.command()
def rollback(
    run: _RUN,
    reason: Annotated[str, typer.Option(help="Why.")],
    force: Annotated[
        bool, typer.Option("--force", help="Remove what was changed since as well.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKSPACE", help="Take back this one and no other; repeatable."),
    ] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Take back what a run has imported, within 30 days. What was changed since is kept."""
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
