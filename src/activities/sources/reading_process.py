"""The process that reads one foreign file: describes its table, checks it, fills in its rows.

It answers its parent over a connection. It receives no secret, reaches no network and no database,
and ends when its parent does.
"""

import os
import resource
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from multiprocessing.connection import Connection
from pathlib import Path

from pydantic_core import to_json

from activities.sources.readers.json_rows import inspect_page
from activities.sources.readers.opening import open_table, unpacked_size
from activities.sources.readers.table import Row, Table, column_named, refuse
from models.core.base import JsonObject
from models.core.keys import slug
from models.data.fields.rules.fields import TITLE_KEY, FieldKind, FieldSpec
from models.sources.tabular.rules.cells import shown_cell, storable
from models.sources.tabular.rules.columns import ColumnProfile, inferred_columns, profiles
from models.sources.tabular.rules.conversion import ConvertedRow, Lines, MappedColumn, RowConversion
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ErrorKind, ReadOptions, SourceProblem
from models.sources.tabular.rules.proposals import settle
from models.sources.tabular.rules.rejections import Rejection, Rejections

PROFILED = 10_000
"""Rows that a preview reads, and that decide how the cells of mapped columns are read."""
_PROFILED_CELLS = 300_000
_FEWEST_PROFILED = 1_000
_NO_VALUES = "The rows have no values."
_BY_CONVENTION = frozenset(
    {
        FieldKind.CHECKBOX,
        FieldKind.CURRENCY,
        FieldKind.DATE,
        FieldKind.DATETIME,
        FieldKind.NUMBER,
        FieldKind.PERCENT,
        FieldKind.RATING,
    }
)
"""The kinds of fields whose cells may be left open by the conventions that are declared."""


@dataclass(frozen=True, slots=True)
class Describe:
    """Asks for the columns of a table, its first rows, and the conventions of its cells.

    `profiled` rows decide the kinds of columns and the open conventions; None means all of them.
    `sources` are the kinds of the fields that columns are mapped to, by the column; without any,
    `targets` are the kinds of the fields of the schema, by their key. With `only_mapped` the other
    columns are ignored. `before` has the options of the last time, `row_keys` are the fields that
    identify a row.
    """

    sample: int
    profiled: int | None
    sources: Mapping[str, FieldKind] = field(default_factory=dict)
    targets: Mapping[str, FieldKind] = field(default_factory=dict)
    only_mapped: bool = False
    before: Conventions | None = None
    row_keys: Sequence[str] = ()


def described(table: Table, options: ReadOptions, request: Describe) -> JsonObject:
    """The answer to a request for a description."""
    rows = ([storable(value) for value in row] for row in table.rows())
    head = [*islice(rows, request.sample)]
    kinds = _kinds_of_fields(table, request)
    if request.only_mapped:
        places = [place for place, kind in enumerate(kinds) if kind in _BY_CONVENTION]
    else:
        places = [*range(len(table.headers))]
    headers = [table.headers[place] for place in places]
    most = _rows_to_profile(table, request.profiled) if places else 0
    counter = _RowCounter(islice(chain(head, rows), most))
    columns = profiles(
        headers,
        ([row[place] for place in places] for row in counter),
        options.declared,
        suggests_kinds=not request.only_mapped,
    )
    proposal = settle(
        headers, columns, options.declared, [kinds[place] for place in places], request.before
    )
    return {
        "headers": table.headers,
        **_facts(table),
        "columns": [
            asdict(column) for column in inferred_columns(headers, columns, request.row_keys)
        ],
        "rows": [
            {name: shown_cell(value) for name, value in zip(table.headers, row, strict=True)}
            for row in head
        ],
        "rowsRead": counter.count,
        "sampled": next(rows, None) is not None,
        "conventions": proposal.conventions.to_json(),
        "proposed": {
            "headerRow": table.header_row,
            "delimiter": table.delimiter,
            "encoding": table.encoding,
            **proposal.shown(),
        },
        "warning": table.note or (None if _has_values(columns) else _NO_VALUES),
        **formula_warning(table, range(len(table.headers))),
    }


def _facts(table: Table) -> JsonObject:
    """The facts of a table that its rows do not tell."""
    return {
        "sheetName": table.sheet_name,
        "sheets": table.sheets,
        "jsonPath": table.json_path,
        "stated": table.stated,
    }


def _has_values(columns: Sequence[ColumnProfile]) -> bool:
    """False when rows were looked at, and none of them has a value."""
    return not any(column.empty for column in columns) or any(column.filled for column in columns)


