"""The workflows of jobs: one type per workflow kind, so that operators can distinguish them."""

import asyncio
from collections.abc import Awaitable, Callable

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.jobs.transactions import DONE, FAILED, MORE, JobActivities
    from models.messages.jobs.rules import JobStatus
    from runtime.temporal.workflow_kinds import Queue
    from workflows.calls import call_outside, end_as_row
    from workflows.policies import DATABASE_RETRY, HEARTBEAT_TIMEOUT, JOB_RETRY, JOB_TIMEOUT


async def _advance(job_id: str, queue: Queue = Queue.BULK) -> str:
    return await workflow.execute_activity_method(
        JobActivities.advance_job,
        job_id,
        task_queue=queue,
        start_to_close_timeout=JOB_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=JOB_RETRY,
    )


async def _ask_outside(job_id: str) -> str:
    return await call_outside(lambda queue, _: _advance(job_id, queue))


async def _finish(job_id: str, advance: Callable[[str], Awaitable[str]] = _advance) -> str:
    """Do all chunks of a job; undo them when the job fails or is cancelled."""
    try:
        while (outcome := await advance(job_id)) == MORE:
            pass
        status = JobStatus.FAILED
    except (ActivityError, asyncio.CancelledError) as error:
        cancelled = is_cancelled_exception(error)
        outcome, status = FAILED, JobStatus.CANCELLED if cancelled else JobStatus.FAILED
    if outcome == FAILED:
        # A second cancel must not leave half of the job behind.
        outcome = await asyncio.shield(_undo(job_id, status))
        outcome = status if outcome == DONE else outcome
    return await end_as_row(outcome, "The job", "; its changes were rolled back")


async def _undo(job_id: str, status: JobStatus) -> str:
    while (
        outcome := await workflow.execute_activity_method(
            JobActivities.undo_job,
            args=[job_id, status.value],
            task_queue=Queue.BULK,
            start_to_close_timeout=JOB_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=DATABASE_RETRY,
            summary="Roll back",
        )
    ) == MORE:
        pass
    return outcome


@workflow.defn(name="ChangeApplication")
class ChangeApplication:
    """The operations of a change set, one after the other."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="ChangePlan")
class ChangePlan:
    """The operations that a model plans from an instruction."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)


@workflow.defn(name="DatabaseDuplicate")
class DatabaseDuplicate:
    """A copy of a database, visible when it is whole."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="DataSourcePreview")
class DataSourcePreview:
    """The first rows of a source, before they are imported."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)


@workflow.defn(name="DataSourceReversal")
class DataSourceReversal:
    """Revert the writes of a run of a data source."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="Export")
class Export:
    """A file with the records of a database."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="FieldConversion")
class FieldConversion:
    """Another kind for a field, with all its values converted at once."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="FieldIndex")
class FieldIndex:
    """The side index of one field, filled for the records that are there."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="FieldRemoval")
class FieldRemoval:
    """Remove the values of a deleted field from the records."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="FormImport")
class FormImport:
    """A form of a provider, made a form and a database of the workspace."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)


@workflow.defn(name="MountSync")
class MountSync:
    """A mount brought in step with what its provider shows."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)


@workflow.defn(name="ProviderCall")
class ProviderCall:
    """A call of a provider while a client waits: a listing, a content, a test."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)


@workflow.defn(name="OAuthExchange")
class OAuthExchange:
    """A code that a user came back with, exchanged for the tokens of a connection."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)


@workflow.defn(name="OAuthRevocation")
class OAuthRevocation:
    """The tokens of a deleted connection, ended at their provider."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)


@workflow.defn(name="Recomputation")
class Recomputation:
    """Computed values of many records, brought up to date."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="ResourceImport")
class ResourceImport:
    """A resource of a provider copied into native content, or refreshed there."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)


@workflow.defn(name="WorkspaceExport")
class WorkspaceExport:
    """A bundle with everything that a workspace has."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="StarterSeed")
class StarterSeed:
    """A starter, built whole."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id)


@workflow.defn(name="WorkspaceDraft")
class WorkspaceDraft:
    """The plan that a model makes of a description."""

    @workflow.run
    async def run(self, job_id: str) -> str:
        return await _finish(job_id, _ask_outside)
