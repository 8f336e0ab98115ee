"""Legacy import runs, as a family of work: where each of them is stands in its rows."""

from typing import Any, ClassVar, Protocol

from sqlalchemy import Select, select
from temporalio.client import WorkflowExecutionStatus
from typing_extensions import override

from activities.legacy_imports.bundles import BundleActivities
from activities.legacy_imports.transactions import LegacyImportTransactions
from activities.legacy_imports.workspaces import WorkspaceActivities
from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    Activities,
    EndKind,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.parts import Parts
from models.workspace.legacy_imports.commands.executions import (
    signal_execution,
    start_execution,
    workflow_id,
)
from models.workspace.legacy_imports.commands.steps import abandon
from models.workspace.legacy_imports.lifecycle import LEGACY_IMPORTS
from models.workspace.legacy_imports.rules import WAITING
from models.workspace.legacy_imports.tables import legacy_import_run
from runtime.database import UnitOfWork
from runtime.families import Family, Queue
from workflows.legacy_imports.import_workspace import ImportWorkspace
from workflows.legacy_imports.legacy_import import LegacyImport

_run = legacy_import_run.c


class RunRow(WorkRow, Protocol):
    """A run; it is of no workspace, and stands for itself where work is told apart by them."""

    execution: str


class LegacyImports(WorkFamily[RunRow]):
    """Runs that may wait for weeks, and whose ends may be taken back by another execution."""

    name, kind, row = "legacy_imports", LEGACY_IMPORTS, RunRow
    workflows: ClassVar = {Family.LEGACY_IMPORT: LegacyImport}
    children = (ImportWorkspace,)
    pinned = True

    @override
    def activities(self, parts: Parts) -> Activities:
        transactions = LegacyImportTransactions(parts.database, parts.keys)
        bundles = BundleActivities(parts.database, parts.store)
        workspaces = WorkspaceActivities(parts.database, parts.store, parts.keys)
        return {
            Queue.AUTOMATION: transactions.all(),
            Queue.BULK: [*bundles.all(), workspaces.work_on],
        }

    @override
    def rows(self) -> Select[Any]:
        return select(_run.id, _run.id.label("workspace_id"), _run.status, _run.execution)

    @override
    def workflow_id(self, row: RunRow) -> str:
        return workflow_id(row)

    @override
    def judge(self, row: RunRow, latest: Execution | None) -> Verdict:
        """A run that has work left, and whose execution sleeps, has lost its signal."""
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            lost = latest.sleeps and not latest.busy and row.status not in WAITING
            return Verdict.RESTART if lost else Verdict.LEAVE
        return super().judge(row, latest)

    @override
    async def restart(self, work: UnitOfWork, row: RunRow, latest: Execution | None) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await signal_execution(work, row, "reconcile")
        else:
            await start_execution(work, row.id, row.execution, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: RunRow, end: AbnormalEnd) -> bool:
        async with context.database.transaction() as work:
            return await abandon(work, row.id, end.reason, cancelled=end.kind is EndKind.CANCELLED)
