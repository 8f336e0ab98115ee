"""The effect of an update on the clock of an entry (decisions C12)."""

from datetime import datetime

from models.data.time_entries.rules.kinds import EntryAction, EntryStatus
from models.data.time_entries.rules.times import Times
from runtime.errors import ConflictError

_ENDS = {
    EntryAction.COMPLETE: EntryStatus.COMPLETED,
    EntryAction.DISCARD: EntryStatus.DISCARDED,
}
_LEADS_TO = {
    EntryAction.PAUSE: EntryStatus.PAUSED,
    EntryAction.RESUME: EntryStatus.ACTIVE,
    **_ENDS,
}


def next_status(status: EntryStatus, action: EntryAction | None) -> EntryStatus:
    """The status an action leads to; what has ended stays as it has, and what is so already is.

    Raises ConflictError for the clock of an entry that has ended.
    """
    ended = status in _ENDS.values()
    if action is None or (ended and action in _ENDS):
        return status
    if ended:
        raise ConflictError(f"The time entry is {status}; it can neither be paused nor resumed.")
    return _LEADS_TO[action]


def moved(times: Times, before: EntryStatus, after: EntryStatus, now: datetime) -> Times:
    """The times of an entry whose status changes. One that ends while it stands still ended when it
    was paused.
    """
    if before == after:
        return times
    match after:
        case EntryStatus.PAUSED:
            return times.pause(now)
        case EntryStatus.ACTIVE:
            return times.resume(now)
        case _:
            return times.end(times.paused_at or now)
