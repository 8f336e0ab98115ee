"""Jobs: whole or reverted, after any failure of their chunks and executions."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import delete, select, update
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment

from activities.jobs.transactions import JobActivities
from activities.maintenance.reconciler import Reconciler
from activities.maintenance.work_handlers import describe_execution
from cli.work_handlers.background import Jobs as JobHandler
from models.core.base import Id
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import accept_job, job
from runtime.database import Database, UnitOfWork
from runtime.errors import ConflictError
from runtime.ids import new_id
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from tests.support.counting import Counting
from tests.support.engine import Engine, running_engine
from tests.support.patience import eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=15)]

WORKFLOW_KIND = WorkflowKind.RECOMPUTATION


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs of one engine, executed by `counting`."""

    engine: Engine
    counting: Counting

    async def accept(self, to: int) -> Id:
        job_id = new_id()
        async with self.engine.database.transaction() as work:
            assert await self.accepted(work, job_id, to)
        return job_id

    async def accept_unstarted(self, to: int) -> Id:
        """A job whose start was lost."""
        job_id = new_id()
        async with self.engine.database.transaction() as work:
            await self.accepted(work, job_id, to)
            await work.execute(delete(outbox).where(outbox.c.subject_id == job_id))
        return job_id

    async def accepted(self, work: UnitOfWork, job_id: Id, to: int) -> bool:
        actor = self.engine.actor
        wanted = {"to": to}
        return await accept_job(
            work, actor, WORKFLOW_KIND, job_id, new_id(), summary="Count", input=wanted
        )

    async def row(self, job_id: Id) -> Any:
        async with self.engine.database.transaction() as work:
            return await work.first(select(job).where(job.c.id == job_id))

    async def ended(self, job_id: Id) -> Any:
        async def closed() -> bool:
            return (await self.row(job_id)).status not in OPEN_JOB

        await eventually(closed, what=f"the end of job {job_id}")
        return await self.row(job_id)

    async def begun(self, job_id: Id) -> None:
        async def running() -> bool:
            return bool(self.counting.calls)

        await eventually(running, what=f"the first chunk of job {job_id}")

    def execution(self, job_id: Id) -> WorkflowHandle[Any, Any]:
        return self.engine.client.get_workflow_handle(WORKFLOW_KIND.workflow_id(job_id))

    async def sweep(self) -> dict[str, int]:
        await self.engine.delivered(WORKFLOW_KIND)
        activities = JobActivities(self.engine.database, {WORKFLOW_KIND: self.counting})
        database, client = self.engine.database, self.engine.client
        maintenance = Reconciler(database, client, [JobHandler(activities)], grace=timedelta())
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        counts = await environment.run(maintenance.reconcile)
        return {name.removeprefix("jobs_"): count for name, count in counts.items()}


@pytest_asyncio.fixture
async def jobs(
    own_database: Database,
    url: str,
    temporal: WorkflowEnvironment,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Jobs]:
    counting = Counting()
    monkeypatch.setattr(
        "cli.work_handlers.background.chunks_of", lambda _: {WORKFLOW_KIND: counting}
    )
    async with running_engine(own_database, url, temporal.client) as engine:
        yield Jobs(engine, counting)


@pytest.mark.long
async def test_a_job_goes_chunk_by_chunk_to_its_end(jobs: Jobs) -> None:
    row = await jobs.ended(await jobs.accept(5))
    assert (row.status, row.result, row.error) == ("succeeded", {"counted": 5}, None)
    assert jobs.counting.calls == [0, 1, 2, 3, 4]
    assert row.created_at <= row.started_at <= row.completed_at


@pytest.mark.long
async def test_a_chunk_that_breaks_is_repeated(jobs: Jobs) -> None:
    jobs.counting.raises = {1: [RuntimeError("once"), RuntimeError("twice")]}
    row = await jobs.ended(await jobs.accept(3))
    assert row.status == "succeeded"
    assert jobs.counting.calls == [0, 1, 1, 1, 2]


@pytest.mark.long
async def test_a_refusal_takes_the_job_back_and_is_remembered(jobs: Jobs) -> None:
    jobs.counting.raises = {3: [ConflictError("Somebody else was faster.")]}
    row = await jobs.ended(await jobs.accept(5))
    assert (row.status, row.error, row.error_code) == (
        "failed",
        "Somebody else was faster.",
        "conflict",
    )
    assert row.progress == {"done": 0}
    assert jobs.counting.calls == [0, 1, 2, 3]


async def test_a_refusal_whose_reply_was_lost_is_final(jobs: Jobs) -> None:
    jobs.counting.raises = {0: [ConflictError("Somebody else was faster.")]}
    job_id = await jobs.accept_unstarted(5)
    activities = JobActivities(jobs.engine.database, {WORKFLOW_KIND: jobs.counting})
    environment = ActivityEnvironment()
    assert await environment.run(activities.advance_job, str(job_id)) == "failed"
    assert await environment.run(activities.advance_job, str(job_id)) == "failed"
    assert jobs.counting.calls == [0]
    assert await environment.run(activities.undo_job, str(job_id), "failed") == "done"


