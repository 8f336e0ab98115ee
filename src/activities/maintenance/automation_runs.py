"""Automation runs for the reconciler: slots, callers, deadlocks and lost signals too."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Select, and_, exists, select
from temporalio import activity
from typing_extensions import override

from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    EndKind,
    Extra,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.maintenance.lost_signals import resend_signals
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.tables import action_run
from models.automation.automation_runs import deadlocks, execution, slots, suspension
from models.automation.automation_runs.cancellation import cancel_runs
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.start_intents import append_restart, append_starts
from models.automation.automation_runs.tables import AUTOMATION_RUNS, automation_run
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.families import Family

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

    def __init__(self) -> None:
        super().__init__("automation_runs", AUTOMATION_RUNS, RunRow, Family.AUTOMATION_RUN)

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
    def workflow_id(self, row: RunRow) -> str:
        return Family.AUTOMATION_RUN.workflow_id(row.id)

    @override
    def abandoned(self, row: RunRow) -> str | None:
        return _UNAWAITED if row.no_longer_awaited else None

    @override
    def judge(self, row: RunRow, found: Execution | None) -> Verdict:
        queued = row.status == RunStatus.QUEUED
        if found is None and row.parent_run_id is not None:
            if not row.action_ended:
                # Who waits for a run starts it, as long as it is open itself.
                return Verdict.LEAVE
            return Verdict.CLOSE if queued else Verdict.RESTART
        if found is not None and found.sleeps and queued and row.admitted_at is not None:
            # It has not heard that it got a slot.
            return Verdict.RESTART
        return super().judge(row, found)

    @override
    async def restart(self, work: UnitOfWork, row: RunRow, found: Execution | None) -> None:
        if row.status == RunStatus.QUEUED and (found is None or found.sleeps):
            await append_starts(work, [row.id])
        else:
            await suspension.forget(work, row.id)
            await append_restart(work, row.id, next_restart(found))

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
        activity.heartbeat()
        async with context.database.transaction() as work:
            await slots.lock(work, line.automation_id, line.concurrency_key)
            admitted += len(await slots.hand_on(work, line.automation_id, line.concurrency_key))
    return admitted


async def _break_deadlocks(context: SweepContext) -> int:
    """Refuse runs that would wait for their own callers for ever. Gives their number."""
    async with context.database.snapshot() as work:
        found = await deadlocks.find(work)
    refused = 0
    for run in found:
        activity.heartbeat()
        async with context.database.transaction() as work:
            refused += await deadlocks.refuse(work, run)
    return refused
