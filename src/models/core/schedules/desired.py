"""The schedule of anything as it should be in Temporal, whatever it fires. Pure."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from models.core.base import Id
from models.core.schedules.timetables import Timetable
from runtime.families import Family

Overlap = Literal["skip", "buffer_one", "allow_all", "cancel_other"]
"""The fate of a due time while an earlier run still goes on."""

CATCHUP_SECONDS = 600
"""Delay within which a due time is made up for, unless somebody says otherwise (decisions C7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times at which a schedule fires, and its treatment of due times that it cannot meet."""

    timetable: Timetable
    jitter_seconds: int = 0
    overlap: Overlap = "skip"
    catchup_seconds: int = CATCHUP_SECONDS


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Counts of due times without a run: the run before was open, or no worker ran in time."""

    skipped: int
    missed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredSchedule:
    """The schedule of one subject as it should be; `paused` says why it does not fire."""

    family: Family
    subject_id: Id
    workspace_id: Id
    title: str
    """The text that an operator reads; see `title_of`."""
    timing: Timing
    paused: str | None
    next_run_at: datetime | None = field(compare=False)
    """The value of `next_after` in the subject's row."""
    passed_over: PassedOver = field(compare=False)
    """The counts of the due times so far in the subject's row."""

    @property
    def schedule_id(self) -> str:
        return self.family.workflow_id(self.subject_id)

    def next_after(self, moment: datetime) -> datetime | None:
        """The next moment it fires, without jitter; None while it is paused or after its end."""
        return None if self.paused else self.timing.timetable.next_after(moment)


_TITLE_BYTES = 200
"""Bytes of the longest summary that Temporal takes."""


def title_of(label: str, action: str) -> str:
    """`Prices · refresh`, cut to what Temporal takes."""
    tail = f" · {action}"
    return label.encode()[: _TITLE_BYTES - len(tail.encode())].decode(errors="ignore") + tail
