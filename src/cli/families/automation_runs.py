"""Runs of automations, as a family of work: with slots, callers, deadlocks and lost signals."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Protocol

from sqlalchemy import Select, and_, exists, select
from typing_extensions import override

from activities.action_runs.nodes import ActionNodeActivities
from activities.automation_runs.loops import LoopActivities
from activities.automation_runs.outside_nodes import OutsideNodes
from activities.automation_runs.transactions import AutomationRunActivities
from activities.automation_runs.waits import WaitActivities
from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    Activities,
    EndKind,
    Extra,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.maintenance.lost_signals import resend_signals
from activities.parts import Parts
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.tables import action_run
from models.automation.automation_runs import deadlocks, execution, slots, suspension
from models.automation.automation_runs.cancellation import cancel_runs
from models.automation.automation_runs.lifecycle import AUTOMATION_RUNS
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.start_intents import append_restart, append_starts
from models.automation.automation_runs.tables import automation_run
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.families import Family, Queue
from workflows.automation_runs.automation_run import AutomationRun
from workflows.automation_runs.loop_chunk import LoopChunk

_ENDS = {
    EndKind.CANCELLED: RunStatus.CANCELLED,
    EndKind.FAILED: RunStatus.FAILED,
    EndKind.TIMED_OUT: RunStatus.TIMED_OUT,
}

_UNAWAITED = "The run that waited for it has ended."

_run = automation_run.c
_caller = automation_run.alias("caller")
_NO_LONGER_AWAITED = exists().where(
    _caller.c.id == _run.parent_run_id, _caller.c.status.not_in(OPEN_RUN)
)
_ACTION_ENDED = exists().where(
    action_run.c.id == _run.parent_run_id, action_run.c.status != ActionRunStatus.STARTED
)
_IN_LINE = and_(_run.admitted_at.is_(None), _run.parent_run_id.is_(None))
"""Runs that have no execution yet because they wait for a slot."""


class RunRow(WorkRow, Protocol):
    """A run, and whether the callers that wait for it still do."""

    parent_run_id: Id | None
    admitted_at: datetime | None
    no_longer_awaited: bool
    action_ended: bool


class AutomationRuns(WorkFamily[RunRow]):
    """Runs of automations."""

    name, kind, row = "automation_runs", AUTOMATION_RUNS, RunRow
    workflows: ClassVar = {Family.AUTOMATION_RUN: AutomationRun}
    children = (LoopChunk,)
    pinned = True

    @override
    def activities(self, parts: Parts) -> Activities:
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
    def rows(self) -> Select[Any]:
        return select(
            _run.id,
            _run.workspace_id,
            _run.status,
            _run.parent_run_id,
            _run.admitted_at,
            _NO_LONGER_AWAITED.label("no_longer_awaited"),
            _ACTION_ENDED.label("action_ended"),
        ).where(~_IN_LINE)

    @override
    def abandoned(self, row: RunRow) -> str | None:
        return _UNAWAITED if row.no_longer_awaited else None

    @override
    def judge(self, row: RunRow, latest: Execution | None) -> Verdict:
        queued = row.status == RunStatus.QUEUED
        if latest is None and row.parent_run_id is not None:
            if not row.action_ended:
                # Who waits for a run starts it, as long as it is open itself.
                return Verdict.LEAVE
            return Verdict.CLOSE if queued else Verdict.RESTART
        if latest is not None and latest.sleeps and queued and row.admitted_at is not None:
            # It has not heard that it got a slot.
            return Verdict.RESTART
        return super().judge(row, latest)

    @override
    async def restart(self, work: UnitOfWork, row: RunRow, latest: Execution | None) -> None:
        if row.status == RunStatus.QUEUED and (latest is None or latest.sleeps):
            await append_starts(work, [row.id])
        else:
            await suspension.forget(work, row.id)
            await append_restart(work, row.id, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: RunRow, end: AbnormalEnd) -> bool:
        async with context.database.transaction() as work:
            if row.no_longer_awaited or (row.action_ended and row.status == RunStatus.QUEUED):
                runs = [row.id]
                return bool(await cancel_runs(work, row.workspace_id, runs, error=_UNAWAITED))
            return await execution.abandon(work, row.id, _ENDS[end.kind], end.reason)

    @override
    def extras(self, context: SweepContext) -> Mapping[str, Extra]:
        return {
            "admitted": partial(_admit, context),
            "refused": partial(_break_deadlocks, context),
            "resent": partial(resend_signals, context),
        }


async def _admit(context: SweepContext) -> int:
    """Give free slots to runs that wait for one; how many got one.

    Every end hands its slot on, so there is something to do only after a limit was raised, or
    a row was changed by hand.
    """
    admitted = 0
    async with context.database.transaction() as work:
        in_line = await work.rows(
            select(_run.automation_id, _run.concurrency_key)
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
            await slots.lock(work, line.automation_id, line.concurrency_key)
            admitted += len(await slots.hand_on(work, line.automation_id, line.concurrency_key))
    return admitted


async def _break_deadlocks(context: SweepContext) -> int:
    """Refuse runs that would wait for their own callers for ever. Gives their number."""
    async with context.database.snapshot() as work:
        deadlocked = await deadlocks.find(work)
    refused = 0
    for run in deadlocked:
        async with context.database.transaction() as work:
            refused += await deadlocks.refuse(work, run)
    return refused
