"""Uploads of files, a piece at a time, and the outcome of a run that imported rows."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.api_client import ApiClient
from cli.client.following import Display, in_bytes
from cli.console import StartError, say
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
