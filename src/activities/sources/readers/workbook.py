"""Workbooks: XLSX and XLS, read by calamine, and ODS; formulas count by their cached values.

A cell with an error has no value, and is counted where it fills a field (ADR 0039).
"""

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from activities.sources.readers import table, workbook_xml
from activities.sources.readers.open_document import CONTENT, read_open_document
from activities.sources.readers.workbook_xml import ExactSheet, SheetHead, column_of, read_head
from models.sources.tabular.rules.cells import Amount, Cell, Percent, cell, number
from models.sources.tabular.rules.options import ReadOptions
from models.sources.tabular.rules.proposals import HEADER_SEARCH, header_row

_RANGE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})(?::([A-Z]{1,3})([0-9]{1,7}))?")
_ERRORS = frozenset(
    {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA"}
)
"""The texts that calamine gives for errors, and for what says the same."""
_BLOCK = 500
"""Rows whose cells are classified together, a column at a time: most columns hold one type."""


def read_workbook(path: Path, options: ReadOptions) -> table.Table:
    """The table in a sheet: the one named, else the first that is shown. Raises SourceProblem."""
    parts = _parts(path)
    if CONTENT in parts:
        sheet, names, head = _open_document(path, options)
    else:
        sheet, names, head = _by_calamine(path, parts, options)
    window = _Window.of(sheet, options.range, names)
    header = options.header_row
    if header is None:
        header = header_row(map(_column, islice(window.rows(sheet, 0), HEADER_SEARCH)))
    first = next(window.rows(sheet, header - 1), None) if header else None
    if header and first is None:
        table.refuse(f"The sheet {sheet.name} has no header row where expected.")
    headers = table.headers_of(first and [*_column(first)], window.width)
    numbers = table.RowNumbers()
    totals = _totals_row(path, sheet.name) if parts and options.range is None else None

    def rows() -> Iterator[table.Row]:
        numbers.restart()
        below = enumerate(window.rows(sheet, header), start=window.top + header + 1)
        records = (row for row in below if row[0] != totals)
        return table.bounded(_shown(_cells(records, numbers), window, head))

    return table.Table(
        headers,
        rows,
        sheet_name=sheet.name,
        sheets=names,
        uncalculated={column - window.left for column in head.uncalculated},
        header_row=header,
        note=None if totals is None else f"Row {totals} has the totals, and is not read.",
        numbers=numbers,
    )


def _totals_row(path: Path, sheet: str) -> int | None:
    """The row of the totals of the only table of a sheet of an XLSX, counted from 1."""
    element = None
    with suppress(*workbook_xml.UNREADABLE), zipfile.ZipFile(path) as archive:
        part = workbook_xml.part_of(archive, sheet)
        if part is None:
            return None
        directory, name = posixpath.split(part)
        relations = f"{directory}/_rels/{name}.rels"
        parts = [
            posixpath.normpath(posixpath.join("/", directory, each.get("Target", ""))).lstrip("/")
            for each in workbook_xml.elements(archive, relations, "Relationship")
            if each.get("Type", "").endswith("/table")
        ]
        if len(parts) != 1:
            return None
        element = next(workbook_xml.elements(archive, parts[0], "table"), None)
    extent = None if element is None else _RANGE.fullmatch(element.get("ref", ""))
    if element is None or extent is None or element.get("totalsRowCount", "0") == "0":
        return None
    return int(extent[4] or extent[2])


class _Sheet(Protocol):
    """A sheet as calamine gives one: the first and the last cell, and the rows from the first."""

    @property
    def name(self) -> str: ...
    @property
    def start(self) -> tuple[int, int] | None: ...
    @property
    def end(self) -> tuple[int, int] | None: ...
    def iter_rows(self) -> Iterator[list[Any]]: ...


def _parts(path: Path) -> Sequence[str]:
    """The parts of a zipped workbook; none of another."""
    if not zipfile.is_zipfile(path):
        return ()
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def _open_document(path: Path, options: ReadOptions) -> tuple[_Sheet, Sequence[str], SheetHead]:
    book = read_open_document(path, options.sheet_name)
    _check_name(options.sheet_name, book.names, book.visible_names)
    if book.sheet is None:
        table.refuse("The workbook has no sheet with cells.")
    return (
        book.sheet,
        book.visible_names,
        SheetHead(uncalculated=book.sheet.uncalculated),
    )


def _by_calamine(
    path: Path, parts: Sequence[str], options: ReadOptions
) -> tuple[_Sheet, Sequence[str], SheetHead]:
    try:
        book = CalamineWorkbook.from_path(_named(path, parts))
        names = [
            each.name
            for each in book.sheets_metadata
            if each.typ is SheetTypeEnum.WorkSheet and each.visible is SheetVisibleEnum.Visible
        ]
        _check_name(options.sheet_name, book.sheet_names, names)
        name = options.sheet_name or next(iter(names), None)
        if name is None:
            table.refuse("The workbook has no sheet with cells.")
        head = read_head(path, name)
        # The cells of an XLSX say themselves that they are errors.
        errors = frozenset() if workbook_xml.WORKBOOK in parts else _ERRORS
        return (
            ExactSheet(path, _sheet_of(book, path, name), head.mixed, errors),
            names,
            head,
        )
    except PasswordError:
        table.refuse("The workbook is encrypted. Save it without a password.")
    except (CalamineError, OSError, ValueError) as error:
        what = str(error)[:200].removesuffix(".")
        table.refuse(f"The workbook is damaged: {what}. Save it again in a spreadsheet program.")


def _sheet_of(book: CalamineWorkbook, path: Path, name: str) -> CalamineSheet:
    """The sheet of this name, also one with errors that calamine does not know."""
    try:
        return book.get_sheet_by_name(name)
    except CalamineError:
        copy = workbook_xml.with_errors_as_texts(path, name)
        if copy is None:
            raise
        return CalamineWorkbook.from_path(copy).get_sheet_by_name(name)


def _named(path: Path, parts: Sequence[str]) -> Path:
    """The file under a name with its extension; otherwise calamine does not name the error."""
    kind = ".xlsb" if "xl/workbook.bin" in parts else ".xlsx" if parts else ".xls"
    named = path.with_name(f"{path.name}{kind}")
    if not named.exists():
        named.symlink_to(path.absolute())
    return named


def _check_name(wanted: str | None, names: Sequence[str], shown: Sequence[str]) -> None:
    if wanted is not None and wanted not in names:
        known = ", ".join(shown[:20])
        table.refuse(f"Sheet {wanted[:100]} not found. Sheets: {known}.")


class _Window:
    """The part of a sheet that is read; rows and columns count from 0, the last is included."""

    def __init__(self, top: int, left: int, bottom: int, right: int) -> None:
        self.top, self.left, self._bottom = top, left, bottom
        self.width = right - left + 1

    @classmethod
    def of(cls, sheet: _Sheet, cell_range: str | None, names: Sequence[str]) -> "_Window":
        """The cells of a range; without one, all from the first row and column that have any."""
        if sheet.start is None or sheet.end is None:
            others = ", ".join(name for name in names[:20] if name != sheet.name)
            also = f" Choose another sheetName: {others}." if others else ""
            table.refuse(f"The sheet {sheet.name} is empty.{also}")
        (top, left_column), (bottom, right) = sheet.start, sheet.end
        if cell_range is None:
            return cls(top, left_column, bottom, right)
        found = _RANGE.fullmatch(cell_range)
        assert found is not None, "the config says what a range is"
        begin_row, begin_column = int(found[2]) - 1, column_of(found[1])
        last = (int(found[4]) - 1, column_of(found[3])) if found[3] else (bottom, right)
        extent = (
            f"{table.column_letter(left_column)}{top + 1}:{table.column_letter(right)}{bottom + 1}"
        )
        bottom, right = min(bottom, last[0]), min(right, last[1])
        if begin_row > bottom or begin_column > right:
            table.refuse(
                f"The sheet {sheet.name} has no cells in {cell_range}; its cells are in {extent}."
            )
        return cls(begin_row, begin_column, bottom, right)

    def rows(self, sheet: _Sheet, skipped: int) -> Iterator[list[Any]]:
        """The rows of the window but for the first ones, as calamine gives them."""
        assert sheet.start is not None, "an empty sheet has no window"
        # Rows come from the first of the sheet, cells from the first column that has any.
        before = sheet.start[1]
        lead = [""] * (before - self.left)
        first = max(self.left - before, 0)
        for place, values in enumerate(sheet.iter_rows()):
            if place < self.top + skipped:
                continue
            if place > self._bottom:
                return
            inside = (lead + values[first:])[: self.width]
            yield inside + [""] * (self.width - len(inside))


def _cells(rows: Iterator[tuple[int, list[Any]]], numbers: table.RowNumbers) -> Iterator[table.Row]:
    """The rows that have a cell; sheets are often followed by a million of empty ones."""
    filled = (row for row in rows if row[1].count("") < len(row[1]))
    while block := [*islice(filled, _BLOCK)]:
        columns = map(_column, zip(*(values for _, values in block), strict=True))
        for (place, _), row in zip(block, zip(*columns, strict=True), strict=True):
            if row.count(None) < len(row):
                numbers.note(place)
                yield row


def _column(values: Sequence[Any]) -> Sequence[Cell]:
    types = {*map(type, values)}
    if types == {str} and "" not in values and not any(map(str.isspace, values)):
        return values
    if types == {float}:
        return [*map(number, values)]
    if types <= {bool, date}:
        return values
    return [*map(cell, values)]


def _shown(rows: Iterator[table.Row], window: _Window, head: SheetHead) -> Iterator[table.Row]:
    """The rows with the numbers of some columns as percentages, amounts and codes."""
    typed: dict[int, Callable[[float], Cell]] = {
        **{column: partial(Amount, currency=sign) for column, sign in head.currency.items()},
        **dict.fromkeys(head.percent, Percent),
        **{column: code.shown for column, code in head.codes.items()},
    }
    inside = {
        column - window.left: made
        for column, made in typed.items()
        if 0 <= column - window.left < window.width
    }
    return (_typed(row, inside) for row in rows) if inside else rows


def _typed(row: table.Row, types: Mapping[int, Callable[[float], Cell]]) -> table.Row:
    cells = [*row]
    for place, made in types.items():
        value = cells[place]
        if isinstance(value, int | float) and not isinstance(value, bool):
            cells[place] = made(value)
    return cells
