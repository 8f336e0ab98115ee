"""Progress of an action run: its header, its gate, its end.

Every write is conditional on the states it may leave, so repeating one is harmless and a closed
run stays as it is (promises I3, I5).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import select

from models.automation.action_runs.closing import Ended, close_runs
from models.automation.action_runs.rules import (
    ActionRunStatus,
    PlannedStep,
    StepStatus,
    plan_of,
)
from models.automation.action_runs.tables import action_run, action_step
from models.automation.actions.rules.configs import ActionKind
from models.automation.automation_runs.cancellation import cancel_runs
from models.automation.automation_runs.errors import RunClosedError
from models.automation.automation_runs.gate import share_run
from models.automation.automation_runs.joins import RUN, run_of
from models.automation.automation_runs.node_writes import NodeKey
from models.automation.automation_runs.rules import ACTIVE_RUN
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.access.rules import ROLE_SCOPES, Actor, Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.timestamps import wire_timestamp


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
    steps: tuple[PlannedStep, ...]
    input: JsonObject
    node: NodeKey | None
    """The node that asked for it."""
    effect_key: str
    """The prefix of the idempotency keys of its effects."""
    chain: tuple[Id, ...]
    """The automation runs that led to this one, oldest first."""
    actor: Actor
    started_at: datetime

    @property
    def variable(self) -> JsonObject:
        """The `run` variable of bindings and expressions (decisions C8)."""
        return {
            "id": str(self.run_id),
            "startedAt": wire_timestamp(self.started_at),
            "source": "action",
            "workspaceId": str(self.workspace_id),
        }

    def step(self, step_id: str) -> PlannedStep:
        return next(step for step in self.steps if step.id == step_id)


@dataclass(frozen=True, slots=True)
class StepRow:
    """The state that the row of a step has already."""

    status: StepStatus
    attempt: int
    started_at: datetime | None


async def load_header(work: UnitOfWork, run_id: Id) -> ActionRunHeader:
    """The header of an open run. Raises RunClosedError."""
    row = await work.first(
        select(action_run, RUN.automation_id)
        .outerjoin(*run_of(action_run.c.automation_run_id))
        .where(action_run.c.id == run_id, action_run.c.status == ActionRunStatus.STARTED),
        of=_OpenRow,
    )
    if row is None:
        raise RunClosedError
    by_automation = row.automation_run_id is not None
    return ActionRunHeader(
        run_id=row.id,
        workspace_id=row.workspace_id,
        action_id=row.action_id,
        steps=tuple(plan_of(ActionKind(row.kind), row.config)),
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


def _node(row: _OpenRow) -> NodeKey | None:
    if row.automation_run_id is None:
        return None
    run_id = row.automation_run_id
    return NodeKey(row.workspace_id, run_id, row.node_id, row.scope_key, NodeKind.ACTION)


def _actor(row: _OpenRow) -> Actor:
    """The platform itself, writing with an editor's rights in the run's own workspace."""
    workspace_id, person = row.workspace_id, row.created_by_user_id
    if row.automation_run_id is not None:
        return automation_actor(workspace_id, row.automation_id, person, tuple(row.chain))
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
        select(action_step.c.status, action_step.c.attempt, action_step.c.started_at)
        # In the order in which a cancel takes the rows.
        .select_from(action_run.join(action_step, action_step.c.run_id == action_run.c.id))
        .where(
            action_run.c.id == header.run_id,
            action_run.c.status == ActionRunStatus.STARTED,
            action_step.c.step_id == step_id,
        )
        .with_for_update(of=[action_run, action_step])
    )
    if row is None:
        raise RunClosedError
    return StepRow(StepStatus(row.status), row.attempt, row.started_at)


async def finish(work: UnitOfWork, header: ActionRunHeader) -> Ended:
    """Write the end that the steps decided, or give the one that was written before.

    A failed step whose action does not go on fails the run, and what follows it is skipped.
    """
    rows = await work.rows(
        select(action_step)
        .where(
            action_step.c.workspace_id == header.workspace_id, action_step.c.run_id == header.run_id
        )
        .order_by(action_step.c.position)
    )
    borne = {step.id for step in header.steps if step.continue_on_error}
    failed = [row for row in rows if row.status == StepStatus.FAILED and row.step_id not in borne]
    succeeded = [row for row in rows if row.status == StepStatus.SUCCEEDED]
    if failed:
        place = f"{failed[0].step_id}: " if len(rows) > 1 else ""
        error = f"{place}{failed[0].error}"
        end = Ended(ActionRunStatus.FAILED, failed[0].result, error, failed[0].error_code)
    else:
        result = succeeded[-1].result if succeeded else {}
        end = Ended(ActionRunStatus.SUCCEEDED, result)
    written = await close_runs(work, [header.run_id], end)
    return end if written else await ended(work, header.run_id)


async def abandon(
    work: UnitOfWork,
    workspace_id: Id,
    run_id: Id,
    status: ActionRunStatus,
    error: str | None = None,
) -> bool:
    """Close a run that nothing carries out any more, and cancel the automation run it waits for.

    False when it was closed already.
    """
    await hold_caller(work, workspace_id, run_id)
    waiting = await work.rows(
        select(action_step.c.step_id).where(
            action_step.c.workspace_id == workspace_id,
            action_step.c.run_id == run_id,
            action_step.c.kind == ActionKind.RUN_AUTOMATION,
            action_step.c.status == StepStatus.RUNNING,
        )
    )
    if not await close_runs(work, [run_id], Ended(status, error=error)):
        return False
    called = [called_run_id(run_id, row.step_id) for row in waiting]
    await cancel_runs(work, workspace_id, called, error="The action that waited for it has ended.")
    return True


async def hold_caller(work: UnitOfWork, workspace_id: Id, run_id: Id) -> None:
    """Hold the automation run whose node asked for a run, in the order in which a cancel does."""
    asked = select(action_run.c.automation_run_id).where(
        action_run.c.workspace_id == workspace_id, action_run.c.id == run_id
    )
    await share_run(work, asked.scalar_subquery())


def called_run_id(run_id: Id, step_id: str) -> Id:
    """The id of the automation run that a step starts, the same whenever it is asked."""
    return derived_id("action-step", run_id, step_id)


async def node_is_open(work: UnitOfWork, header: ActionRunHeader) -> bool:
    """True while the asking node's run goes on, whose row is held then; True without a node."""
    if header.node is None:
        return True
    return await share_run(work, header.node.run_id) in ACTIVE_RUN


async def find_end(work: UnitOfWork, run_id: Id) -> Ended | None:
    """The state of a run; None when there is none of this id."""
    row = await work.first(
        select(
            action_run.c.status, action_run.c.result, action_run.c.error, action_run.c.error_code
        ).where(action_run.c.id == run_id)
    )
    if row is None:
        return None
    return Ended(ActionRunStatus(row.status), row.result, row.error, row.error_code)


async def ended(work: UnitOfWork, run_id: Id) -> Ended:
    """The state of a run that is known to be there."""
    found = await find_end(work, run_id)
    assert found is not None, "whoever asks has seen the run"
    return found
