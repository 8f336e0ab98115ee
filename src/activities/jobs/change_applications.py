"""Jobs that apply a change set."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.messages.jobs.rows import JobRow
from models.workspace.changes.commands.application import apply_next, stop_applying
from runtime.callable_urls import saving_by
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.outbound_policy import OutboundPolicy


class ChangeApplications(Chunks):
    """Carries out one operation in each transaction, together with what becomes of it."""

    def __init__(self, keys: KeyRing, policy: OutboundPolicy) -> None:
        self._keys = keys
        self._policy = policy

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        with saving_by(self._policy):
            return await apply_next(work, job, self._keys)

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await stop_applying(work, job)
        return True
