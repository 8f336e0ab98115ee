"""Action runs: accepted with their start, cancelled, and read; every query names the workspace."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field, WithJsonSchema

from models.automation.action_runs import rules
from models.automation.action_runs.execution import abandon, hold_caller
from models.automation.action_runs.tables import (
    ACTION_RUNS,
    ActionRun,
    ActionStep,
    action_run,
    action_step,
)
from models.automation.actions import rules as action_rules
from models.automation.actions.store import ActionRow, find_action
from models.core.access.rules import Actor
from models.core.base import Id, Input, JsonObject, Moment, Shape
from models.core.lifecycle import commands as lifecycle
from models.core.lifecycle.lost_workers import waiting_for_worker_since
from models.core.openapi import ID, MOMENT, TEMPORAL, TEXT, object_of
from models.core.pagination import Page, PageRequest
from models.core.pauses.store import WAITING_FOR
from models.sources.outbound_limits.queries import waits_of
from models.sources.outbound_limits.turns import leave_lines
from runtime.clock import utc_now, wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.temporal.outbox import AWAITED, StartRequest
from runtime.temporal.workflow_kinds import WorkflowKind


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
    kind: action_rules.ActionKind
    status: rules.StepStatus
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
    status: rules.ActionRunStatus
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
    return run if last or not rules.RUN_TRANSITIONS[rules.ActionRunStatus(run.status)] else None


async def list_runs(
    work: UnitOfWork, actor: Actor, action_id: Id, page: PageRequest
) -> Page[ActionRunDetail]:
    """The runs of an action, newest first."""
    runs, columns = _runs(actor.workspace_id, action_id), action_run.c
    shown = await page.descending(work, runs, columns.started_at, columns.id, of=ActionRun)
    steps = await _steps_of(work, actor.workspace_id, [row.id for row in shown.items])
    return Page([_detail(row, steps[row.id]) for row in shown.items], shown.cursor)


def _runs(workspace_id: Id, action_id: Id) -> sa.Select[Any]:
    return sa.select(action_run).where(
        action_run.c.workspace_id == workspace_id, action_run.c.action_id == action_id
    )


async def _steps_of(
    work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]
) -> dict[Id, list[ActionStep]]:
    rows = await work.rows(
        sa.select(action_step)
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
    own = {"temporalWorkflowId": WorkflowKind.ACTION_RUN.workflow_id(row.id)}
    if row.automation_run_id is None:
        return own
    return {
        **own,
        "automationRunId": str(row.automation_run_id),
        "nodeId": row.node_id,
        "scopeKey": row.scope_key,
    }


async def run_action(
    work: UnitOfWork, actor: Actor, action_id: Id, run_id: Id, body: RunAction
) -> None:
    """Accept a run. Raises `NotFoundError`, and `ValidationError` for a disabled action."""
    action = await runnable_action(work, actor.workspace_id, action_id)
    await accept(work, actor, action, ActionRequest(run_id, body.input))


async def cancel_run(work: UnitOfWork, actor: Actor, action_id: Id, run_id: Id) -> ActionRunDetail:
    """Make an open run cancelled for ever; a finished one is returned unchanged.

    The row's lock makes this final: a step starts before it or not at all. What a step has called
    by then may still end, and is not shown.
    """
    await hold_caller(work, actor.workspace_id, run_id)
    await load_run(work, actor.workspace_id, action_id, run_id, lock=True)
    # Waiting for the lock takes time: no step that started meanwhile may seem to start after this.
    work.now = utc_now()
    if await abandon(work, actor.workspace_id, run_id, rules.ActionRunStatus.CANCELLED):
        await lifecycle.cancel_executions(
            work, WorkflowKind.ACTION_RUN, actor.workspace_id, [run_id]
        )
        await leave_lines(work, actor.workspace_id, [run_id])
    return await get_run(work, actor, action_id, run_id)


DISABLED = "The action is disabled. Enable it first."


@dataclass(frozen=True, slots=True)
class AskingNode:
    """The node of an automation run that asks for a run, and starts and awaits it."""

    run_id: Id
    node_id: str
    scope_key: str
    chain: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """A run about to be accepted."""

    run_id: Id
    input: JsonObject = field(default_factory=dict)
    node: AskingNode | None = None


async def runnable_action(work: UnitOfWork, workspace_id: Id, action_id: Id) -> ActionRow:
    """The row of an action that can be run. Raises `NotFoundError`, `ValidationError`."""
    found = await find_action(work, workspace_id, action_id)
    if not found.enabled:
        raise ValidationError(DISABLED)
    return found


async def accept(work: UnitOfWork, actor: Actor, action: ActionRow, request: ActionRequest) -> bool:
    """Accept a run of an action (a row of `runnable_action`) with its pending steps.

    False when a run of this id was accepted before; then nothing is written.
    """
    node = request.node
    run = {
        "id": request.run_id,
        "workspace_id": actor.workspace_id,
        "action_id": action.id,
        "kind": action.kind,
        "config": action.config,
        "input": request.input,
        "automation_run_id": None if node is None else node.run_id,
        "node_id": None if node is None else node.node_id,
        "scope_key": None if node is None else node.scope_key,
        "chain": [] if node is None else list(node.chain),
        "created_by_user_id": actor.person,
    }
    if not await lifecycle.accept(work, ACTION_RUNS, run):
        return False
    await work.execute(sa.insert(action_step), _steps(actor.workspace_id, action, request.run_id))
    if node is None:
        await lifecycle.require_place(work, actor, ACTION_RUNS, WorkflowKind.ACTION_RUN)
        summary = summary_of(action)
        start = start_request(action.id, summary)
        await lifecycle.start(
            work, WorkflowKind.ACTION_RUN, actor.workspace_id, request.run_id, start
        )
    return True


def summary_of(action: ActionRow) -> str:
    """The text an operator reads on a run of an action (its row) in the Temporal UI."""
    tail = f" · {action.kind}"
    room = 200 - len(tail.encode())
    return action.label.encode()[:room].decode(errors="ignore") + tail


def _steps(workspace_id: Id, action: ActionRow, run_id: Id) -> list[JsonObject]:
    return [
        {
            "run_id": run_id,
            "step_id": step.id,
            "workspace_id": workspace_id,
            "position": position,
            "kind": step.kind.value,
            "status": rules.StepStatus.PENDING.value,
            "attempt": 0,
        }
        for position, step in enumerate(
            rules.plan_of(action_rules.ActionKind(action.kind), action.config)
        )
    ]


def start_request(action_id: Id, summary: str) -> StartRequest:
    """The facts of a run that Temporal gets at its start, and operators see."""
    return {
        "summary": summary,
        "resourceId": str(action_id),
        "source": "action",
        "weight": AWAITED,
    }
