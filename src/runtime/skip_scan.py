"""A skip scan: the distinct values of the columns that an index begins with."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, ColumnElement, select, true, tuple_


def distinct(name: str, columns: Sequence[ColumnElement[Any]], *where: ColumnElement[bool]) -> CTE:
    """Find each combination of values by one step along the index, however many rows have it."""
    following = select(*columns).where(*where).order_by(*columns).limit(1)
    first = following.subquery()
    found = select(*first.c).cte(name, recursive=True)
    beyond = following.where(tuple_(*columns) > tuple_(*found.c)).correlate(found).lateral("beyond")
    return found.union_all(select(*beyond.c).select_from(found.join(beyond, true())))
