"""The cells of a sheet of OpenDocument, out of the elements of its `content.xml`."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers.expat import XMLParserType

from activities.sources.readers.open_document_styles import (
    CALC,
    DRAWN,
    NO_TEXT,
    NO_VALUE,
    OFFICE,
    READERS,
    TABLE,
    TEXT,
    VALUE,
    Styles,
    repeats,
)
from activities.sources.readers.table import check_count, refuse
from models.sources.tabular.rules.cells import Cell
from models.sources.tabular.rules.options import MAX_CELL_BYTES

_MOST_COLUMNS = 16_384
"""Columns of a sheet of LibreOffice and of Excel."""

_CELL, _ROW, _SHEET = f"{TABLE}table-cell", f"{TABLE}table-row", f"{TABLE}table"
_COVERED, _COLUMN = f"{TABLE}covered-table-cell", f"{TABLE}table-column"
_VALUE_TYPE = f"{OFFICE}value-type"
_COLUMNS_REPEATED, _ROWS_REPEATED = (
    f"{TABLE}number-columns-repeated",
    f"{TABLE}number-rows-repeated",
)
_STYLE_NAME, _DEFAULT_STYLE = f"{TABLE}style-name", f"{TABLE}default-cell-style-name"
_FORMULA = f"{TABLE}formula"
OFTEN = (_CELL, _ROW, _VALUE_TYPE, VALUE, _STYLE_NAME, _COLUMNS_REPEATED, _FORMULA, f"{TEXT}p")
_PARAGRAPHS = frozenset({f"{TEXT}p", f"{TEXT}h"})
_BLANKS = re.compile(r"[ \t\r\n]+")
_ERROR = re.compile(r"#(?:NULL|DIV/0|VALUE|REF|NUM|N/A)!?|#NAME\?|#N/A|Err:[0-9]{3}")


@dataclass(slots=True)
class OpenSheet:
    """A sheet, as calamine gives one; `rows` are cells with how often their row is repeated."""

    name: str
    rows: list[tuple[int, list[Any]]] = field(default_factory=list)
    start: tuple[int, int] | None = None
    end: tuple[int, int] | None = None
    uncalculated: set[int] = field(default_factory=set)

    def iter_rows(self) -> Iterator[list[Any]]:
        """The rows up to the last that has a cell, between the outermost columns that have any."""
        assert self.start is not None, "an empty sheet has no rows"
        assert self.end is not None, "a sheet that begins has an end"
        first, width = self.start[1], self.end[1] - self.start[1] + 1
        for times, values in self.rows:
            row = values[first:]
            row += [""] * (width - len(row))
            for _ in range(times):
                yield row


@dataclass(slots=True)
class OpenBook:
    """The names of all sheets, the names of visible sheets, and the sheet that is read."""

    names: list[str] = field(default_factory=list)
    visible_names: list[str] = field(default_factory=list)
    sheet: OpenSheet | None = None


def damaged(reason: str) -> NoReturn:
    refuse(f"The workbook is damaged: {reason}. Save it again in a spreadsheet program.")


class Content:
    """The cells of one sheet, out of the elements of the part that has all of them.

    A cell ends where the next one begins, and a row likewise: to be told each end takes as long as
    the rest. Only in a paragraph, and in what is left out, the parser tells ends.
    """

    def __init__(self, styles: Styles, sheet_name: str | None) -> None:
        self.book = OpenBook()
        self._styles = styles
        self._sheet_name = sheet_name
        self._sheet: OpenSheet | None = None
        self._skipped = 0
        """The number of open elements within one that holds no cells and no text of them."""
        self._in_paragraph = False
        self._starts: Mapping[str, Callable[[Mapping[str, str]], None]] = {
            _CELL: self._start_cell,
            _COVERED: self._start_cell,
            _ROW: self._start_row,
            _COLUMN: self._start_column,
            _SHEET: self._start_sheet,
            **dict.fromkeys(_PARAGRAPHS, self._start_paragraph),
        }
        self._row: list[Any] = []
        self._place = self._column = self._times = 0
        self._pending: Mapping[str, str] | None = None
        """The attributes of a cell whose text decides."""
        self._row_style = ""
        self._columns: tuple[list[int], list[str]] = ([], [])
        """Of each run of columns where it ends, and the style of its cells."""
        self._text: list[str] = []
        self._length = 0
        self._begins = True
        """True where white space says nothing: at the beginning, and behind other white space."""

    def listen(self, parser: XMLParserType) -> None:
        self._parser = parser
        parser.StartElementHandler = self._start_style

    def _start_style(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read the styles, which come before all sheets."""
        if name == f"{OFFICE}spreadsheet":
            self._parser.StartElementHandler = self._start
        else:
            self._styles.start(name, attributes)

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped:
            self._skipped += 1
        elif start := self._starts.get(name):
            start(attributes)
        elif name in NO_TEXT or name.startswith(DRAWN):
            self._skip()
        elif self._in_paragraph:
            self._start_sign(name, attributes)

    def _start_row(self, attributes: Mapping[str, str]) -> None:
        self.end_row()
        self._times = repeats(attributes, _ROWS_REPEATED)
        self._row_style = attributes.get(_DEFAULT_STYLE, "")

    def _start_column(self, attributes: Mapping[str, str]) -> None:
        ends, styles = self._columns
        ends.append((ends[-1] if ends else 0) + repeats(attributes, _COLUMNS_REPEATED))
        styles.append(attributes.get(_DEFAULT_STYLE, ""))

    def _start_sheet(self, attributes: Mapping[str, str]) -> None:
        """A sheet, of which only the wanted one is read."""
        self.end_row()
        self._sheet, self._place, self._columns = None, 0, ([], [])
        name = attributes.get(f"{TABLE}name", "")
        shown = attributes.get(_STYLE_NAME) not in self._styles.hidden
        book = self.book
        book.names.append(name)
        if shown:
            book.visible_names.append(name)
        if book.sheet is None and (shown if self._sheet_name is None else name == self._sheet_name):
            self._sheet = book.sheet = OpenSheet(name)
        else:
            self._skip()

    def _skip(self) -> None:
        self._skipped = 1
        self._parser.EndElementHandler = self._end

    def _start_cell(self, attributes: Mapping[str, str]) -> None:
        if self._pending is not None:
            self._end_text()
        kind = attributes.get(_VALUE_TYPE)
        read = None if kind is None else READERS.get(kind)
        if read is not None and _FORMULA not in attributes:
            try:
                self._add(attributes, read(attributes, self._meaning))
            except NO_VALUE:
                # What the cell shows is all that is left of it.
                pass
            else:
                return
        self._pending, self._text, self._length = attributes, [], 0

    def _start_paragraph(self, _attributes: Mapping[str, str]) -> None:
        if self._pending is None:
            return
        if self._text:
            self._text.append("\n")
        self._begins = self._in_paragraph = True
        self._parser.CharacterDataHandler = self._characters
        self._parser.EndElementHandler = self._end

    def _start_sign(self, name: str, attributes: Mapping[str, str]) -> None:
        """White space that is written as an element, wherever in a paragraph."""
        if name == f"{TEXT}s":
            self._append(" " * min(repeats(attributes, f"{TEXT}c"), MAX_CELL_BYTES + 1))
        elif name == f"{TEXT}tab":
            self._append("\t")
        elif name == f"{TEXT}line-break":
            self._append("\n")

    def _characters(self, data: str) -> None:
        if self._skipped:
            return
        plain = _BLANKS.sub(" ", data)
        if self._begins and plain.startswith(" "):
            plain = plain[1:]
        if plain:
            self._append(plain)
            self._begins = plain.endswith(" ")

    def _append(self, text: str) -> None:
        self._begins = False
        # What is longer than a cell may be is refused where it is read.
        if self._length <= MAX_CELL_BYTES:
            self._text.append(text)
            self._length += len(text)

    def _end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            if not self._skipped and not self._in_paragraph:
                self._parser.EndElementHandler = None
        elif name in _PARAGRAPHS:
            self._in_paragraph = False
            self._parser.CharacterDataHandler = self._parser.EndElementHandler = None
            if not self._text:
                # An empty paragraph is an empty line.
                self._text.append("")

    def _end_text(self) -> None:
        """The value of a cell whose text decides: it has no type, or is calculated."""
        attributes = self._pending
        assert attributes is not None, "a cell is open"
        self._pending = None
        self._add(attributes, self._value(attributes, "".join(self._text)))

    def _value(self, attributes: Mapping[str, str], text: str) -> Cell:
        kind = attributes.get(_VALUE_TYPE)
        formula = _FORMULA in attributes
        if attributes.get(f"{CALC}value-type") == "error" or (formula and _ERROR.fullmatch(text)):
            return None
        if kind is None and formula and not text:
            assert self._sheet is not None, "only cells of a sheet are read"
            self._sheet.uncalculated.add(self._column)
        if kind is not None and kind in READERS:
            with suppress(*NO_VALUE):
                return READERS[kind](attributes, self._meaning)
            return text
        return attributes.get(f"{OFFICE}string-value", text)

    def _add(self, attributes: Mapping[str, str], value: Cell) -> None:
        """Add a cell to its row, as often as it is repeated."""
        times = repeats(attributes, _COLUMNS_REPEATED) if _COLUMNS_REPEATED in attributes else 1
        before, row = self._column, self._row
        self._column += times
        if value is None or value == "":
            return
        if self._column > _MOST_COLUMNS:
            damaged(f"a row in it has more than {_MOST_COLUMNS:,} columns")
        if before > len(row):
            row += [""] * (before - len(row))
        if times == 1:
            row.append(value)
        else:
            row += [value] * times

    def end_row(self) -> None:
        """Add the row that is open, if one is, to the sheet."""
        if self._pending is not None:
            self._end_text()
        sheet, row, times = self._sheet, self._row, self._times
        if sheet is None or not times:
            return
        if row:
            check_count(self._place)
            left = next(place for place, value in enumerate(row) if value != "")
            top, first = sheet.start or (self._place, left)
            last = 0 if sheet.end is None else sheet.end[1]
            sheet.start = top, min(first, left)
            sheet.end = self._place + times - 1, max(last, len(row) - 1)
        sheet.rows.append((times, row))
        self._place += times
        self._row, self._column, self._times = [], 0, 0

    def _meaning(self, attributes: Mapping[str, str]) -> int | None:
        """The meaning of the style of a cell, else of its row, else of its column."""
        meanings = self._styles.meanings
        if not meanings:
            return None
        style = attributes.get(_STYLE_NAME) or self._row_style
        if not style:
            ends, styles = self._columns
            place = bisect_right(ends, self._column)
            style = styles[place] if place < len(styles) else ""
        return meanings.get(style)
