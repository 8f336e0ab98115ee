"""The contents of an archive, as a reader gives them: entry by entry, its bytes piece by piece."""

from collections.abc import Iterator
from dataclasses import dataclass

from models.workspace.bundles.errors import BundleError, Fault
from models.workspace.bundles.rules import FREE_BYTES, MAX_RATIO, MAX_UNPACKED

PIECE = 1024 * 1024
"""Bytes read at once."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive; its pieces must be read before the next entry."""

    name: str
    pieces: Iterator[bytes]


class Allowance:
    """The bytes that may still come out of an archive of a size."""

    def __init__(self, packed: int) -> None:
        self._left = min(MAX_UNPACKED, max(FREE_BYTES, packed * MAX_RATIO))

    def take(self, size: int) -> None:
        """Raises `BundleError` when an archive unpacks to far more than it is."""
        self._left -= size
        if self._left < 0:
            raise BundleError(Fault.BOMB, "The bundle unpacks to far more than a bundle can be.")
