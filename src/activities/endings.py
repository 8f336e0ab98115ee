"""The ends of rows whose execution is over: its own row, or that of a run it called."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from temporalio import activity

from activities.contracts import CalledRun
from models.automation.action_runs import execution as action_runs
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.automation_runs import calls
from models.automation.automation_runs import execution as automation_runs
from models.automation.automation_runs.rules import RunStatus
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import close_job, hold_job, record_failure
from models.sources.data_source_runs import endings as data_source_runs
from models.sources.data_source_runs.rules import OPEN_RUN as OPEN_REFRESH
from models.sources.data_source_runs.staging import find_run
from models.sources.mounts.queries import INTERRUPTED
from models.sources.mounts.syncs import note_failure
from runtime.database import Database, UnitOfWork
from runtime.temporal.outbox import waits_in_line
from runtime.temporal.workflow_kinds import WorkflowKind

CLOSED = "closed"
"""The reply of an activity that finds a row closed, or no row."""


class EndingActivities:
    """The requests of an execution that ends without having written the end of its row."""

    def __init__(self, database: Database, tables: Mapping[WorkflowKind, WorkTable]) -> None:
        self._database = database
        self._tables = tables

    @activity.defn(name="read_end")
    async def read_end(self, workflow_id: str) -> str:
        """The final status of the row of an execution, `<workflow kind>/<row id>` by its id.

        `closed` for a row that is still open or does not exist.
        """
        workflow_kind, row_id, *_ = workflow_id.split("/")
        kind = self._tables[WorkflowKind(workflow_kind)]
        columns = kind.table.c
        own = sa.select(columns.status).where(columns.id == Id(row_id), ~kind.is_open)
        async with self._database.transaction() as work:
            return await work.scalar(own) or CLOSED


REASON = "The execution was ended in Temporal."
CANCELLED = "Cancelled in Temporal."


class CalledRunActivities:
    """The fate of the row of a run whose execution ended, or is not the caller's child."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (self.close, self.cancel, self.has_ended, self.has_turn)

    @activity.defn(name="close_called_run")
    async def close(self, run: CalledRun) -> None:
        """Close a called run whose execution ended without; no change to a closed run."""
        async with self._database.transaction() as work:
            await _CLOSE.get(WorkflowKind(run.workflow_kind), _close_job)(work, run, REASON)

    @activity.defn(name="cancel_called_run")
    async def cancel(self, run: CalledRun) -> None:
        """Close a called run whose caller an operator cancelled; no change to a closed run."""
        async with self._database.transaction() as work:
            await _CLOSE.get(WorkflowKind(run.workflow_kind), _close_job)(work, run, None)

    @activity.defn(name="called_run_has_ended")
    async def has_ended(self, run: CalledRun) -> bool:
        """True when a called run is over."""
        async with self._database.transaction() as work:
            has_ended = _HAS_ENDED.get(WorkflowKind(run.workflow_kind), _job_has_ended)
            return await has_ended(work, Id(run.run_id))

    @activity.defn(name="called_run_has_turn")
    async def has_turn(self, run: CalledRun) -> bool:
        """True when a called run may begin: its row in the outbox was claimed, or withdrawn."""
        async with self._database.transaction() as work:
            return not await waits_in_line(work, Id(run.run_id))


async def _close_automation_run(work: UnitOfWork, run: CalledRun, failure: str | None) -> None:
    status = RunStatus.CANCELLED if failure is None else RunStatus.FAILED
    await automation_runs.abandon(work, Id(run.run_id), status, failure or CANCELLED)


async def _close_action_run(work: UnitOfWork, run: CalledRun, failure: str | None) -> None:
    workspace_id, run_id = Id(run.workspace_id), Id(run.run_id)
    status = ActionRunStatus.CANCELLED if failure is None else ActionRunStatus.FAILED
    await action_runs.abandon(work, workspace_id, run_id, status, failure or CANCELLED)


async def _automation_run_has_ended(work: UnitOfWork, run_id: Id) -> bool:
    return await calls.called_run_end(work, run_id) is not None


async def _action_run_has_ended(work: UnitOfWork, run_id: Id) -> bool:
    return (await action_runs.ended_run(work, run_id)).status is not ActionRunStatus.STARTED


async def _close_refresh(work: UnitOfWork, run: CalledRun, failure: str | None) -> None:
    status = JobStatus.CANCELLED if failure is None else JobStatus.FAILED
    await data_source_runs.abandon_run(work, Id(run.run_id), status, failure)


async def _refresh_has_ended(work: UnitOfWork, run_id: Id) -> bool:
    return (await find_run(work, run_id)).status not in OPEN_REFRESH


async def _close_job(work: UnitOfWork, run: CalledRun, failure: str | None) -> None:
    """Close a job; its writings stay. A mount says that its sync came to no end."""
    job_id = Id(run.run_id)
    held = await hold_job(work, job_id)
    if held is None:
        return
    if held.workflow_kind == WorkflowKind.MOUNT_SYNC:
        await note_failure(work, held.subject_id, job_id, INTERRUPTED)
    await record_failure(work, job_id, failure or CANCELLED, "interrupted")
    await close_job(work, job_id, JobStatus.CANCELLED if failure is None else JobStatus.FAILED)


async def _job_has_ended(work: UnitOfWork, job_id: Id) -> bool:
    return await hold_job(work, job_id) is None


_Close = Callable[[UnitOfWork, CalledRun, str | None], Awaitable[None]]
"""Takes what a run failed with; None for one that was cancelled."""

_CLOSE: Mapping[WorkflowKind, _Close] = {
    WorkflowKind.AUTOMATION_RUN: _close_automation_run,
    WorkflowKind.ACTION_RUN: _close_action_run,
    WorkflowKind.DATA_SOURCE_REFRESH: _close_refresh,
}
"""Of the kinds that are no jobs."""
_HAS_ENDED: Mapping[WorkflowKind, Callable[[UnitOfWork, Id], Awaitable[bool]]] = {
    WorkflowKind.AUTOMATION_RUN: _automation_run_has_ended,
    WorkflowKind.ACTION_RUN: _action_run_has_ended,
    WorkflowKind.DATA_SOURCE_REFRESH: _refresh_has_ended,
}
