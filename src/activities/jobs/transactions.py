"""Jobs chunk by chunk: one transaction per activity call, undone when a chunk cannot be done."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from temporalio import activity

from activities.database_errors import refusals
from activities.endings import CLOSED
from activities.heartbeats import heartbeats
from models.core.base import Id, JsonObject
from models.messages.jobs.commands import close_job, hold_job, record_failure, record_progress
from models.messages.jobs.rows import JobRow
from models.messages.jobs.rules import JobStatus
from runtime.database import Database, UnitOfWork
from runtime.errors import PlatformError
from runtime.families import Family
from runtime.fault_injection import FaultPoint, inject_fault

DONE, MORE, FAILED = "done", "more", "failed"


class Chunks(ABC):
    """The work of one family of jobs."""

    @abstractmethod
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        """Do the chunk that `job.progress` points at.

        Gives the progress from which the next chunk goes on, or None when this was the last one
        and `result` may be asked. Raises `PlatformError` for what no repetition can mend.
        """

    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        """The facts a finished job is remembered by; small."""
        del work, job
        return {}

    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        """Take back a part of what a failed job did; True when nothing is left to take back."""
        del work, job
        return True


class JobActivities:
    """Advancing and ending jobs of every family."""

    def __init__(self, database: Database, families: Mapping[Family, Chunks]) -> None:
        self._database = database
        self._families = families

    @activity.defn(name="advance_job")
    async def advance_job(self, job_id: str) -> str:
        """Do one chunk. Safe to repeat: progress moves in the transaction of its chunk."""
        outcome = await self._advance(job_id)
        if outcome == MORE:
            inject_fault(FaultPoint.AFTER_CHUNK_BEFORE_REPLY, job_id)
        return outcome

    async def _advance(self, job_id: str) -> str:
        async with heartbeats(), self._database.transaction() as work:
            job = await hold_job(work, Id(job_id))
            if job is None:
                return CLOSED
            if job.error_code is not None:
                # An earlier call recorded the failure, and its reply was lost: do not try again.
                return FAILED
            try:
                async with work.savepoint():
                    with refusals():
                        return await self._chunk(work, job)
            except PlatformError as error:
                await record_failure(work, job.id, error.message, error.code)
                return FAILED

    async def _chunk(self, work: UnitOfWork, job: JobRow) -> str:
        chunks = self._families[Family(job.family)]
        progress = await chunks.advance(work, job)
        if progress is not None:
            await record_progress(work, job.id, progress)
            return MORE
        result = await chunks.result(work, job)
        await close_job(work, job.id, JobStatus.SUCCEEDED, result=result)
        return DONE

    @activity.defn(name="undo_job")
    async def undo_job(self, job_id: str, status: str) -> str:
        """Take back one part of an open job; the last call closes it. Safe to repeat."""
        async with heartbeats(), self._database.transaction() as work:
            job = await hold_job(work, Id(job_id))
            if job is None:
                return CLOSED
            if not await self._families[Family(job.family)].undo(work, job):
                return MORE
            await close_job(work, job.id, JobStatus(status))
            return DONE
