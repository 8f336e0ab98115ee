"""Writing the steps of an action run, behind the gate their caller has passed."""

from typing import Any

from sqlalchemy import func, select, update

from models.automation.action_runs.execution import ActionRunHeader
from models.automation.action_runs.rules import OPEN_STEP, StepStatus
from models.automation.action_runs.tables import action_step
from models.automation.automation_runs.node_writes import ERROR_LIMIT
from models.core.base import Id, JsonObject
from runtime.clock import utc_now
from runtime.database import UnitOfWork


async def load_results(work: UnitOfWork, header: ActionRunHeader) -> dict[str, Any]:
    """The results of the steps that succeeded, by step id: what `node` bindings read."""
    rows = await work.rows(
        select(action_step.c.step_id, action_step.c.result).where(
            action_step.c.workspace_id == header.workspace_id,
            action_step.c.run_id == header.run_id,
            action_step.c.status == StepStatus.SUCCEEDED,
        )
    )
    return {row.step_id: row.result for row in rows}


async def load_statuses(work: UnitOfWork, header: ActionRunHeader) -> dict[str, StepStatus]:
    """The status of each step, by step id."""
    rows = await work.rows(
        select(action_step.c.step_id, action_step.c.status).where(
            action_step.c.workspace_id == header.workspace_id, action_step.c.run_id == header.run_id
        )
    )
    return {row.step_id: StepStatus(row.status) for row in rows}


async def start_step(work: UnitOfWork, run_id: Id, step_id: str, attempt: int) -> None:
    """Show a step as running, before its effect leaves the machine."""
    await _write(work, run_id, step_id, StepStatus.RUNNING, attempt=attempt)


async def complete_step(
    work: UnitOfWork, run_id: Id, step_id: str, result: JsonObject, attempt: int
) -> None:
    """Write a step's success."""
    await _write(work, run_id, step_id, StepStatus.SUCCEEDED, result=result, attempt=attempt)


async def skip_step(work: UnitOfWork, run_id: Id, step_id: str) -> None:
    """Its condition did not hold."""
    await _write(work, run_id, step_id, StepStatus.SKIPPED)


async def fail_step(
    work: UnitOfWork,
    run_id: Id,
    step_id: str,
    *,
    code: str,
    message: str,
    attempt: int,
    result: JsonObject | None = None,
) -> None:
    """Write a step's final failure, and the result that came of it all the same."""
    values = {"error": message[:ERROR_LIMIT], "error_code": code, "result": result}
    await _write(work, run_id, step_id, StepStatus.FAILED, attempt=attempt, **values)


async def _write(
    work: UnitOfWork, run_id: Id, step_id: str, status: StepStatus, **values: object
) -> None:
    if status is not StepStatus.SKIPPED:
        values["started_at"] = func.coalesce(action_step.c.started_at, work.now)
    if status is not StepStatus.RUNNING:
        # Not when the transaction began: the step is what it has done since then.
        values["completed_at"] = utc_now()
    await work.execute(
        update(action_step)
        .where(
            action_step.c.run_id == run_id,
            action_step.c.step_id == step_id,
            action_step.c.status.in_(OPEN_STEP),
        )
        .values(status=status.value, **values)
    )
