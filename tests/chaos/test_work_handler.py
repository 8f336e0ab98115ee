"""A kind of durable work is one object: its start, end, repairs and overview follow from it."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Protocol
from uuid import UUID

import pytest
import pytest_asyncio
from sqlalchemy import (
    Column,
    DateTime,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    delete,
    select,
)
from sqlalchemy.schema import CreateTable
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from typing_extensions import override

from activities.endings import CLOSED
from activities.maintenance.reconciler import Reconciler
from activities.maintenance.work_handlers import (
    AbnormalEnd,
    Activities,
    EndKind,
    Execution,
    SweepContext,
    WorkHandler,
    WorkRow,
    next_restart,
)
from activities.outbox.relay import ExecutionDeliveries
from activities.parts import Parts
from cli.work_handlers.registry import Registrations, registrations_of, routes_of, workflows_of
from models.core.lifecycle import commands as lifecycle
from models.core.lifecycle.commands import WorkTable
from models.core.lifecycle.rules import Lifecycle
from models.workspace.system import open_work
from runtime.database import Database, UnitOfWork
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from runtime.temporal.outbox import Intent, StartRequest, outbox
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from tests.support.engine import KEYS, PERIODS, RUNNING_CAP
from tests.support.patience import eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=10)]

WORKFLOW_KIND = WorkflowKind.RETENTION
"""Any kind that has no table: the outbox carries its name, and all else does without it."""
WORKSPACE = uuid.uuid4()
REQUEST: StartRequest = {"summary": "Errand", "resourceId": str(WORKSPACE)}


class Status(StrEnum):
    WANTED = "wanted"
    UNDER_WAY = "under_way"
    DONE = "done"
    BROKEN = "broken"
    STOPPED = "stopped"


_ENDS = frozenset({Status.BROKEN, Status.STOPPED})
ERRAND = Table(
    "errand",
    MetaData(),
    Column("id", Uuid, primary_key=True),
    Column("workspace_id", Uuid),
    Column("status", Text),
    Column("error", Text),
    Column("steps", Integer, server_default="0"),
    Column("created_at", DateTime(timezone=True)),
    Column("completed_at", DateTime(timezone=True)),
)
ERRANDS = WorkTable(
    ERRAND,
    Lifecycle(
        {
            Status.WANTED: frozenset({Status.UNDER_WAY}) | _ENDS,
            Status.UNDER_WAY: frozenset({Status.DONE}) | _ENDS,
            Status.DONE: frozenset(),
            Status.BROKEN: frozenset(),
            Status.STOPPED: frozenset(),
        }
    ),
    workflow_kind=WORKFLOW_KIND,
)


class ErrandRow(Protocol):
    id: UUID
    status: str
    steps: int


# ---- the steps, and the workflow that takes them


class Steps:
    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn(name="take_step")
    async def take(self, errand_id: str) -> bool:
        """One gated step; whether another one follows."""
        async with self._database.transaction() as work:
            row = await lifecycle.hold(work, ERRANDS, UUID(errand_id), of=ErrandRow)
            if row is None:
                return False
            if row.status == Status.WANTED:
                await lifecycle.move(work, ERRANDS, row.id, Status.UNDER_WAY)
            await lifecycle.record_progress(work, ERRANDS, row.id, steps=row.steps + 1)
            if row.steps < 2:
                return True
            await lifecycle.finish(work, ERRANDS, [row.id], Status.DONE)
            return False


@workflow.defn(name="Errand")
class Errand:
    @workflow.run
    async def run(self, errand_id: str) -> None:
        while await workflow.execute_activity_method(
            Steps.take, errand_id, start_to_close_timeout=timedelta(seconds=10)
        ):
            await workflow.sleep(0.05)


# ---- the one object


class ErrandHandler(WorkHandler[WorkRow]):
    name, kind, row = "errands", ERRANDS, WorkRow
    workflows: ClassVar = {WORKFLOW_KIND: Errand}
    queue: ClassVar[Any] = f"errands-{uuid.uuid4().hex}"

    @override
    def activities(self, parts: Parts) -> Activities:
        return {Queue.AUTOMATION: [Steps(parts.database).take]}

    @override
    async def restart(self, work: UnitOfWork, row: WorkRow, latest: Execution | None) -> None:
        restarts = next_restart(latest)
        await lifecycle.start(work, WORKFLOW_KIND, row.workspace_id, row.id, REQUEST, restarts)

    @override
    async def close(self, context: SweepContext, row: WorkRow, end: AbnormalEnd) -> bool:
        status = Status.STOPPED if end.kind is EndKind.CANCELLED else Status.BROKEN
        async with context.database.transaction() as work:
            closed = await lifecycle.finish(work, ERRANDS, [row.id], status, error=end.reason)
        return bool(closed)


# ---- what a test does with it


@dataclass(frozen=True, slots=True)
class Errands:
    parts: Parts
    registrations: Registrations

    @property
    def database(self) -> Database:
        return self.parts.database

    @property
    def client(self) -> Client:
        return self.parts.client

    async def accept(self, errand_id: UUID | None = None) -> UUID:
        errand_id = errand_id or new_id()
        async with self.database.transaction() as work:
            row = {"id": errand_id, "workspace_id": WORKSPACE}
            if await lifecycle.accept(work, ERRANDS, row):
                await lifecycle.start(work, WORKFLOW_KIND, WORKSPACE, errand_id, REQUEST)
        return errand_id

    async def cancel(self, errand_id: UUID) -> None:
        async with self.database.transaction() as work:
            if await lifecycle.finish(work, ERRANDS, [errand_id], Status.STOPPED):
                await lifecycle.cancel_executions(work, WORKFLOW_KIND, WORKSPACE, [errand_id])

    async def row(self, errand_id: UUID) -> Any:
        async with self.database.transaction() as work:
            return await work.first(select(ERRAND).where(ERRAND.c.id == errand_id))

    async def intents(self, *, lose: bool = False) -> list[str]:
        """What the outbox holds of this kind; it is delivered, or lost."""
        async with self.database.transaction() as work:
            taken = delete(outbox).where(outbox.c.workspace_id == WORKSPACE).returning(outbox)
            rows: list[Any] = sorted(await work.rows(taken), key=lambda row: row.id)
        deliveries = ExecutionDeliveries(self.client, routes_of([ErrandHandler])).by_intent()
        for row in rows if not lose else ():
            await deliveries[Intent(row.intent)](row)
        return [row.intent for row in rows]

    async def sweep(self) -> dict[str, int]:
        handlers = self.registrations.handlers
        reconciler = Reconciler(self.database, self.client, handlers, grace=timedelta())
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        return await environment.run(reconciler.reconcile)

    async def until(self, errand_id: UUID, status: Status) -> Any:
        async def reached() -> bool:
            return bool((await self.row(errand_id)).status == status)

        await eventually(reached, what=f"errand {errand_id} as {status}")
        return await self.row(errand_id)

    async def end(self, errand_id: UUID) -> str:
        """The end of its row, as an execution asks for it that finds the row closed."""
        activities = self.registrations.activities[Queue.AUTOMATION]
        (read_end,) = (each for each in activities if each.__name__ == "read_end")
        return str(await read_end(WORKFLOW_KIND.workflow_id(errand_id)))

    def execution(self, errand_id: UUID) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(WORKFLOW_KIND.workflow_id(errand_id))


@pytest_asyncio.fixture
async def errands(own_database: Database, temporal: WorkflowEnvironment) -> AsyncIterator[Errands]:
    """The handler, without a worker."""
    async with own_database.transaction() as work:
        await work.execute(CreateTable(ERRAND, if_not_exists=True))
        await work.execute(delete(ERRAND))
    async with OutboundClient(OutboundPolicy.from_entries(())) as outbound:
        store = ObjectStore("memory://")
        parts = Parts(own_database, temporal.client, outbound, KEYS, store, PERIODS, RUNNING_CAP)
        yield Errands(parts, registrations_of(parts, [ErrandHandler]))


def worker(errands: Errands) -> Worker:
    return Worker(
        errands.client,
        task_queue=ErrandHandler.queue,
        workflows=workflows_of([ErrandHandler]),
        activities=errands.registrations.activities[Queue.AUTOMATION],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )


@pytest.mark.long
async def test_it_is_accepted_started_and_finished(errands: Errands) -> None:
    errand_id = await errands.accept()
    await errands.accept(errand_id)
    assert (await errands.row(errand_id)).status == Status.WANTED
    assert await errands.end(errand_id) == CLOSED, "it is open"
    async with errands.database.transaction() as work:
        (shown,) = await open_work(work, ERRAND.metadata)
    assert (shown.kind, shown.status, shown.count) == ("errand", Status.WANTED, 1)
    async with worker(errands):
        assert await errands.intents() == ["start"]
        row = await errands.until(errand_id, Status.DONE)
    assert (row.steps, row.error) == (3, None)
    assert await errands.end(errand_id) == Status.DONE
    assert row.created_at <= row.completed_at
    assert await errands.sweep() == {
        "errands_restarted": 0,
        "errands_closed": 0,
        "errands_poisoned": 0,
        "errands_terminated": 0,
    }


async def test_cancel_wins_and_reaches_the_execution(errands: Errands) -> None:
    errand_id = await errands.accept()
    await errands.intents()
    await errands.cancel(errand_id)
    assert await errands.intents() == ["cancel"]
    async with worker(errands):

        async def is_over() -> bool:
            return (await errands.execution(errand_id).describe()).close_time is not None

        await eventually(is_over, what="the end of the execution")
    row = await errands.row(errand_id)
    assert (row.status, row.steps) == (Status.STOPPED, 0)


async def test_work_cancelled_before_its_start_never_starts(errands: Errands) -> None:
    errand_id = await errands.accept()
    await errands.cancel(errand_id)
    assert await errands.intents() == []
    await errands.cancel(errand_id)
    assert await errands.intents() == []


@pytest.mark.long
async def test_a_start_that_was_lost_is_made_again(errands: Errands) -> None:
    errand_id = await errands.accept()
    assert (await errands.sweep())["errands_restarted"] == 0, "its start is on its way"
    assert await errands.intents(lose=True) == ["start"]
    assert (await errands.sweep())["errands_restarted"] == 1
    async with worker(errands):
        assert await errands.intents() == ["start"]
        await errands.until(errand_id, Status.DONE)


@pytest.mark.parametrize(
    ("fate", "status", "error"),
    [
        ("terminate", Status.BROKEN, "Terminated in Temporal."),
        ("cancel", Status.STOPPED, "Cancelled in Temporal."),
    ],
)
async def test_the_row_of_a_dead_execution_is_closed_with_the_reason(
    errands: Errands, fate: str, status: Status, error: str
) -> None:
    errand_id = await errands.accept()
    await errands.intents()
    assert (await errands.sweep())["errands_closed"] == 0, "its execution is open"
    await getattr(errands.execution(errand_id), fate)()

    async def closed() -> bool:
        return (await errands.sweep())["errands_closed"] == 1

    async with worker(errands):
        await eventually(closed, what=f"the end of errand {errand_id}")
    row = await errands.row(errand_id)
    assert (row.status, row.error) == (status, error)
