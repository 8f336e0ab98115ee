"""Workbooks of OpenDocument (ODS), read from the styles, cells and sheets of `content.xml`.

They are not left to calamine. It gives numbers without the percent sign or the currency beside
them, leaves out elements for line breaks, and knows no span of time beyond a day. A part with a
document type is refused, so that no entity is ever expanded.
"""

import re
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeAlias
from xml.parsers.expat import ExpatError, ParserCreate, XMLParserType

from activities.sources.readers.table import check_count, refuse
from activities.sources.readers.workbook_xml import long_digits
from models.sources.tabular.rules.cells import Amount, Cell, CodeFormat, ErrorCell, Percent, Shown
from models.sources.tabular.rules.options import MAX_CELL_BYTES

URN = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TABLE, TEXT = f"{URN}office:1.0 ", f"{URN}table:1.0 ", f"{URN}text:1.0 "
STYLE, NUMBER = f"{URN}style:1.0 ", f"{URN}datastyle:1.0 "
CALC = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0 "
VALUE = f"{OFFICE}value"
NO_TEXT = frozenset(
    {
        f"{OFFICE}annotation",
        f"{OFFICE}annotation-end",
        f"{OFFICE}forms",
        f"{TABLE}shapes",
        f"{TABLE}tracked-changes",
        f"{TABLE}dde-links",
        f"{TABLE}detective",
        f"{TEXT}note",
        f"{TEXT}ruby-text",
        f"{TEXT}tracked-changes",
    }
)
"""Elements whose text is none of a cell; drawings are others."""
DRAWN = (f"{URN}drawing:1.0 ", f"{URN}dr3d:1.0 ")
_SPAN = re.compile(
    r"(-)?P(?:0+Y)?(?:0+M)?(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?"
    r"(?:([0-9]{1,12}(?:[.,][0-9]{1,20})?)S)?)?"
)
_DAY = timedelta(days=1)
NO_VALUE = (KeyError, ValueError, OverflowError)
"""The errors of a value that is none of its type."""
_MOST_DIGITS = 100
"""Digits of a code; LibreOffice shows fewer."""
_MIDNIGHT = datetime.combine(date(1900, 1, 1), time())
_Meaning: TypeAlias = Callable[[Mapping[str, str]], CodeFormat | Shown | None]
"""The form of codes, or of hours beyond a day, by the style of a cell."""


