"""Families of imports: runs of data sources, and legacy imports."""

from typing import Any, ClassVar, Protocol

from sqlalchemy import Select, select
from temporalio.client import WorkflowExecutionStatus
from typing_extensions import override

from activities.data_source_runs.steps import DataSourceRunActivities
from activities.legacy_imports import (
    BundleActivities,
    LegacyImportTransactions,
    WorkspaceActivities,
)
from activities.maintenance.families import (
    AbnormalEnd,
    Activities,
    EndKind,
    Execution,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.parts import Parts
from models.sources.data_source_runs.acceptance import start_run
from models.sources.data_source_runs.endings import abandon_run
from models.sources.data_source_runs.lifecycle import DATA_SOURCE_RUNS, SourceRunRow
from models.sources.data_source_runs.rules import DataSourceRunStatus, family_of
from models.workspace.legacy_imports.executions import (
    abandon,
    signal_execution,
    start_execution,
    workflow_id,
)
from models.workspace.legacy_imports.rules import WAITING
from models.workspace.legacy_imports.tables import LEGACY_IMPORTS, legacy_import_run
from runtime.database import UnitOfWork
from runtime.temporal.families import Family, Queue
from workflows.data_source_runs import DataSourceRefresh, SpreadsheetImport
from workflows.legacy_imports import ImportWorkspace, LegacyImport


class DataSourceRuns(WorkFamily[SourceRunRow]):
    """Refreshes of data sources and imports of spreadsheets."""

    name, kind, row = "data_source_runs", DATA_SOURCE_RUNS, SourceRunRow
    workflows: ClassVar = {
        Family.DATA_SOURCE_REFRESH: DataSourceRefresh,
        Family.SPREADSHEET_IMPORT: SpreadsheetImport,
    }

    @override
    def activities(self, parts: Parts) -> Activities:
        steps = DataSourceRunActivities(parts.database, parts.store, parts.fetchers)
        return {
            Queue.IO: [steps.fetch],
            Queue.BULK: [steps.stage, steps.apply, steps.close],
        }

    @override
    def workflow_id(self, row: SourceRunRow) -> str:
        return family_of(row.data_source_id).workflow_id(row.id)

    @override
    async def restart(self, work: UnitOfWork, row: SourceRunRow, latest: Execution | None) -> None:
        await start_run(work, row, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: SourceRunRow, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
        status = DataSourceRunStatus.CANCELLED if cancelled else DataSourceRunStatus.FAILED
        async with context.database.transaction() as work:
            return await abandon_run(work, row.id, status, end.reason)


_run = legacy_import_run.c


class LegacyImportRow(WorkRow, Protocol):
    """A run. It has no workspace, and uses its own id where work is grouped by workspace."""

    execution: str


class LegacyImports(WorkFamily[LegacyImportRow]):
    """Runs that may wait for weeks, and that another execution may roll back after their end."""

    name, kind, row = "legacy_imports", LEGACY_IMPORTS, LegacyImportRow
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
    def workflow_id(self, row: LegacyImportRow) -> str:
        return workflow_id(row)

    @override
    def judge(self, row: LegacyImportRow, latest: Execution | None) -> Verdict:
        """A run that has work left, and whose execution sleeps, has lost its signal."""
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            lost = latest.sleeps and not latest.busy and row.status not in WAITING
            return Verdict.RESTART if lost else Verdict.LEAVE
        return super().judge(row, latest)

    @override
    async def restart(
        self, work: UnitOfWork, row: LegacyImportRow, latest: Execution | None
    ) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await signal_execution(work, row, "reconcile")
        else:
            await start_execution(work, row.id, row.execution, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: LegacyImportRow, end: AbnormalEnd) -> bool:
        async with context.database.transaction() as work:
            return await abandon(work, row.id, end.reason, cancelled=end.kind is EndKind.CANCELLED)
