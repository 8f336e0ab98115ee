"""Workbooks: XLSX, XLS and ODS, read by calamine; formulas count by their cached values."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from activities.sources.readers.table import Row, Table, bounded, headers_of, refuse
from models.sources.tabular.rules.cells import Cell, cell
from models.sources.tabular.rules.options import ReadOptions

_RANGE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})(?::([A-Z]{1,3})([0-9]{1,7}))?")
_ERRORS = frozenset(
    {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA"}
)


def read_workbook(path: Path, options: ReadOptions) -> Table:
    """The table in a sheet: the one named, else the first that is shown. Raises SourceProblem."""
    try:
        book = CalamineWorkbook.from_path(path)
        names = [
            each.name
            for each in book.sheets_metadata
            if each.typ is SheetTypeEnum.WorkSheet and each.visible is SheetVisibleEnum.Visible
        ]
        sheet = _sheet(book, names, options.sheet_name)
    except PasswordError:
        refuse("The workbook is encrypted. Save it without a password.")
    except (CalamineError, OSError, ValueError) as error:
        refuse(f"The workbook is damaged: {str(error)[:200]}.")
    window = _Window.of(sheet, options.range)
    first = next(window.rows(sheet, options.header_row - 1), None) if options.header_row else None
    if options.header_row and first is None:
        refuse(f"The sheet {sheet.name} has no row of headers where it is looked for.")
    headers = headers_of(first, window.width)
    return Table(
        headers,
        lambda: bounded(_filled(window.rows(sheet, options.header_row))),
        sheet_name=sheet.name,
        sheets=names,
    )


def _sheet(book: CalamineWorkbook, names: Sequence[str], wanted: str | None) -> CalamineSheet:
    known = ", ".join(names[:20])
    if wanted is not None and wanted not in book.sheet_names:
        refuse(f"The workbook has no sheet named {wanted[:100]}; it has: {known}.")
    name = wanted or next(iter(names), None)
    if name is None:
        refuse("The workbook has no sheet with cells.")
    return book.get_sheet_by_name(name)


class _Window:
    """The part of a sheet that is read; rows and columns count from 0, the last is included."""

    def __init__(self, top: int, left: int, bottom: int, right: int) -> None:
        self._top, self._left, self._bottom = top, left, bottom
        self.width = right - left + 1

    @classmethod
    def of(cls, sheet: CalamineSheet, wanted: str | None) -> "_Window":
        """The cells of a range; without one, all from the first row and column that have any."""
        if sheet.start is None or sheet.end is None:
            refuse(f"The sheet {sheet.name} is empty.")
        (top, left), (bottom, right) = sheet.start, sheet.end
        if wanted is None:
            return cls(top, left, bottom, right)
        found = _RANGE.fullmatch(wanted)
        assert found is not None, "the config says what a range is"
        begin_row, begin_column = int(found[2]) - 1, _column(found[1])
        last = (int(found[4]) - 1, _column(found[3])) if found[3] else (bottom, right)
        bottom, right = min(bottom, last[0]), min(right, last[1])
        if begin_row > bottom or begin_column > right:
            refuse(f"The sheet {sheet.name} has no cells in {wanted}.")
        return cls(begin_row, begin_column, bottom, right)

    def rows(self, sheet: CalamineSheet, skipped: int) -> Iterator[list[Cell]]:
        """The rows of the window but for the first ones."""
        assert sheet.start is not None, "an empty sheet has no window"
        above, before = sheet.start
        for number, values in enumerate(sheet.iter_rows(), start=above):
            if number < self._top + skipped:
                continue
            if number > self._bottom:
                return
            inside = [None] * (before - self._left) + values[max(self._left - before, 0) :]
            cells = [_cell(value) for value in inside[: self.width]]
            yield cells + [None] * (self.width - len(cells))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _cell(value: object) -> Cell:
    return None if isinstance(value, str) and value in _ERRORS else cell(value)


def _filled(rows: Iterator[list[Cell]]) -> Iterator[Row]:
    """The rows that have a cell; sheets are often followed by empty ones."""
    return (row for row in rows if any(value is not None for value in row))
