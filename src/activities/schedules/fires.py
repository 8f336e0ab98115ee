"""Accepts the one run of a due time of a schedule (decisions D2)."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from temporalio import activity

from activities.contracts import CalledRun
from models.automation.automation_runs.scheduled_runs import fire
from runtime.database import Database


@dataclass(frozen=True, slots=True)
class FireCall:
    """A schedule fires; `due` is when it had to, jitter aside, or when somebody triggered it."""

    automation_id: str
    due: datetime


class ScheduleFires:
    """What a fire does to our rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn(name="accept_scheduled_run")
    async def accept(self, call: FireCall) -> CalledRun | None:
        """The run to start and to wait for, or None. Safe to repeat: its id follows from `due`."""
        async with self._database.transaction() as work:
            run = await fire(work, uuid.UUID(call.automation_id), call.due)
        return (
            None if run is None else CalledRun(str(run.run_id), str(run.workspace_id), run.request)
        )
