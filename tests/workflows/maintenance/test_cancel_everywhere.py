"""Cancel ends a run in every state, with all its dependent work."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from models.automation.automation_runs.rules import OPEN_NODE, OPEN_RUN
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.waits.commands import ResumeNode, resume
from models.automation.waits.rules import NotResumableError
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.endpoint import Serve, never, reply
from tests.support.engine import Engine, Json, graph, node
from tests.support.patience import eventually

NEXT = node("next", "transform", output={})


def then_next(*nodes: Json) -> Json:
    return graph(*nodes, NEXT, edges=[(nodes[0]["id"], "next")])


async def is_over(engine: Engine, run_id: UUID) -> None:
    """Wait until nothing of a run is left in Temporal or the outbox."""
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))

    async def gone() -> bool:
        async with engine.database.transaction() as work:
            if await work.rows(select(outbox.c.id).where(outbox.c.subject_id == run_id)):
                return False
        try:
            return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING
        except RPCError as error:
            return error.status is RPCStatusCode.NOT_FOUND

    await eventually(gone, what=f"the end of the execution of {run_id}")


async def stays(engine: Engine, automation_id: UUID, cancelled: AutomationRunDetail) -> None:
    """The answer to a cancel is what the run is for ever, and nothing of it is open."""
    assert cancelled.status == "cancelled"
    assert all(one.status not in OPEN_NODE for one in cancelled.node_runs)
    await is_over(engine, cancelled.id)
    assert await engine.get(automation_id, cancelled.id) == cancelled
    assert await engine.cancel(automation_id, cancelled.id) == cancelled


async def children_of(engine: Engine, run_id: UUID) -> list[Any]:
    async with engine.database.transaction() as work:
        return list(
            await work.rows(select(automation_run).where(automation_run.c.parent_run_id == run_id))
        )


async def nodes_of(engine: Engine, run_id: UUID) -> dict[str, str]:
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(node_run.c.node_id, node_run.c.status).where(node_run.c.run_id == run_id)
        )
    return {row.node_id: row.status for row in rows}


async def test_a_run_in_the_queue_is_cancelled(engine: Engine) -> None:
    automation = await engine.publish(then_next(node("it", "delay", seconds=3_600)))
    async with engine.database.transaction() as work:
        run = await engine.accept(work, automation.id)
        cancelled = await engine.cancel_within(work, automation.id, run.id)
    assert {node.status for node in cancelled.node_runs} == {"cancelled"}
    await stays(engine, automation.id, cancelled)


Reach = Callable[[AutomationRunDetail], bool]


def has(status: str) -> Reach:
    return lambda run: any(one.status == status for one in run.node_runs)


async def test_while_a_node_waits_for_an_answer(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(never)
    automation = await engine.publish(
        then_next(node("it", "http_request", method="GET", url=endpoint.url))
    )
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, has("running"))
    await stays(engine, automation.id, await engine.cancel(automation.id, run_id))


async def test_a_run_between_two_attempts_is_cancelled(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(503))
    patient = {"maxAttempts": 5, "initialDelaySeconds": 600}
    it = node("it", "http_request", method="GET", url=endpoint.url, retry=patient)
    automation = await engine.publish(then_next(it))
    run_id = await engine.start(automation.id)

    async def has_tried() -> bool:
        return bool(endpoint.requests)

    await eventually(has_tried, what="the first attempt")
    await engine.until(automation.id, run_id, has("running"))
    await stays(engine, automation.id, await engine.cancel(automation.id, run_id))
    assert len(endpoint.requests) == 1


async def test_a_run_in_a_delay_is_cancelled(engine: Engine) -> None:
    automation = await engine.publish(then_next(node("it", "delay", seconds=3_600)))
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    await stays(engine, automation.id, await engine.cancel(automation.id, run_id))


async def say(engine: Engine, automation_id: UUID, run_id: UUID, **said: Any) -> None:
    """Resume the node that waits."""
    body = ResumeNode.model_validate(said)
    async with engine.database.transaction() as work:
        await resume(work, engine.actor, automation_id, run_id, "it", body)


async def test_a_run_cancelled_at_an_approval_takes_no_answer(engine: Engine) -> None:
    it = node("it", "approval", assignees=[str(engine.actor.user_id)], allowSelf=True)
    automation = await engine.publish(graph(it, NEXT, edges=[("it", "next", "approved")]))
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    cancelled = await engine.cancel(automation.id, run_id)
    with pytest.raises(NotResumableError):
        await say(engine, automation.id, run_id, decision="approved")
    await stays(engine, automation.id, cancelled)


async def test_a_run_cancelled_at_an_event_does_not_hear_it(engine: Engine) -> None:
    automation = await engine.publish(then_next(node("it", "wait_event", eventKey="parcel")))
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    cancelled = await engine.cancel(automation.id, run_id)
    with pytest.raises(NotResumableError):
        await say(engine, automation.id, run_id, data={})
    await stays(engine, automation.id, cancelled)


@pytest.mark.parametrize("count", [3, 150])
async def test_a_run_in_a_loop_is_cancelled(engine: Engine, serve: Serve, count: int) -> None:
    endpoint = await serve(never)
    items = {"type": "literal", "value": list(range(count))}
    shape = graph(
        node("each", "for_each", items=items, parallelism=2),
        node("it", "http_request", method="GET", url=endpoint.url),
        NEXT,
        edges=[("each", "it", "item"), ("each", "next", "done")],
    )
    automation = await engine.publish(shape)
    run_id = await engine.start(automation.id)

    async def both_run() -> bool:
        return len(endpoint.requests) == 2

    await eventually(both_run, what="the first two iterations")
    await stays(engine, automation.id, await engine.cancel(automation.id, run_id))
    assert len(endpoint.requests) == 2
    parts = f"WorkflowId STARTS_WITH 'automation-run/{run_id}' AND ExecutionStatus = 'Running'"

    async def no_part_is_open() -> bool:
        return not [one async for one in engine.client.list_workflows(parts)]

    await eventually(no_part_is_open, what="the end of every part of the loop")


async def calling(engine: Engine, called_id: UUID, **config: Any) -> UUID:
    """A published automation that calls another."""
    call = node("call", "call_automation", automationId=str(called_id), **config)
    return (await engine.publish(then_next(call))).id


async def test_a_run_is_cancelled_with_the_runs_it_waits_for(engine: Engine) -> None:
    leaf = (await engine.publish(then_next(node("hold", "delay", seconds=3_600)))).id
    middle = await calling(engine, leaf)
    top = await calling(engine, middle)
    run_id = await engine.start(top)

    async def leaf_waits() -> bool:
        for child in await children_of(engine, run_id):
            for grandchild in await children_of(engine, child.id):
                return bool(grandchild.status == "waiting")
        return False

    await eventually(leaf_waits, what="the wait of the innermost run")
    cancelled = await engine.cancel(top, run_id)
    (child,) = await children_of(engine, run_id)
    (grandchild,) = await children_of(engine, child.id)
    assert {child.status, grandchild.status} == {"cancelled"}
    assert await nodes_of(engine, child.id) == {"call": "cancelled"}
    assert await nodes_of(engine, grandchild.id) == {"hold": "cancelled"}
    for one in (child.id, grandchild.id):
        await is_over(engine, one)
    await stays(engine, top, cancelled)


async def test_a_run_is_cancelled_without_the_runs_it_does_not_wait_for(engine: Engine) -> None:
    called = (await engine.publish(then_next(node("hold", "delay", seconds=3_600)))).id
    call = node("call", "call_automation", automationId=str(called), wait=False)
    hold = node("hold", "delay", seconds=3_600)
    caller = (await engine.publish(graph(call, hold, edges=[("call", "hold")]))).id
    run_id = await engine.start(caller)
    await engine.until(caller, run_id, lambda run: run.status == "waiting")
    await stays(engine, caller, await engine.cancel(caller, run_id))
    async with engine.database.transaction() as work:
        (free,) = await work.rows(
            select(automation_run).where(automation_run.c.automation_id == called)
        )
    assert free.status in OPEN_RUN
    assert free.chain == [run_id]
    await engine.cancel(called, free.id)


@pytest.mark.long
async def test_a_called_run_in_line_for_a_slot_goes_with_its_caller(engine: Engine) -> None:
    limits = {"kind": "automation_called", "concurrency": {"limit": 1}}
    shape = then_next(node("hold", "delay", seconds=3_600))
    called = (await engine.publish(shape, triggerConfig=limits)).id
    callers = [await calling(engine, called) for _ in range(2)]
    first, second = [await engine.start(caller) for caller in callers]

    async def first_holds() -> bool:
        return [one.status for one in await children_of(engine, first)] == ["waiting"] or [
            one.status for one in await children_of(engine, second)
        ] == ["waiting"]

    async def both_are_there() -> bool:
        children = [await children_of(engine, one) for one in (first, second)]
        return all(children) and await first_holds()

    await eventually(both_are_there, what="one run that holds the slot and one in line")
    runs = {one: (await children_of(engine, one))[0] for one in (first, second)}
    holder, waiter = sorted(runs, key=lambda one: runs[one].status == "queued")
    assert (runs[waiter].status, runs[waiter].admitted_at) == ("queued", None)
    caller_of = dict(zip((first, second), callers, strict=True))
    await engine.cancel(caller_of[holder], holder)

    async def waiter_holds() -> bool:
        return (await children_of(engine, waiter))[0].status == "waiting"

    await eventually(waiter_holds, what="the slot of the one in line")
    cancelled = await engine.cancel(caller_of[waiter], waiter)
    assert (await children_of(engine, waiter))[0].status == "cancelled"
    await stays(engine, caller_of[waiter], cancelled)


@pytest.mark.long
async def test_a_run_that_ends_takes_along_what_it_waits_for(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(400))
    called = (await engine.publish(then_next(node("hold", "delay", seconds=3_600)))).id
    shape = graph(
        node("call", "call_automation", automationId=str(called)),
        node("pause", "delay", seconds=1),
        node("fall", "http_request", method="GET", url=endpoint.url),
        edges=[("pause", "fall")],
    )
    caller = (await engine.publish(shape)).id
    run = await engine.ended(caller, await engine.start(caller))
    assert run.status == "failed"
    (child,) = await children_of(engine, run.id)
    assert child.status == "cancelled"
    await is_over(engine, child.id)


@pytest.mark.long
async def test_fifty_cancels_at_once_are_one(engine: Engine) -> None:
    automation = await engine.publish(then_next(node("it", "delay", seconds=3_600)))
    run_id = await engine.start(automation.id)
    answers = await asyncio.gather(*(engine.cancel(automation.id, run_id) for _ in range(50)))
    assert len({answer.model_dump_json() for answer in answers}) == 1
    await stays(engine, automation.id, answers[0])
