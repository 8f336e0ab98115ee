"""The operators of a filter leaf and which stored forms take them (decisions C5)."""

from enum import StrEnum

from models.core.filters.forms import ValueForm


class Op(StrEnum):
    EQ = "eq"
    NE = "ne"
    IN = "in"
    NOT_IN = "not_in"
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    BETWEEN = "between"
    IS_EMPTY = "is_empty"
    IS_NOT_EMPTY = "is_not_empty"
    HAS_ANY = "has_any"
    HAS_ALL = "has_all"
    HAS_NONE = "has_none"
    BEFORE = "before"
    AFTER = "after"
    ON = "on"
    WITHIN = "within"
    RELATIVE = "relative"


NEGATIONS: dict[Op, Op] = {
    Op.NE: Op.EQ,
    Op.NOT_IN: Op.IN,
    Op.NOT_CONTAINS: Op.CONTAINS,
    Op.HAS_NONE: Op.HAS_ANY,
    Op.IS_NOT_EMPTY: Op.IS_EMPTY,
}
"""Operators that hold exactly where another does not, and so for empty values too."""

_EMPTY = (Op.IS_EMPTY, Op.IS_NOT_EMPTY)
_EQUAL = (Op.EQ, Op.NE)
_MEMBER = (Op.IN, Op.NOT_IN)
_ORDER = (Op.GT, Op.GTE, Op.LT, Op.LTE, Op.BETWEEN)
_SUBSTRING = (Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS_WITH, Op.ENDS_WITH)
_CALENDAR = (Op.BEFORE, Op.AFTER, Op.ON, Op.WITHIN, Op.RELATIVE)
_SET = (Op.HAS_ANY, Op.HAS_ALL, Op.HAS_NONE, Op.CONTAINS, Op.NOT_CONTAINS)

OPERATORS: dict[ValueForm, tuple[Op, ...]] = {
    ValueForm.TEXT: (*_EQUAL, *_MEMBER, *_SUBSTRING, *_ORDER, *_EMPTY),
    ValueForm.NUMBER: (*_EQUAL, *_MEMBER, *_ORDER, *_EMPTY),
    ValueForm.BOOLEAN: (*_EQUAL, *_EMPTY),
    ValueForm.DAY: (*_EQUAL, *_MEMBER, *_ORDER, *_CALENDAR, *_EMPTY),
    ValueForm.MOMENT: (*_EQUAL, *_MEMBER, *_ORDER, *_CALENDAR, *_EMPTY),
    ValueForm.TIME: (*_EQUAL, *_MEMBER, *_ORDER, Op.BEFORE, Op.AFTER, *_EMPTY),
    ValueForm.OPTION: (*_EQUAL, *_MEMBER, *_EMPTY),
    ValueForm.USER: (*_EQUAL, *_MEMBER, *_EMPTY),
    ValueForm.OPTIONS: (*_SET, *_EMPTY),
    ValueForm.USERS: (*_SET, *_EMPTY),
    ValueForm.FILES: (*_SET, *_EMPTY),
    ValueForm.RECORDS: (*_SET, *_EMPTY),
    ValueForm.VALUES: (*_SET, *_EMPTY),
    ValueForm.OPAQUE: _EMPTY,
}
