"""The process that reads one foreign file: bounded in memory and time, alone with what it parses.

It answers its parent over a connection. It is told nothing secret, reaches no network and no
database, and ends when its parent does.
"""

import os
import resource
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection
from pathlib import Path

from pydantic_core import to_json

from activities.sources.readers.json_rows import inspect_page
from activities.sources.readers.opening import open_table, unpacked_size
from activities.sources.readers.table import Row, Table, refuse
from models.data.fields.rules.fields import FieldSpec
from models.sources.tabular.rules.cells import shown_cell, storable
from models.sources.tabular.rules.columns import (
    InferredColumn,
    inferred_columns,
    profiles,
)
from models.sources.tabular.rules.lines import Lines
from models.sources.tabular.rules.options import ReadOptions
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from models.sources.tabular.rules.row_conversion import (
    ConvertedRow,
    MappedColumn,
    RowConversion,
)

DESCRIPTION, ROWS, PROBLEM, END = b"d", b"r", b"p", b"e"
"""The first byte of a message of this process."""
BATCH = 5_000
"""Rows of a message, which are written together while the next ones are converted."""
_FIRST_BATCH = 1_000
"""Rows of the first message: until it is there, nothing is written."""
_BLOCK = 500
"""Rows that are converted together."""
_BATCH_BYTES = 4 * 1024 * 1024
"""Bytes from which on a message is sent: the parent, which is not bounded, holds it."""

TOO_MUCH_MEMORY = (
    "Reading the file takes more memory than its size allows. Split it, or delete what is empty:"
    " a cell far from the others makes a sheet large."
)
UNREADABLE = "The file breaks what reads it. Save it again, or in another format."

_MEMORY = 128 * 1024 * 1024
_MEMORY_PER_BYTE = 6
"""Bytes of memory that a reader may keep for each unpacked byte."""


@dataclass(frozen=True, slots=True)
class Describe:
    """Asks for the columns of a table and its first rows.

    `profiled` rows decide the kinds of columns; None means all of them.
    """

    sample: int
    profiled: int | None


@dataclass(frozen=True, slots=True)
class Fill:
    """Asks for the rows as values of fields, after the first `skip` of them.

    `sources` names the header of the column of each field; a field without one is empty in every
    row. `lines` is the form of the answer.
    """

    sources: Sequence[str | None]
    fields: Sequence[FieldSpec]
    lines: Lines
    skip: int = 0


@dataclass(frozen=True, slots=True)
class Inspect:
    """Asks for the number of rows of a page of JSON, and the value at the path of its cursor.

    Also asks for the columns among these that the page has.
    """

    cursor_path: str | None
    columns: Sequence[str] = ()


def read_file(connection: Connection, paths: Sequence[str], options: ReadOptions) -> None:
    """Answer the requests of the parent about one file, until it asks no more.

    Only JSON comes in several files, its pages.
    """
    files = [Path(path) for path in paths]
    # A library that panics at what it reads says so in two lines, not with all that called it.
    os.environ["RUST_BACKTRACE"] = "0"
    try:
        _limit_memory(max(unpacked_size(file, options) for file in files))
        _answer(connection, files, options)
    except SourceProblem as problem:
        _refuse(connection, problem.kind, problem.message)
    except MemoryError:
        _refuse(connection, ErrorKind.TOO_LARGE, TOO_MUCH_MEMORY)
    except (EOFError, BrokenPipeError):
        return
    except BaseException as error:
        # A panic of a library is no Exception.
        if isinstance(error, Exception):
            raise
        _refuse(connection, ErrorKind.PARSE, UNREADABLE)


def _refuse(connection: Connection, kind: ErrorKind, message: str) -> None:
    connection.send_bytes(PROBLEM + to_json({"kind": kind, "message": message}))


def _answer(connection: Connection, files: Sequence[Path], options: ReadOptions) -> None:
    request = connection.recv()
    if isinstance(request, Inspect):
        found = inspect_page(files[0], options, request.cursor_path, request.columns)
        connection.send_bytes(DESCRIPTION + to_json(found))
        return
    table = open_table(files, options)
    while request is not None:
        answers = _described if isinstance(request, Describe) else _filled
        for answer in answers(table, options, request):
            connection.send_bytes(answer)
        request = connection.recv()


