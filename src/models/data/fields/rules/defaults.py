"""Default values: stored as the text that the interface shows, and read back as values."""

import json
from typing import NoReturn

from models.core.filters.forms import ValueForm
from models.core.values import MAX_TEXT, InvalidValueError
from models.data.fields.rules.fields import FieldSpec, FieldValue
from models.data.fields.rules.registry import KIND_RULES

_LITERAL = frozenset(
    {ValueForm.TEXT, ValueForm.DAY, ValueForm.MOMENT, ValueForm.TIME, ValueForm.OPTION}
)
"""Forms whose values are text already; the default of any other is JSON text, such as `5`."""


def default_text(field: FieldSpec, raw: object) -> str | None:
    """The text to keep for a default given as text or as the value itself.

    Raises `InvalidValueError` when the field would not take it as a value.
    """
    if raw is None:
        return None
    rule = KIND_RULES[field.kind]
    if rule.check is None:
        raise InvalidValueError("cannot be set: the platform writes this kind of field")
    if rule.form in _LITERAL:
        return str(rule.check(field, raw))
    value = _parsed(raw) if isinstance(raw, str) else raw
    kept = json.dumps(rule.check(field, value), ensure_ascii=False)
    if len(kept) > MAX_TEXT:
        raise InvalidValueError(f"must be at most {MAX_TEXT} characters")
    return kept


def default_value(field: FieldSpec) -> FieldValue:
    """The value a new record gets where none is given; None without a default."""
    if field.default is None or KIND_RULES[field.kind].form in _LITERAL:
        return field.default
    value: FieldValue = json.loads(field.default)
    return value


def _parsed(text: str) -> FieldValue:
    try:
        value: FieldValue = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError("must be the JSON text of a value") from error
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
