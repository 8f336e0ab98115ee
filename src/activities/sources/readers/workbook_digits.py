"""The digits of long whole numbers in a sheet of an XLSX or ODS, of which calamine gives a double.

Numbers beyond 2^53, written without an exponent, are identifiers: a double holds few of them. A
sheet that has any is read once more for them, in step with its rows.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from activities.sources.readers.workbook_head import column_of, part_of
from models.core.values import EXACT

_LONG = rb"-?[0-9]{16,}(?:[.]0*)?"
_IN_A_PART = re.compile(rb">\s*" + _LONG + rb"\s*<|value=[\"']" + _LONG + rb"[\"']")
_WHOLE = re.compile(r"\s*(-?[0-9]{16,})(?:[.]0*)?\s*")
_PIECE = 256 * 1024
_OVERLAP = 128
_ODS = "content.xml"

Digits = Mapping[int, str]
"""Texts of numbers by column, which counts from 0."""


def long_numbers(path: Path, sheet: str) -> Iterator[tuple[int, Digits]]:
    """The rows with such numbers, from the first on, which counts from 0; none for other files."""
    try:
        with zipfile.ZipFile(path) as archive:
            is_ods = _ODS in archive.namelist()
            part = _ODS if is_ods else part_of(archive, sheet)
            if part is None or not any(map(_IN_A_PART.search, _pieces(archive, part))):
                return
            reader: _Reader = _OdsReader(sheet) if is_ods else _Reader()
            with archive.open(part) as file:
                while piece := file.read(_PIECE):
                    reader.feed(piece)
                    yield from reader.taken()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
        return
    except expat.ExpatError:
        return


def _pieces(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """The content of a part; what lies on a border is in both pieces."""
    before = b""
    with archive.open(part) as file:
        while piece := file.read(_PIECE):
            yield before + piece
            before = piece[-_OVERLAP:]


class _Reader:
    """Reads the cells of an XLSX sheet; attributes say where they are, else what was before."""

    def __init__(self) -> None:
        self._parser: Any = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = lambda name, given: self.start(_local(name), given)
        self._parser.EndElementHandler = lambda name: self.end(_local(name))
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = _refuse
        self.row = self.column = -1
        self.found: dict[int, str] = {}
        self.rows: list[tuple[int, Digits]] = []
        self._is_number = False
        self._value: list[str] | None = None

    def feed(self, piece: bytes) -> None:
        self._parser.Parse(piece)

    def taken(self) -> list[tuple[int, Digits]]:
        """The rows since they were taken last."""
        rows, self.rows = self.rows, []
        return rows

    def start(self, name: str, given: Mapping[str, str]) -> None:
        if name == "row":
            self.row = int(given.get("r", self.row + 2)) - 1
            self.column = -1
        elif name == "c":
            letters = given.get("r", "").rstrip("0123456789")
            self.column = column_of(letters) if letters else self.column + 1
            self._is_number = given.get("t", "n") == "n"
        elif name == "v" and self._is_number:
            self._value = []

    def end(self, name: str) -> None:
        if name == "v" and self._value is not None:
            self.keep("".join(self._value), 1)
            self._value = None
        elif name == "row" and self.found:
            self.rows.append((self.row, self.found))
            self.found = {}

    def keep(self, written: str, times: int) -> None:
        """Take the number of a cell, and of those that repeat it."""
        whole = _WHOLE.fullmatch(written)
        if whole is not None and abs(int(whole[1])) > EXACT:
            self.found.update(dict.fromkeys(range(self.column, self.column + times), whole[1]))

    def _text(self, text: str) -> None:
        if self._value is not None:
            self._value.append(text)


_MOST_COLUMNS = 16_384


class _OdsReader(_Reader):
    """Reads the cells of one table of an ODS, whose rows and cells may stand for several."""

    def __init__(self, sheet: str) -> None:
        super().__init__()
        self._sheet, self._inside, self._times = sheet, False, 1

    def start(self, name: str, given: Mapping[str, str]) -> None:
        attributes = {_local(key): value for key, value in given.items()}
        if name == "table":
            self._inside = attributes.get("name") == self._sheet
        elif name == "table-row":
            self._times, self.column = int(attributes.get("number-rows-repeated", 1)), 0
        elif name in {"table-cell", "covered-table-cell"} and self._inside:
            times = min(int(attributes.get("number-columns-repeated", 1)), _MOST_COLUMNS)
            if attributes.get("value-type") == "float":
                self.keep(attributes.get("value", ""), times)
            self.column += times

    def end(self, name: str) -> None:
        if name == "table":
            self._inside = False
        elif name == "table-row" and self._inside:
            for _ in range(self._times if self.found else 0):
                self.row += 1
                self.rows.append((self.row, self.found))
            self.row += 0 if self.found else self._times
            self.found = {}


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse(*_declared: object) -> NoReturn:
    raise ValueError("The part is no plain XML.")
