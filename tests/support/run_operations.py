"""Operations over runs, carried out by a test itself: one transaction after the other."""

from typing import Any
from uuid import UUID

from activities.endings import CLOSED
from models.automation.run_operations.execution import Advance, advance
from models.automation.run_operations.lifecycle import RUN_OPERATIONS
from models.automation.run_operations.rows import OperationRow
from models.core.lifecycle import commands as lifecycle
from runtime.database import Database


async def step(database: Database, operation_id: UUID | str) -> Advance | str:
    """The next transaction of an operation, or `closed`."""
    async with database.transaction() as work:
        row = await lifecycle.hold(work, RUN_OPERATIONS, UUID(str(operation_id)), of=OperationRow)
        return CLOSED if row is None else await advance(work, row)


async def carry_out(database: Database, operation: dict[str, Any]) -> None:
    """All transactions of an operation that has no rate."""
    for _ in range(1_000):
        state = await step(database, operation["id"])
        if state == CLOSED or (isinstance(state, Advance) and state.over):
            return
    raise AssertionError("the operation does not end")
