"""Waits that our rows have resolved are signalled again to an execution that missed it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, select
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.testing import ActivityEnvironment

from activities.maintenance.reconciler import Reconciler
from cli.work_handlers.runs import AutomationRuns
from models.automation.automation_runs.tables import automation_run
from models.automation.waits import commands
from models.automation.waits.commands import PublishEvent, ResumeNode
from models.core.base import JsonObject
from runtime.temporal.outbox import Intent, outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, by_node, graph, node
from tests.support.patience import eventually
from tests.support.waits import approval, event, held, member, publish, waiting

pytestmark = pytest.mark.crash


async def sweep(engine: Engine, grace: timedelta = timedelta()) -> dict[str, int]:
    """One sweep of the reconciler, now."""
    activities = Reconciler(engine.database, engine.client, [AutomationRuns()], grace=grace)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    counts = await environment.run(activities.reconcile)
    return {name.removeprefix("automation_runs_"): count for name, count in counts.items()}


async def repaired(engine: Engine, repair: str) -> int:
    """How often the first sweep that made a repair made it; who is busy is left to the next."""
    counts: list[int] = []

    async def some() -> bool:
        counts[:] = [(await sweep(engine))[repair]]
        return counts != [0]

    await eventually(some, what=f"a sweep that {repair}")
    return counts[0]


async def resolve_without_signal(engine: Engine, event_key: str, run_id: UUID) -> None:
    """Give the nodes of a run their event, without a signal to their execution."""
    body = PublishEvent.model_validate({"eventKey": event_key, "data": {"amount": 3}})
    async with engine.database.transaction() as work:
        assert await commands.publish_event(work, engine.actor, body)
        await work.execute(delete(outbox).where(outbox.c.subject_id == run_id))


async def signals(engine: Engine, run_id: UUID) -> int:
    """The number of signals to the execution of a run."""
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
    history = await handle.fetch_history()
    return sum(
        one.HasField("workflow_execution_signaled_event_attributes") for one in history.events
    )


@pytest.mark.long
async def test_a_lost_event_is_signalled_again(engine: Engine) -> None:
    automation_id, run_id = await waiting(engine, event(eventKey="unreported"))
    await resolve_without_signal(engine, "unreported", run_id)
    assert (await sweep(engine, timedelta(minutes=5)))["resent"] == 0
    assert (await engine.get(automation_id, run_id)).status == "waiting"
    assert await repaired(engine, "resent") == 1
    assert (await engine.ended(automation_id, run_id)).output == {"then": {"got": {"amount": 3}}}
    assert (await sweep(engine))["resent"] == 0


@pytest.mark.long
async def test_a_lost_decision_is_signalled_again(engine: Engine) -> None:
    decider = await member(engine)
    automation_id, run_id = await waiting(engine, approval(decider))
    async with engine.database.transaction() as work:
        body = ResumeNode.model_validate({"decision": "approved"})
        await commands.resume(work, decider, automation_id, run_id, "ask", body)
        await work.execute(delete(outbox).where(outbox.c.subject_id == run_id))
    assert await repaired(engine, "resent") == 1
    run = await engine.ended(automation_id, run_id)
    assert {one.node_id for one in run.node_runs if one.status == "succeeded"} == {"ask", "yes"}


def in_long_loop() -> JsonObject:
    """A wait in a loop that runs in executions of its own."""
    items = {"type": "expression", "value": "trigger.items"}
    return graph(
        node("each", "for_each", items=items, parallelism=2),
        held("hear", "wait_event", {"eventKey": {"type": "expression", "value": "item"}}),
        edges=[("each", "hear", "item")],
    )


@pytest.mark.long
async def test_an_iteration_in_another_execution_is_signalled_again(engine: Engine) -> None:
    payload = {"items": ["first", "second", *["third"] * 99]}
    automation_id, run_id = await waiting(engine, in_long_loop(), payload)
    await resolve_without_signal(engine, "first", run_id)
    assert await repaired(engine, "resent") == 1
    await engine.until(
        automation_id,
        run_id,
        lambda run: any(one.scope_key == "each:0" for one in run.node_runs if one.output),
    )
    await engine.cancel(automation_id, run_id)


async def test_a_run_whose_wait_is_open_gets_no_signal(engine: Engine) -> None:
    automation_id, run_id = await waiting(engine, event(eventKey="not yet"))
    assert (await sweep(engine))["resent"] == 0
    assert await signals(engine, run_id) == 0
    await engine.cancel(automation_id, run_id)


@pytest.mark.long
async def test_a_restored_execution_is_signalled_the_facts_of_its_rows(engine: Engine) -> None:
    content = graph(
        held("first", "wait_event", {"eventKey": "put back 1"}),
        held("second", "wait_event", {"eventKey": "put back 2"}),
        edges=[("first", "second")],
    )
    automation_id, run_id = await waiting(engine, content)
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
    # A task after the one that parked the node: what a reset to it keeps is that the node waits.
    await handle.signal("admitted")
    tasks = await engine.completed_tasks(run_id, 2)
    await publish(engine, "put back 1")
    await engine.until(
        automation_id,
        run_id,
        lambda run: run.status == "waiting" and by_node(run).keys() == {"first", "second"},
    )
    request = ResetWorkflowExecutionRequest(
        namespace=engine.client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=handle.id),
        reason="An older Temporal.",
        workflow_task_finish_event_id=tasks[1],
        request_id=str(run_id),
        reset_reapply_exclude_types=[ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL],
    )
    await engine.client.workflow_service.reset_workflow_execution(request)
    await resolve_without_signal(engine, "put back 2", run_id)
    assert await repaired(engine, "resent") == 2
    assert (await engine.ended(automation_id, run_id)).status == "succeeded"


async def called_runs(engine: Engine, run_id: UUID) -> list[Any]:
    async with engine.database.transaction() as work:
        statement = select(automation_run).where(automation_run.c.parent_run_id == run_id)
        return list(await work.rows(statement))


@pytest.mark.long
async def test_a_called_run_is_signalled_its_slot_again(engine: Engine) -> None:
    limit = {"kind": "automation_called", "concurrency": {"limit": 1}}
    inner = await engine.publish(graph(node("hold", "delay", seconds=600)), triggerConfig=limit)
    call = graph(node("call", "call_automation", automationId=str(inner.id)))
    first, second = [await waiting(engine, call) for _ in range(2)]
    (holding,), (in_line,) = [await called_runs(engine, one[1]) for one in (first, second)]
    assert (await sweep(engine))["restarted"] == 0
    async with engine.database.transaction() as work:
        await engine.cancel_within(work, inner.id, holding.id)
        told = (outbox.c.subject_id == in_line.id) & (outbox.c.intent == Intent.SIGNAL)
        assert len(await work.rows(delete(outbox).where(told).returning(outbox.c.id))) == 1
    assert await repaired(engine, "restarted") == 1
    await engine.until(inner.id, in_line.id, lambda run: run.status == "waiting")
    await engine.cancel(*second)
