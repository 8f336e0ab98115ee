"""Listings of providers: paths below a place, pages of a whole listing, answers in XML."""

from collections.abc import Callable
from heapq import heappush, heappushpop
from typing import Generic, TypeVar
from urllib.parse import quote
from xml.parsers import expat

from activities.providers.adapter import Listing, ProblemKind, ProviderProblem, ResourcePage
from models.sources.external_resources.rules.resources import ProviderResource


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
