"""All families of durable work, and what follows from them: routes, workflows and activities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activities.called_runs import CalledRunActivities
from activities.endings import EndingActivities
from activities.maintenance.families import Activities, WorkFamily
from activities.maintenance.reconciler import Reconciler
from activities.maintenance.retention import RetentionActivities
from activities.maintenance.schedules import ScheduleMaintenance
from activities.maintenance.usage import UsageMaintenance
from activities.outbox.deliveries import Route
from activities.parts import Parts
from activities.schedules.fires import ScheduleFires
from activities.schedules.schedules import Schedules
from cli.families.action_runs import ActionRuns
from cli.families.automation_runs import AutomationRuns
from cli.families.data_source_runs import DataSourceRuns
from cli.families.deliveries import Deliveries
from cli.families.jobs import Jobs
from cli.families.legacy_imports import LegacyImports
from cli.families.run_operations import RunOperations
from cli.families.time_entries import TimeEntries
from models.core.lifecycle.commands import WorkTable
from runtime.families import Family, Queue
from workflows.maintenance.maintenance import Maintenance
from workflows.maintenance.retention import Retention
from workflows.schedules.schedule_fire import ScheduleFire

Families = Sequence[type[WorkFamily[Any]]]

FAMILIES: Families = (
    AutomationRuns,
    ActionRuns,
    DataSourceRuns,
    Jobs,
    RunOperations,
    LegacyImports,
    TimeEntries,
    Deliveries,
)
"""Every family, in the order of the sweeps; a new one adds its line."""

SCHEDULED = Route(ScheduleFire.__name__, Queue.AUTOMATION)
"""The workflow that every schedule starts."""


def routes_of(families: Families) -> Mapping[Family, Route]:
    """The start of each name that goes through the outbox."""
    return {
        name: Route(workflow.__name__, family.queue)
        for family in families
        for name, workflow in family.workflows.items()
    }


def workflows_of(
    families: Families, scheduled: Sequence[type[Any]] = (Maintenance, Retention, ScheduleFire)
) -> list[type[Any]]:
    """The workflow classes of families, and the classes of workflows that schedules start."""
    of_families = [
        workflow
        for family in families
        for workflow in (*family.workflows.values(), *family.children)
    ]
    return [*of_families, *scheduled]


def tables_of(families: Families) -> Mapping[Family, WorkTable]:
    """The table of the rows of each name."""
    return {name: family.kind for family in families for name in family.workflows}


ROUTES = routes_of(FAMILIES)
WORKFLOWS = workflows_of(FAMILIES)
PINNED = frozenset(
    workflow.__name__
    for workflow in workflows_of([family for family in FAMILIES if family.pinned], ())
)
"""The types whose executions stay with the build of the workers that began them."""


@dataclass(frozen=True, slots=True)
class Registrations:
    """The activities of each queue, and the families of work that they execute."""

    activities: Activities
    families: Sequence[WorkFamily[Any]]


def registrations_of(parts: Parts, families: Families = FAMILIES) -> Registrations:
    """The registrations of the workers of a process, sharing what they keep in memory."""
    work = [family.of(parts) for family in families]
    every = [*(family.activities(parts) for family in work), _common(parts, families)]
    every.append({Queue.AUTOMATION: _sweeps(parts, work)})
    by_queue = {queue: [one for each in every for one in each.get(queue, ())] for queue in Queue}
    by_queue[Queue.IO_OVERFLOW] = by_queue[Queue.IO]
    # Workers make the calls of their own workflows (cli/near_calls.py).
    by_queue[Queue.AUTOMATION] += by_queue[Queue.IO]
    return Registrations(by_queue, work)


def _common(parts: Parts, families: Families) -> Activities:
    """The activities of every family, of schedules, and of retention."""
    retention = RetentionActivities(parts.database, parts.store, parts.periods)
    return {
        Queue.AUTOMATION: [
            EndingActivities(parts.database, tables_of(families)).read_end,
            *CalledRunActivities(parts.database).all(),
            ScheduleFires(parts.database).accept,
        ],
        Queue.BULK: [retention.purge, retention.remove_orphans],
    }


def _sweeps(parts: Parts, families: Sequence[WorkFamily[Any]]) -> list[Callable[..., Any]]:
    """Sweeps that make rows and Temporal agree again, and keep totals near the present."""
    schedules = Schedules(parts.database, parts.client, SCHEDULED)
    return [
        Reconciler(parts.database, parts.client, families).reconcile,
        ScheduleMaintenance(parts.database, parts.client, schedules).reconcile_schedules,
        UsageMaintenance(parts.database, parts.counted_attributes).settle_usage,
    ]
