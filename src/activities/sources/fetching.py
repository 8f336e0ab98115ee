"""Fetching what a source holds, page by page, into files."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeAlias

from activities.sources.pages import PageFound, first_page, next_page
from activities.sources.reading import page_of
from activities.sources.requests import MAX_FETCH_BYTES, check_status, problem_of, request_of
from models.core.base import JsonObject
from models.sources.data_sources.rules.configs import DataSourceKind
from models.sources.tabular.rules.configs import read_options
from models.sources.tabular.rules.options import TableFormat
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError
from runtime.outbound.messages import OutboundResponse

MAX_PAGES = 1_000

FORMATS: Mapping[DataSourceKind, TableFormat] = {
    DataSourceKind.HTTP_CSV: TableFormat.CSV,
    DataSourceKind.HTTP_XLSX: TableFormat.XLSX,
}
"""The formats of sources whose kind says it."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """How far a source has been fetched: so many pages and bytes, and what `next` asks for.

    `validators` are the request headers that ask whether it has changed since.
    """

    pages: int = 0
    bytes: int = 0
    next: JsonObject | None = field(default_factory=dict)
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False


Keep: TypeAlias = Callable[[Path, Fetched], Awaitable[None]]
"""Keeps a page that was fetched into a file, and how far the source has been fetched with it."""


async def fetch_pages(
    outbound: OutboundClient,
    kind: DataSourceKind,
    config: JsonObject,
    auth: Mapping[str, str],
    directory: Path,
    keep: Keep,
    done: Fetched | None = None,
    most: int = MAX_PAGES,
) -> None:
    """Fetch the pages that are not `done` yet, at most so many. Raises SourceProblem."""
    state = done or Fetched()
    asked = first_page(config) if state.next == {} else state.next
    pagination = config.get("pagination") or {}
    limit = min(most, pagination.get("maxPages", MAX_PAGES))
    while asked is not None and state.pages < limit:
        path = directory / f"page-{state.pages}"
        headers = {**auth, **(state.validators if state.pages == 0 else {})}
        response = await _fetch(outbound, config, headers, asked, path, state.bytes)
        if response.status == 304:
            await keep(path, Fetched(next=None, unchanged=True, validators=state.validators))
            return
        check_status(response)
        following = None
        if kind is DataSourceKind.HTTP_JSON and pagination.get("type", "none") != "none":
            found = await _found(config, path)
            following = next_page(config, asked, response, found)
        state = Fetched(
            pages=state.pages + 1,
            bytes=state.bytes + response.bytes_received,
            next=following,
            validators=_validators(response) if state.pages == 0 and following is None else {},
        )
        await keep(path, state)
        asked = following


async def _fetch(
    outbound: OutboundClient,
    config: JsonObject,
    headers: Mapping[str, str],
    asked: JsonObject,
    path: Path,
    before: int,
) -> OutboundResponse:
    request = request_of(config, headers, url=asked.get("url"), **asked.get("query", {}))
    with path.open("wb") as file:
        try:
            response = await outbound.send(request, _sink(file))
        except OutboundError as error:
            raise problem_of(error) from error
    if before + response.bytes_received > MAX_FETCH_BYTES:
        limit = MAX_FETCH_BYTES // 1024**2
        raise SourceProblem(ErrorKind.TOO_LARGE, f"The source holds more than {limit} MiB.")
    return response


def _sink(file: BinaryIO) -> Callable[[bytes], Awaitable[None]]:
    async def write(chunk: bytes) -> None:
        # Into the page cache, a MiB at most: a thread would cost more than it spares.
        file.write(chunk)

    return write


async def _found(config: JsonObject, path: Path) -> PageFound:
    """What a page says of itself, read by a process of its own."""
    options = read_options(config, TableFormat(config.get("format", "json")))
    cursor_path = (config.get("pagination") or {}).get("cursorPath")
    rows, cursor = await page_of(path, options, cursor_path)
    return PageFound(rows, cursor)


def _validators(response: OutboundResponse) -> Mapping[str, str]:
    """The conditions of the next request (RFC 9110, section 13)."""
    pairs = (("etag", "If-None-Match"), ("last-modified", "If-Modified-Since"))
    return {name: response.headers[known] for known, name in pairs if known in response.headers}
