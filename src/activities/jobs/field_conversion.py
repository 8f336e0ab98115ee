"""Another kind for a field: its values are prepared chunk by chunk, then change at once."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.data.databases.commands.conversion import conversion_result, convert_chunk
from models.data.databases.commands.conversion_staging import delete_staged
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork


class FieldConversion(Chunks):
    """One field converted; the last chunk is the one transaction that shows it."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        return await convert_chunk(work, job)

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return await conversion_result(work, job)

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        return await delete_staged(work, job.workspace_id, job.id)
