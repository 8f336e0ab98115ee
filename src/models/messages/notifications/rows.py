"""The type of a notification's row, for whoever brings it to its user."""

from datetime import datetime
from typing import Protocol

from models.core.base import Id, JsonObject


class NotificationRow(Protocol):
    """A notification, with the ids of what it is about."""

    id: Id
    workspace_id: Id
    user_id: Id
    kind: str
    title: str
    body: str
    item_id: Id | None
    record_id: Id | None
    run_id: Id | None
    data: JsonObject
    read_at: datetime | None
    created_at: datetime
