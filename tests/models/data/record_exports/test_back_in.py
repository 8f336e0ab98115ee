"""A value as the cell of an exported file, and the value that an import makes of that cell."""

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from python_calamine import CalamineWorkbook

from activities.jobs.spreadsheets import write_spreadsheet
from models.data.fields.rules.fields import FieldKind, FieldSpec, Option
from models.data.fields.rules.value_conversion import LOST
from models.data.record_exports.rules import Legend, cell_of, csv_cell
from models.data.record_exports.shapes import ExportFormat
from models.data.records.rules.values import GrowingField
from models.sources.tabular.rules.conversion import converter, growing
from models.sources.tabular.rules.formats import Conventions
from runtime.ids import new_id

BERLIN = Legend({}, ZoneInfo("Europe/Berlin"))
NAMES = {
    "a": "A",
    "b": "B",
    "a_b": "A, B",
    "c_d": "C;D",
    "kg": "Weight, kg; net",
    "strasse": "Straße, 1",
    "formula": "=E",
}
_OF_OPTIONS = (FieldKind.MULTI_SELECT, FieldKind.SELECT)


def field(kind: FieldKind) -> FieldSpec:
    options = tuple(
        Option(id=key, key=key, name=name, color="gray", order=place)
        for place, (key, name) in enumerate(NAMES.items())
    )
    return FieldSpec(id=new_id(), key="k", label="K", kind=kind, options=options)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FieldKind.JSON, True),
        (FieldKind.JSON, False),
        (FieldKind.JSON, 5),
        (FieldKind.JSON, "5"),
        (FieldKind.JSON, "true"),
        (FieldKind.JSON, '"quoted"'),
        (FieldKind.JSON, "null"),
        (FieldKind.JSON, " spaced "),
        (FieldKind.JSON, "words"),
        (FieldKind.JSON, "1,234"),
        (FieldKind.JSON, ["a", None, {"b": 1.5}]),
        (FieldKind.LOCATION, {"lat": 52.5, "lng": 13.25, "label": "Berlin (Mitte)"}),
        (FieldKind.LOCATION, {"lat": 0.00001, "lng": 180, "label": "near\nnowhere"}),
        (FieldKind.LOCATION, {"lat": 0, "lng": 0}),
        (FieldKind.LOCATION, {"lat": -0.5, "lng": -180, "label": "-"}),
        (FieldKind.PHONE, "+49 30 901820"),
        (FieldKind.PHONE, "+1 (555) 010-0000"),
        (FieldKind.SELECT, "formula"),
        (FieldKind.MULTI_SELECT, ["formula", "a"]),
        (FieldKind.MULTI_SELECT, ["a", "formula"]),
        (FieldKind.MULTI_SELECT, ["a_b"]),
        (FieldKind.MULTI_SELECT, ["a", "b"]),
        (FieldKind.MULTI_SELECT, ["a", "a_b", "b"]),
        (FieldKind.MULTI_SELECT, ["c_d", "kg", "strasse"]),
        (FieldKind.SELECT, "kg"),
        (FieldKind.DATETIME, "9999-12-31T23:59:59.999Z"),
        (FieldKind.DATETIME, "0001-01-01T00:00:00.000Z"),
        (FieldKind.DATETIME, "1850-06-01T12:00:00.000Z"),
        (FieldKind.DATETIME, "2026-10-25T00:30:00.000Z"),
        (FieldKind.DATETIME, "2026-10-25T01:30:00.000Z"),
        (FieldKind.DATE, "0001-01-01"),
        (FieldKind.DURATION, 3_456_000_001),
        (FieldKind.PERCENT, 33.333333333333336),
        (FieldKind.NUMBER, -5e-324),
        (FieldKind.CHECKBOX, False),
    ],
    ids=str,
)
def test_an_exported_value_comes_back(kind: FieldKind, value: Any) -> None:
    written = StringIO(newline="")
    csv.writer(written).writerow([csv_cell(cell_of(value, field(kind), BERLIN))])
    [[cell]] = csv.reader(StringIO(written.getvalue(), newline=""))

    assert converter(field(kind), Conventions())(cell) == value


@pytest.mark.parametrize("number", [0.1 + 0.2, 1.1 * 1.1, 2 / 3, 1e22 / 3, 5e-324, -0.1, 1e21])
def test_a_sheet_keeps_every_digit_of_a_fraction(number: float, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text(f"[{number!r}]\n")
    write_spreadsheet(ExportFormat.XLSX, ["N"], tmp_path / "rows", tmp_path / "sheet.xlsx")

    rows = CalamineWorkbook.from_path(str(tmp_path / "sheet.xlsx")).get_sheet_by_index(0)

    assert rows.to_python()[1] == [number]


def test_a_list_of_names_has_each_of_them_whole() -> None:
    multi, one = (replace(field(kind), options=()) for kind in _OF_OPTIONS)

    tags = GrowingField(multi, new_id)
    assert growing(tags)(["Nuts, bolts", "Tools"]) == ["nuts_bolts", "tools"]
    assert growing(tags)("Tools; Nuts, bolts") == ["tools", "nuts_bolts"]
    assert growing(GrowingField(one, new_id))(["Tools", "Nuts"]) is LOST
