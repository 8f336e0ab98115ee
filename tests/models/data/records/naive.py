"""The meaning of a query, spelled out over plain Python values, to hold the compiler against."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

OPTION_ORDER = {"zeta": 0, "alpha": 1, "mid": 2, "one": 0, "two": 1, "three": 2}
ORDERED = 100
"""Characters of a text that take part in an order of one or two texts."""
MISFIT = "soon"
"""Text that is no day, moment or time."""

TODAY = date(2026, 5, 20)


@dataclass(frozen=True)
class Row:
    """A stored record; values may not have their field's form.

    `links` are places in the list of rows the row is in; a row in the trash is not there.
    """

    id: UUID
    title: str
    data: dict[str, Any]
    number: int
    created_at: datetime
    archived: bool
    computed: dict[str, Any] = field(default_factory=dict)
    links: Sequence[int] = ()
    trashed: bool = False
    linked: list[str] = field(default_factory=list)
    """Ids of the rows it is linked with, those in the trash left out."""


def connect(rows: Sequence[Row]) -> None:
    """Let every row know the rows its links lead to; a link is seen from both ends."""
    for row in rows:
        row.linked.clear()
    for own, row in enumerate(rows):
        for place in row.links:
            other = place % len(rows)
            for here, there in ((own, other), (other, own)):
                if not rows[there].trashed and str(rows[there].id) not in rows[here].linked:
                    rows[here].linked.append(str(rows[there].id))


COMPUTED = {"score", "verdict", "peek"}


def value_of(row: Row, field: str) -> Any:
    """The typed value, or None where there is none of the field's form."""
    if field in _COLUMNS:
        return _COLUMNS[field](row)
    stored = (row.computed if field in COMPUTED else row.data).get(field)
    match field:
        case "size" | "score":
            is_number = isinstance(stored, int | float) and not isinstance(stored, bool)
            return stored if is_number else None
        case "done":
            return stored is True
        case "links":
            return row.linked
        case "tags" | "who" | "papers" | "peek":
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
    if field in LISTS:
        return _list(op, value, wanted)
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


LISTS = {"tags", "who", "papers", "links", "peek"}


def _list(op: str, value: list[Any], wanted: Any) -> bool:
    has = [any(_same(one, each) for each in value) for one in wanted] if op != "contains" else []
    if op == "contains":
        return any(_same(wanted, each) for each in value)
    return all(has) if op == "has_all" else any(has)


def _same(one: Any, other: Any) -> bool:
    """As JSON has it: true is no number."""
    return isinstance(one, bool) is isinstance(other, bool) and one == other


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
    """By id, in the direction of the last sort, within what the sorts leave equal."""
    if not sorts:
        return sorted(rows, key=lambda row: (row.created_at, row.id), reverse=True)
    key: Callable[[Row], Any] = lambda row: row.id  # noqa: E731
    result = sorted(rows, key=key, reverse=sorts[-1]["direction"] == "desc")
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
    return value[:ORDERED] or None if isinstance(value, str) else value


def groups(rows: list[Row], field: str, granularity: str, descending: bool) -> list[Any]:
    """`(value, rows)` of each group, those without a value last."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        for value in _group_values(row, field, granularity):
            found.setdefault(value, []).append(row)
    filled = [value for value in found if value is not None]
    filled.sort(key=lambda value: _group_order(field, value), reverse=descending)
    return [(value, found[value]) for value in [*filled, *([None] if None in found else [])]]


def _group_order(field: str, value: Any) -> Any:
    return OPTION_ORDER[value] if field in {"state", "tags"} else value


def _group_values(row: Row, field: str, granularity: str) -> list[Any]:
    value = value_of(row, field)
    if field in LISTS:
        return list(dict.fromkeys(value)) or [None] if value is not None else [None]
    if field in {"day", "at", "born"} and value is not None:
        local = value if field == "day" else value.astimezone(UTC).date()
        return [_stretch(local, granularity).isoformat()]
    return [None if value == "" else value]


def _stretch(day: date, granularity: str) -> date:
    match granularity:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
        case "year":
            return day.replace(day=1, month=1)
        case _:
            return day


def aggregate(rows: list[Row], op: str, field: str) -> Any:
    """A figure over these rows, exactly, before it is written as JSON."""
    blank = sum(is_empty(row, field) for row in rows)
    match op:
        case "count":
            return len(rows)
        case "count_empty":
            return blank
        case "count_filled":
            return len(rows) - blank
        case "percent_empty":
            return 100 * blank / len(rows) if rows else None
        case "percent_filled":
            return 100 * (len(rows) - blank) / len(rows) if rows else None
    values = [value for row in rows if (value := value_of(row, field)) not in (None, "")]
    if op == "count_unique":
        return len(Counter(values))
    if op in {"checked", "unchecked"}:
        return sum(value is (op == "checked") for value in values)
    return _figure(op, values) if values else None


def _figure(op: str, values: list[Any]) -> Any:
    match op:
        case "min" | "earliest":
            return min(values)
        case "max" | "latest":
            return max(values)
    numbers = [Fraction(repr(value)) for value in values]
    match op:
        case "sum":
            return sum(numbers)
        case "avg":
            return sum(numbers) / len(numbers)
        case "range":
            return max(numbers) - min(numbers)
        case "median":
            return statistics.median(numbers)
        case _:
            return statistics.stdev(numbers) if len(numbers) > 1 else None
