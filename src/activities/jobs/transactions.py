"""Jobs chunk by chunk: one transaction per activity call, undone when a chunk cannot be done.

A chunk that asks an outside server has two: no connection is held while others are slow.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from contextlib import closing
from copy import deepcopy
from typing import Any, TypeVar

from temporalio import activity

from activities.database_errors import refusals
from activities.endings import CLOSED
from activities.heartbeats import heartbeats
from models.core.base import Id, JsonObject
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import JobRow, close_job, hold_job, record_failure, record_progress
from runtime.database import Database, Transaction, UnitOfWork
from runtime.errors import PlatformError
from runtime.processes.fault_injection import FaultPoint, inject_fault
from runtime.temporal.workflow_kinds import WorkflowKind

DONE, MORE, FAILED = "done", "more", "failed"

T = TypeVar("T")


class Chunks(ABC):
    """The work of one kind of jobs."""

    @abstractmethod
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        """Do the chunk that `job.progress` points at.

        Returns the progress from which the next chunk continues, or None when this was the last one
        and `result` may be called. Raises `PlatformError` for an error that no repetition can mend.
        """

    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        """The facts a finished job is remembered by; small."""
        del work, job
        return {}

    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        """Revert a part of a failed job; True when nothing is left to revert."""
        del work, job
        return True


class JobMovedError(Exception):
    """The job was closed or advanced by another call: read it again."""

    retryable = True


async def ask_outside(work: Transaction, job: JobRow, call: Coroutine[Any, Any, T]) -> T:
    """Await a call of an outside server between two transactions, both of which hold the job.

    What the chunk did before is committed and may be done again, so a chunk asks before it writes.
    Raises JobMovedError, and what the call raises.
    """
    before = deepcopy(job.progress)
    with closing(call):
        async with work.between_transactions():
            answer = (await asyncio.gather(call, return_exceptions=True))[0]
    held = await hold_job(work, job.id)
    if held is None or held.progress != before:
        raise JobMovedError
    if isinstance(answer, BaseException):
        raise answer
    return answer


class JobActivities:
    """Advancing and ending jobs of every kind."""

    def __init__(self, database: Database, chunks: Mapping[WorkflowKind, Chunks]) -> None:
        self._database = database
        self._chunks = chunks

    @activity.defn(name="advance_job")
    async def advance_job(self, job_id: str) -> str:
        """Do one chunk. Safe to repeat: progress moves in the transaction of its chunk."""
        outcome = await self._advance(job_id)
        if outcome == MORE:
            inject_fault(FaultPoint.AFTER_CHUNK_BEFORE_REPLY, job_id)
        return outcome

    async def _advance(self, job_id: str) -> str:
        async with heartbeats():
            try:
                async with self._database.transaction() as work:
                    job = await hold_job(work, Id(job_id))
                    if job is None:
                        return CLOSED
                    if job.error_code is not None:
                        # An earlier call recorded the failure, and its reply was lost.
                        return FAILED
                    with refusals():
                        return await self._chunk(work, job)
            except JobMovedError:
                return MORE
            except PlatformError as error:
                return await self._fail(Id(job_id), error)

    async def _fail(self, job_id: Id, error: PlatformError) -> str:
        async with self._database.transaction() as work:
            if await hold_job(work, job_id) is None:
                return CLOSED
            await record_failure(work, job_id, error.message, error.code)
            return FAILED

    async def _chunk(self, work: Transaction, job: JobRow) -> str:
        chunks = self._chunks[WorkflowKind(job.workflow_kind)]
        progress = await chunks.advance(work, job)
        if progress is not None:
            await record_progress(work, job.id, progress)
            return MORE
        result = await chunks.result(work, job)
        await close_job(work, job.id, JobStatus.SUCCEEDED, result=result)
        return DONE

    @activity.defn(name="undo_job")
    async def undo_job(self, job_id: str, status: str) -> str:
        """Revert one part of an open job; the last call closes it. Safe to repeat."""
        async with heartbeats(), self._database.transaction() as work:
            job = await hold_job(work, Id(job_id))
            if job is None:
                return CLOSED
            if not await self._chunks[WorkflowKind(job.workflow_kind)].undo(work, job):
                return MORE
            await close_job(work, job.id, JobStatus(status))
            return DONE
