"""Faults that make a bundle unreadable."""

from enum import StrEnum

from runtime.errors import ConflictError


class Fault(StrEnum):
    """The reason why a bundle is refused; each is a blocking error of an import."""

    NOT_AN_ARCHIVE = "not_an_archive"
    UNSAFE_NAME = "unsafe_name"
    DUPLICATE_NAME = "duplicate_name"
    NOT_A_FILE = "not_a_file"
    ENCRYPTED = "encrypted"
    TOO_LARGE = "too_large"
    BOMB = "bomb"
    CHECKSUM = "checksum"
    CHANGED = "changed"
    COUNTS = "counts"
    MANIFEST = "manifest"
    MISSING_FILE = "missing_file"
    UNLISTED_FILE = "unlisted_file"
    LINE = "line"
    ROWS = "rows"


class BundleError(ConflictError):
    """A bundle that cannot be imported; `fault` names the rule it breaks."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault
