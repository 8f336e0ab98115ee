"""Pages of a listing that its provider gives as a whole."""

from collections.abc import Callable
from heapq import heappush, heappushpop
from typing import Generic, TypeVar

from activities.providers.adapter import Listing, ResourcePage
from models.sources.external_resources.rules.resources import ProviderResource

PAGES = 50
"""Pages that are cut from a listing at once: whoever goes on does not list all of it again."""
SECONDS = 100.0
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
        """The page that was asked for with those ahead; a cursor is the last name of its page."""
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
