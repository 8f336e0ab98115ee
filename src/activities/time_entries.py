"""The time of a time entry, looked at under the lock of its row."""

from dataclasses import dataclass
from datetime import UTC, datetime

from temporalio import activity

from activities.endings import CLOSED
from models.core.base import Id
from models.data.time_entries import writes
from models.data.time_entries.rules import OPEN_ENTRY
from runtime.database import Database


@dataclass(frozen=True, slots=True)
class DueCall:
    """End an entry if its time is up; `now` is the workflow's, in seconds since the epoch."""

    entry_id: str
    now: float


@dataclass(frozen=True, slots=True)
class DueReply:
    """The status of an entry, and the seconds until it is due; None while it is stopped."""

    status: str
    open: bool
    seconds: float | None = None


class TimerActivities:
    """The requests of an execution to its entry."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn(name="end_time_entry_when_due")
    async def end_when_due(self, call: DueCall) -> DueReply:
        """Complete the entry if its time is up, at the moment that was. Safe to repeat."""
        now = datetime.fromtimestamp(call.now, UTC)
        async with self._database.transaction() as work:
            entry = await writes.end_when_due(work, Id(call.entry_id), now)
        if entry is None:
            return DueReply(CLOSED, open=False)
        is_open = entry.status in OPEN_ENTRY
        left = None if entry.due_at is None else (entry.due_at - now).total_seconds()
        return DueReply(entry.status, is_open, left)
