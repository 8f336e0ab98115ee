"""Fetching what a source holds, page by page, into files."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, TypeAlias

from activities.sources import requests
from activities.sources.reading import page_of
from activities.sources.reading_process import Inspect
from models.core.base import JsonObject
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules import options as tabular_options
from models.sources.tabular.rules.options import ErrorKind, SourceProblem
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError
from runtime.outbound.messages import OutboundResponse
from runtime.redaction import Redaction

_CHUNK = 1024 * 1024

MAX_PAGES = 1_000
"""Pages of a source; a config may limit them further, and then later pages are left out.

See interface.md#limits.
"""

NOT_MODIFIED = 304

FORMATS: Mapping[DataSourceKind, tabular_options.TableFormat] = {
    DataSourceKind.HTTP_CSV: tabular_options.TableFormat.CSV,
    DataSourceKind.HTTP_XLSX: tabular_options.TableFormat.XLSX,
    DataSourceKind.SQL: tabular_options.TableFormat.NDJSON,
}
"""The formats of sources whose kind says it."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The fetched part of a source: pages, bytes, rows, and the request of the `next` page.

    `charset` and `format` are as the source states; one that is `queried` is a SQLite database.
    `keys` are the key columns that the first page has, `json_path` is where it has its rows.
    `digest` is that of the rows of the last page; `mark` is the request of an earlier one, to
    notice a server that sends in circles. `stated` is the number of all rows that the first page
    states in its headers. `validators` ask, the next time, whether the source has changed; an
    `unchanged` one has not.
    """

    pages: int = 0
    bytes: int = 0
    rows: int = 0
    next: JsonObject | None = field(default_factory=dict)
    mark: JsonObject | None = None
    digest: str = ""
    keys: Sequence[str] = ()
    json_path: str | None = None
    charset: str | None = None
    format: tabular_options.TableFormat | None = None
    queried: bool = False
    stated: int | None = None
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False


Keep: TypeAlias = Callable[[Path, Fetched], Awaitable[None]]
"""Keeps a page that was fetched into a file, and how far the source has been fetched with it."""


@dataclass(frozen=True, slots=True)
class HttpSource:
    """A source to fetch: a config, the headers that authenticate, the columns that identify rows.

    `conditions` are the headers that ask for the first page only if it has changed. Each request
    may take `seconds`.
    """

    outbound: OutboundClient
    kind: DataSourceKind
    config: JsonObject
    auth: Mapping[str, str]
    keys: Sequence[str] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = requests.FETCH_SECONDS

    @property
    def paginated(self) -> bool:
        pagination = self.config.get("pagination") or {}
        return self.kind is DataSourceKind.HTTP_JSON and pagination.get("type", "none") != "none"

    @property
    def most(self) -> int:
        """The pages that the config wants at most."""
        limit: int = (self.config.get("pagination") or {}).get("maxPages", MAX_PAGES)
        return limit


async def fetch_pages(
    source: HttpSource, directory: Path, keep: Keep, start: Fetched | None = None
) -> Fetched:
    """Fetch the pages that `start` lacks. Raises SourceProblem."""
    state = start or Fetched()
    page = requests.first_page(source.config) if state.next == {} else state.next
    while page is not None and state.pages < source.most:
        path = directory / f"page-{state.pages}"
        response = await _fetch(source, state, page, path)
        if response.status == NOT_MODIFIED:
            return Fetched(next=None, unchanged=True)
        if requests.is_beyond(page, response.status):
            return replace(state, next=None)
        before, state = state, await _after(source, state, page, response, path)
        if state is before:
            return replace(state, next=None)
        page = state.next
        # Page by page, so that a retry does not fetch all of them again.
        await keep(path, state)
    if page is not None and state.pages >= MAX_PAGES:
        message = f"The source has more than {MAX_PAGES:,} pages. Use larger pages."
        raise SourceProblem(ErrorKind.TOO_LARGE, message)
    return state


async def fetch_first_page(source: HttpSource, path: Path) -> Fetched:
    """Fetch the first page into a file. Raises SourceProblem."""
    response = await _fetch(source, Fetched(), requests.first_page(source.config), path)
    return Fetched(
        charset=response.content_type.charset,
        format=await _format(source, response, path),
        next={} if source.paginated else None,
        stated=requests.stated_total(response.headers),
    )


async def _after(
    source: HttpSource, state: Fetched, page: JsonObject, response: OutboundResponse, path: Path
) -> Fetched:
    """The part of the source that has been fetched with this page.

    It is the same where a server answers with its last page to requests beyond the end.
    """
    following, content = None, requests.PageFound(0, None)
    if source.paginated:
        content = await _found(source, path, state.json_path)
        following = requests.next_page(source.config, page, response, content, state.rows)
        # A cursor tells by itself that it advances, even between pages of equal rows.
        is_told = source.config["pagination"]["type"] == "cursor"
        repeated = bool(content.rows) and content.digest == state.digest and not is_told
        if repeated and requests.may_be_beyond(page):
            return state
        _check_progress(state, page, following, repeated=repeated)
        _check_page(state, content)
    number = state.pages + 1
    return Fetched(
        pages=number,
        bytes=state.bytes + response.bytes_received,
        rows=state.rows + content.rows,
        next=following,
        # Comparing with the request of a power of two before finds every circle (R. P. Brent).
        mark=page if number & state.pages == 0 else state.mark,
        digest=content.digest,
        keys=content.columns if state.pages == 0 else state.keys,
        json_path=content.json_path if state.pages == 0 else state.json_path,
        charset=response.content_type.charset if state.pages == 0 else state.charset,
        format=await _format(source, response, path) if state.pages == 0 else state.format,
        stated=requests.stated_total(response.headers) if state.pages == 0 else state.stated,
        validators=_validators(response) if number == 1 and following is None else {},
    )


async def _format(
    source: HttpSource, response: OutboundResponse, path: Path
) -> tabular_options.TableFormat | None:
    """The format that the server states, else the one of the content, where the config has none."""
    if source.config.get("format", "json") is not None:
        return None
    with path.open("rb") as file:
        begin = await asyncio.to_thread(file.read, tabular_options.BEGINNING)
    return tabular_options.format_named(
        "", response.content_type.media_type
    ) or tabular_options.format_of_content(begin)


def _check_progress(
    state: Fetched, asked: JsonObject, following: JsonObject | None, *, repeated: bool
) -> None:
    """Refuse a server that gives the same page again and again."""
    if following is not None and following in (asked, state.mark):
        raise SourceProblem(
            ErrorKind.FETCH, "The server returned a page that was already read.", final=True
        )
    if repeated:
        names = ", ".join(asked.get("query", {"the link": ""}))
        message = f"The server returned the same page again. It seems to ignore {names}."
        raise SourceProblem(ErrorKind.FETCH, message, final=True)


def _check_page(state: Fetched, found: requests.PageFound) -> None:
    """Refuse more rows than a source may have, and a page that lacks a key column."""
    if state.rows + found.rows > tabular_options.MAX_ROWS:
        raise SourceProblem(
            ErrorKind.TOO_LARGE, f"The source has more than {tabular_options.MAX_ROWS:,} rows."
        )
    missing = [name for name in state.keys if name not in found.columns]
    if found.rows and missing:
        raise SourceProblem(
            ErrorKind.MAPPING,
            f"Page {state.pages + 1} lacks the key column {missing[0]}. Earlier pages have it.",
        )


async def _fetch(
    source: HttpSource, state: Fetched, page: JsonObject, path: Path
) -> OutboundResponse:
    conditions = source.conditions if state.pages == 0 else {}
    headers = {**source.auth, **conditions}
    query = page.get("query", {})
    request = requests.request_of(source.config, headers, source.seconds, page.get("url"), query)
    with path.open("wb") as file:
        try:
            response = await source.outbound.send(request, _sink(file))
        except OutboundError as error:
            raise requests.problem_of(error) from error
    if response.status == NOT_MODIFIED and conditions:
        return response
    if requests.is_beyond(page, response.status):
        return response
    requests.check_status(response)
    # Rows are shown to members who may not see the credentials.
    repeats = bool(source.auth) and await asyncio.to_thread(_repeats, path, source.auth)
    if repeats:
        raise SourceProblem(
            ErrorKind.AUTH,
            "The response contains the credentials of the request, so it was discarded.",
            final=True,
        )
    if state.bytes + response.bytes_received > requests.MAX_FETCH_BYTES:
        limit = requests.MAX_FETCH_BYTES // 1024**2
        raise SourceProblem(ErrorKind.TOO_LARGE, f"The source is larger than {limit} MiB.")
    return response


def _validators(response: OutboundResponse) -> Mapping[str, str]:
    """The conditions of the next request (RFC 9110, section 13)."""
    pairs = (("etag", "If-None-Match"), ("last-modified", "If-Modified-Since"))
    return {name: response.headers[known] for known, name in pairs if known in response.headers}


def _repeats(path: Path, auth: Mapping[str, str]) -> bool:
    """True when an answer holds what the request proved itself with."""
    redaction = Redaction(dict.fromkeys(_secrets(auth), ""))
    with path.open("rb") as file:
        return redaction.stands_in(iter(lambda: file.read(_CHUNK), b""))


def _secrets(auth: Mapping[str, str]) -> Iterator[str]:
    """The secrets of headers: their values, and the parts behind their scheme."""
    for value in auth.values():
        scheme, _, rest = value.partition(" ")
        yield value
        yield rest
        if scheme == "Basic":
            pair = base64.b64decode(rest).decode("utf-8", "replace")
            yield pair
            yield pair.partition(":")[2]


def _sink(file: BinaryIO) -> Callable[[bytes], Awaitable[None]]:
    async def write(chunk: bytes) -> None:
        # Into the page cache, a MiB at most: a thread would cost more than it spares.
        file.write(chunk)

    return write


def is_blank(path: Path) -> bool:
    """True when a file holds nothing but white space."""
    with path.open("rb") as file:
        return not any(chunk.strip() for chunk in iter(lambda: file.read(_CHUNK), b""))


async def _found(source: HttpSource, path: Path, usual_path: str | None) -> requests.PageFound:
    """The facts a page says of itself, read by a process of its own; a blank one has no rows.

    Its rows are where the first page had them.
    """
    if await asyncio.to_thread(is_blank, path):
        return requests.PageFound(0, None)
    options = tabular_options.read_options(
        source.config, tabular_options.TableFormat(source.config.get("format", "json"))
    )
    cursor_path = (source.config.get("pagination") or {}).get("cursorPath")
    options = replace(options, usual_path=usual_path)
    return requests.PageFound(*await page_of(path, options, Inspect(cursor_path, source.keys)))
