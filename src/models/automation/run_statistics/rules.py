"""Periods, and durations by the buckets that they are counted in."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate

BASE = 1.1
"""The width of a bucket: a percentile is told within 5 %."""
NEVER = -1
"""The bucket of a run that never began."""


class Grain(StrEnum):
    """The length of a period, in UTC."""

    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return timedelta(hours=1) if self is Grain.HOUR else timedelta(days=1)

    @property
    def most(self) -> int:
        """The periods that one answer holds at most: a week by hours, a year by days."""
        return 168 if self is Grain.HOUR else 366

    @property
    def usual(self) -> int:
        """The periods that are read unless somebody asks for others."""
        return 24 if self is Grain.HOUR else 30

    @property
    def kept(self) -> timedelta:
        """The time for which sums are kept."""
        return timedelta(days=35) if self is Grain.HOUR else timedelta(days=400)

    def start_of(self, moment: datetime) -> datetime:
        """The begin of the period that a moment lies in."""
        start = moment.replace(minute=0, second=0, microsecond=0)
        return start if self is Grain.HOUR else start.replace(hour=0)

    def end_of(self, moment: datetime) -> datetime:
        """The first begin of a period that is not before a moment."""
        start = self.start_of(moment)
        return start if start == moment else start + self.length

    def starts(self, since: datetime, until: datetime) -> Sequence[datetime]:
        """The begins of the periods from one begin to another."""
        return [since + self.length * number for number in range((until - since) // self.length)]


def milliseconds(bucket: int) -> int:
    """The duration in the middle of a bucket."""
    middle: float = BASE ** (bucket + 0.5) - 1
    return round(middle)


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """The duration in milliseconds that a share of the runs did not exceed; None without any.

    It is the nearest rank, told as the middle of its bucket.
    """
    known = {bucket: number for bucket, number in counts.items() if bucket != NEVER}
    if not known:
        return None
    buckets = sorted(known)
    passed = list(accumulate(known[bucket] for bucket in buckets))
    return milliseconds(buckets[bisect_left(passed, share * passed[-1])])
