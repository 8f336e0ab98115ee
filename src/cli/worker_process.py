"""A worker process: Temporal workers for its queues, the relay, the schedules, its metrics."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import psycopg
import structlog
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from temporalio import workflow
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from typing_extensions import override

from activities import pollers as activity_pollers
from activities.database_errors import FinalErrorInterceptor
from activities.heartbeats import HEARTBEAT_SECONDS
from activities.outbox.relay import LIMITS, ExecutionDeliveries, Relay
from activities.parts import Parts
from activities.schedules import Schedules
from activities.suspects import SuspectInterceptor, Suspects
from activities.turns import OutsideTurnInterceptor, OutsideTurns, SlotShareInterceptor
from cli import shutdown
from cli.console import StartError
from cli.deploy.versioning import WorkerVersion, promote_at_start
from cli.polling import require_polling
from cli.quarantine.process import QuarantineProcess
from cli.secret_keys import require_secret_key, watch_secret_key
from cli.work_handlers import registry as handler_registry
from cli.worker_parts import open_parts
from models.registrations import register_models
from models.workspace.system import BEAT_SECONDS, beat, leave
from runtime.configuration.settings import Settings
from runtime.database import Database, libpq_url
from runtime.ids import new_id
from runtime.observability.process_metrics import process_registry
from runtime.postgresql.notifier import CHANNEL, Notifier, listen
from runtime.processes.bounded_processes import refuse_beyond
from runtime.temporal.executions import fairness_header_of
from runtime.temporal.outbox import Intent
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from workflows.runners import production_runner

log = structlog.get_logger()

_Activities = Mapping[Queue, Sequence[Callable[..., Any]]]

GRACE = timedelta(seconds=20)
"""The time a stopping worker lets activities end."""
WORKFLOW_SLOTS = 20
LOCAL_ACTIVITY_SLOTS = 20
LONG_EVALUATIONS_OF_ONE_WORKSPACE = 4
"""At once in local activities. As many wait: each holds a slot of workflows and one of these."""
ACTIVITY_SLOTS = 100
SWEEP_SLOTS = 20
"""Of sweeps, on the queue of the workflows."""
OVERFLOW_SLOTS = 50
"""Of calls over the shares of their workspaces."""
BULK_SLOTS = 4
CACHED_WORKFLOWS = 500
HEARTBEAT = timedelta(seconds=HEARTBEAT_SECONDS)
"""A cancelled activity learns of it with its next heartbeat."""

LOOP_BEAT_SECONDS = 1.0

STICKY_TIMEOUT = timedelta(seconds=5)
"""The time a workflow waits for the worker that has it in memory, before any other takes it."""
_POLLERS = (
    activity_pollers.Dispatcher,
    activity_pollers.DeliveryStarter,
    activity_pollers.PausePoller,
    activity_pollers.WebhookFanOut,
    activity_pollers.FailureGrouping,
)


@asynccontextmanager
async def running_workers(
    parts: Parts,
    version: WorkerVersion,
    database_url: str,
    queues: Sequence[Queue] = tuple(Queue),
    predecessor: int | None = None,
    on_failed_start: Callable[[], None] = lambda: None,
) -> AsyncIterator[Relay]:
    """Workers, relay and listener, running until the block ends."""
    relay, loops = _loops(parts, version)
    notifier = _notifier(parts, database_url)
    failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    register_models()
    registrations = handler_registry.registrations_of(parts)
    quarantine = QuarantineProcess()
    suspects = Suspects(parts.database, registrations.handlers, parts.client, quarantine)
    # Before any worker polls: work that ended the process before must not run unobserved again.
    await suspects.begin(predecessor)
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        # Pushed first, so that it ends after the workers that use it.
        stack.push_async_callback(quarantine.close)
        try:
            for worker in _workers(
                parts, version, queues, registrations.activities, suspects, failure
            ):
                await enter(worker)
            promotion = promote_at_start(parts.client, version)
            await enter(
                shutdown.background(_raised(failure), suspects.run(), notifier.run(), promotion)
            )
            if Queue.AUTOMATION in queues:
                for schedule in handler_registry.MAINTENANCE_SCHEDULES:
                    await handler_registry.ensure_schedule(parts.client, schedule)
                listening = listen(
                    libpq_url(database_url), {CHANNEL: lambda _: parts.database.notify_workers()}
                )
                await enter(shutdown.background(*(loop.run() for loop in loops), listening))
        except BaseException:
            # The exit stack waits for workers that drain, which must not delay the next start for
            # ever.
            on_failed_start()
            raise
        yield relay


def _loops(parts: Parts, version: WorkerVersion) -> tuple[Relay, Sequence[activity_pollers.Loop]]:
    """The relay, and all loops of a process with it; a commit of this process wakes them."""
    deliveries = ExecutionDeliveries(
        parts.client, handler_registry.ROUTES, eager=version.takes_over
    )
    schedules = Schedules(parts.database, parts.client, handler_registry.SCHEDULED)
    running = {**LIMITS.running, WorkflowKind.AUTOMATION_RUN: parts.running_cap}
    # A process that does not execute a start is not notified of its begin in time.
    ahead = LIMITS.ahead if version.takes_over else 1
    relay = Relay(
        parts.database,
        {**deliveries.by_intent(), Intent.SCHEDULE: schedules.deliver},
        parts.starts,
        replace(LIMITS, ahead=ahead, running=running),
    )
    pollers = [kind(parts.database) for kind in _POLLERS]
    look = activity_pollers.DueLook(parts.database, [relay, *pollers])

    def wake() -> None:
        relay.wake()
        look.wake()

    parts.database.notify_workers = wake
    return relay, (relay, look, *pollers)


def _notifier(parts: Parts, database_url: str) -> Notifier:
    """The notifier of a process, which notifies other processes of its commits."""
    notifier = Notifier(libpq_url(database_url))
    parts.starts.on_foreign_begin = notifier.notify_workers
    parts.database.notify_readers = notifier.notify_readers
    parts.database.notify_waiters = notifier.notify_waiters
    return notifier


async def _raised(failure: asyncio.Future[None]) -> None:
    await failure


def _workers(
    parts: Parts,
    version: WorkerVersion,
    queues: Sequence[Queue],
    activities: _Activities,
    suspects: Suspects,
    failure: asyncio.Future[None],
) -> list[Worker]:
    interceptors: list[Interceptor] = [SuspectInterceptor(suspects), FinalErrorInterceptor()]
    shares, turns = SlotShareInterceptor(ACTIVITY_SLOTS), OutsideTurnInterceptor()
    near = [NearCallInterceptor()] if Queue.IO in queues else []
    parts.outbound.turns = OutsideTurns(parts.database)

    # A worker that fails shuts down by itself, but only when no workflow task is left, and one
    # whose local activities it now refuses is left for ever.
    async def on_fatal_error(error: BaseException) -> None:
        if not failure.done():
            failure.set_exception(error)

    def activity_worker(queue: Queue, slots: int, *first: Interceptor) -> Worker:
        return _activity_worker(
            parts, version, queue, activities[queue], slots, on_fatal_error, [*first, *interceptors]
        )

    workers = {
        Queue.AUTOMATION: lambda: _workflow_worker(
            parts,
            version,
            activities[Queue.AUTOMATION],
            on_fatal_error,
            [*near, shares, turns, *interceptors],
        ),
        Queue.IO: lambda: activity_worker(Queue.IO, ACTIVITY_SLOTS, shares, turns),
        Queue.IO_OVERFLOW: lambda: activity_worker(Queue.IO_OVERFLOW, OVERFLOW_SLOTS, turns),
        Queue.BULK: lambda: activity_worker(Queue.BULK, BULK_SLOTS),
    }
    return [workers[queue]() for queue in queues]


def _workflow_worker(
    parts: Parts,
    version: WorkerVersion,
    activities: Sequence[Callable[..., Any]],
    on_fatal_error: Callable[[BaseException], Awaitable[None]],
    interceptors: Sequence[Interceptor],
) -> Worker:
    return Worker(
        parts.client,
        task_queue=Queue.AUTOMATION,
        workflows=handler_registry.WORKFLOWS,
        activities=activities,
        workflow_runner=production_runner(() if version.takes_over else handler_registry.PINNED),
        deployment_config=version.config(),
        max_concurrent_workflow_tasks=WORKFLOW_SLOTS,
        max_concurrent_local_activities=LOCAL_ACTIVITY_SLOTS,
        # Calls stay on this queue where it serves `io`, too; sweeps must find a slot beside them.
        max_concurrent_activities=ACTIVITY_SLOTS + SWEEP_SLOTS,
        max_cached_workflows=CACHED_WORKFLOWS,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        graceful_shutdown_timeout=GRACE,
        max_heartbeat_throttle_interval=HEARTBEAT,
        default_heartbeat_throttle_interval=HEARTBEAT,
        on_fatal_error=on_fatal_error,
        interceptors=interceptors,
    )


def _activity_worker(
    parts: Parts,
    version: WorkerVersion,
    queue: Queue,
    activities: Sequence[Callable[..., Any]],
    slots: int,
    on_fatal_error: Callable[[BaseException], Awaitable[None]],
    interceptors: Sequence[Interceptor],
) -> Worker:
    return Worker(
        parts.client,
        task_queue=queue,
        deployment_config=version.config(),
        activities=activities,
        interceptors=interceptors,
        max_concurrent_activities=slots,
        graceful_shutdown_timeout=GRACE,
        max_heartbeat_throttle_interval=HEARTBEAT,
        default_heartbeat_throttle_interval=HEARTBEAT,
        on_fatal_error=on_fatal_error,
    )


async def run_worker(
    settings: Settings,
    queues: Sequence[Queue] = tuple(Queue),
    heartbeat: Path | None = None,
    predecessor: int | None = None,
) -> None:
    """Work until SIGTERM or SIGINT, then drain; from the moment it is ready, touch `heartbeat`.

    `predecessor` is the exit code of the process before this one, if a supervisor saw its end. A
    signal before that ends it at once. Raises StartError for a wrong secret key, SilentWorkerError
    for workers that no longer poll, and the error of a worker that failed: their process must be
    replaced.
    """
    stop = _Stop()
    url, version = settings.database_url.get_secret_value(), WorkerVersion.of(settings)
    evaluations = LONG_EVALUATIONS_OF_ONE_WORKSPACE
    refuse_beyond(evaluations, waiting=evaluations)
    cut_off = partial(_cut_off_later, code=1)
    settings, sdk_metrics = with_sdk_listener(settings)
    with stop.while_starting():
        await require_secret_key(settings)
        async with open_parts(settings, "workspace-worker", sdk_metrics) as parts:
            beside = shutdown.background(
                _beat(heartbeat),
                report_presence(parts.database, queues),
                parts.store.report(),
                watch_secret_key(parts.database, parts.keys),
                require_polling(parts.client, queues, version.poller_group),
            )
            served = metrics_served(settings.worker_metrics_address, sdk_metrics, parts.database)
            running = running_workers(parts, version, url, queues, predecessor, cut_off)
            with served:
                async with running, beside:
                    stop.is_ready()
                    names = [queue.value for queue in queues]
                    log.info("worker is ready", queues=names, build=version.build)
                    try:
                        await stop.asked.wait()
                    finally:
                        log.info("worker is draining")
                        # The block ends by an error: a drain that hangs must not keep the process.
                        if not stop.asked.is_set():
                            _cut_off_later(code=1)


class _Stop:
    """The signals that end a worker: while it starts at once, later by a drain."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self._starting: asyncio.Task[Any] | None = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask)

    def is_ready(self) -> None:
        """From now on there is work to drain."""
        self._starting = None

    @contextlib.contextmanager
    def while_starting(self) -> Iterator[None]:
        """End the block in order when a signal comes before it is ready."""
        try:
            yield
        except asyncio.CancelledError:
            if self._starting is None or not self.asked.is_set():
                raise
            log.info("worker was stopped before it was ready")

    def _ask(self) -> None:
        if self.asked.is_set():
            return
        self.asked.set()
        if self._starting is None:
            _cut_off_later(code=0)
        else:
            shutdown.cut_off_later(shutdown.CLOSING_SECONDS, 0)
            # Nothing is in progress yet, so there is nothing to drain.
            self._starting.cancel()


