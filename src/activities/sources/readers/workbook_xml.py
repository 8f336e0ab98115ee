"""The XML of workbooks: what calamine omits: formats of cells, digits of long numbers.

Formulas that have no value yet are found, too (ADR 0039). The size of a part is bounded, and a part
that is not plain XML is ignored: this only adds to the cells of calamine.
"""

import math
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn
from xml.etree.ElementTree import Element, ParseError, XMLPullParser
from xml.parsers import expat

from python_calamine import CalamineSheet

from models.core.values import EXACT
from models.sources.tabular.rules.cells import (
    Amount,
    Cell,
    CodeFormat,
    ErrorCell,
    Percent,
    Shown,
    is_odd,
    is_unusual,
    serial,
    shown_by,
)
from models.sources.tabular.rules.columns import SURE_CODES

_SHEET_BYTES = 256 * 1024
_PART_BYTES = 2 * 1024 * 1024
WORKBOOK = "xl/workbook.xml"
_RELATION = "relationships}id"
"""The end of the attribute: its namespace is another one in strict workbooks."""
_CELL = re.compile(r"([A-Z]{1,3})[0-9]+")
_QUOTED = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^$\]][^\]]*\]')
_LOCALE = re.compile(r"\[\$-[^\]]*\]")
_CURRENCY = re.compile(
    r"\[[$](?P<marked>[^-\]]+)[^\]]*\]|(?P<sign>[$\u00a2-\u00a5\u20a0-\u20cf])"
    rf'|"\s*(?P<named>zł|Kč|kr|{"|".join(SURE_CODES)})[.]?\s*"'
)
_CODE = re.compile(r'"([^"]*)"|\\(.)|([-+()\x20])|[0#]')
"""A part of a format of codes: signs between digits, or a digit."""
_BUILT_IN = {
    **dict.fromkeys(("9", "10"), "0%"),
    **dict.fromkeys(("5", "6", "7", "8", "42", "44"), '"$"#,##0'),
    **dict.fromkeys(map(str, [*range(14, 18), *range(27, 37), *range(50, 59)]), "yyyy-mm-dd"),
    **dict.fromkeys(("18", "19", "20", "21", "32", "33", "45", "47"), "h:mm:ss"),
    "22": "yyyy-mm-dd h:mm",
    "46": "[h]:mm:ss",
}
"""Formats that no workbook writes down: percentages, amounts, days and times.

ECMA-376-1, 18.8.30; those from 27 to 36 and from 50 to 58 are of workbooks in Chinese, Japanese and
Korean.
"""


@dataclass(frozen=True, slots=True)
class SheetHead:
    """Columns, counted from 0: all their numbers are shown as percentages, all as amounts of one
    currency, all as codes of one form; some of their numbers are shown as percentages, as codes or
    with a currency, and others not; one of their formulas has no value.
    """

    percent: Set[int] = frozenset()
    currency: Mapping[int, str] = field(default_factory=dict)
    codes: Mapping[int, CodeFormat] = field(default_factory=dict)
    mixed: Set[int] = frozenset()
    uncalculated: Set[int] = frozenset()


def read_head(path: Path, sheet: str) -> SheetHead:
    """The facts of a sheet's first rows; none for a file that is no XLSX."""
    try:
        with zipfile.ZipFile(path) as archive:
            part = part_of(archive, sheet)
            if part is None:
                return SheetHead()
            formats = _formats(archive)
            codes, uncalculated = _used(elements(archive, part, "row", _SHEET_BYTES), formats)
            if archive.getinfo(part).file_size > _SHEET_BYTES:
                _add_later(codes, uncalculated, _pieces(archive, part), formats)
            return _summary(codes, uncalculated)
    except UNREADABLE:
        return SheetHead()


