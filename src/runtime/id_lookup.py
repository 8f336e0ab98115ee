"""Rows that are looked up by ids of another selection, however old the statistics are."""

from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Select, any_, func


def is_among(column: ColumnElement[Any], ids: Select[Any]) -> ColumnElement[bool]:
    """`column = ANY (ARRAY (SELECT …))`: the ids are read first, and each is found by the index.

    `IN` is a join. One that was planned while its tables were empty may go through all rows of one
    table for each row of the other, and does so until statistics are renewed.
    """
    return column == any_(func.array(ids.scalar_subquery(), type_=ARRAY(column.type)))
