"""The workflow and queue of each family of executions, and the classes that workers register."""

from collections.abc import Mapping
from typing import Any

from activities.outbox.deliveries import Route
from runtime.families import Family, Queue
from workflows.action_runs.action_run import ActionRun
from workflows.automation_runs.automation_run import AutomationRun
from workflows.automation_runs.loop_chunk import LoopChunk
from workflows.data_source_runs.data_source_refresh import DataSourceRefresh
from workflows.data_source_runs.spreadsheet_import import SpreadsheetImport
from workflows.deliveries.delivery import Delivery
from workflows.jobs.job import JOB_WORKFLOWS
from workflows.legacy_imports.import_workspace import ImportWorkspace
from workflows.legacy_imports.legacy_import import LegacyImport
from workflows.maintenance.maintenance import Maintenance
from workflows.maintenance.retention import Retention
from workflows.schedules.schedule_fire import ScheduleFire
from workflows.time_entries.timer_due import TimerDue

ROUTES: Mapping[Family, Route] = {
    Family.AUTOMATION_RUN: Route("AutomationRun", Queue.AUTOMATION),
    Family.ACTION_RUN: Route("ActionRun", Queue.AUTOMATION),
    Family.DATA_SOURCE_REFRESH: Route(DataSourceRefresh.__name__, Queue.AUTOMATION),
    Family.SPREADSHEET_IMPORT: Route(SpreadsheetImport.__name__, Queue.AUTOMATION),
    Family.DELIVERY: Route(Delivery.__name__, Queue.AUTOMATION),
    Family.LEGACY_IMPORT: Route(LegacyImport.__name__, Queue.AUTOMATION),
    Family.TIMER_DUE: Route(TimerDue.__name__, Queue.AUTOMATION),
    **{family: Route(made.__name__, Queue.AUTOMATION) for family, made in JOB_WORKFLOWS.items()},
}
"""Families that start through the outbox."""

SCHEDULED = Route(ScheduleFire.__name__, Queue.AUTOMATION)
"""The workflow that every schedule starts."""

WORKFLOWS: list[type[Any]] = [
    ActionRun,
    AutomationRun,
    DataSourceRefresh,
    Delivery,
    ImportWorkspace,
    LegacyImport,
    LoopChunk,
    Maintenance,
    Retention,
    ScheduleFire,
    SpreadsheetImport,
    TimerDue,
    *JOB_WORKFLOWS.values(),
]