def _limit_memory(unpacked: int) -> None:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = held + _MEMORY + _MEMORY_PER_BYTE * unpacked
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Whoever waits for an answer goes before whoever imports.
    os.nice(10)


def _described(table: Table, options: ReadOptions, request: Describe) -> Iterator[bytes]:
    rows = ([storable(value) for value in row] for row in table.rows())
    head = [*islice(rows, request.sample)]
    looked_at = islice(chain(head, rows), request.profiled)
    found = profiles(table.headers, looked_at, options.conventions)
    columns = inferred_columns(table.headers, found)
    yield DESCRIPTION + to_json(
        {
            "profiled": max((one.filled + one.empty for one in found), default=0),
            "sheetName": table.sheet_name,
            "sheets": table.sheets,
            "jsonPath": table.json_path,
            "columns": [asdict(column) for column in columns],
            "rows": [
                {name: shown_cell(value) for name, value in zip(table.headers, row, strict=True)}
                for row in head
            ],
            "skippedCells": _lost(table, columns, options, request.profiled),
            **_warned(table, range(len(table.headers))),
        },
        inf_nan_mode="null",
    )


def _lost(
    table: Table, columns: Sequence[InferredColumn], options: ReadOptions, profiled: int | None
) -> int:
    """Count the cells of the first rows that an import into the suggested fields leaves empty."""
    if profiled is None:
        # The import itself asks, which counts them as it goes.
        return 0
    mapped = [MappedColumn(place, one.field) for place, one in enumerate(columns)]
    conversion = RowConversion(mapped, options.conventions)
    return sum(len(conversion.convert(row).lost) for row in islice(table.rows(), profiled))


def _filled(table: Table, options: ReadOptions, request: Fill) -> Iterator[bytes]:
    """Messages of rows for COPY, each led by its counts: rows, skipped rows, lost cells."""
    if not table.headers:
        # JSON names its columns in its rows, and there are none.
        yield END + b"{}"
        return
    columns = [
        MappedColumn(None if source is None else list(table.headers).index(source), spec)
        for source, spec in zip(request.sources, request.fields, strict=True)
    ]
    if warned := _warned(table, [one.place for one in columns if one.place is not None]):
        refuse(warned["warning"])
    conversion = RowConversion(columns, options.conventions)
    rows = table.rows()
    skipped = _blocks(islice(rows, request.skip))
    for block in skipped:
        if conversion.grows:
            conversion.convert_rows(block)
    batch, position = _Batch(_FIRST_BATCH), request.skip
    for block in _blocks(rows):
        for made in conversion.convert_rows(block):
            batch.add(made, b"" if made.skipped else request.lines.line(position, made))
            position += 1
            if batch.is_full:
                yield batch.message()
                batch = _Batch()
    if batch.read:
        yield batch.message()
    grown = {key: [asdict(one) for one in new] for key, new in conversion.grown().items() if new}
    yield END + to_json(grown)


def _blocks(rows: Iterator[Row]) -> Iterator[Sequence[Row]]:
    """The rows, some at a time: cells of a column that are alike are converted together."""
    while block := [*islice(rows, _BLOCK)]:
        yield block


class _Batch:
    """The lines of one message: of how many rows, how many made none, which cells were lost."""

    def __init__(self, rows: int = BATCH) -> None:
        self._rows = rows
        self.read = self._skipped = self._size = 0
        self._lost = Counter[str]()
        self._lines: list[bytes] = []

    def add(self, row: ConvertedRow, line: bytes) -> None:
        self.read += 1
        self._skipped += row.skipped
        if row.lost:
            self._lost.update(row.lost)
        self._size += len(line)
        self._lines.append(line)

    @property
    def is_full(self) -> bool:
        return self.read == self._rows or self._size >= _BATCH_BYTES

    def message(self) -> bytes:
        counts = to_json([self.read, self._skipped, self._lost])
        return ROWS + counts + b"\n" + b"".join(self._lines)


def _warned(table: Table, places: Iterable[int]) -> dict[str, str]:
    """A warning when one of the columns holds formulas that nobody has calculated yet."""
    named = [table.headers[place] for place in places if place in table.uncalculated]
    if not named:
        return {}
    which = ", ".join(named[:20])
    return {
        "warning": f"Formulas without a value are in the columns: {which}."
        " Open the workbook in a spreadsheet program and save it, so that they are calculated."
    }
