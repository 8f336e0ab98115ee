"""Writing rows as CSV or XLSX: row by row, so that memory does not grow with their number.

Everything here computes for long; it is for a process of its own.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from models.data.record_exports.rules import Cell, csv_cell, is_number_of_a_sheet, sheet_text
from models.data.record_exports.shapes import ExportFormat


def write_spreadsheet(
    file_format: ExportFormat, labels: Sequence[str], source: Path, target: Path
) -> None:
    """Write the rows of `source`, a JSON array of cells per line, below a row of labels."""
    rows: Iterable[Sequence[Cell]] = _rows(labels, source)
    if file_format is ExportFormat.CSV:
        _write_csv(rows, target)
    else:
        _write_xlsx(rows, len(labels), target)


def _rows(labels: Sequence[str], source: Path) -> Iterator[Sequence[Cell]]:
    yield labels
    with source.open("rb") as lines:
        for line in lines:
            yield from_json(line)


def _write_csv(rows: Iterable[Sequence[Cell]], target: Path) -> None:
    """RFC 4180. Excel recognizes UTF-8 by the byte order mark."""
    with target.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerows([csv_cell(cell) for cell in row] for row in rows)


def _write_xlsx(rows: Iterable[Sequence[Cell]], width: int, target: Path) -> None:
    # Importing it takes a tenth of the start of a worker, whose fork server loads this module.
    from openpyxl import Workbook  # noqa: PLC0415  # as above
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415  # as above

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Records")
    # One cell object per column: a row is written before the next one begins.
    texts = [WriteOnlyCell(sheet) for _ in range(width)]
    for row in rows:
        sheet.append([_sheet_cell(cell, text) for cell, text in zip(row, texts, strict=True)])
    book.save(target)


def _sheet_cell(cell: Cell, text: Any) -> object:
    if not isinstance(cell, str) and is_number_of_a_sheet(cell):
        if not isinstance(cell, float) or float(f"{cell:.16g}") == cell:
            return cell
        # openpyxl writes 16 digits, and a float may have 17.
        text.value, text.data_type = repr(cell), "n"
        return text
    text.value = sheet_text(str(cell))
    text.data_type = "s"  # text that begins like a formula is still text
    return text
