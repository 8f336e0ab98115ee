"""Sending a file to the platform, a piece at a time."""

from collections.abc import AsyncIterator
from pathlib import Path

from cli.api_client import ApiClient
from cli.rows.display import Display, in_bytes
from cli.supervisor.errors import StartError
from models.sources.tabular.rules.options import MAX_FILE_BYTES, TableFormat, format_named

_PIECE = 1 << 18


def size_of_spreadsheet(file: Path) -> int:
    """The bytes of a file. Raises StartError for what cannot be imported, before it is sent."""
    if file.is_dir():
        raise StartError(f"{file} is a directory: name one file.")
    try:
        with file.open("rb"):
            size = file.stat().st_size
    except FileNotFoundError:
        raise StartError(f"There is no file {file}.") from None
    except OSError as error:
        raise StartError(f"{file} cannot be read: {error.strerror}.") from None
    if format_named(file.name) is None:
        known = ", ".join(f".{name}" for name in TableFormat)
        raise StartError(
            f"The name of {file} does not tell its format. It should end with {known}."
        )
    if size == 0:
        raise StartError(f"{file} is empty.")
    if size > MAX_FILE_BYTES:
        limit = in_bytes(MAX_FILE_BYTES)
        raise StartError(f"{file} has {in_bytes(size)}; a spreadsheet has {limit} at most.")
    return size


async def pieces_of(file: Path, size: int, display: Display) -> AsyncIterator[bytes]:
    """A file, a piece at a time; the display shows how much of it was sent."""
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
