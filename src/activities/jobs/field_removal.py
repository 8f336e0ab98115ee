"""The values of a field that is gone, taken out of the records chunk by chunk."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.data.databases.commands.removal import remove_chunk
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork


class FieldRemoval(Chunks):
    """Values nobody sees any more; when the last is gone, another field may have the key."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        return await remove_chunk(work, job)
