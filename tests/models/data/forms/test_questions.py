"""The questions of a form: which are asked, which must be answered, and what an answer becomes."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs
from models.data.forms.rules import (
    check_fields,
    default_fields,
    questions,
    read_answers,
    unmet,
)
from models.data.forms.shapes import FormField
from runtime.errors import ValidationError

NOW = datetime(2026, 5, 20, tzinfo=UTC)
IF_BIG = {"field": "size", "op": "gt", "value": 10}


def _field(key: str, kind: FieldKind, **more: Any) -> FieldSpec:
    return FieldSpec(id=UUID(int=0), key=key, label=key, kind=kind, **more)


FIELDS: FieldSpecs = {
    "title": _field("title", FieldKind.TEXT, required=True),
    "size": _field("size", FieldKind.NUMBER),
    "note": _field("note", FieldKind.TEXT),
    "owner": _field("owner", FieldKind.PERSON),
    "level": _field("level", FieldKind.NUMBER, required=True, default=1),
}


def asked(*given: dict[str, Any] | str) -> list[FormField]:
    bodies = [{"key": one} if isinstance(one, str) else one for one in given]
    return [FormField.model_validate(body) for body in bodies]


def problems(*given: dict[str, Any] | str) -> list[str]:
    try:
        check_fields(asked(*given), FIELDS, NOW)
    except ValidationError as refusal:
        return [detail.path for detail in refusal.details]
    return []


@pytest.mark.parametrize(
    ("given", "places"),
    [
        (["title", "size", {"key": "note", "visibleIf": IF_BIG}], []),
        (["title", {"key": "note", "visibleIf": IF_BIG}, "size"], ["fields.1.visibleIf.field"]),
        (["title", "gone", "owner", "title"], ["fields.1.key", "fields.2.key", "fields.3.key"]),
        (["title", {"key": "note", "required": True, "hidden": True}], ["fields.1.required"]),
        (["note"], ["fields"]),
        ([{"key": "title", "hidden": True}], ["fields"]),
        (["size", {"key": "title", "visibleIf": IF_BIG}], ["fields"]),
    ],
)
def test_a_form_asks_for_what_can_become_a_record(
    given: list[dict[str, Any] | str], places: list[str]
) -> None:
    assert problems(*given) == places


def test_a_question_that_cannot_be_asked_any_more_is_left_out() -> None:
    given = asked(
        "gone", "owner", "size", "size", {"key": "note", "visibleIf": {"field": "gone"}}, "title"
    )
    found = questions(given, FIELDS, NOW)
    assert [one.field.key for one in found] == ["size", "title"]
    assert [one.required for one in found] == [False, True]
    assert unmet(found, FIELDS) == []
    assert unmet(found[:1], FIELDS) == ["title"]


def test_answers_are_checked_in_turn_and_those_of_hidden_questions_dropped() -> None:
    given = questions(
        asked("title", "size", {"key": "note", "required": True, "visibleIf": IF_BIG}), FIELDS, NOW
    )
    assert read_answers(given, {"title": "A", "size": 5, "note": "x"}) == {"title": "A", "size": 5}
    whole = {"title": "A", "size": 11, "note": "x"}
    assert read_answers(given, whole) == whole
    for data, places in (
        ({"title": "", "size": "x", "b": 1, "a": 1}, ["a", "b", "title", "size"]),
        ({"title": "A", "size": 11, "note": None}, ["note"]),
        ({"title": " \n\t", "size": 11, "note": "\u00a0"}, ["title", "note"]),
    ):
        with pytest.raises(ValidationError) as refusal:
            read_answers(given, data)
        assert [one.path for one in refusal.value.details] == [f"data.{key}" for key in places]


def test_a_box_is_ticked_where_the_form_requires_it_and_given_where_the_database_does() -> None:
    box = {"agreed": _field("agreed", FieldKind.CHECKBOX, required=True)}
    by_form = questions(asked({"key": "agreed", "required": True}), box, NOW)
    assert read_answers(by_form, {"agreed": True}) == {"agreed": True}
    with pytest.raises(ValidationError, match="must be true"):
        read_answers(by_form, {"agreed": False})
    for given in (asked("agreed"), default_fields(box)):
        by_database = questions(given, box, NOW)
        assert read_answers(by_database, {"agreed": False}) == {"agreed": False}
        with pytest.raises(ValidationError, match="is required"):
            read_answers(by_database, {})
    not_required = questions(asked("agreed"), {"agreed": _field("agreed", FieldKind.CHECKBOX)}, NOW)
    assert read_answers(not_required, {"agreed": False}) == {"agreed": False}


def test_blanks_are_no_answer_to_a_question_that_may_be_left_open() -> None:
    given = questions(asked("title", "note"), FIELDS, NOW)
    assert read_answers(given, {"title": "A", "note": "  "}) == {"title": "A"}
