"""A preview counts the cells that the import of the same file leaves blank."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from activities.data_source_runs.inputs import mapping_of
from activities.sources.readers.opening import open_table
from activities.sources.readers.workbook_xml import ExactSheet
from activities.sources.reading import reading
from activities.sources.reading_process import PROFILED, Check, Describe, Fill, _answers
from models.data.fields.rules.fields import FieldKind, FieldSpec, Option
from models.data.fields.rules.values import KIND_RULES
from models.sources.data_source_runs.targets import fields_of
from models.sources.tabular.rules.cells import ErrorCell
from models.sources.tabular.rules.conversion import StagedLines
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ReadOptions, SourceProblem, TableFormat
from models.sources.tabular.rules.rejections import MAX_REJECTIONS
from tests.support.workbooks import (
    SHEET,
    number,
    open_cell,
    open_document,
    open_sheet,
    packed,
    sheet,
    text,
)

K = FieldKind
RUN = UUID(int=1)
OPEN = Option(id="open", key="open", name="Open", color="gray", order=0)


def answered(path: Path, request: Any, options: ReadOptions | None = None) -> list[bytes]:
    """The answers of the reading process, without the process."""
    asked = options or ReadOptions(TableFormat.CSV, delimiter=",")
    return [*_answers(open_table([path], asked), asked, request)]


def field(key: str, label: str, kind: FieldKind, **more: Any) -> FieldSpec:
    return FieldSpec(id=RUN, key=key, label=label, kind=kind, **more)


def described(path: Path, **more: Any) -> Any:
    [answer] = answered(path, Describe(20, PROFILED, **more))
    return from_json(answer[1:])


def checked(path: Path, found: Any, sources: list[str], fields: list[FieldSpec]) -> Any:
    conventions = Conventions.of(found["conventions"])
    [answer] = answered(path, Check(sources, fields, conventions, found["rowsRead"]))
    return from_json(answer[1:])


def filled(path: Path, found: Any, sources: list[str], fields: list[FieldSpec]) -> Any:
    """The counts of an import, and what it keeps of its rejections."""
    conventions = Conventions.of(found["conventions"])
    request = Fill(sources, fields, StagedLines(RUN), 0, conventions, MAX_REJECTIONS)
    counts, kept = [0, 0, 0], []
    for answer in answered(path, request):
        if answer[:1] == b"r":
            read, skipped, lost, rejections = from_json(answer[1:].partition(b"\n")[0])
            batch = (read, skipped, sum(lost.values()))
            counts = [one + other for one, other in zip(counts, batch, strict=True)]
            kept += rejections
    return counts, kept


def written(path: Path, columns: dict[str, list[Any]], *title: str) -> Path:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerows([one] for one in title)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    path.write_text(text.getvalue())
    return path


def suggested(found: Any) -> tuple[list[str], list[FieldSpec]]:
    mapping = mapping_of([], found)
    return [one.source_path for one in mapping], fields_of(mapping, None, suggested=True)


def test_a_column_of_choices_loses_nothing(tmp_path: Path) -> None:
    columns = {"name": [f"n{n}" for n in range(1_280)], "state": ["Open", "Done"] * 640}
    path = written(tmp_path / "file", columns)
    found = described(path)
    assert [one["kind"] for one in found["columns"]] == ["text", "select"]
    assert found["columns"][1]["choices"] == ["Done", "Open"]
    assert checked(path, found, *suggested(found))["skippedCells"] == 0


PRICES: dict[str, list[Any]] = {
    "name": ["a", "b", "c", "d"],
    "price": ["5", "two", "50", "-1"],
    "day": ["21/11/2026", "11/21/2026", "soon", "31/02/2026"],
    "state": ["open", "Shut", "Open", "x" * 2_000],
    "sure": ["Y", "N", "maybe", ""],
}
PRICE_FIELDS = [
    field("price", "Price", K.NUMBER, settings={"min": 0, "max": 10, "precision": 0}),
    field("day", "Day", K.DATE),
    field("state", "State", K.SELECT, options=(OPEN,)),
    field("sure", "Sure", K.CHECKBOX),
]


def test_values_are_rejected_with_row_value_and_reason(tmp_path: Path) -> None:
    path = written(tmp_path / "file", PRICES, "Prices", "as of May")
    kinds = {spec.key: spec.kind for spec in PRICE_FIELDS}
    sources = [*kinds]
    found = described(path, sources=kinds)
    assert found["proposed"]["headerRow"] == 3
    # Both orders are among the dates, so none is taken.
    assert found["proposed"]["undecided"] == [
        {"option": "dateOrder", "reason": "mixed", "columns": ["day"]}
    ]
    told = checked(path, found, sources, PRICE_FIELDS)
    by_column = {one["sourcePath"]: one for one in told["rejected"]}
    assert by_column["price"]["examples"] == [
        {"row": 5, "value": "two", "reason": "Not a number."},
        {"row": 6, "value": "50", "reason": "Greater than the maximum of 10."},
        {"row": 7, "value": "-1", "reason": "Less than the minimum of 0."},
    ]
    assert [one["reason"] for one in by_column["day"]["examples"]] == [
        "Unknown date order: it reads as day, month, year.",
        "Unknown date order: it reads as month, day, year.",
        "Not a valid date.",
        "Not a valid date.",
    ]
    assert [one["reason"] for one in by_column["state"]["examples"]] == [
        "Not an option of the field."
    ] * 2
    assert len(by_column["state"]["examples"][1]["value"]) == 1_000
    assert by_column["sure"]["count"] == 1
    counts, kept = filled(path, found, sources, PRICE_FIELDS)
    # The values of the last row are all rejected, and so is the row.
    assert counts == [4, told["skippedRowCount"], told["skippedCells"]] == [4, 1, 10]
    assert len(kept) == 11
    assert kept[0] == [4, "day", "day", "21/11/2026", by_column["day"]["examples"][0]["reason"]]


def test_a_row_says_why_it_is_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "file", {"name": ["a", "", "c"], "price": ["1", "2", "x"]})
    path.write_text(path.read_text() + "\n\n,\n")
    fields = [
        field("title", "Name", K.TEXT),
        field("price", "Price", K.NUMBER, required=True),
    ]
    found = described(path, sources={"name": K.TEXT, "price": K.NUMBER})
    counts, kept = filled(path, found, ["name", "price"], fields)
    assert counts == [4, 2, 1]
    # Row 5 and 6 are blank lines, which no reader counts as rows.
    assert [(one[0], one[1], one[2], one[4]) for one in kept] == [
        (4, "price", "price", "Not a number."),
        (4, None, "price", "Row skipped: Price is required."),
        (7, None, "price", "Row skipped: Price is required."),
    ]


CELLS = st.sampled_from(
    [
        *("21/11/2026", "11/21/2026", "01/02/2026", "2026-01-31", "Nov 3, 2026", "", "x", "y", "n"),
        *("1,5", "1.5", "1.234", "1,234", "7", "2842,61 EUR", "€7,50", "5%", "ja", "nein", "yes"),
        *("a@b.example", "Jane <a@b.example>", "1:30", "[1]", "x; y", "1e400", "z" * 150, "007"),
    ]
)
KINDS = st.sampled_from(
    [
        *(K.TEXT, K.NUMBER, K.CURRENCY, K.PERCENT, K.RATING, K.DURATION, K.CHECKBOX, K.DATE),
        *(K.DATETIME, K.TIME, K.SELECT, K.MULTI_SELECT, K.STATUS, K.EMAIL, K.URL, K.PHONE, K.JSON),
    ]
)
SETTINGS: dict[FieldKind, dict[str, Any]] = {
    K.NUMBER: {"min": 2, "max": 100, "precision": 0},
    K.SELECT: {"allowCreate": True},
    K.MULTI_SELECT: {"allowCreate": True},
}
OPTIONS = tuple(
    Option(id=key, key=key, name=key.upper(), color="gray", order=0) for key in ("y", "x")
)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[str]]:
    height = draw(st.integers(1, 30))
    pools = draw(st.lists(st.lists(CELLS, min_size=1, max_size=3), min_size=1, max_size=4))
    return {
        f"c{place}": draw(st.lists(st.sampled_from(pool), min_size=height, max_size=height))
        for place, pool in enumerate(pools)
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(columns=tables(), data=st.data())
def test_preview_and_import_leave_out_the_same_cells(
    tmp_path: Path, columns: dict[str, list[str]], data: st.DataObject
) -> None:
    path = written(tmp_path / "file", columns)
    found = described(path)
    counts, _ = filled(path, found, *suggested(found))
    told = checked(path, found, *suggested(found))
    # A kind that a column suggests is one that all of its cells have.
    assert (told["skippedCells"], counts[2]) == (0, 0)
    kinds = {name: data.draw(KINDS) for name in columns}
    mapped = described(path, sources=kinds)
    only = described(path, sources=kinds, only_mapped=True)
    assert mapped["conventions"] == only["conventions"]
    fields = [
        field(
            name,
            name,
            kind,
            required=data.draw(st.booleans()),
            options=OPTIONS if kind in {K.SELECT, K.STATUS, K.MULTI_SELECT} else (),
            settings=data.draw(st.sampled_from([{}, SETTINGS.get(kind, {})])),
        )
        for name, kind in kinds.items()
    ]
    told = checked(path, mapped, [*columns], fields)
    counts, kept = filled(path, mapped, [*columns], fields)
    assert counts[1:] == [told["skippedRowCount"], told["skippedCells"]]
    cells = [one for one in kept if one[1] is not None]
    assert len(cells) == counts[2] == sum(one["count"] for one in told["rejected"])
    for row, column, key, value, _reason in cells:
        assert (key, value) == (column, columns[column][row - 2])


NO_TABLES: dict[str, tuple[bytes, str]] = {
    "an empty object": (b"{}", "empty object, not a list"),
    "a list of an empty object": (b"[{}]", "empty objects"),
    "empty objects": (b"[{}, {}]", "empty objects"),
    "null": (b"null", "not a list of objects"),
    "a text": (b'"x"', "not a list of objects"),
    "a number": (b"1", "not a list of objects"),
}


@pytest.mark.parametrize(("content", "said"), NO_TABLES.values(), ids=NO_TABLES.keys())
async def test_json_without_columns_says_what_it_is(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    async with reading([path], ReadOptions(TableFormat.JSON)) as table:
        with pytest.raises(SourceProblem, match=said):
            await table.describe(1, None)


WARNED: dict[str, tuple[TableFormat, bytes, str | None]] = {
    "an object": (TableFormat.JSON, b'{"status": "ok"}', "one object, not a list"),
    "a nested object": (TableFormat.JSON, b'{"a": {"b": 1}}', "one object, not a list"),
    "a list of an empty list": (TableFormat.JSON, b"[[]]", "no values"),
    "a list of null": (TableFormat.JSON, b"[null]", "no values"),
    "lines of null": (TableFormat.NDJSON, b"null\nnull\n", "no values"),
    "a list of numbers": (TableFormat.JSON, b"[1]", None),
    "lines of scalars": (TableFormat.NDJSON, b'1\n"x"\ntrue\n', None),
    "lists": (TableFormat.JSON, b"[[1, 2], [3]]", None),
    "nothing": (TableFormat.JSON, b"[]", None),
    "no lines": (TableFormat.NDJSON, b"\n\n", None),
    "nested lists": (TableFormat.JSON, b"[" * 30 + b"1" + b"]" * 30, None),
}


@pytest.mark.parametrize(("file_format", "content", "said"), WARNED.values(), ids=WARNED.keys())
def test_unusual_json_is_described(
    tmp_path: Path, file_format: TableFormat, content: bytes, said: str | None
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    options = ReadOptions(file_format)
    [answer] = answered(path, Describe(3, PROFILED), options)
    found = from_json(answer[1:])
    assert said in (found["warning"] or "") if said else found["warning"] is None
    sources, fields = suggested(found)
    request = Check(sources, fields, Conventions(), found["rowsRead"])
    assert from_json(answered(path, request, options)[0][1:])["skippedCells"] == 0


@pytest.mark.parametrize(
    "content", [b"[" * 150 + b"1" + b"]" * 150, b'[{"a":' * 90 + b"1" + b"}]" * 90]
)
def test_a_too_deeply_nested_value_is_rejected(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    options = ReadOptions(TableFormat.JSON)
    found = from_json(answered(path, Describe(3, PROFILED), options)[0][1:])
    sources, fields = suggested(found)
    request = Check(sources, fields, Conventions(), found["rowsRead"])
    [rejected] = from_json(answered(path, request, options)[0][1:])["rejected"]
    assert [one["reason"] for one in rejected["examples"]] == ["Nested too deep."]


@pytest.mark.long
def test_a_long_file_is_sampled_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("day\n" + "01/02/2026\n" * PROFILED + "21/11/2026\n")
    found = described(path)
    assert (found["rowsRead"], found["sampled"]) == (PROFILED, True)
    everything = answered(path, replace(Describe(0, None)))
    assert from_json(everything[0][1:])["proposed"]["dateOrder"] == "dmy"


def test_a_key_that_is_written_as_a_way_is_a_column_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('[{"a.b": 1, "a": {"b": 2, "c": 3}}, {"a": {"b": 4}}]')
    table = open_table([path], ReadOptions(TableFormat.JSON))
    assert table.headers == ["a.b", "a.b (2)", "a.c"]
    assert [*map(list, table.rows())] == [[1, 2, 3], [4, None, None]]


ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")
NEWER = ("#SPILL!", "#CALC!", "#GETTING_DATA", "Err:508")
"""Errors that readers of workbooks may not know."""


def as_xlsx(errors: Sequence[str]) -> bytes:
    """A sheet whose second column has these errors, and the third texts that say the same."""
    rows = (
        f'{text(f"A{n}", f"n{n}")}<c r="B{n}" t="e"><f>x</f><v>{error}</v></c>'
        f"{text(f'C{n}', error)}"
        for n, error in enumerate(errors, start=2)
    )
    return packed({SHEET: sheet(text("A1", "name") + text("B1", "x") + text("C1", "y"), *rows)})


def as_ods(errors: Sequence[str]) -> bytes:
    heads = "".join(open_cell("string", name) for name in ("name", "x", "y"))
    rows = (
        open_cell("string", f"n{n}")
        + open_cell("float", error, value="0", **{"table:formula": "of:=1/0"})
        + open_cell("string", error)
        for n, error in enumerate(errors, start=2)
    )
    return open_document(open_sheet(heads, *rows))


@pytest.mark.parametrize("kind", [*KIND_RULES])
@pytest.mark.parametrize(
    ("content", "errors"),
    [(as_xlsx, ERRORS), (as_xlsx, ERRORS + NEWER), (as_ods, (*ERRORS, "Err:508"))],
)
def test_errors_of_a_workbook_are_counted_in_fields_of_every_kind(
    tmp_path: Path, content: Callable[[Sequence[str]], bytes], errors: Sequence[str], kind: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content(errors))
    options = ReadOptions(TableFormat.ODS if content is as_ods else TableFormat.XLSX)
    if KIND_RULES[FieldKind(kind)].check is None:
        return
    fields = [
        field("title", "Name", K.TEXT),
        field("x", "X", FieldKind(kind), settings=SETTINGS.get(FieldKind(kind), {})),
        field("y", "Y", K.TEXT),
    ]
    conventions = Conventions()
    sources = ["name", "x", "y"]
    [answer] = answered(path, Check(sources, fields, conventions, 100), options)
    [rejected] = from_json(answer[1:])["rejected"]
    assert (rejected["fieldKey"], rejected["count"]) == ("x", len(errors))
    assert [one["value"] for one in rejected["examples"]] == [*errors]
    assert {one["reason"] for one in rejected["examples"]} == {
        "The cell has an error instead of a value."
    }
    rows, *_ = answered(path, Fill(sources, fields, StagedLines(RUN), 0, conventions, 100), options)
    read, skipped, lost, kept = from_json(rows[1:].partition(b"\n")[0])
    assert (read, skipped, lost) == (len(errors), 0, {"x": len(errors)})
    assert [(one[0], one[3]) for one in kept] == [*enumerate(errors, start=2)]


def test_an_error_suggests_no_kind_and_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(
        packed(
            {
                SHEET: sheet(
                    '<c r="A1" t="e"><v>#REF!</v></c>' + text("B1", "price"),
                    number("A2", 1) + number("B2", 2.5),
                    '<c r="A3" t="e"><v>#N/A</v></c>' + number("B3", 3),
                    number("A4", 2) + '<c r="B4" t="e"><v>#DIV/0!</v></c>',
                )
            }
        )
    )
    options = ReadOptions(TableFormat.XLSX, header_row=1)
    [answer] = answered(path, Describe(20, PROFILED), options)
    found = from_json(answer[1:])
    assert [(one["label"], one["kind"], one["null_count"]) for one in found["columns"]] == [
        ("A", "number", 1),
        ("price", "number", 1),
    ]
    assert found["rows"][1] == {"A": "#N/A", "price": 3}
    fields = [field("a", "A", K.NUMBER), field("price", "Price", K.NUMBER)]
    request = Fill(["A", "price"], fields, StagedLines(RUN, ["a"]), 0, Conventions(), 100)
    rows, *_ = answered(path, request, options)
    read, skipped, lost, kept = from_json(rows[1:].partition(b"\n")[0])
    assert (read, skipped, lost) == (3, 1, {"a": 1, "price": 1})
    assert [one[4] for one in kept] == [
        "The cell has an error instead of a value.",
        "Row skipped: A is a key field, and its value does not fit.",
        "The cell has an error instead of a value.",
    ]


def test_a_format_that_writes_errors_as_texts_has_errors(tmp_path: Path) -> None:
    class Rows:
        name, start, end = "S", (0, 0), (0, 1)

        def iter_rows(self) -> Iterator[list[Any]]:
            yield ["#N/A", "a"]

    sheet: Any = Rows()
    path = tmp_path / "file"
    path.write_bytes(b"\xd0\xcf\x11\xe0")
    told = ExactSheet(path, sheet, frozenset(), frozenset({"#N/A"}))
    assert [*told.iter_rows()] == [[ErrorCell("#N/A"), "a"]]
