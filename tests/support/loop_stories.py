"""Histories of loops: their iterations in the run's own workflow, and in parts of their own."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence

from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, Json, graph, node
from tests.support.sink import Sink

LONG = 101
"""Iterations that no workflow runs itself."""


def loop_graphs(sink: Sink) -> dict[str, Json]:
    """The runs to record, each left to end by itself."""
    call = node("call", "http_request", method="POST", url=sink.url("ok"))
    broken = node("call", "http_request", method="POST", url=sink.url("broken"))
    body, pause = node("body", "transform", output={}), node("pause", "delay", seconds=0.3)
    each = {"items": [1, 2, 3], "parallelism": 2}
    loop = node("loop", "for_each", **each)
    on_error = node("loop", "for_each", **each, onItemError="continue")
    inner = node("loop", "for_each", items={"type": "item", "value": ""})
    repeat = node("loop", "repeat", **{"while": "index < 3"}, delaySeconds=0.3)
    return {
        "loop-quick": _loop(loop, body),
        "loop-outside": _loop(loop, body, call, edges=[("body", "call")]),
        "loop-of-waits": _loop(loop, pause),
        "loop-failed-item": _loop(loop, broken),
        "loop-failed-items": _loop(on_error, broken),
        "loops-in-loops": _loop(
            inner,
            call,
            node("outer", "for_each", items=[[1, 2], [3]]),
            edges=[("outer", "loop", "item")],
        ),
        "repeat-with-delay": _loop(repeat, call),
        "loop-in-parts": _long(node("pause", "delay", seconds=0.1)),
    }


def _loop(loop: Json, body: Json, *others: Json, edges: Sequence[tuple[str, ...]] = ()) -> Json:
    """A loop over a body, and a node after it."""
    ways = [("loop", body["id"], "item"), *edges, ("loop", "after", "done")]
    return graph(loop, body, *others, node("after", "transform", output={}), edges=ways)


def _long(body: Json) -> Json:
    """A loop of possibly more iterations than a workflow runs itself."""
    return graph(
        node("loop", "repeat", **{"while": "index < 2"}, maxIterations=LONG),
        body,
        edges=[("loop", body["id"], "item")],
    )


async def part_of_a_loop(engine: Engine) -> str:
    """A part, from its first iteration to its last."""
    run = await engine.run(_long(node("pause", "delay", seconds=0.1)))
    return _part(run.id)


async def cancelled_part(engine: Engine) -> str:
    """A part whose run is cancelled while an iteration waits."""
    automation = await engine.publish(_long(node("pause", "delay", seconds=600)))
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: len(run.node_runs) > 1)
    # The workflow hears of the wait a little later than the rows.
    await asyncio.sleep(1)
    await engine.cancel(automation.id, run_id)
    return _part(run_id)


def _part(run_id: uuid.UUID) -> str:
    return f"{WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)}/loop/loop//0"


LOOP_STORIES: Mapping[str, Callable[[Engine], Awaitable[str]]] = {
    "loop-part": part_of_a_loop,
    "loop-part-cancelled": cancelled_part,
}
