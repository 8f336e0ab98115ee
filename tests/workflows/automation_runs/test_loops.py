"""for_each and repeat in the engine: every kind of body, their limits and their ends (ADR 0019)."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from activities.automation_runs import quick_nodes, runs
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.core.base import Id
from tests.support.endpoint import Serve, never, once, reply
from tests.support.engine import Engine, by_node, graph, node
from tests.support.patience import eventually, promised
from tests.support.run_rows import error_codes
from tests.support.waits import publish
from tests.workflows.test_operators_view import handle_of, table_of_nodes

pytestmark = pytest.mark.takes(seconds=20)

Json = dict[str, Any]


def binding(type_: str, value: Any) -> Json:
    return {"type": type_, "value": value}


ITEM = binding("item", "")
INDEX = binding("item", "$index")


def step(id_: str, value: Any = None, **fields: Any) -> Json:
    return node(id_, "transform", output={"v": id_ if value is None else value}, **fields)


def loop(id_: str, items: Any, /, **config: Any) -> Json:
    return node(id_, "for_each", items=items, **config)


def outputs(run: AutomationRunDetail, node_id: str) -> Json:
    """What a body node gave in each iteration that it succeeded in."""
    return {
        one.scope_key: one.output["v"]
        for one in run.node_runs
        if one.node_id == node_id and one.status == "succeeded" and one.output is not None
    }


def around(*body: Json, edges: Any = (), **config: Any) -> Json:
    """`loop` over the trigger's items with this body, and `after` it."""
    return graph(
        loop("loop", binding("trigger", "items"), **config),
        *body,
        step("after", binding("node", "loop")),
        edges=[("loop", body[0]["id"], "item"), ("loop", "after", "done"), *edges],
    )


async def test_a_quick_body_runs_once_per_item(engine: Engine) -> None:
    run = await engine.run(
        around(
            step("twice", binding("expression", "item * 2 + index")),
            step("text", binding("template", "{{nodes.twice.v}}!")),
            edges=[("twice", "text")],
            collect="text",
        ),
        {"items": [10, 20, 30]},
    )
    assert run.status == "succeeded", run.error
    assert outputs(run, "twice") == {"loop:0": 20, "loop:1": 41, "loop:2": 62}
    results = [{"v": "20!"}, {"v": "41!"}, {"v": "62!"}]
    assert run.output == {
        "after": {"v": {"count": 3, "succeeded": 3, "failed": 0, "results": results}}
    }


async def test_an_outside_body_runs_once_per_item(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200, {"ok": True}))
    run = await engine.run(
        around(
            node("call", "http_request", method="POST", url=endpoint.url, body={"item": ITEM}),
            step("seen", binding("expression", "[item, nodes.call.status]")),
            edges=[("call", "seen")],
            collect="seen",
            parallelism=2,
        ),
        {"items": ["a", "b", "c"]},
    )
    assert run.status == "succeeded", run.error
    assert sorted(one.json()["item"] for one in endpoint.requests) == ["a", "b", "c"]
    keys = {one.headers["idempotency-key"] for one in endpoint.requests}
    assert keys == {f"{run.id}:call:loop:{index}" for index in range(3)}
    results = [{"v": ["a", 200]}, {"v": ["b", 200]}, {"v": ["c", 200]}]
    assert run.output["after"]["v"]["results"] == results


async def test_a_waiting_body_shows_the_run_as_waiting(engine: Engine) -> None:
    key = "a waiting body"
    automation = await engine.publish(
        around(node("wait", "wait_event", eventKey=key), step("then"), edges=[("wait", "then")])
    )
    run_id = await engine.start(automation.id, {"items": [1, 2, 3]})
    waiting = await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    assert [one.scope_key for one in waiting.node_runs if one.status == "waiting"] == [
        "loop:0",
        "loop:1",
        "loop:2",
    ]
    assert await publish(engine, key) == 3
    run = await engine.ended(automation.id, run_id)
    assert (run.status, len(outputs(run, "then"))) == ("succeeded", 3), run.error


async def test_a_loop_over_no_items_runs_nothing(engine: Engine) -> None:
    run = await engine.run(around(step("body"), collect="body"), {"items": []})
    assert run.output == {"after": {"v": {"count": 0, "succeeded": 0, "failed": 0, "results": []}}}


@pytest.mark.parametrize("items", [None, "text", {"a": 1}])
async def test_items_that_are_no_list_fail_the_loop(engine: Engine, items: Any) -> None:
    run = await engine.run(around(step("body")), {"items": items})
    assert (run.status, await error_codes(engine, run)) == ("failed", {"loop": "binding_error"})
    assert by_node(run)["after"].status == "skipped" if "after" in by_node(run) else True


