"""Waiting for a database that is away, inside an activity whose attempts are counted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from activities.automation_runs.nodes.failures import is_away

log = structlog.get_logger()

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
"""Seconds between two tries."""

_Result = TypeVar("_Result")


async def awaiting_database(work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Do what may be repeated until the database takes it: its absence costs no attempt (ADR 0005).

    The time of the activity bounds it. Raises what else the work raises.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await work()
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("the database is away", reason=type(error).__name__)
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 2)
