"""Automations that call automations: as children, in chains, with and without waiting."""

import asyncio
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select
from temporalio.client import WorkflowExecutionStatus

from models.automation.automation_runs import queries
from models.automation.automation_runs.acceptance import MAX_CHAIN
from models.automation.automation_runs.calls import Call, accept_call, called_run_id
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automation_runs.run_header import load_header
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.automations.commands import update_automation
from models.automation.automations.shapes import UpdateAutomation
from models.automation.run_overviews import overview
from models.core.base import Id
from models.messages.notifications.queries import notification
from runtime.errors import ValidationError
from runtime.temporal.outbox import AWAITED
from runtime.temporal.workflow_kinds import SearchAttribute, WorkflowKind
from tests.support.endpoint import Serve, never
from tests.support.engine import KEYS, Engine, Json, by_node, graph, node
from tests.support.patience import ENOUGH, found_when
from tests.support.run_rows import error_codes, runs_of
from tests.support.waits import event, held, publish, ways

pytestmark = pytest.mark.takes(seconds=15)

ADD = graph(
    node(
        "sum",
        "transform",
        output={"sum": {"type": "expression", "value": "trigger.a + trigger.b"}},
    )
)
SCHEMA = {
    "type": "object",
    "required": ["a", "b"],
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
}


def calling(automation_id: Id, **config: Any) -> Json:
    return graph(
        held("call", "call_automation", {"automationId": str(automation_id), **config}),
        node("then", "transform", output={"got": {"type": "node", "value": "call.output"}}),
        node("otherwise", "transform", output={}),
        edges=[("call", "then"), ("call", "otherwise", "failure")],
    )


async def one_run(engine: Engine, automation_id: Id) -> Any:
    return (await found_when(partial(runs_of, engine, automation_id), bool, "the start of a run"))[
        0
    ]


def execution(engine: Engine, run_id: Id) -> Any:
    return engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))


async def each_shows_the_other(engine: Engine, caller: AutomationRunDetail, called: Any) -> None:
    """Whether the caller waits or not."""
    async with engine.database.snapshot() as work:
        detail = await queries.detail(work, engine.actor, called.automation_id, called.id)
        below = await overview(work, engine.actor, called.id)
        above = await overview(work, engine.actor, caller.id)
    assert detail.metadata["parentRunId"] == below.run.metadata["parentRunId"] == str(caller.id)
    assert [(one.relation, one.run_id) for one in below.links] == [("parent", caller.id)]
    assert [(one.relation, one.run_id) for one in above.links] == [("child", called.id)]
    assert above.run.metadata.get("parentRunId") is None


@pytest.mark.parametrize("kind", ["automation_called", "manual"])
async def test_a_called_automation_gives_its_output(engine: Engine, kind: str) -> None:
    called = await engine.publish(ADD, triggerConfig={"kind": kind, "inputSchema": SCHEMA})
    run = await engine.run(
        calling(called.id, input={"a": 1, "b": {"type": "trigger", "value": "b"}}), {"b": 2}
    )
    assert (run.status, ways(run)) == ("succeeded", {"call", "then"}), run.error
    (child,) = await runs_of(engine, called.id)
    assert by_node(run)["call"].output == {
        "runId": str(child.id),
        "status": "succeeded",
        "output": {"sum": {"sum": 3}},
    }
    assert (child.source, child.parent_run_id, child.chain) == ("automation", run.id, [run.id])
    await each_shows_the_other(engine, run, child)
    assert child.id == called_run_id(run.id, "call", "")
    description = await execution(engine, child.id).describe()
    assert description.parent_id == WorkflowKind.AUTOMATION_RUN.workflow_id(run.id)
    found = {pair.key.name: pair.value for pair in description.typed_search_attributes}
    assert found[SearchAttribute.RESOURCE_ID] == str(called.id)
    assert found[SearchAttribute.RUN_SOURCE] == "automation"
    assert found[SearchAttribute.WORKSPACE_ID] == str(engine.actor.workspace_id)
    info = description.raw_description.workflow_execution_info
    # Its turn is its caller's, which a person waits for.
    assert (info.priority.fairness_key, info.priority.fairness_weight) == (
        f"{engine.actor.workspace_id}/automation-run",
        AWAITED,
    )
    assert not info.priority.priority_key
    assert await description.static_summary() == "Test · v1 · automation"


async def test_the_caller_waits_while_the_called_automation_runs(engine: Engine) -> None:
    called = await engine.publish(event(eventKey="go on"))
    caller = await engine.publish(calling(called.id))
    run_id = await engine.start(caller.id)
    run = await engine.until(caller.id, run_id, lambda run: run.status == "waiting")
    assert run.metadata["waiting"] == [
        {"nodeId": "call", "scopeKey": "", "reason": "call_automation"}
    ]
    child = await one_run(engine, called.id)
    await engine.until(called.id, child.id, lambda run: run.status == "waiting")
    assert await publish(engine, "go on", n=1) == 1
    run = await engine.ended(caller.id, run_id)
    assert run.output == {"then": {"got": {"then": {"got": {"n": 1}}}}}


