"""The meaning of a query, spelled out over plain Python values, to hold the compiler against."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

OPTION_ORDER = {"zeta": 0, "alpha": 1, "mid": 2}
MISFIT = "soon"
"""Text that is no day, moment or time."""

TODAY = date(2026, 5, 20)


@dataclass(frozen=True)
class Row:
    """A stored record; `data` may hold values that do not have their field's form."""

    id: UUID
    title: str
    data: dict[str, Any]
    number: int
    created_at: datetime
    archived: bool


def value_of(row: Row, field: str) -> Any:
    """The typed value, or None where there is none of the field's form."""
    if field in _COLUMNS:
        return _COLUMNS[field](row)
    stored = row.data.get(field)
    match field:
        case "size":
            is_number = isinstance(stored, int | float) and not isinstance(stored, bool)
            return stored if is_number else None
        case "done":
            return stored is True
        case "tags":
            return stored if isinstance(stored, list) else None
        case "place":
            return stored
    if not isinstance(stored, str) or (field in _PARSED and stored == MISFIT):
        return None
    return _PARSED.get(field, str)(stored)


_COLUMNS: dict[str, Callable[[Row], Any]] = {
    "title": lambda row: row.title,
    "serial": lambda row: row.number,
    "born": lambda row: row.created_at,
}
_PARSED: dict[str, Callable[[str], Any]] = {
    "day": date.fromisoformat,
    "at": datetime.fromisoformat,
    "clock": str,
}


def is_empty(row: Row, field: str) -> bool:
    if field == "done":
        return not isinstance(row.data.get(field), bool)
    return value_of(row, field) in (None, "", [])


def holds(tree: dict[str, Any], row: Row) -> bool:
    if "and" in tree:
        return all(holds(part, row) for part in tree["and"])
    if "or" in tree:
        return any(holds(part, row) for part in tree["or"])
    if "not" in tree:
        return not holds(tree["not"], row)
    return _leaf(row, tree["field"], tree["op"], tree.get("value"))


def _leaf(row: Row, field: str, op: str, wanted: Any) -> bool:
    negated = {
        "ne": "eq",
        "not_in": "in",
        "not_contains": "contains",
        "has_none": "has_any",
        "is_not_empty": "is_empty",
    }
    if op in negated:
        return not _leaf(row, field, negated[op], wanted)
    if op == "is_empty":
        return is_empty(row, field)
    value = value_of(row, field)
    if value is None:
        return False
    if field in {"at", "born"}:
        return _moment(op, value, wanted)
    if field == "day":
        return _day(op, value, wanted)
    if field == "tags":
        return _tags(op, value, wanted)
    return _PLAIN[op](value, wanted)


_PLAIN: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: value == wanted,
    "in": lambda value, wanted: value in wanted,
    "gt": lambda value, wanted: value > wanted,
    "gte": lambda value, wanted: value >= wanted,
    "lt": lambda value, wanted: value < wanted,
    "lte": lambda value, wanted: value <= wanted,
    "after": lambda value, wanted: value > wanted,
    "before": lambda value, wanted: value < wanted,
    "between": lambda value, wanted: wanted[0] <= value <= wanted[1],
    "contains": lambda value, wanted: wanted.lower() in value.lower(),
    "starts_with": lambda value, wanted: value.lower().startswith(wanted.lower()),
    "ends_with": lambda value, wanted: value.lower().endswith(wanted.lower()),
}


def _tags(op: str, value: list[str], wanted: Any) -> bool:
    if op == "contains":
        return wanted in value
    return all(tag in value for tag in wanted) if op == "has_all" else bool({*wanted} & {*value})


def _day(op: str, value: date, wanted: Any) -> bool:
    if op == "within":
        days = timedelta(days=wanted["count"])
        past = wanted["direction"] == "past"
        return TODAY - days <= value <= TODAY if past else TODAY <= value <= TODAY + days
    if op == "relative":
        return value == TODAY + timedelta(days={"yesterday": -1, "today": 0, "tomorrow": 1}[wanted])
    if isinstance(wanted, list):
        return _PLAIN[op](value, [date.fromisoformat(text) for text in wanted])
    return _PLAIN["eq" if op == "on" else op](value, date.fromisoformat(wanted))


def _moment(op: str, value: datetime, wanted: Any) -> bool:
    """A date among the operands of a moment stands for its whole day."""
    if op in {"relative", "within"}:
        return _day(op, value.astimezone(UTC).date(), wanted)
    if isinstance(wanted, list):
        if op == "between":
            return _moment("gte", value, wanted[0]) and _moment("lte", value, wanted[1])
        return value in [datetime.fromisoformat(text) for text in wanted]
    if "T" in wanted:
        return _PLAIN["eq" if op == "on" else op](value, datetime.fromisoformat(wanted))
    return _day(op, value.astimezone(UTC).date(), wanted)


def ordered(rows: list[Row], sorts: list[dict[str, str]]) -> list[Row]:
    """Newest first within what the sorts leave equal."""
    key: Callable[[Row], Any] = lambda row: row.id  # noqa: E731
    if not sorts:
        return sorted(rows, key=lambda row: (row.created_at, row.id), reverse=True)
    result = sorted(rows, key=key, reverse=True)
    for sort in reversed(sorts):
        filled = [row for row in result if _sort_value(row, sort["field"]) is not None]
        blank = [row for row in result if _sort_value(row, sort["field"]) is None]
        filled.sort(
            key=lambda row: _sort_value(row, sort["field"]),
            reverse=sort["direction"] == "desc",
        )
        result = blank + filled if sort["nulls"] == "first" else filled + blank
    return result


def _sort_value(row: Row, field: str) -> Any:
    value = value_of(row, field)
    if field == "state":
        return OPTION_ORDER.get(value)
    return None if value == "" else value
