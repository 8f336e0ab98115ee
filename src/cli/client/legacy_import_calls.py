"""Uploads of files, a piece at a time, and the outcome of a run that imported rows."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer
from rich.console import Console

from cli.api_client import ApiClient, Json, api_client
from cli.client.output import Display, GivenUpError, Place, follow, in_bytes
from cli.console import ProgressBars, StartError, aside, say, terminal
from models.sources.tabular.rules.options import MAX_FILE_BYTES, TableFormat, format_named

_PIECE = 1 << 18


def size_of_spreadsheet(file: Path) -> int:
    """The bytes of a file. Raises StartError for what cannot be imported, before it is sent."""
    if file.is_dir():
        raise StartError(f"{file} is a directory. Enter a file.")
    try:
        with file.open("rb"):
            size = file.stat().st_size
    except FileNotFoundError:
        raise StartError(f"File not found: {file}") from None
    except OSError as error:
        raise StartError(f"{file} cannot be read: {error.strerror}.") from None
    if format_named(file.name) is None:
        known = ", ".join(f".{name}" for name in TableFormat)
        raise StartError(f"Unknown file format: {file}. Supported: {known}.")
    if size == 0:
        raise StartError(f"{file} is empty.")
    if size > MAX_FILE_BYTES:
        limit = in_bytes(MAX_FILE_BYTES)
        raise StartError(f"{file} is too large ({in_bytes(size)}). The limit is {limit}.")
    return size


async def pieces_of(file: Path, size: int, display: Display) -> AsyncIterator[bytes]:
    """A file, a piece at a time; the display shows the progress."""
    count = 0
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            display.sent(count, size)
            yield piece
            count += len(piece)
    display.sent(count, size)


async def upload(client: ApiClient, file: Path, size: int, display: Display) -> str:
    """Send a file; gives its id. Raises StartError."""
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
    answer = await client.call(
        "POST",
        f"{client.workspace}/files",
        params={"name": file.name},
        content=pieces_of(file, size, display),
        headers=headers,
        timeout=120,
    )
    return str(answer["fileId"])


_COUNTS = ("inserted", "updated", "unchanged", "removed", "skipped")


def require_success(run: dict[str, Any], base_url: str) -> None:
    """Raises StartError with why the run failed."""
    if run["status"] == "succeeded":
        return
    reason = run.get("error") or f"The run was {run['status'].replace('_', ' ')}."
    raise StartError(f"{reason}\nOpen: {base_url}{run['pageUrl']}")


def print_outcome(console: Console, run: dict[str, Any], base_url: str) -> None:
    stats = run["stats"]
    counts = {name: stats[f"rows{name.capitalize()}"] for name in _COUNTS}
    parts = [f"{count:,} {name}" for name, count in counts.items() if count]
    size, seconds = in_bytes(stats["bytesFetched"]), stats["durationMs"] / 1000
    say(console, f"{stats['rowsFetched']:,} rows, {size}, {seconds:.1f} s: "
          f"{', '.join(parts) or 'no changes'}.")  # fmt: skip
    say(console, f"Open: {base_url}{run['pageUrl']}")


_RUNS = "/v1/admin/legacy-imports"
_PAUSES = frozenset({"awaiting_review", "approved"})
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
        raise StartError(f"File not found: {file}")
    return file.stat().st_size


async def list_runs(place: Place) -> None:
    async with await api_client(*place) as client:
        answer = await client.call("GET", f"{_RUNS}?limit={_SHOWN}")
        print_list(terminal(), answer["legacyImports"])


async def show_run(run_id: str, place: Place) -> None:
    """Follow a run, then print it."""
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
        why = "not found" if not ids else f"matches {len(ids)} workspaces"
        raise StartError(f"Workspace {named} {why} in this run. Use an id from `show`.")
    return str(ids[0])


async def _watch(client: ApiClient, run: dict[str, Any]) -> None:
    """Follow a run until it ends or needs a decision, and print its result.

    Exits with 1 when the run, its rollback or one of its workspaces has failed.
    """
    path = f"{_RUNS}/{run['id']}"
    if run["status"] not in _PAUSES:
        try:
            with ProgressBars(aside()) as bars:
                show = partial(_show, bars)
                await follow(
                    client, path, run["pageUrl"], show, lambda state: state["status"] in _PAUSES
                )
        except asyncio.CancelledError:
            raise GivenUpError(
                f"The run continues. To follow it: workspace legacy-import show {run['id']}"
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
            bars.show(key, name, "rolling back")
            continue
        progress = entry.get("progress", {})
        has_ended = entry["stage"] in _ENDED
        total = progress.get("total") or (1 if has_ended else None)
        done = total if has_ended else progress.get("done")
        bars.show(key, name, words_of(entry["stage"]), done, total)


def print_run(console: Console, run: dict[str, Any], base_url: str) -> None:
    """Print a run: its state, and of each workspace the counts, warnings and errors."""
    say(console, f"Legacy import {run['id']}: {words_of(run['status'])}.")
    for entry in run["workspaces"]:
        selection = "" if entry["selected"] else ", not selected"
        say(
            console,
            f"  {entry['sourceName']} ({entry['id']}): {words_of(entry['stage'])}{selection}",
        )
        say(console, f"    {_numbers(entry['counts']) or 'no rows'}")
        if "lastError" in entry:
            say(console, f"    failed: {entry['lastError']}")
        if entry["rollbackState"] != "none":
            say(console, f"    rollback: {entry['rollbackState']}")
        _listed(console, "error", entry["errors"])
        _listed(console, "warning", entry["warnings"])
    of_workspaces = {f"{entry['sourceName']}: {error}" for entry in run["workspaces"]
                     for error in entry["errors"]}  # fmt: skip
    _listed(console, "error", [entry for entry in run["errors"] if entry not in of_workspaces])
    _listed(console, "warning", run["warnings"])
    say(console, f"Open: {base_url}{run['pageUrl']}")
    for following in _next(run):
        say(console, f"Next: workspace legacy-import {following}")


def print_list(console: Console, runs: list[dict[str, Any]]) -> None:
    for run in runs:
        names = ", ".join(entry["sourceName"] for entry in run["workspaces"]) or "no workspaces yet"
        say(console, f"{run['id']}  {run['createdAt'][:16]}Z  {words_of(run['status'])}: {names}")
    if not runs:
        say(console, "No legacy imports. Start one: workspace legacy-import upload BUNDLE")


def _next(run: dict[str, Any]) -> Iterator[str]:
    """The next steps that can be taken now, as the ends of commands."""
    own, status = run["id"], run["status"]
    selected = [entry for entry in run["workspaces"] if entry["selected"]]
    blocked = [entry for entry in selected if entry["stage"] == "blocked"]
    if status == "awaiting_review":
        for entry in blocked[:_SHOWN]:
            yield f"select {own} {entry['id']} --skip, or fix the bundle and upload it again"
        if not blocked and selected:
            yield f"approve {own}"
    elif status == "approved":
        yield f"start {own}"
    for entry in selected[:_SHOWN]:
        if entry["stage"] == "failed" and entry["rollbackState"] == "none":
            yield f"retry {own} {entry['id']}"
        elif entry["rollbackState"] == "partial":
            yield f"rollback {own} --reason REASON --force, to also remove edited data"
            return
        elif status == "cancelled" and entry["lifecycleState"] == "hidden":
            yield f"release {own}, or rollback {own} --reason REASON"
            return
    if "rollbackUntil" in run and status.startswith("completed"):
        yield f"rollback {own} --reason REASON, to undo (until {run['rollbackUntil'][:10]})"


def words_of(name: str) -> str:
    return name.replace("_", " ")


def _numbers(counts: dict[str, int]) -> str:
    return ", ".join(f"{words_of(kind)}: {count:,}" for kind, count in counts.items())


def _listed(console: Console, what: str, notes: list[str]) -> None:
    for note in notes[:_SHOWN]:
        say(console, f"    {what}: {note}")
    if len(notes) > _SHOWN:
        say(console, f"    and {len(notes) - _SHOWN} more {what}s; open the run to see all")
