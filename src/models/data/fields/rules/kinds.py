"""The kinds a field can have (decisions C5)."""

from enum import StrEnum


class FieldKind(StrEnum):
    TEXT = "text"
    LONG_TEXT = "long_text"
    RICH_TEXT = "rich_text"
    NUMBER = "number"
    CURRENCY = "currency"
    PERCENT = "percent"
    RATING = "rating"
    DURATION = "duration"
    CHECKBOX = "checkbox"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    SELECT = "select"
    MULTI_SELECT = "multi_select"
    STATUS = "status"
    PERSON = "person"
    EMAIL = "email"
    URL = "url"
    PHONE = "phone"
    FILE = "file"
    JSON = "json"
    LOCATION = "location"
    RELATION = "relation"
    ROLLUP = "rollup"
    LOOKUP = "lookup"
    FORMULA = "formula"
    BUTTON = "button"
    TIMER = "timer"
    AUTO_NUMBER = "auto_number"
    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"
    CREATED_BY = "created_by"
    UPDATED_BY = "updated_by"


TITLE_KEY = "title"
"""The key of the field that holds a record's title; every database has it."""

NUMERIC_KINDS = frozenset({FieldKind.NUMBER, FieldKind.CURRENCY, FieldKind.PERCENT})
OPTION_KINDS = frozenset({FieldKind.SELECT, FieldKind.MULTI_SELECT, FieldKind.STATUS})
DATE_KINDS = frozenset({FieldKind.DATE, FieldKind.DATETIME})

SYSTEM_KINDS = frozenset(
    {
        FieldKind.AUTO_NUMBER,
        FieldKind.CREATED_AT,
        FieldKind.UPDATED_AT,
        FieldKind.CREATED_BY,
        FieldKind.UPDATED_BY,
    }
)
"""Kinds whose value the platform writes; clients only read them."""

COMPUTED_KINDS = frozenset({FieldKind.ROLLUP, FieldKind.LOOKUP, FieldKind.FORMULA, FieldKind.TIMER})
"""Kinds whose value is computed from others; it is in the `computed` of a record."""

DERIVED_KINDS = frozenset({FieldKind.ROLLUP, FieldKind.LOOKUP, FieldKind.FORMULA})
"""Computed kinds whose settings name the fields they are derived from."""

STORED_KINDS = (
    frozenset(FieldKind)
    - SYSTEM_KINDS
    - COMPUTED_KINDS
    - {
        FieldKind.RELATION,
        FieldKind.BUTTON,
    }
)
"""Kinds whose value clients write into a record's `data`."""
