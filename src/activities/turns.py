"""Waits of an activity for its turn, or for a process, which cost it no attempt."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from models.automation.automations.rules.graph.kinds import NODE_KINDS, CostClass

POSTPONED = "postponed"
"""The type of the error of a node that has not begun; it says the attempts made before.

Its workflow tries anew after a while.
"""
PATIENCE_SECONDS = 2.0
"""Until a transaction makes room in its worker, and between two heartbeats of all others."""
_PART = 0.1
"""The part of its time that a node waits at most: the rest is for what it calls."""
_CALLING = frozenset(kind for kind, spec in NODE_KINDS.items() if spec.cost is CostClass.OUTSIDE)


async def waited(future: "asyncio.Future[Any]", reason: str) -> None:
    """Wait until a future is done, with heartbeats, for as long as the activity may wait.

    Raises ApplicationError, for the reason, when it may wait no longer. No attempt is lost by it.
    """
    info = activity.info()
    while not (await asyncio.wait({future}, timeout=_patience(info)))[0]:
        if info.is_local:
            pause = timedelta(seconds=PATIENCE_SECONDS)
            raise ApplicationError(reason, type=POSTPONED, next_retry_delay=pause)
        if info.activity_type in _CALLING:
            raise ApplicationError(reason, info.attempt - 1, type=POSTPONED, non_retryable=True)
        activity.heartbeat(*info.heartbeat_details)


def _patience(info: activity.Info) -> float:
    own = info.start_to_close_timeout
    if own is None or info.activity_type not in _CALLING:
        return PATIENCE_SECONDS
    return min(PATIENCE_SECONDS, own.total_seconds() * _PART)


@asynccontextmanager
async def turn(lock: asyncio.Lock, reason: str) -> AsyncIterator[None]:
    """Hold a lock that is waited for as `waited` says."""
    taking = asyncio.ensure_future(lock.acquire())
    try:
        await waited(taking, reason)
    except BaseException:
        if not taking.cancel():
            lock.release()
        raise
    try:
        yield
    finally:
        lock.release()
