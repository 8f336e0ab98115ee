"""From described fields to planned ones: keys, title, options, settings, defaults."""

import uuid
from dataclasses import replace
from typing import Any

import pytest

from models.data.databases.rules import default_layout, plan_change, plan_fields
from models.data.fields.rules.fields import STORED_KINDS, FieldKind, FieldSpec
from models.data.fields.rules.new_fields import pair_relations
from models.data.fields.rules.settings import read_settings
from models.data.fields.rules.values import default_value
from models.data.fields.shapes import CreateField, UpdateField
from runtime.errors import ValidationError


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
def test_each_error_is_named_by_its_path(field: dict[str, Any], path: str) -> None:
    assert paths(field) == [path]


def test_all_problems_are_reported_at_once() -> None:
    field = {"label": "N", "kind": "number", "key": "n", "defaultValue": "x"}
    assert paths(field, field) == ["fields.1.key", "fields.0.defaultValue", "fields.1.defaultValue"]


SETTINGS: dict[FieldKind, dict[str, Any]] = {
    FieldKind.RELATION: {"databaseId": str(uuid.uuid4())},
    FieldKind.ROLLUP: {"relationFieldKey": "r", "targetFieldKey": "t", "aggregate": "sum"},
    FieldKind.LOOKUP: {"relationFieldKey": "r", "targetFieldKey": "t"},
    FieldKind.FORMULA: {"expression": "1"},
    FieldKind.BUTTON: {"actionId": str(uuid.uuid4())},
}


@pytest.mark.parametrize("kind", list(FieldKind))
def test_every_kind_can_be_planned(kind: FieldKind) -> None:
    described = {"label": "X", "kind": kind.value, "settings": SETTINGS.get(kind, {})}
    assert plan(described)[1].kind is kind


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_kinds_that_name_something_need_to(kind: FieldKind) -> None:
    found = paths({"label": "X", "kind": kind.value})
    assert found == [f"fields.0.settings.{name}" for name in SETTINGS[kind]]


@pytest.mark.parametrize("kind", sorted(set(FieldKind) - STORED_KINDS))
def test_a_computed_field_is_neither_required_nor_has_a_default(kind: FieldKind) -> None:
    described = {"label": "X", "kind": kind.value, "settings": SETTINGS.get(kind, {})}
    assert paths({**described, "required": True}) == ["fields.0.required"]
    assert paths({**described, "defaultValue": "1"}) == ["fields.0.defaultValue"]


def test_the_settings_of_a_relation_are_spelled_out() -> None:
    target = uuid.uuid4()
    settings = {"databaseId": str(target).upper()}
    assert plan({"label": "X", "kind": "relation", "settings": settings})[1].settings == {
        "databaseId": str(target),
        "cardinality": "many",
        "symmetric": False,
        "onDelete": "unlink",
    }


def change(field: dict[str, Any], **body: Any) -> FieldSpec:
    return plan_change(plan(field)[1], UpdateField.model_validate(body), uuid.uuid4)


def change_paths(field: dict[str, Any], **body: Any) -> list[str]:
    with pytest.raises(ValidationError) as refusal:
        change(field, **body)
    return [detail.path for detail in refusal.value.details]


COLORS = {"label": "S", "kind": "select", "options": [{"name": "Red"}, {"name": "Blue"}]}


def test_changed_options_keep_what_they_are() -> None:
    before = plan(COLORS)[1]
    red, blue = before.options
    body = UpdateField.model_validate(
        {
            "options": [
                {"id": blue.id, "name": "Navy", "color": "blue"},
                {"key": "red", "name": "Red"},
                {"name": "Red"},
            ]
        }
    )
    after = plan_change(before, body, uuid.uuid4).options
    assert [(each.key, each.name, each.color, each.order) for each in after] == [
        ("blue", "Navy", "blue", 0),
        ("red", "Red", "gray", 1),
        ("red_2", "Red", "gray", 2),
    ]
    assert [each.id for each in after[:2]] == [blue.id, red.id]


@pytest.mark.parametrize(
    ("field", "body", "path"),
    [
        (COLORS, {"key": "other"}, "key"),
        (COLORS, {"options": [{"id": "x", "name": "Red"}]}, "options.0.id"),
        (COLORS, {"options": [{"name": "a", "key": "a"}] * 2}, "options.1.key"),
        ({**COLORS, "defaultValue": "red"}, {"options": [{"name": "Blue"}]}, "defaultValue"),
        ({"label": "N", "kind": "number"}, {"options": [{"name": "a"}]}, "options"),
        ({"label": "N", "kind": "number"}, {"settings": {"min": "1"}}, "settings.min"),
        (
            {"label": "N", "kind": "number", "defaultValue": 5},
            {"settings": {"max": 4}},
            "defaultValue",
        ),
        ({"label": "N", "kind": "number"}, {"defaultValue": "x"}, "defaultValue"),
        ({"label": "A", "kind": "auto_number"}, {"required": True}, "required"),
        (
            {"label": "S", "kind": "status"},
            {"options": [{"name": "Open"}]},
            "settings.groups.todo.0",
        ),
    ],
)
def test_each_error_of_a_change_is_named_by_its_path(
    field: dict[str, Any], body: dict[str, Any], path: str
) -> None:
    assert change_paths(field, **body)[0] == path


