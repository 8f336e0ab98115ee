"""Pages of a listing that its provider gives as a whole."""

from heapq import heappush, heappushpop
from typing import Generic, TypeVar

from activities.providers.adapter import Listing

T = TypeVar("T")


class _Latest(Generic[T]):
    """A name by which the least of a heap is the last of a page."""

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
        self._kept: list[_Latest[T]] = []

    def take(self, name: str, external_type: str, found: T) -> None:
        """See one child; in any order."""
        listing = self._listing
        if listing.external_type not in (None, external_type):
            return
        if listing.cursor is not None and name <= listing.cursor:
            return
        one = _Latest(name, found)
        if len(self._kept) <= listing.limit:
            heappush(self._kept, one)
        else:
            heappushpop(self._kept, one)

    @property
    def items(self) -> list[tuple[str, T]]:
        """The page: names and what they stand for."""
        return [(one.name, one.found) for one in self._page()]

    @property
    def cursor(self) -> str | None:
        """The last name of the page, when others follow."""
        more = len(self._kept) > self._listing.limit
        return self._page()[-1].name if more else None

    def _page(self) -> list[_Latest[T]]:
        return sorted(self._kept, reverse=True)[: self._listing.limit]
