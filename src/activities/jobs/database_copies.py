"""Jobs that copy a database."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.data.database_copies.commands.steps import CHUNK, copy_chunk, remove_chunk
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork


class DatabaseCopies(Chunks):
    """Creates the copy, copies records chunk by chunk, then makes the copy visible."""

    def __init__(self, size: int = CHUNK) -> None:
        self._size = size

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        return await copy_chunk(work, job, self._size)

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        return await remove_chunk(work, job, self._size)
