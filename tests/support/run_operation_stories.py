"""Stories of operations over runs, to be recorded; see tests/support/record_histories.py."""

from collections.abc import Awaitable, Callable

from sqlalchemy import delete

from models.automation.run_operations import commands
from models.core.base import Id
from models.people.workspaces import workspace_member
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.run_operations import accept, accept_within, detail, ended, failed_runs
from tests.support.waits import member

SLOW = 0.01
"""A rate at which a timer is always there to be interrupted."""


async def _begun(engine: Engine, runs: int, rate: float) -> Id:
    """An operation that has treated some of its runs."""
    automation = await engine.publish(graph(node("a", "transform", output={"ok": True})))
    run_ids = await failed_runs(engine, automation.id, runs)
    named = [str(run_id) for run_id in run_ids]
    operation_id = await accept(engine, "retry", runIds=named, rate=rate)

    async def begun() -> bool:
        return (await detail(engine, operation_id)).done > 0

    await eventually(begun, what="the first runs of the operation")
    return operation_id


async def whole(engine: Engine) -> str:
    """A retry of what a filter selects, at a rate."""
    automation = await engine.publish(graph(node("a", "transform", output={"ok": True})))
    await failed_runs(engine, automation.id, 5)
    wanted = {"automationId": str(automation.id)}
    operation_id = await accept(engine, "retry", filter=wanted, rate=4)
    await ended(engine, operation_id)
    return WorkflowKind.RUN_OPERATION.workflow_id(operation_id)


async def paused(engine: Engine) -> str:
    """An operation that is paused while it waits for its rate."""
    operation_id = await _begun(engine, 3, SLOW)
    async with engine.database.transaction() as work:
        await commands.pause_operation(work, engine.actor, operation_id)
    return WorkflowKind.RUN_OPERATION.workflow_id(operation_id)


async def cancelled(engine: Engine) -> str:
    """An operation that is cancelled while it waits for its rate."""
    operation_id = await _begun(engine, 3, SLOW)
    async with engine.database.transaction() as work:
        await commands.cancel_operation(work, engine.actor, operation_id)
    return WorkflowKind.RUN_OPERATION.workflow_id(operation_id)


async def cancelled_in_temporal(engine: Engine) -> str:
    """An operation whose execution an operator cancels."""
    workflow_id = WorkflowKind.RUN_OPERATION.workflow_id(await _begun(engine, 3, SLOW))
    await engine.client.get_workflow_handle(workflow_id).cancel()
    return workflow_id


async def denied(engine: Engine) -> str:
    """An operation of a person who leaves the workspace before it begins."""
    leaving = await member(engine)
    automation = await engine.publish(graph(node("a", "transform", output={"ok": True})))
    (run_id,) = await failed_runs(engine, automation.id, 1)
    async with engine.database.transaction() as work:
        operation_id = await accept_within(work, leaving, "retry", runIds=[str(run_id)])
        this = workspace_member.c.user_id == leaving.user_id
        await work.execute(delete(workspace_member).where(this))
    return WorkflowKind.RUN_OPERATION.workflow_id(operation_id)


async def long(engine: Engine) -> str:
    """An operation that continues as another execution."""
    operation_id = await _begun(engine, 6, 3)
    await ended(engine, operation_id)
    return WorkflowKind.RUN_OPERATION.workflow_id(operation_id)


RUN_OPERATION_STORIES: dict[str, Callable[[Engine], Awaitable[str]]] = {
    "run-operation": whole,
    "run-operation-paused": paused,
    "run-operation-cancelled": cancelled,
    "run-operation-cancelled-in-temporal": cancelled_in_temporal,
    "run-operation-denied": denied,
}
LONG_RUN_OPERATION_STORIES: dict[str, Callable[[Engine], Awaitable[str]]] = {
    "run-operation-long": long
}
