"""`workspace import` and `workspace refresh`: import rows, and wait for the end."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console

from cli.client.following import API_KEY, STATE_DIR, URL, Place, run_command
from cli.console import aside, say, terminal

_Key = Annotated[
    list[str] | None,
    typer.Option("--key", help="Field to match rows by; matching rows are updated. Repeatable."),
]


def import_file(  # noqa: PLR0917  # options of a command line
    file: Annotated[
        Path | None, typer.Argument(help="CSV, TSV, XLSX, XLS, ODS, JSON or NDJSON file.")
    ] = None,
    database: Annotated[str | None, typer.Option(help="Id of the database to import into.")] = None,
    new: Annotated[
        str | None,
        typer.Option(help="Title of a new database. Default: the file name."),
    ] = None,
    key: _Key = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet to import. Default: the first.")] = None,
    undo: Annotated[
        str | None, typer.Option(metavar="RUN", help="Undo an import, up to 7 days later.")
    ] = None,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Import a spreadsheet, and wait for the result.

    Imports all rows or none. Ctrl-C cancels the import. Exits with 1 on failure.
    """
    place = (state_dir, url, api_key)
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
    from cli.client.following import Display, cancelling, follow_rows
    from cli.client.uploads import print_outcome, require_success, size_of_spreadsheet, upload

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


def refresh(
    data_source: Annotated[str, typer.Argument(metavar="ID", help="Id of the data source.")],
    force: Annotated[
        bool, typer.Option("--force", help="Remove rows even if the removal limit is exceeded.")
    ] = False,
    state_dir: STATE_DIR = Path(".state"),
    url: URL = None,
    api_key: API_KEY = None,
) -> None:
    """Refresh a data source, and wait for the result.

    Ctrl-C cancels the refresh without changes. Exits with 1 on failure.
    """
    run_command(_refresh(data_source, force, (state_dir, url, api_key), terminal()))


async def _refresh(data_source: str, force: bool, place: Place, console: Console) -> None:
    from cli.api_client import api_client
    from cli.client.following import Display, cancelling, follow_rows
    from cli.client.uploads import print_outcome, require_success

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
