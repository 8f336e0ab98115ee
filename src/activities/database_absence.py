"""Retries inside an activity while the database is away, so that no attempt is spent on it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from activities.database_errors import is_away
from runtime.database_failures import is_disk_full

log = structlog.get_logger()

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
"""Seconds between two tries."""

_Result = TypeVar("_Result")


async def awaiting_database(work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Repeat idempotent work until the database is there (ADR 0005).

    The timeout of the activity limits it. Raises whatever else the work raises.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await work()
        except Exception as error:
            if not is_away(error):
                raise
            if is_disk_full(error):
                log.error("the disk of the database is full")  # noqa: TRY400  # nothing else to tell
            else:
                log.warning("the database is away", reason=type(error).__name__)
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 2)
