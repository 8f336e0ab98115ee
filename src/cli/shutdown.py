"""Bounds of the platform's processes: the time and the tasks of a stop, and their memory."""

import asyncio
import os
import resource
import threading
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog

from cli.console import EXPLAINED

log = structlog.get_logger()

ANSWER_SECONDS = 10
"""The time a stopping API lets requests finish."""
CLOSING_SECONDS = 4.0
"""The time a process then has to close its connections, and one that is stopped while it starts."""
CANCEL_AGAIN_SECONDS = 10.0
"""Until a service that has not ended is cancelled again."""
DRAIN_SECONDS = 30.0
"""Seconds after which a stopping worker ends remaining work, such as a wait for the database."""


def cut_off_later(seconds: float, code: int) -> None:
    """End the process after a while, even if a thread still waits in it."""
    # A thread, because the event loop may be what does not end.
    cut_off = threading.Timer(seconds, os._exit, [code])
    cut_off.daemon = True
    cut_off.start()


async def until_stopped(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run the work until it fails or a signal asks to stop. Raises what the work raises."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        working.cancel()
    # The cancel of our own; an error of the work is raised.
    with suppress(asyncio.CancelledError):
        await working


@asynccontextmanager
async def background(*services: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run services for the length of the block.

    One that fails ends the block, which would otherwise continue without it. Raises its error.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(service) for service in services]
            for task in tasks:
                task.add_done_callback(_log_failure)
            try:
                yield
            finally:
                await _cancel(tasks)
    except BaseExceptionGroup as failed:
        # Callers handle the errors of services, and not groups of them.
        raise failed.exceptions[0] from None


async def _cancel(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks, and those again that continue: a library may swallow a cancel (gh-86296)."""
    for task in tasks:
        # A second cancel would break off what a task does at its end.
        if not task.cancelling():
            task.cancel()
    left = set(tasks)
    while left:
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_SECONDS)
        for task in left:
            task.cancel()


def _log_failure(task: asyncio.Task[None]) -> None:
    """Log a failure at once: the process may be killed before its end reports it."""
    error = None if task.cancelled() else task.exception()
    if isinstance(error, EXPLAINED):
        log.error("a service of the process has failed", reason=str(error))
    elif error is not None:
        log.error("a service of the process has failed", exc_info=error)


def bound_memory(limit: int) -> None:
    """Let an allocation past `limit` bytes fail instead of taking the machine down.

    CEL bounds the steps of an expression, not the size of its values: one that multiplies texts
    then fails its own node or formula with a MemoryError. 0 sets no limit.
    """
    if limit:
        # Only the soft limit, so that a child may set one of its own.
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
