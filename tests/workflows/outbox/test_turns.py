"""Tasks queued in Temporal take turns: a backlog delays a workspace by one turn at most."""

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.common import Priority
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from runtime.ids import new_id
from runtime.temporal.executions import fairness
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.patience import eventually

BACKLOG = 200
IMPORTS = 8
"""The first of them counts: on a busy machine a partition gives nothing for a while."""
PARTITIONS = 4
"""Of a task queue, as the server has them. Each orders its own tasks."""
FEW = BACKLOG / PARTITIONS / 2
"""Fewer deliveries than an import meets in whichever partition it comes to."""
DELIVERING, IMPORTING = new_id(), new_id()
order: list[str] = []


@workflow.defn(name="Noted", sandboxed=False)
class Noted:
    """Notes that its first task has come."""

    @workflow.run
    async def run(self, name: str) -> None:
        order.append(name)


async def place_of_an_import(client: Client, delivery: Priority, late: Priority) -> int:
    """The place of the first import behind a backlog of deliveries that was there before."""
    order.clear()
    queue = f"turns-{new_id()}"

    async def start(name: str, priority: Priority) -> None:
        await client.start_workflow(
            "Noted", name, id=f"{queue}/{name}", task_queue=queue, priority=priority
        )

    for number in range(BACKLOG):
        await start(f"delivery {number}", delivery)
    for number in range(IMPORTS):
        await start(f"import {number}", late)

    async def all_queued() -> bool:
        return await _backlog(client, queue) >= BACKLOG + IMPORTS

    # An execution's first task comes to the queue some time after its start is answered.
    await eventually(all_queued)
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[Noted],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_workflow_tasks=2,
    )
    async with worker:
        await eventually(_all_noted)
    return next(place for place, name in enumerate(order) if name.startswith("import"))


async def _backlog(client: Client, queue: str) -> int:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        report_stats=True,
    )
    answer = await client.workflow_service.describe_task_queue(request)
    return answer.stats.approximate_backlog_count


async def _all_noted() -> bool:
    return len(order) >= BACKLOG + IMPORTS


@pytest.mark.long
@pytest.mark.takes(seconds=10)
async def test_strict_priorities_alone_hold_back_an_import(temporal: WorkflowEnvironment) -> None:
    """A cause of imports that stood still behind deliveries: the test below differs in this only.

    Every delivery in the partition of the import goes before it, for as long as any come.
    """
    delivery, late = Priority(priority_key=4), Priority(priority_key=5)
    assert await place_of_an_import(temporal.client, delivery, late) > FEW


@pytest.mark.long
@pytest.mark.takes(seconds=10)
async def test_an_import_does_not_wait_behind_a_backlog_of_deliveries(
    temporal: WorkflowEnvironment,
) -> None:
    place = await place_of_an_import(
        temporal.client,
        fairness(DELIVERING, WorkflowKind.DELIVERY),
        fairness(IMPORTING, WorkflowKind.LEGACY_IMPORT),
    )
    assert place < FEW
