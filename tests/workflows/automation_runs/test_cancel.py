"""Cancel at every stage: final at once, and nothing starts afterwards."""

import asyncio
import itertools
from typing import Any

import pytest
from sqlalchemy import func, select

from activities.automation_runs import outside_nodes, quick_nodes
from activities.automation_runs.nodes import resolution
from activities.automation_runs.nodes.resolution import ResolvedNode, resolve_parameters
from models.automation.automation_runs.rules import OPEN_NODE
from models.core.base import Id
from models.data.records.tables import record
from runtime.temporal.outbox import outbox
from tests.support.endpoint import Serve, never, reply
from tests.support.engine import Engine, graph, node
from tests.support.patience import ENOUGH, promised
from tests.support.run_rows import states

NEXT = node("next", "transform", output={})


async def workflow_status(engine: Engine, workflow_id: str) -> str:
    """How the execution stands, once it has ended or after a while."""
    handle = engine.client.get_workflow_handle(workflow_id)
    async with asyncio.timeout(ENOUGH):
        while True:
            status = (await handle.describe()).status
            if status is not None and status.name != "RUNNING":
                return status.name
            await asyncio.sleep(0.05)


async def test_cancel_while_queued_takes_the_start_back(engine: Engine) -> None:
    automation = await engine.publish(graph(NEXT))
    # One transaction, so that no relay sees the start in between.
    async with engine.database.transaction() as work:
        run_id = (await engine.accept(work, automation.id)).id
        cancelled = await engine.cancel_within(work, automation.id, run_id)
        left = await work.scalar(
            select(func.count()).select_from(outbox).where(outbox.c.subject_id == run_id)
        )
    assert (cancelled.status, states(cancelled), left) == ("cancelled", {"next": "cancelled"}, 0)
    assert [(one.attempt, one.started_at) for one in cancelled.node_runs] == [(0, None)]
    assert cancelled.completed_at is not None
    assert cancelled.started_at is None


@pytest.mark.long
async def test_cancel_while_a_call_is_out(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(never)
    automation = await engine.publish(
        graph(node("call", "http_request", url=endpoint.url), NEXT, edges=[("call", "next")])
    )
    run_id = await engine.start(automation.id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    cancelled = await engine.cancel(automation.id, run_id)
    assert (cancelled.status, states(cancelled)) == ("cancelled", {"call": "cancelled"})
    workflow_id = cancelled.metadata["temporalWorkflowId"]
    assert await workflow_status(engine, workflow_id) == "CANCELED"
    # The call itself is broken off with the next heartbeat.
    await asyncio.wait_for(endpoint.left.wait(), promised(20))
    await unchanged(engine, automation.id, run_id, cancelled.model_dump_json())


async def test_cancel_while_waiting(engine: Engine) -> None:
    automation = await engine.publish(
        graph(node("wait", "delay", seconds=600), NEXT, edges=[("wait", "next")])
    )
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    cancelled = await engine.cancel(automation.id, run_id)
    assert (cancelled.status, states(cancelled)) == ("cancelled", {"wait": "cancelled"})
    assert (cancelled.error, cancelled.output) == (None, None)
    assert cancelled.metadata["waiting"] == []
    workflow_id = cancelled.metadata["temporalWorkflowId"]
    assert await workflow_status(engine, workflow_id) == "CANCELED"
    await unchanged(engine, automation.id, run_id, cancelled.model_dump_json())


@pytest.mark.long
@pytest.mark.parametrize("kind", ["transform", "create_record", "http_request", "delay"])
async def test_a_node_on_its_way_to_the_gate_does_not_pass_it(
    engine: Engine, serve: Serve, table: Id, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    endpoint = await serve(reply())
    configs: dict[str, dict[str, Any]] = {
        "transform": {"output": {}},
        "create_record": {"databaseId": str(table), "data": {"code": "A"}},
        "http_request": {"url": endpoint.url, "method": "POST"},
        "delay": {"seconds": 600},
    }
    config = configs[kind]
    arrived, released = asyncio.Event(), asyncio.Event()

    async def held(*given: Any) -> ResolvedNode:
        arrived.set()
        await released.wait()
        return await resolve_parameters(*given)

    for module in (quick_nodes, outside_nodes, resolution):
        monkeypatch.setattr(module, "resolve_parameters", held)
    automation = await engine.publish(
        graph(node("it", kind, **config), NEXT, edges=[("it", "next")])
    )
    run_id = await engine.start(automation.id)
    await asyncio.wait_for(arrived.wait(), ENOUGH)
    cancelled = await engine.cancel(automation.id, run_id)
    assert (cancelled.status, states(cancelled)) == ("cancelled", {"it": "cancelled"})
    assert [(one.attempt, one.started_at) for one in cancelled.node_runs] == [(0, None)]
    released.set()
    await workflow_status(engine, cancelled.metadata["temporalWorkflowId"])
    await unchanged(engine, automation.id, run_id, cancelled.model_dump_json())
    assert endpoint.requests == []
    async with engine.database.transaction() as work:
        made = await work.scalar(select(func.count()).where(record.c.database_id == table))
    assert made == 0


@pytest.mark.long
async def test_a_finished_run_is_returned_unchanged(engine: Engine) -> None:
    for shape in (graph(NEXT), graph(node("halt", "stop", result="failed"))):
        automation = await engine.publish(shape)
        run = await engine.ended(automation.id, await engine.start(automation.id))
        before = run.model_dump_json()
        assert (await engine.cancel(automation.id, run.id)).model_dump_json() == before
        await unchanged(engine, automation.id, run.id, before)


async def test_an_operator_who_cancels_the_workflow_closes_the_run(engine: Engine) -> None:
    automation = await engine.publish(graph(node("wait", "delay", seconds=600)))
    run_id = await engine.start(automation.id)
    run = await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    await engine.client.get_workflow_handle(run.metadata["temporalWorkflowId"]).cancel()
    ended = await engine.ended(automation.id, run_id)
    assert (ended.status, ended.error) == ("cancelled", "Cancelled in Temporal.")
    assert states(ended) == {"wait": "cancelled"}


@pytest.mark.long
async def test_a_cancel_leaves_no_open_node(engine: Engine) -> None:
    """Cancels at moments spread over a run's life; what they answer is what stays."""
    names = [f"n{number}" for number in range(30)]
    automation = await engine.publish(
        graph(
            *(node(name, "transform", output={}) for name in names),
            edges=list(itertools.pairwise(names)),
        )
    )

    async def race(delay: float) -> None:
        run_id = await engine.start(automation.id)
        await asyncio.sleep(delay)
        answered = await engine.cancel(automation.id, run_id)
        assert answered.status in {"cancelled", "succeeded"}
        assert not set(states(answered).values()) & set(OPEN_NODE)
        await asyncio.sleep(0.3)
        assert await engine.get(automation.id, run_id) == answered

    await asyncio.gather(*(race(number * 0.01) for number in range(30)))


async def unchanged(engine: Engine, automation_id: Id, run_id: Id, before: str) -> None:
    """The run is the same, byte for byte, a while later and after one more cancel."""
    await asyncio.sleep(0.3)
    assert (await engine.get(automation_id, run_id)).model_dump_json() == before
    assert (await engine.cancel(automation_id, run_id)).model_dump_json() == before
