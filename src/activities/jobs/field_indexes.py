"""Jobs that fill the side index of one field."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.data.fields.commands import abandon_index
from models.data.records.commands.index_building import build_index
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork


class FieldIndexes(Chunks):
    """Name the index, fill it record by record, open it to queries."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        return await build_index(work, job)

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await abandon_index(work, job.workspace_id, job.id)
        return True
