"""The contents of the resources of the demo provider."""

import io
import json
import zlib
from collections.abc import Sequence
from struct import pack
from typing import Any

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
