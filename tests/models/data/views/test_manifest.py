"""The manifests of views: what each kind needs, what a key may name, and a field that goes."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.views.rules.kinds import ViewKind
from models.data.views.rules.manifest import read_manifest, without_field
from models.data.views.shapes import Manifest
from runtime.errors import ValidationError

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KINDS = {
    "title": FieldKind.TEXT,
    "price": FieldKind.NUMBER,
    "day": FieldKind.DATE,
    "done": FieldKind.CHECKBOX,
    "photo": FieldKind.FILE,
    "press": FieldKind.BUTTON,
}
FIELDS = {
    key: FieldSpec(id=UUID(int=0), key=key, label=key, kind=kind) for key, kind in KINDS.items()
}


def wrong(kind: str, **manifest: Any) -> set[str]:
    """The places of the problems."""
    try:
        read_manifest(ViewKind(kind), Manifest.model_validate(manifest), FIELDS, NOW)
    except ValidationError as refusal:
        return {detail.path.removeprefix("manifest.") for detail in refusal.details}
    return set()


def chart(**given: Any) -> dict[str, Any]:
    return {"chart": {"type": "bar", **given}}


def form(*keys: str, **question: Any) -> dict[str, Any]:
    return {"form": {"fields": [{"key": key, **question} for key in keys]}}


@pytest.mark.parametrize(
    ("kind", "manifest", "places"),
    [
        ("board", {}, {"stackFieldKey"}),
        ("board", {"stackFieldKey": "done"}, set()),
        ("board", {"stackFieldKey": "price"}, {"stackFieldKey"}),
        ("board", {"stackFieldKey": "gone"}, {"stackFieldKey"}),
        ("calendar", {"dateFieldKey": "day", "endDateFieldKey": "day"}, set()),
        ("calendar", {"dateFieldKey": "title"}, {"dateFieldKey"}),
        ("gallery", {"coverFieldKey": "photo"}, set()),
        ("gallery", {"coverFieldKey": "price"}, {"coverFieldKey"}),
        ("list", {"orderFieldKey": "price"}, set()),
        ("list", {"orderFieldKey": "day"}, {"orderFieldKey"}),
        ("table", {"fields": [{"key": "price"}, {"key": "day"}]}, set()),
        ("table", {"fields": [{"key": "price"}, {"key": "price"}]}, {"fields.1.key"}),
        ("table", {"cardFields": ["title", "gone"]}, {"cardFields.1"}),
        ("table", {"sorts": [{"field": "gone"}]}, {"sorts.0.field"}),
        ("chart", chart(xFieldKey="day", granularity="month"), set()),
        ("chart", chart(), {"chart.xFieldKey"}),
        ("chart", {"chart": {"type": "number"}}, set()),
        ("chart", chart(xFieldKey="gone"), {"chart.xFieldKey"}),
        ("chart", chart(xFieldKey="press"), {"chart.xFieldKey"}),
        ("chart", chart(xFieldKey="price", granularity="month"), {"chart.granularity"}),
        ("form", form("title", "price"), set()),
        ("form", form("title", "title"), {"form.fields.1.key"}),
        ("form", form("press"), {"form.fields.0.key"}),
    ],
)
def test_a_manifest_names_fields_that_serve(
    kind: str, manifest: dict[str, Any], places: set[str]
) -> None:
    assert wrong(kind, **manifest) == places


def test_a_manifest_has_64_kib_at_most_in_bytes() -> None:
    rest = len(b'{"search": ""}')
    assert wrong("table", search="ä" * ((65_536 - rest) // 2)) <= {"search"}
    assert wrong("table", search="ä" * ((65_536 - rest) // 2 + 1)) >= {"manifest"}


@pytest.mark.parametrize(
    ("manifest", "left"),
    [
        ({"groupBy": {"field": "price"}}, {}),
        ({"groupBy": {"field": "day"}}, {"groupBy": {"field": "day"}}),
        ({"groupBy": [{"field": "price"}, {"field": "day"}]}, {"groupBy": [{"field": "day"}]}),
        ({"groupBy": [{"field": "price"}]}, {}),
        ({"sorts": [{"field": "price"}, {"field": "day"}]}, {"sorts": [{"field": "day"}]}),
        ({"cardFields": ["price", "day"]}, {"cardFields": ["day"]}),
        ({"orderFieldKey": "price", "dateFieldKey": "day"}, {"dateFieldKey": "day"}),
        (chart(xFieldKey="price"), {}),
        (chart(xFieldKey="day", aggregate={"fn": "sum", "field": "price"}), {}),
        (chart(xFieldKey="day"), chart(xFieldKey="day")),
        (form("price"), {}),
        (form("price", "day"), form("day")),
    ],
)
def test_a_manifest_is_left_without_a_field(manifest: dict[str, Any], left: dict[str, Any]) -> None:
    assert without_field(ViewKind.TABLE, manifest, "price") == (ViewKind.TABLE, left)


def test_a_kind_that_needs_the_field_becomes_a_table() -> None:
    manifest = {"stackFieldKey": "done", "orderFieldKey": "price"}
    assert without_field(ViewKind.BOARD, manifest, "price")[0] is ViewKind.BOARD
    assert without_field(ViewKind.BOARD, manifest, "done")[0] is ViewKind.TABLE