class Styles:
    """The styles of a part: the format of a cell whose type does not say it.

    `meanings` begins with the meanings of the styles that this part builds upon.
    """

    def __init__(self, known: Mapping[str, CodeFormat | Shown]) -> None:
        self.meanings = dict(known)
        self.hidden: set[str] = set()
        """The names of the styles of sheets that are not shown."""
        self._formats: dict[str, CodeFormat | Shown | None] = {}
        self._format: str | None = None
        self._signs: list[str] = []
        """The signs before each digit of the open format, and behind the last one."""
        self._place: int | None = None
        """The place among them of the text that is open."""
        self._style = ""

    def listen(self, parser: XMLParserType) -> None:
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Learn from the element of a style; of no other."""
        self._place = None
        read = _STYLE_READERS.get(name)
        if read is not None:
            read(self, attributes)

    def end(self, _name: str) -> None:
        self._place = None

    def characters(self, text: str) -> None:
        """Learn a text of a format of numbers."""
        if self._format is not None and self._place is not None:
            self._signs[self._place] += text
            if len(self._signs) > 1 and self._formats.get(self._format) is not None:
                self._formats[self._format] = CodeFormat.of_signs(self._signs)

    def time_style(self, attributes: Mapping[str, str]) -> None:
        self._format = None
        if attributes.get(f"{NUMBER}truncate-on-overflow") == "false":
            self._formats[attributes.get(f"{STYLE}name", "")] = Shown.SPAN

    def number_style(self, attributes: Mapping[str, str]) -> None:
        self._format, self._signs = attributes.get(f"{STYLE}name", ""), [""]

    def number(self, attributes: Mapping[str, str]) -> None:
        """The digits of a format such as `00000`; one with decimals or groups is none of codes."""
        if self._format is not None:
            digits = int(attributes.get(f"{NUMBER}min-integer-digits", "1"))
            plain = attributes.get(f"{NUMBER}decimal-places", "0") == "0"
            plain = plain and attributes.get(f"{NUMBER}grouping", "false") == "false"
            first = self._format not in self._formats
            self._signs += [""] * min(digits, _MOST_DIGITS)
            is_code = plain and first and digits <= _MOST_DIGITS
            self._formats[self._format] = CodeFormat.of_signs(self._signs) if is_code else None

    def text(self, _attributes: Mapping[str, str]) -> None:
        """Text before or behind the digits of a number."""
        self._place = len(self._signs) - 1

    def embedded_text(self, attributes: Mapping[str, str]) -> None:
        """Text before a digit, which is counted from the last one."""
        place = len(self._signs) - 1 - int(attributes.get(f"{NUMBER}position", "0"))
        if 0 <= place < len(self._signs) - 1:
            self._place = place
        else:
            self.condition(attributes)

    def condition(self, _attributes: Mapping[str, str]) -> None:
        """Another format for some numbers, or one that is not known."""
        if self._format is not None:
            self._formats[self._format] = None
            self._format = None

    def style(self, attributes: Mapping[str, str]) -> None:
        self._style = attributes.get(f"{STYLE}name", "")
        self._format = None
        if attributes.get(f"{STYLE}family") != "table-cell":
            return
        data = attributes.get(f"{STYLE}data-style-name")
        parent = attributes.get(f"{STYLE}parent-style-name", "")
        meaning = self.meanings.get(parent) if data is None else self._formats.get(data)
        self.meanings.pop(self._style, None)
        if meaning is not None:
            self.meanings[self._style] = meaning

    def table_properties(self, attributes: Mapping[str, str]) -> None:
        if attributes.get(f"{TABLE}display") == "false":
            self.hidden.add(self._style)


_STYLE_READERS: Mapping[str, Callable[[Styles, Mapping[str, str]], None]] = {
    f"{NUMBER}time-style": Styles.time_style,
    f"{NUMBER}number-style": Styles.number_style,
    f"{NUMBER}number": Styles.number,
    f"{NUMBER}text": Styles.text,
    f"{NUMBER}embedded-text": Styles.embedded_text,
    f"{STYLE}map": Styles.condition,
    f"{STYLE}style": Styles.style,
    f"{STYLE}table-properties": Styles.table_properties,
}


def repeats(attributes: Mapping[str, str], name: str) -> int:
    """The number of times that a row, a column or a cell is repeated."""
    return max(int(attributes.get(name, "1")), 1)


def _number(attributes: Mapping[str, str], meaning: _Meaning) -> Cell:
    """A number; as text where its format shows leading zeros, or no double holds its digits."""
    written = attributes[VALUE]
    code, whole = meaning(attributes), long_digits(written)
    if not isinstance(code, CodeFormat):
        return float(written) if whole is None else whole
    return code.shown(float(written)) if whole is None else code.shown_digits(whole)


def _date(attributes: Mapping[str, str], _meaning: object) -> Cell:
    written = attributes[f"{OFFICE}date-value"]
    if "T" not in written:
        return date.fromisoformat(written)
    moment = datetime.fromisoformat(written)
    return moment.replace(microsecond=0) + timedelta(milliseconds=round(moment.microsecond / 1_000))


def _time(attributes: Mapping[str, str], meaning: _Meaning) -> Cell:
    """A time of day; a span where it passes a day, or where its style shows spans."""
    found = _SPAN.fullmatch(attributes[f"{OFFICE}time-value"])
    if found is None or found[0].endswith(("P", "T")):
        raise ValueError(found)
    sign, days, hours, minutes, seconds = found.groups()
    span = timedelta(int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0))
    # OpenOffice wrote a comma (ISO 8601 knows both).
    span += timedelta(milliseconds=round(float((seconds or "0").replace(",", ".")) * 1_000))
    if sign or span >= _DAY or meaning(attributes) is Shown.SPAN:
        return -span if sign else span
    return (_MIDNIGHT + span).time()


def _truth(attributes: Mapping[str, str], _meaning: object) -> Cell:
    return attributes[f"{OFFICE}boolean-value"] == "true"


READERS: Mapping[str, Callable[[Mapping[str, str], _Meaning], Cell]] = {
    "float": _number,
    "percentage": lambda attributes, _: Percent(attributes[VALUE]),
    "currency": lambda attributes, _: Amount(
        attributes[VALUE], attributes.get(f"{OFFICE}currency", "")
    ),
    "date": _date,
    "time": _time,
    "boolean": _truth,
}

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

    A cell ends where the next one begins, and a row likewise: handling each end would double the
    time. The parser reports ends only in a paragraph, and in elements that are left out.
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
        parser.EndElementHandler = self._styles.end
        parser.CharacterDataHandler = self._styles.characters

    def _start_style(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read the styles, which come before all sheets."""
        if name == f"{OFFICE}spreadsheet":
            self._parser.StartElementHandler = self._start
            self._parser.EndElementHandler = self._parser.CharacterDataHandler = None
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
                # The shown text is all that is left of it.
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
        # A text longer than a cell may be is refused where it is read.
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
            return ErrorCell(text or "#VALUE!")
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

    def _meaning(self, attributes: Mapping[str, str]) -> CodeFormat | Shown | None:
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


CONTENT = "content.xml"
_MANIFEST = "META-INF/manifest.xml"
_PIECE = 256 * 1024
_LONGEST_TAG = 1024 * 1024
"""Bytes of a tag: the parser reads one that arrives in pieces again with each of them."""


def read_open_document(path: Path, sheet_name: str | None) -> OpenBook:
    """The sheet of this name, else the first that is shown. Raises SourceProblem."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.namelist()
            if _MANIFEST in parts and b"encryption-data" in archive.read(_MANIFEST):
                refuse("The workbook is encrypted. Save it without a password.")
            styles = Styles({})
            if "styles.xml" in parts:
                _parse(archive, "styles.xml", styles)
            content = Content(Styles(styles.meanings), sheet_name)
            _parse(archive, CONTENT, content)
            content.end_row()
    except (ExpatError, ValueError) as error:
        damaged(str(error))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        damaged(str(error)[:200].removesuffix("."))
    return content.book


def _parse(archive: zipfile.ZipFile, part: str, handler: "Styles | Content") -> None:
    """Pass the elements of a part to a handler, piece by piece."""
    # Interned names are compared by identity, which is faster.
    parser = ParserCreate(namespace_separator=" ", intern={name: name for name in OFTEN})
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = lambda *_: damaged("it has a document type")
    handler.listen(parser)
    read = 0
    with archive.open(part) as file:
        while piece := file.read(_PIECE):
            parser.Parse(piece, False)
            read += len(piece)
            if read - parser.CurrentByteIndex > _LONGEST_TAG:
                damaged("a tag in it is too long")
    parser.Parse(b"", True)
