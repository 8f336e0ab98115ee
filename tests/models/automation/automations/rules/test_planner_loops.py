"""Loop frames: each iteration is a scope of its own."""

from collections.abc import Callable

import pytest

from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.rules.planner.planner import Planner
from models.automation.automations.rules.planner.protocol import (
    CancelNode,
    EndLoop,
    EndRun,
    IterationsReady,
    NextIteration,
    NodeFailed,
    NodeRef,
    NodeSucceeded,
    RunCancelled,
    RunStopped,
    SkipNode,
    StartNode,
)
from tests.models.automation.automations.rules.drawing import draw, run

LOOP = draw("a -> loop -item-> x -> y", "loop -done-> z", "loop -failure-> oops")
NESTED = draw("one -item-> two -item-> x", "two -done-> y", "one -done-> z")


def items(
    count: int, parallelism: int = 1, *, stop_on_error: bool = True
) -> Callable[[NodeRef], IterationsReady]:
    return lambda ref: IterationsReady(ref, count, parallelism, stop_on_error)


def test_a_body_runs_once_per_iteration() -> None:
    trace = run(LOOP, {"loop": items(2)})
    assert trace.started == ["a", "loop", "x@loop:0", "y@loop:0", "x@loop:1", "y@loop:1", "z"]
    assert trace.skipped == ["oops"]
    assert trace.loops == [EndLoop(NodeRef("loop"), succeeded=True, opened=2)]
    assert trace.end == EndRun(succeeded=True)


def test_iterations_run_side_by_side_up_to_the_parallelism() -> None:
    planner = Planner(LOOP)
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("a")))
    assert planner.apply(IterationsReady(NodeRef("loop"), 3, 2)) == (
        StartNode(NodeRef("x", "loop:0")),
        StartNode(NodeRef("x", "loop:1")),
    )
    planner.apply(NodeSucceeded(NodeRef("x", "loop:1")))
    assert planner.apply(NodeSucceeded(NodeRef("y", "loop:1"))) == (
        StartNode(NodeRef("x", "loop:2")),
    )
    assert NodeRef("loop") in planner.active


def test_nested_loops_have_nested_scopes() -> None:
    trace = run(NESTED, {"one": items(2), "two": items(2)})
    assert [text for text in trace.started if text.startswith("x")] == [
        "x@one:0/two:0",
        "x@one:0/two:1",
        "x@one:1/two:0",
        "x@one:1/two:1",
    ]
    assert [text for text in trace.started if text.startswith("y")] == ["y@one:0", "y@one:1"]
    assert trace.started[-1] == "z"


@pytest.mark.parametrize("plan", [LOOP, draw("loop -done-> z")])
def test_a_loop_without_items_is_done(plan: Plan) -> None:
    trace = run(plan, {"loop": items(0)})
    assert trace.started[-1] == "z"
    assert trace.end == EndRun(succeeded=True)


def test_a_loop_without_a_body_is_done_at_once() -> None:
    assert run(draw("loop -done-> z"), {"loop": items(10_000)}).started == ["loop", "z"]


def test_many_iterations_whose_body_is_disabled_need_no_recursion() -> None:
    plan = draw("loop -item-> x", "loop -done-> z", disabled="x")
    trace = run(plan, {"loop": items(10_000, 50)})
    assert len(trace.skipped) == 10_000
    assert trace.started == ["loop", "z"]


def test_a_failed_item_fails_the_loop_and_cancels_the_other_iterations() -> None:
    planner = Planner(LOOP)
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("a")))
    planner.apply(IterationsReady(NodeRef("loop"), 5, 3))
    failed = NodeRef("x", "loop:1")
    assert planner.apply(NodeFailed(failed)) == (
        CancelNode(NodeRef("x", "loop:0")),
        CancelNode(NodeRef("x", "loop:2")),
        EndLoop(NodeRef("loop"), succeeded=False, opened=3, failed=failed),
    )
    assert planner.apply(NodeSucceeded(NodeRef("x", "loop:0"))) == ()
    assert planner.apply(NodeFailed(NodeRef("loop"))) == (
        StartNode(NodeRef("oops")),
        SkipNode(NodeRef("z")),
    )
    assert planner.apply(NodeSucceeded(NodeRef("oops"))) == (EndRun(succeeded=True),)


def test_a_failed_item_is_passed_over_when_told_to() -> None:
    trace = run(LOOP, {"loop": items(3, stop_on_error=False), "x@loop:1": "fail"})
    assert trace.started[-1] == "z"
    assert "y@loop:1" in trace.skipped
    assert trace.loops == [EndLoop(NodeRef("loop"), True, 3, NodeRef("x", "loop:1"))]
    assert trace.end == EndRun(succeeded=True)


def test_a_failure_inside_nested_loops_climbs_to_the_run() -> None:
    trace = run(NESTED, {"one": items(2, 2), "two": items(2, 2), "x@one:1/two:0": "fail"})
    assert trace.end == EndRun(succeeded=False, failed=NodeRef("one"))
    assert [loop.ref.node_id for loop in trace.loops if not loop.succeeded] == ["two", "one"]