async def test_a_caller_that_does_not_wait_continues(engine: Engine) -> None:
    called = await engine.publish(event(eventKey="later"))
    run = await engine.run(calling(called.id, wait=False))
    child = await one_run(engine, called.id)
    assert by_node(run)["call"].output == {"runId": str(child.id), "status": "queued"}
    assert (run.status, child.chain, child.parent_run_id) == ("succeeded", [run.id], None)
    await each_shows_the_other(engine, run, child)
    await engine.until(called.id, child.id, lambda run: run.status == "waiting")
    await engine.cancel(called.id, child.id)


async def test_a_failure_of_the_called_automation_is_the_nodes(engine: Engine) -> None:
    broken = graph(node("halt", "stop", result="failed", message="Out of tea."))
    called = await engine.publish(broken)
    run = await engine.run(calling(called.id))
    assert (run.status, ways(run)) == ("succeeded", {"otherwise"})
    assert by_node(run)["call"].error == "halt: Out of tea."
    assert await error_codes(engine, run) == {"call": "called_run_failed"}


@pytest.mark.parametrize(
    ("called", "config", "code"),
    [
        ({"enabled": False}, {}, "not_runnable"),
        ({"triggerConfig": {"kind": "webhook"}}, {}, "not_callable"),
        (
            {"triggerConfig": {"kind": "manual", "inputSchema": SCHEMA}},
            {"input": {"type": "trigger", "value": "input"}},
            "validation_error",
        ),
    ],
)
async def test_an_automation_that_cannot_be_called_fails_the_node(
    engine: Engine, called: Json, config: Json, code: str
) -> None:
    other = await engine.publish(ADD, **called)
    run = await engine.run(calling(other.id, **config), {"input": {"a": "x"}})
    assert (ways(run), await error_codes(engine, run)) == ({"otherwise"}, {"call": code})
    assert await runs_of(engine, other.id) == []


async def test_an_input_that_is_never_taken_is_not_published(engine: Engine) -> None:
    other = await engine.publish(ADD, triggerConfig={"kind": "manual", "inputSchema": SCHEMA})
    with pytest.raises(ValidationError, match=r"config\.input"):
        await engine.publish(calling(other.id, input={"a": "x"}))


async def test_a_foreign_automation_is_not_called(engine: Engine) -> None:
    content = calling(Id(int=7))
    content["nodes"][0]["config"]["automationId"] = {"type": "trigger", "value": "id"}
    run = await engine.run(content, {"id": str(Id(int=7))})
    assert await error_codes(engine, run) == {"call": "not_runnable"}


@pytest.mark.long
@pytest.mark.parametrize("wait", [True, False])
async def test_calls_in_a_circle_end(engine: Engine, wait: bool) -> None:
    """An automation that calls itself: eight runs lead to one another, and one more is not made."""
    again = {"type": "trigger", "value": "self"}
    config = {"automationId": again, "input": {"self": again}, "wait": wait}
    content = graph(held("call", "call_automation", config))
    automation = await engine.publish(content)
    run_id = await engine.start(automation.id, {"self": str(automation.id)})
    await engine.ended(automation.id, run_id)
    async with asyncio.timeout(ENOUGH):
        while True:
            found = await runs_of(engine, automation.id)
            if all(row.status not in OPEN_RUN for row in found):
                break
            await asyncio.sleep(0.05)
    assert [len(row.chain) for row in found] == list(range(MAX_CHAIN))
    last = await engine.get(automation.id, found[-1].id)
    assert await error_codes(engine, last) == {"call": "chain_too_long"}
    assert {row.status for row in found} == ({"failed"} if wait else {"succeeded", "failed"})
    async with engine.database.transaction() as work:
        told = await work.rows(
            select(notification.c.user_id).where(
                notification.c.kind == "automation_loop", notification.c.run_id == last.id
            )
        )
    assert [row.user_id for row in told] == [engine.actor.user_id]


