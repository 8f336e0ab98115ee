"""Asking for action runs and cancelling them; a run and its start in one transaction."""

from dataclasses import dataclass, field

from sqlalchemy import insert

from models.automation.action_runs.execution import abandon, hold_caller
from models.automation.action_runs.queries import ActionRunDetail, RunAction, get_run, load_run
from models.automation.action_runs.rules import ActionRunStatus, StepStatus, plan_of
from models.automation.action_runs.tables import ACTION_RUNS, action_step
from models.automation.actions.queries import ActionRow, find_action
from models.automation.actions.rules import ActionKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.bounds import require_place
from models.core.lifecycle import commands as lifecycle
from models.sources.outbound_limits.turns import leave_lines
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.temporal.families import Family
from runtime.temporal.outbox import AWAITED, StartRequest


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
    if await abandon(work, actor.workspace_id, run_id, ActionRunStatus.CANCELLED):
        await lifecycle.cancel_executions(work, Family.ACTION_RUN, actor.workspace_id, [run_id])
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
    await work.execute(insert(action_step), _steps(actor.workspace_id, action, request.run_id))
    if node is None:
        await require_place(work, actor, ACTION_RUNS, Family.ACTION_RUN)
        summary = summary_of(action)
        start = start_request(action.id, summary)
        await lifecycle.start(work, Family.ACTION_RUN, actor.workspace_id, request.run_id, start)
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
            "status": StepStatus.PENDING.value,
            "attempt": 0,
        }
        for position, step in enumerate(plan_of(ActionKind(action.kind), action.config))
    ]


def start_request(action_id: Id, summary: str) -> StartRequest:
    """The facts of a run that Temporal gets at its start, and operators see."""
    return {
        "summary": summary,
        "resourceId": str(action_id),
        "source": "action",
        "weight": AWAITED,
    }
