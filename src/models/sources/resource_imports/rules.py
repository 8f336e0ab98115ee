"""The native kinds that resources are imported as, and the outcomes of an import. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from models.content.items.rules import ItemKind
from models.sources.external_resources.rules import resources as external_resources
from models.sources.tabular.rules.options import format_named


class ImportedKind(StrEnum):
    FOLDER = "folder"
    PAGE = "page"
    FILE = "file"
    DATABASE = "database"

    @property
    def item_kind(self) -> ItemKind:
        return ItemKind(self.value)


MAX_ENTRIES = 10_000
"""Resources below an imported folder; what is beyond is left out, and the import says so."""
MAX_SKIPPED = 100
"""Skipped resources that are named."""

_BOOK_NAME = 120
"""Characters of a workbook's name in that of a sheet's database."""

MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown"})
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
PAGE_TYPES = MARKDOWN_TYPES | HTML_TYPES | {"text/plain"}


def imported_kind(resource: external_resources.ProviderResource) -> ImportedKind | None:
    """The kind a resource becomes; None for one that cannot be imported."""
    if external_resources.Capability.IMPORT not in resource.capabilities:
        return None
    mime_type = essence(resource.mime_type)
    match resource.surface_kind:
        case (
            external_resources.ResourceSurfaceKind.FOLDER
            | external_resources.ResourceSurfaceKind.REPOSITORY
        ):
            return (
                ImportedKind.FOLDER
                if external_resources.Capability.BROWSE in resource.capabilities
                else None
            )
        case external_resources.ResourceSurfaceKind.DOCUMENT:
            return ImportedKind.FILE if _is_opaque(mime_type) else ImportedKind.PAGE
        case (
            external_resources.ResourceSurfaceKind.SPREADSHEET
            | external_resources.ResourceSurfaceKind.DATABASE
        ):
            return ImportedKind.DATABASE
        case external_resources.ResourceSurfaceKind.FILE:
            return ImportedKind.FILE
        case external_resources.ResourceSurfaceKind.GENERIC if mime_type in PAGE_TYPES:
            return ImportedKind.PAGE
        case external_resources.ResourceSurfaceKind.GENERIC if mime_type and format_named(
            "", mime_type
        ):
            return ImportedKind.DATABASE if mime_type.startswith("text/") else ImportedKind.FILE
        case external_resources.ResourceSurfaceKind.GENERIC if mime_type:
            return ImportedKind.FILE
        case _:
            return None


def sheet_label(book: str, sheet: str) -> str:
    """The name of the database of a sheet; both names stay to be seen."""
    return external_resources.shown_name(f"{book[:_BOOK_NAME]} · {sheet}")


def can_name_sheet(name: str) -> bool:
    """True when a sheet can be asked for by its name."""
    return (
        0 < len(name) <= external_resources.MAX_NAME
        and external_resources.identifier_problem(name) is None
    )


def essence(mime_type: str | None) -> str:
    """A media type without its parameters, in lower case."""
    return (mime_type or "").partition(";")[0].strip().lower()


def _is_opaque(mime_type: str) -> bool:
    """A document that is no text: it is kept as the file that it is."""
    if mime_type.startswith(("image/", "audio/", "video/", "font/")):
        return True
    office = ("application/vnd.openxmlformats", "application/vnd.oasis", "application/vnd.ms-")
    return mime_type.startswith(office) or mime_type in {
        "application/pdf",
        "application/zip",
        "application/msword",
        "application/octet-stream",
    }


class Outcome(StrEnum):
    """The outcome of an import for one resource."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    """People changed what it was imported into, moved it out of reach, or deleted it."""


@dataclass(frozen=True, slots=True)
class PartCounts:
    """Counts of the rows of a table, or of the blocks of a page, by what became of them.

    `kept` are rows or blocks of people, where the source now says otherwise.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: int = 0

    @property
    def outcome(self) -> Outcome:
        """The outcome for the whole."""
        if self.created or self.updated or self.removed:
            return Outcome.UPDATED
        return Outcome.KEPT if self.kept else Outcome.UNCHANGED