@dataclass
class Crowd:
    """A server that counts its concurrent callers, and answers none before `together`."""

    seconds: float = 0.1
    together: int = 1
    now: int = 0
    most: int = 0
    barrier: asyncio.Barrier = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = asyncio.Barrier(self.together)

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.barrier.wait()
        await asyncio.sleep(self.seconds)
        self.now -= 1
        writer.write(reply(200))
        await writer.drain()


@pytest.mark.long
@pytest.mark.parametrize(("parallelism", "items"), [(1, 4), (3, 9), (50, 20)])
async def test_no_more_items_at_once_than_allowed(
    engine: Engine, serve: Serve, parallelism: int, items: int
) -> None:
    crowd = Crowd(0.3, together=min(parallelism, items))
    endpoint = await serve(crowd)
    run = await engine.run(
        around(node("call", "http_request", url=endpoint.url), parallelism=parallelism),
        {"items": list(range(items))},
    )
    assert run.status == "succeeded", run.error
    assert len(endpoint.requests) == items
    assert crowd.most == min(parallelism, items)


def broken_at(*indexes: int) -> Json:
    """A quick node that fails for some items."""
    broken = " || ".join(f"index == {index}" for index in indexes)
    return step("body", binding("expression", f"({broken}) ? [1][index + 9] : index"))


