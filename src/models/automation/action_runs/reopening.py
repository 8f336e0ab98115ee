"""A step of an action run that has ended, put back to before it began (to be rolled back)."""

from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import and_, select

from models.automation.action_runs.rules import ActionRunStatus, StepStatus
from models.automation.action_runs.tables import action_run, action_step
from models.automation.automation_runs.reopening import reopen_run
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.rehearsal import replace_rows

_step = action_step.c
_UNDONE = {"result": None, "error": None, "error_code": None, "completed_at": None}


class RecordedStep(Protocol):
    """A step of a run, and its end as far as it has one."""

    run_id: Id
    workspace_id: Id
    step_id: str
    position: int
    kind: str
    status: str
    attempt: int
    result: JsonObject | None
    error: str | None
    error_code: str | None


async def recorded_steps(work: UnitOfWork, run_id: Id) -> Sequence[RecordedStep]:
    """The steps of a run in their order; none where there is no such run."""
    steps = select(action_step).where(_step.run_id == run_id).order_by(_step.position)
    return await work.rows(steps, of=RecordedStep)


async def reopen_step(work: UnitOfWork, step: RecordedStep) -> None:
    """Open a step, what follows it, its run and the run whose node asked for it."""
    this_run = action_run.c.id == step.run_id
    asking = await work.scalar(select(action_run.c.automation_run_id).where(this_run))
    if asking is not None:
        await reopen_run(work, asking)
    started = ActionRunStatus.STARTED.value
    await replace_rows(work, action_run, this_run, status=started, **_UNDONE)
    await replace_rows(
        work,
        action_step,
        and_(_step.run_id == step.run_id, _step.position >= step.position),
        status=StepStatus.PENDING.value,
        attempt=0,
        started_at=None,
        **_UNDONE,
    )
