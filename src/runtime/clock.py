"""Wall-clock time as the platform writes it: UTC with milliseconds (interface, general rule 4)."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Now, in UTC, truncated to the millisecond that the wire can show."""
    return truncate(datetime.now(UTC))


def truncate(moment: datetime) -> datetime:
    """The same moment without its microseconds, so that what is stored equals what is shown."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def wire_timestamp(moment: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    utc = moment.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"