async def test_failed_items_are_counted_and_listed(engine: Engine) -> None:
    run = await engine.run(
        around(
            broken_at(1, 3),
            step("then", INDEX),
            edges=[("body", "then")],
            onItemError="continue",
            collect="then",
        ),
        {"items": list("abcd")},
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    output = run.output["after"]["v"]
    errors = output.pop("errors")
    assert [(one["index"], one["nodeId"]) for one in errors] == [(1, "body"), (3, "body")]
    assert all(one["error"] for one in errors)
    results = [{"v": 0}, None, {"v": 2}, None]
    assert output == {"count": 4, "succeeded": 2, "failed": 2, "results": results}
    # What a failed item did not come to has no row: it follows from the graph.
    assert outputs(run, "then") == {"loop:0": 0, "loop:2": 2}


async def test_failed_calls_are_counted_too(engine: Engine, serve: Serve) -> None:
    good, bad = await serve(reply(200)), await serve(reply(404))
    run = await engine.run(
        around(node("body", "http_request", url=ITEM), onItemError="continue", parallelism=2),
        {"items": [good.url, bad.url, good.url]},
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    output = run.output["after"]["v"]
    assert (output["succeeded"], output["failed"]) == (2, 1)
    answered = {"index": 1, "nodeId": "body", "error": "The server returned 404."}
    assert output["errors"] == [answered]


async def test_a_failed_item_with_a_way_out_has_not_failed(engine: Engine) -> None:
    run = await engine.run(
        around(broken_at(1), step("oops"), edges=[("body", "oops", "failure")]),
        {"items": [1, 2]},
    )
    assert run.output == {"after": {"v": {"count": 2, "succeeded": 2, "failed": 0}}}
    assert outputs(run, "oops") == {"loop:1": "oops"}


@pytest.mark.long
async def test_many_failures_are_listed_in_part(engine: Engine) -> None:
    run = await engine.run(
        around(step("body", binding("expression", "[1][index + 9]")), onItemError="continue"),
        {"items": list(range(150))},
    )
    assert run.output is not None
    output = run.output["after"]["v"]
    assert (output["failed"], output["succeeded"], len(output["errors"])) == (150, 0, 100)
    assert [one["index"] for one in output["errors"]] == list(range(100))


async def test_the_first_failed_item_fails_the_loop(engine: Engine) -> None:
    run = await engine.run(
        graph(
            loop("loop", [1, 2, 3, 4], parallelism=1, label="Each"),
            broken_at(2),
            step("after"),
            edges=[("loop", "body", "item"), ("loop", "after", "done")],
        )
    )
    assert run.status == "failed"
    assert run.error is not None
    assert run.error.startswith("Each: Item 2: body: ")
    assert outputs(run, "body") == {"loop:0": 0, "loop:1": 1}
    assert (await error_codes(engine, run))["loop"] == "item_failed"


async def test_a_failed_item_cancels_the_items_beside_it(engine: Engine, serve: Serve) -> None:
    all_out = asyncio.Event()
    slow, bad = await serve(never), await serve(once(all_out, reply(404)))
    automation = await engine.publish(
        graph(
            loop("loop", [slow.url, bad.url, slow.url]),
            node("body", "http_request", url=ITEM),
            step("oops", binding("node", "loop")),
            edges=[("loop", "body", "item"), ("loop", "oops", "failure")],
        )
    )
    run_id = await engine.start(automation.id)

    async def both_are_out() -> bool:
        return len(slow.requests) == 2

    await eventually(both_are_out, what="the items beside it")
    all_out.set()
    run = await engine.ended(automation.id, run_id)
    why = {"error": "Item 1: body: The server returned 404.", "errorCode": "item_failed"}
    assert (run.status, run.output) == ("succeeded", {"oops": {"v": why}})
    states = {one.scope_key: one.status for one in run.node_runs if one.node_id == "body"}
    assert states == {"loop:0": "cancelled", "loop:1": "failed", "loop:2": "cancelled"}
    await asyncio.wait_for(slow.left.wait(), promised(20))


NESTED_ITEMS = {"rows": [{"name": "a", "parts": [1, 2]}, {"name": "b", "parts": [3]}]}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["quick", "outside"])
async def test_loops_run_inside_loops(engine: Engine, serve: Serve, kind: str) -> None:
    endpoint = await serve(reply(200, {}))
    call = node("call", "http_request", url=endpoint.url)
    inner = [step("call") if kind == "quick" else call]
    run = await engine.run(
        graph(
            loop("outer", binding("trigger", "rows"), collect="sum"),
            step("name", binding("item", "name")),
            loop("inner", binding("item", "parts"), collect="part"),
            *inner,
            step("part", binding("expression", "[nodes.name.v, item, index]")),
            step("sum", binding("node", "inner.results[*].v")),
            step("end", binding("node", "outer.results[*].v")),
            edges=[
                ("outer", "name", "item"),
                ("name", "inner"),
                ("inner", "call", "item"),
                ("call", "part"),
                ("inner", "sum", "done"),
                ("outer", "end", "done"),
            ],
        ),
        NESTED_ITEMS,
    )
    assert run.status == "succeeded", run.error
    assert run.output == {"end": {"v": [[["a", 1, 0], ["a", 2, 1]], [["b", 3, 0]]]}}
    assert set(outputs(run, "part")) == {
        "outer:0/inner:0",
        "outer:0/inner:1",
        "outer:1/inner:0",
    }


@pytest.mark.long
async def test_a_failure_climbs_through_nested_loops(engine: Engine) -> None:
    run = await engine.run(
        graph(
            loop("outer", [[0], [1, 2]], onItemError="continue"),
            loop("inner", ITEM),
            step("body", binding("expression", "item == 2 ? [1][index + 9] : item")),
            edges=[("outer", "inner", "item"), ("inner", "body", "item")],
        )
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    failed = run.output["outer"]["errors"]
    assert [(one["index"], one["nodeId"]) for one in failed] == [(1, "inner")]
    assert failed[0]["error"].startswith("Item 1: body: ")


REPEATED = graph(
    node("again", "repeat", **{"while": "index == 0 || nodes.count.v < 5"}, collect="count"),
    step("count", binding("expression", "has(nodes.count) ? nodes.count.v + 2 : 1")),
    edges=[("again", "count", "item")],
)


async def test_the_last_outputs_of_the_body_are_collected(engine: Engine) -> None:
    run = await engine.run(
        graph(
            loop("loop", [[1, 2], [3]], collect=True),
            loop("inner", ITEM, collect=True),
            step("first", ITEM),
            step("last", binding("expression", "nodes.first.v * 10")),
            edges=[("loop", "inner", "item"), ("inner", "first", "item"), ("first", "last")],
        )
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    inner = [one["results"] for one in run.output["loop"]["results"]]
    assert inner == [[{"v": 10}, {"v": 20}], [{"v": 30}]]


async def test_a_repeat_without_a_condition_counts(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node("again", "repeat", maxIterations=3),
            step("body", binding("expression", "index")),
            edges=[("again", "body", "item")],
        )
    )
    assert run.status == "succeeded", run.error
    assert outputs(run, "body") == {"again:0": 0, "again:1": 1, "again:2": 2}
    assert by_node(run)["again"].output["limitReached"] is False


async def test_repeat_sees_what_the_iteration_before_computed(engine: Engine) -> None:
    run = await engine.run(REPEATED)
    assert run.status == "succeeded", run.error
    assert outputs(run, "count") == {"again:0": 1, "again:1": 3, "again:2": 5}
    assert run.output == {
        "again": {
            "count": 3,
            "succeeded": 3,
            "failed": 0,
            "limitReached": False,
            "results": [{"v": 1}, {"v": 3}, {"v": 5}],
        }
    }


@pytest.mark.long
async def test_repeat_around_a_call(engine: Engine, serve: Serve) -> None:
    pages = [reply(200, {"next": number}) for number in (1, 2, None)]
    endpoint = await serve(*pages)
    condition = "index == 0 || nodes.page.body.next != null"
    run = await engine.run(
        graph(
            loop("each", ["x"]),
            node("again", "repeat", **{"while": condition}, collect="seen"),
            node("page", "http_request", url=endpoint.url),
            step("seen", binding("expression", "[item, index, nodes.page.body.next]")),
            step("all", binding("node", "again.results[*].v")),
            edges=[
                ("each", "again", "item"),
                ("again", "page", "item"),
                ("page", "seen"),
                ("again", "all", "done"),
            ],
        )
    )
    assert run.status == "succeeded", run.error
    # A repeat has no items: the item is still that of the loop around it.
    seen = [["x", 0, 1], ["x", 1, 2], ["x", 2, None]]
    assert outputs(run, "all") == {"each:0": seen}


async def test_repeat_ends_at_its_limit_and_says_so(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node("again", "repeat", **{"while": "true"}, maxIterations=3),
            step("body"),
            edges=[("again", "body", "item")],
        )
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    assert (run.output["again"]["count"], run.output["again"]["limitReached"]) == (3, True)


async def test_a_repeat_at_its_limit_asks_for_nothing_beyond_it(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node("again", "repeat", **{"while": "trigger.items[index] > 0"}, maxIterations=3),
            step("body"),
            edges=[("again", "body", "item")],
        ),
        {"items": [1, 2, 3]},
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    assert (run.output["again"]["count"], run.output["again"]["limitReached"]) == (3, True)


@pytest.mark.parametrize("slow", [False, True])
async def test_a_condition_that_cannot_be_evaluated_fails_the_loop(
    engine: Engine, serve: Serve, slow: bool
) -> None:
    endpoint = await serve(reply())
    body = node("body", "http_request", url=endpoint.url) if slow else step("body")
    run = await engine.run(
        graph(
            node("again", "repeat", **{"while": "index < 2 || nodes.none.v > 1"}),
            body,
            step("none"),
            step("oops"),
            edges=[("again", "body", "item"), ("none", "again"), ("again", "oops", "failure")],
        )
        | {"testPayloads": []}
    )
    assert run.status == "succeeded", run.error
    assert "oops" in by_node(run)
    assert (await error_codes(engine, run))["again"] in {"expression_error", "binding_error"}


@pytest.mark.long
async def test_the_delay_of_a_repeat_is_a_durable_timer(skipping_engine: Engine) -> None:
    engine = skipping_engine
    automation = await engine.publish(
        graph(
            node("again", "repeat", **{"while": "index < 3"}, delaySeconds=3_600),
            step("body"),
            edges=[("again", "body", "item")],
        )
    )
    run = await engine.ended(automation.id, await engine.start(automation.id))
    assert run.status == "succeeded", run.error
    assert run.output is not None
    assert run.output["again"]["count"] == 3
    handle = engine.client.get_workflow_handle(run.metadata["temporalWorkflowId"])
    timers = [
        event
        for event in (await handle.fetch_history()).events
        if event.HasField("timer_fired_event_attributes")
    ]
    assert len(timers) == 2


@pytest.mark.long
async def test_a_delay_shows_loop_and_run_as_waiting(engine: Engine) -> None:
    automation = await engine.publish(
        graph(
            node("again", "repeat", **{"while": "index < 3"}, delaySeconds=1.5),
            step("body"),
            edges=[("again", "body", "item")],
        )
    )
    run_id = await engine.start(automation.id)
    waiting = await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    assert by_node(waiting)["again"].status == "waiting"
    assert waiting.metadata["waiting"][0]["nodeId"] == "again"
    run = await engine.ended(automation.id, run_id)
    assert (run.status, len(outputs(run, "body"))) == ("succeeded", 3), run.error


@pytest.mark.parametrize(
    ("config", "count", "code"),
    [
        ({"maxItems": 3}, 4, "too_many_items"),
        ({}, 10_001, "too_many_items"),
        ({"parallelism": binding("trigger", "wide")}, 1, "binding_error"),
    ],
)
async def test_the_items_of_a_loop_are_limited(
    engine: Engine, config: Json, count: int, code: str
) -> None:
    payload = {"items": [0] * count, "wide": 51}
    run = await engine.run(around(step("body"), **config), payload)
    assert (run.status, await error_codes(engine, run)) == ("failed", {"loop": code})


async def test_collecting_too_much_fails_the_loop(engine: Engine) -> None:
    large = "x" * 60_000
    run = await engine.run(
        graph(
            loop("loop", list(range(20)), collect="body"),
            step("body", large),
            step("oops"),
            edges=[("loop", "body", "item"), ("loop", "oops", "failure")],
        )
    )
    assert (run.status, run.output) == ("succeeded", {"oops": {"v": "oops"}})
    assert await error_codes(engine, run) == {"loop": "output_too_large"}


@pytest.mark.parametrize("body", ["quick", "outside", "chunks"])
async def test_a_stop_node_in_a_body_ends_the_run(engine: Engine, serve: Serve, body: str) -> None:
    endpoint = await serve(reply())
    first = step("body") if body == "quick" else node("body", "http_request", url=endpoint.url)
    run = await engine.run(
        around(
            first,
            node("check", "condition", expression="index == 2"),
            node("stop", "stop", result="failed", message="Enough."),
            edges=[("body", "check"), ("check", "stop", "true")],
            parallelism=2,
        ),
        {"items": list(range(120 if body == "chunks" else 5))},
    )
    assert (run.status, run.error) == ("failed", "stop: Enough.")
    assert by_node(run)["loop"].status == "cancelled"


async def test_loops_of_a_test_run_can_be_mocked(engine: Engine) -> None:
    automation_id = await engine.draft(around(step("body")))
    run = await engine.test(automation_id, mocks={"loop": {"count": 7}})
    assert run.output == {"after": {"v": {"count": 7}}}


@pytest.mark.parametrize("last", ["body", "after"])
async def test_a_test_run_stops_inside_or_behind_a_loop(engine: Engine, last: str) -> None:
    automation_id = await engine.draft(around(step("body"), step("then"), edges=[("body", "then")]))
    run = await engine.test(automation_id, stopAtNodeId=last, payload={"items": [1, 2]})
    assert run.status == "succeeded", run.error
    assert len(outputs(run, "body")) == 2
    assert len(outputs(run, "then")) == (2 if last == "after" else 0)


async def test_the_history_of_a_quick_loop_is_that_of_one_node(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine is, it is one batch.
    monkeypatch.setattr(quick_nodes, "BATCH_SECONDS", 60)
    run = await engine.run(around(step("body")), {"items": list(range(50))})
    assert run.status == "succeeded", run.error
    handle = engine.client.get_workflow_handle(run.metadata["temporalWorkflowId"])
    history = await handle.fetch_history()
    assert len(history.events) <= 6


async def test_the_worker_knows_where_a_loop_stands(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker applies iterations as the workflow does, and continues with the next node."""
    # However slow the machine is, quick nodes in a row are one batch.
    monkeypatch.setattr(quick_nodes, "BATCH_SECONDS", 60)
    followed: list[tuple[Id, bool]] = []
    follow = runs.OpenRun.follow

    def noted(self: Any, *given: Any) -> Any:
        plan_state = follow(self, *given)
        followed.append((self.header.run_id, plan_state is not None))
        return plan_state

    monkeypatch.setattr(runs.OpenRun, "follow", noted)
    endpoint = await serve(reply())
    run = await engine.run(
        around(
            node("call", "http_request", url=endpoint.url),
            *(step(name) for name in "abc"),
            edges=[("call", "a"), ("a", "b"), ("b", "c")],
            parallelism=1,
        ),
        {"items": [1, 2, 3]},
    )
    assert run.status == "succeeded", run.error
    # One batch for `a b c` of each item, and one for what follows the loop.
    assert [one for one in followed if one[0] == run.id] == [(run.id, True)] * 4


async def test_the_table_of_a_loop_has_one_line_per_node(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(*[reply()] * 3, never)
    automation = await engine.publish(
        around(
            node("call", "http_request", url=endpoint.url),
            step("then"),
            edges=[("call", "then")],
            parallelism=2,
        )
    )
    run_id = await engine.start(automation.id, {"items": list(range(10))})
    handle = handle_of(engine, run_id)
    shown = [
        "| loop | for_each | ▶ running 3/10 | 1 |",
        "| call | http_request | ▶ 2 · ✔ 3 | - |",
        "| then | transform | ✔ 3 | - |",
    ]

    async def is_shown() -> bool:
        if len(endpoint.requests) < 5:
            return False
        return (await table_of_nodes(handle)).splitlines()[2:] == shown

    await eventually(is_shown, what="the table of a loop")
    await engine.cancel(automation.id, run_id)
