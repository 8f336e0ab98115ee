"""The worker processes that poll Temporal, and living ones.

Each worker checks that it still polls: one that has stopped does not notice by itself. Temporal
counts a process for minutes after its death. Its row in the database says when it was there last,
and for some seconds that says nothing: a process that may be dead is checked again.
"""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import psutil
import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue, TaskQueueVersionSelection
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from models.workspace import system
from models.workspace.system import BEAT_SECONDS, WorkerBody
from runtime.clock import utc_now
from runtime.database import Database
from runtime.temporal.workflow_kinds import Queue

log = structlog.get_logger()

LONGEST_SILENCE = timedelta(minutes=3)
"""A poll lasts a minute at most, and the next one follows."""
CHECK_SECONDS = 30.0
ANSWER_TIMEOUT = timedelta(seconds=10)
CHECKS = 3
"""Checks in a row that must find no poll: a Temporal that has just started knows of none."""

_TYPES = {
    Queue.AUTOMATION: TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    Queue.IO: TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    Queue.IO_OVERFLOW: TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    Queue.BULK: TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
}


class SilentWorkerError(ConnectionError):
    """A worker that polls no more would wait for ever."""

    retryable = True

    def __init__(self, silent: Sequence[Queue]) -> None:
        super().__init__(f"Temporal no longer hears from this worker on: {', '.join(silent)}.")


async def require_polling(
    client: Client,
    queues: Sequence[Queue],
    group: str = "",
    check_seconds: float = CHECK_SECONDS,
) -> NoReturn:
    """Check for ever. Raises SilentWorkerError when a queue of the worker is no longer polled."""
    silent_checks = 0
    while True:
        await asyncio.sleep(check_seconds)
        try:
            silent = [queue for queue in queues if not await is_polled(client, queue, group)]
        except RPCError as error:
            log.warning("Temporal did not say who polls", code=error.status.name)
            silent = []
        silent_checks = silent_checks + 1 if silent else 0
        if silent_checks == CHECKS:
            raise SilentWorkerError(silent)


async def is_polled(client: Client, queue: Queue, group: str = "") -> bool:
    """True when this client's workers have polled a queue of late. Raises RPCError."""
    pollers = await recent_pollers(client, queue, [group])
    return client.identity in pollers[group]


async def recent_pollers(
    client: Client, queue: Queue, groups: Sequence[str]
) -> Mapping[str, frozenset[str]]:
    """The processes that have polled a queue of late, of each version of the workers.

    A group is `deployment:build`; the empty one has the pollers without a version. Raises RPCError.
    """
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        # The other mode reports only one partition of the queue.
        api_mode=DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
        task_queue_types=[_TYPES[queue]],
        versions=TaskQueueVersionSelection(
            build_ids=[group for group in groups if group], unversioned="" in groups
        ),
        report_pollers=True,
    )
    answer = await client.workflow_service.describe_task_queue(request, timeout=ANSWER_TIMEOUT)
    return {
        group: frozenset(
            poller.identity
            for kind in answer.versions_info[group].types_info.values()
            for poller in kind.pollers
            if _is_recent(poller)
        )
        for group in groups
    }


def _is_recent(poller: PollerInfo) -> bool:
    last_poll = poller.last_access_time.ToDatetime(tzinfo=UTC)
    return datetime.now(UTC) - last_poll < LONGEST_SILENCE


async def worker_processes(database_url: str) -> Sequence[WorkerBody] | None:
    """The worker processes of the last hour; None where they cannot be read.

    Takes six seconds more where one of them may have died just now.
    """
    processes = await _processes(database_url)
    if not processes or not any(map(may_be_dead, processes)):
        return processes
    await asyncio.sleep(_SECOND_LOOK_SECONDS)
    later = await _processes(database_url)
    return None if later is None else still_alive(processes, later)


def identity(process: WorkerBody) -> str:
    """The name by which Temporal knows the process."""
    return f"{process.pid}@{process.host}"


_SECOND_LOOK_SECONDS = 6.0
"""After this time a worker that is alive has said so once more."""


def may_be_dead(process: WorkerBody) -> bool:
    """True for a process that counts as alive, but missed a beat or is not on this machine now.

    The number of a process alone proves nothing: in a container it is another one.
    """
    missed = utc_now() - process.seen_at > timedelta(seconds=BEAT_SECONDS + 1)
    gone = process.host == socket.gethostname() and not psutil.pid_exists(process.pid)
    return process.alive and (missed or gone)


def still_alive(earlier: Sequence[WorkerBody], later: Sequence[WorkerBody]) -> Sequence[WorkerBody]:
    """The processes as they are now; one that might be dead and sent no heartbeat since is dead."""
    suspects = {one.id: one.seen_at for one in earlier if may_be_dead(one)}
    return [
        one.model_copy(update={"alive": one.alive and suspects.get(one.id) != one.seen_at})
        for one in later
    ]


async def _processes(database_url: str) -> Sequence[WorkerBody] | None:
    database = Database(database_url, pool_size=1)
    try:
        async with database.transaction() as work:
            return await system.worker_processes(work)
    except (psycopg.Error, DBAPIError):
        return None
    finally:
        await database.close()
