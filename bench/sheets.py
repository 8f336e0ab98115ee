"""Tables to import: the same ten columns as a workbook, as CSV and as fields."""

import csv
import io
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache
from typing import Any

from openpyxl import Workbook

_COLUMNS = (
    ("Code", "code", "text", "text"),
    ("Name", "title", "text", "text"),
    ("City", "city", "text", "text"),
    ("Price", "price", "number", "float8"),
    ("Count", "count", "number", "float8"),
    ("Due", "due", "date", "date"),
    ("Flag", "flag", "checkbox", "bool"),
    ("Email", "email", "email", "text"),
    ("Note", "note", "long_text", "text"),
    ("Link", "link", "url", "text"),
)
HEADERS = [name for name, *_ in _COLUMNS]
FIELDS = [
    {"sourcePath": name, "fieldKey": key, "label": name, "kind": kind}
    for name, key, kind, _ in _COLUMNS
]
BARE_TABLE = ", ".join(f"{key} {type_}" for _, key, _, type_ in _COLUMNS)
"""The columns of a table that the same values are copied into, for CREATE TABLE."""

_CITIES = ("Köln", "Bonn", "Paris", "Rome")


def rows(count: int, version: int = 0) -> Iterator[list[Any]]:
    """Rows of the ten columns; another `version` says something else of every code."""
    begin = date(2025, 1, 1)
    for number in range(count):
        yield [
            f"C-{number:06d}",
            f"Product number {number}",
            _CITIES[number % 4],
            number * 1.25 + version,
            number % 1000,
            begin + timedelta(days=number % 700),
            number % 3 == 0,
            f"person{number}@example.com",
            f"Some words of a note, number {number}, that say a little.",
            f"https://example.com/p/{number}",
        ]


@cache
def workbook(count: int) -> bytes:
    """An XLSX file as openpyxl writes it."""
    book, content = Workbook(write_only=True), io.BytesIO()
    sheet = book.create_sheet("Goods")
    sheet.append(HEADERS)
    for row in rows(count):
        sheet.append(row)
    book.save(content)
    return content.getvalue()


def delimited(count: int, version: int = 0, columns: int = len(HEADERS)) -> bytes:
    """CSV of the first columns."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(HEADERS[:columns])
    writer.writerows(row[:columns] for row in rows(count, version))
    return text.getvalue().encode()
