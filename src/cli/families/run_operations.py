"""Operations over runs, as a family of work: how far each of them came stands in its row."""

from typing import ClassVar

from typing_extensions import override

from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    Activities,
    EndKind,
    SweepContext,
    WorkFamily,
    next_restart,
)
from activities.parts import Parts
from activities.run_operations.transactions import RunOperationActivities
from models.automation.run_operations.executions import start_execution, workflow_id
from models.automation.run_operations.lifecycle import RUN_OPERATIONS
from models.automation.run_operations.rows import OperationRow
from models.automation.run_operations.rules import OperationStatus
from models.core.lifecycle import commands as lifecycle
from runtime.database import UnitOfWork
from runtime.families import Family, Queue
from workflows.run_operations.run_operation import RunOperation


class RunOperations(WorkFamily[OperationRow]):
    """Operations, whose executions end while they are paused."""

    name, kind, row = "run_operations", RUN_OPERATIONS, OperationRow
    workflows: ClassVar = {Family.RUN_OPERATION: RunOperation}

    @override
    def activities(self, parts: Parts) -> Activities:
        transactions = RunOperationActivities(parts.database)
        return {Queue.BULK: [transactions.advance, transactions.end]}

    @override
    def workflow_id(self, row: OperationRow) -> str:
        return workflow_id(row)

    @override
    async def restart(self, work: UnitOfWork, row: OperationRow, latest: Execution | None) -> None:
        await start_execution(work, row, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: OperationRow, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
        status = OperationStatus.CANCELLED if cancelled else OperationStatus.FAILED
        async with context.database.transaction() as work:
            closed = await lifecycle.finish(
                work, RUN_OPERATIONS, [row.id], status, error=end.reason
            )
        return bool(closed)
