"""IANA time zones, and the moments at which their clocks are set."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A moment at which the local clock is set, and what it shows just before and after."""

    at: datetime
    before: datetime
    after: datetime

    @property
    def is_forward(self) -> bool:
        return self.after > self.before

    def skips_day(self, wall: datetime) -> bool:
        """True when the whole day of a local time does not exist."""
        midnight = wall.replace(hour=0, minute=0)
        return self.before <= midnight and midnight + _DAY <= self.after


def clock_changes(zone: ZoneInfo, first: datetime, last: datetime) -> Iterator[ClockChange]:
    """The changes of a zone's clock after `first` until `last`, to the minute."""
    earlier, last = (one.astimezone(UTC).replace(second=0, microsecond=0) for one in (first, last))
    while earlier < last:
        later = min(earlier + _DAY, last)
        if offset_at(earlier, zone) != offset_at(later, zone):
            later = _first_with_other_offset(earlier, later, zone)
            wall = later.replace(tzinfo=None)
            before, after = offset_at(earlier, zone), offset_at(later, zone)
            yield ClockChange(later, wall + before, wall + after)
        earlier = later


def _first_with_other_offset(earlier: datetime, later: datetime, zone: ZoneInfo) -> datetime:
    while later - earlier > _MINUTE:
        middle = earlier + (later - earlier) // _MINUTE // 2 * _MINUTE
        same = offset_at(middle, zone) == offset_at(earlier, zone)
        earlier, later = (middle, later) if same else (earlier, middle)
    return later


def offset_at(moment: datetime, zone: ZoneInfo) -> timedelta:
    """The offset of the local clock from UTC at a moment."""
    return moment.astimezone(zone).utcoffset() or timedelta()


def moment_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first moment, in UTC, at which the local clock shows `wall`.

    For a time that the clock skips it is the moment at which the clock is set (ADR 0128).
    """
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    return next(clock_changes(zone, moment - 2 * _DAY, moment)).at
