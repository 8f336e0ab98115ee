"""A value of a field as the cell of an exported file."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from models.data.fields.rules.fields import FieldKind, FieldSpec, Option
from models.data.record_exports.rules import Legend, cell_of, named_ids
from runtime.ids import new_id

LEGEND = Legend({"u1": "Ada", "f1": "plan.pdf"}, ZoneInfo("Asia/Kathmandu"))


def field(kind: FieldKind) -> FieldSpec:
    options = tuple(
        Option(id=key, key=key, name=name, color="gray", order=0)
        for key, name in (("red", "Rot"), ("blue", "Blau"))
    )
    return FieldSpec(id=new_id(), key="k", label="K", kind=kind, options=options)


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        (FieldKind.TEXT, "Grüße", "Grüße"),
        (FieldKind.NUMBER, 1.5, 1.5),
        (FieldKind.SELECT, "red", "Rot"),
        (FieldKind.SELECT, "unknown", "unknown"),
        (FieldKind.MULTI_SELECT, ["red", "blue"], "Rot, Blau"),
        (FieldKind.MULTI_SELECT, [], None),
        (FieldKind.PERSON, ["u1", "u2"], "Ada, u2"),
        (FieldKind.FILE, ["f1"], "plan.pdf"),
        (FieldKind.LOCATION, {"lat": 1.5, "lng": -2}, "1.5, -2"),
        (FieldKind.TIMER, {"totalMs": 60_000}, 60_000),
    ],
)
def test_a_cell(kind: FieldKind, value: Any, cell: Any) -> None:
    assert cell_of(value, field(kind), LEGEND) == cell


def test_a_value_without_a_text_is_json_in_its_own_letters() -> None:
    value = {"name": "Grüße", "n": [1, None]}
    assert cell_of(value, field(FieldKind.JSON), LEGEND) == '{"name":"Grüße","n":[1,null]}'


def test_a_moment_stands_in_the_zone_of_the_export() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    assert cell_of(at, field(FieldKind.CREATED_AT), LEGEND) == "2026-01-01T05:45:00.000+05:45"


def test_the_people_and_files_of_values_are_named() -> None:
    records: Any = [SimpleNamespace(data={"k": ["u1"]}), SimpleNamespace(data={"k": None})]
    assert list(named_ids(records, [field(FieldKind.PERSON)])) == ["u1"]
