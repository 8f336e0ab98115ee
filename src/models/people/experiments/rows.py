"""The type of an experiment's row, for the nouns whose variants it compares."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class ExperimentRow(Protocol):
    """An experiment about `target_key`."""

    id: Id
    target_key: str | None
    assignment_unit: str
    status: str
    allocation: float
    started_at: datetime | None
    ends_at: datetime | None
    variants: list[Any]
    created_at: datetime
