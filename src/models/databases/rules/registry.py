"""One entry per field kind: how its values are checked and how they are compared.

A kind that becomes available later is one more entry here, and one more `Comparison` only when
its stored form is new.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from models.databases.rules import values
from models.databases.rules.fields import FieldSpec
from models.databases.rules.kinds import FieldKind

Check = Callable[[FieldSpec, Any], Any]


class Comparison(StrEnum):
    """The stored forms: each has one way out of JSONB, one SQL type and one set of operators."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DAY = "day"
    MOMENT = "moment"
    TIME = "time"
    OPTION = "option"
    OPTIONS = "options"
    USER = "user"
    USERS = "users"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class KindRule:
    """`check` is None where only the platform writes; `searched` values take part in search."""

    comparison: Comparison
    check: Check | None
    searched: bool = False


KIND_RULES: dict[FieldKind, KindRule] = {
    FieldKind.TEXT: KindRule(Comparison.TEXT, values.check_text, searched=True),
    FieldKind.LONG_TEXT: KindRule(Comparison.TEXT, values.check_long_text, searched=True),
    FieldKind.RICH_TEXT: KindRule(Comparison.TEXT, values.check_long_text, searched=True),
    FieldKind.EMAIL: KindRule(Comparison.TEXT, values.check_email, searched=True),
    FieldKind.URL: KindRule(Comparison.TEXT, values.check_url, searched=True),
    FieldKind.PHONE: KindRule(Comparison.TEXT, values.check_phone, searched=True),
    FieldKind.NUMBER: KindRule(Comparison.NUMBER, values.check_number),
    FieldKind.CURRENCY: KindRule(Comparison.NUMBER, values.check_number),
    FieldKind.PERCENT: KindRule(Comparison.NUMBER, values.check_number),
    FieldKind.RATING: KindRule(Comparison.NUMBER, values.check_rating),
    FieldKind.DURATION: KindRule(Comparison.NUMBER, values.check_duration),
    FieldKind.CHECKBOX: KindRule(Comparison.BOOLEAN, values.check_checkbox),
    FieldKind.DATE: KindRule(Comparison.DAY, values.check_date),
    FieldKind.DATETIME: KindRule(Comparison.MOMENT, values.check_datetime),
    FieldKind.TIME: KindRule(Comparison.TIME, values.check_time),
    FieldKind.SELECT: KindRule(Comparison.OPTION, values.check_option),
    FieldKind.STATUS: KindRule(Comparison.OPTION, values.check_option),
    FieldKind.MULTI_SELECT: KindRule(Comparison.OPTIONS, values.check_options),
    FieldKind.PERSON: KindRule(Comparison.USERS, values.check_people),
    FieldKind.JSON: KindRule(Comparison.OPAQUE, values.check_json),
    FieldKind.LOCATION: KindRule(Comparison.OPAQUE, values.check_location),
    FieldKind.AUTO_NUMBER: KindRule(Comparison.NUMBER, None),
    FieldKind.CREATED_AT: KindRule(Comparison.MOMENT, None),
    FieldKind.UPDATED_AT: KindRule(Comparison.MOMENT, None),
    FieldKind.CREATED_BY: KindRule(Comparison.USER, None),
    FieldKind.UPDATED_BY: KindRule(Comparison.USER, None),
}
