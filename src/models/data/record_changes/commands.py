"""Writing the history of records."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Insert, insert, select

from models.data.record_changes.tables import record_change


def recording(values: Mapping[str, ColumnElement[Any]]) -> Insert:
    """The insertion of changes with these values, for the statement that makes them."""
    return insert(record_change).from_select(list(values), select(*values.values()))
