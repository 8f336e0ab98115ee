"""One entry per field kind: how its values are checked and how they are compared.

Beyond its entry here, `settings` has what the settings of a kind may be, and `value_conversion`
what its values become in another kind.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from models.core.filters.forms import ValueForm
from models.core.values import InvalidValueError
from models.data.fields.rules import values
from models.data.fields.rules.fields import FieldSpec, FieldValue
from models.data.fields.rules.kinds import FieldKind

Check = Callable[[FieldSpec, object], FieldValue]


@dataclass(frozen=True, slots=True)
class KindRule:
    """`check` is None where clients write no value; `searched` values take part in search.

    `form` is that of a field without settings; ask `value_form(spec)` for a field's own. `plain`
    tells of many texts at once that `check` gives each as it is.
    """

    form: ValueForm
    check: Check | None
    searched: bool = False
    plain: values.PlainText | None = None


KIND_RULES: dict[FieldKind, KindRule] = {
    FieldKind.TEXT: KindRule(
        ValueForm.TEXT, values.check_text, searched=True, plain=values.SHORT_TEXT
    ),
    FieldKind.LONG_TEXT: KindRule(
        ValueForm.TEXT, values.check_long_text, searched=True, plain=values.LONG_TEXT
    ),
    FieldKind.RICH_TEXT: KindRule(
        ValueForm.TEXT, values.check_long_text, searched=True, plain=values.LONG_TEXT
    ),
    FieldKind.EMAIL: KindRule(
        ValueForm.TEXT, values.check_email, searched=True, plain=values.PLAIN_EMAIL
    ),
    FieldKind.URL: KindRule(
        ValueForm.TEXT, values.check_url, searched=True, plain=values.PLAIN_URL
    ),
    FieldKind.PHONE: KindRule(ValueForm.TEXT, values.check_phone, searched=True),
    FieldKind.NUMBER: KindRule(ValueForm.NUMBER, values.check_number),
    FieldKind.CURRENCY: KindRule(ValueForm.NUMBER, values.check_number),
    FieldKind.PERCENT: KindRule(ValueForm.NUMBER, values.check_number),
    FieldKind.RATING: KindRule(ValueForm.NUMBER, values.check_rating),
    FieldKind.DURATION: KindRule(ValueForm.NUMBER, values.check_duration),
    FieldKind.CHECKBOX: KindRule(ValueForm.BOOLEAN, values.check_checkbox),
    FieldKind.DATE: KindRule(ValueForm.DAY, values.check_date),
    FieldKind.DATETIME: KindRule(ValueForm.MOMENT, values.check_datetime),
    FieldKind.TIME: KindRule(ValueForm.TIME, values.check_time),
    FieldKind.SELECT: KindRule(ValueForm.OPTION, values.check_option),
    FieldKind.STATUS: KindRule(ValueForm.OPTION, values.check_option),
    FieldKind.MULTI_SELECT: KindRule(ValueForm.OPTIONS, values.check_options),
    FieldKind.PERSON: KindRule(ValueForm.USERS, values.check_people),
    FieldKind.FILE: KindRule(ValueForm.FILES, values.check_files),
    FieldKind.JSON: KindRule(ValueForm.OPAQUE, values.check_json),
    FieldKind.LOCATION: KindRule(ValueForm.OPAQUE, values.check_location),
    FieldKind.RELATION: KindRule(ValueForm.RECORDS, None),
    FieldKind.ROLLUP: KindRule(ValueForm.OPAQUE, None),
    FieldKind.LOOKUP: KindRule(ValueForm.VALUES, None),
    FieldKind.FORMULA: KindRule(ValueForm.OPAQUE, None),
    FieldKind.BUTTON: KindRule(ValueForm.OPAQUE, None),
    FieldKind.TIMER: KindRule(ValueForm.NUMBER, None),
    FieldKind.AUTO_NUMBER: KindRule(ValueForm.NUMBER, None),
    FieldKind.CREATED_AT: KindRule(ValueForm.MOMENT, None),
    FieldKind.UPDATED_AT: KindRule(ValueForm.MOMENT, None),
    FieldKind.CREATED_BY: KindRule(ValueForm.USER, None),
    FieldKind.UPDATED_BY: KindRule(ValueForm.USER, None),
}


def is_plain(spec: FieldSpec, column: Sequence[Any]) -> bool:
    """True when the field stores each of these values as it is, and none of them clears it."""
    kinds, rule = set(map(type, column)), KIND_RULES[spec.kind]
    assert rule.check is not None, "clients write this kind"
    if type(None) in kinds or (spec.required and not all(column)):
        return False
    if kinds == {str}:
        if rule.plain is not None:
            return rule.plain.takes(column)
        column = list(set(column))
    try:
        checked = [rule.check(spec, value) for value in column]
    except InvalidValueError:
        return False
    # 3 and 3.0 are equal, and are not stored alike.
    return checked == column and set(map(type, checked)) == kinds


class ResultKind(StrEnum):
    """The kind of value that a formula or a rollup gives (setting `resultKind`)."""

    TEXT = "text"
    NUMBER = "number"
    CHECKBOX = "checkbox"
    DATE = "date"
    DATETIME = "datetime"
    JSON = "json"


_RESULTS: dict[object, ValueForm] = {
    ResultKind.TEXT: ValueForm.TEXT,
    ResultKind.NUMBER: ValueForm.NUMBER,
    ResultKind.CHECKBOX: ValueForm.BOOLEAN,
    ResultKind.DATE: ValueForm.DAY,
    ResultKind.DATETIME: ValueForm.MOMENT,
    ResultKind.JSON: ValueForm.OPAQUE,
}


def value_form(spec: FieldSpec) -> ValueForm:
    """The stored form of a field's values; of a formula or rollup, that of its result kind."""
    if spec.kind in {FieldKind.FORMULA, FieldKind.ROLLUP}:
        return _RESULTS.get(spec.settings.get("resultKind"), ValueForm.OPAQUE)
    return KIND_RULES[spec.kind].form
