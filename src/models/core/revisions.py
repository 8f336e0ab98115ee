"""The `updatedAt` of a changed row, by which If-Match tells its states apart (decisions C1)."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, literal


def next_updated_at(updated_at: ColumnElement[Any], now: datetime) -> ColumnElement[datetime]:
    """Now, or one millisecond after the last change if that is later: it never repeats."""
    return func.greatest(literal(now, updated_at.type), updated_at + timedelta(milliseconds=1))
