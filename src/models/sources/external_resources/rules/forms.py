"""Forms of providers in the terms of our databases: described by Google Forms, or as JSON. Pure.

Providers without a description of a form have our own, as JSON (docs/integrations.md):

    {"title": "Feedback", "description": "…", "questions": [
        {"label": "Your name", "kind": "text", "required": true, "help": "…"},
        {"label": "Topics", "kind": "multi_select", "options": ["Food", "Service"]}]}

`kind` is that of the field which keeps the answers; a question of another kind is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.core.base import JsonObject
from models.data.fields.rules.fields import FieldKind


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """One question. `kind` is the kind of the field which keeps its answers; None when none can.

    `options` are the names to choose from, of a select; `settings` belong to the field.
    """

    label: str
    kind: FieldKind | None
    required: bool = False
    help: str | None = None
    options: Sequence[str] = ()
    settings: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostedForm:
    """A form as its provider describes it; `questions` in their order."""

    title: str
    questions: Sequence[FormQuestion]
    description: str | None = None


class NoFormError(ValueError):
    """A document that describes no form."""

    retryable = False


GOOGLE_FORM_TYPE = "application/vnd.google-apps.form"

_MOST_RATING = 10
"""The highest value of our kind rating."""


def google_form(document: object) -> HostedForm:
    """The content of a form. Raises NoFormError for a document that is none."""
    if not isinstance(document, dict) or not isinstance(document.get("info"), dict):
        raise NoFormError("The document is not a Google Form.")
    info = document["info"]
    items = [one for one in _list(document.get("items")) if isinstance(one, dict)]
    return HostedForm(
        title=_text(info.get("title")) or _text(info.get("documentTitle")) or "",
        description=_text(info.get("description")),
        questions=[question for item in items for question in _questions(item)],
    )


def _questions(item: JsonObject) -> Iterator[FormQuestion]:
    title, described = _text(item.get("title")) or "Question", _text(item.get("description"))
    group = item.get("questionGroupItem")
    if isinstance(group, dict):
        yield from _rows(title, described, group)
    one = item.get("questionItem")
    if isinstance(one, dict) and isinstance(one.get("question"), dict):
        yield _google_question(title, described, one["question"])


def _rows(title: str, described: str | None, group: JsonObject) -> Iterator[FormQuestion]:
    """A grid is one question for each of its rows."""
    grid = group.get("grid")
    columns = grid.get("columns") if isinstance(grid, dict) else None
    for question in _list(group.get("questions")):
        row = question.get("rowQuestion") if isinstance(question, dict) else None
        if isinstance(row, dict):
            label = f"{title}: {_text(row.get('title')) or 'Row'}"
            asked = {**question, "choiceQuestion": columns or {}}
            yield _google_question(label, described, asked)


def _google_question(label: str, described: str | None, asked: JsonObject) -> FormQuestion:
    required = asked.get("required") is True
    for name, kind_of in _GOOGLE_KINDS.items():
        if isinstance(asked.get(name), dict):
            kind, more = kind_of(asked[name])
            return FormQuestion(label, kind, required, described, **more)
    return FormQuestion(label, None, required, described)


_Kind = tuple[FieldKind | None, Mapping[str, Any]]


def _words(question: JsonObject) -> _Kind:
    return FieldKind.LONG_TEXT if question.get("paragraph") is True else FieldKind.TEXT, {}


def _choice(question: JsonObject) -> _Kind:
    given = [one for one in _list(question.get("options")) if isinstance(one, dict)]
    options = [text for one in given if (text := _text(one.get("value"))) is not None]
    other = any(one.get("isOther") is True for one in given)
    if not options:
        return None, {}
    many = question.get("type") == "CHECKBOX"
    kind = FieldKind.MULTI_SELECT if many else FieldKind.SELECT
    return kind, {"options": options, "settings": {"allowCreate": True} if other else {}}


def _scale(question: JsonObject) -> _Kind:
    low, high = question.get("low", 0), question.get("high")
    if not isinstance(low, int) or not isinstance(high, int) or low > high:
        return None, {}
    return FieldKind.NUMBER, {"settings": {"precision": 0, "min": low, "max": high}}


def _rating(question: JsonObject) -> _Kind:
    level = question.get("ratingScaleLevel")
    if not isinstance(level, int) or not 0 < level <= _MOST_RATING:
        return None, {}
    return FieldKind.RATING, {}


def _date(question: JsonObject) -> _Kind:
    """A date without its year is no date of ours."""
    if question.get("includeYear") is not True:
        return None, {}
    return FieldKind.DATETIME if question.get("includeTime") is True else FieldKind.DATE, {}


def _time(question: JsonObject) -> _Kind:
    return FieldKind.DURATION if question.get("duration") is True else FieldKind.TIME, {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


_GOOGLE_KINDS = {
    "textQuestion": _words,
    "choiceQuestion": _choice,
    "scaleQuestion": _scale,
    "ratingQuestion": _rating,
    "dateQuestion": _date,
    "timeQuestion": _time,
}
"""Files that are uploaded have none: no form of ours asks the public for one."""

JSON_FORM_TYPE = "application/vnd.workspace.form+json"

_JSON_KINDS = frozenset(kind.value for kind in FieldKind)


def json_form(document: object) -> HostedForm:
    """The content of a form. Raises NoFormError for a document that is none."""
    if not isinstance(document, dict) or not isinstance(document.get("questions"), list):
        raise NoFormError("The document has no list of questions.")
    asked = [one for one in document["questions"] if isinstance(one, dict)]
    return HostedForm(
        title=_text(document.get("title")) or "",
        description=_text(document.get("description")),
        questions=[_json_question(one) for one in asked],
    )


def _json_question(asked: JsonObject) -> FormQuestion:
    kind, options = asked.get("kind", "text"), asked.get("options")
    names = [one for one in options if isinstance(one, str)] if isinstance(options, list) else []
    return FormQuestion(
        label=_text(asked.get("label")) or "Question",
        kind=FieldKind(kind) if isinstance(kind, str) and kind in _JSON_KINDS else None,
        required=asked.get("required") is True,
        help=_text(asked.get("help")),
        options=names,
    )
