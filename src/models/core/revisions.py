"""The moments by which clients tell one state of a row from the next (decisions C1)."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, literal


def later(updated_at: ColumnElement[Any], now: datetime) -> ColumnElement[datetime]:
    """Now, or just after the last change: `updatedAt` never repeats, so If-Match sees each."""
    return func.greatest(literal(now, updated_at.type), updated_at + timedelta(milliseconds=1))
