"""IANA time zones."""

import re
from functools import lru_cache
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

_NO_ZONES = re.compile(r"localtime|posixrules|Factory|(posix|right)/.*", re.DOTALL)
"""Names that systems keep beside the database: not on every machine, and not the same on each."""


@lru_cache(maxsize=1_024)
def is_timezone(name: str) -> bool:
    """True when `name` is a zone of the IANA database, such as Europe/Berlin."""
    if len(name) > 64 or _NO_ZONES.fullmatch(name):
        return False
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # KeyError: unknown; ValueError: not a key; OSError: a directory such as "Europe".
        return False
    return True


def _known_timezone(name: str) -> str:
    if not is_timezone(name):
        raise ValueError("is not an IANA time zone such as Europe/Berlin")
    return name


Timezone = Annotated[str, AfterValidator(_known_timezone)]
"""The name of a zone of the IANA database."""
