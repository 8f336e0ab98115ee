"""Legacy import runs for the reconciler: where each of them is stands in its rows."""

from typing import Any, Protocol

from sqlalchemy import Select, select
from temporalio.client import WorkflowExecutionStatus
from typing_extensions import override

from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    EndKind,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
    next_restart,
)
from models.workspace.legacy_imports.commands.executions import (
    signal_execution,
    start_execution,
    workflow_id,
)
from models.workspace.legacy_imports.commands.steps import abandon
from models.workspace.legacy_imports.rules import WAITING
from models.workspace.legacy_imports.tables import LEGACY_IMPORTS, legacy_import_run
from runtime.database import UnitOfWork
from runtime.families import Family

_run = legacy_import_run.c


class RunRow(WorkRow, Protocol):
    """A run; it is of no workspace, and stands for itself where work is told apart by them."""

    execution: str


class LegacyImports(WorkFamily[RunRow]):
    """Runs that may wait for weeks, and whose ends may be taken back by another execution."""

    def __init__(self) -> None:
        super().__init__("legacy_imports", LEGACY_IMPORTS, RunRow, Family.LEGACY_IMPORT)

    @override
    def rows(self) -> Select[Any]:
        return select(_run.id, _run.id.label("workspace_id"), _run.status, _run.execution)

    @override
    def workflow_id(self, row: RunRow) -> str:
        return workflow_id(row)

    @override
    def judge(self, row: RunRow, found: Execution | None) -> Verdict:
        """A run that has work left, and whose execution sleeps, has lost its signal."""
        if found is not None and found.status is WorkflowExecutionStatus.RUNNING:
            lost = found.sleeps and not found.busy and row.status not in WAITING
            return Verdict.RESTART if lost else Verdict.LEAVE
        return super().judge(row, found)

    @override
    async def restart(self, work: UnitOfWork, row: RunRow, found: Execution | None) -> None:
        if found is not None and found.status is WorkflowExecutionStatus.RUNNING:
            await signal_execution(work, row, "reconcile")
        else:
            await start_execution(work, row.id, row.execution, next_restart(found))

    @override
    async def close(self, context: SweepContext, row: RunRow, end: AbnormalEnd) -> bool:
        async with context.database.transaction() as work:
            return await abandon(work, row.id, end.reason, cancelled=end.kind is EndKind.CANCELLED)
