"""Jobs over many records: copies, conversions, indexes, removals and recomputation."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.data.database_copies.commands import CHUNK, copy_chunk
from models.data.database_copies.commands import remove_chunk as remove_copy_chunk
from models.data.databases.field_changes import remove_chunk as remove_values_chunk
from models.data.databases.field_conversion import conversion_result, convert_chunk, delete_staged
from models.data.fields.commands import abandon_index
from models.data.records.computed_values import recompute_next
from models.data.records.side_index import build_index
from models.messages.jobs.store import JobRow
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
        return await remove_copy_chunk(work, job, self._size)


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


class FieldRemoval(Chunks):
    """Removes values of a deleted field; after the last one, another field may have the key."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        return await remove_values_chunk(work, job)


class FieldIndexes(Chunks):
    """Name the index, fill it record by record, open it to queries."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        return await build_index(work, job)

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await abandon_index(work, job.workspace_id, job.id)
        return True


class Recomputation(Chunks):
    """Brings computed values up to date, records in the order of their ids."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        return await recompute_next(work, job)
