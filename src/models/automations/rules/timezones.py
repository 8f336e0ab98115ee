"""IANA time zones."""

from functools import lru_cache
from zoneinfo import ZoneInfo


@lru_cache(maxsize=1_024)
def is_timezone(name: str) -> bool:
    """Whether `name` is a zone of the IANA database, such as Europe/Berlin."""
    if len(name) > 64:
        return False
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # KeyError: unknown; ValueError: not a key; OSError: a directory such as "Europe".
        return False
    return True
