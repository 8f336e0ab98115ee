"""The Temporal schedules of maintenance, which every worker creates or updates when it starts."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.types import MethodAsyncNoParam

from runtime.families import Family, Queue
from workflows.maintenance.maintenance import Maintenance
from workflows.maintenance.retention import Retention

_DIVISION = SearchAttributeKey.for_keyword("TemporalNamespaceDivision")
APART = TypedSearchAttributes([SearchAttributePair(_DIVISION, "maintenance")])
"""Temporal lists the contents of a division only when asked for that division (docs/adr/0030)."""


@dataclass(frozen=True, slots=True)
class MaintenanceSchedule:
    """A workflow that a schedule starts at an interval, and how long it may take."""

    schedule_id: str
    run: MethodAsyncNoParam[Any, dict[str, int]]
    interval: timedelta
    within: timedelta
    summary: str


MAINTENANCE_SCHEDULES = (
    MaintenanceSchedule(
        Family.MAINTENANCE.workflow_id("reconcile"),
        Maintenance.run,
        interval=timedelta(seconds=30),
        within=timedelta(minutes=10),
        summary="Reconcile rows and executions",
    ),
    MaintenanceSchedule(
        Family.RETENTION.workflow_id("sweep"),
        Retention.run,
        interval=timedelta(hours=1),
        within=timedelta(hours=6),
        summary="Remove what is past its time",
    ),
)


async def ensure_schedule(client: Client, schedule: MaintenanceSchedule) -> None:
    """Create or update a schedule in Temporal; one that an operator paused stays paused."""
    definition = Schedule(
        action=ScheduleActionStartWorkflow(
            schedule.run,
            id=schedule.schedule_id,
            task_queue=Queue.AUTOMATION,
            static_summary=schedule.summary,
            execution_timeout=schedule.within,
            typed_search_attributes=APART,
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=schedule.interval)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=schedule.interval),
    )

    def renew(update: ScheduleUpdateInput) -> ScheduleUpdate:
        return ScheduleUpdate(replace(definition, state=update.description.schedule.state))

    try:
        await client.create_schedule(schedule.schedule_id, definition)
    except ScheduleAlreadyRunningError:
        await client.get_schedule_handle(schedule.schedule_id).update(renew)
