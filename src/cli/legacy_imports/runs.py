"""Calling the API about a legacy import run, and following it until somebody has the next move."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer

from cli.api_client import ApiClient, Json, api_client
from cli.console import aside, terminal
from cli.legacy_imports.report import print_list, print_run, words_of
from cli.progress_bars import ProgressBars
from cli.rows.connection import Place
from cli.rows.display import Display
from cli.rows.following import GivenUpError, follow
from cli.rows.upload import pieces_of
from cli.supervisor.errors import StartError

_RUNS = "/v1/admin/legacy-imports"
_STANDS = frozenset({"awaiting_review", "approved"})
_FAILED = frozenset({"failed", "rollback_failed"})
_ENDED = frozenset({"ready", "blocked", "done", "failed", "skipped", "cancelled"})
_GOING_BACK = frozenset({"requested", "running"})
_SHOWN = 20


async def upload_bundle(file: Path, place: Place) -> None:
    """Send a bundle and follow its dry run. Raises StartError when there is no such file."""
    size = _size(file)
    async with await api_client(*place) as client:
        with Display(aside()) as display:
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            content = pieces_of(file, size, display)
            run = await client.call("POST", _RUNS, content=content, headers=headers, timeout=3600)
        await _watch(client, run)


def _size(file: Path) -> int:
    if not file.is_file():
        raise StartError(f"There is no file {file}.")
    return file.stat().st_size


async def list_runs(place: Place) -> None:
    async with await api_client(*place) as client:
        answer = await client.call("GET", f"{_RUNS}?limit={_SHOWN}")
        print_list(terminal(), answer["legacyImports"])


async def show_run(run_id: str, place: Place) -> None:
    """Follow a run, then tell of it."""
    async with await api_client(*place) as client:
        await _watch(client, await client.call("GET", _path(run_id)))


async def decide(
    run_id: str, operation: str, body: Json, place: Place, only: Sequence[str] = (), key: str = ""
) -> None:
    """Call an operation of a run and follow it; `only` names workspaces, for `key` of the body."""
    async with await api_client(*place) as client:
        if only:
            run = await client.call("GET", _path(run_id))
            body = {**body, key: [_entry(run, name) for name in only]}
        await _watch(client, await client.call("POST", f"{_path(run_id)}/{operation}", json=body))


async def decide_workspace(
    run_id: str, workspace: str, operation: str | None, body: Json, place: Place
) -> None:
    """Call an operation of one workspace of a run and follow the run; without `what`, update it."""
    async with await api_client(*place) as client:
        entry = _entry(await client.call("GET", _path(run_id)), workspace)
        path = f"{_path(run_id)}/workspaces/{entry}"
        method, path = ("PATCH", path) if operation is None else ("POST", f"{path}/{operation}")
        await _watch(client, await client.call(method, path, json=body))


def _path(run_id: str) -> str:
    return f"{_RUNS}/{quote(run_id, safe='')}"


def _entry(run: Json, named: str) -> str:
    """The id of a workspace of a run, named by an id or its name. Raises StartError."""
    ids = [
        entry["id"]
        for entry in run["workspaces"]
        if named in {entry["id"], entry["sourceWorkspaceId"], entry["sourceName"]}
    ]
    if len(ids) != 1:
        why = "no workspace" if not ids else f"{len(ids)} workspaces"
        raise StartError(f"The run has {why} {named}: `show` lists them with their ids.")
    return str(ids[0])


async def _watch(client: ApiClient, run: dict[str, Any]) -> None:
    """Follow a run until nothing happens by itself any more, and tell what it came to.

    Exits with 1 when the run, its rollback or one of its workspaces has failed.
    """
    path = f"{_RUNS}/{run['id']}"
    if run["status"] not in _STANDS:
        try:
            with ProgressBars(aside()) as bars:
                show = partial(_show, bars)
                await follow(
                    client, path, run["pageUrl"], show, lambda state: state["status"] in _STANDS
                )
        except asyncio.CancelledError:
            raise GivenUpError(
                f"The run goes on: workspace legacy-import show {run['id']}"
            ) from None
        run = await client.call("GET", path)
    print_run(terminal(), run, client.base_url)
    lost = any(entry["stage"] == "failed" for entry in run["workspaces"])
    rolled_back = run["status"] == "rolled_back"
    if run["status"] in _FAILED or (lost and not rolled_back):
        raise typer.Exit(1)


def _show(bars: ProgressBars, run: Json) -> None:
    """Show the state of a run, and how far each of its workspaces is."""
    bars.show("run", "Legacy import", words_of(run["status"]))
    for entry in run["workspaces"]:
        key, name = entry["id"], entry["sourceName"]
        if entry["rollbackState"] in _GOING_BACK:
            bars.show(key, name, "taken back")
            continue
        progress = entry.get("progress", {})
        total = progress.get("total")
        done = total if entry["stage"] in _ENDED else progress.get("done")
        bars.show(key, name, words_of(entry["stage"]), done, total)