def _rows_to_profile(table: Table, asked: int | None) -> int | None:
    """The rows to profile: fewer of a wide table, unless all of them are requested."""
    if asked is None:
        return None
    return min(asked, max(_FEWEST_PROFILED, _PROFILED_CELLS // max(len(table.headers), 1)))


class _RowCounter:
    """Rows, and the number of them that were read."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row


def _kinds_of_fields(table: Table, request: Describe) -> Sequence[FieldKind | None]:
    """The kind of the field that each column fills; None where the column suggests it."""
    if not request.sources:
        return [request.targets.get(slug(name, "column")) for name in table.headers]
    mapped = {column_named(table.headers, name): kind for name, kind in request.sources.items()}
    return [mapped.get(name, FieldKind.TEXT) for name in table.headers]


def formula_warning(table: Table, places: Iterable[int]) -> dict[str, str]:
    """A warning when one of the columns holds formulas without calculated values."""
    named = [table.headers[place] for place in places if place in table.uncalculated]
    if not named:
        return {}
    which = ", ".join(named[:20])
    return {
        "warning": f"Formulas without a value are in the columns: {which}."
        " Open the workbook in a spreadsheet program and save it, so that they are calculated."
    }


DESCRIPTION, ROWS, PROBLEM, END = b"d", b"r", b"p", b"e"
"""The first byte of a message of this process."""
BATCH = 5_000
"""Rows of a message, which are written together while the next ones are converted."""
_FIRST_BATCH = 1_000
"""Rows of the first message: nothing is written before it arrives."""
_BLOCK = 500
"""Rows that are converted together."""
_MAX_EXAMPLES = 20
"""Rejected cells of a column that are shown."""
_BATCH_BYTES = 4 * 1024 * 1024
"""Bytes from which on a message is sent: the parent, which is not bounded, holds it."""

TOO_MUCH_MEMORY = (
    "Reading the file takes more memory than its size allows. Split it, or delete what is empty:"
    " a cell far from the others makes a sheet large."
)
UNREADABLE = "The source could not be parsed. Save it again, or in another format."

_QUICK = 256 * 1024
"""Bytes of a file that is read before it would be noticed."""
_NICENESS = 10
"""The niceness of reading larger files: requests that a client waits for precede imports."""
_MEMORY = 128 * 1024 * 1024
_MEMORY_PER_BYTE = 6
"""Bytes of memory that a reader may keep for each unpacked byte."""


@dataclass(frozen=True, slots=True)
class Check:
    """Asks which cells of the first rows have no form in the fields that columns fill.

    `sources` means the same as in `Fill`. With `row_keys` the answer has the values of these rows;
    of rows with the same keys the last one counts.
    """

    sources: Sequence[str | None]
    fields: Sequence[FieldSpec]
    conventions: Conventions
    rows: int
    row_keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Fill:
    """Asks for the rows as values of fields, after the first `skip` of them.

    `sources` names the header of the column of each field; a field without one is empty in every
    row. `lines` is the form of the answer. The first `rejections` of the rejected cells are
    returned.
    """

    sources: Sequence[str | None]
    fields: Sequence[FieldSpec]
    lines: Lines
    skip: int = 0
    conventions: Conventions = field(default_factory=Conventions)
    rejections: int = 0


@dataclass(frozen=True, slots=True)
class Inspect:
    """Asks for the number of rows of a page of JSON, and the value at the path of its cursor.

    Also asks for the columns among these that the page has.
    """

    cursor_path: str | None
    columns: Sequence[str] = ()


def read_file(connection: Connection, paths: Sequence[str], options: ReadOptions) -> None:
    """Answer the requests of the parent about one file, until it asks no more.

    Only JSON has several files, its pages.
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
        for answer in _answers(table, options, request):
            connection.send_bytes(answer)
        request = connection.recv()


def _answers(
    table: Table, options: ReadOptions, request: Describe | Check | Fill
) -> Iterator[bytes]:
    match request:
        case Describe():
            yield DESCRIPTION + to_json(described(table, options, request), inf_nan_mode="null")
        case Check():
            yield DESCRIPTION + to_json(_checked(table, request))
        case Fill():
            yield from _filled(table, request)


def _limit_memory(unpacked: int) -> None:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = held + _MEMORY + _MEMORY_PER_BYTE * unpacked
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if unpacked > _QUICK:
        os.nice(_NICENESS)


def _checked(table: Table, request: Check) -> JsonObject:
    """The cells and rows among the first ones that an import would leave out."""
    columns = _mapped(table, request.sources, request.fields)
    conversion = RowConversion(columns, request.conventions, request.row_keys)
    keyed: dict[str, JsonObject] = {}
    rejections = Rejections(table.headers, columns, request.conventions)
    counts: Counter[int] = Counter()
    examples: dict[str, list[Rejection]] = {column.spec.key: [] for column in columns}
    skipped, position = 0, 0
    for block in _blocks(islice(table.rows() if columns else iter(()), request.rows)):
        for row, converted in zip(block, conversion.convert_rows(block), strict=True):
            skipped += converted.skipped
            counts.update(converted.lost_columns)
            if request.row_keys and not converted.skipped:
                values = {TITLE_KEY: converted.title, **converted.data}
                keyed[repr([values.get(key) for key in request.row_keys])] = values
            if converted.lost_columns and any(
                counts[place] <= _MAX_EXAMPLES for place in converted.lost_columns
            ):
                for rejection in rejections.of(table.numbers.of(position), row, converted):
                    if (
                        rejection.column is not None
                        and len(examples[rejection.field_key or ""]) < _MAX_EXAMPLES
                    ):
                        examples[rejection.field_key or ""].append(rejection)
            position += 1
    return {
        "skippedCells": counts.total(),
        "skippedRowCount": skipped,
        "keyed": [*keyed.values()],
        "rejected": [
            {
                "sourcePath": request.sources[place],
                "fieldKey": columns[place].spec.key,
                "kind": columns[place].spec.kind,
                "count": count,
                "examples": [
                    {"row": example.row, "value": example.value, "reason": example.reason}
                    for example in examples[columns[place].spec.key]
                ],
            }
            for place, count in sorted(counts.items())
        ],
    }


def _mapped(
    table: Table, sources: Sequence[str | None], fields: Sequence[FieldSpec]
) -> list[MappedColumn]:
    places = {name: place for place, name in enumerate(table.headers)}
    return [
        MappedColumn(None if source is None else places[source], spec)
        for source, spec in zip(sources, fields, strict=True)
    ]


def _filled(table: Table, request: Fill) -> Iterator[bytes]:
    """Messages of rows for COPY, each preceded by its counts and its rejected cells."""
    if not table.headers:
        # JSON names its columns in its rows, and there are none.
        yield END + b"{}"
        return
    columns = _mapped(table, request.sources, request.fields)
    if warned := formula_warning(
        table, [column.place for column in columns if column.place is not None]
    ):
        refuse(warned["warning"])
    conversion = RowConversion(columns, request.conventions, request.lines.keys)
    rejections = Rejections(table.headers, columns, request.conventions)
    rows, remaining = table.rows(), request.rejections
    for block in _blocks(islice(rows, request.skip)):
        if conversion.grows:
            conversion.convert_rows(block)
    keys = [spec.key for spec in request.fields]
    batch, position = _Batch(keys, _FIRST_BATCH), request.skip
    for block in _blocks(rows):
        for row, made in zip(block, conversion.convert_rows(block), strict=True):
            number = table.numbers.of(position)
            batch.add(made, b"" if made.skipped else request.lines.line(position, number, made))
            if remaining and (made.lost_columns or made.skipped):
                rejected = [*islice(rejections.of(number, row, made), remaining)]
                batch.rejections += rejected
                remaining -= len(rejected)
            position += 1
            if batch.is_full:
                yield batch.message()
                batch = _Batch(keys)
    if batch.read:
        yield batch.message()
    grown = {
        key: [asdict(choice) for choice in new] for key, new in conversion.grown().items() if new
    }
    yield END + to_json(grown)


def _blocks(rows: Iterator[Row]) -> Iterator[Sequence[Row]]:
    """The rows, some at a time: cells of a column that are alike are converted together."""
    while block := [*islice(rows, _BLOCK)]:
        yield block


class _Batch:
    """The lines of one message, with the numbers of rows, of skipped rows and of lost cells.

    Lost cells are counted by the field of their column. `rejections` are the first rejected cells.
    """

    def __init__(self, keys: Sequence[str], rows: int = BATCH) -> None:
        self._keys, self._rows = keys, rows
        self.read = self._skipped = self._size = 0
        self._lost = Counter[int]()
        self._lines: list[bytes] = []
        self.rejections: list[Rejection] = []

    def add(self, row: ConvertedRow, line: bytes) -> None:
        self.read += 1
        self._skipped += row.skipped
        if row.lost_columns:
            self._lost.update(row.lost_columns)
        self._size += len(line)
        self._lines.append(line)

    @property
    def is_full(self) -> bool:
        return self.read == self._rows or self._size >= _BATCH_BYTES

    def message(self) -> bytes:
        lost = {self._keys[place]: count for place, count in self._lost.items()}
        counts = to_json([self.read, self._skipped, lost, self.rejections])
        return ROWS + counts + b"\n" + b"".join(self._lines)
