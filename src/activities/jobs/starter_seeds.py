"""Jobs that build a starter."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.messages.jobs.rows import JobRow
from models.workspace.starters.commands import seed, seed_failed
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


class StarterSeeds(Chunks):
    """Builds everything in one transaction: nobody sees half of a starter."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> None:
        job.progress.update(await seed(work, job, self._keys))

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await seed_failed(work, job)
        return True
