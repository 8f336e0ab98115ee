"""Histories of loops: their iterations in the run's own workflow, and in parts of their own."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping

from runtime.families import Family
from tests.support.engine import Engine, Json, graph, node
from tests.support.sink import Sink

LONG = 101
"""Iterations that no workflow runs itself."""


def loop_graphs(sink: Sink) -> dict[str, Json]:
    """The runs to record, each left to end by itself."""
    call = node("call", "http_request", method="POST", url=sink.url("ok"))
    broken = node("call", "http_request", method="POST", url=sink.url("broken"))
    after, body = node("after", "transform", output={}), node("body", "transform", output={})
    way = [("loop", "after", "done")]
    each = {"items": [1, 2, 3], "parallelism": 2}
    return {
        "loop-quick": graph(
            node("loop", "for_each", **each), body, after, edges=[("loop", "body", "item"), *way]
        ),
        "loop-outside": graph(
            node("loop", "for_each", **each),
            body,
            call,
            after,
            edges=[("loop", "body", "item"), ("body", "call"), *way],
        ),
        "loop-of-waits": graph(
            node("loop", "for_each", **each),
            node("pause", "delay", seconds=0.3),
            after,
            edges=[("loop", "pause", "item"), *way],
        ),
        "loop-failed-item": graph(
            node("loop", "for_each", **each), broken, after, edges=[("loop", "call", "item"), *way]
        ),
        "loop-failed-items": graph(
            node("loop", "for_each", **each, onItemError="continue"),
            broken,
            after,
            edges=[("loop", "call", "item"), *way],
        ),
        "loops-in-loops": graph(
            node("outer", "for_each", items=[[1, 2], [3]]),
            node("loop", "for_each", items={"type": "item", "value": ""}),
            call,
            after,
            edges=[("outer", "loop", "item"), ("loop", "call", "item"), *way],
        ),
        "repeat-with-delay": graph(
            node("loop", "repeat", **{"while": "index < 3"}, delaySeconds=0.3),
            call,
            after,
            edges=[("loop", "call", "item"), *way],
        ),
        "loop-in-parts": _long(node("pause", "delay", seconds=0.1)),
    }


def _long(body: Json) -> Json:
    """A loop that could come to so many iterations that no workflow runs them itself."""
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
    return f"{Family.AUTOMATION_RUN.workflow_id(run_id)}/loop/loop//0"


LOOP_STORIES: Mapping[str, Callable[[Engine], Awaitable[str]]] = {
    "loop-part": part_of_a_loop,
    "loop-part-cancelled": cancelled_part,
}
