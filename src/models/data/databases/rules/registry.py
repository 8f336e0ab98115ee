"""One entry per field kind: how its values are checked and how they are compared.

What `databases/rules` knows of a kind beyond its entry here is in `settings` (what its settings
may say) and `conversion` (what its values become in another kind).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from models.data.databases.rules import values
from models.data.databases.rules.fields import FieldSpec
from models.data.databases.rules.kinds import FieldKind

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
    FILES = "files"
    RECORDS = "records"
    VALUES = "values"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class KindRule:
    """`check` is None where clients write no value; `searched` values take part in search.

    `comparison` is that of a field without settings; ask `comparison(spec)` for a field's own.
    """

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
    FieldKind.FILE: KindRule(Comparison.FILES, values.check_files),
    FieldKind.JSON: KindRule(Comparison.OPAQUE, values.check_json),
    FieldKind.LOCATION: KindRule(Comparison.OPAQUE, values.check_location),
    FieldKind.RELATION: KindRule(Comparison.RECORDS, None),
    FieldKind.ROLLUP: KindRule(Comparison.OPAQUE, None),
    FieldKind.LOOKUP: KindRule(Comparison.VALUES, None),
    FieldKind.FORMULA: KindRule(Comparison.OPAQUE, None),
    FieldKind.BUTTON: KindRule(Comparison.OPAQUE, None),
    FieldKind.TIMER: KindRule(Comparison.OPAQUE, None),
    FieldKind.AUTO_NUMBER: KindRule(Comparison.NUMBER, None),
    FieldKind.CREATED_AT: KindRule(Comparison.MOMENT, None),
    FieldKind.UPDATED_AT: KindRule(Comparison.MOMENT, None),
    FieldKind.CREATED_BY: KindRule(Comparison.USER, None),
    FieldKind.UPDATED_BY: KindRule(Comparison.USER, None),
}


class ResultKind(StrEnum):
    """What a formula or a rollup gives (setting `resultKind`)."""

    TEXT = "text"
    NUMBER = "number"
    CHECKBOX = "checkbox"
    DATE = "date"
    DATETIME = "datetime"
    JSON = "json"


_RESULTS: dict[object, Comparison] = {
    ResultKind.TEXT: Comparison.TEXT,
    ResultKind.NUMBER: Comparison.NUMBER,
    ResultKind.CHECKBOX: Comparison.BOOLEAN,
    ResultKind.DATE: Comparison.DAY,
    ResultKind.DATETIME: Comparison.MOMENT,
    ResultKind.JSON: Comparison.OPAQUE,
}


def comparison(spec: FieldSpec) -> Comparison:
    """The stored form of a field's values; that of a formula or rollup follows its result."""
    if spec.kind in {FieldKind.FORMULA, FieldKind.ROLLUP}:
        return _RESULTS.get(spec.settings.get("resultKind"), Comparison.OPAQUE)
    return KIND_RULES[spec.kind].comparison
