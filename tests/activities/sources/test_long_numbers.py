"""Whole numbers that no double holds keep their digits, or are counted, in every format."""

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities.sources.database_process import DatabaseAddress, DatabaseQuery, write_rows
from activities.sources.readers import workbook_xml
from activities.sources.readers.opening import open_table
from models.core.values import InvalidValueError, exact_number
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.sources.connections.providers import ProviderName
from models.sources.tabular.rules.cells import Cell
from models.sources.tabular.rules.columns import inferred_columns, profiles
from models.sources.tabular.rules.conversion import MappedColumn, RowConversion, StagedLines
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ReadOptions, TableFormat
from tests.support.exploring import examples
from tests.support.workbooks import SHEET, number, packed, sheet, text

K = FieldKind
IDS = ["1147386954405658704", "1147386954405658705", "1147386954405658706"]
Door = Callable[[Path, Sequence[str]], tuple[Path, ReadOptions]]
"""Writes numbers, given as texts of a number, below the header `id`."""


def _json(path: Path, numbers: Sequence[str]) -> tuple[Path, ReadOptions]:
    rows = ", ".join(f'{{"id": {one}}}' for one in numbers)
    path.write_text(f'{{"rows": [{rows}]}}')
    return path, ReadOptions(TableFormat.JSON)


def _ndjson(path: Path, numbers: Sequence[str]) -> tuple[Path, ReadOptions]:
    path.write_text("".join(f'{{"id": {one}}}\n' for one in numbers))
    return path, ReadOptions(TableFormat.NDJSON)


def _csv(path: Path, numbers: Sequence[str]) -> tuple[Path, ReadOptions]:
    path.write_text("id\n" + "".join(f"{one}\n" for one in numbers))
    return path, ReadOptions(TableFormat.CSV)


def _xlsx(path: Path, numbers: Sequence[str]) -> tuple[Path, ReadOptions]:
    cells = [number(f"B{place}", one) for place, one in enumerate(numbers, start=2)]
    path.write_bytes(packed({SHEET: sheet(text("B1", "id"), *cells)}))
    return path, ReadOptions(TableFormat.XLSX)


def _xlsx_without_references(path: Path, numbers: Sequence[str]) -> tuple[Path, ReadOptions]:
    rows = [f"<c/><c><f>1</f><v>{one}</v></c>" for one in numbers]
    path.write_bytes(packed({SHEET: sheet(text("B1", "id"), *rows)}))
    return path, ReadOptions(TableFormat.XLSX)


def _ods(path: Path, numbers: Sequence[str]) -> tuple[Path, ReadOptions]:
    names = (
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    )
    head = '<table:table-cell office:value-type="string"><text:p>id</text:p></table:table-cell>'
    cells = "".join(
        '<table:table-row><table:table-cell table:number-columns-repeated="2"/>'
        f'<table:table-cell office:value-type="float" office:value="{one}"><text:p>1E+18</text:p>'
        "</table:table-cell></table:table-row>"
        for one in numbers
    )
    empty = '<table:table-cell table:number-columns-repeated="2"/>'
    rows = f'<table:table-row table:number-rows-repeated="3">{empty}</table:table-row>'
    content = (
        f"<office:document-content {names}><office:body><office:spreadsheet>"
        '<table:table table:name="S">'
        f"{rows}<table:table-row>{empty}{head}</table:table-row>{cells}"
        "</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", content)
    path.write_bytes(written.getvalue())
    return path, ReadOptions(TableFormat.ODS)


def _sqlite(path: Path, numbers: Sequence[str]) -> tuple[Path, ReadOptions]:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ids (id INTEGER)")
        connection.executemany("INSERT INTO ids VALUES (?)", [(int(one),) for one in numbers])
        connection.commit()
    return path, ReadOptions(TableFormat.JSON, query="SELECT id FROM ids ORDER BY rowid")


def _server(path: Path, numbers: Sequence[str]) -> tuple[Path, ReadOptions]:
    """The rows that a driver gives of a bigint, as they are written down."""
    address = DatabaseAddress(ProviderName.POSTGRESQL, "", 0, "", "", "off")
    asked = DatabaseQuery(address, "", "", (), 1.0, 1_000_000, 10**9)
    write_rows(asked, ["id"], [(int(one),) for one in numbers], path)
    return path, ReadOptions(TableFormat.NDJSON)


