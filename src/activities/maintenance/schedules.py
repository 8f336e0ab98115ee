"""The reconciler of schedules: it makes the schedules in Temporal what our rows say (ADR 0016)."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog
from temporalio import activity
from temporalio.client import Client, ScheduleListDescription, ScheduleSpec

from activities.maintenance.reconciler import BATCH
from activities.schedules import SCHEDULES, Schedules, note_of, spec_of
from models.core.base import Id
from models.core.schedules.commands import ScheduledRow, ScheduleTable, all_scheduled
from models.core.schedules.timetables import DesiredSchedule
from runtime.clock import utc_now
from runtime.database import Database
from runtime.ids import parse_id
from runtime.temporal.families import Family, SearchAttribute

log = structlog.get_logger()

TURNS = 20
"""Sweeps after which each schedule is compared in full, even where the list shows no difference."""
TURN_SECONDS = 30
LISTED_PARTS = 10
"""Calendars and intervals of a schedule that Temporal's list shows at most."""

Listed = dict[str, ScheduleListDescription]


class ScheduleMaintenance:
    """Sweeps over all schedules.

    Temporal's list lags and is incomplete, so it only finds candidates: each of them is
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
        listed = await self._listed([family.kind.family for family in SCHEDULES.values()])
        for family in SCHEDULES.values():
            await self._sweep(family.kind, listed, counts)
        for schedule_id in listed:
            if parse_id(schedule_id.rpartition("/")[2]) is not None:
                with _one_at_a_time(schedule_id):
                    await self._schedules.synchronize(schedule_id)
                    counts["removed"] += 1
        return counts

    async def _sweep(self, kind: ScheduleTable, listed: Listed, counts: dict[str, int]) -> None:
        """Compare the rows of a family with `listed`, and leave schedules without a row in it."""
        turn = int(activity.info().started_time.timestamp()) // TURN_SECONDS % TURNS
        async for row in self._desired(kind):
            schedule_id = kind.family.workflow_id(row.id)
            found = listed.pop(schedule_id, None)
            with _one_at_a_time(schedule_id):
                wanted = kind.read(row)
                its_turn = row.id.int % TURNS == turn
                if its_turn or _is_stale(wanted, utc_now()) or not _matches(wanted, found):
                    await self._schedules.synchronize(schedule_id)
                    counts["synchronized"] += 1

    async def _listed(self, families: Sequence[Family]) -> Listed:
        """The schedules of the families that Temporal lists, by their ids."""
        names = ", ".join(f"'{family}'" for family in families)
        query = f"{SearchAttribute.RUN_KIND} IN ({names})"
        listed: Listed = {}
        async for found in await self._client.list_schedules(query):
            listed[found.id] = found
        return listed

    async def _desired(self, kind: ScheduleTable) -> AsyncIterator[ScheduledRow]:
        last: Id | None = None
        while rows := await self._desired_after(kind, last):
            for row in rows:
                yield row
            last = rows[-1].id

    async def _desired_after(self, kind: ScheduleTable, last: Id | None) -> Sequence[ScheduledRow]:
        async with self._database.reading() as work:
            return await all_scheduled(work, kind, last, self._batch)


@contextmanager
def _one_at_a_time(schedule_id: str) -> Iterator[None]:
    """One schedule's trouble does not keep the sweep from the others."""
    try:
        yield
    except Exception:
        log.exception("a schedule could not be reconciled", schedule_id=schedule_id)


def _is_stale(wanted: DesiredSchedule, now: datetime) -> bool:
    """True when the row says something else of the next run than its schedule does."""
    return wanted.next_run_at != wanted.next_after(now)


def _matches(wanted: DesiredSchedule, found: ScheduleListDescription | None) -> bool:
    """As far as the list shows; a schedule that never fires again may be missing from it."""
    if found is None:
        return wanted.timing.timetable.next_after(utc_now()) is None
    shown: Any = found.schedule
    return (
        shown is not None
        and (shown.state.paused, shown.state.note) == (wanted.paused is not None, note_of(wanted))
        and shown.spec == _listed_spec(spec_of(wanted.timing, utc_now()))
    )


def _listed_spec(spec: ScheduleSpec) -> ScheduleSpec:
    """The times as Temporal's list shows them: the first few of each form."""
    calendars, intervals = spec.calendars[:LISTED_PARTS], spec.intervals[:LISTED_PARTS]
    return replace(spec, calendars=calendars, intervals=intervals)
