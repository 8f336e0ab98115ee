"""Which workflow executes which family, where its tasks queue, and what workers register."""

from collections.abc import Mapping
from typing import Any

from activities.deliveries import Route
from runtime.families import Family, Queue
from workflows.action_run import ActionRun
from workflows.automation_run import AutomationRun
from workflows.job import JOB_WORKFLOWS
from workflows.loop_chunk import LoopChunk
from workflows.maintenance import Maintenance
from workflows.retention import Retention
from workflows.schedule_fire import ScheduleFire

ROUTES: Mapping[Family, Route] = {
    Family.AUTOMATION_RUN: Route("AutomationRun", Queue.AUTOMATION),
    Family.ACTION_RUN: Route("ActionRun", Queue.AUTOMATION),
    **{family: Route(made.__name__, Queue.AUTOMATION) for family, made in JOB_WORKFLOWS.items()},
}
"""Families that start through the outbox."""

SCHEDULED = Route(ScheduleFire.__name__, Queue.AUTOMATION)
"""What the schedule of an automation starts."""

WORKFLOWS: list[type[Any]] = [
    ActionRun,
    AutomationRun,
    LoopChunk,
    Maintenance,
    Retention,
    ScheduleFire,
    *JOB_WORKFLOWS.values(),
]
