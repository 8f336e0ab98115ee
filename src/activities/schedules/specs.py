"""A schedule in Temporal's terms, in the form in which Temporal describes it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby

from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
)
from temporalio.common import TypedSearchAttributes

from activities.outbox.deliveries import Route
from models.core.schedules.desired import DesiredSchedule, Timing
from models.core.schedules.plans import ALL_YEARS, Calendar, plan_of
from runtime.fairness import fairness
from runtime.search_attributes import search_attributes

_OVERLAPS = {
    "skip": ScheduleOverlapPolicy.SKIP,
    "buffer_one": ScheduleOverlapPolicy.BUFFER_ONE,
    "allow_all": ScheduleOverlapPolicy.ALLOW_ALL,
    "cancel_other": ScheduleOverlapPolicy.CANCEL_OTHER,
}


_ONCE = timedelta(days=50 * 365)
"""The interval of a single moment: Temporal has no other form for one, and this one repeats when
nobody looks. It is shorter than the time since the epoch, which Temporal's arithmetic needs."""


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
            priority=fairness(schedule.workspace_id, schedule.family),
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
    return search_attributes(str(schedule.workspace_id), facts, schedule.family)


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
