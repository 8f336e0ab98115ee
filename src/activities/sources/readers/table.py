"""The table every reader gives: its headers, and its rows, which can be read repeatedly."""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import IO, AnyStr, NoReturn

from models.sources.tabular.rules import options as file_options
from models.sources.tabular.rules.cells import Cell, ErrorCell

Row = Sequence[Cell]
_LONGEST_LINE = file_options.MAX_COLUMNS * file_options.MAX_CELL_BYTES
_SHORT = file_options.MAX_CELL_BYTES // 4
"""Characters of a text that needs no encoding to be measured: most bytes of one are four."""
_LONGEST_HEADER = 250
"""Characters of a header, so that a mapping has room for a number that makes it unique."""


@dataclass(slots=True)
class RowNumbers:
    """The rows of a file, counted from 1, that the rows of its table come from.

    A reader notes each as it goes; what it passed over shows in the distance to those before.
    """

    read: int = 0
    _from: list[int] = field(default_factory=list)
    _distances: list[int] = field(default_factory=list)

    def restart(self) -> None:
        """Close the reader, to read it again."""
        self.read = 0
        self._from.clear()
        self._distances.clear()

    def note(self, number: int) -> None:
        """Take the next row into account, which is this one of the file."""
        if not self._distances or number - self.read != self._distances[-1]:
            self._from.append(self.read)
            self._distances.append(number - self.read)
        self.read += 1

    def of(self, place: int) -> int:
        """The row of the file at a place of the table, which counts from 0."""
        known = bisect_right(self._from, place)
        return place + (self._distances[known - 1] if known else 1)


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `rows` reads it from the first row below the headers, each as wide as they are.

    `header_row`, `delimiter` and `encoding` are as the reader used them, as far as the format has
    them. `note` warns of a possible fault.
    """

    headers: Sequence[str]
    rows: Callable[[], Iterator[Row]]
    sheet_name: str | None = None
    sheets: Sequence[str] = field(default=())
    uncalculated: Set[int] = frozenset()
    """The places of columns with formulas that have no value."""
    json_path: str | None = None
    header_row: int | None = None
    delimiter: str | None = None
    encoding: str | None = None
    note: str | None = None
    stated: int | None = None
    """The number of all rows, as the source states it."""
    numbers: RowNumbers = field(default_factory=RowNumbers)


def refuse(message: str, kind: file_options.ErrorKind = file_options.ErrorKind.PARSE) -> NoReturn:
    """Raise what stops the reading of a file."""
    raise file_options.SourceProblem(kind, message)


def column_letter(place: int) -> str:
    """`A` for the first column, as spreadsheets name it."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def column_named(headers: Sequence[str], source: str) -> str | None:
    """The header of the column that a mapping names: by itself, or by its letter."""
    if source in headers:
        return source
    letters = {column_letter(place): name for place, name in enumerate(headers)}
    return letters.get(source.upper())


def header(value: Cell) -> str:
    """A cell as the name of a column: in one line, without what cannot be shown."""
    if value is None or isinstance(value, ErrorCell):
        return ""
    shown = "".join(one if one.isprintable() else " " for one in str(value))
    return " ".join(shown.split())[:_LONGEST_HEADER]


def headers_of(cells: Sequence[Cell] | None, width: int) -> list[str]:
    """The names of the columns: unique, and letters where the header has none."""
    if width > file_options.MAX_COLUMNS:
        refuse(
            f"The table has more than {file_options.MAX_COLUMNS} columns.",
            file_options.ErrorKind.TOO_LARGE,
        )
    headers: list[str] = []
    for place in range(width):
        value = cells[place] if cells is not None and place < len(cells) else None
        headers.append(unique(header(value) or column_letter(place), headers))
    return headers


def unique(name: str, names: Container[str]) -> str:
    """The name of a column, numbered if another has it."""
    free, number = name, 1
    while free in names:
        number += 1
        free = f"{name} ({number})"
    return free


def bounded_lines(file: IO[AnyStr]) -> Iterator[AnyStr]:
    """The lines of a file. Raises SourceProblem for one that is longer than a row may be."""
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE:
            longest = _LONGEST_LINE // 1024**2
            refuse(
                f"Line {number} is longer than {longest} MiB. Check the format.",
                file_options.ErrorKind.TOO_LARGE,
            )
        yield line


def check_count(rows: int) -> None:
    """Refuse more rows than a table may have."""
    if rows > file_options.MAX_ROWS:
        refuse(
            f"The table has more than {file_options.MAX_ROWS:,} rows.",
            file_options.ErrorKind.TOO_LARGE,
        )


def bounded(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, up to the limits of a table. Raises SourceProblem beyond them."""
    for number, row in enumerate(rows, start=1):
        check_count(number)
        for value in row:
            if isinstance(value, str) and len(value) > _SHORT:
                check_cell(value)
        yield row


def check_cell(text: str) -> None:
    """Refuse a cell that is longer than a table may hold."""
    if len(text.encode(errors="replace")) > file_options.MAX_CELL_BYTES:
        refuse(
            f"A cell is larger than {file_options.MAX_CELL_BYTES // 1024} KiB.",
            file_options.ErrorKind.TOO_LARGE,
        )
