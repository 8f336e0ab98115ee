"""Forms as the Google Forms API describes them (REST resource `forms`, v1)."""

from collections.abc import Iterator, Mapping
from typing import Any

from models.core.base import JsonObject
from models.data.fields.rules.kinds import FieldKind
from models.sources.external_resources.rules.forms import FormQuestion, HostedForm, NoFormError

MIME_TYPE = "application/vnd.google-apps.form"

_MOST_RATING = 10
"""The highest value of our kind rating."""


def google_form(document: object) -> HostedForm:
    """The content of a form. Raises NoFormError for a document that is none."""
    if not isinstance(document, dict) or not isinstance(document.get("info"), dict):
        raise NoFormError("The document is no form of Google Forms.")
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
        yield _question(title, described, one["question"])


def _rows(title: str, described: str | None, group: JsonObject) -> Iterator[FormQuestion]:
    """A grid is one question for each of its rows."""
    grid = group.get("grid")
    columns = grid.get("columns") if isinstance(grid, dict) else None
    for question in _list(group.get("questions")):
        row = question.get("rowQuestion") if isinstance(question, dict) else None
        if isinstance(row, dict):
            label = f"{title}: {_text(row.get('title')) or 'Row'}"
            asked = {**question, "choiceQuestion": columns or {}}
            yield _question(label, described, asked)


def _question(label: str, described: str | None, asked: JsonObject) -> FormQuestion:
    required = asked.get("required") is True
    for name, kind_of in _KINDS.items():
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


_KINDS = {
    "textQuestion": _words,
    "choiceQuestion": _choice,
    "scaleQuestion": _scale,
    "ratingQuestion": _rating,
    "dateQuestion": _date,
    "timeQuestion": _time,
}
"""Files that are uploaded have none: no form of ours asks the public for one."""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
