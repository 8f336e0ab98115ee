"""The questions of a form, checked against the fields of its database. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.core.problems import an, refuse
from models.core.values import InvalidValueError, is_blank
from models.data.fields.rules.fields import FieldHints, FieldKind, FieldSpec, FieldSpecs
from models.data.fields.rules.values import KIND_RULES
from models.data.forms.shapes import MAX_QUESTIONS, FormField
from models.data.records.rules.query.filters import RecordFilter, holds, read_filter
from runtime.errors import Detail, ValidationError

ASKABLE = frozenset(
    {
        FieldKind.TEXT,
        FieldKind.LONG_TEXT,
        FieldKind.RICH_TEXT,
        FieldKind.NUMBER,
        FieldKind.CURRENCY,
        FieldKind.PERCENT,
        FieldKind.RATING,
        FieldKind.DURATION,
        FieldKind.CHECKBOX,
        FieldKind.DATE,
        FieldKind.DATETIME,
        FieldKind.TIME,
        FieldKind.SELECT,
        FieldKind.MULTI_SELECT,
        FieldKind.STATUS,
        FieldKind.EMAIL,
        FieldKind.URL,
        FieldKind.PHONE,
        FieldKind.LOCATION,
    }
)
"""Kinds a form can ask for.

To choose a person, a file or a related record, the public would have to see the people, files and
records of the workspace.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A field with the form's question; `required` by the form or by the database."""

    field: FieldSpec
    form_field: FormField
    required: bool
    condition: RecordFilter | None


def check_fields(
    form_fields: Sequence[FormField], fields: FieldSpecs, now: datetime, path: str = "fields"
) -> None:
    """Check that a form can ask for these fields, and that its answers can become records.

    Raises `ValidationError` at `path` or below it.
    """
    earlier_fields: dict[str, FieldSpec] = {}
    hints = FieldHints(fields)
    problems: list[Detail] = []
    for place, form_field in enumerate(form_fields):
        here = f"{path}.{place}"
        spec = fields.get(form_field.key)
        if spec is None:
            problems.append(Detail(f"{here}.key", hints.no_field(form_field.key)))
        elif spec.kind not in ASKABLE:
            problems.append(
                Detail(f"{here}.key", f"is {an(spec.kind)} field, which forms cannot ask for")
            )
        elif form_field.key in earlier_fields:
            problems.append(Detail(f"{here}.key", "is already in the form"))
        elif form_field.hidden and form_field.required:
            problems.append(Detail(f"{here}.required", "can't be set for a hidden question"))
        else:
            if form_field.visible_if is not None:
                problems += _condition_problems(form_field.visible_if, earlier_fields, now, here)
            earlier_fields[form_field.key] = spec
    problems += [
        Detail(path, f"must always ask for {key}: the database requires it")
        for key in unmet(questions(form_fields, fields, now), fields)
    ]
    refuse(problems)


def _condition_problems(
    raw: Mapping[str, Any], earlier_fields: FieldSpecs, now: datetime, path: str
) -> Iterable[Detail]:
    try:
        read_filter(raw, earlier_fields, now)
    except ValidationError as error:
        for detail in error.details:
            where = detail.path.removeprefix("filter")
            yield Detail(f"{path}.visibleIf{where}", detail.message)


def default_fields(fields: FieldSpecs) -> list[FormField]:
    """Every field a form can ask for, in order."""
    return [
        FormField(key=key, required=spec.required and spec.kind is not FieldKind.CHECKBOX)
        for key, spec in fields.items()
        if spec.kind in ASKABLE
    ][:MAX_QUESTIONS]


def questions(
    form_fields: Iterable[FormField], fields: FieldSpecs, now: datetime
) -> list[Question]:
    """The questions that can be asked now.

    A question whose field was removed or whose condition is no longer valid is left out.
    """
    by_key: dict[str, Question] = {}
    for form_field in form_fields:
        spec = fields.get(form_field.key)
        if spec is None or spec.kind not in ASKABLE or form_field.key in by_key:
            continue
        condition = None
        if form_field.visible_if is not None:
            known = {key: question.field for key, question in by_key.items()}
            try:
                condition = read_filter(form_field.visible_if, known, now)
            except ValidationError:
                continue
        by_key[form_field.key] = Question(
            spec, form_field, form_field.required or spec.required, condition
        )
    return list(by_key.values())


def unmet(form_questions: Iterable[Question], fields: FieldSpecs) -> list[str]:
    """The keys of required fields that a submission might leave empty."""
    always = {
        question.field.key
        for question in form_questions
        if question.condition is None and not question.form_field.hidden
    }
    return [
        key
        for key, spec in fields.items()
        if spec.required and spec.default is None and not spec.system and key not in always
    ]


def read_answers(form_questions: Sequence[Question], data: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a submission, each checked by its field.

    Questions are taken in order: the condition of each is judged by the answers kept so far, and
    an answer to one whose condition is not met is dropped. Raises `ValidationError` at
    `data.<key>`.
    """
    answers: dict[str, Any] = {}
    keys = {question.field.key for question in form_questions}
    problems = [
        Detail(f"data.{key[:100]}", "is not a question of this form")
        for key in sorted(data.keys() - keys)
    ]
    for question in form_questions:
        key = question.field.key
        if question.condition is not None and not holds(question.condition, answers):
            continue
        value = data.get(key)
        if is_blank(value):
            if question.required:
                problems.append(Detail(f"data.{key}", "is required"))
            continue
        if value is False and question.form_field.required:
            # A person agrees or does not answer; the database only demands a value.
            problems.append(Detail(f"data.{key}", "is required: it must be true"))
            continue
        check = KIND_RULES[question.field.kind].check
        assert check is not None, "a form asks for no field that only the platform writes"
        try:
            answers[key] = check(question.field, value)
        except InvalidValueError as problem:
            problems.append(Detail(f"data.{key}", str(problem)))
    refuse(problems)
    return answers
