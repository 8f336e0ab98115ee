"""The forms of values: what a filter compares, whatever field or path it comes from."""

from enum import StrEnum


class ValueForm(StrEnum):
    """Each form has one set of operators, and one way out of a stored document."""

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


LISTS = frozenset(
    {
        ValueForm.OPTIONS,
        ValueForm.USERS,
        ValueForm.FILES,
        ValueForm.RECORDS,
        ValueForm.VALUES,
    }
)
"""The forms that hold several values."""
