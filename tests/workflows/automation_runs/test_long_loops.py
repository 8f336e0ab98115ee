"""Loops that are long, cancelled, interrupted or begun in their middle (ADR 0019)."""

import asyncio
import gc
from typing import Any

import psutil
import psycopg
import pytest
from sqlalchemy import func, select
from temporalio.client import WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey

from activities.automation_runs import quick_nodes
from activities.contracts import NodeEnd
from models.automation.automation_runs import retries
from models.automation.automation_runs.rules import OPEN_NODE, OPEN_RUN
from models.automation.automation_runs.shapes import RetryRun
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import Id
from models.data.records.tables import record
from runtime.temporal.workflow_kinds import SearchAttribute, WorkflowKind
from tests.support.endpoint import Serve, never, once, reply
from tests.support.engine import Engine, by_node, graph, node
from tests.support.patience import ENOUGH, eventually, promised
from tests.workflows.automation_runs.test_loops import (
    ITEM,
    Crowd,
    around,
    binding,
    loop,
    outputs,
    step,
)
from workflows import policies

pytestmark = pytest.mark.takes(seconds=60)

Json = dict[str, Any]


async def finished(engine: Engine, run_id: Id) -> str:
    """How the run ended, without reading its many rows over and over."""

    async def is_over() -> bool:
        return await status(engine, run_id) not in OPEN_RUN

    await eventually(is_over, what=f"the end of {run_id}")
    return await status(engine, run_id)


async def status(engine: Engine, run_id: Id) -> str:
    async with engine.database.transaction() as work:
        of_run = select(automation_run.c.status).where(automation_run.c.id == run_id)
        return str(await work.scalar(of_run))


async def rows(engine: Engine, run_id: Id, *conditions: Any) -> int:
    async with engine.database.transaction() as work:
        counted = select(func.count()).select_from(node_run)
        return int(await work.scalar(counted.where(node_run.c.run_id == run_id, *conditions)))


async def executions(engine: Engine, run_id: Id) -> list[Any]:
    """The executions of the chunks of a run, the continued ones one by one."""
    query = f"WorkflowId STARTS_WITH '{WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)}/loop/'"
    return [listed async for listed in engine.client.list_workflows(query)]


@pytest.mark.long
async def test_more_than_a_hundred_items_run_in_executions_of_their_own(
    engine: Engine, serve: Serve
) -> None:
    crowd = Crowd(0.02)
    endpoint = await serve(crowd)
    automation = await engine.publish(
        around(
            node("call", "http_request", url=endpoint.url),
            step("seen", binding("expression", "[item, nodes.call.status]")),
            edges=[("call", "seen")],
            collect="seen",
            parallelism=20,
        )
    )
    run_id = await engine.start(automation.id, {"items": list(range(250))})
    assert await finished(engine, run_id) == "succeeded"
    run = await engine.get(automation.id, run_id)
    assert run.output is not None
    output = run.output["after"]["v"]
    assert output["results"] == [{"v": [index, 200]} for index in range(250)]
    assert (output["count"], output["failed"]) == (250, 0)
    assert len(endpoint.requests) == 250
    assert crowd.most <= 20
    handle = engine.client.get_workflow_handle(run.metadata["temporalWorkflowId"])
    assert len((await handle.fetch_history()).events) < 30


@pytest.mark.long
async def test_a_part_that_grows_long_continues_as_new(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "LONG_HISTORY", 150)
    endpoint = await serve(reply())
    automation = await engine.publish(
        around(
            node("call", "http_request", url=endpoint.url, body={"index": ITEM}, method="POST"),
            parallelism=10,
            collect="call",
        )
    )
    run_id = await engine.start(automation.id, {"items": list(range(130))})
    assert await finished(engine, run_id) == "succeeded"
    assert sorted(one.json()["index"] for one in endpoint.requests) == list(range(130))

    async def is_listed() -> bool:
        return len(await executions(engine, run_id)) > 2

    await eventually(is_listed, what="a chunk that continued as new")
    workspace = SearchAttributeKey.for_keyword(SearchAttribute.WORKSPACE_ID)
    found = {one.typed_search_attributes.get(workspace) for one in await executions(engine, run_id)}
    assert found == {str(engine.actor.workspace_id)}


