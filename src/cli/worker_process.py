"""A worker process: Temporal workers for the chosen queues, the relay, and the schedules."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import structlog
from temporalio.worker import Interceptor, Worker

from activities.deliveries.push.providers import pushers_of
from activities.deliveries.webhook_fan_out import WebhookFanOut
from activities.heartbeats import HEARTBEAT_SECONDS
from activities.maintenance.retention import Periods
from activities.outbox.deliveries import ExecutionDeliveries
from activities.outbox.relay import LIMITS, Relay
from activities.schedules.schedules import Schedules
from activities.suspects import SuspectInterceptor, Suspects
from activities.triggers.dispatcher import Dispatcher
from cli.maintenance_schedules import MAINTENANCE_SCHEDULES, ensure_schedule
from cli.polling import require_polling
from cli.presence import report_presence
from cli.shutdown import DRAIN_SECONDS, background, until_stopped
from cli.worker_activities import Parts, registrations_of
from models.registrations import register_models
from runtime.bounded_processes import refuse_beyond
from runtime.crypto import KeyRing
from runtime.database import Database, libpq_url
from runtime.families import Queue
from runtime.notifier import Notifier, listen
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient
from runtime.outbound_policy import OutboundPolicy
from runtime.outbox import Intent
from runtime.settings import Settings
from runtime.temporal_client import connect
from workflows.registry import ROUTES, SCHEDULED, WORKFLOWS
from workflows.sandbox import workflow_runner

log = structlog.get_logger()

_Activities = Mapping[Queue, Sequence[Callable[..., Any]]]

GRACE = timedelta(seconds=20)
"""How long a stopping worker lets activities end."""
WORKFLOW_SLOTS = 20
LOCAL_ACTIVITY_SLOTS = 20
LONG_EVALUATIONS_OF_ONE_WORKSPACE = 4
"""At once in local activities."""
ACTIVITY_SLOTS = 100
BULK_SLOTS = 4
CACHED_WORKFLOWS = 500
BEAT_SECONDS = 1.0
BUILD = version("workspace-platform")
"""What Temporal says of a worker. Without it, the SDK reads the code of every module for a hash."""
STICKY_TIMEOUT = timedelta(seconds=5)
"""How long a workflow waits for the worker that has it in memory, before any other takes it."""


@asynccontextmanager
async def running_workers(
    parts: Parts, database_url: str, queues: Sequence[Queue] = tuple(Queue)
) -> AsyncIterator[Relay]:
    """Workers, relay and listener, running until the block ends."""
    deliveries = ExecutionDeliveries(parts.client, ROUTES)
    schedules = Schedules(parts.database, parts.client, SCHEDULED)
    relay = Relay(
        parts.database,
        {**deliveries.by_intent(), Intent.SCHEDULE: schedules.deliver},
        parts.starts,
        replace(LIMITS, running=parts.running_cap),
    )
    dispatcher, fan_out = Dispatcher(parts.database), WebhookFanOut(parts.database)

    def wake() -> None:
        relay.wake()
        dispatcher.wake()

    parts.database.notify_workers = wake
    notifier = Notifier(libpq_url(database_url))
    parts.starts.on_foreign_begin = notifier.notify
    parts.database.notify_readers = notifier.notify_readers
    failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    register_models()
    registrations = registrations_of(parts)
    suspects = Suspects(parts.database, parts.client, registrations.families)
    await suspects.begin()
    async with contextlib.AsyncExitStack() as stack:
        for worker in _workers(parts, queues, registrations.activities, suspects, failure):
            await stack.enter_async_context(worker)
        await stack.enter_async_context(background(_raised(failure), suspects.run()))
        await stack.enter_async_context(background(notifier.run()))
        if Queue.AUTOMATION in queues:
            for schedule in MAINTENANCE_SCHEDULES:
                await ensure_schedule(parts.client, schedule)
            listening = listen(libpq_url(database_url), wake)
            await stack.enter_async_context(
                background(relay.run(), dispatcher.run(), fan_out.run(), listening)
            )
        yield relay


async def _raised(failure: asyncio.Future[None]) -> None:
    await failure


def _workers(
    parts: Parts,
    queues: Sequence[Queue],
    activities: _Activities,
    suspects: Suspects,
    failure: asyncio.Future[None],
) -> list[Worker]:
    interceptors = [SuspectInterceptor(suspects)]

    # A worker that fails shuts down by itself, but only when no workflow task is left, and one
    # whose local activities it now refuses is left for ever.
    async def on_fatal_error(error: BaseException) -> None:
        if not failure.done():
            failure.set_exception(error)

    def activity_worker(queue: Queue, slots: int) -> Worker:
        return _activity_worker(
            parts, queue, activities[queue], slots, on_fatal_error, interceptors
        )

    made = {
        Queue.AUTOMATION: lambda: Worker(
            parts.client,
            task_queue=Queue.AUTOMATION,
            workflows=WORKFLOWS,
            activities=activities[Queue.AUTOMATION],
            workflow_runner=workflow_runner(),
            build_id=BUILD,
            max_concurrent_workflow_tasks=WORKFLOW_SLOTS,
            max_concurrent_local_activities=LOCAL_ACTIVITY_SLOTS,
            max_cached_workflows=CACHED_WORKFLOWS,
            sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
            graceful_shutdown_timeout=GRACE,
            on_fatal_error=on_fatal_error,
            interceptors=interceptors,
        ),
        Queue.IO: lambda: activity_worker(Queue.IO, ACTIVITY_SLOTS),
        Queue.BULK: lambda: activity_worker(Queue.BULK, BULK_SLOTS),
    }
    return [made[queue]() for queue in queues]


def _activity_worker(
    parts: Parts,
    queue: Queue,
    activities: Sequence[Callable[..., Any]],
    slots: int,
    on_fatal_error: Callable[[BaseException], Awaitable[None]],
    interceptors: Sequence[Interceptor],
) -> Worker:
    return Worker(
        parts.client,
        task_queue=queue,
        build_id=BUILD,
        activities=activities,
        interceptors=interceptors,
        max_concurrent_activities=slots,
        graceful_shutdown_timeout=GRACE,
        # A cancelled activity learns of it with its next heartbeat.
        max_heartbeat_throttle_interval=timedelta(seconds=HEARTBEAT_SECONDS),
        default_heartbeat_throttle_interval=timedelta(seconds=HEARTBEAT_SECONDS),
        on_fatal_error=on_fatal_error,
    )


async def run_worker(
    settings: Settings, queues: Sequence[Queue] = tuple(Queue), heartbeat: Path | None = None
) -> None:
    """Work until SIGTERM or SIGINT, then drain; from the moment it is ready, touch `heartbeat`.

    Raises SilentWorkerError for workers that no longer poll, and whatever a worker failed with:
    their process must be replaced.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    url = settings.database_url.get_secret_value()
    database = Database(url, pool_size=settings.database_pool_size, application="workspace-worker")
    policy = OutboundPolicy.from_entries(settings.outbound_allow)
    refuse_beyond(LONG_EVALUATIONS_OF_ONE_WORKSPACE)
    async with (
        OutboundClient(policy) as outbound,
        OutboundClient(policy, http2=True) as http2,
    ):
        parts = Parts(
            database,
            await connect(settings, metrics_address=settings.worker_metrics_address),
            outbound,
            KeyRing(settings.secret_keys),
            ObjectStore(settings.object_store),
            Periods.of(settings),
            None if settings.mail is None else MailClient(settings.mail, policy),
            timedelta(seconds=settings.run_limit_seconds),
            settings.running_cap,
            providers=settings.providers,
            pushers=pushers_of(settings, outbound, http2),
        )
        beside = background(_beat(heartbeat), report_presence(database, queues))
        async with running_workers(parts, url, queues), beside:
            log.info("worker is ready", queues=[queue.value for queue in queues])
            try:
                await until_stopped(stopping, require_polling(parts.client, queues))
            finally:
                log.info("worker is draining")
                _cut_off_later()
    await database.close()


async def _beat(heartbeat: Path | None) -> None:
    """Touch a file for as long as the event loop turns: what a supervisor can see of a worker."""
    if heartbeat is None:
        return
    while True:
        await asyncio.to_thread(heartbeat.touch)
        await asyncio.sleep(BEAT_SECONDS)


def _cut_off_later() -> None:
    """What is cut off then is durable: another worker repeats it."""
    cut_off = threading.Timer(DRAIN_SECONDS, os._exit, [1])
    cut_off.daemon = True
    cut_off.start()
