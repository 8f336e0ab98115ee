"""The table of time entries as durable work, for what all such work shares."""

from models.core.lifecycle.commands import WorkTable
from models.data.time_entries.rules.kinds import ENTRY_LIFECYCLE, TIMED_MODES
from models.data.time_entries.tables import time_entry
from runtime.families import Family

TIME_ENTRIES = WorkTable(
    time_entry,
    ENTRY_LIFECYCLE,
    ended_column="closed_at",
    # Others go on until somebody ends them.
    executed=time_entry.c.mode.in_(TIMED_MODES),
    family=Family.TIMER_DUE,
)
