"""Between rows of time entries and their times."""

from typing import Any

from sqlalchemy.dialects.postgresql import Range

from models.data.time_entries.rules.kinds import EntryMode
from models.data.time_entries.rules.times import Times, duration_of, milliseconds
from models.data.time_entries.tables import TimeEntry


def times_of(row: TimeEntry) -> Times:
    """The times of an entry."""
    return Times(
        started_at=row.started_at,
        mode=EntryMode(row.mode),
        target=duration_of(row.target_duration_ms),
        paused_at=row.paused_at,
        ended_at=row.ended_at,
        pauses=tuple((span.lower, span.upper) for span in row.pauses),
    )


def values_of(times: Times) -> dict[str, Any]:
    """The columns that hold times."""
    return {
        "started_at": times.started_at,
        "ended_at": times.ended_at,
        "paused_at": times.paused_at,
        "due_at": times.due_at,
        "pauses": [Range(start, end) for start, end in times.pauses],
        "accumulated_paused_ms": milliseconds(times.paused),
        "target_duration_ms": None if times.target is None else milliseconds(times.target),
    }
