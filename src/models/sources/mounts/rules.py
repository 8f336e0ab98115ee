"""Bounds and timing of mounts."""

from models.core.schedules.desired import Timing
from models.core.schedules.timetables import Timetable

SYNC_SECONDS = 900
"""The time between two syncs of a mount."""

MAX_ENTRIES = 20_000
"""Entries of a recursive mount; what is beyond is left out, and the mount says so."""

SYNC_TIMING = Timing(
    timetable=Timetable(interval_seconds=SYNC_SECONDS), jitter_seconds=SYNC_SECONDS // 3
)

CANCELLED = "The sync was cancelled. Sync the mount again to complete it."
INTERRUPTED = "The sync was interrupted. It is made again at its next time."
