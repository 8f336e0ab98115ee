"""The type of an item's row."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class ItemRow(Protocol):
    """An item; a class of SQLModel cannot have an attribute named `metadata`."""

    id: Id
    workspace_id: Id
    parent_item_id: Id | None
    kind: str
    target_id: Id | None
    title: str
    icon: str | None
    color: str | None
    position: float
    archived: bool
    access_mode: str
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    deleted_with: Id | None
