"""The question that each operator of a filter asks, in words, with an operand."""

from typing import Any, NamedTuple

from models.core.filters.operators import Op


class OperatorNote(NamedTuple):
    """The question that a test with the operator asks, and an operand for it."""

    says: str
    operand: Any


OPERATOR_NOTES: dict[Op, OperatorNote] = {
    Op.EQ: OperatorNote("Is the same value. A date compared with a moment covers the day.", "open"),
    Op.NE: OperatorNote("Is not the same value, or is empty.", "open"),
    Op.IN: OperatorNote("Is one of these values.", ["open", "doing"]),
    Op.NOT_IN: OperatorNote("Is none of these values, or is empty.", ["open", "doing"]),
    Op.CONTAINS: OperatorNote(
        "Text holds this text, whatever the case of letters; a list holds this element.", "blue"
    ),
    Op.NOT_CONTAINS: OperatorNote("Does not hold it, or is empty.", "blue"),
    Op.STARTS_WITH: OperatorNote("Text begins with this, whatever the case.", "Inv"),
    Op.ENDS_WITH: OperatorNote("Text ends with this, whatever the case.", ".pdf"),
    Op.GT: OperatorNote("Is greater, or later.", 100),
    Op.GTE: OperatorNote("Is greater or the same, or not earlier.", 100),
    Op.LT: OperatorNote("Is less, or earlier.", 100),
    Op.LTE: OperatorNote("Is less or the same, or not later.", 100),
    Op.BETWEEN: OperatorNote("Lies between two values, both included.", [10, 20]),
    Op.IS_EMPTY: OperatorNote("Has no value; an empty text, list or object is none.", None),
    Op.IS_NOT_EMPTY: OperatorNote("Has a value.", None),
    Op.HAS_ANY: OperatorNote("The list holds one of these elements.", ["red", "blue"]),
    Op.HAS_ALL: OperatorNote("The list holds every one of these elements.", ["red", "blue"]),
    Op.HAS_NONE: OperatorNote("The list holds none of these elements.", ["red", "blue"]),
    Op.BEFORE: OperatorNote("Is earlier; of a date, before the day begins.", "2026-01-31"),
    Op.AFTER: OperatorNote("Is later; of a date, after the day has ended.", "2026-01-31"),
    Op.ON: OperatorNote("Is at this moment, or on this day.", "2026-01-31"),
    Op.WITHIN: OperatorNote(
        "Lies between now and so many units earlier or later.",
        {"unit": "day", "count": 7, "direction": "future"},
    ),
    Op.RELATIVE: OperatorNote("Lies in a period around now; weeks begin on Monday.", "this_week"),
}
