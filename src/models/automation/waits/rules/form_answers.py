"""The answers to the form of an approval, held against its questions."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from models.automation.automations.rules.graph.configs.waits import ApprovalField
from models.automation.automations.rules.graph.kinds import shorten
from models.core.base import JsonObject
from models.core.problems import refuse
from runtime.errors import Detail

MAX_TEXT = 20_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def check_answers(form: Sequence[ApprovalField], data: JsonObject, *, whole: bool) -> None:
    """Refuse what is no answer; `whole` demands the required ones too. No form takes any data.

    Raises ValidationError at `data.<key>`.
    """
    if form:
        refuse(list(_problems(form, data, whole=whole)))


def _problems(form: Sequence[ApprovalField], data: JsonObject, *, whole: bool) -> Iterator[Detail]:
    known = {field.key: field for field in form}
    for key in sorted(data.keys() - known.keys()):
        yield Detail(f"data.{shorten(key)}", "is not a question of this form")
    for key, field in known.items():
        value = data.get(key)
        if value is None or value == "":
            if whole and field.required:
                yield Detail(f"data.{key}", "is required")
        elif (problem := _CHECKS[field.kind](field, value)) is not None:
            yield Detail(f"data.{key}", problem)


def _text(_: ApprovalField, value: object) -> str | None:
    if not isinstance(value, str):
        return "must be text"
    return None if len(value) <= MAX_TEXT else f"has more than {MAX_TEXT} characters"


def _number(_: ApprovalField, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number"
    return None if math.isfinite(value) else "must be a number"


def _checkbox(_: ApprovalField, value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _select(field: ApprovalField, value: object) -> str | None:
    return None if value in field.options else "must be one of the options"


def _date(_: ApprovalField, value: object) -> str | None:
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            date.fromisoformat(value)
            return None
    except ValueError:
        pass
    return "must be a date such as 2026-01-31"


_CHECKS: Mapping[str, Callable[[ApprovalField, Any], str | None]] = {
    "text": _text,
    "number": _number,
    "checkbox": _checkbox,
    "select": _select,
    "date": _date,
}
