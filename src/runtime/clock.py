"""The wall clock, to the millisecond, timestamps as the platform writes them, and bounded waits."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache


def truncate(moment: datetime) -> datetime:
    """The same moment without its microseconds, so that what is stored equals what is shown."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def wire_timestamp(moment: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    # In UTC first: the two moments of an hour that a zone repeats are equal in that zone.
    return _written(moment.astimezone(UTC))


@lru_cache(maxsize=512)
def _written(moment: datetime) -> str:
    """The text of a moment in UTC; records that are written together share theirs."""
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def utc_now() -> datetime:
    """Now, in UTC, truncated to the millisecond that the wire can show."""
    return truncate(datetime.now(UTC))


async def wait_until_set(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for an event for some seconds, without a bound if None. True when it is set."""
    # asyncio.wait_for swallows a cancel that meets a wake-up, until Python 3.12 (gh-86296).
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
