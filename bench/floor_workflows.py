"""The floors of a run: bare workflows that do nothing, on the same Temporal server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

QUEUE = "bench-floor"
OUTSIDE_QUEUE = "bench-floor-outside"
"""Of activities that are dispatched as outside nodes are, not handed over with the task."""
TIMEOUT = timedelta(seconds=30)
LANES = 5
"""Local activities at a time, where there are many: as many as items of a for_each."""


@activity.defn
async def nothing(value: str) -> str:
    """An activity without an effect."""
    return value


@workflow.defn
class OneActivity:
    """One regular activity."""

    @workflow.run
    async def run(self, value: str) -> str:
        return await workflow.execute_activity(nothing, value, start_to_close_timeout=TIMEOUT)


@workflow.defn
class ThreeLocalActivities:
    """Three local activities, one after the other."""

    @workflow.run
    async def run(self, value: str) -> str:
        for _ in range(3):
            value = await workflow.execute_local_activity(
                nothing, value, start_to_close_timeout=TIMEOUT
            )
        return value


@workflow.defn
class LocalActivities:
    """Many local activities, `LANES` at a time."""

    @workflow.run
    async def run(self, count: int) -> None:
        left = iter(range(count))

        async def lane() -> None:
            for _ in left:
                await workflow.execute_local_activity(nothing, "x", start_to_close_timeout=TIMEOUT)

        await asyncio.gather(*(lane() for _ in range(LANES)))


@workflow.defn
class RegularActivities:
    """Regular activities, one after the other."""

    @workflow.run
    async def run(self, count: int) -> None:
        for _ in range(count):
            await workflow.execute_activity(nothing, "x", start_to_close_timeout=TIMEOUT)


@workflow.defn
class DispatchedActivities:
    """Regular activities on another task queue, one after the other."""

    @workflow.run
    async def run(self, count: int) -> None:
        for _ in range(count):
            await workflow.execute_activity(
                nothing, "x", task_queue=OUTSIDE_QUEUE, start_to_close_timeout=TIMEOUT
            )


WORKFLOWS: list[type[Any]] = [
    OneActivity,
    ThreeLocalActivities,
    LocalActivities,
    RegularActivities,
    DispatchedActivities,
]


@asynccontextmanager
async def floor_worker(client: Client) -> AsyncIterator[None]:
    """A worker with the slots ours has and the SDK's default, sandboxed runner."""
    executing = Worker(
        client,
        task_queue=QUEUE,
        workflows=WORKFLOWS,
        activities=[nothing],
        max_concurrent_workflow_tasks=20,
        max_concurrent_local_activities=20,
        max_cached_workflows=500,
    )
    async with executing, Worker(client, task_queue=OUTSIDE_QUEUE, activities=[nothing]):
        yield


async def run_all(
    client: Client, floor: Any, count: int, in_flight: int, argument: Any = "x"
) -> None:
    """Start and finish `count` workflows, eagerly, with a bounded number in flight."""
    room = asyncio.Semaphore(in_flight)

    async def one() -> None:
        async with room:
            await run_one(client, floor, argument)

    await asyncio.gather(*(one() for _ in range(count)))


async def run_one(client: Client, floor: Any, argument: Any = "x") -> None:
    """Start one workflow and wait for its end.

    A wait on the result can miss its wake-up for 20 s although the workflow has ended, which
    would flatter us: after half a second the execution itself is asked.
    """
    handle = await client.start_workflow(
        floor.run, argument, id=f"floor-{uuid4()}", task_queue=QUEUE, request_eager_start=True
    )
    result = asyncio.create_task(handle.result())
    while not (await asyncio.wait({result}, timeout=0.5))[0]:
        described = await handle.describe()
        if described.close_time is not None:
            result.cancel()
            return
