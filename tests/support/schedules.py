"""Schedules as tests look at them: in Temporal, and in the runs that they make."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from temporalio.client import Client, ScheduleDescription, ScheduleHandle
from temporalio.service import RPCError, RPCStatusCode

from models.automation.automations.shapes import AutomationDetail
from models.automation.automations.tables import automation
from models.core.base import Id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.run_rows import runs_of

Json = dict[str, Any]

SELDOM = "0 0 1 1 *"
"""A schedule that does not fire while a test looks at it."""
QUICK = graph(node("a", "transform", output={"ok": True}))
LONG = graph(node("pause", "delay", seconds=3_600))


def schedule(**config: Any) -> Json:
    """A trigger config."""
    return {"kind": "schedule", **(config or {"cron": SELDOM})}


def schedule_id_of(
    subject_id: Id, workflow_kind: WorkflowKind = WorkflowKind.AUTOMATION_SCHEDULE
) -> str:
    return workflow_kind.workflow_id(subject_id)


def handle_of(
    client: Client, subject_id: Id, workflow_kind: WorkflowKind = WorkflowKind.AUTOMATION_SCHEDULE
) -> ScheduleHandle:
    return client.get_schedule_handle(schedule_id_of(subject_id, workflow_kind))


async def described(
    client: Client, subject_id: Id, workflow_kind: WorkflowKind = WorkflowKind.AUTOMATION_SCHEDULE
) -> ScheduleDescription | None:
    """The schedule of an automation, or of something else, or None."""
    try:
        return await handle_of(client, subject_id, workflow_kind).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


async def until_schedule(
    engine: Engine,
    subject_id: Id,
    condition: Any,
    what: str = "the schedule",
    workflow_kind: WorkflowKind = WorkflowKind.AUTOMATION_SCHEDULE,
) -> ScheduleDescription | None:
    """The schedule, or None, once it satisfies `condition`."""
    found: list[ScheduleDescription | None] = []

    async def holds() -> bool:
        found[:] = [await described(engine.client, subject_id, workflow_kind)]
        return bool(condition(found[0]))

    await eventually(holds, what=what)
    return found[0]


async def scheduled(engine: Engine, content: Json = QUICK, **config: Any) -> AutomationDetail:
    """A published, enabled automation whose schedule is there."""
    made = await engine.publish(content, triggerConfig=schedule(**config))
    await until_schedule(engine, made.id, lambda found: found is not None)
    return made


async def until_runs(engine: Engine, automation_id: Id, *statuses: str) -> Sequence[Any]:
    """The runs of an automation once they have these statuses, oldest first."""
    found: list[Any] = []

    async def holds() -> bool:
        found[:] = await runs_of(engine, automation_id)
        return [run.status for run in found] == list(statuses)

    try:
        await eventually(holds, what=f"runs {statuses}")
    except AssertionError as error:
        raise AssertionError(f"{error}; they are {[run.status for run in found]}") from None
    return found


async def next_run_at(engine: Engine, automation_id: Id) -> datetime | None:
    """What the automation's row says."""
    async with engine.database.transaction() as work:
        found: datetime | None = await work.scalar(
            select(automation.c.next_run_at).where(automation.c.id == automation_id)
        )
    return found


def soon(now: datetime, seconds: int = 3) -> datetime:
    """A whole second that comes soon."""
    return now.replace(microsecond=0) + timedelta(seconds=seconds)