def elements(
    archive: zipfile.ZipFile, part: str, tag: str, most: int = _PART_BYTES
) -> Iterator[Element]:
    """The elements of a tag that end within the first bytes of a part."""
    if part not in archive.namelist():
        return
    with archive.open(part) as file:
        content = file.read(most)
    if b"<!DOCTYPE" in content:
        return
    parser: Any = XMLPullParser(["end"])
    try:
        # At once: an element that arrives in pieces is read again with each of them.
        parser.feed(content)
    except ParseError:
        return
    for _, element in parser.read_events():
        if _name(element) == tag:
            yield element


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def part_of(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """The part that holds a sheet."""
    relation = next(
        (
            next((id_ for name, id_ in element.items() if name.endswith(_RELATION)), None)
            for element in elements(archive, WORKBOOK, "sheet")
            if element.get("name") == sheet
        ),
        None,
    )
    for element in elements(archive, "xl/_rels/workbook.xml.rels", "Relationship"):
        if element.get("Id") == relation:
            return posixpath.normpath(posixpath.join("/xl", element.get("Target", ""))).lstrip("/")
    return None


def _formats(archive: zipfile.ZipFile) -> Sequence[str]:
    """The format of numbers of each style that a cell may have."""
    written = dict(_BUILT_IN)
    for each in elements(archive, "xl/styles.xml", "numFmt"):
        written[each.get("numFmtId", "")] = each.get("formatCode", "")
    styles = next(elements(archive, "xl/styles.xml", "cellXfs"), None)
    found = () if styles is None else styles
    return [written.get(each.get("numFmtId", "0"), "General") for each in found]


def is_percent(code: str) -> bool:
    """True when a number format shows a hundred times the number, and a percent sign."""
    return "%" in _QUOTED.sub("", code)


def currency_of(code: str) -> str | None:
    """The sign or code of a currency that a number format shows; None for any other format."""
    found = _CURRENCY.search(_LOCALE.sub("", code))
    return None if found is None else (found["marked"] or found["sign"] or found["named"]).strip()


def _currency_of_all(codes: Set[str]) -> str | None:
    """The currency that all of these formats show; None for several."""
    signs = {*map(currency_of, codes)}
    return signs.pop() if len(signs) == 1 else None


def code_format(code: str) -> CodeFormat | None:
    """The form of codes such as 00123 or 01234-5678 that a number format shows; None for others.

    It has two digits or more, of which the first is always shown, and no unit.
    """
    if is_percent(code) or currency_of(code) is not None:
        return None
    plain, signs, place = _LOCALE.sub("", code), [""], 0
    while (part := _CODE.match(plain, place)) is not None:
        place = part.end()
        if part.lastindex is None:
            if part[0] == "#" and len(signs) == 1:
                return None
            signs.append("")
        else:
            signs[-1] += part[part.lastindex]
    return CodeFormat.of_signs(signs) if place == len(plain) else None


def _meaning(code: str) -> tuple[bool, CodeFormat | None, str | None]:
    """The traits of a format by which cells are other ones."""
    return is_percent(code), code_format(code), currency_of(code)


def _typed_by(code: str) -> Callable[[float], Cell] | None:
    """The maker of cells of numbers of a format with percents, a currency or codes."""
    if is_percent(code):
        return Percent
    currency = currency_of(code)
    if currency is not None:
        return partial(Amount, currency=currency)
    shown = code_format(code)
    return None if shown is None else shown.shown


def _used(rows: Iterator[Element], formats: Sequence[str]) -> tuple[dict[int, set[str]], set[int]]:
    """The formats of the numbers of each column, and the columns with formulas without a value."""
    codes: dict[int, set[str]] = {}
    uncalculated: set[int] = set()
    for row in rows:
        for column, cell in _cells(row):
            texts = {_name(each): each.text for each in cell}
            kind = cell.get("t", "n")
            if "f" in texts and not texts.get("v") and kind != "str":
                uncalculated.add(column)
            elif kind == "n" and texts.get("v"):
                codes.setdefault(column, set()).add(_format(cell.get("s", "0"), formats))
    return codes, uncalculated


def _add_later(
    codes: dict[int, set[str]],
    uncalculated: set[int],
    pieces: Iterator[bytes],
    formats: Sequence[str],
) -> None:
    """Add what all rows tell, as spreadsheet programs write their cells."""
    is_typed = any(map(_typed_by, set().union(*codes.values())))
    styles: set[tuple[bytes, bytes]] = set()
    for piece in pieces:
        if is_typed:
            styles.update(_NUMBER_CELL.findall(piece))
        if b"/f>" in piece or b"<f" in piece:
            found = _FORMULA_ALONE.findall(piece)
            uncalculated.update(column_of(letters.decode()) for letters in found)
    for letters, style in styles:
        code = _format(style.decode() or "0", formats)
        codes.setdefault(column_of(letters.decode()), set()).add(code)


def _summary(codes: Mapping[int, Set[str]], uncalculated: Set[int]) -> SheetHead:
    return SheetHead(
        percent=_columns(codes, is_percent),
        currency={
            column: sign
            for column, formats in codes.items()
            if (sign := _currency_of_all(formats)) is not None
        },
        codes={
            column: shown
            for column, (code, *others) in codes.items()
            if not others and (shown := code_format(code)) is not None
        },
        mixed={
            column
            for column, formats in codes.items()
            if len({_meaning(code) for code in formats}) > 1
        },
        uncalculated=uncalculated,
    )


def _cells(row: Element) -> Iterator[tuple[int, Element]]:
    """The cells of a row with their columns; one without a reference follows the one before."""
    column = -1
    for cell in row:
        found = _CELL.fullmatch(cell.get("r", ""))
        column = column + 1 if found is None else column_of(found[1])
        yield column, cell


def column_of(letters: str) -> int:
    """The place of a column, from its letters: 0 for `A`."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _format(style: str, formats: Sequence[str]) -> str:
    known = style.isdigit() and int(style) < len(formats)
    return formats[int(style)] if known else "General"


def _columns(shown: Mapping[int, Set[str]], matches: Callable[[str], bool]) -> Set[int]:
    """The columns all of whose formats match."""
    return {column for column, codes in shown.items() if all(map(matches, codes))}


_NUMBER_CELL = re.compile(
    rb"""<(?:\w+:)?c\s+r="([A-Z]{1,3})[0-9]+"(?:\s+s="([0-9]+)")?(?:\s+t="n")?\s*>"""
)
_FORMULA_ALONE = re.compile(
    rb"""<(?:\w+:)?c\s+r="([A-Z]{1,3})[0-9]+"(?![^>]*\st="str")[^>]*>\s*"""
    rb"""<(?:\w+:)?f\b[^>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*"""
    rb"""(?:<(?:\w+:)?v\s*(?:/>|></(?:\w+:)?v>)\s*)?</(?:\w+:)?c>"""
)
"""A cell with a formula and no value; its column."""
_LONG = rb"-?[0-9]{16,}(?:[.]0*)?"
_IN_A_PART = rb">\s*" + _LONG + rb"\s*<"
_WHOLE = re.compile(r"\s*(-?[0-9]{16,})(?:[.]0*)?\s*")
_OF_STYLE = (
    rb"""<(?:\w+:)?c\s[^>]*?\bs=["'](?:%s)["'][^>]*>\s*"""
    rb"""(?:<(?:\w+:)?f\b[^>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*)?<(?:\w+:)?v\b[^>]*>\s*(?:%s)"""
)
_ODD = {
    Shown.DAY: rb"-|0*(?:[0-5]?[0-9]|60)(?:[.<eE]|\s)",
    Shown.TIME: rb"-|[1-9]",
    Shown.SPAN: rb"",
}
"""The beginning of each number that `is_odd`, and of some others, by what its format shows."""
_ODD[Shown.MOMENT] = _ODD[Shown.DAY]
_OF_AN_ERROR = rb"""\st=["']e["']"""
_ERROR = re.compile(rb"""(<(?:\w+:)?c\s[^>]*?\bt=["'])e(?=["'])""")
UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, EOFError)
"""The errors of an archive that is damaged, or packed in a way that is not known."""
_PIECE = 256 * 1024
_OVERLAP = 16 * 1024
"""Bytes that a cell with a formula fits into."""

Exact = Mapping[int, Cell]
"""Cells by column, which counts from 0."""


class ExactSheet:
    """A sheet of calamine, but for the numbers that it does not read as their sheet shows them.

    Whole numbers beyond 2^53, written without an exponent, are identifiers, and become texts: a
    double holds few of them. Some numbers of days are other days, or none. Percentages and codes in
    `mixed` columns depend on the format of each cell. Errors are no texts that say the same. A
    sheet that has such a cell is read once more for them, in step with its rows. In other formats
    the texts in `errors` are errors.
    """

    def __init__(
        self, path: Path, sheet: CalamineSheet, mixed: Set[int], errors: Set[str] = frozenset()
    ) -> None:
        self.name, self.start, self.end = sheet.name, sheet.start, sheet.end
        self._path, self._sheet, self._mixed, self._errors = path, sheet, mixed, errors

    def iter_rows(self) -> Iterator[list[Any]]:
        """The rows from the first of the sheet on, from the first column that has a cell."""
        assert self.start is not None, "an empty sheet has no rows"
        exact_rows = iter(_exact_rows(self._path, self.name, self._mixed) if self._is_exact else ())
        row, exact = next(exact_rows, _AT_END)
        for place, values in enumerate(self._sheet.iter_rows()):
            while row < place:
                row, exact = next(exact_rows, _AT_END)
            if row == place:
                yield _with_exact(values, exact, self.start[1])
            elif self._errors.isdisjoint(values):
                yield values
            else:
                yield [ErrorCell(str(one)) if one in self._errors else one for one in values]

    @cached_property
    def _is_exact(self) -> bool:
        """True when a cell may be read otherwise: a sheet is searched once, and read often."""
        with suppress(*UNREADABLE), zipfile.ZipFile(self._path) as archive:
            part, patterns = part_of(archive, self.name), _Dates.of(archive).patterns()
            return bool(self._mixed) or (
                part is not None
                and any(each.search(piece) for piece in _pieces(archive, part) for each in patterns)
            )
        return False


def with_errors_as_texts(path: Path, sheet: str) -> Path | None:
    """A copy of a workbook, for what reads only some errors; None for a sheet without any."""
    copy = path.with_name(f"{path.name}.texts.xlsx")
    try:
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as target:
            part = part_of(archive, sheet)
            if part is None or not any(map(_ERROR.search, _pieces(archive, part))):
                return None
            for name in archive.namelist():
                content = archive.read(name)
                target.writestr(name, _ERROR.sub(rb"\1str", content) if name == part else content)
    except UNREADABLE:
        return None
    return copy


_AT_END: tuple[float, Exact] = (math.inf, {})


def _with_exact(values: list[Any], exact: Exact, first: int) -> list[Any]:
    """The values of a row from a first column on, with the cells that are known exactly."""
    return [exact.get(column, value) for column, value in enumerate(values, start=first)]


def long_digits(text: str) -> str | None:
    """The digits of a whole number that no double holds as it is written; None of another one."""
    whole = _WHOLE.fullmatch(text)
    return None if whole is None or abs(int(whole[1])) <= EXACT else whole[1]


@dataclass(frozen=True, slots=True)
class _Dates:
    """The forms of numbers of days by the styles of a workbook, and the day they count from."""

    forms: Mapping[str, Shown]
    unusual: Set[str]
    since_1904: bool

    @classmethod
    def of(cls, archive: zipfile.ZipFile) -> "_Dates":
        codes = {str(style): code for style, code in enumerate(_formats(archive))}
        forms = {style: form for style, code in codes.items() if (form := shown_by(code))}
        since = next(elements(archive, WORKBOOK, "workbookPr"), None)
        return cls(
            forms,
            {style for style in forms if is_unusual(codes[style])},
            since is not None and since.get("date1904") in {"1", "true"},
        )

    def read(self, style: str, text: str) -> Cell:
        """The cell of a number of days that calamine does not read; None of any other number."""
        form = self.forms.get(style)
        if form is None:
            return None
        try:
            value = float(text)
        except ValueError:
            return None
        odd = style in self.unusual or is_odd(value, form, self.since_1904)
        if not odd or not math.isfinite(value):
            return None
        return serial(value, form, self.since_1904)

    def patterns(self) -> Sequence[re.Pattern[bytes]]:
        """Patterns of which a sheet with such a cell has one; one for all is slower to search."""
        patterns = [_IN_A_PART, _OF_AN_ERROR]
        for form, odd in _ODD.items():
            of_it = {style for style, each in self.forms.items() if each is form} - self.unusual
            if of_it and odd:
                patterns.append(_OF_STYLE % ("|".join(sorted(of_it)).encode(), odd))
        if self.unusual:
            patterns.append(_OF_STYLE % ("|".join(sorted(self.unusual)).encode(), b""))
        return [*map(re.compile, patterns)]


@dataclass(frozen=True, slots=True)
class _Typed:
    """The makers of cells of the numbers of some columns, by the styles of a workbook."""

    columns: Set[int]
    makers: Mapping[str, Callable[[float], Cell]]

    @classmethod
    def of(cls, archive: zipfile.ZipFile, columns: Set[int]) -> "_Typed":
        codes = _formats(archive) if columns else ()
        makers = ((str(style), _typed_by(code)) for style, code in enumerate(codes))
        return cls(columns, {style: each for style, each in makers if each is not None})

    def read(self, column: int, style: str, text: str) -> Cell:
        """The cell of a number in such a column; None of any other."""
        maker = self.makers.get(style) if column in self.columns else None
        try:
            return None if maker is None else maker(float(text))
        except ValueError:
            return None


def _exact_rows(path: Path, sheet: str, mixed: Set[int]) -> Iterator[tuple[int, Exact]]:
    """The rows with such cells, from the first on, which counts from 0; none for other files."""
    with suppress(*UNREADABLE, expat.ExpatError), zipfile.ZipFile(path) as archive:
        part = part_of(archive, sheet)
        if part is None:
            return
        reader = _Reader(_Dates.of(archive), _Typed.of(archive, mixed))
        with archive.open(part) as file:
            while piece := file.read(_PIECE):
                reader.feed(piece)
                yield from reader.taken()


def _pieces(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """The content of a part; what lies on a border is in both pieces."""
    before = b""
    with archive.open(part) as file:
        while piece := file.read(_PIECE):
            yield before + piece
            before = piece[-_OVERLAP:]


class _Reader:
    """Reads the cells of an XLSX sheet; attributes give their places, else the cell before."""

    def __init__(self, dates: _Dates, typed: _Typed) -> None:
        self._dates, self._typed = dates, typed
        self._parser: Any = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = lambda name, attributes: self.start(
            _local(name), attributes
        )
        self._parser.EndElementHandler = lambda name: self.end(_local(name))
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = _refuse
        self.row = self.column = -1
        self.found: dict[int, Cell] = {}
        self.rows: list[tuple[int, Exact]] = []
        self._kind = ""
        self._style = ""
        self._value: list[str] | None = None

    def feed(self, piece: bytes) -> None:
        self._parser.Parse(piece)

    def taken(self) -> list[tuple[int, Exact]]:
        """The rows since they were taken last."""
        rows, self.rows = self.rows, []
        return rows

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "row":
            self.row = int(attributes.get("r", self.row + 2)) - 1
            self.column = -1
        elif name == "c":
            letters = attributes.get("r", "").rstrip("0123456789")
            self.column = column_of(letters) if letters else self.column + 1
            self._kind = attributes.get("t", "n")
            self._style = attributes.get("s", "0")
        elif name == "v" and self._kind in {"n", "e"}:
            self._value = []

    def end(self, name: str) -> None:
        if name == "v" and self._value is not None:
            exact = self._exact("".join(self._value))
            if exact is not None:
                self.found[self.column] = exact
            self._value = None
        elif name == "row" and self.found:
            self.rows.append((self.row, self.found))
            self.found = {}

    def _exact(self, written: str) -> Cell:
        """The cell of what is written; None of what calamine reads as it is."""
        if self._kind == "e":
            return ErrorCell(written.strip()) if written.strip() else None
        exact = long_digits(written) or self._dates.read(self._style, written)
        return self._typed.read(self.column, self._style, written) if exact is None else exact

    def _text(self, text: str) -> None:
        if self._value is not None:
            self._value.append(text)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse(*_declared: object) -> NoReturn:
    raise ValueError("A part is not plain XML.")
