"""What every reader gives: the headers of a table, and its rows as often as they are asked for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from models.sources.tabular.rules.cells import Cell
from models.sources.tabular.rules.options import MAX_CELL_BYTES, MAX_COLUMNS, MAX_ROWS
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem

Row = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `rows` reads it from the first row below the headers, each as wide as they are."""

    headers: Sequence[str]
    rows: Callable[[], Iterator[Row]]
    sheet_name: str | None = None
    sheets: Sequence[str] = field(default=())
    json_path: str | None = None


def refuse(message: str, kind: ErrorKind = ErrorKind.PARSE) -> NoReturn:
    """Raise what stops the reading of a file."""
    raise SourceProblem(kind, message)


def column_letter(place: int) -> str:
    """`A` for the first column, as spreadsheets name it."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def headers_of(cells: Sequence[Cell] | None, width: int) -> list[str]:
    """The names of the columns: unique, and letters where the header has none."""
    if width > MAX_COLUMNS:
        refuse(f"The table has more than {MAX_COLUMNS} columns.", ErrorKind.TOO_LARGE)
    headers: list[str] = []
    for place in range(width):
        value = cells[place] if cells is not None and place < len(cells) else None
        name = " ".join(str(value).split())[:256] if value is not None else column_letter(place)
        unique, number = name, 1
        while unique in headers:
            number += 1
            unique = f"{name} ({number})"
        headers.append(unique)
    return headers


def bounded(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, up to the limits of a table. Raises SourceProblem beyond them."""
    for number, row in enumerate(rows):
        if number >= MAX_ROWS:
            refuse(f"The table has more than {MAX_ROWS:,} rows.", ErrorKind.TOO_LARGE)
        for value in row:
            # Most bytes of a character are four: short texts need no encoding to be measured.
            if isinstance(value, str) and len(value) * 4 > MAX_CELL_BYTES:
                check_cell(value)
        yield row


def check_cell(text: str) -> None:
    """Refuse a cell that is longer than a table may hold."""
    if len(text.encode(errors="replace")) > MAX_CELL_BYTES:
        refuse(f"A cell holds more than {MAX_CELL_BYTES // 1024} KiB.", ErrorKind.TOO_LARGE)
