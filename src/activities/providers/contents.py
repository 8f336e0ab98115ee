"""Listings of providers, and reading the content of a resource by its media type.

A listing has paths below a place, pages of a whole listing, answers in XML. Rows become CSV."""

import asyncio
import csv
import io
import mimetypes
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from heapq import heappush, heappushpop
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from xml.parsers import expat

from activities.providers import adapter
from activities.providers.adapter import Listing, ProblemKind, ProviderProblem, ResourcePage
from activities.providers.web import Web, shown_text
from models.sources.external_resources.rules import resources as external_resources
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.external_resources.rules.resources import ResourceSurfaceKind as Kind
from runtime import strict_json


def checked_path(external_id: str | None) -> str:
    """A relative path without its last slash; empty for the place itself.

    Raises ProviderProblem for one that leads elsewhere, or is spelled so that it might.
    """
    path = (external_id or "").removesuffix("/")
    if not path:
        return ""
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\0" in path or "\\" in path:
        raise ProviderProblem(
            ProblemKind.INVALID, "The id of the resource is not a path below the root."
        )
    return path


def parent_of(path: str) -> str | None:
    """The path of the folder that something is in; None for the place itself."""
    return path.rpartition("/")[0] or None


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def quoted(path: str) -> str:
    """A path as it is written in a URL (RFC 3986, 3.3)."""
    return quote(path, safe="/~")


PAGES = 50
"""Pages that are cut from a listing at once, so that the next page does not list it again."""

LISTING_SECONDS = 100.0
"""Seconds of a listing as a whole: a folder of 100,000 entries is slow to read for some servers."""

T = TypeVar("T")


class _Latest(Generic[T]):
    """A name by which the least of a heap is the last of those kept."""

    __slots__ = ("found", "name")

    def __init__(self, name: str, found: T) -> None:
        self.name = name
        self.found = found

    def __lt__(self, other: "_Latest[T]") -> bool:
        return self.name > other.name


