"""Descriptions of tables: their columns, their first rows, and the conventions of their cells."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice

from activities.sources.readers.table import Row, Table, column_named
from models.core.base import JsonObject
from models.core.keys import slug
from models.data.fields.rules.kinds import FieldKind
from models.sources.tabular.rules.cells import shown_cell, storable
from models.sources.tabular.rules.columns import ColumnProfile, inferred_columns, profiles
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ReadOptions
from models.sources.tabular.rules.proposals import settle

PROFILED = 10_000
"""Rows that a preview looks at, and that decide how the cells of mapped columns are read."""
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

    `profiled` rows decide the kinds of columns and what is left open of the conventions; None means
    all of them. `sources` are the kinds of the fields that columns are mapped to, by the column;
    without any, `targets` are the kinds of the fields of the schema, by their key. With
    `only_mapped` the other columns are not looked at. `before` is how the source was read last,
    `row_keys` are the fields by which a row is told from the others.
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
        "sheetName": table.sheet_name,
        "sheets": table.sheets,
        "jsonPath": table.json_path,
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


def _has_values(columns: Sequence[ColumnProfile]) -> bool:
    """False when rows were looked at, and none of them has a value."""
    return not any(column.empty for column in columns) or any(column.filled for column in columns)


def _rows_to_profile(table: Table, asked: int | None) -> int | None:
    """The rows to look at: fewer of a wide table, unless all of them are asked for."""
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
    """A warning when one of the columns holds formulas that nobody has calculated yet."""
    named = [table.headers[place] for place in places if place in table.uncalculated]
    if not named:
        return {}
    which = ", ".join(named[:20])
    return {
        "warning": f"Formulas without a value are in the columns: {which}."
        " Open the workbook in a spreadsheet program and save it, so that they are calculated."
    }
