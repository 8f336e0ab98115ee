"""The end of the row of an execution that finds it closed."""

from collections.abc import Mapping

from sqlalchemy import select
from temporalio import activity

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from runtime.database import Database
from runtime.families import Family

CLOSED = "closed"
"""The reply of an activity that finds a row closed, or no row."""


class EndingActivities:
    """The requests of an execution that ends without having written the end of its row."""

    def __init__(self, database: Database, tables: Mapping[Family, WorkTable]) -> None:
        self._database = database
        self._tables = tables

    @activity.defn(name="read_end")
    async def read_end(self, workflow_id: str) -> str:
        """The final status of the row of an execution, whose id begins with `<family>/<row id>`.

        `closed` for a row that is open after all, or is not there.
        """
        family, row_id, *_ = workflow_id.split("/")
        kind = self._tables[Family(family)]
        columns = kind.table.c
        own = select(columns.status).where(columns.id == Id(row_id), ~kind.is_open)
        async with self._database.transaction() as work:
            return await work.scalar(own) or CLOSED
