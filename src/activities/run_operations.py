"""The transactions of operations over runs: one per activity call, each safe to repeat."""

from temporalio import activity

from activities.database_errors import refusals
from activities.endings import CLOSED
from activities.heartbeats import heartbeats
from models.automation.run_operations.commands import end_operation
from models.automation.run_operations.execution import advance
from models.automation.run_operations.queries import RUN_OPERATIONS
from models.automation.run_operations.rules import OperationRow, OperationStatus
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from runtime.database import Database, UnitOfWork
from runtime.errors import PlatformError, UnavailableError
from runtime.processes.fault_injection import FaultPoint, inject_fault

STUCK = "The operation failed. Completed work is kept."


class RunOperationActivities:
    """Advancing and closing operations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn(name="advance_run_operation")
    async def advance(self, workflow_id: str) -> str | float:
        """Do the next part of the operation of an execution.

        Returns the seconds after which the next part may follow, or the final status. `closed`
        means that the operation was paused or ended, or that another execution continues it.
        """
        async with heartbeats():
            try:
                async with self._database.transaction() as work:
                    row = await _held(work, workflow_id)
                    if row is None:
                        return CLOSED
                    with refusals():
                        state = await advance(work, row)
                    inject_fault(FaultPoint.AFTER_RUNS_BEFORE_COMMIT, workflow_id)
            except UnavailableError:
                raise
            except PlatformError as error:
                return await self._close(workflow_id, OperationStatus.FAILED, error.message)
        if state.over:
            return OperationStatus.SUCCEEDED.value
        inject_fault(FaultPoint.AFTER_CHUNK_BEFORE_REPLY, workflow_id)
        return state.pause

    @activity.defn(name="end_run_operation")
    async def end(self, workflow_id: str, cancelled: bool) -> str:
        """Close the operation of an execution that cannot continue."""
        if cancelled:
            return await self._close(workflow_id, OperationStatus.CANCELLED)
        return await self._close(workflow_id, OperationStatus.FAILED, STUCK)

    async def _close(
        self, workflow_id: str, status: OperationStatus, error: str | None = None
    ) -> str:
        """Close the operation of an execution; what it has done stays."""
        async with self._database.transaction() as work:
            row = await _held(work, workflow_id)
            if row is None:
                return CLOSED
            await end_operation(work, row, status, error)
            return status.value


async def _held(work: UnitOfWork, workflow_id: str) -> OperationRow | None:
    """The operation of an execution, locked; None when it is paused, over, or in another one."""
    _, operation_id, execution, *_ = (*workflow_id.split("/"), "")
    row = await lifecycle.hold(work, RUN_OPERATIONS, Id(operation_id), of=OperationRow)
    return row if row is not None and str(row.execution or "") == execution else None