class FirstNames(Generic[T]):
    """The first names after the cursor of a listing, however many there are; it keeps no others."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._most = listing.limit * PAGES
        self._kept: list[_Latest[T]] = []

    def take(self, name: str, external_type: str, child: T) -> None:
        """See one child; in any order."""
        listing = self._listing
        if listing.external_type not in (None, external_type):
            return
        if listing.cursor is not None and name <= listing.cursor:
            return
        one = _Latest(name, child)
        if len(self._kept) <= self._most:
            heappush(self._kept, one)
        else:
            heappushpop(self._kept, one)

    def page(self, resource_of: Callable[[str, T], ProviderResource | None]) -> ResourcePage:
        """The requested page and the next ones; a cursor is the last name of its page."""
        names, limit = sorted(self._kept, reverse=True), self._listing.limit
        pages: list[ResourcePage] = []
        for start in range(0, min(len(names), self._most), limit):
            part = names[start : start + limit]
            resources = [
                one for each in part if (one := resource_of(each.name, each.found)) is not None
            ]
            more = len(names) > start + limit
            pages.append(ResourcePage(resources, part[-1].name if more else None))
        first = pages[0] if pages else ResourcePage([])
        return ResourcePage(first.resources, first.cursor, pages[1:])


MAX_TEXT = 64 * 1024
"""Characters of one element."""
MAX_TOKEN = 256 * 1024
"""Bytes in which no element or text begins or ends: an endless tag is parsed again with each piece
that arrives."""
MAX_DEPTH = 32
MAX_PARTS = 200
"""Elements in one record."""
_PIECE = 64 * 1024

Record = list[tuple[str, str]]
"""The local names of the elements in a record, in the order they end, and their texts."""


class XmlRecords:
    """Gives each element of a name in `records` to `take`, and keeps nothing of it.

    A document with a DTD is refused: it could name entities that grow without end, or files.
    """

    def __init__(self, records: frozenset[str], take: Callable[[str, Record], None]) -> None:
        self._records = records
        self._take = take
        self._record: Record | None = None
        self._within = 0
        self._depth = 0
        self._text: list[str] = []
        self._length = 0
        self._unread = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, chunk: bytes, *, last: bool = False) -> None:
        """Read on. Raises ProviderProblem."""
        for start in range(0, len(chunk), _PIECE):
            self._parse(chunk[start : start + _PIECE])
        if last:
            self._parse(b"", last=True)

    def _parse(self, piece: bytes, *, last: bool = False) -> None:
        self._unread += len(piece)
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError:
            raise _malformed() from None
        if self._unread > MAX_TOKEN:
            raise _malformed()

    def _start(self, name: str, _attributes: object) -> None:
        self._depth += 1
        self._unread = 0
        if self._depth > MAX_DEPTH:
            raise _malformed()
        self._text.clear()
        self._length = 0
        if self._record is None and _local(name) in self._records:
            self._record, self._within = [], self._depth

    def _end(self, name: str) -> None:
        self._unread = 0
        if self._record is not None:
            if self._depth == self._within:
                self._take(_local(name), self._record)
                self._record = None
            elif len(self._record) < MAX_PARTS:
                self._record.append((_local(name), "".join(self._text).strip()))
        else:
            self._take(_local(name), [("", "".join(self._text).strip())])
        self._text.clear()
        self._length = 0
        self._depth -= 1

    def _characters(self, text: str) -> None:
        self._length += len(text)
        self._unread = 0
        if self._length > MAX_TEXT:
            raise _malformed()
        self._text.append(text)

    def _doctype(self, *_: object) -> None:
        raise _malformed()


def first_text(record: Record, name: str) -> str | None:
    """The text of the first element of a name that has one."""
    return next((text for one, text in record if one == name and text), None)


def has_element(record: Record, name: str) -> bool:
    return any(one == name for one, _ in record)


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _malformed() -> ProviderProblem:
    return ProviderProblem(ProblemKind.MALFORMED, "The response of the provider is not valid XML.")


CSV, HTML, JSON, MARKDOWN = "text/csv", "text/html", "application/json", "text/markdown"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
BYTES = "application/octet-stream"

FOLDER = (
    external_resources.Capability.BROWSE,
    external_resources.Capability.MOUNT,
    external_resources.Capability.IMPORT,
)
CONTENT = (
    external_resources.Capability.READ,
    external_resources.Capability.MOUNT,
    external_resources.Capability.IMPORT,
)
FORM = (
    external_resources.Capability.READ,
    external_resources.Capability.MOUNT,
    external_resources.Capability.IMPORT_FORM,
)
SHOWN = (external_resources.Capability.MOUNT,)

_FORMATS = {
    CSV: external_resources.ReadFormat.CSV,
    HTML: external_resources.ReadFormat.HTML,
    "application/xhtml+xml": external_resources.ReadFormat.HTML,
    MARKDOWN: external_resources.ReadFormat.MARKDOWN,
    "text/x-markdown": external_resources.ReadFormat.MARKDOWN,
}
_KINDS = {
    CSV: Kind.SPREADSHEET,
    "text/tab-separated-values": Kind.SPREADSHEET,
    XLSX: Kind.SPREADSHEET,
    "application/vnd.ms-excel": Kind.SPREADSHEET,
    "application/vnd.oasis.opendocument.spreadsheet": Kind.SPREADSHEET,
    HTML: Kind.DOCUMENT,
    MARKDOWN: Kind.DOCUMENT,
    "text/x-markdown": Kind.DOCUMENT,
}
_SUFFIXES = {
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".csv": CSV,
    ".xlsx": XLSX,
}


def media_type(name: str, declared: str | None = None) -> str:
    """The media type of a file: the provider's, else by its name. Lower case, no parameters."""
    for suffix, known in _SUFFIXES.items():
        if name.lower().endswith(suffix):
            return known
    media = (declared or "").partition(";")[0].strip().lower()
    if media and media != BYTES:
        return media
    return mimetypes.guess_type(name, strict=True)[0] or media or BYTES


