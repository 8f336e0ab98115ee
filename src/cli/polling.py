"""The check that this worker still polls Temporal: one that stopped does not notice by itself."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import structlog
from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue, TaskQueueVersionSelection
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.temporal.families import Queue

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
