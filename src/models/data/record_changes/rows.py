"""The type of the row of a change."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class ChangeRow(Protocol):
    """A change of a record."""

    id: Id
    record_id: Id
    kind: str
    actor_user_id: Id | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    omitted_keys: list[str] | None
    at: datetime
