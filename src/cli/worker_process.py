"""A worker process: Temporal workers for the chosen queues, the relay, and the schedules."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.types import MethodAsyncNoParam
from temporalio.worker import Worker

from activities.automation_runs import AutomationRunActivities
from activities.graphs import GraphCache
from activities.job_families import job_families
from activities.job_maintenance import JobMaintenance
from activities.jobs import JobActivities
from activities.maintenance import MaintenanceActivities
from activities.nodes.records import RecordNodes
from activities.outside_nodes import OutsideNodes
from activities.relay import Relay, listen
from activities.retention import Periods, RetentionActivities
from activities.runs import RunCache
from runtime.crypto import KeyRing
from runtime.database import Database, libpq_url
from runtime.families import Family, Queue
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.policy import OutboundPolicy
from runtime.settings import Settings
from runtime.temporal_client import connect
from workflows.maintenance import Maintenance
from workflows.registry import ROUTES, WORKFLOWS, workflow_runner
from workflows.retention import Retention

log = structlog.get_logger()

GRACE = timedelta(seconds=20)
"""How long a stopping worker lets activities end."""
DRAIN_SECONDS = 30.0
"""When a stopping worker ends whatever still goes on, such as a wait for an absent database."""
WORKFLOW_SLOTS = 20
LOCAL_ACTIVITY_SLOTS = 20
ACTIVITY_SLOTS = 100
BULK_SLOTS = 4
CACHED_WORKFLOWS = 500


@dataclass(frozen=True, slots=True)
class Parts:
    """What the workers of one process share."""

    database: Database
    client: Client
    outbound: OutboundClient
    keys: KeyRing
    store: ObjectStore
    periods: Periods


@asynccontextmanager
async def running_workers(
    parts: Parts, database_url: str, queues: Sequence[Queue] = tuple(Queue)
) -> AsyncIterator[Relay]:
    """Workers, relay and listener, running until the block ends."""
    relay = Relay(parts.database, parts.client, ROUTES)
    parts.database.on_outbox = relay.wake
    async with contextlib.AsyncExitStack() as stack:
        for worker in _workers(parts, queues):
            await stack.enter_async_context(worker)
        if Queue.AUTOMATION in queues:
            for sweep in SWEEPS:
                await _ensure_schedule(parts.client, sweep)
            for service in (relay.run(), listen(libpq_url(database_url), relay.wake)):
                task = asyncio.create_task(service)
                stack.push_async_callback(_stop, task)
        yield relay


def _workers(parts: Parts, queues: Sequence[Queue]) -> list[Worker]:
    known = RunCache(parts.database, GraphCache())
    runs = AutomationRunActivities(parts.database, known, RecordNodes(parts.keys).transactions())
    maintenance = MaintenanceActivities(parts.database, parts.client)
    outside = OutsideNodes(parts.database, known, parts.outbound)
    jobs = JobActivities(parts.database, job_families(parts.store))
    job_maintenance = JobMaintenance(parts.database, parts.client, jobs)
    retention = RetentionActivities(parts.database, parts.store, parts.periods)
    bulk: list[Callable[..., Any]] = [jobs.advance_job, jobs.undo_job]
    bulk += [retention.purge, retention.remove_orphans]
    workers = {
        Queue.AUTOMATION: lambda: Worker(
            parts.client,
            task_queue=Queue.AUTOMATION,
            workflows=WORKFLOWS,
            activities=[*runs.all(), maintenance.reconcile, job_maintenance.reconcile_jobs],
            workflow_runner=workflow_runner(),
            max_concurrent_workflow_tasks=WORKFLOW_SLOTS,
            max_concurrent_local_activities=LOCAL_ACTIVITY_SLOTS,
            max_cached_workflows=CACHED_WORKFLOWS,
            graceful_shutdown_timeout=GRACE,
        ),
        Queue.IO: lambda: Worker(
            parts.client,
            task_queue=Queue.IO,
            activities=[outside.http_request],
            max_concurrent_activities=ACTIVITY_SLOTS,
            graceful_shutdown_timeout=GRACE,
            # A cancelled activity learns of it with its next heartbeat.
            max_heartbeat_throttle_interval=timedelta(seconds=2),
            default_heartbeat_throttle_interval=timedelta(seconds=2),
        ),
        Queue.BULK: lambda: Worker(
            parts.client,
            task_queue=Queue.BULK,
            activities=bulk,
            max_concurrent_activities=BULK_SLOTS,
            graceful_shutdown_timeout=GRACE,
            max_heartbeat_throttle_interval=timedelta(seconds=2),
            default_heartbeat_throttle_interval=timedelta(seconds=2),
        ),
    }
    return [workers[queue]() for queue in queues]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a schedule starts again and again, and how long it may take."""

    schedule_id: str
    run: MethodAsyncNoParam[Any, dict[str, int]]
    every: timedelta
    within: timedelta
    summary: str


SWEEPS = (
    Sweep(
        Family.MAINTENANCE.workflow_id("reconcile"),
        Maintenance.run,
        every=timedelta(seconds=30),
        within=timedelta(minutes=10),
        summary="Reconcile rows and executions",
    ),
    Sweep(
        Family.RETENTION.workflow_id("sweep"),
        Retention.run,
        every=timedelta(hours=1),
        within=timedelta(hours=6),
        summary="Remove what is past its time",
    ),
)


async def _ensure_schedule(client: Client, sweep: Sweep) -> None:
    """A sweep's schedule, made by whichever worker comes first."""
    with contextlib.suppress(ScheduleAlreadyRunningError):
        await client.create_schedule(
            sweep.schedule_id,
            Schedule(
                action=ScheduleActionStartWorkflow(
                    sweep.run,
                    id=sweep.schedule_id,
                    task_queue=Queue.AUTOMATION,
                    static_summary=sweep.summary,
                    execution_timeout=sweep.within,
                ),
                spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=sweep.every)]),
                policy=SchedulePolicy(
                    overlap=ScheduleOverlapPolicy.SKIP, catchup_window=sweep.every
                ),
            ),
        )


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def run_worker(settings: Settings, queues: Sequence[Queue] = tuple(Queue)) -> None:
    """Work until SIGTERM or SIGINT, then drain."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    url = settings.database_url.get_secret_value()
    database = Database(url, pool_size=settings.database_pool_size, application="workspace-worker")
    async with OutboundClient(OutboundPolicy.from_entries(settings.outbound_allow)) as outbound:
        parts = Parts(
            database,
            await connect(settings),
            outbound,
            KeyRing(settings.secret_keys),
            ObjectStore(settings.object_store),
            Periods.of(settings),
        )
        async with running_workers(parts, url, queues):
            log.info("worker is ready", queues=[queue.value for queue in queues])
            await stopping.wait()
            log.info("worker is draining")
            # What is cut off here is durable: another worker repeats it.
            cut_off = threading.Timer(DRAIN_SECONDS, os._exit, [1])
            cut_off.daemon = True
            cut_off.start()
    await database.close()
