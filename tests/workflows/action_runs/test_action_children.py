"""Runs of actions as children: of the node that asked, in loops, and with children of their own."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from models.automation.action_runs.tables import action_run
from models.automation.automation_runs.tables import automation_run
from models.core.base import Id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support import actions
from tests.support.actions import act, make, states
from tests.support.endpoint import Serve, never, reply
from tests.support.engine import Engine, by_node, graph, node
from tests.support.patience import ENOUGH, eventually
from tests.support.run_rows import attempts, error_codes
from tests.support.waits import event, resume

pytestmark = pytest.mark.takes(seconds=15)

Json = dict[str, Any]


def act_node(action_id: Id, **fields: Any) -> Json:
    return {"id": "act", "kind": "action", "actionId": str(action_id), **fields}


def execution(engine: Engine, run: Any) -> WorkflowHandle[Any, Any]:
    return engine.client.get_workflow_handle(run.metadata["temporalWorkflowId"])


async def under_way(engine: Engine, serve: Serve, **fields: Any) -> tuple[Id, Id, Any]:
    """An automation, its run and the action run of its node, whose step calls an endpoint."""
    endpoint = await serve(never)
    action_id = await make(engine, "http_request", url=endpoint.url)
    automation = await engine.publish(graph(act_node(action_id, **fields)))
    run_id = await engine.start(automation.id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    (ran,) = await actions.of_action(engine, action_id)
    return automation.id, run_id, ran


# ---- of a node


@pytest.mark.long
async def test_the_run_of_a_node_is_a_child_and_the_node_runs_meanwhile(
    engine: Engine, serve: Serve
) -> None:
    automation_id, run_id, ran = await under_way(engine, serve)
    run = await engine.get(automation_id, run_id)
    assert (run.status, by_node(run)["act"].status) == ("running", "running")
    description = await execution(engine, ran).describe()
    assert description.parent_id == WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)
    await engine.cancel(automation_id, run_id)


@pytest.mark.long
async def test_cancel_closes_the_run_of_the_action_in_its_own_transaction(
    engine: Engine, serve: Serve
) -> None:
    automation_id, run_id, ran = await under_way(engine, serve)
    async with engine.database.transaction() as work:
        await engine.cancel_within(work, automation_id, run_id)
        own = select(action_run.c.status).where(action_run.c.id == ran.id)
        assert await work.scalar(own) == "cancelled"
    ran = await actions.get(engine, ran.action_id, ran.id)
    assert (ran.error, states(ran)) == (
        "The calling node has ended.",
        {"main": "cancelled"},
    )

    async def is_cancelled() -> bool:
        found = await execution(engine, ran).describe()
        return found.status is WorkflowExecutionStatus.CANCELED

    await eventually(is_cancelled, what="the end of the child")


@pytest.mark.long
async def test_an_operator_who_ends_the_child_fails_the_node(engine: Engine, serve: Serve) -> None:
    automation_id, run_id, ran = await under_way(engine, serve)
    await execution(engine, ran).terminate(reason="an operator did")
    run = await engine.ended(automation_id, run_id)
    assert await error_codes(engine, run) == {"act": "action_failed"}
    ran = await actions.get(engine, ran.action_id, ran.id)
    assert (ran.status, ran.error) == ("failed", "The execution was ended in Temporal.")


@pytest.mark.long
async def test_an_attempt_that_took_too_long_is_recorded_and_repeated(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(never, reply(200, {"a": 1}))
    action_id = await make(engine, "http_request", method="POST", url=endpoint.url)
    retry = {"maxAttempts": 2, "initialDelaySeconds": 0}
    run = await engine.run(graph(act_node(action_id, timeoutSeconds=2, retry=retry)))
    assert run.status == "succeeded", run.error
    assert await attempts(engine, run.id) == [("act", 1, "timeout")]
    assert by_node(run)["act"].attempt == 2
    assert len({one.headers["idempotency-key"] for one in endpoint.requests}) == 1


@pytest.mark.long
@pytest.mark.parametrize("count", [3, 101])
async def test_a_loop_runs_an_action_for_each_item(engine: Engine, count: int) -> None:
    """In the run's own execution, and in that of a part of a long loop."""
    double = {"type": "expression", "value": "trigger.n * 2"}
    action_id = await make(engine, "transform", output={"twice": double})
    items = list(range(count))
    run = await engine.run(
        graph(
            node("each", "for_each", items=items, collect="act"),
            act_node(action_id, input={"n": {"type": "item", "value": ""}}),
            edges=[("each", "act", "item")],
        )
    )
    assert run.status == "succeeded", run.error
    async with engine.database.transaction() as work:
        found = await work.rows(
            select(action_run.c.status, action_run.c.result).where(
                action_run.c.automation_run_id == run.id
            )
        )
    assert {row.status for row in found} == {"succeeded"}
    assert sorted(row.result["twice"] for row in found) == [2 * item for item in items]


