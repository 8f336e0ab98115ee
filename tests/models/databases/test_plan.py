"""From described fields to planned ones: keys, title, options, settings, defaults."""

import uuid
from typing import Any

import pytest

from models.databases.rules.defaults import default_value
from models.databases.rules.fields import FieldSpec
from models.databases.rules.kinds import UNAVAILABLE_KINDS, FieldKind
from models.databases.rules.plan import plan_fields
from models.databases.shapes import CreateField
from runtime.errors import UnsupportedError, ValidationError


def plan(*fields: dict[str, Any]) -> list[FieldSpec]:
    bodies = [CreateField.model_validate(field) for field in fields]
    return plan_fields(bodies, uuid.uuid4)


def paths(*fields: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as refusal:
        plan(*fields)
    return [detail.path for detail in refusal.value.details]


def test_a_title_is_put_first() -> None:
    planned = plan({"label": "Price", "kind": "number"})
    assert [(field.key, field.kind, field.position) for field in planned] == [
        ("title", FieldKind.TEXT, 0),
        ("price", FieldKind.NUMBER, 1),
    ]


def test_a_described_title_is_kept() -> None:
    planned = plan({"label": "A", "kind": "number"}, {"label": "Title", "kind": "text"})
    assert [field.key for field in planned] == ["a", "title"]
    assert planned[1].label == "Title"


def test_keys_are_derived_around_each_other() -> None:
    planned = plan(
        {"label": "Größe (cm)", "kind": "number"},
        {"label": "grosse cm", "kind": "number", "key": "grosse_cm"},
        {"label": "Größe cm", "kind": "number"},
        {"label": "名前", "kind": "text"},
        {"label": "2024", "kind": "text"},
        {"label": "x" * 100, "kind": "text"},
        {"label": "x" * 90, "kind": "text"},
    )
    assert [field.key for field in planned[1:]] == [
        "groe_cm",
        "grosse_cm",
        "groe_cm_2",
        "field",
        "field_2024",
        "x" * 63,
        "x" * 61 + "_2",
    ]


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ({"label": "T", "key": "title", "kind": "number"}, "fields.0.kind"),
        ({"label": "N", "kind": "number", "options": [{"name": "x"}]}, "fields.0.options"),
        (
            {"label": "N", "kind": "number", "settings": {"precision": 11}},
            "fields.0.settings.precision",
        ),
        (
            {"label": "N", "kind": "number", "settings": {"precision": "2"}},
            "fields.0.settings.precision",
        ),
        (
            {"label": "N", "kind": "number", "settings": {"min": 2, "max": 1}},
            "fields.0.settings.min",
        ),
        (
            {"label": "C", "kind": "currency", "settings": {"currencyCode": "eur"}},
            "fields.0.settings.currencyCode",
        ),
        (
            {"label": "D", "kind": "date", "settings": {"timezone": "Mars/Base"}},
            "fields.0.settings.timezone",
        ),
        (
            {"label": "S", "kind": "select", "settings": {"allowCreate": 1}},
            "fields.0.settings.allowCreate",
        ),
        (
            {
                "label": "S",
                "kind": "status",
                "options": [{"name": "A"}],
                "settings": {"groups": {"done": ["b"]}},
            },
            "fields.0.settings.groups.done.0",
        ),
        (
            {
                "label": "S",
                "kind": "status",
                "options": [{"name": "A"}],
                "settings": {"groups": {"done": ["a"], "todo": ["a"]}},
            },
            "fields.0.settings.groups.done.0",
        ),
        (
            {
                "label": "S",
                "kind": "select",
                "options": [{"name": "A", "key": "a"}, {"name": "B", "key": "a"}],
            },
            "fields.0.options.1.key",
        ),
        ({"label": "S", "kind": "select", "defaultValue": "none"}, "fields.0.defaultValue"),
        ({"label": "N", "kind": "number", "defaultValue": "five"}, "fields.0.defaultValue"),
        ({"label": "N", "kind": "number", "defaultValue": "NaN"}, "fields.0.defaultValue"),
        ({"label": "N", "kind": "json", "defaultValue": "[" * 5000}, "fields.0.defaultValue"),
        ({"label": "A", "kind": "auto_number", "defaultValue": "1"}, "fields.0.defaultValue"),
        ({"label": "A", "kind": "created_at", "required": True}, "fields.0.required"),
        ({"label": "S", "kind": "text", "settings": {"a": "\x00"}}, "fields.0.settings"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(field: dict[str, Any], path: str) -> None:
    assert paths(field) == [path]


def test_all_problems_are_told_at_once() -> None:
    field = {"label": "N", "kind": "number", "key": "n", "defaultValue": "x"}
    assert paths(field, field) == ["fields.1.key", "fields.0.defaultValue", "fields.1.defaultValue"]


@pytest.mark.parametrize("kind", sorted(UNAVAILABLE_KINDS))
def test_kinds_that_are_not_available_are_refused_with_those_that_are(kind: FieldKind) -> None:
    with pytest.raises(UnsupportedError, match=r"Use one of: text, .*multi_select"):
        plan({"label": "X", "kind": kind.value})


def test_unknown_settings_are_kept() -> None:
    planned = plan({"label": "N", "kind": "number", "settings": {"precision": 2, "width": "wide"}})
    assert planned[1].settings == {"precision": 2, "width": "wide"}


def test_a_status_without_options_gets_the_usual_three() -> None:
    status = plan({"label": "State", "kind": "status"})[1]
    assert [option.key for option in status.options] == ["to_do", "in_progress", "done"]
    assert status.settings["groups"]["done"] == ["done"]


@pytest.mark.parametrize(
    ("kind", "given", "shown", "value"),
    [
        ("text", "5", "5", "5"),
        ("number", "5", "5", 5),
        ("number", 5.5, "5.5", 5.5),
        ("checkbox", True, "true", True),
        ("checkbox", "false", "false", False),
        ("date", "2024-01-01", "2024-01-01", "2024-01-01"),
        ("json", '{"a": 1}', '{"a": 1}', {"a": 1}),
        ("location", {"lat": 1, "lng": 2}, '{"lat": 1, "lng": 2}', {"lat": 1, "lng": 2}),
    ],
)
def test_a_default_is_text_that_reads_back_as_its_value(
    kind: str, given: Any, shown: str, value: Any
) -> None:
    planned = plan({"label": "F", "kind": kind, "defaultValue": given})[1]
    assert planned.default == shown
    assert default_value(planned) == value