def test_a_change_leaves_what_it_does_not_name() -> None:
    field = {"label": "N", "kind": "number", "defaultValue": 5, "settings": {"min": 1}}
    changed = change(field, label="M", key="n")
    assert (changed.label, changed.key, changed.default, changed.settings) == (
        ("M", "n", "5", {"min": 1})
    )
    assert change(field, defaultValue=None).default is None


@pytest.mark.parametrize(
    ("kind", "path", "known"),
    [
        ("number", "precison", "; known: precision, min, max, format, currencyCode, unit"),
        ("timer", "foo", "; known: allowManual, roundToMinutes"),
        ("text", "precision", "text field"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_known_ones(
    kind: str, path: str, known: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        plan({"label": "N", "kind": kind, "settings": {path: 2}})
    (detail,) = refused.value.details
    assert detail.path == f"fields.0.settings.{path}"
    assert detail.message.startswith(f"is not a known key of a {kind} field")
    assert detail.message.endswith(known)


@pytest.mark.parametrize("key", ["options", "required"])
def test_a_setting_beside_the_settings_is_reported(key: str) -> None:
    with pytest.raises(ValidationError) as refused:
        plan({"label": "N", "kind": "select", "settings": {key: []}})
    (detail,) = refused.value.details
    assert detail.message == f"is not a setting: set `{key}` beside the `settings` of the field"


@pytest.mark.parametrize("kind", FieldKind)
def test_settings_may_be_sent_back_as_they_were_read(kind: FieldKind) -> None:
    planned = plan({"label": "X", "kind": kind.value, "settings": SETTINGS.get(kind, {})})[1]
    added = {
        FieldKind.RELATION: {"inverseFieldId": str(uuid.uuid4())},
        FieldKind.ROLLUP: {"resultKind": "number"},
        FieldKind.FORMULA: {"resultKind": "text"},
    }
    planned = replace(planned, settings={**planned.settings, **added.get(kind, {})})
    changed = plan_change(
        planned, UpdateField.model_validate({"settings": planned.settings}), uuid.uuid4
    )
    assert changed.settings == planned.settings


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


@pytest.mark.parametrize(("characters", "is_taken"), [(10_000, True), (10_001, False)])
def test_a_default_has_10_000_characters_at_most(characters: int, is_taken: bool) -> None:
    field = {"label": "F", "kind": "json", "defaultValue": {"a": "x" * (characters - 9)}}
    if is_taken:
        assert len(plan(field)[1].default or "") == characters
    else:
        assert paths(field) == ["fields.0.defaultValue"]


def test_the_layout_of_a_new_database_is_of_version_1() -> None:
    layout = default_layout()
    assert (layout["version"], layout["propertyColumns"]) == (1, 1)


def test_a_number_may_have_one_value_only() -> None:
    read = read_settings(FieldKind.NUMBER, {"min": 2, "max": 2}, (), "settings")
    assert read.problems == []
    greater = read_settings(FieldKind.NUMBER, {"min": 3, "max": 2}, (), "settings")
    assert [one.message for one in greater.problems] == ["is greater than max"]


@pytest.mark.parametrize(
    ("settings", "label", "key"),
    [
        ({}, "Tasks", "tasks_2"),
        ({"inverseLabel": "Work"}, "Work", "work"),
        ({"inverseLabel": "Tasks"}, "Tasks", "tasks_2"),
    ],
)
def test_the_inverse_of_a_relation_has_its_label_or_that_of_the_database(
    settings: dict[str, Any], label: str, key: str
) -> None:
    here, there = uuid.uuid4(), uuid.uuid4()
    (_, relation) = plan(
        {"label": "Team", "kind": "relation", "settings": {"databaseId": str(there), **settings}}
    )
    (_, taken) = plan({"label": "Tasks", "kind": "number"})
    targets = {there: {taken.key: replace(taken, position=4)}}
    pairs = pair_relations(here, "Tasks", [relation], targets, {}, uuid.uuid4)
    ((inverse,),) = pairs.inverses.values()
    assert (inverse.label, inverse.key, inverse.position) == (label, key, 5)
    assert inverse.settings["inverseFieldId"] == str(relation.id)
    (paired,) = pairs.relations
    assert paired.settings["inverseFieldId"] == str(inverse.id)
