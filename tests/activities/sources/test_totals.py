"""Tables of an XLSX that end with a row of totals."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.table import Table as Named

from activities.sources.readers.opening import open_table
from models.sources.tabular.rules.options import ReadOptions, TableFormat

ROWS = [["name", "sum"], ["a", 1], ["b", 2], ["Total", 3]]


def read(path: Path, *tables: tuple[str, int], **options: Any) -> tuple[list[Any], str | None]:
    """The rows of a sheet with these tables: their extents, and their rows of totals."""
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in ROWS:
        sheet.append(row)
    for number, (extent, totals) in enumerate(tables):
        named = Named(displayName=f"T{number}", ref=extent)
        named.totalsRowCount = totals
        sheet.add_table(named)
    written = io.BytesIO()
    book.save(written)
    path.write_bytes(written.getvalue())
    table = open_table([path], ReadOptions(TableFormat.XLSX, **options))
    return [list(row) for row in table.rows()], table.note


def test_the_row_of_totals_is_no_record(tmp_path: Path) -> None:
    assert read(tmp_path / "book", ("A1:B4", 1)) == (
        ROWS[1:3],
        "Row 4 has the totals, and is not read.",
    )


def test_rows_behind_the_totals_are_read_with_their_numbers(tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "book", ("A1:B3", 1))
    assert rows == [ROWS[1], ROWS[3]]


@pytest.mark.parametrize("tables", [(), (("A1:B4", 0),), (("A1:A4", 1), ("B1:B4", 1))])
def test_other_rows_are_read(tmp_path: Path, tables: tuple[tuple[str, int], ...]) -> None:
    assert read(tmp_path / "book", *tables) == (ROWS[1:], None)


def test_a_range_that_is_chosen_is_read(tmp_path: Path) -> None:
    assert read(tmp_path / "book", ("A1:B4", 1), range="A1:B4") == (ROWS[1:], None)


@pytest.mark.parametrize("part", ["xl/tables/table1.xml", "xl/worksheets/_rels/sheet1.xml.rels"])
def test_a_damaged_description_of_a_table_keeps_no_row_from_being_read(
    tmp_path: Path, part: str
) -> None:
    path = tmp_path / "book"
    read(path, ("A1:B4", 1))
    with zipfile.ZipFile(path) as archive:
        header = archive.getinfo(part)
    content = bytearray(path.read_bytes())
    start = header.header_offset + 30 + len(part)
    content[start : start + 8] = b"\xff" * 8
    path.write_bytes(content)
    table = open_table([path], ReadOptions(TableFormat.XLSX))
    assert [list(row) for row in table.rows()] == ROWS[1:]