async def _beat(heartbeat: Path | None) -> None:
    """Touch a file for as long as the event loop turns: what a supervisor can see of a worker."""
    if heartbeat is None:
        return
    while True:
        await asyncio.to_thread(heartbeat.touch)
        await asyncio.sleep(LOOP_BEAT_SECONDS)


def _cut_off_later(code: int) -> None:
    """End the process after a while. Work that is cut off is durable: another worker repeats it.

    A process that was asked to end exits in order, so that no work is suspected for it.
    """
    shutdown.cut_off_later(shutdown.DRAIN_SECONDS, code)


class NearCallInterceptor(Interceptor):
    """Leaves activities that workflows put on `io` on their own queue; replays need not do the
    same.

    Temporal hands an activity over with the answer to the workflow task that schedules it, where
    both have one queue and the worker a free slot. On a queue of its own it costs another write and
    a poll. It is handed over without its priority, which is therefore in a header.
    """

    @override
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    @override
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    @override
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        if input.task_queue != Queue.IO:
            return super().start_activity(input)
        headers = {**input.headers, **fairness_header_of(workflow.info().priority)}
        return super().start_activity(replace(input, task_queue=None, headers=headers))


_AWAY = (psycopg.Error, DBAPIError, PoolTimeoutError)


async def report_presence(database: Database, queues: Sequence[Queue]) -> None:
    """Report it again and again, and the end of the process when this is cancelled."""
    worker_id = new_id()
    try:
        while True:
            try:
                async with database.statement() as work:
                    await beat(work, worker_id, socket.gethostname(), os.getpid(), queues)
            except _AWAY:
                log.warning("the worker could not say that it is there")
            await asyncio.sleep(BEAT_SECONDS)
    finally:
        with contextlib.suppress(*_AWAY):
            async with database.transaction() as work:
                await leave(work, worker_id)


