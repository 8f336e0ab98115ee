"""The end of the row of an execution that finds it closed."""

from collections.abc import Mapping

from sqlalchemy import select
from temporalio import activity

from models.automation.action_runs.tables import ACTION_RUNS
from models.automation.automation_runs.tables import AUTOMATION_RUNS
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.data.time_entries.tables import TIME_ENTRIES
from models.messages.deliveries.tables import DELIVERIES
from models.messages.jobs.tables import JOBS
from models.sources.data_source_runs.tables import DATA_SOURCE_RUNS
from models.workspace.legacy_imports.tables import LEGACY_IMPORTS
from runtime.database import Database
from runtime.families import JOB_FAMILIES, Family

CLOSED = "closed"
"""The reply of an activity that finds a row closed, or no row."""

_TABLES: Mapping[Family, WorkTable] = {
    Family.AUTOMATION_RUN: AUTOMATION_RUNS,
    Family.ACTION_RUN: ACTION_RUNS,
    Family.DATA_SOURCE_REFRESH: DATA_SOURCE_RUNS,
    Family.LEGACY_IMPORT: LEGACY_IMPORTS,
    Family.SPREADSHEET_IMPORT: DATA_SOURCE_RUNS,
    Family.TIMER_DUE: TIME_ENTRIES,
    Family.DELIVERY: DELIVERIES,
    **dict.fromkeys(JOB_FAMILIES, JOBS),
}


class EndingActivities:
    """The requests of an execution that ends without having written the end of its row."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn(name="read_end")
    async def read_end(self, workflow_id: str) -> str:
        """The final status of the row of an execution, whose id begins with `<family>/<row id>`.

        `closed` for a row that is open after all, or is not there.
        """
        family, row_id, *_ = workflow_id.split("/")
        kind = _TABLES[Family(family)]
        columns = kind.table.c
        own = select(columns.status).where(columns.id == Id(row_id), ~kind.is_open)
        async with self._database.transaction() as work:
            return await work.scalar(own) or CLOSED