DOORS: dict[str, Door] = {
    "json": _json,
    "ndjson": _ndjson,
    "csv": _csv,
    "xlsx": _xlsx,
    "xlsx without references": _xlsx_without_references,
    "ods": _ods,
    "sqlite": _sqlite,
    "server": _server,
}


class Read(NamedTuple):
    kind: FieldKind
    """What the column suggests."""
    samples: list[Any]
    inferred: list[Any]
    """The values in the field that it suggests."""
    numbers: list[Any]
    """The values in a number field; those that are counted are None."""
    lost: int


def read(path: Path, door: str, written: Sequence[str]) -> Read:
    file, options = DOORS[door](path, written)
    table = open_table([file], options)
    rows = [*table.rows()]
    (column,) = inferred_columns(table.headers, profiles(table.headers, rows, Conventions()))
    field = FieldSpec(id=UUID(int=0), key="value", label="", kind=column.kind)
    inferred = RowConversion([MappedColumn(0, field)], Conventions()).convert_rows(rows)
    asked = FieldSpec(id=UUID(int=0), key="value", label="", kind=K.NUMBER)
    made = RowConversion([MappedColumn(0, asked)], Conventions()).convert_rows(rows)
    return Read(
        column.kind,
        list(column.samples),
        [row.data.get("value") for row in inferred],
        [row.data.get("value") for row in made],
        sum(len(row.lost_columns) for row in made),
    )


@pytest.mark.parametrize("door", DOORS)
def test_a_column_of_long_identifiers_is_text(door: str, tmp_path: Path) -> None:
    found = read(tmp_path / "file", door, IDS)
    assert (found.kind, found.samples, found.inferred) == (K.TEXT, IDS, IDS)
    assert (found.numbers, found.lost) == ([None] * 3, 3)


@pytest.mark.parametrize("door", DOORS)
def test_short_and_long_numbers_together_are_text(door: str, tmp_path: Path) -> None:
    written = ["7", "-1147386954405658705", "9007199254740993", "1234567890123456", "0"]
    found = read(tmp_path / "file", door, written)
    assert (found.kind, found.inferred) == (K.TEXT, written)
    assert (found.numbers, found.lost) == ([7, None, None, 1234567890123456, 0], 2)


@pytest.mark.parametrize("door", DOORS)
def test_short_numbers_stay_numbers(door: str, tmp_path: Path) -> None:
    found = read(tmp_path / "file", door, ["7", "-999999999999999", "0"])
    assert (found.kind, found.inferred, found.lost) == (K.NUMBER, [7, -999999999999999, 0], 0)


FRACTIONS: list[tuple[str, Any]] = [
    ("1e400", None),
    ("-0", 0),
    ("-0.0", 0),
    ("1.0", 1),
    ("0.1", 0.1),
    ("0.30000000000000004", 0.30000000000000004),
    ("0.10000000000000000555", 0.1),
    ("6.02e23", 6.02e23),
    ("1e15", 10**15),
    ("100.000000000000000000000", 100),
    ("3.141592653589793238", None),
    ("-12345678901.12345678901", None),
    ("1147386954405658704.0", None),
    ("1.147386954405658704e18", None),
    ("9.007199254740993e15", None),
]


@pytest.mark.parametrize("door", ["json", "ndjson", "csv"])
@pytest.mark.parametrize(("written", "expected"), FRACTIONS)
def test_fractions_and_exponents_are_the_numbers_they_say(
    door: str, written: str, expected: Any, tmp_path: Path
) -> None:
    found = read(tmp_path / "file", door, [written, "2.5"])
    digits = [None if one is None else Decimal(repr(one)) for one in (*found.numbers, expected)]
    assert digits[:2] == [digits[2], Decimal("2.5")]
    assert found.lost == (expected is None)


@pytest.mark.parametrize("door", ["json", "ndjson", "csv"])
def test_fractions_that_no_double_holds_are_text(door: str, tmp_path: Path) -> None:
    written = ["3.141592653589793238", "2.718281828459045235"]
    found = read(tmp_path / "file", door, written)
    assert (found.kind, found.inferred) == (K.TEXT, written)


