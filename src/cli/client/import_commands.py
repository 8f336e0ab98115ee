"""`workspace import`, `refresh` and `legacy-import`: imports from a terminal."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console

from cli.client.output import Place, remote_command, run_command
from cli.console import aside, say, terminal

_Key = Annotated[
    list[str] | None,
    typer.Option("--key", help="Field to match rows by; matching rows are updated. Repeatable."),
]


@remote_command
def import_file(  # options of a command line
    place: Place,
    file: Annotated[
        Path | None, typer.Argument(help="CSV, TSV, XLSX, XLS, ODS, JSON or NDJSON file.")
    ] = None,
    database: Annotated[str | None, typer.Option(help="ID of the database to import into.")] = None,
    new: Annotated[
        str | None,
        typer.Option(help="Title of a new database. Default: the file name."),
    ] = None,
    key: _Key = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet to import. Default: the first.")] = None,
    undo: Annotated[
        str | None, typer.Option(metavar="RUN", help="Undo an import, up to 7 days later.")
    ] = None,
) -> None:
    """Import a spreadsheet, and wait for the result.

    Imports all rows or none. Ctrl-C cancels the import. Exits with 1 on failure.
    """
    if undo is not None:
        run_command(_undo(undo, place, terminal()))
        return
    if file is None:
        raise typer.BadParameter("Enter a file to import, or --undo RUN.")
    if database is not None and new is not None:
        raise typer.BadParameter("Use --database or --new, not both.")
    body: dict[str, Any] = {"label": new or file.stem, "fields": []}
    if database is not None:
        body["targetDatabaseId"] = database
    if key:
        body |= {"keyFields": key, "mode": "upsert"}
    if sheet is not None:
        body["sheetName"] = sheet
    run_command(_import(file, body, place, terminal()))


async def _import(file: Path, body: dict[str, Any], place: Place, console: Console) -> None:
    from cli.api_client import api_client
    from cli.client.legacy_import_calls import (
        print_outcome,
        require_success,
        size_of_spreadsheet,
        upload,
    )
    from cli.client.output import Display, cancelling, follow_rows

    size = size_of_spreadsheet(file)
    async with await api_client(*place) as client:
        if "targetDatabaseId" in body:
            # Before all of the file is sent in vain.
            target = quote(body["targetDatabaseId"], safe="")
            await client.call("GET", f"{client.workspace}/databases/{target}")
        with Display(aside()) as display:
            file_id = await upload(client, file, size, display)
            request = {**body, "kind": "file", "fileId": file_id}
            run = await client.call("POST", f"{client.workspace}/imports", json=request)
            path = f"{client.workspace}/imports/{run['id']}"
            async with cancelling(client, path):
                await follow_rows(client, run["id"], display)
                run = await client.call("GET", path)
    require_success(run, client.base_url)
    result = run["result"]
    console.print(
        f"Imported {result['recordCount']:,} records of {result['fieldCount']} fields into"
        f" {result['label']} (database {result['databaseId']}).",
        *_losses(result),
        markup=False,
        soft_wrap=True,
    )
    print_outcome(console, run, client.base_url)
    say(console, f"Undo: workspace import --undo {run['id']}")


def _losses(result: dict[str, Any]) -> list[str]:
    remarks = []
    if result["skippedRowCount"]:
        remarks.append(f"{result['skippedRowCount']:,} rows were skipped.")
    if result["skippedCells"]:
        remarks.append(
            f"{result['skippedCells']:,} values don't match the column type and were left blank."
        )
    return remarks


async def _undo(run_id: str, place: Place, console: Console) -> None:
    from cli.api_client import api_client

    async with await api_client(*place) as client:
        path = f"{client.workspace}/imports/{quote(run_id, safe='')}/undo"
        run = await client.call("POST", path, json={}, timeout=60)
    reversal = run["reversal"]
    kept = f" {reversal['kept']:,} edited since then were kept." if reversal["kept"] else ""
    console.print(f"Undone: {reversal['reverted']:,} records.{kept}", soft_wrap=True)


@remote_command
def refresh(
    place: Place,
    data_source: Annotated[str, typer.Argument(metavar="ID", help="ID of the data source.")],
    force: Annotated[
        bool, typer.Option("--force", help="Remove rows even if the removal limit is exceeded.")
    ] = False,
) -> None:
    """Refresh a data source, and wait for the result.

    Ctrl-C cancels the refresh without changes. Exits with 1 on failure.
    """
    run_command(_refresh(data_source, force, place, terminal()))


async def _refresh(data_source: str, force: bool, place: Place, console: Console) -> None:
    from cli.api_client import api_client
    from cli.client.legacy_import_calls import print_outcome, require_success
    from cli.client.output import Display, cancelling, follow_rows

    async with await api_client(*place) as client:
        source = f"{client.workspace}/data-sources/{quote(data_source, safe='')}"
        run = await client.call("POST", f"{source}/refresh", json={"force": force})
        path = f"{source}/runs/{run['id']}"
        with Display(aside()) as display:
            async with cancelling(client, path):
                await follow_rows(client, run["id"], display)
                run = await client.call("GET", path)
    require_success(run, client.base_url)
    print_outcome(console, run, client.base_url)


legacy_import = typer.Typer(
    name="legacy-import",
    help="Import whole workspaces: upload, review, approve, start, roll back."
    " Exits with 1 on failure.",
    no_args_is_help=True,
)

_RUN = Annotated[str, typer.Argument(metavar="RUN", help="ID of the run.")]
_WORKSPACE = Annotated[
    str, typer.Argument(metavar="WORKSPACE", help="ID or name of a workspace in the run.")
]


@legacy_import.command()
@remote_command
def upload(
    place: Place,
    file: Annotated[Path, typer.Argument(help="Bundle file: zip or tar.zst.")],
) -> None:
    """Upload a bundle, validate it, and preview the import."""
    from cli.client.legacy_import_calls import upload_bundle

    run_command(upload_bundle(file, place))


@legacy_import.command(name="list")
@remote_command
def list_newest(
    place: Place,
) -> None:
    """List the latest runs."""
    from cli.client.legacy_import_calls import list_runs

    run_command(list_runs(place))


@legacy_import.command()
@remote_command
def show(
    place: Place,
    run: _RUN,
) -> None:
    """Follow a run until it ends or needs a decision, then print its result."""
    from cli.client.legacy_import_calls import show_run

    run_command(show_run(run, place))


@legacy_import.command()
@remote_command
def select(
    place: Place,
    run: _RUN,
    workspace: _WORKSPACE,
    skip: Annotated[bool, typer.Option("--skip", help="Exclude the workspace instead.")] = False,
    into: Annotated[
        str | None, typer.Option(metavar="ID", help="Import into this existing workspace.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Import into a new workspace.")] = False,
) -> None:
    """Include or exclude a workspace, or set its target, before approval."""
    from cli.client.legacy_import_calls import decide_workspace

    if into is not None and new:
        raise typer.BadParameter("Use --into or --new, not both.")
    body: dict[str, Any] = {"selected": not skip}
    if into is not None or new:
        body["targetWorkspaceId"] = into
    run_command(decide_workspace(run, workspace, None, body, place))


@legacy_import.command()
@remote_command
def check(
    place: Place,
    run: _RUN,
) -> None:
    """Repeat the dry run for the selected workspaces."""
    _decide(run, "dry-run", {}, place)


@legacy_import.command()
@remote_command
def approve(
    place: Place,
    run: _RUN,
    note: Annotated[str | None, typer.Option(help="Note about the decision.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKSPACE", help="Import only this workspace. Repeatable."),
    ] = None,
) -> None:
    """Approve a validated run, so that it can be started."""
    body = {} if note is None else {"note": note}
    _decide(run, "approve", body, place, only, "selectedWorkspaceIds")


@legacy_import.command()
@remote_command
def start(
    place: Place,
    run: _RUN,
) -> None:
    """Start an approved import, and wait for the result. Ctrl-C stops watching."""
    _decide(run, "start", {}, place)


@legacy_import.command()
@remote_command
def retry(
    place: Place,
    run: _RUN,
    workspace: _WORKSPACE,
) -> None:
    """Retry the import of a workspace from where it failed."""
    from cli.client.legacy_import_calls import decide_workspace

    run_command(decide_workspace(run, workspace, "retry", {}, place))


@legacy_import.command()
@remote_command
def cancel(
    place: Place,
    run: _RUN,
    reason: Annotated[str | None, typer.Option(help="Reason.")] = None,
) -> None:
    """Cancel a run. Unfinished workspaces are rolled back."""
    body = {} if reason is None else {"reason": reason}
    _decide(run, "cancel", body, place)


@legacy_import.command()
@remote_command
def release(
    place: Place,
    run: _RUN,
) -> None:
    """Publish the workspaces that were complete when a run was cancelled."""
    _decide(run, "release", {}, place)


@legacy_import.command()
@remote_command
def rollback(
    place: Place,
    run: _RUN,
    reason: Annotated[str, typer.Option(help="Reason.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also remove what was edited since the import.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKSPACE", help="Roll back only this workspace. Repeatable."),
    ] = None,
) -> None:
    """Roll back an import, up to 30 days later. Edited data is kept."""
    body = {"reason": reason, "force": force}
    _decide(run, "rollback", body, place, only, "workspaceIds")


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
