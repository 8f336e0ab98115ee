"""Runs of actions, as a family of work: a run that a node asked for ends with its node."""

from typing import Any, ClassVar, Protocol

from sqlalchemy import Select, and_, select
from temporalio.client import WorkflowExecutionStatus
from typing_extensions import override

from activities.action_runs.steps import ActionSteps
from activities.action_runs.transactions import ActionRunActivities
from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    Activities,
    EndKind,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.parts import Parts
from models.automation.action_runs.acceptance import start_request
from models.automation.action_runs.closing import NODE_ENDED
from models.automation.action_runs.execution import abandon
from models.automation.action_runs.lifecycle import ACTION_RUNS
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.tables import action_run
from models.automation.automation_runs.rules import OPEN_NODE, OPEN_RUN
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from runtime.database import UnitOfWork
from runtime.families import Family, Queue
from workflows.action_runs.action_run import ActionRun

_RUN = automation_run.c.id == action_run.c.automation_run_id
_NODE = and_(
    node_run.c.run_id == action_run.c.automation_run_id,
    node_run.c.node_id == action_run.c.node_id,
    node_run.c.scope_key == action_run.c.scope_key,
)


class RunRow(WorkRow, Protocol):
    """A run, and the states of the automation run and of the node that asked for it."""

    action_id: Id
    automation_run_id: Id | None
    run_status: str | None
    node_status: str | None


class ActionRuns(WorkFamily[RunRow]):
    """Runs of actions, asked for by a person or by a node of an automation run."""

    name, kind, row = "action_runs", ACTION_RUNS, RunRow
    workflows: ClassVar = {Family.ACTION_RUN: ActionRun}
    pinned = True

    @override
    def activities(self, parts: Parts) -> Activities:
        steps = ActionSteps(parts.database, parts.writes, parts.effects)
        runs = ActionRunActivities(parts.database, steps)
        return {Queue.AUTOMATION: runs.all(), Queue.IO: [runs.step]}

    @override
    def rows(self) -> Select[Any]:
        run = action_run.c
        return select(
            run.id,
            run.workspace_id,
            run.action_id,
            run.status,
            run.automation_run_id,
            automation_run.c.status.label("run_status"),
            node_run.c.status.label("node_status"),
        ).select_from(action_run.outerjoin(automation_run, _RUN).outerjoin(node_run, _NODE))

    @override
    def abandoned(self, row: RunRow) -> str | None:
        if row.automation_run_id is None:
            return None
        awaited = row.run_status in OPEN_RUN and row.node_status in OPEN_NODE
        return None if awaited else NODE_ENDED

    @override
    def judge(self, row: RunRow, latest: Execution | None) -> Verdict:
        timed_out = latest is not None and latest.status is WorkflowExecutionStatus.TIMED_OUT
        if row.automation_run_id is not None and (latest is None or timed_out):
            # The run of the node starts it and sets its time, as long as it is open itself.
            return Verdict.LEAVE
        return super().judge(row, latest)

    @override
    async def restart(self, work: UnitOfWork, row: RunRow, latest: Execution | None) -> None:
        request = start_request(row.action_id, "Restarted by the reconciler")
        await lifecycle.start(
            work, Family.ACTION_RUN, row.workspace_id, row.id, request, next_restart(latest)
        )

    @override
    async def close(self, context: SweepContext, row: RunRow, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
        status = ActionRunStatus.CANCELLED if cancelled else ActionRunStatus.FAILED
        async with context.database.transaction() as work:
            return await abandon(work, row.workspace_id, row.id, status, end.reason)
