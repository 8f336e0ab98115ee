"""The types of rows of databases and removed fields."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class DatabaseRow(Protocol):
    """A database; one that is being copied has no item."""

    id: Id
    item_id: Id | None
    label: str
    record_layout: dict[str, Any]
    updated_at: datetime


class RemovedFieldRow(Protocol):
    """A removed field whose values some records still store under its key."""

    id: Id
    database_id: Id
    key: str
