"""Runs of data sources, as a family of work: what is staged of them is in our rows."""

from typing import ClassVar

from typing_extensions import override

from activities.data_source_runs.steps import DataSourceRunActivities
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
from models.sources.data_source_runs.commands.acceptance import start_run
from models.sources.data_source_runs.commands.endings import abandon_run
from models.sources.data_source_runs.lifecycle import DATA_SOURCE_RUNS
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import DataSourceRunStatus, family_of
from runtime.database import UnitOfWork
from runtime.families import Family, Queue
from workflows.data_source_runs.data_source_refresh import DataSourceRefresh
from workflows.data_source_runs.spreadsheet_import import SpreadsheetImport


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