# ---- with a child of its own


@pytest.mark.long
async def test_an_automation_that_is_waited_for_is_a_child_of_the_action(engine: Engine) -> None:
    called = await engine.publish(event())
    action_id = await make(engine, "run_automation", automationId=str(called.id), wait=True)
    run_id = await actions.start(engine, action_id)
    child = await _run_of(engine, called.id, "waiting")
    workflow_id = WorkflowKind.AUTOMATION_RUN.workflow_id(child)
    description = await engine.client.get_workflow_handle(workflow_id).describe()
    assert description.parent_id == WorkflowKind.ACTION_RUN.workflow_id(run_id)
    assert (await engine.get(called.id, child)).metadata.get("parentRunId") is None
    await resume(engine, (called.id, child), "hear", data={})
    assert (await actions.ended(engine, action_id, run_id)).status == "succeeded"


async def test_an_automation_that_is_waited_for_waits_for_its_slot(engine: Engine) -> None:
    limited = {"kind": "manual", "concurrency": {"limit": 1}}
    called = await engine.publish(event(), triggerConfig=limited)
    holder = await engine.start(called.id)
    await engine.until(called.id, holder, lambda run: run.status == "waiting")
    action_id = await make(engine, "run_automation", automationId=str(called.id), wait=True)
    run_id = await actions.start(engine, action_id)
    child = await _run_of(engine, called.id, "queued")
    await engine.cancel(called.id, holder)
    await engine.until(called.id, child, lambda run: run.status == "waiting")
    await resume(engine, (called.id, child), "hear", data={})
    assert (await actions.ended(engine, action_id, run_id)).status == "succeeded"


async def test_a_cancel_reaches_through_the_action_of_a_node(engine: Engine) -> None:
    called = await engine.publish(event())
    action_id = await make(engine, "run_automation", automationId=str(called.id), wait=True)
    automation = await engine.publish(graph(act_node(action_id)))
    run_id = await engine.start(automation.id)
    child = await _run_of(engine, called.id, "waiting")
    await engine.cancel(automation.id, run_id)
    assert (await engine.get(called.id, child)).status == "cancelled"
    (ran,) = await actions.of_action(engine, action_id)
    assert ran.status == "cancelled"


async def test_an_automation_that_fails_fails_the_step(engine: Engine) -> None:
    called = await engine.publish(graph(node("halt", "stop", result="failed", message="No.")))
    run = await act(engine, "run_automation", automationId=str(called.id), wait=True)
    assert (run.status, run.error) == ("failed", "The automation failed: halt: No.")


async def _run_of(engine: Engine, automation_id: Id, status: str) -> Id:
    """The newest run of an automation, once it has this status."""
    found: list[Id] = []

    async def is_there() -> bool:
        async with engine.database.transaction() as work:
            runs = select(automation_run.c.id).where(
                automation_run.c.automation_id == automation_id,
                automation_run.c.status == status,
            )
            found[:] = [row.id for row in await work.rows(runs)]
        return bool(found)

    await eventually(is_there, what=f"a run that is {status}")
    return found[0]
