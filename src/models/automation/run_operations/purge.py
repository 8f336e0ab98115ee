"""Deleting operations that ended long enough ago, with their results."""

from datetime import datetime

from sqlalchemy import or_, select

from models.automation.run_operations.rules import OPEN_OPERATION, OperationStatus
from models.automation.run_operations.tables import run_operation
from models.core.purging import MAX_ROWS, purge
from runtime.database import UnitOfWork
from runtime.ids import least_id

_operation = run_operation.c


async def purge_operations(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove operations that ended before a moment, or were paused since they were older.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    old = (
        select(_operation.id)
        .where(
            # Accepted before it ended: the oldest ids are all that is looked at.
            _operation.id < least_id(before),
            _operation.status.not_in(OPEN_OPERATION),
            or_(
                _operation.completed_at < before,
                _operation.status == OperationStatus.PAUSED,
            ),
        )
        .order_by(_operation.id)
    )
    return await purge(work, run_operation, old, limit)