def kind_of(mime_type: str) -> Kind:
    return _KINDS.get(mime_type, Kind.FILE)


def capabilities_of(kind: Kind) -> list[str]:
    """The capabilities of a resource of a kind, by the names of the wire."""
    able = CONTENT
    if kind in {Kind.FOLDER, Kind.REPOSITORY}:
        able = FOLDER
    elif kind is Kind.FORM:
        able = FORM
    return [one.value for one in able]


def is_text(mime_type: str) -> bool:
    """True when a content can be shown."""
    return (
        mime_type.startswith("text/")
        or mime_type in {JSON, "application/xml", "application/xhtml+xml", "application/yaml"}
        or mime_type.endswith(("+json", "+xml"))
    )


def content_of(
    resource: external_resources.ProviderResource, mime_type: str, text: str
) -> adapter.ReadContent:
    form, content = external_resources.ReadFormat.TEXT, shown_text(text)
    value: Any = content
    if mime_type == JSON or mime_type.endswith("+json"):
        try:
            value, form = (
                strict_json.parse(content.encode()),
                external_resources.ReadFormat.JSON,
            )
        except strict_json.StrictJsonError:
            value = content
    else:
        form = _FORMATS.get(mime_type, external_resources.ReadFormat.TEXT)
    return adapter.ReadContent(form, value, resource.revision, fallback_url=resource.canonical_url)


async def fetch_file(
    web: Web,
    resource: external_resources.ProviderResource,
    url: str,
    path: Path,
    conditions: Mapping[str, str],
) -> adapter.Downloaded:
    """Write a file that has an ETag, unless it is the one known. Raises ProviderProblem."""
    asked = {"If-None-Match": conditions["etag"]} if "etag" in conditions else {}
    answer = await web.download(url, path, headers=asked)
    etag, unchanged = answer.headers.get("etag"), answer.status == 304
    validators = dict(conditions) if unchanged else {"etag": etag} if etag else {}
    declared = answer.content_type.media_type or resource.mime_type
    mime_type = media_type(resource.name, declared)
    return adapter.Downloaded(resource.name, mime_type, validators, unchanged)


def link_to(resource: external_resources.ProviderResource) -> adapter.ReadContent:
    """A resource whose content is not shown: where it is."""
    address = resource.canonical_url
    return adapter.ReadContent(
        external_resources.ReadFormat.LINK, None, resource.revision, fallback_url=address
    )


Row = Mapping[str, str]
"""The cells of a row, by the names of their columns; empty ones are left out."""


async def csv_text(columns: Sequence[str], pages: AsyncIterator[Sequence[Row]]) -> str:
    """Rows as they are shown. Raises ProviderProblem beyond MAX_READ_BYTES."""
    parts = [part async for part in _parts(columns, pages, adapter.MAX_READ_BYTES)]
    return b"".join(parts).decode()


async def write_csv(
    path: Path, columns: Sequence[str], pages: AsyncIterator[Sequence[Row]]
) -> None:
    """Rows in a file. Raises ProviderProblem beyond MAX_DOWNLOAD_BYTES."""
    with await asyncio.to_thread(path.open, "wb") as file:
        async for part in _parts(columns, pages, adapter.MAX_DOWNLOAD_BYTES):
            await asyncio.to_thread(file.write, part)


async def _parts(
    columns: Sequence[str], pages: AsyncIterator[Sequence[Row]], limit: int
) -> AsyncIterator[bytes]:
    written = 0
    yield _lines([columns])
    async for page in pages:
        part = _lines([[row.get(name, "") for name in columns] for row in page])
        written += len(part)
        if written > limit:
            message = f"The table is larger than {limit} bytes."
            raise adapter.ProviderProblem(adapter.ProblemKind.TOO_LARGE, message)
        yield part


def _lines(rows: Sequence[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([[shown_text(cell) for cell in row] for row in rows])
    return out.getvalue().encode("utf-8", "replace")
