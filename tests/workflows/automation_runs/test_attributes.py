"""Attributes that nodes give: to their own run, and to a run that they call."""

from typing import Any

import pytest
from sqlalchemy import select

from models.automation.automation_runs.tables import automation_run
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, graph, node
from tests.support.run_rows import error_codes, states

pytestmark = pytest.mark.takes(seconds=15)

Json = dict[str, Any]

ORDER = {"type": "trigger", "value": "order"}


async def stored(engine: Engine, *conditions: Any) -> Json | None:
    async with engine.database.transaction() as work:
        row: Json | None = await work.scalar(select(automation_run.c.attributes).where(*conditions))
    return row


async def memo_of_run(engine: Engine, run_id: Any) -> Any:
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
    return await (await handle.describe()).memo()


async def test_nodes_add_to_the_attributes_of_their_run(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node("first", "transform", output={"n": 1}),
            node("left", "transform", output={"n": 2}, attributes={"order": ORDER, "by": "left"}),
            node("right", "transform", output={"n": 3}, attributes={"side": "right"}),
            node("last", "transform", output={"n": 4}, attributes={"by": "last", "none": None}),
            edges=[("first", "left"), ("first", "right"), ("left", "last")],
        ),
        {"order": 4711},
    )
    assert run.status == "succeeded", run.error
    assert run.output == {"right": {"n": 3}, "last": {"n": 4}}
    mine = automation_run.c.id == run.id
    attributes = {"order": "4711", "by": "last", "side": "right"}
    assert await stored(engine, mine) == attributes
    assert await memo_of_run(engine, run.id) == {"attributes": attributes}


async def test_a_node_that_gives_too_many_fails(engine: Engine) -> None:
    first = {f"a{number}": "x" for number in range(15)}
    second = {f"b{number}": "x" for number in range(6)}
    run = await engine.run(
        graph(
            node("first", "transform", output={}, attributes=first),
            node("second", "transform", output={}, attributes=second),
            edges=[("first", "second")],
        )
    )
    assert states(run) == {"first": "succeeded", "second": "failed"}
    assert await error_codes(engine, run) == {"second": "too_many_attributes"}
    assert await stored(engine, automation_run.c.id == run.id) == first


@pytest.mark.parametrize("wait", [True, False])
async def test_a_called_run_has_those_of_its_call(engine: Engine, wait: bool) -> None:
    called = await engine.publish(
        graph(node("a", "transform", output={})),
        triggerConfig={"kind": "automation_called"},
    )
    call = {"automationId": str(called.id), "wait": wait, "attributes": {"order": ORDER}}
    run = await engine.run(graph(node("call", "call_automation", **call)), {"order": "A-1"})
    assert run.status == "succeeded", run.error
    theirs = automation_run.c.automation_id == called.id
    assert await stored(engine, theirs) == {"order": "A-1"}
    async with engine.database.transaction() as work:
        run_id = await work.scalar(select(automation_run.c.id).where(theirs))
    assert await memo_of_run(engine, run_id) == {"attributes": {"order": "A-1"}}
