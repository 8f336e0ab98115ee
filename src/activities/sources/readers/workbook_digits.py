"""The digits of long whole numbers in a sheet of an XLSX, of which calamine gives a double.

Numbers beyond 2^53, written without an exponent, are identifiers: a double holds few of them. A
sheet that has any is read once more for them, in step with its rows.
"""

import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from python_calamine import CalamineSheet

from activities.sources.readers.workbook_head import column_of, part_of
from models.core.values import EXACT

_LONG = rb"-?[0-9]{16,}(?:[.]0*)?"
_IN_A_PART = re.compile(rb">\s*" + _LONG + rb"\s*<")
_WHOLE = re.compile(r"\s*(-?[0-9]{16,})(?:[.]0*)?\s*")
_PIECE = 256 * 1024
_OVERLAP = 128

Digits = Mapping[int, str]
"""Texts of numbers by column, which counts from 0."""


class ExactSheet:
    """A sheet of calamine, but for its long whole numbers, which are texts of their digits."""

    def __init__(self, path: Path, sheet: CalamineSheet) -> None:
        self.name, self.start, self.end = sheet.name, sheet.start, sheet.end
        self._path, self._sheet = path, sheet

    def iter_rows(self) -> Iterator[list[Any]]:
        """The rows from the first of the sheet on, from the first column that has a cell."""
        assert self.start is not None, "an empty sheet has no rows"
        numbers = _long_numbers(self._path, self.name)
        row, texts = next(numbers, _AT_END)
        for place, values in enumerate(self._sheet.iter_rows()):
            while row < place:
                row, texts = next(numbers, _AT_END)
            yield _with_texts(values, texts, self.start[1]) if row == place else values


_AT_END: tuple[float, Digits] = (math.inf, {})


def _with_texts(values: list[Any], texts: Digits, first: int) -> list[Any]:
    """The values of a row from a first column on, with the texts of some of its numbers."""
    return [
        texts.get(column, value) if type(value) is float else value
        for column, value in enumerate(values, start=first)
    ]


def long_digits(text: str) -> str | None:
    """The digits of a whole number that no double holds as it is written; None of another one."""
    whole = _WHOLE.fullmatch(text)
    return None if whole is None or abs(int(whole[1])) <= EXACT else whole[1]


def _long_numbers(path: Path, sheet: str) -> Iterator[tuple[int, Digits]]:
    """The rows with such numbers, from the first on, which counts from 0; none for other files."""
    try:
        with zipfile.ZipFile(path) as archive:
            part = part_of(archive, sheet)
            if part is None or not any(map(_IN_A_PART.search, _pieces(archive, part))):
                return
            reader = _Reader()
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
        self._parser.StartElementHandler = lambda name, attributes: self.start(
            _local(name), attributes
        )
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

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "row":
            self.row = int(attributes.get("r", self.row + 2)) - 1
            self.column = -1
        elif name == "c":
            letters = attributes.get("r", "").rstrip("0123456789")
            self.column = column_of(letters) if letters else self.column + 1
            self._is_number = attributes.get("t", "n") == "n"
        elif name == "v" and self._is_number:
            self._value = []

    def end(self, name: str) -> None:
        if name == "v" and self._value is not None:
            digits = long_digits("".join(self._value))
            if digits is not None:
                self.found[self.column] = digits
            self._value = None
        elif name == "row" and self.found:
            self.rows.append((self.row, self.found))
            self.found = {}

    def _text(self, text: str) -> None:
        if self._value is not None:
            self._value.append(text)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse(*_declared: object) -> NoReturn:
    raise ValueError("The part is no plain XML.")
