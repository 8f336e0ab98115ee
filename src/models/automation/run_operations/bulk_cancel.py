"""The cancel of up to 500 runs that is answered with what it did: an operation done at once."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, func, select

from models.automation.automation_runs.joins import RUN
from models.automation.automation_runs.queries import runs_of
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.run_filters import RunFilter
from models.automation.run_operations.commands import record_operation
from models.automation.run_operations.execution import treat_next
from models.automation.run_operations.lifecycle import RUN_OPERATIONS
from models.automation.run_operations.rules import OperationAction, OperationStatus, RunOutcome
from models.automation.run_operations.selection import OLDEST_FIRST, in_reach, select_ids
from models.automation.run_operations.shapes import CancelledRuns, CancelRuns
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from runtime.database import UnitOfWork


async def cancel_several(
    work: UnitOfWork, actor: Actor, operation_id: Id, automation_id: Id, body: CancelRuns
) -> CancelledRuns:
    """Cancel the oldest open runs of an automation that fit, with the runs they wait for; bounded,
    so to be called until nothing remains.
    """
    runs = runs_of(actor.workspace_id, automation_id)
    return await _cancel_fitting(work, actor, operation_id, runs, body)


async def cancel_in_workspace(
    work: UnitOfWork, actor: Actor, operation_id: Id, body: CancelRuns
) -> CancelledRuns:
    """The same for the runs of every automation that the actor may edit; an automation in the trash
    still has the runs that were open.
    """
    runs = in_reach(actor, OperationAction.CANCEL)
    return await _cancel_fitting(work, actor, operation_id, runs, body)


async def _cancel_fitting(
    work: UnitOfWork, actor: Actor, operation_id: Id, runs: Select[Any], body: CancelRuns
) -> CancelledRuns:
    filters = RunFilter(
        status=None if body.status is None else RunStatus(body.status),
        source=body.source,
        until=body.created_before,
    )
    fitting = runs.with_only_columns(RUN.id).where(*filters.conditions(), RUN.status.in_(OPEN_RUN))
    oldest = await work.rows(fitting.order_by(*OLDEST_FIRST).limit(body.limit))
    run_ids: Sequence[Id] = []
    if oldest:
        run_ids = await _cancel_now(work, actor, operation_id, [row.id for row in oldest])
    remaining = await work.scalar(select(func.count()).select_from(fitting.subquery()))
    return CancelledRuns(cancelled=len(run_ids), run_ids=sorted(run_ids), remaining=remaining)


async def _cancel_now(
    work: UnitOfWork, actor: Actor, operation_id: Id, run_ids: Sequence[Id]
) -> Sequence[Id]:
    """Record an operation over these runs and do it; the runs that it cancelled."""
    count = len(run_ids)
    operation = await record_operation(
        work,
        actor,
        operation_id,
        {
            "action": OperationAction.CANCEL,
            "status": OperationStatus.RUNNING,
            "selected": count,
            "total": count,
            "started_at": work.now,
        },
    )
    assert operation is not None, "the id is new"
    await select_ids(work, operation, run_ids)
    treated = await treat_next(work, actor, operation, count)
    await lifecycle.finish(work, RUN_OPERATIONS, [operation_id], OperationStatus.SUCCEEDED)
    return [one.run_id for one in treated if one.outcome is RunOutcome.SUCCEEDED]
