"""Handlers of runs: of automations, of actions, and operations over runs."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Protocol

import sqlalchemy as sa
from temporalio.client import WorkflowExecutionStatus
from typing_extensions import override

from activities.action_runs.steps import ActionSteps
from activities.action_runs.transactions import ActionNodeActivities, ActionRunActivities
from activities.automation_runs.loops import LoopActivities
from activities.automation_runs.outside_nodes import OutsideNodes
from activities.automation_runs.transactions import AutomationRunActivities
from activities.automation_runs.waits import WaitActivities
from activities.maintenance import work_handlers
from activities.maintenance.reconciler import resend_signals
from activities.parts import Parts
from activities.run_operations import RunOperationActivities
from models.automation.action_runs.execution import NODE_ENDED, abandon
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.store import start_request
from models.automation.action_runs.tables import ACTION_RUNS, action_run
from models.automation.automation_runs import calls, execution, slots
from models.automation.automation_runs.open_runs import cancel_runs
from models.automation.automation_runs.rules import OPEN_NODE, OPEN_RUN, RunStatus
from models.automation.automation_runs.tables import AUTOMATION_RUNS, automation_run, node_run
from models.automation.run_operations import commands as run_operation_commands
from models.automation.run_operations.queries import RUN_OPERATIONS
from models.automation.run_operations.rules import OperationRow, OperationStatus
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from runtime.database import UnitOfWork
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from workflows.action_runs import ActionRun
from workflows.automation_runs.automation_run import AutomationRun, LoopChunk
from workflows.run_operations import RunOperation

_ENDS = {
    work_handlers.EndKind.CANCELLED: RunStatus.CANCELLED,
    work_handlers.EndKind.FAILED: RunStatus.FAILED,
    work_handlers.EndKind.TIMED_OUT: RunStatus.TIMED_OUT,
}

_UNAWAITED = "The run that waited for it has ended."

_run = automation_run.c
_caller = automation_run.alias("caller")
_NO_LONGER_AWAITED = sa.exists().where(
    _caller.c.id == _run.parent_run_id, _caller.c.status.not_in(OPEN_RUN)
)
_ACTION_ENDED = sa.exists().where(
    action_run.c.id == _run.parent_run_id, action_run.c.status != ActionRunStatus.STARTED
)
_IN_LINE = sa.and_(_run.admitted_at.is_(None), _run.parent_run_id.is_(None))
"""Runs that have no execution yet because they wait for a slot."""


class AutomationRunRow(work_handlers.WorkRow, Protocol):
    """A run, and whether the callers that wait for it still do."""

    parent_run_id: Id | None
    admitted_at: datetime | None
    no_longer_awaited: bool
    action_ended: bool


class AutomationRuns(work_handlers.WorkHandler[AutomationRunRow]):
    """Runs of automations."""

    name, kind, row = "automation_runs", AUTOMATION_RUNS, AutomationRunRow
    workflows: ClassVar = {WorkflowKind.AUTOMATION_RUN: AutomationRun}
    children = (LoopChunk,)
    pinned = True

    @override
    def activities(self, parts: Parts) -> work_handlers.Activities:
        database, runs = parts.database, parts.runs
        transactions = AutomationRunActivities(
            database, runs, parts.writes, parts.starts, parts.run_limit
        )
        return {
            Queue.AUTOMATION: [
                *transactions.all(),
                *LoopActivities(database, runs).all(),
                *WaitActivities(database, runs).all(),
                *ActionNodeActivities(database, runs).all(),
            ],
            Queue.IO: OutsideNodes(database, runs, parts.effects).all(),
        }

    @override
    def rows(self) -> sa.Select[Any]:
        return sa.select(
            _run.id,
            _run.workspace_id,
            _run.status,
            _run.parent_run_id,
            _run.admitted_at,
            _NO_LONGER_AWAITED.label("no_longer_awaited"),
            _ACTION_ENDED.label("action_ended"),
        ).where(~_IN_LINE)

    @override
    def abandoned(self, row: AutomationRunRow) -> str | None:
        return _UNAWAITED if row.no_longer_awaited else None

    @override
    def judge(
        self, row: AutomationRunRow, latest: work_handlers.Execution | None
    ) -> work_handlers.Verdict:
        queued = row.status == RunStatus.QUEUED
        if latest is None and row.parent_run_id is not None:
            if not row.action_ended:
                # The caller that waits for a run starts it, while the caller is open itself.
                return work_handlers.Verdict.LEAVE
            return work_handlers.Verdict.CLOSE if queued else work_handlers.Verdict.RESTART
        if latest is not None and latest.sleeps and queued and row.admitted_at is not None:
            # It has not heard that it got a slot.
            return work_handlers.Verdict.RESTART
        return super().judge(row, latest)

    @override
    async def restart(
        self, work: UnitOfWork, row: AutomationRunRow, latest: work_handlers.Execution | None
    ) -> None:
        is_asleep = latest is not None and latest.sleeps
        if row.status == RunStatus.QUEUED and (latest is None or is_asleep):
            await slots.append_starts(work, [row.id], is_asleep=is_asleep)
        else:
            # The rows of earlier executions would show the run as waiting in places that no longer
            # exist.
            await calls.forget_executions(work, row.id)
            await slots.append_restart(work, row.id, work_handlers.next_restart(latest))

    @override
    async def close(
        self,
        context: work_handlers.SweepContext,
        row: AutomationRunRow,
        end: work_handlers.AbnormalEnd,
    ) -> bool:
        async with context.database.transaction() as work:
            if row.no_longer_awaited or (row.action_ended and row.status == RunStatus.QUEUED):
                runs = [row.id]
                return bool(await cancel_runs(work, row.workspace_id, runs, error=_UNAWAITED))
            return await execution.abandon(work, row.id, _ENDS[end.kind], end.reason)

    @override
    def extras(self, context: work_handlers.SweepContext) -> Mapping[str, work_handlers.Extra]:
        return {
            "admitted": partial(_admit, context),
            "refused": partial(_break_deadlocks, context),
            "resent": partial(resend_signals, context),
        }


async def _admit(context: work_handlers.SweepContext) -> int:
    """Give free slots to runs that wait for one; returns the number of runs started.

    Every end hands its slot on, so there is something to do only after a limit was raised, or
    a row was changed by hand.
    """
    admitted = 0
    async with context.database.transaction() as work:
        in_line = await work.rows(
            sa.select(_run.automation_id, _run.concurrency_key)
            .where(
                _run.status.in_(OPEN_RUN),
                _run.admitted_at.is_(None),
                _run.concurrency_key.is_not(None),
            )
            .distinct()
            .order_by(_run.automation_id, _run.concurrency_key)
        )
    for line in in_line:
        async with context.database.transaction() as work:
            # The end of a run hands its slot on under the same lock: neither may give one twice.
            await slots.lock(work, line.automation_id, line.concurrency_key)
            admitted += len(await slots.hand_on(work, line.automation_id, line.concurrency_key))
    return admitted


async def _break_deadlocks(context: work_handlers.SweepContext) -> int:
    """Refuse runs that would wait for their own callers for ever. Gives their number."""
    # A snapshot, because rows that change between two reads could look like a circle.
    async with context.database.snapshot() as work:
        deadlocked = await calls.find_deadlocked(work)
    refused = 0
    for run in deadlocked:
        async with context.database.transaction() as work:
            refused += await calls.refuse_deadlocked(work, run)
    return refused


_RUN = automation_run.c.id == action_run.c.automation_run_id
_NODE = sa.and_(
    node_run.c.run_id == action_run.c.automation_run_id,
    node_run.c.node_id == action_run.c.node_id,
    node_run.c.scope_key == action_run.c.scope_key,
)


class ActionRunRow(work_handlers.WorkRow, Protocol):
    """A run, and the states of the automation run and of the node that requested it."""

    action_id: Id
    automation_run_id: Id | None
    run_status: str | None
    node_status: str | None


class ActionRuns(work_handlers.WorkHandler[ActionRunRow]):
    """Runs of actions, requested by a person or by a node of an automation run."""

    name, kind, row = "action_runs", ACTION_RUNS, ActionRunRow
    workflows: ClassVar = {WorkflowKind.ACTION_RUN: ActionRun}
    pinned = True

    @override
    def activities(self, parts: Parts) -> work_handlers.Activities:
        steps = ActionSteps(parts.database, parts.writes, parts.effects)
        runs = ActionRunActivities(parts.database, steps)
        return {Queue.AUTOMATION: runs.all(), Queue.IO: [runs.step]}

    @override
    def rows(self) -> sa.Select[Any]:
        run = action_run.c
        return sa.select(
            run.id,
            run.workspace_id,
            run.action_id,
            run.status,
            run.automation_run_id,
            automation_run.c.status.label("run_status"),
            node_run.c.status.label("node_status"),
        ).select_from(action_run.outerjoin(automation_run, _RUN).outerjoin(node_run, _NODE))

    @override
    def abandoned(self, row: ActionRunRow) -> str | None:
        if row.automation_run_id is None:
            return None
        awaited = row.run_status in OPEN_RUN and row.node_status in OPEN_NODE
        return None if awaited else NODE_ENDED

    @override
    def judge(
        self, row: ActionRunRow, latest: work_handlers.Execution | None
    ) -> work_handlers.Verdict:
        timed_out = latest is not None and latest.status is WorkflowExecutionStatus.TIMED_OUT
        if row.automation_run_id is not None and (latest is None or timed_out):
            # The run of the node starts it and sets its time, as long as it is open itself.
            return work_handlers.Verdict.LEAVE
        return super().judge(row, latest)

    @override
    async def restart(
        self, work: UnitOfWork, row: ActionRunRow, latest: work_handlers.Execution | None
    ) -> None:
        request = start_request(row.action_id, "Restarted by the reconciler")
        await lifecycle.start(
            work,
            WorkflowKind.ACTION_RUN,
            row.workspace_id,
            row.id,
            request,
            work_handlers.next_restart(latest),
        )

    @override
    async def close(
        self, context: work_handlers.SweepContext, row: ActionRunRow, end: work_handlers.AbnormalEnd
    ) -> bool:
        cancelled = end.kind is work_handlers.EndKind.CANCELLED
        status = ActionRunStatus.CANCELLED if cancelled else ActionRunStatus.FAILED
        async with context.database.transaction() as work:
            return await abandon(work, row.workspace_id, row.id, status, end.reason)


class RunOperations(work_handlers.WorkHandler[OperationRow]):
    """Operations, whose executions end while they are paused."""

    name, kind, row = "run_operations", RUN_OPERATIONS, OperationRow
    workflows: ClassVar = {WorkflowKind.RUN_OPERATION: RunOperation}

    @override
    def activities(self, parts: Parts) -> work_handlers.Activities:
        transactions = RunOperationActivities(parts.database)
        return {Queue.BULK: [transactions.advance, transactions.end]}

    @override
    def workflow_id(self, row: OperationRow) -> str:
        return run_operation_commands.operation_workflow_id(row)

    @override
    async def restart(
        self, work: UnitOfWork, row: OperationRow, latest: work_handlers.Execution | None
    ) -> None:
        await run_operation_commands.start_execution(work, row, work_handlers.next_restart(latest))

    @override
    async def close(
        self, context: work_handlers.SweepContext, row: OperationRow, end: work_handlers.AbnormalEnd
    ) -> bool:
        cancelled = end.kind is work_handlers.EndKind.CANCELLED
        status = OperationStatus.CANCELLED if cancelled else OperationStatus.FAILED
        async with context.database.transaction() as work:
            return await run_operation_commands.end_operation(work, row, status, end.reason)