@pytest.mark.long
@pytest.mark.parametrize("long", [False, True])
async def test_a_repeat_may_be_long(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    monkeypatch.setattr(policies, "LONG_HISTORY", 100)
    endpoint = await serve(reply())
    automation = await engine.publish(
        graph(
            node("again", "repeat", **{"while": "index < 40"}, maxIterations=500 if long else 50),
            node("call", "http_request", url=endpoint.url),
            edges=[("again", "call", "item")],
        )
    )
    run_id = await engine.start(automation.id)
    assert await finished(engine, run_id) == "succeeded"
    run = await engine.get(automation.id, run_id)
    assert run.output is not None
    assert (run.output["again"]["count"], len(endpoint.requests)) == (40, 40)
    assert run.output["again"]["limitReached"] is False


@pytest.mark.long
@pytest.mark.parametrize("on_error", ["stop", "continue"])
async def test_failures_in_executions_of_their_own(
    engine: Engine, serve: Serve, on_error: str
) -> None:
    good, bad = await serve(reply()), await serve(reply(404))
    urls = [bad.url if index in (7, 90) else good.url for index in range(120)]
    automation = await engine.publish(
        around(node("call", "http_request", url=ITEM), onItemError=on_error, parallelism=10)
    )
    run_id = await engine.start(automation.id, {"items": urls})
    ended = await finished(engine, run_id)
    run = await engine.get(automation.id, run_id)
    if on_error == "stop":
        assert (ended, run.error) == ("failed", "loop: Item 7: call: The server returned 404.")
        assert await rows(engine, run_id, node_run.c.status.in_(OPEN_NODE)) == 0
    else:
        assert run.output is not None
        output = run.output["after"]["v"]
        assert (ended, output["failed"], output["succeeded"]) == ("succeeded", 2, 118)


@pytest.mark.long
async def test_waits_in_executions_of_their_own(engine: Engine) -> None:
    automation = await engine.publish(
        around(
            node("wait", "delay", seconds=0.2),
            step("then", ITEM),
            edges=[("wait", "then")],
            parallelism=50,
            collect="then",
        )
    )
    run_id = await engine.start(automation.id, {"items": list(range(101))})
    assert await finished(engine, run_id) == "succeeded"
    run = await engine.get(automation.id, run_id)
    assert run.output is not None
    assert run.output["after"]["v"]["results"] == [{"v": index} for index in range(101)]


@pytest.mark.long
@pytest.mark.parametrize("items", [5, 120])
async def test_cancel_inside_a_loop_is_final_at_once(
    engine: Engine, serve: Serve, items: int
) -> None:
    endpoint = await serve(never)
    automation = await engine.publish(
        around(node("call", "http_request", url=endpoint.url), parallelism=3)
    )
    run_id = await engine.start(automation.id, {"items": list(range(items))})

    async def are_out() -> bool:
        return len(endpoint.requests) == 3

    await eventually(are_out, what="three calls")
    cancelled = await engine.cancel(automation.id, run_id)
    assert {one.status for one in cancelled.node_runs} == {"cancelled"}
    await asyncio.wait_for(endpoint.left.wait(), promised(20))
    await all_ended(engine, run_id)
    assert len(endpoint.requests) == 3
    assert await engine.get(automation.id, run_id) == cancelled


async def all_ended(engine: Engine, run_id: Id) -> None:
    """Wait until no execution of the run is open, those of its chunks included."""
    run = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))

    async def are_ended() -> bool:
        chunks = await executions(engine, run_id)
        of_run = (await run.describe()).status
        statuses = [of_run, *(chunk.status for chunk in chunks)]
        return WorkflowExecutionStatus.RUNNING not in statuses

    await eventually(are_ended, what="the end of all executions")


@pytest.mark.long
async def test_cancel_of_a_quick_loop(engine: Engine, table: Id) -> None:
    automation = await engine.publish(
        around(
            node("make", "create_record", databaseId=str(table), data={"code": "A"}),
            parallelism=5,
        )
    )
    run_id = await engine.start(automation.id, {"items": list(range(5_000))})

    async def has_begun() -> bool:
        return await rows(engine, run_id, node_run.c.node_id == "make") > 20

    await eventually(has_begun, what="the first records")
    await engine.cancel(automation.id, run_id)
    made = await records(engine, table)
    await all_ended(engine, run_id)
    assert await records(engine, table) == made < 5_000
    assert await rows(engine, run_id, node_run.c.status.in_(OPEN_NODE)) == 0


async def records(engine: Engine, table: Id) -> int:
    async with engine.database.transaction() as work:
        made = select(func.count()).where(record.c.database_id == table)
        return int(await work.scalar(made))


