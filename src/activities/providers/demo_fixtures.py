"""The resources of the demo provider: their places, kinds and contents."""

import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import pack
from types import MappingProxyType
from typing import Any

from models.sources.external_resources.rules import forms
from models.sources.external_resources.rules.resources import Capability, ReadFormat
from models.sources.external_resources.rules.resources import ResourceSurfaceKind as Kind

WELCOME = """# Welcome

This page lives at the **demo provider**. Edition {edition}.

## What to try

1. Browse the connection.
2. Mount a folder, and look at it in the tree.
3. Import this page, change it, and import it again.

- [x] Connect
- [ ] Import

> Nothing here leaves your machine.

```sql
SELECT 'kept as it is';
```
"""

TRAVEL = """<!doctype html><html><head><title>Travel policy</title><script>alert(1)</script></head>
<body><h1>Travel policy</h1><p>Edition {edition}. Take the <strong>train</strong> where it takes
less than <em>six hours</em>, see <a href="https://example.com/trains">the timetable</a>.</p>
<ul><li>Second class</li><li>No flights below 500&nbsp;km</li></ul>
<table><tr><th>City</th><th>Hotel</th></tr><tr><td>Berlin</td><td>120</td></tr></table>
<p><a href="javascript:alert(1)">Not a link</a></p></body></html>
"""

PRICES = [
    ["Article", "Price", "In stock", "Since"],
    ["Apple", "1.20", "true", "2025-01-02"],
    ["Pear", "1.45", "true", "2025-02-03"],
    ["Plum", "2.10", "false", "2025-03-04"],
]

CUSTOMERS = [
    ["Name", "City", "Orders"],
    ["Ada Park", "Berlin", "12"],
    ["Ben Okoro", "Lagos", "7"],
    ["Chen Wei", "Singapore", "31"],
]

RATES = {"base": "EUR", "rates": {"USD": 1.08, "GBP": 0.85}}
EVENTS = [{"title": "All hands", "start": "2026-01-12T09:00:00Z", "minutes": 45}]

GOOGLE_FORM: dict[str, Any] = {
    "formId": "demo-survey",
    "info": {
        "title": "Team survey",
        "documentTitle": "survey",
        "description": "Five minutes, once a quarter.",
    },
    "items": [
        {
            "itemId": "1",
            "title": "Your name",
            "questionItem": {"question": {"questionId": "a", "required": True, "textQuestion": {}}},
        },
        {
            "itemId": "2",
            "title": "Which days are you in the office?",
            "questionItem": {
                "question": {
                    "questionId": "b",
                    "choiceQuestion": {
                        "type": "CHECKBOX",
                        "options": [{"value": "Monday"}, {"value": "Wednesday"}],
                    },
                }
            },
        },
        {
            "itemId": "3",
            "title": "How satisfied are you?",
            "questionItem": {
                "question": {"questionId": "c", "scaleQuestion": {"low": 1, "high": 5}}
            },
        },
        {"itemId": "4", "title": "About your work", "pageBreakItem": {}},
        {
            "itemId": "5",
            "title": "What should change?",
            "questionItem": {"question": {"questionId": "d", "textQuestion": {"paragraph": True}}},
        },
        {
            "itemId": "6",
            "title": "Attach a photo of your desk",
            "questionItem": {
                "question": {"questionId": "e", "fileUploadQuestion": {"maxFiles": 1}}
            },
        },
    ],
}

JSON_FORM: dict[str, Any] = {
    "title": "Feedback",
    "description": "Tell us how it was.",
    "questions": [
        {"label": "Your email", "kind": "email", "required": True},
        {"label": "Topic", "kind": "select", "options": ["Food", "Service"]},
        {"label": "Rating", "kind": "rating"},
        {"label": "Your signature", "kind": "drawing"},
    ],
}


def table(rows: Sequence[Sequence[str]], edition: int) -> list[list[str]]:
    """The rows of a table.

    Each edition after the first has one more, and a number that counts on; the third lacks a row.
    """
    added = [[f"Added in edition {number}", *rows[1][1:]] for number in range(2, edition + 1)]
    kept = [list(row) for row in (rows if edition < 3 else rows[:-1])]
    if kept[1][-1].isdigit():
        kept[1][-1] = str(int(kept[1][-1]) + edition - 1)
    return kept + added


def csv_bytes(rows: Sequence[Sequence[str]], edition: int) -> bytes:
    return "".join(",".join(row) + "\r\n" for row in table(rows, edition)).encode()


def json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def workbook_bytes(edition: int) -> bytes:
    """A workbook of two sheets. Blocks; it is for threads."""
    from openpyxl import Workbook  # noqa: PLC0415  # few workers write one

    book = Workbook()
    book.remove(book.active)
    for name, rows in (("Prices", PRICES), ("Customers", CUSTOMERS)):
        sheet = book.create_sheet(name)
        for row in table(rows, edition):
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def image_bytes() -> bytes:
    """An 8 by 8 PNG (W3C Portable Network Graphics, 5.2)."""
    lines = b"".join(b"\x00" + bytes((40, 90, 160)) * 8 for _ in range(8))
    chunks = (
        (b"IHDR", pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
        (b"IEND", b""),
    )
    framed = (
        pack(">I", len(data)) + tag + data + pack(">I", zlib.crc32(tag + data))
        for tag, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


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
        forms.GOOGLE_FORM_TYPE,
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
        forms.JSON_FORM_TYPE,
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
    """A resource by its id; `generated` is the number of generated files."""
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
