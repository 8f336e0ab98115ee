"""Runs of data sources for the reconciler: what is staged of them is in our rows."""

from typing_extensions import override

from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    EndKind,
    SweepContext,
    WorkFamily,
    next_restart,
)
from models.sources.data_source_runs.commands.acceptance import start_run
from models.sources.data_source_runs.commands.endings import abandon_run
from models.sources.data_source_runs.rules import DataSourceRunStatus, family_of
from models.sources.data_source_runs.tables import DATA_SOURCE_RUNS, DataSourceRun
from runtime.database import UnitOfWork
from runtime.families import Family


class DataSourceRuns(WorkFamily[DataSourceRun]):
    """Refreshes of data sources and imports of spreadsheets."""

    def __init__(self) -> None:
        super().__init__(
            "data_source_runs",
            DATA_SOURCE_RUNS,
            DataSourceRun,
            *(Family.DATA_SOURCE_REFRESH, Family.SPREADSHEET_IMPORT),
        )

    @override
    def workflow_id(self, row: DataSourceRun) -> str:
        return family_of(row.data_source_id).workflow_id(row.id)

    @override
    async def restart(self, work: UnitOfWork, row: DataSourceRun, found: Execution | None) -> None:
        await start_run(work, row, next_restart(found))

    @override
    async def close(self, context: SweepContext, row: DataSourceRun, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
        status = DataSourceRunStatus.CANCELLED if cancelled else DataSourceRunStatus.FAILED
        async with context.database.transaction() as work:
            return await abandon_run(work, row.id, status, end.reason)
