"""Writing the history of records."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Insert, Select, insert, select

from models.data.record_changes.tables import record_change


def recording(values: Mapping[str, ColumnElement[Any]], *conditions: ColumnElement[bool]) -> Insert:
    """The insertion of changes with these values, for the statement that makes them."""
    return insert(record_change).from_select(
        list(values), select(*values.values()).where(*conditions)
    )


def recording_rows(changes: Select[Any]) -> Insert:
    """The insertion of changes that have the columns of the table, in their order."""
    return insert(record_change).from_select(record_change.c.keys(), changes)
