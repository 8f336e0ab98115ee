"""Computing many records anew, some in each transaction."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.data.records.commands.computed_values import recompute_next
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork


class Recomputation(Chunks):
    """Brings computed values up to date, records in the order of their ids."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        return await recompute_next(work, job)
