"""The wall clock, to the millisecond."""

from datetime import UTC, datetime

from runtime.timestamps import truncate


def utc_now() -> datetime:
    """Now, in UTC, truncated to the millisecond that the wire can show."""
    return truncate(datetime.now(UTC))
