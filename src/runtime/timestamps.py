"""Timestamps as the platform writes them: UTC with milliseconds (interface, general rule 4)."""

from datetime import UTC, datetime
from functools import lru_cache


def truncate(moment: datetime) -> datetime:
    """The same moment without its microseconds, so that what is stored equals what is shown."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


# A batch shows one moment a thousand times.
@lru_cache(maxsize=512)
def wire_timestamp(moment: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
