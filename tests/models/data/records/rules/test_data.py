"""What a write may say: unknown keys, required fields, defaults, clearing, the title."""

import uuid
from typing import Any

import pytest

from models.core.problems import refuse
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs, Option, Schema
from models.data.records.rules.values import Change, DataCheck, grow_options, with_title
from runtime.errors import Detail, ValidationError


def spec(key: str, kind: FieldKind, **more: Any) -> FieldSpec:
    return FieldSpec(id=uuid.uuid4(), key=key, label=key, kind=kind, **more)


LOW = Option(id="1", key="low", name="Low", color="gray", order=0)

FIELDS: FieldSpecs = {
    field.key: field
    for field in (
        spec("title", FieldKind.TEXT),
        spec("price", FieldKind.NUMBER, required=True, default="5"),
        spec("code", FieldKind.TEXT, required=True),
        spec("note", FieldKind.TEXT, default="none yet"),
        spec("tags", FieldKind.MULTI_SELECT, options=(LOW,), settings={"allowCreate": True}),
        spec("fixed", FieldKind.SELECT, options=(LOW,)),
        spec("number", FieldKind.AUTO_NUMBER),
    )
}


CHECK = DataCheck(FIELDS)


def fine(checked: tuple[Change, list[Detail]]) -> Change:
    change, found = checked
    assert found == []
    return change


def problems(checked: tuple[Change, list[Detail]]) -> dict[str, str]:
    return {detail.path: detail.message for detail in checked[1]}


def test_defaults_fill_what_is_absent() -> None:
    assert fine(CHECK.new({"code": "a"})).values == {"price": 5, "code": "a", "note": "none yet"}


def test_null_is_a_choice_that_no_default_overrides() -> None:
    assert fine(CHECK.new({"code": "a", "note": None})).values == {"price": 5, "code": "a"}


@pytest.mark.parametrize("written", [{}, {"code": None}, {"code": ""}])
def test_a_required_field_needs_a_value(written: dict[str, Any]) -> None:
    assert list(problems(CHECK.new(written))) == ["data.code"]


def test_a_required_field_with_a_default_cannot_be_null() -> None:
    assert list(problems(CHECK.new({"code": "a", "price": None}))) == ["data.price"]


def test_a_patch_says_only_what_changes() -> None:
    change = fine(CHECK.patch({"note": None, "price": 7}))
    assert change.values == {"price": 7}
    assert change.cleared == {"note"}
    assert change.title is None


@pytest.mark.parametrize("value", [None, ""])
def test_a_required_field_cannot_be_cleared(value: Any) -> None:
    assert list(problems(CHECK.patch({"code": value}))) == ["data.code"]


def test_unknown_and_system_fields_are_named() -> None:
    found = problems(
        CHECK.patch(
            {"nobody": 1, "number": 7, "price": "x", "": 1, "__proto__": {}}, "operations.3."
        )
    )
    assert list(found) == [
        f"operations.3.data.{key}" for key in ("nobody", "number", "price", "", "__proto__")
    ]
    assert "platform writes" in found["operations.3.data.number"]


def test_many_problems_are_bounded() -> None:
    with pytest.raises(ValidationError) as refusal:
        refuse(CHECK.patch({f"k{n}": n for n in range(10_000)})[1])
    assert len(refusal.value.details) == 20


def test_the_title_is_one_value_in_two_places() -> None:
    assert with_title({"title": "A"}, None) == {"title": "A"}
    assert with_title({"code": "a"}, "A") == {"code": "a", "title": "A"}
    assert with_title({"title": "A"}, "A") == {"title": "A"}
    with pytest.raises(ValidationError) as refusal:
        with_title({"title": "B"}, "A")
    assert refusal.value.details[0].path == "data.title"


def test_a_cleared_title_is_empty() -> None:
    assert fine(CHECK.patch({"title": None})).title == ""


def grow(*written: dict[str, Any]) -> Any:
    return grow_options(Schema(uuid.uuid4(), uuid.uuid4(), FIELDS), written, uuid.uuid4)


def test_new_choices_get_options_where_the_field_allows_it() -> None:
    growth = grow({"tags": ["low", "In review", "LOW", "in review"], "fixed": "other"})
    assert growth.rows == [{"tags": ["low", "in_review", "low", "in_review"], "fixed": "other"}]
    assert growth.keys == {"tags"}
    assert [option.name for option in growth.schema.fields["tags"].options] == ["Low", "In review"]
    assert growth.schema.fields["tags"].options[1].order == 1


def test_records_written_together_share_new_options() -> None:
    growth = grow({"tags": ["New"]}, {"note": "x"}, {"tags": ["NEW", "Newer"]})
    assert growth.rows == [{"tags": ["new"]}, {"note": "x"}, {"tags": ["new", "newer"]}]
    assert len(growth.schema.fields["tags"].options) == 3


@pytest.mark.parametrize("value", ["", "  ", "x" * 101, "a\x00", 5, None, {"a": 1}])
def test_an_invalid_name_is_left_for_the_check_to_refuse(value: Any) -> None:
    growth = grow({"tags": [value]})
    assert growth.rows == [{"tags": [value]}]
    assert not growth.keys
