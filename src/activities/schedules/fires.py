"""Accepts the one run of a due time of a schedule (decisions D2)."""

from dataclasses import dataclass
from datetime import datetime

from temporalio import activity

from activities.contracts import CalledRun
from activities.schedules.families import SCHEDULES, subject_of
from runtime.database import Database


@dataclass(frozen=True, slots=True)
class FireCall:
    """A schedule fires; `due` is when it had to, jitter aside, or when somebody triggered it."""

    schedule_id: str
    due: datetime


class ScheduleFires:
    """The writes of a fire to our rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn(name="accept_scheduled_run")
    async def accept(self, call: FireCall) -> CalledRun | None:
        """The run to start and to wait for, or None. Safe to repeat: its id follows from `due`."""
        family, subject_id = subject_of(call.schedule_id)
        async with self._database.transaction() as work:
            return await SCHEDULES[family].fire(work, subject_id, call.due)