async def test_a_job_is_accepted_once(jobs: Jobs) -> None:
    job_id = await jobs.accept(2)
    async with jobs.engine.database.transaction() as work:
        assert not await jobs.accepted(work, job_id, 7)
    assert (await jobs.ended(job_id)).result == {"counted": 2}


async def test_a_cancelled_job_is_reverted(jobs: Jobs) -> None:
    jobs.counting.hold = asyncio.Event()
    job_id = await jobs.accept(5)
    await jobs.begun(job_id)
    await jobs.execution(job_id).cancel()
    jobs.counting.hold.set()
    row = await jobs.ended(job_id)
    assert (row.status, row.progress) == ("cancelled", {"done": 0})


async def test_a_job_whose_execution_died_is_reverted(jobs: Jobs) -> None:
    jobs.counting.hold = asyncio.Event()
    job_id = await jobs.accept(5)
    await jobs.begun(job_id)
    assert (await jobs.sweep())["closed"] == 0
    await jobs.execution(job_id).terminate(reason="an operator did")
    jobs.counting.hold.set()
    assert (await jobs.sweep())["closed"] == 1
    row = await jobs.ended(job_id)
    assert (row.status, row.progress) == ("failed", {"done": 0})


async def test_a_job_that_was_never_started_is_started(jobs: Jobs) -> None:
    job_id = await jobs.accept_unstarted(2)
    assert await describe_execution(jobs.engine.client, WORKFLOW_KIND.workflow_id(job_id)) is None
    assert (await jobs.sweep())["restarted"] == 1
    assert (await jobs.ended(job_id)).status == "succeeded"


async def test_a_zombie_chunk_changes_nothing(jobs: Jobs) -> None:
    job_id = await jobs.accept(1)
    ended = await jobs.ended(job_id)
    activities = JobActivities(jobs.engine.database, {WORKFLOW_KIND: jobs.counting})
    environment = ActivityEnvironment()
    assert await environment.run(activities.advance_job, str(job_id)) == "closed"
    assert await environment.run(activities.undo_job, str(job_id), "failed") == "closed"
    assert await jobs.row(job_id) == ended


@pytest.mark.parametrize(
    ("raises", "status"),
    [
        ({}, WorkflowExecutionStatus.COMPLETED),
        ({0: [ConflictError("Somebody else was faster.")]}, WorkflowExecutionStatus.FAILED),
    ],
)
async def test_an_execution_ends_as_its_row_however_often_it_is_executed(
    jobs: Jobs, raises: dict[int, list[Exception]], status: WorkflowExecutionStatus
) -> None:
    jobs.counting.raises = raises
    job_id = await jobs.accept(1)
    ended = await jobs.ended(job_id)

    async def has_ended() -> bool:
        return (await jobs.execution(job_id).describe()).status is status

    await eventually(has_ended, what="the end of the execution")
    first = (await jobs.execution(job_id).describe()).run_id
    await jobs.engine.client.start_workflow(
        "Recomputation",
        str(job_id),
        id=WORKFLOW_KIND.workflow_id(job_id),
        task_queue=Queue.AUTOMATION,
    )
    await eventually(has_ended, what="the end of the other execution")
    assert (await jobs.execution(job_id).describe()).run_id != first
    assert await jobs.row(job_id) == ended


async def test_a_job_without_an_execution_continues(jobs: Jobs) -> None:
    job_id = await jobs.accept_unstarted(3)
    async with jobs.engine.database.transaction() as work:
        going = {"status": "running", "progress": {"done": 1}, "started_at": work.now}
        await work.execute(update(job).where(job.c.id == job_id).values(going))
    assert (await jobs.sweep())["restarted"] == 1
    assert (await jobs.ended(job_id)).status == "succeeded"
    assert jobs.counting.calls == [1, 2]


async def test_an_execution_tells_nothing_but_ids(jobs: Jobs) -> None:
    jobs.counting.raises = {1: [ConflictError("the customer's words")]}
    job_id = await jobs.accept(3)
    await jobs.ended(job_id)
    handle = jobs.execution(job_id)

    async def failed() -> bool:
        return (await handle.describe()).status is WorkflowExecutionStatus.FAILED

    await eventually(failed, what="the end of the execution")
    assert "customer" not in (await handle.fetch_history()).to_json()


async def test_progress_and_end_need_an_open_job(jobs: Jobs) -> None:
    job_id = await jobs.accept(1)
    await jobs.ended(job_id)
    with pytest.raises(Exception, match="status"):
        async with jobs.engine.database.transaction() as work:
            await work.execute(
                update(job).where(job.c.id == job_id).values(status=JobStatus.RUNNING.value)
            )
