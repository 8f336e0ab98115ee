"""The filter language: forms of values, operators with notes, and the tree of a filter.

The filter decides what `field` names, and what an operator takes as `value`: the caller that reads
a tree passes the function that reads its leaves. A filter is true or false for everything it is
asked of: what is empty passes no positive test, so a negation is exactly the rest
(interface.md#filters).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar


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

MAX_LEAVES = 64
MAX_DEPTH = 8

L = TypeVar("L")
L_co = TypeVar("L_co", covariant=True)


@dataclass(frozen=True, slots=True)
class AllOf(Generic[L_co]):
    parts: "tuple[Filter[L_co], ...]"


@dataclass(frozen=True, slots=True)
class AnyOf(Generic[L_co]):
    parts: "tuple[Filter[L_co], ...]"


@dataclass(frozen=True, slots=True)
class Not(Generic[L_co]):
    part: "Filter[L_co]"


Filter: TypeAlias = L | AllOf[L] | AnyOf[L] | Not[L]
"""A tree whose leaves are of the type `L`."""


class FilterError(Exception):
    """A filter cannot be read; each problem is a path and a sentence that may begin with it."""

    retryable = False

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


RawLeaf = Mapping[str, Any]
ReadLeaf = Callable[[RawLeaf, str], Filter[L]]
"""Reads a leaf, given its path. Raises FilterError."""

_CONNECTIVES = frozenset({"and", "or", "not"})
_LEAF_KEYS = frozenset({"field", "op", "value", "timezone"})


def read_tree(raw: object, read_leaf: ReadLeaf[L]) -> Filter[L]:
    """The tree a client described. Raises FilterError that names everything that is wrong."""
    reader = _Reader(read_leaf)
    tree = reader.read(raw, "filter", 1)
    if reader.problems or tree is None:
        raise FilterError(*reader.problems)
    return tree


def positive_leaf(op: Op, leaf: Callable[[Op], L]) -> Filter[L]:
    """The leaf of an operator; of a negation the leaf of what it negates, under `Not`."""
    positive = NEGATIONS.get(op)
    return leaf(op) if positive is None else Not(leaf(positive))


class _TooManyError(Exception):
    """The tree is too large to read on."""

    retryable = False


class _Reader(Generic[L]):
    def __init__(self, read_leaf: ReadLeaf[L]) -> None:
        self.read_leaf = read_leaf
        self.leaves = self.nodes = 0
        self.problems: list[tuple[str, str]] = []

    def read(self, raw: object, path: str, depth: int) -> Filter[L] | None:
        """The tree at a path; None after a problem was noted."""
        try:
            return self._read(raw, path, depth)
        except FilterError as error:
            self.problems += error.problems
        except _TooManyError:
            if depth > 1:
                raise
            self.problems = [("filter", f"must have at most {MAX_LEAVES} conditions")]
        return None

    def _read(self, raw: object, path: str, depth: int) -> Filter[L] | None:
        if not isinstance(raw, Mapping):
            raise FilterError((path, "must be an object"))
        self.nodes += 1
        self.leaves += "field" in raw
        if self.leaves > MAX_LEAVES or self.nodes > 2 * MAX_LEAVES:
            raise _TooManyError
        if depth > MAX_DEPTH:
            raise FilterError((path, f"must be at most {MAX_DEPTH} levels deep"))
        if "field" in raw:
            unknown = raw.keys() - _LEAF_KEYS
            if unknown:
                raise FilterError((f"{path}.{min(unknown)}", "is not a valid filter key"))
            return self.read_leaf(raw, path)
        if len(raw) != 1 or not raw.keys() <= _CONNECTIVES:
            raise FilterError(
                (path, "must be one of {and: […]}, {or: […]}, {not: …}, {field, op, value}")
            )
        connective, inner = next(iter(raw.items()))
        if connective == "not":
            part = self.read(inner, f"{path}.not", depth + 1)
            return None if part is None else Not(part)
        parts = self._parts(inner, f"{path}.{connective}", depth + 1)
        return AllOf(parts) if connective == "and" else AnyOf(parts)

    def _parts(self, raw: object, path: str, depth: int) -> tuple[Filter[L], ...]:
        if not isinstance(raw, list):
            raise FilterError((path, "must be a list of filters"))
        parts = [self.read(part, f"{path}.{place}", depth) for place, part in enumerate(raw)]
        return tuple(part for part in parts if part is not None)


class OperatorNote(NamedTuple):
    """The question that a test with the operator asks, and an operand for it."""

    says: str
    operand: Any


OPERATOR_NOTES: dict[Op, OperatorNote] = {
    Op.EQ: OperatorNote("Equals the value. A date compared with a time covers the day.", "open"),
    Op.NE: OperatorNote("Does not equal the value, or is empty.", "open"),
    Op.IN: OperatorNote("Is one of these values.", ["open", "doing"]),
    Op.NOT_IN: OperatorNote("Is none of these values, or is empty.", ["open", "doing"]),
    Op.CONTAINS: OperatorNote(
        "Text contains this text, ignoring case; a list contains this element.", "blue"
    ),
    Op.NOT_CONTAINS: OperatorNote("Does not contain it, or is empty.", "blue"),
    Op.STARTS_WITH: OperatorNote("Text starts with this, ignoring case.", "Inv"),
    Op.ENDS_WITH: OperatorNote("Text ends with this, ignoring case.", ".pdf"),
    Op.GT: OperatorNote("Is greater, or later.", 100),
    Op.GTE: OperatorNote("Is greater or equal, or not earlier.", 100),
    Op.LT: OperatorNote("Is less, or earlier.", 100),
    Op.LTE: OperatorNote("Is less or equal, or not later.", 100),
    Op.BETWEEN: OperatorNote("Is between two values, inclusive.", [10, 20]),
    Op.IS_EMPTY: OperatorNote("Has no value, or is an empty text, list or object.", None),
    Op.IS_NOT_EMPTY: OperatorNote("Has a value.", None),
    Op.HAS_ANY: OperatorNote("The list has at least one of these elements.", ["red", "blue"]),
    Op.HAS_ALL: OperatorNote("The list has all of these elements.", ["red", "blue"]),
    Op.HAS_NONE: OperatorNote("The list has none of these elements.", ["red", "blue"]),
    Op.BEFORE: OperatorNote("Is earlier; for a date, before the day starts.", "2026-01-31"),
    Op.AFTER: OperatorNote("Is later; for a date, after the day has ended.", "2026-01-31"),
    Op.ON: OperatorNote("Is at this time, or on this day.", "2026-01-31"),
    Op.WITHIN: OperatorNote(
        "Is within a number of units before or after now.",
        {"unit": "day", "count": 7, "direction": "future"},
    ),
    Op.RELATIVE: OperatorNote("Is in a period around now; weeks start on Monday.", "this_week"),
}
