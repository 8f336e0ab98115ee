"""Schedules in Temporal: made as our rows say, and the one run of each due time (ADR 0016)."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from temporalio import activity
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleCalendarSpec,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts import CalledRun
from activities.outbox.relay import Route
from models.automation.automation_runs.commands import fire as fire_automation
from models.automation.automation_runs.commands import keep_passed_over
from models.automation.automations.schedules import AUTOMATION_SCHEDULES
from models.core.base import Id
from models.core.schedules.commands import ScheduleTable, scheduled, set_next_run, set_passed_over
from models.core.schedules.plans import ALL_YEARS, Calendar, plan_of
from models.core.schedules.timetables import DesiredSchedule, PassedOverCounts, Timing
from models.sources.data_source_runs.acceptance import fire_refresh
from models.sources.data_sources.tables import DATA_SOURCE_SCHEDULES
from models.sources.mounts.commands import MOUNT_SCHEDULES, fire_sync
from runtime.clock import utc_now
from runtime.database import Database, UnitOfWork
from runtime.temporal.executions import fairness, search_attributes
from runtime.temporal.outbox import Outbox
from runtime.temporal.workflow_kinds import WorkflowKind

Fire = Callable[[UnitOfWork, Id, datetime], Awaitable[CalledRun | None]]
"""Accepts the run of a due time of a subject, unless there is none to wait for; idempotent."""


@dataclass(frozen=True, slots=True)
class ScheduleKind:
    """The facts that the engine of schedules knows of a workflow kind. Each is registered."""

    kind: ScheduleTable
    fire: Fire


async def _automation(work: UnitOfWork, automation_id: Id, due: datetime) -> CalledRun | None:
    run = await fire_automation(work, automation_id, due)
    if run is None:
        return None
    return CalledRun(str(run.run_id), str(run.workspace_id), run.request)


async def _data_source(work: UnitOfWork, data_source_id: Id, due: datetime) -> CalledRun | None:
    run = await fire_refresh(work, data_source_id, due)
    if run is None:
        return None
    workflow_kind = WorkflowKind.DATA_SOURCE_REFRESH
    workspace_id, request = str(run.workspace_id), dict(run.request)
    return CalledRun(str(run.run_id), workspace_id, request, workflow_kind, in_line=True)


async def _mount(work: UnitOfWork, mount_id: Id, due: datetime) -> CalledRun | None:
    sync = await fire_sync(work, mount_id, due)
    if sync is None:
        return None
    workspace_id, request = str(sync.workspace_id), dict(sync.request)
    return CalledRun(str(sync.job_id), workspace_id, request, WorkflowKind.MOUNT_SYNC, in_line=True)


SCHEDULES: Mapping[WorkflowKind, ScheduleKind] = {
    WorkflowKind.AUTOMATION_SCHEDULE: ScheduleKind(AUTOMATION_SCHEDULES, _automation),
    WorkflowKind.DATA_SOURCE_SCHEDULE: ScheduleKind(DATA_SOURCE_SCHEDULES, _data_source),
    WorkflowKind.MOUNT_SCHEDULE: ScheduleKind(MOUNT_SCHEDULES, _mount),
}


def subject_of(schedule_id: str) -> tuple[WorkflowKind, Id]:
    """The workflow kind and the subject of a schedule. Raises ValueError for another id."""
    workflow_kind, _, subject_id = schedule_id.partition("/")
    return WorkflowKind(workflow_kind), Id(subject_id)


_OVERLAPS = {
    "skip": ScheduleOverlapPolicy.SKIP,
    "buffer_one": ScheduleOverlapPolicy.BUFFER_ONE,
    "allow_all": ScheduleOverlapPolicy.ALLOW_ALL,
    "cancel_other": ScheduleOverlapPolicy.CANCEL_OTHER,
}

_ONCE = timedelta(days=50 * 365)
"""The interval of a single moment: Temporal has no other form for one, and the first repetition of
this one is 50 years away. It is shorter than the time since the epoch, which Temporal's arithmetic
needs."""


def schedule_of(schedule: DesiredSchedule, route: Route, now: datetime) -> Schedule:
    """The whole schedule; a failed run never pauses it."""
    return Schedule(
        action=ScheduleActionStartWorkflow(
            route.workflow,
            schedule.schedule_id,
            id=schedule.schedule_id,
            task_queue=route.task_queue,
            typed_search_attributes=attributes_of(schedule),
            static_summary=schedule.title,
            priority=fairness(schedule.workspace_id, schedule.workflow_kind),
        ),
        spec=spec_of(schedule.timing, now),
        policy=SchedulePolicy(
            overlap=_OVERLAPS[schedule.timing.overlap],
            # Temporal's own default is a year, a surprise after downtime.
            catchup_window=timedelta(seconds=schedule.timing.catchup_seconds),
            pause_on_failure=False,
        ),
        state=ScheduleState(paused=schedule.paused is not None, note=note_of(schedule)),
    )


def note_of(schedule: DesiredSchedule) -> str:
    """The note of its page for operators: whose schedule it is, and why it is paused if it is."""
    return schedule.title if schedule.paused is None else f"{schedule.title}. {schedule.paused}"


def attributes_of(schedule: DesiredSchedule) -> TypedSearchAttributes:
    """The attributes by which an operator finds the schedule and its fires."""
    facts = {"resourceId": str(schedule.subject_id)}
    return search_attributes(str(schedule.workspace_id), facts, schedule.workflow_kind)


def spec_of(timing: Timing, now: datetime) -> ScheduleSpec:
    """The times it fires, read by us and not by Temporal, so that both mean the same."""
    timetable = timing.timetable
    plan = plan_of(timetable, now)
    intervals = [_interval(_ONCE, int(moment.timestamp())) for moment in plan.moments]
    if timetable.interval_seconds is not None:
        intervals.append(_interval(timedelta(seconds=timetable.interval_seconds), timetable.offset))
    return ScheduleSpec(
        calendars=[_calendar(calendar) for calendar in plan.calendars],
        intervals=intervals,
        start_at=timetable.start,
        end_at=timetable.end,
        jitter=timedelta(seconds=timing.jitter_seconds) if timing.jitter_seconds else None,
        time_zone_name=plan.zone,
    )


def _interval(every: timedelta, seconds: int) -> ScheduleIntervalSpec:
    offset = timedelta(seconds=seconds) % every
    return ScheduleIntervalSpec(every=every, offset=offset or None)


def _calendar(calendar: Calendar) -> ScheduleCalendarSpec:
    return ScheduleCalendarSpec(
        second=_ranges([0]),
        minute=_ranges(calendar.minutes),
        hour=_ranges(calendar.hours),
        day_of_month=_ranges(calendar.days),
        month=_ranges(calendar.months),
        year=() if calendar.years == ALL_YEARS else _ranges(calendar.years),
        day_of_week=_ranges(calendar.weekdays),
    )


def _ranges(values: Iterable[int]) -> tuple[ScheduleRange, ...]:
    """Ascending values as ranges without gaps."""
    runs = groupby(enumerate(values), key=lambda pair: pair[1] - pair[0])
    members = [[value for _, value in run] for _, run in runs]
    return tuple(ScheduleRange(start=run[0], end=run[-1], step=1) for run in members)


_TIMEOUT = timedelta(seconds=5)


class Schedules:
    """Creates, updates, pauses and deletes the schedules of every workflow kind.

    A delivery carries no state of its own: it reads the rows and writes the difference, so any
    number of them in any order ends right.
    """

    def __init__(self, database: Database, client: Client, route: Route) -> None:
        self._database = database
        self._client = client
        self._route = route

    async def deliver(self, row: Outbox) -> None:
        """Deliver an intent of the outbox."""
        await self.synchronize(WorkflowKind(row.workflow_kind).workflow_id(row.subject_id))

    async def synchronize(self, schedule_id: str) -> None:
        """Make a schedule what the rows say, and show there what it does.

        The rows are read again after every write, so that the last writer has read their latest
        state.
        """
        wanted = await self._read(schedule_id)
        while True:
            await self._write(schedule_id, wanted)
            written, wanted = wanted, await self._read(schedule_id)
            if wanted == written:
                return

    async def _read(self, schedule_id: str) -> DesiredSchedule | None:
        workflow_kind, subject_id = subject_of(schedule_id)
        kind = SCHEDULES[workflow_kind].kind
        async with self._database.transaction() as work:
            found = await scheduled(work, kind, subject_id)
            due = None if found is None else found.next_after(work.now)
            await set_next_run(work, kind, subject_id, due)
        return found

    async def _write(self, schedule_id: str, wanted: DesiredSchedule | None) -> None:
        handle = self._client.get_schedule_handle(schedule_id)
        try:
            if wanted is None:
                await handle.delete(rpc_timeout=_TIMEOUT)
            else:
                await self._update(handle, wanted)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            if wanted is not None:
                # Another process may have deleted it since the rows were read.
                await self._create(wanted)

    async def _update(self, handle: ScheduleHandle, wanted: DesiredSchedule) -> None:
        counts: list[PassedOverCounts] = []

        async def difference(update: ScheduleUpdateInput) -> ScheduleUpdate | None:
            info = update.description.info
            counts[:] = [
                PassedOverCounts(
                    info.num_actions_skipped_overlap, info.num_actions_missed_catchup_window
                )
            ]
            return await self._difference(update.description.schedule, wanted)

        await handle.update(difference, rpc_timeout=_TIMEOUT)
        if counts != [wanted.passed_over]:
            kind = SCHEDULES[wanted.workflow_kind].kind
            async with self._database.transaction() as work:
                await set_passed_over(work, kind, wanted.subject_id, counts[0])
                if wanted.workflow_kind is WorkflowKind.AUTOMATION_SCHEDULE:
                    await keep_passed_over(work, wanted, counts[0])

    async def _create(self, wanted: DesiredSchedule) -> None:
        """Create a missing schedule, unless it will never fire again.

        Temporal itself removes such a schedule after some days.
        """
        if wanted.timing.timetable.next_after(utc_now()) is None:
            return
        # Another process has created it meanwhile; the rows are compared with it in the next round.
        with contextlib.suppress(ScheduleAlreadyRunningError):
            await self._client.create_schedule(
                wanted.schedule_id,
                schedule_of(wanted, self._route, utc_now()),
                search_attributes=attributes_of(wanted),
                rpc_timeout=_TIMEOUT,
            )

    async def _difference(self, found: Schedule, wanted: DesiredSchedule) -> ScheduleUpdate | None:
        """An update, or None for a schedule that is as it should be.

        Temporal drops fires that become due between its last check and an update, so a needless
        update is not made.
        """
        schedule = schedule_of(wanted, self._route, utc_now())
        same = _parts(found, await self._texts(found)) == _parts(
            schedule, _encoded_arguments(schedule)
        )
        return None if same else ScheduleUpdate(schedule)

    async def _texts(self, described: Schedule) -> Sequence[Any]:
        return await self._client.data_converter.decode(_encoded_arguments(described))


def _encoded_arguments(schedule: Schedule) -> list[Any]:
    """The argument and the summary of the workflow, which Temporal keeps encoded."""
    action = schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow), "Temporal knows no other action"
    return [*action.args, *([] if action.static_summary is None else [action.static_summary])]


def _parts(schedule: Schedule, texts: Sequence[Any]) -> tuple[Any, ...]:
    """Everything about a schedule that is ours to decide, comparable."""
    action = schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow), "Temporal knows no other action"
    started = (action.workflow, action.id, action.task_queue, action.priority)
    return (schedule.spec, schedule.policy, schedule.state, started, list(texts))


@dataclass(frozen=True, slots=True)
class FireCall:
    """A schedule fires. `due` is its time without jitter, or the time at which it was triggered by
    hand.
    """

    schedule_id: str
    due: datetime


class ScheduleFires:
    """The writes of a fire to our rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn(name="accept_scheduled_run")
    async def accept(self, call: FireCall) -> CalledRun | None:
        """The run to start and to wait for, or None. Safe to repeat: its id follows from `due`."""
        workflow_kind, subject_id = subject_of(call.schedule_id)
        async with self._database.transaction() as work:
            return await SCHEDULES[workflow_kind].fire(work, subject_id, call.due)
