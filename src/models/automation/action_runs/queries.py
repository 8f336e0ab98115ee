"""Action runs on the wire, and reading them; every query names the workspace."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema
from sqlalchemy import Select, select

from models.automation.action_runs.rules import RUN_TRANSITIONS, ActionRunStatus, StepStatus
from models.automation.action_runs.tables import ActionRun, ActionStep, action_run, action_step
from models.automation.actions.rules import ActionKind
from models.core.access.rules import Actor
from models.core.base import Id, Input, JsonObject, Moment, Shape
from models.core.lifecycle.lost_workers import waiting_for_worker_since
from models.core.openapi import ID, MOMENT, TEMPORAL, TEXT, object_of
from models.core.pagination import Page, PageRequest
from models.core.pauses.shapes import WAITING_FOR
from models.sources.outbound_limits.queries import waits_of
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.temporal.families import Family


class RunAction(Input):
    """Body of run action.

    `input` is what `trigger` bindings of the action read; with `wait` false the answer is the run
    as it was accepted.
    """

    input: JsonObject = Field(default_factory=dict)
    wait: bool = True


class StepResult(Shape):
    """One step; `index` counts from 0."""

    step_id: str
    index: int
    kind: ActionKind
    status: StepStatus
    attempt: int
    result: JsonObject | None
    error: str | None
    started_at: Moment | None
    completed_at: Moment | None


class ActionRunDetail(Shape):
    """One run; its `result` is that of the last step that succeeded, or of the one that failed."""

    id: Id
    action_id: Id
    workspace_id: Id
    status: ActionRunStatus
    started_at: Moment
    completed_at: Moment | None
    error: str | None
    result: JsonObject | None
    input: JsonObject
    step_results: dict[str, StepResult]
    metadata: Annotated[
        JsonObject,
        WithJsonSchema(
            object_of(
                "temporalWorkflowId",
                temporalWorkflowId=TEXT,
                automationRunId=ID,
                nodeId=TEXT,
                scopeKey=TEXT,
                waitingForWorkerSince=MOMENT,
                waitingFor=WAITING_FOR,
                temporal=TEMPORAL,
            )
        ),
    ]


async def load_run(
    work: UnitOfWork, workspace_id: Id, action_id: Id, run_id: Id, *, lock: bool = False
) -> ActionRun:
    """The row of a run of this action. Raises `NotFoundError`."""
    statement = _runs(workspace_id, action_id).where(action_run.c.id == run_id)
    return await work.one(statement.with_for_update() if lock else statement, "run", of=ActionRun)


async def get_run(work: UnitOfWork, actor: Actor, action_id: Id, run_id: Id) -> ActionRunDetail:
    """A run with its steps. Raises `NotFoundError`."""
    row = await load_run(work, actor.workspace_id, action_id, run_id)
    steps = await _steps_of(work, actor.workspace_id, [run_id])
    detail = _detail(row, steps[run_id])
    if row.completed_at is None:
        since = await waiting_for_worker_since(work, row.started_at)
        if since is not None:
            detail.metadata["waitingForWorkerSince"] = wire_timestamp(since)
        waits = await waits_of(work, actor.workspace_id, [run_id])
        if run_id in waits:
            detail.metadata["waitingFor"] = waits[run_id]
    return detail


async def run_outcome(
    work: UnitOfWork, actor: Actor, action_id: Id, run_id: Id, *, last: bool
) -> ActionRunDetail | None:
    """The run when it has ended or this is the last time to ask, else None."""
    run = await get_run(work, actor, action_id, run_id)
    return run if last or not RUN_TRANSITIONS[ActionRunStatus(run.status)] else None


async def list_runs(
    work: UnitOfWork, actor: Actor, action_id: Id, page: PageRequest
) -> Page[ActionRunDetail]:
    """The runs of an action, newest first."""
    runs, columns = _runs(actor.workspace_id, action_id), action_run.c
    shown = await page.descending(work, runs, columns.started_at, columns.id, of=ActionRun)
    steps = await _steps_of(work, actor.workspace_id, [row.id for row in shown.items])
    return Page([_detail(row, steps[row.id]) for row in shown.items], shown.cursor)


def _runs(workspace_id: Id, action_id: Id) -> Select[Any]:
    return select(action_run).where(
        action_run.c.workspace_id == workspace_id, action_run.c.action_id == action_id
    )


async def _steps_of(
    work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]
) -> dict[Id, list[ActionStep]]:
    rows = await work.rows(
        select(action_step)
        .where(action_step.c.workspace_id == workspace_id, action_step.c.run_id.in_(run_ids))
        .order_by(action_step.c.run_id, action_step.c.position),
        of=ActionStep,
    )
    found: dict[Id, list[ActionStep]] = defaultdict(list)
    for row in rows:
        found[row.run_id].append(row)
    return found


def _detail(row: ActionRun, steps: Sequence[ActionStep]) -> ActionRunDetail:
    return ActionRunDetail(
        id=row.id,
        action_id=row.action_id,
        workspace_id=row.workspace_id,
        status=row.status,
        started_at=row.started_at,
        completed_at=row.completed_at,
        error=row.error,
        result=row.result,
        input=row.input,
        step_results={step.step_id: _step_result(step) for step in steps},
        metadata=_metadata(row),
    )


def _step_result(row: ActionStep) -> StepResult:
    return StepResult(
        step_id=row.step_id,
        index=row.position,
        kind=row.kind,
        status=row.status,
        attempt=row.attempt,
        result=row.result,
        error=row.error,
        started_at=row.started_at,
        completed_at=row.completed_at,
    )


def _metadata(row: ActionRun) -> JsonObject:
    """The execution that carries the run out, and the node that asked for it if one did."""
    own = {"temporalWorkflowId": Family.ACTION_RUN.workflow_id(row.id)}
    if row.automation_run_id is None:
        return own
    return {
        **own,
        "automationRunId": str(row.automation_run_id),
        "nodeId": row.node_id,
        "scopeKey": row.scope_key,
    }
