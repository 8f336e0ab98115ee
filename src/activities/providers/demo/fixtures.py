"""The resources of the demo provider: where each stands, what it is, what it holds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from activities.providers.demo.contents import (
    CUSTOMERS,
    EVENTS,
    GOOGLE_FORM,
    JSON_FORM,
    PRICES,
    RATES,
    TRAVEL,
    WELCOME,
    csv_bytes,
    image_bytes,
    json_bytes,
    workbook_bytes,
)
from models.sources.external_resources.rules import google_forms, json_forms
from models.sources.external_resources.rules.resources import Capability, ReadFormat
from models.sources.external_resources.rules.resources import ResourceSurfaceKind as Kind

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
GENERATED = "generated"
"""The folder of the generated files."""

_FOLDER = (Capability.BROWSE, Capability.MOUNT, Capability.IMPORT, Capability.WATCH)
_CONTENT = (Capability.READ, Capability.MOUNT, Capability.IMPORT)
_FORM = (Capability.READ, Capability.MOUNT, Capability.IMPORT_FORM)
_SHOWN = (Capability.READ, Capability.MOUNT)


@dataclass(frozen=True, slots=True)
class Fixture:
    """One resource. `holds` gives its content in an edition; without a `format` it is a link.

    One that is `gone` is still listed, as providers do for a while.
    """

    id: str
    name: str
    type: str
    kind: Kind
    capabilities: tuple[Capability, ...]
    parent: str | None = None
    mime_type: str | None = None
    holds: Callable[[int], bytes] | None = None
    format: ReadFormat | None = None
    gone: bool = False


def _folder(id_: str, name: str, parent: str | None = None) -> Fixture:
    return Fixture(id_, name, "folder", Kind.FOLDER, _FOLDER, parent)


def _file(number: int) -> Fixture:
    """A generated file."""
    name = f"File {number:06}"
    return Fixture(
        f"generated-{number}",
        f"{name}.txt",
        "file",
        Kind.FILE,
        _CONTENT,
        GENERATED,
        "text/plain",
        lambda edition: f"{name}, edition {edition}\n".encode(),
        ReadFormat.TEXT,
    )


_ALL = (
    _folder("handbook", "Handbook"),
    Fixture(
        "welcome",
        "Welcome.md",
        "document",
        Kind.DOCUMENT,
        _CONTENT,
        "handbook",
        "text/markdown",
        lambda edition: WELCOME.format(edition=edition).encode(),
        ReadFormat.MARKDOWN,
    ),
    Fixture(
        "travel",
        "Travel policy",
        "document",
        Kind.DOCUMENT,
        _CONTENT,
        "handbook",
        "text/html",
        lambda edition: TRAVEL.format(edition=edition).encode(),
        ReadFormat.HTML,
    ),
    _folder("archive", "Archive", "handbook"),
    Fixture(
        "old-notes",
        "Old notes.txt",
        "file",
        Kind.FILE,
        _CONTENT,
        "archive",
        "text/plain",
        lambda _: b"",
        ReadFormat.TEXT,
        gone=True,
    ),
    # It lists itself, as links and shortcuts of providers do.
    _folder("circle", "Circle", "archive"),
    _folder("finance", "Finance"),
    Fixture(
        "prices",
        "Prices.csv",
        "table",
        Kind.SPREADSHEET,
        _CONTENT,
        "finance",
        "text/csv",
        lambda edition: csv_bytes(PRICES, edition),
        ReadFormat.CSV,
    ),
    Fixture(
        "budget",
        "Budget.xlsx",
        "workbook",
        Kind.SPREADSHEET,
        _CONTENT,
        "finance",
        XLSX,
        workbook_bytes,
    ),
    Fixture(
        "rates",
        "Rates",
        "document",
        Kind.GENERIC,
        _CONTENT,
        "finance",
        "application/json",
        lambda _: json_bytes(RATES),
        ReadFormat.JSON,
    ),
    Fixture(
        "customers",
        "Customers",
        "table",
        Kind.DATABASE,
        _CONTENT,
        None,
        "text/csv",
        lambda edition: csv_bytes(CUSTOMERS, edition),
        ReadFormat.CSV,
    ),
    Fixture(
        "survey",
        "Team survey",
        "form",
        Kind.FORM,
        _FORM,
        None,
        google_forms.MIME_TYPE,
        lambda _: json_bytes(GOOGLE_FORM),
        ReadFormat.JSON,
    ),
    Fixture(
        "feedback",
        "Feedback",
        "form",
        Kind.FORM,
        _FORM,
        None,
        json_forms.MIME_TYPE,
        lambda _: json_bytes(JSON_FORM),
        ReadFormat.JSON,
    ),
    Fixture(
        "calendar",
        "Team calendar",
        "calendar",
        Kind.CALENDAR,
        _SHOWN,
        None,
        "application/json",
        lambda _: json_bytes(EVENTS),
        ReadFormat.JSON,
    ),
    Fixture(
        "logo", "Logo.png", "file", Kind.FILE, _CONTENT, None, "image/png", lambda _: image_bytes()
    ),
    # Names of files may hold anything.
    Fixture(
        "hostile",
        "../../etc/\u202egnp.exe",
        "file",
        Kind.FILE,
        _CONTENT,
        None,
        "application/octet-stream",
        lambda _: b"nothing\n",
    ),
)
FIXTURES: Mapping[str, Fixture] = MappingProxyType({one.id: one for one in _ALL})
_GENERATED = _folder(GENERATED, "Generated files")


def fixture(external_id: str, generated: int) -> Fixture | None:
    """A resource by its id, when so many files are generated."""
    if external_id in FIXTURES:
        return FIXTURES[external_id]
    if not generated:
        return None
    if external_id == GENERATED:
        return _GENERATED
    stem, _, number = external_id.rpartition("-")
    known = stem == GENERATED and number.isdecimal() and number.isascii() and len(number) < 9
    return (
        _file(int(number))
        if known and str(int(number)) == number and 0 < int(number) <= generated
        else None
    )


def fixtures(parent: str | None, generated: int) -> Iterator[Fixture]:
    """The fixtures below a folder, or at the top."""
    if parent == GENERATED:
        yield from (_file(number) for number in range(1, generated + 1))
        return
    yield from (one for one in _ALL if one.parent == parent)
    if parent == "circle":
        yield FIXTURES["circle"]
    if parent is None and generated:
        yield _GENERATED


def everything(generated: int) -> Iterator[Fixture]:
    """All resources, for searches."""
    yield from _ALL
    if generated:
        yield _GENERATED
        yield from fixtures(GENERATED, generated)
