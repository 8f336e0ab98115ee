"""The type of a row of the workspace log, for feeds of it."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class EventRow(Protocol):
    """An event, for its `audience_user_id` alone, or for all who see its item, if it has one."""

    seq: int
    workspace_id: Id
    type: str
    at: datetime
    actor_type: str
    actor_user_id: Id | None
    audience_user_id: Id | None
    item_id: Id | None
    data: dict[str, Any]
