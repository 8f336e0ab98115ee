"""Settings of fields: where a problem is, and what the refusal says to do."""

from typing import Any

import pytest

from models.data.fields.rules.fields import FieldKind
from models.data.fields.rules.settings import read_settings


def problems(kind: FieldKind, settings: dict[str, Any]) -> dict[str, str]:
    found = read_settings(kind, settings, {"a", "b"}, "settings").problems
    return {one.path.removeprefix("settings."): one.message for one in found}


@pytest.mark.parametrize(
    ("kind", "settings", "place", "words"),
    [
        (FieldKind.NUMBER, {"precission": 2}, "precission", "known: precision, "),
        (FieldKind.NUMBER, {"required": True}, "required", "set `required` beside"),
        (FieldKind.TEXT, {"required": True}, "required", "set `required` beside"),
        (FieldKind.TEXT, {"precision": 2}, "precision", "is not a known key of a text field"),
        (FieldKind.NUMBER, {"precision": 11}, "precision", "less than or equal to 10"),
        (FieldKind.NUMBER, {"min": 2, "max": 1}, "min", "is greater than max"),
        (FieldKind.STATUS, {"groups": {"don": []}}, "groups.don", "known: done, "),
        (
            FieldKind.STATUS,
            {"groups": {"in_progres": []}},
            "groups.in_progres",
            "known: in_progress",
        ),
        (FieldKind.STATUS, {"groups": {"label": []}}, "groups.label", "known: "),
        (FieldKind.STATUS, {"groups": {"todo": ["c"]}}, "groups.todo.0", "not the key of an opt"),
        (
            FieldKind.STATUS,
            {"groups": {"todo": ["a", "b"], "done": ["b"]}},
            "groups.done.0",
            "is already in another group",
        ),
        (
            FieldKind.LOOKUP,
            {"relationFieldKey": "a"},
            "targetFieldKey",
            "is required: the keys of a lookup field are relationFieldKey, targetFieldKey",
        ),
        (FieldKind.TIMER, {"roundToMinutes": 1_441}, "roundToMinutes", "equal to 1440"),
    ],
)
def test_a_wrong_setting_is_refused_at_its_place(
    kind: FieldKind, settings: dict[str, Any], place: str, words: str
) -> None:
    found = problems(kind, settings)
    assert list(found) == [place]
    assert words in found[place]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (FieldKind.NUMBER, {"precision": 10, "min": 1, "max": 1}),
        (FieldKind.STATUS, {"groups": {"todo": ["a"], "in_progress": [], "done": ["b"]}}),
        (FieldKind.STATUS, {}),
        (FieldKind.TIMER, {"roundToMinutes": 1_440}),
    ],
)
def test_a_right_setting_is_taken(kind: FieldKind, settings: dict[str, Any]) -> None:
    assert problems(kind, settings) == {}