def test_a_loop_node_can_fail_before_and_while_it_iterates() -> None:
    assert run(LOOP, {"loop": "fail"}).started == ["a", "loop", "oops"]
    planner = Planner(LOOP)
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("a")))
    planner.apply(IterationsReady(NodeRef("loop"), 2, 2))
    commands = planner.apply(NodeFailed(NodeRef("loop")))
    assert StartNode(NodeRef("oops")) in commands
    assert planner.active == (NodeRef("oops"),)


def test_a_skipped_loop_opens_no_frame() -> None:
    plan = draw("if -true-> loop -item-> x", "loop -done-> z", "if -false-> w")
    trace = run(plan, {"if": "false"})
    assert trace.started == ["if", "w"]
    assert trace.skipped == ["loop", "z"]


def test_a_cancelled_run_cancels_every_scope() -> None:
    planner = Planner(NESTED)
    planner.begin()
    planner.apply(IterationsReady(NodeRef("one"), 1))
    planner.apply(IterationsReady(NodeRef("two", "one:0"), 1))
    assert planner.apply(RunCancelled()) == (
        CancelNode(NodeRef("one")),
        CancelNode(NodeRef("two", "one:0")),
        CancelNode(NodeRef("x", "one:0/two:0")),
    )


def test_the_reported_end_of_a_loop_decides_what_follows() -> None:
    """Its iterations ended well, but their outputs are too large to keep."""
    planner = Planner(draw("loop -item-> x", "loop -done-> z", "loop -failure-> oops"))
    planner.begin()
    planner.apply(IterationsReady(NodeRef("loop"), 1))
    ended = planner.apply(NodeSucceeded(NodeRef("x", "loop:0")))
    assert ended == (EndLoop(NodeRef("loop"), succeeded=True, opened=1),)
    assert planner.active == (NodeRef("loop"),)
    assert planner.apply(IterationsReady(NodeRef("loop"), 5)) == ()
    commands = planner.apply(NodeFailed(NodeRef("loop")))
    assert commands == (StartNode(NodeRef("oops")), SkipNode(NodeRef("z")))


def test_iterations_that_are_decided_one_by_one() -> None:
    planner = Planner(draw("loop -item-> x", "loop -done-> z"))
    planner.begin()
    ref, body = NodeRef("loop"), [NodeRef("x", f"loop:{index}") for index in range(2)]
    assert planner.apply(IterationsReady(ref, 0, more=True)) == (NextIteration(ref, 0),)
    assert planner.apply(IterationsReady(ref, 1, more=True)) == (StartNode(body[0]),)
    assert planner.apply(NodeSucceeded(body[0])) == (NextIteration(ref, 1),)
    assert planner.apply(IterationsReady(ref, 2, more=True)) == (StartNode(body[1]),)
    assert planner.apply(NodeSucceeded(body[1])) == (NextIteration(ref, 2),)
    assert planner.apply(IterationsReady(ref, 2)) == (EndLoop(ref, succeeded=True, opened=2),)
    assert planner.apply(NodeSucceeded(ref, "done")) == (StartNode(NodeRef("z")),)


def test_a_decision_that_fails_fails_the_loop() -> None:
    planner = Planner(draw("loop -item-> x", "loop -failure-> oops"))
    planner.begin()
    planner.apply(IterationsReady(NodeRef("loop"), 0, more=True))
    assert planner.apply(NodeFailed(NodeRef("loop"))) == (StartNode(NodeRef("oops")),)


def test_iterations_can_be_held_and_taken_up_elsewhere() -> None:
    plan = draw("loop -item-> x", "loop -done-> z").loop("loop")
    planner, ref = Planner(plan, "outer:1"), NodeRef("loop", "outer:1")
    assert planner.begin() == (StartNode(ref),)
    planner.apply(IterationsReady(ref, 100, 2, first=40))
    assert planner.active[1:] == tuple(NodeRef("x", f"outer:1/loop:{n}") for n in (40, 41))
    planner.apply(NodeSucceeded(NodeRef("x", "outer:1/loop:40")))
    assert planner.apply(IterationsReady(ref, 43)) == ()
    planner.apply(NodeSucceeded(NodeRef("x", "outer:1/loop:41")))
    ended = planner.apply(NodeSucceeded(NodeRef("x", "outer:1/loop:42")))
    assert ended == (EndLoop(ref, succeeded=True, opened=43),)


def test_a_stop_node_of_an_iteration_that_runs_elsewhere_ends_the_run() -> None:
    planner = Planner(NESTED)
    planner.begin()
    hidden = NodeRef("x", "one:7/two:3")
    assert planner.apply(NodeSucceeded(hidden)) == ()
    assert planner.apply(RunStopped(hidden, succeeded=True)) == (
        CancelNode(NodeRef("one")),
        EndRun(succeeded=True, stopped_by=hidden),
    )


def test_a_late_stop_node_of_a_loop_that_runs_here_ends_nothing() -> None:
    planner = Planner(LOOP)
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("a")))
    planner.apply(IterationsReady(NodeRef("loop"), 1))
    assert planner.apply(RunStopped(NodeRef("x", "loop:9"), succeeded=True)) == ()


def test_a_disabled_loop_is_done() -> None:
    trace = run(draw("loop -item-> x", "loop -done-> z", "loop -failure-> f", disabled=["loop"]))
    assert trace.started == ["z"]
    assert trace.skipped == ["loop", "f"]
