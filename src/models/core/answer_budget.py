"""Pages of rows with large JSON columns: bounding the bytes that one answer carries."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, case, cast, func, select

BUDGET = 8 * 1024 * 1024
"""Bytes of JSON after which no further row is answered; the first row always is."""

_CARRIED = "carried"
_TURN = "turn"


def within_budget(
    statement: Select[Any], order: Sequence[ColumnElement[Any]], limit: int, heavy: Sequence[str]
) -> Select[Any]:
    """The first rows of a statement, the `heavy` JSON columns null in those past the budget.

    So a reader sees that there are more (`carried`) without their weight.
    """
    turn = func.row_number().over(order_by=order).label(_TURN)
    page = statement.add_columns(turn).order_by(*order).limit(limit).subquery()
    weights = [func.coalesce(func.octet_length(cast(page.c[name], Text)), 0) for name in heavy]
    weight = reduce(add, weights)
    before = func.sum(weight).over(order_by=page.c[_TURN], rows=(None, -1))
    fits = func.coalesce(before, 0) < BUDGET
    return select(
        *(
            case((fits, column)).label(column.name) if column.name in heavy else column
            for column in page.c
        ),
        fits.label(_CARRIED),
    ).order_by(page.c[_TURN])


def carried(rows: Sequence[Any]) -> list[Any]:
    """The rows that the budget carries: those before the first that it does not."""
    return [row for row in rows if getattr(row, _CARRIED)]
