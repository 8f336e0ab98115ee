"""Forms of Google Forms, question by question."""

from typing import Any

import pytest

from models.sources.external_resources.rules.forms import NoFormError, google_form, json_form


def asked(question: dict[str, Any]) -> Any:
    item = {"title": "Q", "questionItem": {"question": question}}
    [one] = google_form({"info": {"title": "F"}, "items": [item]}).questions
    return one


OPTIONS = [{"value": "A"}, {"value": "B"}]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ({"textQuestion": {}}, "text"),
        ({"textQuestion": {"paragraph": True}}, "long_text"),
        ({"choiceQuestion": {"type": "RADIO", "options": OPTIONS}}, "select"),
        ({"choiceQuestion": {"type": "DROP_DOWN", "options": OPTIONS}}, "select"),
        ({"choiceQuestion": {"type": "CHECKBOX", "options": OPTIONS}}, "multi_select"),
        ({"choiceQuestion": {"type": "RADIO", "options": [{"isOther": True}]}}, None),
        ({"scaleQuestion": {"low": 0, "high": 5}}, "number"),
        ({"ratingQuestion": {"ratingScaleLevel": 5, "iconType": "STAR"}}, "rating"),
        ({"ratingQuestion": {"ratingScaleLevel": 50}}, None),
        ({"dateQuestion": {"includeYear": True}}, "date"),
        ({"dateQuestion": {"includeYear": True, "includeTime": True}}, "datetime"),
        ({"dateQuestion": {}}, None),
        ({"timeQuestion": {}}, "time"),
        ({"timeQuestion": {"duration": True}}, "duration"),
        ({"fileUploadQuestion": {}}, None),
        ({"hologramQuestion": {}}, None),
        ({"textQuestion": 7}, None),
    ],
)
def test_a_question_has_the_kind_that_keeps_its_answers(
    question: dict[str, Any], kind: str | None
) -> None:
    assert asked(question).kind == kind


def test_a_grid_is_a_question_for_each_row() -> None:
    grid = {
        "title": "Rate",
        "questionGroupItem": {
            "grid": {"columns": {"type": "RADIO", "options": OPTIONS}},
            "questions": [
                {"rowQuestion": {"title": "Food"}, "required": True},
                {"rowQuestion": {"title": "Room"}},
            ],
        },
    }
    form = google_form(
        {"info": {"title": "F"}, "items": [grid, "nonsense", {"title": "text only"}]}
    )
    assert [(one.label, one.kind, one.required) for one in form.questions] == [
        ("Rate: Food", "select", True),
        ("Rate: Room", "select", False),
    ]


@pytest.mark.parametrize("document", [None, [], {}, {"info": []}, {"items": []}])
def test_a_document_of_another_kind_is_no_form(document: Any) -> None:
    with pytest.raises(NoFormError):
        google_form(document)


def test_a_document_of_our_own_is_a_form_with_what_it_says() -> None:
    asked = [
        {"label": "Size", "kind": "select", "options": ["S", "M", 7], "required": True},
        {"label": "Why", "kind": "hologram", "help": "In short", "required": "yes"},
        {},
        "nonsense",
    ]
    form = json_form({"title": "F", "questions": asked})
    assert (form.title, form.description) == ("F", None)
    assert [(one.label, one.kind, one.required, one.help) for one in form.questions] == [
        ("Size", "select", True, None),
        ("Why", None, False, "In short"),
        ("Question", "text", False, None),
    ]
    assert list(form.questions[0].options) == ["S", "M"]


@pytest.mark.parametrize("document", [None, [], {}, {"questions": {}}, {"questions": "a"}])
def test_a_document_without_questions_is_no_form(document: Any) -> None:
    with pytest.raises(NoFormError):
        json_form(document)