async def test_a_terminated_run_leaves_no_execution(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(never)
    automation = await engine.publish(
        around(node("call", "http_request", url=endpoint.url), parallelism=2)
    )
    run_id = await engine.start(automation.id, {"items": list(range(120))})
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
    await handle.terminate(reason="The test wants it so.")
    await all_ended(engine, run_id)
    await engine.cancel(automation.id, run_id)


async def test_a_terminated_chunk_fails_the_loop(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(never)
    automation = await engine.publish(
        around(node("call", "http_request", url=endpoint.url), parallelism=2)
    )
    run_id = await engine.start(automation.id, {"items": list(range(120))})
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    run_workflow = WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)
    chunk = engine.client.get_workflow_handle(f"{run_workflow}/loop/loop//0")
    await chunk.terminate(reason="The test wants it so.")
    run = await engine.ended(automation.id, run_id)
    assert (run.status, run.error) == ("failed", "loop: Its iterations were ended externally.")


@pytest.mark.long
async def test_a_quick_loop_continues_where_a_lost_turn_left_it(
    engine: Engine, table: Id, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database goes away in the middle, twice; every record is made once."""
    execute = quick_nodes.QuickLoops._end
    calls = 0

    async def failing(self: Any, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        end = await execute(self, *given)
        if calls in (40, 90):
            raise psycopg.OperationalError("gone")
        return end

    monkeypatch.setattr(quick_nodes.QuickLoops, "_end", failing)
    run = await engine.run(
        around(
            node("make", "create_record", databaseId=str(table), data={"code": ITEM}),
            step("id", binding("node", "make.record.id")),
            edges=[("make", "id")],
            parallelism=4,
            collect="id",
        ),
        {"items": [f"c{index}" for index in range(60)]},
    )
    assert run.status == "succeeded", run.error
    assert await records(engine, table) == 60
    assert run.output is not None
    ids = [one["v"] for one in run.output["after"]["v"]["results"]]
    assert len(set(ids)) == 60


async def test_a_quick_loop_takes_turns(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of no time: every local activity runs a node or two, and nothing runs twice."""
    ended: list[tuple[str, str]] = []
    execute = quick_nodes.QuickLoops._end

    async def noted(self: Any, one: Any, ref: Any) -> Any:
        end = await execute(self, one, ref)
        if isinstance(end, NodeEnd):
            ended.append((ref.node_id, ref.scope_key))
        one.turn.hurry(0)
        return end

    monkeypatch.setattr(quick_nodes.QuickLoops, "_end", noted)
    run = await engine.run(
        graph(
            loop("outer", [[1, 2], [3, 4], [5, 6]], parallelism=2, collect="sum"),
            loop("inner", ITEM, parallelism=2, collect="twice"),
            step("twice", binding("expression", "item * 2")),
            step("sum", binding("node", "inner.results[*].v")),
            edges=[
                ("outer", "inner", "item"),
                ("inner", "twice", "item"),
                ("inner", "sum", "done"),
            ],
        )
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    results = run.output["outer"]["results"]
    assert results == [{"v": [2, 4]}, {"v": [6, 8]}, {"v": [10, 12]}]
    assert len(run.node_runs) == 1 + 3 + 6 + 3


@pytest.mark.long
async def test_five_thousand_node_executions_end(engine: Engine, serve: Serve) -> None:
    """1,000 items through an outside node and four quick ones: no history grows too long."""
    endpoint = await serve(reply(200, {"ok": True}))
    automation = await engine.publish(
        around(
            step("a", ITEM),
            node("call", "http_request", url=endpoint.url),
            step("b", binding("node", "call.status")),
            step("c", binding("node", "b.v")),
            step("d", binding("expression", "nodes.a.v + nodes.c.v")),
            edges=[("a", "call"), ("call", "b"), ("b", "c"), ("c", "d")],
            parallelism=50,
            collect="d",
        )
    )
    run_id = await engine.start(automation.id, {"items": list(range(1_000))})
    assert await finished(engine, run_id) == "succeeded"
    assert await rows(engine, run_id, node_run.c.scope_key != "") == 5_000
    run = await engine.get(automation.id, run_id)
    assert run.output is not None
    assert run.output["after"]["v"]["results"] == [{"v": 200 + index} for index in range(1_000)]
    for listed in await executions(engine, run_id):
        handle = engine.client.get_workflow_handle(listed.id, run_id=listed.run_id)
        assert (await handle.describe()).history_length < 10_000


@pytest.mark.long
async def test_ten_thousand_quick_items_leave_memory_flat(engine: Engine) -> None:
    automation = await engine.publish(
        around(step("body", binding("expression", "item + 1")), parallelism=5)
    )
    small = await engine.start(automation.id, {"items": list(range(1_000))})
    assert await finished(engine, small) == "succeeded"
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    run_id = await engine.start(automation.id, {"items": list(range(10_000))})
    assert await finished(engine, run_id) == "succeeded"
    grown = (process.memory_info().rss - before) / 1024 / 1024
    assert grown < 40, f"{grown:.0f} MiB"
    assert await rows(engine, run_id, node_run.c.scope_key != "") == 10_000
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
    assert (await handle.describe()).history_length < 500


FROM_NODE = around(
    step("first", binding("expression", "'f' + item")),
    step("second", binding("expression", "nodes.first.v + '2'")),
    edges=[("first", "second")],
    collect="second",
)


async def test_a_run_from_a_node_inside_a_loop_runs_that_iteration_alone(engine: Engine) -> None:
    automation = await engine.publish(FROM_NODE)
    first = await engine.ended(
        automation.id, await engine.start(automation.id, {"items": ["a", "b", "c"]})
    )
    run = await engine.from_node(
        automation.id, nodeId="second", replayOfRunId=str(first.id), scope="loop:1"
    )
    assert run.status == "succeeded", run.error
    assert outputs(run, "second") == {"loop:1": "fb2"}
    assert run.output is not None
    assert run.output["after"]["v"] == {
        "count": 1,
        "succeeded": 1,
        "failed": 0,
        "results": [{"v": "fb2"}],
    }
    assert outputs(run, "first") == {}


async def test_a_run_from_a_node_inside_a_loop_takes_an_item_of_the_callers(engine: Engine) -> None:
    automation = await engine.publish(FROM_NODE)
    run = await engine.from_node(
        automation.id,
        nodeId="second",
        scope={"item": "mine", "index": 4},
        nodes={"first": {"v": "pinned"}},
    )
    assert run.status == "succeeded", run.error
    assert outputs(run, "second") == {"loop:4": "pinned2"}


@pytest.mark.parametrize("body", ["quick", "outside"])
async def test_an_item_of_the_callers_stands_for_items_that_cannot_be_had(
    engine: Engine, serve: Serve, body: str
) -> None:
    endpoint = await serve(reply())
    rows_of_trigger = binding("expression", "trigger.rows")
    seen = binding("expression", "[item, index]")
    automation = await engine.publish(
        graph(
            step("start"),
            loop("loop", rows_of_trigger, parallelism=binding("expression", "1 + 1")),
            step("only", seen)
            if body == "quick"
            else node("only", "http_request", url=endpoint.url, method="POST", body={"v": seen}),
            edges=[("start", "loop"), ("loop", "only", "item")],
        )
    )
    run = await engine.from_node(automation.id, nodeId="only", scope={"item": 42, "index": 5})
    assert run.status == "succeeded", run.error
    assert by_node(run)["loop"].input == {"items": [None] * 5 + [42], "parallelism": 2}
    if body == "quick":
        assert outputs(run, "only") == {"loop:5": [42, 5]}
    else:
        assert [request.json() for request in endpoint.requests] == [{"v": [42, 5]}]
    without = await engine.from_node(automation.id, nodeId="only", scope={"index": 5})
    assert str(without.error).startswith("loop: rows not found in trigger")


async def test_an_item_of_the_callers_is_that_of_a_repeat_inside_the_loop(engine: Engine) -> None:
    automation = await engine.publish(
        graph(
            loop("loop", binding("expression", "trigger.rows")),
            node("again", "repeat", maxIterations=5),
            step("only", binding("expression", "[item, index]")),
            edges=[("loop", "again", "item"), ("again", "only", "item")],
        )
    )
    run = await engine.from_node(automation.id, nodeId="only", scope={"item": 42, "index": 2})
    assert run.status == "succeeded", run.error
    assert outputs(run, "only") == {"loop:0/again:2": [42, 2]}


async def test_a_run_from_a_loop_runs_it_whole(engine: Engine) -> None:
    automation = await engine.publish(FROM_NODE)
    run = await engine.from_node(automation.id, nodeId="loop", triggerPayload={"items": ["x", "y"]})
    assert run.status == "succeeded", run.error
    assert outputs(run, "second") == {"loop:0": "fx2", "loop:1": "fy2"}


async def test_a_slow_item_beside_quick_ones(engine: Engine, serve: Serve) -> None:
    """An inline loop's other items continue while one is slow."""
    others_ended = asyncio.Event()
    slow, fast = await serve(once(others_ended, reply())), await serve(reply())
    urls = [slow.url, *[fast.url] * 9]
    automation = await engine.publish(around(node("call", "http_request", url=ITEM), parallelism=2))
    run_id = await engine.start(automation.id, {"items": urls})

    async def have_ended() -> bool:
        called = (node_run.c.node_id == "call", node_run.c.status == "succeeded")
        return await rows(engine, run_id, *called) == 9

    await eventually(have_ended, what="the end of the quick items")
    others_ended.set()
    run = await engine.ended(automation.id, run_id)
    assert run.status == "succeeded", run.error
    ended = [one for one in run.node_runs if one.node_id == "call"]
    assert max(ended, key=lambda one: one.completed_at or 0).scope_key == "loop:0"
    assert by_node(run)["loop"].status == "succeeded"


@pytest.mark.parametrize(
    ("parallelism", "most"), [(1, 1), (3, 3), (50, quick_nodes.CONCURRENT_TRANSACTIONS)]
)
async def test_quick_items_side_by_side(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, parallelism: int, most: int
) -> None:
    execute = quick_nodes.QuickLoops._end
    now, seen = 0, 0

    async def counted(self: Any, *given: Any) -> Any:
        nonlocal now, seen
        now += 1
        seen = max(seen, now)
        try:
            # As a node with an effect does, which waits for the database.
            await asyncio.sleep(0)
            return await execute(self, *given)
        finally:
            now -= 1

    monkeypatch.setattr(quick_nodes.QuickLoops, "_end", counted)
    run = await engine.run(around(step("body"), parallelism=parallelism), {"items": [0] * 60})
    assert (run.status, seen) == ("succeeded", most), run.error


async def retried(engine: Engine, automation_id: Id, run_id: Id) -> Any:
    """The end of a run that repeats what failed in another one."""
    async with engine.database.transaction() as work:
        body = RetryRun.model_validate({"from": "failed"})
        run = await retries.retry(work, engine.actor, automation_id, run_id, body)
    return await engine.ended(automation_id, run.id)


@pytest.mark.long
@pytest.mark.parametrize("long", [False, True])
async def test_a_retry_continues_with_the_items_that_failed(
    engine: Engine, serve: Serve, long: bool
) -> None:
    """What was done for the others is not done again, and still counts."""
    items = 110 if long else 5
    endpoint = await serve(reply(), reply(), reply(500), reply())
    automation = await engine.publish(
        around(
            node("call", "http_request", url=endpoint.url, method="POST", body={"item": ITEM}),
            step("seen", ITEM),
            edges=[("call", "seen")],
            parallelism=1,
            collect="seen",
        )
    )
    run_id = await engine.start(automation.id, {"items": list(range(items))})
    assert (await engine.ended(automation.id, run_id)).status == "failed"
    assert [one.json()["item"] for one in endpoint.requests] == [0, 1, 2]
    run = await retried(engine, automation.id, run_id)
    assert run.status == "succeeded", run.error
    assert [one.json()["item"] for one in endpoint.requests][3:] == list(range(2, items))
    assert run.output is not None
    output = run.output["after"]["v"]
    assert output["results"] == [{"v": index} for index in range(items)]
    assert (output["succeeded"], output["failed"]) == (items, 0)


async def test_a_retry_of_quick_items_repeats_no_record(engine: Engine, table: Id) -> None:
    """Nested, so that the inner loop is begun anew and its items are not."""
    failing_at_first = binding("expression", "run.source == 'replay' ? item : [1][index + 9]")
    automation = await engine.publish(
        graph(
            loop("outer", [["a", "b"], ["c"]]),
            loop("inner", ITEM, parallelism=1, collect="check"),
            node("make", "create_record", databaseId=str(table), data={"code": ITEM}),
            step("check", failing_at_first),
            edges=[("outer", "inner", "item"), ("inner", "make", "item"), ("make", "check")],
        )
    )
    run_id = await engine.start(automation.id)
    assert (await engine.ended(automation.id, run_id)).status == "failed"
    assert 1 <= await records(engine, table) <= 2
    run = await retried(engine, automation.id, run_id)
    assert run.status == "succeeded", run.error
    assert await records(engine, table) == 3


async def test_a_retry_with_other_items_begins_the_loop_anew(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(), reply(500), reply())
    items = binding("expression", "run.source == 'replay' ? [7, 8] : [1, 2, 3]")
    automation = await engine.publish(
        graph(
            loop("loop", items, parallelism=1),
            node("call", "http_request", url=endpoint.url, method="POST", body={"item": ITEM}),
            edges=[("loop", "call", "item")],
        )
    )
    run_id = await engine.start(automation.id)
    assert (await engine.ended(automation.id, run_id)).status == "failed"
    assert (await retried(engine, automation.id, run_id)).status == "succeeded"
    assert [one.json()["item"] for one in endpoint.requests] == [1, 2, 7, 8]