@pytest.mark.long
async def test_an_output_that_is_too_large_fails_the_node_of_a_run_that_continues(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(never)
    half = {"v": "x" * 600_000}
    called = await engine.publish(
        graph(node("one", "transform", output=half), node("two", "transform", output=half))
    )
    caller = await engine.publish(
        graph(
            held("call", "call_automation", {"automationId": str(called.id)}),
            node("otherwise", "http_request", url=endpoint.url),
            edges=[("call", "otherwise", "failure")],
        )
    )
    run_id = await engine.start(caller.id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    run = await engine.get(caller.id, run_id)
    assert (run.status, await error_codes(engine, run)) == ("running", {"call": "output_too_large"})
    await engine.cancel(caller.id, run_id)


@pytest.mark.long
@pytest.mark.parametrize("wait", [True, False])
async def test_a_repeated_call_finds_its_run_after_changes_of_the_automation(
    engine: Engine, wait: bool
) -> None:
    inner = await engine.publish(event())
    run_id = await engine.start((outer := await engine.publish(event())).id)
    await engine.until(outer.id, run_id, lambda run: run.status == "waiting")
    async with engine.database.transaction() as work:
        header = await load_header(work, run_id)
        assert header is not None
        call = Call(header, "call", "", inner.id, {}, wait)
        first = await accept_call(work, call)
        body = UpdateAutomation.model_validate({"enabled": False})
        await update_automation(work, engine.actor, KEYS, inner.id, body)
        assert await accept_call(work, call) == first
    await engine.cancel(outer.id, run_id)
    await engine.cancel(inner.id, call.run_id)


@pytest.mark.long
async def test_cancel_reaches_the_called_run(engine: Engine) -> None:
    inner = await engine.publish(event())
    middle = await engine.publish(calling(inner.id))
    outer = await engine.publish(calling(middle.id))
    run_id = await engine.start(outer.id)
    deepest = await one_run(engine, inner.id)
    await engine.until(inner.id, deepest.id, lambda run: run.status == "waiting")
    await engine.cancel(outer.id, run_id)
    between = await one_run(engine, middle.id)
    assert (await engine.get(inner.id, deepest.id)).status == "cancelled"
    assert (await engine.get(middle.id, between.id)).status == "cancelled"
    for one in (run_id, between.id, deepest.id):
        await closed(engine, one, WorkflowExecutionStatus.CANCELED)


async def closed(engine: Engine, run_id: Id, status: WorkflowExecutionStatus) -> None:
    async with asyncio.timeout(ENOUGH):
        while (found := (await execution(engine, run_id).describe()).status) is not status:
            assert found is WorkflowExecutionStatus.RUNNING
            await asyncio.sleep(0.05)


@pytest.mark.long
async def test_a_called_run_that_is_cancelled_fails_the_node(engine: Engine) -> None:
    called = await engine.publish(event())
    caller = await engine.publish(calling(called.id))
    run_id = await engine.start(caller.id)
    child = await one_run(engine, called.id)
    await engine.until(called.id, child.id, lambda run: run.status == "waiting")
    await engine.cancel(called.id, child.id)
    run = await engine.ended(caller.id, run_id)
    assert ways(run) == {"otherwise"}
    assert await error_codes(engine, run) == {"call": "called_run_cancelled"}


@pytest.mark.long
@pytest.mark.parametrize("how", ["terminate", "cancel"])
async def test_an_operator_who_ends_the_child_fails_the_node(engine: Engine, how: str) -> None:
    called = await engine.publish(event())
    caller = await engine.publish(calling(called.id))
    run_id = await engine.start(caller.id)
    child = await one_run(engine, called.id)
    await engine.until(called.id, child.id, lambda run: run.status == "waiting")
    await getattr(execution(engine, child.id), how)()
    run = await engine.ended(caller.id, run_id)
    assert ways(run) == {"otherwise"}
    expected = {"terminate": "called_run_failed", "cancel": "called_run_cancelled"}[how]
    assert await error_codes(engine, run) == {"call": expected}
    ended = await engine.get(called.id, child.id)
    assert ended.status == {"terminate": "failed", "cancel": "cancelled"}[how]


@pytest.mark.long
async def test_a_caller_that_fails_elsewhere_ends_the_called_run(engine: Engine) -> None:
    called = await engine.publish(event())
    content = graph(
        node("call", "call_automation", automationId=str(called.id)),
        node("pause", "delay", seconds=1),
        node("halt", "stop", result="failed"),
        edges=[("pause", "halt")],
    )
    caller = await engine.publish(content)
    run = await engine.ended(caller.id, await engine.start(caller.id))
    assert (run.status, by_node(run)["call"].status) == ("failed", "cancelled")
    child = await one_run(engine, called.id)
    ended = await engine.ended(called.id, child.id)
    assert ended.status == "cancelled"
    await closed(engine, child.id, WorkflowExecutionStatus.CANCELED)


@pytest.mark.long
async def test_a_run_that_is_under_way_already_is_awaited(engine: Engine) -> None:
    """The reconciler may have started what the caller had only accepted."""
    called = await engine.publish(event())
    caller = await engine.publish(calling(called.id))
    async with engine.database.transaction() as work:
        run_id = (await engine.accept(work, caller.id)).id
        child_id = called_run_id(run_id, "call", "")
        # Before the caller itself can start.
        await engine.client.start_workflow(
            "Maintenance-of-nothing",
            id=WorkflowKind.AUTOMATION_RUN.workflow_id(child_id),
            task_queue="nobody",
        )
    run = await engine.until(
        caller.id, run_id, lambda run: "call" in by_node(run) and run.status == "waiting"
    )
    await engine.cancel(called.id, child_id)
    run = await engine.ended(caller.id, run_id)
    assert await error_codes(engine, run) == {"call": "called_run_cancelled"}
    await execution(engine, child_id).terminate()


@pytest.mark.long
async def test_a_simulated_test_calls_no_automation(engine: Engine) -> None:
    called = await engine.publish(ADD)
    automation_id = await engine.draft(calling(called.id))
    run = await engine.test(automation_id, simulate=True)
    assert by_node(run)["call"].output == {"simulated": True}
    assert await runs_of(engine, called.id) == []
    mocked = await engine.test(automation_id, mocks={"call": {"output": {"sum": 9}}})
    assert mocked.output == {"then": {"got": {"sum": 9}}}
