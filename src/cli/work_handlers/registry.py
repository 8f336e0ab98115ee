"""Registry of durable work: handlers, maintenance schedules, and what workers register."""

from collections.abc import Callable, Mapping, Sequence
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

from activities.endings import CalledRunActivities, EndingActivities
from activities.maintenance.reconciler import Reconciler, ScheduleMaintenance
from activities.maintenance.sweeps import RetentionActivities, UsageMaintenance
from activities.maintenance.work_handlers import Activities, WorkHandler
from activities.outbox.relay import Route
from activities.parts import Parts
from activities.schedules import ScheduleFires, Schedules
from cli.work_handlers import background, runs
from models.core.lifecycle.commands import WorkTable
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from workflows.schedules import Maintenance, Retention, ScheduleFire

Handlers = Sequence[type[WorkHandler[Any]]]

HANDLERS: Handlers = (
    runs.AutomationRuns,
    runs.ActionRuns,
    background.DataSourceRuns,
    background.Jobs,
    runs.RunOperations,
    background.LegacyImports,
    background.TimeEntries,
    background.Deliveries,
)
"""Every handler, in the order of the sweeps; a new one adds its line."""

SCHEDULED = Route(ScheduleFire.__name__, Queue.AUTOMATION)
"""The workflow that every schedule starts."""


def routes_of(handlers: Handlers) -> Mapping[WorkflowKind, Route]:
    """The start of each name that goes through the outbox."""
    return {
        name: Route(workflow.__name__, handler.queue, handler.standalone)
        for handler in handlers
        for name, workflow in handler.workflows.items()
    }


def workflows_of(
    handlers: Handlers, scheduled: Sequence[type[Any]] = (Maintenance, Retention, ScheduleFire)
) -> list[type[Any]]:
    """The workflow classes of handlers, and the classes of workflows that schedules start."""
    of_handlers = [
        workflow
        for handler in handlers
        for workflow in (*handler.workflows.values(), *handler.children)
    ]
    return [*of_handlers, *scheduled]


def tables_of(handlers: Handlers) -> Mapping[WorkflowKind, WorkTable]:
    """The table of the rows of each name."""
    return {name: handler.kind for handler in handlers for name in handler.workflows}


ROUTES = routes_of(HANDLERS)
WORKFLOWS = workflows_of(HANDLERS)
PINNED = frozenset(
    workflow.__name__
    for workflow in workflows_of([handler for handler in HANDLERS if handler.pinned], ())
)
"""The types whose executions stay with the build of the workers that began them."""


@dataclass(frozen=True, slots=True)
class Registrations:
    """The activities of each queue, and the kinds of work that they execute."""

    activities: Activities
    handlers: Sequence[WorkHandler[Any]]


def registrations_of(parts: Parts, handlers: Handlers = HANDLERS) -> Registrations:
    """The registrations of the workers of a process, sharing what they keep in memory."""
    work = [handler.of(parts) for handler in handlers]
    every = [*(handler.activities(parts) for handler in work), _common(parts, handlers)]
    every.append({Queue.AUTOMATION: _sweeps(parts, work)})
    by_queue = {queue: [one for each in every for one in each.get(queue, ())] for queue in Queue}
    by_queue[Queue.IO_OVERFLOW] = by_queue[Queue.IO]
    # Workers make the calls of their own workflows (cli/worker_process.py).
    by_queue[Queue.AUTOMATION] += by_queue[Queue.IO]
    return Registrations(by_queue, work)


def _common(parts: Parts, handlers: Handlers) -> Activities:
    """The activities of every handler, of schedules, and of retention."""
    retention = RetentionActivities(parts.database, parts.store, parts.periods)
    return {
        Queue.AUTOMATION: [
            EndingActivities(parts.database, tables_of(handlers)).read_end,
            *CalledRunActivities(parts.database).all(),
            ScheduleFires(parts.database).accept,
        ],
        Queue.BULK: [retention.purge, retention.remove_orphans],
    }


def _sweeps(parts: Parts, handlers: Sequence[WorkHandler[Any]]) -> list[Callable[..., Any]]:
    """Sweeps that make rows and Temporal agree again, and keep totals near the present."""
    schedules = Schedules(parts.database, parts.client, SCHEDULED)
    return [
        Reconciler(parts.database, parts.client, handlers).reconcile,
        ScheduleMaintenance(parts.database, parts.client, schedules).reconcile_schedules,
        UsageMaintenance(parts.database, parts.counted_attributes).settle_usage,
    ]


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
        WorkflowKind.MAINTENANCE.workflow_id("reconcile"),
        Maintenance.run,
        interval=timedelta(seconds=30),
        within=timedelta(minutes=10),
        summary="Reconcile rows and executions",
    ),
    MaintenanceSchedule(
        WorkflowKind.RETENTION.workflow_id("sweep"),
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
        # The state keeps the pause of an operator.
        return ScheduleUpdate(replace(definition, state=update.description.schedule.state))

    try:
        await client.create_schedule(schedule.schedule_id, definition)
    except ScheduleAlreadyRunningError:
        await client.get_schedule_handle(schedule.schedule_id).update(renew)
