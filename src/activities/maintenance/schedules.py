"""The reconciler of schedules: it makes the schedules in Temporal what our rows say (I7)."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import structlog
from temporalio import activity
from temporalio.client import Client, ScheduleListDescription

from activities.maintenance.reconciler import BATCH
from activities.schedules.schedules import Schedules
from activities.schedules.specs import FAMILY, spec_of
from models.automation.automations.schedules import (
    DesiredSchedule,
    ScheduledAutomation,
    all_scheduled,
    read_schedule,
)
from models.core.base import Id
from runtime.clock import utc_now
from runtime.database import Database
from runtime.families import SearchAttribute
from runtime.ids import parse_id

log = structlog.get_logger()

TURNS = 20
"""Every so many sweeps each schedule is looked at closely, whatever the list says of it."""
TURN_SECONDS = 30

Listed = dict[str, ScheduleListDescription]


class ScheduleMaintenance:
    """Sweeps over all schedules.

    Temporal's list lags and does not tell everything, so it only finds candidates: each of them is
    synchronized as if its intent had just been delivered.
    """

    def __init__(
        self, database: Database, client: Client, schedules: Schedules, *, batch: int = BATCH
    ) -> None:
        self._database = database
        self._client = client
        self._schedules = schedules
        self._batch = batch

    @activity.defn(name="reconcile_schedules")
    async def reconcile_schedules(self) -> dict[str, int]:
        """One sweep. Safe to repeat: a schedule that is right is left alone."""
        counts = {"synchronized": 0, "removed": 0}
        listed = await self._listed()
        turn = int(activity.info().started_time.timestamp()) // TURN_SECONDS % TURNS
        async for row in self._wanted():
            found = listed.pop(FAMILY.workflow_id(row.id), None)
            with _one_at_a_time(row.id):
                wanted = read_schedule(row)
                its_turn = row.id.int % TURNS == turn
                if its_turn or _is_stale(wanted, utc_now()) or not _looks_right(wanted, found):
                    await self._schedules.synchronize(row.id)
                    counts["synchronized"] += 1
        for schedule_id in listed:
            automation_id = parse_id(schedule_id.rpartition("/")[2])
            if automation_id is not None:
                with _one_at_a_time(automation_id):
                    await self._schedules.synchronize(automation_id)
                    counts["removed"] += 1
        return counts

    async def _listed(self) -> Listed:
        """The schedules Temporal lists, by their ids."""
        query = f"{SearchAttribute.RUN_KIND} = '{FAMILY}'"
        listed: Listed = {}
        async for found in await self._client.list_schedules(query):
            activity.heartbeat()
            listed[found.id] = found
        return listed

    async def _wanted(self) -> AsyncIterator[ScheduledAutomation]:
        last: Id | None = None
        while rows := await self._wanted_after(last):
            for row in rows:
                yield row
            last = rows[-1].id

    async def _wanted_after(self, last: Id | None) -> Sequence[ScheduledAutomation]:
        async with self._database.transaction() as work:
            return await all_scheduled(work, last, self._batch)


@contextmanager
def _one_at_a_time(automation_id: Id) -> Iterator[None]:
    """One schedule's trouble does not keep the sweep from the others."""
    activity.heartbeat()
    try:
        yield
    except Exception:
        log.exception("a schedule could not be reconciled", automation_id=str(automation_id))


def _is_stale(wanted: DesiredSchedule, now: datetime) -> bool:
    """Whether the row says something else of the next run than its schedule does."""
    return wanted.next_run_at != wanted.next_after(now)


def _looks_right(wanted: DesiredSchedule, found: ScheduleListDescription | None) -> bool:
    """As far as the list tells; a schedule that never fires again need not be there."""
    if found is None:
        return wanted.trigger.timetable.next_after(utc_now()) is None
    shown: Any = found.schedule
    return (
        shown is not None
        and (shown.state.paused, shown.state.note) == (wanted.paused is not None, wanted.paused)
        and shown.spec == spec_of(wanted.trigger)
    )
