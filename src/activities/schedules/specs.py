"""The schedule of an automation in Temporal's terms, in the form in which Temporal describes it."""

from collections.abc import Iterable
from datetime import timedelta
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
from temporalio.common import Priority, TypedSearchAttributes

from activities.outbox.deliveries import Route
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger
from models.automation.automations.schedules import DesiredSchedule
from models.core.schedules.cron import Cron
from runtime.families import Family
from runtime.search_attributes import search_attributes

FAMILY = Family.AUTOMATION_SCHEDULE

_OVERLAPS = {
    "skip": ScheduleOverlapPolicy.SKIP,
    "buffer_one": ScheduleOverlapPolicy.BUFFER_ONE,
    "allow_all": ScheduleOverlapPolicy.ALLOW_ALL,
    "cancel_other": ScheduleOverlapPolicy.CANCEL_OTHER,
}
_SUMMARY_BYTES = 200
_TRIGGERED = 3
"""The priority of what a trigger starts (decisions D1)."""


def schedule_of(wanted: DesiredSchedule, route: Route) -> Schedule:
    """The whole schedule; a failed run never pauses it."""
    return Schedule(
        action=ScheduleActionStartWorkflow(
            route.workflow,
            str(wanted.automation_id),
            id=FAMILY.workflow_id(wanted.automation_id),
            task_queue=route.task_queue,
            typed_search_attributes=attributes_of(wanted),
            static_summary=_summary(wanted.label),
            priority=Priority(priority_key=_TRIGGERED, fairness_key=str(wanted.workspace_id)),
        ),
        spec=spec_of(wanted.trigger),
        policy=SchedulePolicy(
            overlap=_OVERLAPS[wanted.trigger.overlap],
            # Temporal's own default is a year, a surprise after downtime.
            catchup_window=timedelta(seconds=wanted.trigger.catchup_window_seconds),
            pause_on_failure=False,
        ),
        state=ScheduleState(paused=wanted.paused is not None, note=wanted.paused),
    )


def attributes_of(wanted: DesiredSchedule) -> TypedSearchAttributes:
    """What an operator finds the schedule and its fires by."""
    facts = {"resourceId": str(wanted.automation_id)}
    return search_attributes(str(wanted.workspace_id), facts, FAMILY)


def spec_of(trigger: ScheduleTrigger) -> ScheduleSpec:
    """When it fires, read by us and not by Temporal, so that both mean the same."""
    timetable = trigger.timetable
    every = timetable.every
    return ScheduleSpec(
        calendars=[] if timetable.cron is None else [_calendar(timetable.cron)],
        intervals=[]
        if every is None
        else [
            ScheduleIntervalSpec(
                every=timedelta(seconds=every),
                offset=timedelta(seconds=timetable.offset) if timetable.offset else None,
            )
        ],
        start_at=timetable.start,
        end_at=timetable.end,
        jitter=timedelta(seconds=trigger.jitter_seconds) if trigger.jitter_seconds else None,
        time_zone_name=timetable.zone,
    )


def _calendar(cron: Cron) -> ScheduleCalendarSpec:
    return ScheduleCalendarSpec(
        second=_ranges([0]),
        minute=_ranges(cron.minutes),
        hour=_ranges(cron.hours),
        day_of_month=_ranges(cron.days),
        month=_ranges(cron.months),
        year=(),
        day_of_week=_ranges(cron.weekdays),
    )


def _ranges(values: Iterable[int]) -> tuple[ScheduleRange, ...]:
    """Ascending values as ranges without gaps."""
    runs = groupby(enumerate(values), key=lambda pair: pair[1] - pair[0])
    members = [[value for _, value in run] for _, run in runs]
    return tuple(ScheduleRange(start=run[0], end=run[-1], step=1) for run in members)


def _summary(label: str) -> str:
    tail = " · schedule"
    return label.encode()[: _SUMMARY_BYTES - len(tail.encode())].decode(errors="ignore") + tail
