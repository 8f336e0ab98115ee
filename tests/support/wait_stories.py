"""Histories of runs that wait for a person, or for another run; see record_histories.py."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from models.automation.automation_runs.calls import called_run_id
from models.core.base import Id
from models.data.databases.shapes import RenameField
from models.data.fields.queries import load_catalog
from models.workspace.impact.fields import rename_field
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, Json, by_node, graph, node
from tests.support.triggers import Listening
from tests.support.waits import approval, event, held, resume, waiting


def calling(automation_id: Id) -> Json:
    """A run that waits for a run of another automation."""
    return graph(
        node("call", "call_automation", automationId=str(automation_id)),
        node("then", "transform", output={}),
        node("otherwise", "transform", output={}),
        edges=[("call", "then"), ("call", "otherwise", "failure")],
    )


def _workflow(place: tuple[Id, Id]) -> str:
    return WorkflowKind.AUTOMATION_RUN.workflow_id(place[1])


async def approved(engine: Engine) -> str:
    """An approval that is decided long before its time is over."""
    content = approval(engine.actor, allowSelf=True, timeoutSeconds=600)
    place = await waiting(engine, content)
    await resume(engine, place, "ask", decision="approved")
    return _workflow(place)


async def moved(engine: Engine) -> str:
    """An approval during which a field that the next node names is renamed."""
    goods = await Listening.within(engine.database, engine.actor)
    await goods.create("A", price=7)
    content = approval(engine.actor, allowSelf=True, timeoutSeconds=600)
    query = {"filter": {"field": "price", "op": "gt", "value": 5}}
    content["nodes"].append(node("read", "query_records", databaseId=str(goods.table), query=query))
    content["edges"].append({"from": "ask", "to": "read", "outcome": "approved"})
    place = await waiting(engine, content)
    async with engine.database.transaction() as work:
        catalog = await load_catalog(work, engine.actor.workspace_id, [goods.table])
        field_id = catalog[goods.table]["price"].id
        body = RenameField(key="cost", rewrite=True)
        await rename_field(work, engine.actor, goods.table, field_id, body)
    await resume(engine, place, "ask", decision="approved")
    run = await engine.ended(*place)
    assert by_node(run)["read"].output["records"][0]["data"]["cost"] == 7
    return _workflow(place)


async def out_of_time(engine: Engine) -> str:
    """An event that does not come."""
    return _workflow(await waiting(engine, event(timeoutSeconds=1.0)))


async def resumed(engine: Engine) -> str:
    """An event without end of time, beside a delay."""
    content = event()
    content["nodes"].append(node("pause", "delay", seconds=0.5))
    automation = await engine.publish(content)
    place = (automation.id, await engine.start(automation.id))
    await engine.until(*place, lambda run: run.status == "waiting")
    await asyncio.sleep(1)
    await resume(engine, place, "hear", data={})
    return _workflow(place)


async def resumed_early(engine: Engine) -> str:
    """An event that came before its node waited."""
    content = event()
    content["nodes"].append(node("first", "delay", seconds=0.5))
    content["edges"].append({"from": "first", "to": "hear"})
    place = await waiting(engine, content)
    await resume(engine, place, "hear", data={})
    return _workflow(place)


async def signalled_in_vain(engine: Engine) -> str:
    """A signal without a resolution, and then one with."""
    place = await waiting(engine, event())
    handle = engine.client.get_workflow_handle(_workflow(place))
    await handle.signal("resolve_node", args=["hear", ""])
    await asyncio.sleep(1)
    await resume(engine, place, "hear", data={})
    return _workflow(place)


async def called(engine: Engine, *, succeeds: bool) -> str:
    """A called automation that ends by itself."""
    end = node("end", "stop", result="succeeded" if succeeds else "failed")
    other = await engine.publish(graph(end))
    return WorkflowKind.AUTOMATION_RUN.workflow_id((await engine.run(calling(other.id))).id)


async def called_and_terminated(engine: Engine) -> str:
    """A called automation whose execution an operator terminates."""
    other = await engine.publish(event())
    place = await waiting(engine, calling(other.id))
    child_id = called_run_id(place[1], "call", "")
    await engine.until(other.id, child_id, lambda run: run.status == "waiting")
    workflow_id = WorkflowKind.AUTOMATION_RUN.workflow_id(child_id)
    await engine.client.get_workflow_handle(workflow_id).terminate()
    return _workflow(place)


async def called_elsewhere(engine: Engine) -> str:
    """A called automation whose run is under way already."""
    other = await engine.publish(event())
    content = calling(other.id)
    content["nodes"].append(held("first", "delay", {"seconds": 0.5}))
    content["edges"].append({"from": "first", "to": "call"})
    automation = await engine.publish(content)
    run_id = await engine.start(automation.id)
    child_id = called_run_id(run_id, "call", "")
    workflow_id = WorkflowKind.AUTOMATION_RUN.workflow_id(child_id)
    await engine.client.start_workflow("Nothing", id=workflow_id, task_queue="nobody")
    await engine.until(
        automation.id, run_id, lambda run: "call" in by_node(run) and run.status == "waiting"
    )
    await engine.cancel(other.id, child_id)
    return _workflow((automation.id, run_id))


async def cancelled_while_called(engine: Engine) -> str:
    """A run cancelled by the API while it waits for another one."""
    other = await engine.publish(event())
    place = await waiting(engine, calling(other.id))
    await engine.cancel(*place)
    return _workflow(place)


WAIT_STORIES: dict[str, Callable[[Engine], Awaitable[str]]] = {
    "approval": approved,
    "approval-of-a-moved-run": moved,
    "event": resumed,
    "event-out-of-time": out_of_time,
    "event-early": resumed_early,
    "event-signalled-in-vain": signalled_in_vain,
    "call": partial(called, succeeds=True),
    "call-failed": partial(called, succeeds=False),
    "call-terminated": called_and_terminated,
    "call-elsewhere": called_elsewhere,
    "call-cancelled": cancelled_while_called,
}
