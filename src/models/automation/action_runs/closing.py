"""Closing action runs, with the steps they leave open."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import case, select, update

from models.automation.action_runs.lifecycle import ACTION_RUNS
from models.automation.action_runs.rules import OPEN_STEP, ActionRunStatus, StepStatus
from models.automation.action_runs.tables import action_run, action_step
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from runtime.database import UnitOfWork

NODE_ENDED = "The node that asked for it has ended."
"""The reason to close a run that no node waits for any more."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run."""

    status: ActionRunStatus
    result: JsonObject | None = None
    error: str | None = None
    error_code: str | None = None


async def close_runs(work: UnitOfWork, run_ids: Collection[Id], end: Ended) -> bool:
    """Write the end of the open ones among these runs; False when all were closed before."""
    closed_ids = await lifecycle.finish(
        work,
        ACTION_RUNS,
        run_ids,
        end.status,
        result=end.result,
        error=end.error,
        error_code=end.error_code,
    )
    if not closed_ids:
        return False
    step = action_step.c
    never = (step.status == StepStatus.PENDING) & (end.status != ActionRunStatus.CANCELLED)
    await work.execute(
        update(action_step)
        .where(step.run_id.in_(closed_ids), step.status.in_(OPEN_STEP))
        .values(
            status=case((never, StepStatus.SKIPPED.value), else_=StepStatus.CANCELLED.value),
            completed_at=work.now,
        )
    )
    return True


async def cancel_runs_of(
    work: UnitOfWork, workspace_id: Id, automation_run_ids: Collection[Id]
) -> None:
    """Cancel the open runs that nodes of these automation runs, which have ended, asked for."""
    run = action_run.c
    rows = await work.rows(
        select(run.id)
        .where(
            run.workspace_id == workspace_id,
            run.automation_run_id.in_(automation_run_ids),
            run.status == ActionRunStatus.STARTED,
        )
        .order_by(run.id)
        .with_for_update()
    )
    if rows:
        end = Ended(ActionRunStatus.CANCELLED, error=NODE_ENDED)
        await close_runs(work, [row.id for row in rows], end)
