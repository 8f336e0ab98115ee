"""Arrangements of records that are no table: columns of a board, cards, the days of a calendar."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from api.console.databases.listing import Listing, Row
from api.console.records.cells import Cell
from models.data.views.rules.kinds import ViewKind
from models.data.views.shapes import ViewShape

MOST = 200
"""Records of a board or a calendar; more are reached by its table."""
_ARRANGED = frozenset({ViewKind.BOARD, ViewKind.CALENDAR, ViewKind.GALLERY, ViewKind.TIMELINE})
_WITHOUT = "—"


@dataclass(frozen=True, slots=True)
class Group:
    """Records under one heading."""

    title: str
    color: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Day:
    """A day of a calendar."""

    date: date
    rows: Sequence[Row]
    outside: bool
    """It belongs to the month before or after."""


def is_arranged(view: ViewShape | None) -> bool:
    """True for a view that is shown otherwise than as a table."""
    return view is not None and view.kind in _ARRANGED


def board(view: ViewShape, listed: Listing) -> Sequence[Group]:
    """A column for each option of the field that the view stacks by, and one for none."""
    key = view.manifest.get("stackFieldKey")
    spec = listed.fields.get(str(key))
    if spec is None:
        return [Group("All", "", listed.rows)]
    by_value: dict[Any, list[Row]] = defaultdict(list)
    for row in listed.rows:
        values = row.record.data.get(spec.key)
        for value in values if isinstance(values, list) else [values]:
            by_value[value].append(row)
    ordered = sorted(spec.options, key=lambda option: (option.order, option.key))
    groups = [Group(one.name, one.color, by_value.pop(one.key, [])) for one in ordered]
    rest = [
        Group(_WITHOUT if key is None else str(key), "", rows) for key, rows in by_value.items()
    ]
    return [*rest, *groups] if rest else groups


def values(listed: Listing, row: Row, apart: str | None = None) -> Sequence[Cell]:
    """The values on a card: the filled ones, `apart` from the field that the card stands under."""
    shown = zip(listed.columns[1:], row.cells[1:], strict=True)
    return [
        cell
        for spec, cell in shown
        if not cell.empty and cell.kind != "check" and spec.key != apart
    ]


def month_of(listed: Listing, view: ViewShape, month: str | None, today: date) -> date:
    """The first day of the month to show: the one asked for, else that of the newest record."""
    try:
        return date.fromisoformat(f"{month}-01")
    except ValueError:
        days = [day for row in listed.rows if (day := _day(row, view)) is not None]
        return (max(days) if days else today).replace(day=1)


def calendar(view: ViewShape, listed: Listing, month: date) -> Sequence[Sequence[Day]]:
    """The weeks of a month, from Monday, with the records of each day."""
    by_day: Mapping[date, list[Row]] = defaultdict(list)
    for row in listed.rows:
        if (day := _day(row, view)) is not None:
            by_day[day].append(row)
    first = month - timedelta(days=month.weekday())
    weeks = []
    for week in range(6):
        days = [first + timedelta(days=7 * week + at) for at in range(7)]
        if week and days[0].month != month.month:
            break
        weeks.append([Day(day, by_day[day], day.month != month.month) for day in days])
    return weeks


def beside(month: date, months: int) -> str:
    """The month so many months away, as a URL names it."""
    place = month.year * 12 + month.month - 1 + months
    return f"{place // 12:04}-{place % 12 + 1:02}"


def _day(row: Row, view: ViewShape) -> date | None:
    value = row.record.data.get(str(view.manifest.get("dateFieldKey")))
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None
