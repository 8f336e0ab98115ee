"""Progress of an action run: its header, gate, steps and end, or a step put back.

Every write of this progress is conditional on the states it may leave, so repeating one is harmless
and a closed run stays as it is (architecture.md#final-statuses).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.automation.action_runs import rules
from models.automation.action_runs.tables import ACTION_RUNS, action_run, action_step
from models.automation.actions.rules import ActionKind
from models.automation.automation_runs import node_writes
from models.automation.automation_runs.open_runs import cancel_runs
from models.automation.automation_runs.queries import RUN, run_of
from models.automation.automation_runs.rules import ACTIVE_RUN, RunClosedError
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.access.rules import ROLE_SCOPES, Actor, Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from runtime.clock import utc_now, wire_timestamp
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.rehearsal import replace_rows


class _OpenRow(Protocol):
    """A run, with the automation whose node asked for it."""

    id: Id
    workspace_id: Id
    action_id: Id
    kind: str
    config: JsonObject
    input: JsonObject
    automation_run_id: Id | None
    node_id: str
    scope_key: str
    automation_id: Id
    chain: list[Id]
    created_by_user_id: Id | None
    started_at: datetime


@dataclass(frozen=True, slots=True)
class ActionRunHeader:
    """The facts of a run that are known from its start and never change."""

    run_id: Id
    workspace_id: Id
    action_id: Id
    steps: tuple[rules.PlannedStep, ...]
    input: JsonObject
    node: node_writes.NodeKey | None
    """The node that asked for it."""
    effect_key: str
    """The prefix of the idempotency keys of its effects."""
    chain: tuple[Id, ...]
    """The automation runs that led to this one, oldest first."""
    actor: Actor
    started_at: datetime

    @property
    def variable(self) -> JsonObject:
        """The `run` variable of bindings and expressions (interface.md#bindings)."""
        return {
            "id": str(self.run_id),
            "startedAt": wire_timestamp(self.started_at),
            "source": "action",
            "workspaceId": str(self.workspace_id),
        }

    def step(self, step_id: str) -> rules.PlannedStep:
        return next(step for step in self.steps if step.id == step_id)


@dataclass(frozen=True, slots=True)
class StepRow:
    """The state that the row of a step has already."""

    status: rules.StepStatus
    attempt: int
    started_at: datetime | None


async def load_header(work: UnitOfWork, run_id: Id) -> ActionRunHeader:
    """The header of an open run. Raises RunClosedError."""
    row = await work.first(
        sa.select(action_run, RUN.automation_id)
        .outerjoin(*run_of(action_run.c.automation_run_id))
        .where(action_run.c.id == run_id, action_run.c.status == rules.ActionRunStatus.STARTED),
        of=_OpenRow,
    )
    if row is None:
        raise RunClosedError
    by_automation = row.automation_run_id is not None
    return ActionRunHeader(
        run_id=row.id,
        workspace_id=row.workspace_id,
        action_id=row.action_id,
        steps=tuple(rules.plan_of(ActionKind(row.kind), row.config)),
        input=row.input,
        node=_node(row),
        effect_key=(
            f"{row.automation_run_id}:{row.node_id}:{row.scope_key}"
            if by_automation
            else str(row.id)
        ),
        chain=tuple(row.chain),
        actor=_actor(row),
        started_at=row.started_at,
    )


def _node(row: _OpenRow) -> node_writes.NodeKey | None:
    if row.automation_run_id is None:
        return None
    run_id = row.automation_run_id
    return node_writes.NodeKey(
        row.workspace_id, run_id, row.node_id, row.scope_key, NodeKind.ACTION
    )


def _actor(row: _OpenRow) -> Actor:
    """The platform itself, writing with an editor's rights in the run's own workspace."""
    workspace_id, person = row.workspace_id, row.created_by_user_id
    if row.automation_run_id is not None:
        chain = tuple(row.chain)
        return automation_actor(workspace_id, row.automation_id, person, chain, row.node_id)
    return Actor(
        principal=Principal(
            type=PrincipalType.SYSTEM, id=row.action_id, user_id=person or row.action_id
        ),
        workspace_id=workspace_id,
        role=Role.EDITOR,
        scopes=ROLE_SCOPES[Role.EDITOR],
    )


async def pass_gate(work: UnitOfWork, header: ActionRunHeader, step_id: str) -> StepRow:
    """Enter an open run, whose row stays locked until the transaction ends.

    A run of a node also passes the gate of the node's own run. Raises RunClosedError.
    """
    if not await node_is_open(work, header):
        raise RunClosedError
    row = await work.first(
        sa.select(action_step.c.status, action_step.c.attempt, action_step.c.started_at)
        # In the order in which a cancel takes the rows.
        .select_from(action_run.join(action_step, action_step.c.run_id == action_run.c.id))
        .where(
            action_run.c.id == header.run_id,
            action_run.c.status == rules.ActionRunStatus.STARTED,
            action_step.c.step_id == step_id,
        )
        .with_for_update(of=[action_run, action_step])
    )
    if row is None:
        raise RunClosedError
    return StepRow(rules.StepStatus(row.status), row.attempt, row.started_at)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """The end of a run."""

    status: rules.ActionRunStatus
    result: JsonObject | None = None
    error: str | None = None
    error_code: str | None = None


async def finish(work: UnitOfWork, header: ActionRunHeader) -> EndedRun:
    """Write the end that the steps decided, or give the one that was written before.

    A failed step whose action does not continue fails the run, and the steps after it are skipped.
    """
    rows = await work.rows(
        sa.select(action_step)
        .where(
            action_step.c.workspace_id == header.workspace_id, action_step.c.run_id == header.run_id
        )
        .order_by(action_step.c.position)
    )
    borne = {step.id for step in header.steps if step.continue_on_error}
    failed = [
        row for row in rows if row.status == rules.StepStatus.FAILED and row.step_id not in borne
    ]
    succeeded = [row for row in rows if row.status == rules.StepStatus.SUCCEEDED]
    if failed:
        place = f"{failed[0].step_id}: " if len(rows) > 1 else ""
        error = f"{place}{failed[0].error}"
        end = EndedRun(rules.ActionRunStatus.FAILED, failed[0].result, error, failed[0].error_code)
    else:
        result = succeeded[-1].result if succeeded else {}
        end = EndedRun(rules.ActionRunStatus.SUCCEEDED, result)
    written = await close_runs(work, [header.run_id], end)
    return end if written else await ended_run(work, header.run_id)


async def abandon(
    work: UnitOfWork,
    workspace_id: Id,
    run_id: Id,
    status: rules.ActionRunStatus,
    error: str | None = None,
) -> bool:
    """Close a run that nothing carries out any more, and cancel the automation run it waits for.

    False when it was closed already.
    """
    await hold_caller(work, workspace_id, run_id)
    waiting = await work.rows(
        sa.select(action_step.c.step_id).where(
            action_step.c.workspace_id == workspace_id,
            action_step.c.run_id == run_id,
            action_step.c.kind == ActionKind.RUN_AUTOMATION,
            action_step.c.status == rules.StepStatus.RUNNING,
        )
    )
    if not await close_runs(work, [run_id], EndedRun(status, error=error)):
        return False
    called = [called_run_id(run_id, row.step_id) for row in waiting]
    await cancel_runs(work, workspace_id, called, error="The calling action has ended.")
    return True


async def hold_caller(work: UnitOfWork, workspace_id: Id, run_id: Id) -> None:
    """Hold the automation run whose node asked for a run, in the order in which a cancel does."""
    asked = sa.select(action_run.c.automation_run_id).where(
        action_run.c.workspace_id == workspace_id, action_run.c.id == run_id
    )
    await node_writes.share_run(work, asked.scalar_subquery())


def called_run_id(run_id: Id, step_id: str) -> Id:
    """The id of the automation run that a step starts, the same whenever it is asked."""
    return derived_id("action-step", run_id, step_id)


async def node_is_open(work: UnitOfWork, header: ActionRunHeader) -> bool:
    """True while the run of the requesting node continues, whose row is held then; True without a
    node.
    """
    if header.node is None:
        return True
    return await node_writes.share_run(work, header.node.run_id) in ACTIVE_RUN


async def find_end(work: UnitOfWork, run_id: Id) -> EndedRun | None:
    """The state of a run; None when there is none of this id."""
    row = await work.first(
        sa.select(
            action_run.c.status, action_run.c.result, action_run.c.error, action_run.c.error_code
        ).where(action_run.c.id == run_id)
    )
    if row is None:
        return None
    return EndedRun(rules.ActionRunStatus(row.status), row.result, row.error, row.error_code)


async def ended_run(work: UnitOfWork, run_id: Id) -> EndedRun:
    """The state of a run that is known to be there."""
    found = await find_end(work, run_id)
    assert found is not None, "the caller has seen the run"
    return found


async def load_results(work: UnitOfWork, header: ActionRunHeader) -> dict[str, Any]:
    """The results of the steps that succeeded, by step id: what `node` bindings read."""
    rows = await work.rows(
        sa.select(action_step.c.step_id, action_step.c.result).where(
            action_step.c.workspace_id == header.workspace_id,
            action_step.c.run_id == header.run_id,
            action_step.c.status == rules.StepStatus.SUCCEEDED,
        )
    )
    return {row.step_id: row.result for row in rows}


async def load_statuses(work: UnitOfWork, header: ActionRunHeader) -> dict[str, rules.StepStatus]:
    """The status of each step, by step id."""
    rows = await work.rows(
        sa.select(action_step.c.step_id, action_step.c.status).where(
            action_step.c.workspace_id == header.workspace_id, action_step.c.run_id == header.run_id
        )
    )
    return {row.step_id: rules.StepStatus(row.status) for row in rows}


async def start_step(work: UnitOfWork, run_id: Id, step_id: str, attempt: int) -> None:
    """Show a step as running, before its effect leaves the machine."""
    await _write_step(work, run_id, step_id, rules.StepStatus.RUNNING, attempt=attempt)


async def complete_step(
    work: UnitOfWork, run_id: Id, step_id: str, result: JsonObject, attempt: int
) -> None:
    """Write a step's success."""
    await _write_step(
        work, run_id, step_id, rules.StepStatus.SUCCEEDED, result=result, attempt=attempt
    )


async def skip_step(work: UnitOfWork, run_id: Id, step_id: str) -> None:
    """Its condition did not hold."""
    await _write_step(work, run_id, step_id, rules.StepStatus.SKIPPED)


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
    values = {"error": message[: node_writes.ERROR_LIMIT], "error_code": code, "result": result}
    await _write_step(work, run_id, step_id, rules.StepStatus.FAILED, attempt=attempt, **values)


async def _write_step(
    work: UnitOfWork, run_id: Id, step_id: str, status: rules.StepStatus, **values: object
) -> None:
    if status is not rules.StepStatus.SKIPPED:
        values["started_at"] = sa.func.coalesce(action_step.c.started_at, work.now)
    if status is not rules.StepStatus.RUNNING:
        # Not when the transaction began: the step is what it has done since then.
        values["completed_at"] = utc_now()
    await work.execute(
        sa.update(action_step)
        .where(
            action_step.c.run_id == run_id,
            action_step.c.step_id == step_id,
            action_step.c.status.in_(rules.OPEN_STEP),
        )
        .values(status=status.value, **values)
    )


NODE_ENDED = "The calling node has ended."
"""The reason to close a run that no node waits for any more."""


async def close_runs(work: UnitOfWork, run_ids: Collection[Id], end: EndedRun) -> bool:
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
    never = (step.status == rules.StepStatus.PENDING) & (
        end.status != rules.ActionRunStatus.CANCELLED
    )
    await work.execute(
        sa.update(action_step)
        .where(step.run_id.in_(closed_ids), step.status.in_(rules.OPEN_STEP))
        .values(
            status=sa.case(
                (never, rules.StepStatus.SKIPPED.value), else_=rules.StepStatus.CANCELLED.value
            ),
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
        sa.select(run.id)
        .where(
            run.workspace_id == workspace_id,
            run.automation_run_id.in_(automation_run_ids),
            run.status == rules.ActionRunStatus.STARTED,
        )
        .order_by(run.id)
        .with_for_update()
    )
    if rows:
        end = EndedRun(rules.ActionRunStatus.CANCELLED, error=NODE_ENDED)
        await close_runs(work, [row.id for row in rows], end)


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
    steps = sa.select(action_step).where(_step.run_id == run_id).order_by(_step.position)
    return await work.rows(steps, of=RecordedStep)


async def reopen_step(work: UnitOfWork, step: RecordedStep) -> None:
    """Open a step, what follows it, its run and the run whose node asked for it."""
    this_run = action_run.c.id == step.run_id
    asking = await work.scalar(sa.select(action_run.c.automation_run_id).where(this_run))
    if asking is not None:
        await node_writes.reopen_run(work, asking)
    started = rules.ActionRunStatus.STARTED.value
    await replace_rows(work, action_run, this_run, status=started, **_UNDONE)
    await replace_rows(
        work,
        action_step,
        sa.and_(_step.run_id == step.run_id, _step.position >= step.position),
        status=rules.StepStatus.PENDING.value,
        attempt=0,
        started_at=None,
        **_UNDONE,
    )