LOOPBACK = "127.0.0.1"
_SDK_SECONDS = 5


def with_sdk_listener(settings: Settings) -> tuple[Settings, str | None]:
    """An address at which the SDK serves its metrics to this process alone; none without metrics.

    The settings name it as one of the platform's own, which no user's call reaches.
    """
    if settings.worker_metrics_address is None:
        return settings, None
    # The SDK takes an address and does not report the port it chose for 0.
    with socket.create_server((LOOPBACK, 0)) as listener:
        address = f"{LOOPBACK}:{listener.getsockname()[1]}"
    own = (*settings.own_listeners, address)
    return settings.model_copy(update={"own_listeners": own}), address


@contextmanager
def metrics_served(
    address: str | None, sdk_address: str | None, database: Database
) -> Iterator[None]:
    """Serve both kinds of metrics at one address, in a thread, until the block ends."""
    if address is None:
        yield
        return
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    process = process_registry(database)

    class Handler(_MetricsHandler):
        registry = process
        sdk_url = f"http://{sdk_address}/metrics"

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True

    try:
        server = Server((host, int(port)), Handler)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno is not None else str(error)
        raise StartError(
            f"WORKSPACE_WORKER_METRICS_ADDRESS {address} cannot be used: {reason}."
        ) from None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        # `shutdown` waits for the loop of the server, which may be in a scrape.
        threading.Thread(target=server.shutdown, daemon=True).start()
        server.server_close()


class _MetricsHandler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    sdk_url: str

    def do_GET(self) -> None:  # the name that the library calls
        """Answer every path with all metrics."""
        body = generate_latest(self.registry) + self._of_the_sdk()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _of_the_sdk(self) -> bytes:
        try:
            # A proxy of the environment must not get a request for this machine.
            opener = build_opener(ProxyHandler({}))
            with opener.open(self.sdk_url, timeout=_SDK_SECONDS) as answer:
                body: bytes = answer.read()
        except (URLError, OSError):
            return b""
        return body

    @override
    def log_message(self, format: str, *arguments: object) -> None:
        """Keep scrapes out of the log."""
