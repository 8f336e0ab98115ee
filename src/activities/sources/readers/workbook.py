"""Workbooks: XLSX, XLS and ODS, read by calamine; formulas count by their cached values.

An error is an empty cell (ADR 0039).
"""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from activities.sources.readers.table import (
    Row,
    Table,
    bounded,
    column_letter,
    headers_of,
    refuse,
)
from activities.sources.readers.workbook_digits import Digits, long_numbers
from activities.sources.readers.workbook_head import SheetHead, column_of, read_head
from models.sources.tabular.rules.cells import Amount, Cell, Percent, cell, number
from models.sources.tabular.rules.options import ReadOptions

_RANGE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})(?::([A-Z]{1,3})([0-9]{1,7}))?")
_EMPTY = frozenset(
    {"", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA"}
)
"""Texts of empty cells: an error is one."""
_BLOCK = 500
"""Rows whose cells are told together, a column at a time: most columns hold one type."""

_KINDS = {"content.xml": ".ods", "xl/workbook.bin": ".xlsb"}
"""Parts that only one kind of zipped workbook has."""


def read_workbook(path: Path, options: ReadOptions) -> Table:
    """The table in a sheet: the one named, else the first that is shown. Raises SourceProblem."""
    try:
        book = CalamineWorkbook.from_path(_named(path))
        names = [
            each.name
            for each in book.sheets_metadata
            if each.typ is SheetTypeEnum.WorkSheet and each.visible is SheetVisibleEnum.Visible
        ]
        sheet = _sheet(book, names, options.sheet_name)
    except PasswordError:
        refuse("The workbook is encrypted. Save it without a password.")
    except (CalamineError, OSError, ValueError) as error:
        what = str(error)[:200].removesuffix(".")
        refuse(f"The workbook is damaged: {what}. Save it again in a spreadsheet program.")
    window = _Window.of(sheet, options.range, names)
    head = read_head(path, sheet.name)

    def rows(skipped: int) -> Iterator[list[Any]]:
        return window.rows(sheet, long_numbers(path, sheet.name), skipped)

    first = next(rows(options.header_row - 1), None) if options.header_row else None
    if options.header_row and first is None:
        refuse(f"The sheet {sheet.name} has no row of headers where it is looked for.")
    headers = headers_of(first and [*_column(first)], window.width)
    return Table(
        headers,
        lambda: bounded(_shown(_cells(rows(options.header_row)), window, head)),
        sheet_name=sheet.name,
        sheets=names,
        uncalculated={column - window.left for column in head.uncalculated},
    )


def _named(path: Path) -> Path:
    """The file under a name that tells its kind; calamine does not say what is wrong otherwise."""
    kind = ".xls"
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            parts = archive.namelist()
        kind = next((kind for part, kind in _KINDS.items() if part in parts), ".xlsx")
    named = path.with_name(f"{path.name}{kind}")
    if not named.exists():
        named.symlink_to(path.absolute())
    return named


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
        self._top, self.left, self._bottom = top, left, bottom
        self.width = right - left + 1

    @classmethod
    def of(cls, sheet: CalamineSheet, cell_range: str | None, names: Sequence[str]) -> "_Window":
        """The cells of a range; without one, all from the first row and column that have any."""
        if sheet.start is None or sheet.end is None:
            others = ", ".join(name for name in names[:20] if name != sheet.name)
            also = f" Name another with sheetName: {others}." if others else ""
            refuse(f"The sheet {sheet.name} is empty.{also}")
        (top, left_column), (bottom, right) = sheet.start, sheet.end
        if cell_range is None:
            return cls(top, left_column, bottom, right)
        found = _RANGE.fullmatch(cell_range)
        assert found is not None, "the config says what a range is"
        begin_row, begin_column = int(found[2]) - 1, column_of(found[1])
        last = (int(found[4]) - 1, column_of(found[3])) if found[3] else (bottom, right)
        used = f"{column_letter(left_column)}{top + 1}:{column_letter(right)}{bottom + 1}"
        bottom, right = min(bottom, last[0]), min(right, last[1])
        if begin_row > bottom or begin_column > right:
            refuse(f"The sheet {sheet.name} has no cells in {cell_range}; it has some in {used}.")
        return cls(begin_row, begin_column, bottom, right)

    def rows(
        self, sheet: CalamineSheet, long: Iterator[tuple[int, Digits]], skipped: int
    ) -> Iterator[list[Any]]:
        """The rows of the window but for the first ones, as calamine gives them.

        Long whole numbers, given by their rows, are in them as texts.
        """
        assert sheet.start is not None, "an empty sheet has no window"
        # Rows come from the first of the sheet, cells from the first column that has any.
        before = sheet.start[1]
        lead = [""] * (before - self.left)
        first = max(self.left - before, 0)
        exact = next(long, None)
        for place, doubles in enumerate(sheet.iter_rows()):
            values = doubles
            while exact is not None and exact[0] <= place:
                row, texts = exact
                values = _with_texts(doubles, texts, before) if row == place else values
                exact = next(long, None)
            if place < self._top + skipped:
                continue
            if place > self._bottom:
                return
            inside = (lead + values[first:])[: self.width]
            yield inside + [""] * (self.width - len(inside))


def _with_texts(values: list[Any], texts: Digits, first: int) -> list[Any]:
    """The values of a row from a first column on, with the texts of some of its numbers."""
    return [
        texts.get(column, value) if type(value) is float else value
        for column, value in enumerate(values, start=first)
    ]


def _cells(rows: Iterator[list[Any]]) -> Iterator[Row]:
    """The rows that have a cell; sheets are often followed by a million of empty ones."""
    filled = (row for row in rows if row.count("") < len(row))
    while block := [*islice(filled, _BLOCK)]:
        columns = map(_column, zip(*block, strict=True))
        yield from (row for row in zip(*columns, strict=True) if row.count(None) < len(row))


def _column(values: Sequence[Any]) -> Sequence[Cell]:
    """The cells of a column."""
    types = {*map(type, values)}
    if types == {str} and _EMPTY.isdisjoint(values) and not any(map(str.isspace, values)):
        return values
    if types == {float}:
        return [*map(number, values)]
    if types <= {bool, date}:
        return values
    return [None if type(value) is str and value in _EMPTY else cell(value) for value in values]


def _shown(rows: Iterator[Row], window: _Window, head: SheetHead) -> Iterator[Row]:
    """The rows with the numbers of some columns as percentages and amounts."""
    typed = {
        **{column - window.left: Amount for column in head.currency},
        **{column - window.left: Percent for column in head.percent},
    }
    places = [place for place in typed if 0 <= place < window.width]
    if not places:
        return rows
    return (_typed(row, {place: typed[place] for place in places}) for row in rows)


def _typed(row: Row, types: Mapping[int, type[float]]) -> Row:
    cells = [*row]
    for place, made in types.items():
        value = cells[place]
        if isinstance(value, int | float) and not isinstance(value, bool):
            cells[place] = made(value)
    return cells
