"""A skip scan: the distinct values of the columns that an index begins with."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, ColumnElement, select, true, tuple_


def distinct(name: str, columns: Sequence[ColumnElement[Any]], *where: ColumnElement[bool]) -> CTE:
    """Find each combination of values by one step along the index, however many rows have it."""
    next_row = select(*columns).where(*where).order_by(*columns).limit(1)
    first = next_row.subquery()
    rows = select(*first.c).cte(name, recursive=True)
    beyond = next_row.where(tuple_(*columns) > tuple_(*rows.c)).correlate(rows).lateral("beyond")
    return rows.union_all(select(*beyond.c).select_from(rows.join(beyond, true())))