def test_digits_within_a_json_string_are_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    rows = [{"a": 'x "3.141592653589793238', "b": [1147386954405658705], "c": "1.1"}]
    path.write_text(json.dumps(rows).replace('"1.1"', "3.141592653589793238"))
    table = open_table([path], ReadOptions(TableFormat.JSON))
    assert [*table.rows()] == [
        ['x "3.141592653589793238', [1147386954405658705], "3.141592653589793238"]
    ]


def test_a_workbook_has_its_numbers_with_exponents(tmp_path: Path) -> None:
    found = read(tmp_path / "file", "xlsx", ["6.02214076E+23", "1E+20", "1.5"])
    assert (found.kind, found.numbers) == (K.NUMBER, [6.02214076e23, 1e20, 1.5])


def test_rows_whose_keys_do_not_fit_are_skipped_and_never_merged() -> None:
    fields = [FieldSpec(id=UUID(int=0), key=key, label="", kind=K.NUMBER) for key in ("id", "n")]
    columns = [MappedColumn(place, field) for place, field in enumerate(fields)]
    lines = StagedLines(uuid4(), ["id"])
    cells: list[list[Cell]] = [[one, 1] for one in IDS]
    cells += [[7, IDS[0]], [None, 2]]
    rows = RowConversion(columns, Conventions(), lines.keys).convert_rows(cells)
    counts = [(row.skipped, len(row.lost_columns)) for row in rows]
    assert counts == [(True, 1)] * 3 + [(False, 1), (True, 0)]
    unkeyed = RowConversion(columns, Conventions()).convert_rows([[IDS[0], 1]])
    assert (unkeyed[0].skipped, len(unkeyed[0].lost_columns)) == (False, 1)


_WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**17), 10**17) | st.integers(-99, 99)


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.sampled_from(sorted(DOORS)), st.lists(_WHOLE, min_size=1, max_size=4))
def test_a_whole_number_has_its_digits_or_is_counted(
    tmp_path: Path, door: str, numbers: list[int]
) -> None:
    written = [str(one) for one in numbers]
    found = read(tmp_path / "file", door, written)
    assert [str(one) for one in found.inferred] == written
    for number_in, number_out in zip(numbers, found.numbers, strict=True):
        assert number_out in (number_in, None)
    assert found.lost == found.numbers.count(None)
    assert None not in [
        got for given_, got in zip(numbers, found.numbers, strict=True) if abs(given_) < 2**53
    ]


@given(st.decimals(allow_nan=False, allow_infinity=False) | st.integers().map(str))
def test_a_number_is_the_one_that_is_written(written: Any) -> None:
    value = Decimal(written)
    try:
        found = exact_number(value)
    except InvalidValueError:
        return
    if isinstance(found, int):
        assert found == value
    else:
        assert float(str(value)) == found


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1e-400", "1e-400"),
        ("-2.5E-999", "-2.5E-999"),
        ("1e-100", 1e-100),
        ("2.5e-300", 2.5e-300),
        ("0e-400", 0),
        (r'"a\ud83d"', "a\ufffd"),
        (r'"\udc00 \ud83d\ude00 \\ud83d"', "\ufffd \U0001f600 \\ud83d"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
    ],
)
def test_small_numbers_and_halves_of_characters(tmp_path: Path, written: str, read: object) -> None:
    (tmp_path / "file").write_text(f'[{{"a": {written}, "b": "1e-400"}}]')
    table = open_table([tmp_path / "file"], ReadOptions(TableFormat.JSON))
    assert [*table.rows()] == [[read, "1e-400"]]


@pytest.mark.parametrize("numbers", [IDS, ["1", "2", "3"]], ids=["exact", "plain"])
def test_a_sheet_is_searched_once_however_often_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: list[str]
) -> None:
    searched: list[str] = []
    pieces = workbook_xml._pieces

    def search(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
        searched.append(part)
        return pieces(archive, part)

    monkeypatch.setattr(workbook_xml, "_pieces", search)
    path, options = _xlsx(tmp_path / "numbers", numbers)
    table = open_table([path], options)
    readings = [[str(row[0]) for row in table.rows()] for _ in range(3)]
    assert readings == [numbers] * 3
    assert searched == [SHEET]
