"""Statements that copy rows within their table."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Insert, Table, insert, select


def copying(
    table: Table, values: Mapping[str, ColumnElement[Any]], condition: Sequence[ColumnElement[bool]]
) -> Insert:
    """The statement that inserts copies of rows, with all columns but `values` as they are."""
    columns = [values.get(column.name, column) for column in table.c]
    names = [column.name for column in table.c]
    rows = select(*columns).where(*condition)
    return insert(table).from_select(names, rows, include_defaults=False)
